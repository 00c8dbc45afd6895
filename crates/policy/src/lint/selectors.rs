//! Finds label selectors that select nothing or have no effect.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use kubernetes::schema::rest_mapper::RestMapper;

use super::Lint;
use super::required_scope::joined;
use crate::matching;
use crate::request_policy::RequestPolicy;
use crate::rule::Rule;

#[derive(Debug, Default)]
struct LabelConstraints<'a> {
    /// The allowed values. `None` if all values are allowed.
    allowed: Option<BTreeSet<&'a str>>,
    disallowed: BTreeSet<&'a str>,
    is_there: bool,
    is_absent: bool,
}

impl<'a> LabelConstraints<'a> {
    fn allow(&mut self, values: impl Iterator<Item = &'a str>) {
        let values: BTreeSet<&str> = values.collect();
        self.is_there = true;
        // A requirement without values is ignored here, because the API server rejects it.
        if values.is_empty() {
            return;
        }
        self.allowed = Some(match self.allowed.take() {
            Some(known) => known.intersection(&values).copied().collect(),
            None => values,
        });
    }

    fn is_satisfiable(&self) -> bool {
        let has_value = self
            .allowed
            .as_ref()
            .is_none_or(|allowed| !allowed.is_subset(&self.disallowed));
        has_value && !(self.is_there && self.is_absent)
    }
}

/// Returns a lint for each selector of `resources` that has contradictory requirements. `field_ref` is the path of
/// `resources`.
///
/// Source: `k8s.io/apimachinery` `pkg/labels/selector.go`, `Requirement.Matches`.
pub(super) fn find(resources: &MatchResources, field_ref: &str) -> Vec<Lint> {
    let selectors = [
        (
            "namespaceSelector",
            "namespace",
            &resources.namespace_selector,
        ),
        ("objectSelector", "object", &resources.object_selector),
    ];
    let lints = selectors.into_iter().filter_map(|(field, noun, selector)| {
        let label = contradiction([selector.as_ref()?])?;
        Some(Lint {
            rule: Rule::ContradictorySelector,
            field_ref: format!("{field_ref}.{field}"),
            location: None,
            message: format!(
                "no {noun} is selected: the requirements on the label `{label}` contradict each other"
            ),
            fix: Some("remove one of the requirements: an object must satisfy all of them".into()),
            is_harmless: false,
        })
    });
    lints.chain(name_label(resources, field_ref)).collect()
}

/// Returns a lint if the namespaceSelector reads the label `name`.
///
/// Source: `k8s.io/api` `core/v1/well_known_labels.go` (`LabelMetadataName`, the only label that the API server adds).
fn name_label(resources: &MatchResources, field_ref: &str) -> Option<Lint> {
    let selector = resources.namespace_selector.as_ref()?;
    let labels = selector.match_labels.iter().flatten().map(|(key, _)| key);
    let requirements = selector.match_expressions.iter().flatten();
    let mut keys = labels.chain(requirements.map(|requirement| &requirement.key));
    keys.any(|key| key == "name").then(|| Lint {
        rule: Rule::IneffectiveSelector,
        field_ref: format!("{field_ref}.namespaceSelector"),
        location: None,
        message: "a namespace has the label `name` only if someone sets it".to_owned(),
        fix: Some(
            "to select namespaces by name, write `kubernetes.io/metadata.name`, which the API server sets".into(),
        ),
        is_harmless: true,
    })
}

/// Returns a lint for the namespaceSelector of `resources` if `policy` only matches cluster-scoped resources. The
/// selector has no effect on their requests. `field_ref` is the path of `resources`.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/predicates/namespace/matcher.go`, `MatchNamespaceSelector`.
pub(super) fn ineffective(
    policy: &RequestPolicy,
    mapper: &RestMapper,
    resources: &MatchResources,
    field_ref: &str,
) -> Option<Lint> {
    let selector = resources.namespace_selector.as_ref()?;
    let has_labels = selector.match_labels.iter().flatten().next().is_some();
    if !has_labels && selector.match_expressions.iter().flatten().next().is_none() {
        return None;
    }
    let targets = matching::targets(policy, mapper);
    // An unserved resource may be namespaced, so all named resources must be served.
    let constraints = policy.match_constraints.as_ref()?;
    let rules = constraints.resource_rules.iter().flatten();
    let mut named = rules.flat_map(|rule| rule.resources.iter().flatten());
    let is_target = |name: &String| {
        let mut targets = targets.iter();
        targets.any(|target| target.resource.gvr.resource == **name)
    };
    if !named.all(is_target) {
        return None;
    }
    // The selector also has an effect on Namespaces, because it is compared with their own labels.
    let has_none = |target: &matching::Target<'_>| {
        !target.resource.namespaced
            && !target.by_wildcard
            && target.resource.gvr.resource != "namespaces"
    };
    let without: BTreeSet<&str> = (targets.iter().filter(|target| has_none(target)))
        .map(|target| target.resource.gvr.resource.as_str())
        .collect();
    let is_for_all = targets.iter().all(has_none);
    let is_restricted = !policy.match_conditions.is_empty()
        || resources
            .object_selector
            .as_ref()
            .is_some_and(|it| *it != LabelSelector::default());
    let without: Vec<&str> = without.into_iter().collect();
    let (message, fix) = match &*without {
        [] => return None,
        _ if is_for_all => (
            "this selector has no effect: the rules only match cluster-scoped resources".to_owned(),
            "use an objectSelector or a match condition",
        ),
        // An objectSelector or a match condition may already restrict these requests.
        _ if is_restricted => return None,
        some => (
            format!(
                "this selector has no effect on requests for {}, which are cluster-scoped: the policy applies to all of them",
                joined(some)
            ),
            "to exclude some of them, use an objectSelector or a match condition",
        ),
    };
    Some(Lint {
        rule: Rule::IneffectiveSelector,
        field_ref: format!("{field_ref}.namespaceSelector"),
        location: None,
        message,
        fix: Some(fix.into()),
        is_harmless: !is_for_all,
    })
}

