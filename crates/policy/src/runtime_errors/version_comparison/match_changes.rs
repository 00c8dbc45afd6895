//! Finds requests that only one of two versions of a policy matches, or for which the matching bindings of the two
//! versions differ.
//!
//! Some candidates have the labels that the selectors of a version require. In other candidates, one of these labels is
//! changed. The results are matchResources that select the candidates that the two versions match differently. Other
//! searches build requests that satisfy these matchResources.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicyBindingSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::{Value as Json, json};

use crate::admission::rules::Constraints;
use crate::admission::{AdmissionRequest, Namespace, Object, Operation};
use crate::compile::CompiledPolicy;
use crate::matching;
use crate::runtime_errors::input_types::roots::is_namespace;
use crate::runtime_errors::requests::kinds::{operations, representative_kinds};
use cel::interrupt::checkpoint_of;
use kubernetes::schema::rest_mapper::{ApiResource, RestMapper};

/// Maximum number of results.
const MAX_RESULTS: usize = 6;

/// Maximum number of distinct differences that are collected. The results are chosen from them.
const MAX_PAIRS: usize = 24;

/// Maximum number of candidates.
const MAX_CANDIDATES: usize = 6_000;

/// Maximum number of labels that the candidates vary.
const MAX_LABELS: usize = 8;

/// Maximum number of values of one label.
const MAX_VALUES: usize = 8;

/// Maximum number of names from the rules.
const MAX_NAMES: usize = 4;

/// A name for objects, and a value for labels, that rules and selectors are unlikely to mention.
const OTHER: &str = "example";

/// The namespace of candidates if no selector mentions a namespace.
const NAMESPACE: &str = "default";

/// The label that contains the name of a namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The labels of an object or a namespace. `None` is an absent label.
type Labels = BTreeMap<String, Option<String>>;

/// The match constraints of one version, with the selectors of each of its bindings.
struct VersionMatch<'a> {
    policy: Option<(&'a MatchResources, Constraints)>,
    bindings: Vec<VersionBinding<'a>>,
}

struct VersionBinding<'a> {
    resources: Option<(&'a MatchResources, Constraints)>,
    /// The binding without its matchResources.
    rest: Json,
    denies: bool,
}

impl<'a> VersionMatch<'a> {
    fn new(
        policy: &'a CompiledPolicy,
        bindings: &[&'a ValidatingAdmissionPolicyBindingSpec],
    ) -> Self {
        let parsed = |it: &'a MatchResources| (it, Constraints::new(it));
        let bindings = bindings.iter().map(|spec| {
            let rest = ValidatingAdmissionPolicyBindingSpec {
                match_resources: None,
                ..(*spec).clone()
            };
            VersionBinding {
                resources: spec.match_resources.as_ref().map(parsed),
                rest: serde_json::to_value(rest).unwrap_or_default(),
                denies: spec.validation_actions.iter().any(|it| it == "Deny"),
            }
        });
        Self {
            policy: policy.policy().match_constraints.as_ref().map(parsed),
            bindings: bindings.collect(),
        }
    }

    /// Returns all matchResources, those of the policy first.
    fn resources(&self) -> impl Iterator<Item = &'a MatchResources> {
        let of_bindings = self.bindings.iter().filter_map(|it| it.resources.as_ref());
        self.policy.iter().chain(of_bindings).map(|(it, _)| *it)
    }

    /// Returns the bindings that select `candidate`, serialized without their matchResources. Also returns true if one
    /// of these bindings denies requests.
    fn selecting(&self, candidate: &Candidate<'_>) -> (BTreeSet<String>, bool) {
        let (request, namespaces) = candidate.request();
        let is_matched = |resources: &Option<(&MatchResources, Constraints)>| {
            resources.as_ref().is_none_or(|(_, constraints)| {
                let matched = constraints.matches(&request, &namespaces);
                matched.is_ok_and(|matched| matched.is_some())
            })
        };
        if !is_matched(&self.policy) {
            return Default::default();
        }
        let selecting = self.bindings.iter().filter(|it| is_matched(&it.resources));
        let selecting: Vec<_> = selecting.collect();
        let denies = selecting.iter().any(|it| it.denies);
        let rest = selecting.into_iter().map(|it| it.rest.to_string());
        (rest.collect(), denies)
    }
}