/// Returns a lint if no namespace matches the namespaceSelectors of both a binding and its policy.
///
/// objectSelectors are not compared. In an UPDATE, the object may match one selector and the old object the other one.
pub(super) fn disjoint_namespaces(
    policy: &RequestPolicy,
    mapper: &RestMapper,
    of_binding: &MatchResources,
) -> Option<Lint> {
    let constraints = policy.match_constraints.as_ref()?;
    let ours = of_binding.namespace_selector.as_ref()?;
    let both = [constraints.namespace_selector.as_ref()?, ours];
    if both
        .iter()
        .any(|selector| contradiction([*selector]).is_some())
    {
        return None;
    }
    let label = contradiction(both)?;
    // The selectors contradict each other only for namespaced objects and Namespaces: other objects match every
    // namespaceSelector.
    let targets = matching::targets(policy, mapper);
    let has_labels = |target: &matching::Target<'_>| {
        target.resource.namespaced || target.resource.gvr.resource == "namespaces"
    };
    (!targets.is_empty() && targets.iter().all(has_labels)).then(|| Lint {
        rule: Rule::ContradictorySelector,
        field_ref: "spec.matchResources.namespaceSelector".to_owned(),
        location: None,
        message: format!(
            "no namespace matches both this selector and the policy's namespaceSelector: they contradict each other on \
             the label `{label}`"
        ),
        fix: Some("remove one of the two selectors: a namespace must match both".into()),
        is_harmless: false,
    })
}

/// Returns the first label, in alphabetical order, with contradictory requirements in `selectors`.
fn contradiction<'a>(
    selectors: impl IntoIterator<Item = &'a LabelSelector> + Clone,
) -> Option<&'a str> {
    let mut labels: BTreeMap<&str, LabelConstraints<'_>> = BTreeMap::new();
    let of_all = selectors.clone().into_iter();
    for (key, value) in of_all.flat_map(|selector| selector.match_labels.iter().flatten()) {
        labels
            .entry(key)
            .or_default()
            .allow(std::iter::once(value.as_str()));
    }
    let of_all = selectors.into_iter();
    for requirement in of_all.flat_map(|selector| selector.match_expressions.iter().flatten()) {
        let constraints = labels.entry(&requirement.key).or_default();
        let values = requirement.values.iter().flatten().map(String::as_str);
        match requirement.operator.as_str() {
            "In" => constraints.allow(values),
            // `NotIn` does not require that the label is present.
            "NotIn" => constraints.disallowed.extend(values),
            "Exists" => constraints.is_there = true,
            "DoesNotExist" => constraints.is_absent = true,
            _ => {}
        }
    }
    let mut labels = labels.into_iter();
    labels
        .find(|(_, constraints)| !constraints.is_satisfiable())
        .map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::serde_json::json;

    use super::*;

    #[test]
    fn contradictory_selector_requirements_are_found() {
        let label_of = |selector| {
            let selector: LabelSelector = k8s_openapi::serde_json::from_value(selector).unwrap();
            contradiction([&selector]).map(str::to_owned)
        };
        let requirement = |operator: &str, values: &[&str]| json!({"key": "a", "operator": operator, "values": values});
        for (requirements, is_found) in [
            (vec![("In", &["b"][..]), ("NotIn", &["b"])], true),
            (vec![("In", &["b", "c"]), ("NotIn", &["b"])], false),
            (vec![("In", &["b"]), ("In", &["c"])], true),
            (vec![("In", &["b", "c"]), ("In", &["c", "d"])], false),
            (vec![("Exists", &[]), ("DoesNotExist", &[])], true),
            (vec![("In", &["b"]), ("DoesNotExist", &[])], true),
            (vec![("NotIn", &["b"]), ("DoesNotExist", &[])], false),
            (vec![("NotIn", &["b"]), ("NotIn", &["c"])], false),
        ] {
            let all: Vec<_> = requirements
                .iter()
                .map(|(operator, values)| requirement(operator, values))
                .collect();
            let selector = json!({"matchExpressions": all});
            assert_eq!(label_of(selector).is_some(), is_found, "{requirements:?}");
        }
        let by_labels = json!({"matchLabels": {"a": "b", "c": "d"}, "matchExpressions": [requirement("NotIn", &["b"])]});
        assert_eq!(label_of(by_labels).as_deref(), Some("a"));
        assert_eq!(label_of(json!({})), None);
    }
}