/// A request that the versions may match differently.
#[derive(Clone)]
struct Candidate<'a> {
    resource: &'a ApiResource,
    operation: Operation,
    name: String,
    namespace_labels: Labels,
    object_labels: Labels,
}

impl Candidate<'_> {
    fn resource_and_subresource(&self) -> (&str, &str) {
        let resource = &*self.resource.gvr.resource;
        resource.split_once('/').unwrap_or((resource, ""))
    }

    fn request(&self) -> (AdmissionRequest, BTreeMap<String, Namespace>) {
        let present = |labels: &Labels| -> BTreeMap<String, String> {
            let labels = labels.iter();
            let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
            labels.collect()
        };
        let mut labels = present(&self.object_labels);
        let namespace = self.namespace_labels.get(NAME_LABEL).cloned().flatten();
        let namespace = namespace.unwrap_or_else(|| NAMESPACE.to_owned());
        let mut name = self.name.clone();
        if is_namespace(self.resource) {
            labels.extend(present(&self.namespace_labels));
            if self.namespace_labels.contains_key(NAME_LABEL) {
                name.clone_from(&namespace);
            }
        }
        let object = Object::new(&json!({"metadata": {"name": name, "labels": labels}}));
        let (resource, subresource) = self.resource_and_subresource();
        let mut gvr = self.resource.gvr.clone();
        resource.clone_into(&mut gvr.resource);
        let (has_object, has_old) = match self.operation {
            Operation::Create | Operation::Connect => (true, false),
            Operation::Update => (true, true),
            Operation::Delete => (false, true),
        };
        let mut namespaces = BTreeMap::new();
        let namespace_object = json!({
            "metadata": {"name": namespace, "labels": present(&self.namespace_labels)},
        });
        let own_namespace = if is_namespace(self.resource) {
            name.clone()
        } else if self.resource.namespaced {
            namespace
        } else {
            String::new()
        };
        namespaces.insert(own_namespace.clone(), Namespace::new(&namespace_object));
        let request = AdmissionRequest {
            operation: self.operation,
            gvk: self.resource.gvk.clone(),
            gvr,
            subresource: subresource.to_owned(),
            name,
            namespace: own_namespace,
            object: has_object.then(|| object.clone()),
            old_object: has_old.then_some(object),
            ..AdmissionRequest::default()
        };
        (request, namespaces)
    }

    /// Returns matchResources that select only requests like this candidate.
    fn match_resources(&self) -> MatchResources {
        let gvr = &self.resource.gvr;
        let is_named = self.name != OTHER;
        let rule = NamedRuleWithOperations {
            api_groups: Some(vec![gvr.group.clone()]),
            api_versions: Some(vec![gvr.version.clone()]),
            operations: Some(vec![self.operation.as_str().to_owned()]),
            resources: Some(vec![gvr.resource.clone()]),
            resource_names: is_named.then(|| vec![self.name.clone()]),
            ..NamedRuleWithOperations::default()
        };
        let selector = |labels: &Labels| (!labels.is_empty()).then(|| selector_of(labels));
        MatchResources {
            resource_rules: Some(vec![rule]),
            namespace_selector: selector(&self.namespace_labels),
            object_selector: selector(&self.object_labels),
            ..MatchResources::default()
        }
    }
}

fn selector_of(labels: &Labels) -> LabelSelector {
    let present = labels.iter();
    let present = present.filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
    let absent = labels.iter().filter(|(_, value)| value.is_none());
    let absent = absent.map(|(key, _)| LabelSelectorRequirement {
        key: key.clone(),
        operator: "DoesNotExist".to_owned(),
        values: None,
    });
    LabelSelector {
        match_labels: Some(present.collect()),
        match_expressions: Some(absent.collect()),
    }
}

/// Returns matchResources that select requests for which the versions differ: only one version matches the requests, or
/// the matching bindings of the two versions differ. `bindings` contains the bindings of each version. Requests that
/// only one version may deny come first.
#[must_use]
pub fn differing_matches(
    policies: [&CompiledPolicy; 2],
    bindings: [&[&ValidatingAdmissionPolicyBindingSpec]; 2],
    mapper: &RestMapper,
) -> Vec<MatchResources> {
    let [old, new] = policies;
    let [of_old, of_new] = bindings;
    let versions = [
        VersionMatch::new(old, of_old),
        VersionMatch::new(new, of_new),
    ];
    let targets = policies.map(|policy| matching::targets(policy.policy(), mapper));
    let [of_old, of_new] = targets.each_ref().map(|it| representative_kinds(it));
    let mut kinds = of_old;
    for (resource, operations) in of_new {
        match kinds
            .iter_mut()
            .find(|(known, _)| known.gvr == resource.gvr)
        {
            Some((_, known)) => {
                known.extend(
                    operations
                        .iter()
                        .filter(|it| !known.contains(it))
                        .copied()
                        .collect::<Vec<_>>(),
                );
            }
            None => kinds.push((resource, operations)),
        }
    }
    // A rule with wildcards may match cluster-scoped kinds, depending on its scope, so one such kind is included.
    let mut targets = targets.iter().flatten();
    let cluster_scoped = targets.find(|it| it.by_wildcard && !it.resource.namespaced);
    kinds.extend(cluster_scoped.map(|it| (it.resource, operations(it))));
    let names = names(&versions);
    let labels = label_pairs(&versions);
    let mut pairs = BTreeSet::new();
    let mut differing = Vec::new();
    let mut n_left = MAX_CANDIDATES;
    for (resource, operations) in kinds {
        for operation in operations {
            for name in &names {
                for (namespace_labels, object_labels) in &labels {
                    checkpoint_of(100);
                    if n_left == 0 || pairs.len() >= MAX_PAIRS {
                        break;
                    }
                    n_left -= 1;
                    let has_namespace = resource.namespaced || is_namespace(resource);
                    let of_namespace = if has_namespace {
                        namespace_labels.clone()
                    } else {
                        Labels::default()
                    };
                    let candidate = Candidate {
                        resource,
                        operation,
                        name: name.clone(),
                        namespace_labels: of_namespace,
                        object_labels: object_labels.clone(),
                    };
                    let [old, new] = versions.each_ref().map(|it| it.selecting(&candidate));
                    if old != new && pairs.insert((old.0.clone(), new.0.clone())) {
                        differing.push((old.1 == new.1, candidate.match_resources()));
                    }
                }
            }
        }
    }
    differing.sort_by_key(|(is_same, _)| *is_same);
    let differing = differing.into_iter().map(|(_, resources)| resources);
    differing.take(MAX_RESULTS).collect()
}

/// Returns a name that no rule mentions, and the names in the rules of both versions.
fn names(versions: &[VersionMatch<'_>; 2]) -> Vec<String> {
    let resources = versions.iter().flat_map(VersionMatch::resources);
    let rules = resources.flat_map(|it| {
        let rules = it.resource_rules.iter().chain(&it.exclude_resource_rules);
        rules.flatten()
    });
    let in_rules: BTreeSet<&String> = rules
        .flat_map(|rule| rule.resource_names.iter().flatten())
        .collect();
    let in_rules = in_rules.into_iter().take(MAX_NAMES).cloned();
    std::iter::once(OTHER.to_owned()).chain(in_rules).collect()
}

/// Returns the labels of namespaces and objects of the candidates.
fn label_pairs(versions: &[VersionMatch<'_>; 2]) -> Vec<(Labels, Labels)> {
    let all: Vec<&MatchResources> = versions.iter().flat_map(VersionMatch::resources).collect();
    let of_namespaces =
        LabelValues::new(all.iter().filter_map(|it| it.namespace_selector.as_ref()));
    let of_objects = LabelValues::new(all.iter().filter_map(|it| it.object_selector.as_ref()));
    let mut bases = vec![(of_namespaces.none(), of_objects.none())];
    for version in versions {
        let of_policy = version.policy.iter().map(|(it, _)| *it);
        for binding in &version.bindings {
            let of_binding = binding.resources.iter().map(|(it, _)| *it);
            let both: Vec<_> = of_policy.clone().chain(of_binding).collect();
            let in_namespace = both.iter().filter_map(|it| it.namespace_selector.as_ref());
            let of_object = both.iter().filter_map(|it| it.object_selector.as_ref());
            bases.push((
                of_namespaces.satisfying(in_namespace),
                of_objects.satisfying(of_object),
            ));
        }
    }
    let mut pairs = bases.clone();
    for (namespace, object) in bases {
        let namespaces = of_namespaces.changes(&namespace);
        pairs.extend(namespaces.into_iter().map(|it| (it, object.clone())));
        let objects = of_objects.changes(&object);
        pairs.extend(objects.into_iter().map(|it| (namespace.clone(), it)));
    }
    let mut seen = BTreeSet::new();
    pairs.retain(|pair| seen.insert(pair.clone()));
    pairs
}

/// The labels that selectors mention, each with the values to try.
struct LabelValues(BTreeMap<String, Vec<Option<String>>>);

impl LabelValues {
    fn new<'s>(selectors: impl Iterator<Item = &'s LabelSelector>) -> Self {
        let mut all: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        let mut add = |key: &String, values: &mut dyn Iterator<Item = &String>| {
            if all.len() >= MAX_LABELS && !all.contains_key(key) {
                return;
            }
            let of_label = all.entry(key.clone()).or_insert_with(|| {
                if key == NAME_LABEL {
                    vec![Some(NAMESPACE.to_owned())]
                } else {
                    vec![None, Some(OTHER.to_owned())]
                }
            });
            for value in values {
                let value = Some(value.clone());
                if of_label.len() < MAX_VALUES && !of_label.contains(&value) {
                    of_label.push(value);
                }
            }
        };
        for selector in selectors {
            for (key, value) in selector.match_labels.iter().flatten() {
                add(key, &mut std::iter::once(value));
            }
            for requirement in selector.match_expressions.iter().flatten() {
                add(&requirement.key, &mut requirement.values.iter().flatten());
            }
        }
        Self(all)
    }

    /// Returns the default labels: those of an object that does not set any label.
    fn none(&self) -> Labels {
        let labels = self.0.iter();
        let labels = labels.map(|(key, values)| (key.clone(), values.first().cloned().flatten()));
        labels.collect()
    }

    /// Returns labels that satisfy `selectors`, unless the selectors contradict each other.
    fn satisfying<'s>(&self, selectors: impl Iterator<Item = &'s LabelSelector>) -> Labels {
        let mut labels = self.none();
        let mut excluded: Vec<(&String, &String)> = Vec::new();
        let selectors: Vec<_> = selectors.collect();
        let requirements = || {
            selectors
                .iter()
                .flat_map(|it| it.match_expressions.iter().flatten())
        };
        for requirement in requirements().filter(|it| it.operator == "NotIn") {
            let values = requirement.values.iter().flatten();
            excluded.extend(values.map(|value| (&requirement.key, value)));
        }
        for requirement in requirements() {
            let key = &requirement.key;
            let is_allowed = |value: &&String| !excluded.contains(&(key, *value));
            let value = match &*requirement.operator {
                "In" => requirement
                    .values
                    .iter()
                    .flatten()
                    .find(is_allowed)
                    .cloned(),
                "Exists" if labels.get(key).is_some_and(Option::is_none) => Some(OTHER.to_owned()),
                _ => continue,
            };
            labels.insert(key.clone(), value);
        }
        for (key, value) in selectors
            .iter()
            .flat_map(|it| it.match_labels.iter().flatten())
        {
            labels.insert(key.clone(), Some(value.clone()));
        }
        // A namespace always has this label, so an excluded name is replaced with a different one.
        let name = labels.get(NAME_LABEL).cloned().flatten();
        if let Some(name) = name
            && excluded.contains(&(&NAME_LABEL.to_owned(), &name))
        {
            labels.insert(NAME_LABEL.to_owned(), Some(OTHER.to_owned()));
        }
        labels
    }

    /// Returns labels that differ from `labels` in one value.
    fn changes(&self, labels: &Labels) -> Vec<Labels> {
        let values = self.0.iter();
        let values = values.flat_map(|(key, values)| values.iter().map(move |it| (key, it)));
        let changes = values.filter(|(key, value)| labels.get(*key) != Some(value));
        let changes = changes.map(|(key, value)| {
            let mut labels = labels.clone();
            labels.insert(key.clone(), value.clone());
            labels
        });
        changes.collect()
    }
}
