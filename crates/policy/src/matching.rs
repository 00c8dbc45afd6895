//! Which served kinds the rules of a policy match.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/matching/matching.go`,
//! `pkg/admission/plugin/webhook/predicates/rules/rules.go` (`Matcher`),
//! `plugin/policy/validating/typechecking.go` (`typesToCheck`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use k8s_openapi::api::admissionregistration::v1::{
    NamedRuleWithOperations, ValidatingAdmissionPolicy,
};

use super::exempt;
use super::nearest::nearest;
use kubernetes::library::limits::MAX_TYPES_TO_CHECK;
use kubernetes::schema::rest_mapper::{ApiResource, RestMapper};
use kubernetes::schema::{Gvk, Gvr};

/// A resource that a rule matches and the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MatchedResource {
    /// The resource or subresource.
    pub gvr: Gvr,
    /// The kind of the object in its requests.
    pub gvk: Gvk,
    /// True if it was matched by a wildcard only.
    pub by_wildcard: bool,
}

/// The operations that a rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Operations(u8);

impl Operations {
    /// The names of the operations, in the order in which they are looked at.
    pub(crate) const NAMES: [&'static str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

    fn bit(name: &str) -> u8 {
        match Self::NAMES.iter().position(|known| *known == name) {
            Some(idx) => 1 << idx,
            None if name == "*" => 0b1111,
            None => 0,
        }
    }

    pub(super) fn of(names: &[String]) -> Self {
        if names.is_empty() {
            return Self(Self::bit("*"));
        }
        Self(names.iter().fold(0, |bits, name| bits | Self::bit(name)))
    }

    /// The operations of which requests for `resource` exist at all.
    ///
    /// Source: `k8s.io/kubernetes` `pkg/registry/core/rest/storage_core.go` (the storages of subresources
    /// and their verbs).
    pub(super) fn possible(resource: &str) -> Self {
        let names: &[&str] = match resource.split_once('/') {
            None => &["CREATE", "UPDATE", "DELETE"],
            Some((_, "binding" | "eviction" | "token")) => &["CREATE"],
            Some((_, "exec" | "attach" | "portforward" | "proxy")) => &["CONNECT"],
            Some(_) => &["UPDATE"],
        };
        Self(names.iter().fold(0, |bits, name| bits | Self::bit(name)))
    }

    /// The names of the operations.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter(move |name| self.0 & Self::bit(name) != 0)
    }
}

/// A resource that rules match, with all that they say of it.
#[derive(Clone, Debug)]
pub(super) struct Target<'a> {
    /// The resource.
    pub(super) resource: &'a ApiResource,
    /// True if it is matched by a wildcard only.
    pub(super) by_wildcard: bool,
    /// The operations of the rules, those left out that no request has.
    pub(super) operations: Operations,
}

/// A resource that a rule names and that nothing serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedResource {
    /// The field of the policy, `spec.matchConstraints.resourceRules[0]`.
    pub field_ref: String,
    /// The index of the rule.
    pub index: usize,
    /// The words of the rule, `apps/v1 deployment`.
    pub rule: String,
    /// The name that it says, `deployment`.
    pub name: String,
    /// The name that was probably meant, `deployments`.
    pub suggestion: Option<String>,
    /// True if that is of a group that the rule names, so that the name was most likely misspelt.
    pub is_misspelt: bool,
}

/// A resource that a rule matches and that no policy is asked about, [`exempt`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExemptResource {
    /// The resource, `authentication.k8s.io tokenreviews`.
    pub resource: String,
    /// The field of the policy, `spec.matchConstraints.resourceRules[0]`.
    pub field_ref: String,
    /// The name by which the rule matches it, `tokenreviews`.
    pub name: String,
    /// True if it was matched by wildcards only.
    pub by_wildcard: bool,
}

/// The resources that the rules of a policy match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// The served resources that the policy is asked about, sorted, without repeats.
    pub resources: Vec<MatchedResource>,
    /// The served resources that rules match in vain, since no policy is asked about them; sorted by name.
    pub exempt: Vec<ExemptResource>,
    /// The resources that rules name and nothing serves.
    pub unserved: Vec<UnservedResource>,
    /// Group versions that a rule touches and whose discovery failed, with the reason.
    pub incomplete: Vec<(String, String)>,
}

/// A list of a rule; an absent one is empty.
fn list(values: Option<&Vec<String>>) -> &[String] {
    values.map(Vec::as_slice).unwrap_or_default()
}

/// The API groups that the rules of `policy` name, `*` among them.
pub fn groups(policy: &ValidatingAdmissionPolicy) -> impl Iterator<Item = &str> {
    let groups = rules(policy).iter();
    groups
        .flat_map(|rule| list(rule.api_groups.as_ref()))
        .map(String::as_str)
}

/// The rules of `policy`.
#[must_use]
pub fn rules(policy: &ValidatingAdmissionPolicy) -> &[NamedRuleWithOperations] {
    policy
        .spec
        .as_ref()
        .and_then(|spec| spec.match_constraints.as_ref())
        .and_then(|constraints| constraints.resource_rules.as_deref())
        .unwrap_or_default()
}

fn excluded(policy: &ValidatingAdmissionPolicy) -> &[NamedRuleWithOperations] {
    policy
        .spec
        .as_ref()
        .and_then(|spec| spec.match_constraints.as_ref())
        .and_then(|constraints| constraints.exclude_resource_rules.as_deref())
        .unwrap_or_default()
}

/// A list of a rule: a policy may have thousands of rules, and a rule thousands of names.
enum Values<'a> {
    Few(&'a [String]),
    Many(HashSet<&'a str>),
}

/// The most values that are looked through one by one.
const MAX_FEW: usize = 16;

impl<'a> Values<'a> {
    fn new(values: Option<&'a Vec<String>>) -> Self {
        let values = list(values);
        if values.len() <= MAX_FEW {
            Self::Few(values)
        } else {
            Self::Many(values.iter().map(String::as_str).collect())
        }
    }

    fn contains(&self, value: &str) -> bool {
        match self {
            Self::Few(values) => values.iter().any(|known| known == value),
            Self::Many(values) => values.contains(value),
        }
    }

    /// Reports whether it has `value`, or `*`.
    fn matches(&self, value: &str) -> bool {
        self.contains(value) || self.contains("*")
    }
}

/// A rule, ready to be held against many resources.
struct Rule<'a> {
    spec: &'a NamedRuleWithOperations,
    groups: Values<'a>,
    versions: Values<'a>,
    /// Its resources.
    names: Values<'a>,
    operations: Operations,
}

impl<'a> Rule<'a> {
    fn new(rule: &'a NamedRuleWithOperations) -> Self {
        Self {
            spec: rule,
            groups: Values::new(rule.api_groups.as_ref()),
            versions: Values::new(rule.api_versions.as_ref()),
            names: Values::new(rule.resources.as_ref()),
            operations: Operations::of(list(rule.operations.as_ref())),
        }
    }

    /// The resources of the groups of the rule, with their indices: all that it could match, in their order.
    fn candidates<'m>(&self, mapper: &'m RestMapper) -> Vec<(usize, &'m ApiResource)> {
        let resources = &mapper.resources;
        let of_group = match &self.groups {
            Values::Few(groups) if !groups.iter().any(|group| group == "*") => groups,
            // Of thousands of groups a rule is as quickly held against all resources.
            Values::Few(_) | Values::Many(_) => return resources.iter().enumerate().collect(),
        };
        let of_group: BTreeSet<&str> = of_group.iter().map(String::as_str).collect();
        let mut candidates = Vec::new();
        for group in of_group {
            let start = resources.partition_point(|resource| *resource.gvr.group < *group);
            let from_start = resources.iter().enumerate().skip(start);
            candidates.extend(from_start.take_while(|(_, resource)| resource.gvr.group == group));
        }
        candidates
    }

    /// Hands on the names of the rule by which it matches requests for `resource`.
    fn for_each_name(&self, resource: &ApiResource, mut each: impl FnMut(&str)) {
        let served = resource.gvr.resource.as_str();
        let (main, sub) = served.split_once('/').unwrap_or((served, ""));
        let is_match = |name: &str| {
            let (wanted, wanted_sub) = name.split_once('/').unwrap_or((name, ""));
            (wanted == "*" || wanted == main) && (wanted_sub == "*" || wanted_sub == sub)
        };
        match &self.names {
            Values::Few(names) if !names.iter().any(|name| is_match(name)) => return,
            Values::Few(_) | Values::Many(_) => {}
        }
        let in_scope = match self.spec.scope.as_deref() {
            Some("Cluster") => !resource.namespaced,
            Some("Namespaced") => resource.namespaced,
            _ => true,
        };
        if !in_scope
            || !self.groups.matches(&resource.gvr.group)
            || !self.versions.matches(&resource.gvr.version)
        {
            return;
        }
        match &self.names {
            Values::Few(names) => {
                let matching = names.iter().filter(|name| is_match(name));
                matching.for_each(|name| each(name));
            }
            Values::Many(names) => {
                // All that could match.
                let mut could = vec![format!("{main}/*"), "*/*".to_owned()];
                could.extend([format!("{main}/{sub}"), format!("*/{sub}")]);
                if sub.is_empty() {
                    could.extend([main.to_owned(), "*".to_owned()]);
                }
                let could = could.iter().filter_map(|name| names.get(name.as_str()));
                could.for_each(|name| each(name));
            }
        }
    }

    /// Reports whether it matches requests for `resource` by wildcards alone, which do not tell it from others;
    /// `None` where it does not match. Hands on the names as [`Self::for_each_name`] does.
    fn by_wildcard(&self, resource: &ApiResource, mut each: impl FnMut(&str)) -> Option<bool> {
        let of_any_group = !self.groups.contains(&resource.gvr.group);
        let mut by_wildcard = None;
        self.for_each_name(resource, |name| {
            let by_this = of_any_group || name.contains('*');
            by_wildcard = Some(by_wildcard.unwrap_or(true) && by_this);
            each(name);
        });
        by_wildcard
    }
}

/// The requests that the rules of a policy take out again.
struct Exclusions<'a> {
    rules: Vec<Rule<'a>>,
    /// The operations taken out of requests for a resource, by its index.
    of: HashMap<usize, Operations>,
}

impl<'a> Exclusions<'a> {
    fn new(policy: &'a ValidatingAdmissionPolicy) -> Self {
        // A rule about certain objects takes out none.
        let rules = excluded(policy).iter();
        let rules = rules.filter(|rule| list(rule.resource_names.as_ref()).is_empty());
        Self {
            rules: rules.map(Rule::new).collect(),
            of: HashMap::new(),
        }
    }

    /// The operations that no rule takes out of requests for `resource`, which has the index `n`.
    fn without(&mut self, operations: Operations, n: usize, resource: &ApiResource) -> Operations {
        if self.rules.is_empty() {
            return operations;
        }
        let rules = &self.rules;
        let taken = self.of.entry(n).or_insert_with(|| {
            let matching = rules
                .iter()
                .filter(|rule| rule.by_wildcard(resource, |_| {}).is_some());
            Operations(matching.fold(0, |bits, rule| bits | rule.operations.0))
        });
        Operations(operations.0 & !taken.0)
    }
}

/// The resources that the rules of `policy` match and that it is asked about, sorted.
pub(super) fn targets<'a>(
    policy: &ValidatingAdmissionPolicy,
    mapper: &'a RestMapper,
) -> Vec<Target<'a>> {
    let mut exclusions = Exclusions::new(policy);
    let mut targets: BTreeMap<&Gvr, Target<'a>> = BTreeMap::new();
    for rule in rules(policy).iter().map(Rule::new) {
        for (n, resource) in rule.candidates(mapper) {
            let Some(by_wildcard) = rule.by_wildcard(resource, |_| {}) else {
                continue;
            };
            if exempt::is_exempt(&resource.gvr) {
                continue;
            }
            let operations = exclusions.without(rule.operations, n, resource);
            if operations.0 == 0 {
                continue;
            }
            let possible = operations.0 & Operations::possible(&resource.gvr.resource).0;
            // A wildcard does not mean what it cannot match: `pods/exec` where only CREATE is asked for.
            if by_wildcard && possible == 0 {
                continue;
            }
            let operations = if possible == 0 {
                operations
            } else {
                Operations(possible)
            };
            let target = targets.entry(&resource.gvr).or_insert(Target {
                resource,
                by_wildcard,
                operations,
            });
            target.by_wildcard &= by_wildcard;
            target.operations.0 |= operations.0;
        }
    }
    targets.into_values().collect()
}

/// Resolves the rules of `policy` against what is served.
#[must_use]
pub fn resolve(policy: &ValidatingAdmissionPolicy, mapper: &RestMapper) -> Matches {
    let mut matches = Matches::default();
    let mut exclusions = Exclusions::new(policy);
    let mut by_wildcard: BTreeMap<(&Gvr, &Gvk), bool> = BTreeMap::new();
    let mut exempt_resources: BTreeMap<String, ExemptResource> = BTreeMap::new();
    let incomplete = Incomplete::new(&mapper.incomplete);
    let mut touched = BTreeSet::new();
    for (n, rule) in rules(policy).iter().map(Rule::new).enumerate() {
        let mut found: HashSet<String> = HashSet::new();
        for (idx, resource) in rule.candidates(mapper) {
            let mut matching_name = String::new();
            let is_exempt = exempt::is_exempt(&resource.gvr);
            let is_by_wildcard = rule.by_wildcard(resource, |name| {
                if is_exempt && (matching_name.is_empty() || matching_name.contains('*')) {
                    name.clone_into(&mut matching_name);
                }
                if !found.contains(name) {
                    found.insert(name.to_owned());
                }
            });
            let Some(is_by_wildcard) = is_by_wildcard else {
                continue;
            };
            if exclusions.without(rule.operations, idx, resource).0 == 0 {
                continue;
            }
            if is_exempt {
                let found = ExemptResource {
                    resource: exempt::name(&resource.gvr),
                    field_ref: field_ref(n),
                    name: matching_name,
                    by_wildcard: is_by_wildcard,
                };
                let known = exempt_resources.entry(found.resource.clone());
                let known = known.or_insert_with(|| found.clone());
                if known.by_wildcard && !found.by_wildcard {
                    *known = found;
                }
                continue;
            }
            let known = by_wildcard.entry((&resource.gvr, &resource.gvk));
            *known.or_insert(true) &= is_by_wildcard;
        }
        for name in list(rule.spec.resources.as_ref()) {
            // Of a name that is given twice it is said once.
            if found.insert(name.clone()) {
                let is_looked_at = matches.unserved.len() < MAX_LOOKED_AT;
                let unserved = unserved(n, rule.spec, name, mapper, is_looked_at);
                matches.unserved.push(unserved);
            }
        }
        incomplete.touched(&rule, &mut touched);
    }
    matches.incomplete = touched
        .into_iter()
        .filter_map(|n| mapper.incomplete.get(n).cloned())
        .collect();
    matches.incomplete.sort();
    matches.incomplete.dedup();
    let resources = by_wildcard.into_iter();
    matches.resources = resources
        .map(|((gvr, gvk), by_wildcard)| MatchedResource {
            gvr: gvr.clone(),
            gvk: gvk.clone(),
            by_wildcard,
        })
        .collect();
    matches.resources.sort();
    matches.exempt = exempt_resources.into_values().collect();
    matches
}

/// The matches of a webhook with the rules of `policy`, given those of a policy with them.
///
/// An API server asks webhooks about reviews too, which it does not ask policies about, and about no configuration of
/// webhooks. The reviews are not among the resources, for a policy has no kinds of them; that there are some is the
/// second value.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/predicates/rules/rules.go`,
/// `IsExemptAdmissionConfigurationResource`.
#[must_use]
pub fn of_webhook(policy: &ValidatingAdmissionPolicy, mut matches: Matches) -> (Matches, bool) {
    let n_exempt = matches.exempt.len();
    let is_configuration =
        |resource: &ExemptResource| resource.resource.starts_with(exempt::CONFIGURATION_GROUP);
    matches.exempt.retain(is_configuration);
    let has_reviews = matches.exempt.len() < n_exempt;
    let (exempt, resources) = matches
        .resources
        .into_iter()
        .partition(|of| exempt::is_webhooks(&of.gvr));
    matches.resources = resources;
    let exempt: Vec<MatchedResource> = exempt;
    for of in exempt {
        let name = |rule: &NamedRuleWithOperations| {
            let names = list(rule.resources.as_ref());
            let names = || {
                names
                    .iter()
                    .filter(|name| name.split('/').next() == Some(&*of.gvr.resource))
            };
            names()
                .next()
                .or_else(|| {
                    list(rule.resources.as_ref())
                        .iter()
                        .find(|name| name.contains('*'))
                })
                .cloned()
        };
        let mut rules = rules(policy).iter().enumerate();
        if let Some((n, name)) = rules.find_map(|(n, rule)| Some((n, name(rule)?))) {
            matches.exempt.push(ExemptResource {
                resource: exempt::name(&of.gvr),
                field_ref: field_ref(n),
                name,
                by_wildcard: of.by_wildcard,
            });
        }
    }
    (matches, has_reviews)
}

/// The group versions of which not everything is known, by group.
struct Incomplete<'a> {
    /// The version, empty where it is all of them, and the index.
    by_group: HashMap<&'a str, Vec<(&'a str, usize)>>,
}

impl<'a> Incomplete<'a> {
    fn new(incomplete: &'a [(String, String)]) -> Self {
        let mut by_group: HashMap<_, Vec<_>> = HashMap::new();
        for (n, (group_version, _)) in incomplete.iter().enumerate() {
            let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
            by_group.entry(group).or_default().push((version, n));
        }
        Self { by_group }
    }

    /// Adds the indices of those that `rule` names something in.
    fn touched(&self, rule: &Rule<'_>, touched: &mut BTreeSet<usize>) {
        let mut add = |versions: &[(&str, usize)]| {
            for (version, n) in versions {
                if !touched.contains(n) && (version.is_empty() || rule.versions.matches(version)) {
                    touched.insert(*n);
                }
            }
        };
        if self.by_group.is_empty() {
            return;
        }
        match &rule.groups {
            groups if groups.contains("*") => self.by_group.values().for_each(|of| add(of)),
            Values::Few(groups) => {
                let known = groups
                    .iter()
                    .filter_map(|group| self.by_group.get(&**group));
                known.for_each(|of| add(of));
            }
            Values::Many(groups) => {
                let known = groups.iter().filter_map(|group| self.by_group.get(group));
                known.for_each(|of| add(of));
            }
        }
    }
}

/// For how many names that nothing serves one is looked for that is written almost alike.
const MAX_LOOKED_AT: usize = 20;

/// The most values of a list that are told of a rule.
const MAX_TOLD: usize = 10;

/// The most bytes of one of them; no name of a group is longer.
const MAX_TOLD_BYTES: usize = 253;

fn shortened(value: &str) -> &str {
    let ends = value.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| *end <= MAX_TOLD_BYTES).last();
    value.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// The values of a list of a rule, joined.
fn joined(values: &[String]) -> String {
    let told = values.iter().take(MAX_TOLD);
    let told: Vec<_> = told.map(|value| shortened(value)).collect();
    match values.len().checked_sub(MAX_TOLD) {
        Some(n_left @ 1..) => format!("{},… ({n_left} more)", told.join(",")),
        _ => told.join(","),
    }
}

/// The field of the rule `n`.
fn field_ref(n: usize) -> String {
    format!("spec.matchConstraints.resourceRules[{n}]")
}

fn unserved(
    n: usize,
    rule: &NamedRuleWithOperations,
    name: &str,
    mapper: &RestMapper,
    is_looked_at: bool,
) -> UnservedResource {
    let groups = list(rule.api_groups.as_ref());
    let versions = joined(list(rule.api_versions.as_ref()));
    let group_version = match joined(groups) {
        core if core.is_empty() => versions,
        groups => format!("{groups}/{versions}"),
    };
    let respelt = suggestion(groups, name, mapper);
    let is_misspelt = respelt.as_ref().is_some_and(|(group, _)| group.is_none());
    let suggestion = match respelt {
        Some((Some(group), name)) => Some(format!("{group} {name}")),
        Some((None, name)) => Some(name),
        // In a group that is not known as a whole there may be such a resource.
        None if is_looked_at => near(groups, name, mapper),
        None => None,
    };
    let words = format!("{group_version} {name}");
    // Served, and left out by the scope alone.
    let suggestion = match (suggestion, rule.scope.as_deref()) {
        (Some(same), Some("Cluster")) if same == words => Some("scope: Namespaced".to_owned()),
        (Some(same), _) if same == words => Some("scope: Cluster".to_owned()),
        (suggestion, _) => suggestion,
    };
    UnservedResource {
        field_ref: field_ref(n),
        index: n,
        rule: words,
        name: name.to_owned(),
        is_misspelt,
        suggestion,
    }
}

/// The served resource of one of `groups` whose name is written almost as `name` is; a subresource of the same
/// resource where it names one.
fn near(groups: &[String], name: &str, mapper: &RestMapper) -> Option<String> {
    let main = |name: &str| name.split_once('/').map(|(main, _)| main.to_owned());
    let names = mapper
        .resources
        .iter()
        .filter(|r| groups.contains(&r.gvr.group))
        .map(|r| r.gvr.resource.as_str())
        .filter(|known| main(known) == main(name));
    nearest(name, names).map(str::to_owned)
}

/// The served resource that a rule probably means: another spelling first, one of another group after, with that
/// group and its version.
fn suggestion(
    groups: &[String],
    name: &str,
    mapper: &RestMapper,
) -> Option<(Option<String>, String)> {
    let is_respelt = |resource: &ApiResource| {
        resource.gvr.resource.eq_ignore_ascii_case(name)
            || resource.gvk.kind.eq_ignore_ascii_case(name)
            || resource.singular.eq_ignore_ascii_case(name)
    };
    let candidates = || {
        mapper
            .resources
            .iter()
            .filter(|r| !r.gvr.resource.contains('/'))
    };
    candidates()
        .find(|r| is_respelt(r) && r.gvr.resource != name && groups.contains(&r.gvr.group))
        .map(|r| (None, r.gvr.resource.clone()))
        .or_else(|| {
            candidates().find(|r| is_respelt(r)).map(|r| {
                let gvk = Gvk::new(r.gvr.group.clone(), r.gvr.version.clone(), "");
                (Some(gvk.api_version()), r.gvr.resource.clone())
            })
        })
}

/// The most kinds that are taken from wildcards. Where there are more, nothing is said of those: one that
/// was not looked at may be the one that is meant.
const MAX_WILDCARD_KINDS: usize = 400;

/// The kinds of all resources that rules match by name, sorted.
pub(super) fn named_kinds(targets: &[Target<'_>]) -> Vec<Gvk> {
    let named = targets.iter().filter(|target| !target.by_wildcard);
    let kinds: BTreeSet<_> = named.map(|target| target.resource.gvk.clone()).collect();
    kinds.into_iter().collect()
}

/// The kinds that rules match by wildcards only, and those among them that are too many.
///
/// The kinds of Kubernetes itself come first: of a cluster's own kinds there may be hundreds.
pub(super) fn wildcard_kinds(targets: &[Target<'_>]) -> (Vec<Gvk>, Vec<Gvk>) {
    let named = named_kinds(targets);
    let by_wildcard = targets.iter().map(|target| &target.resource.gvk);
    let kinds: BTreeSet<_> = by_wildcard
        .filter(|gvk| named.binary_search(gvk).is_err())
        .cloned()
        .collect();
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    let is_own = |gvk: &Gvk| gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io");
    kinds.sort_by_key(is_own);
    let rest = kinds.split_off(kinds.len().min(MAX_WILDCARD_KINDS));
    kinds.sort();
    (kinds, rest)
}

/// The kinds of all resources that rules match, by name or by wildcards, sorted; not more of the latter
/// than can be checked.
#[must_use]
pub fn kinds(policy: &ValidatingAdmissionPolicy, mapper: &RestMapper) -> Vec<Gvk> {
    let targets = targets(policy, mapper);
    let mut kinds = named_kinds(&targets);
    kinds.extend(wildcard_kinds(&targets).0);
    kinds.sort();
    kinds
}

/// How often resources are looked up for one policy: a rule can name a billion of groups, versions and
/// resources in combination.
const MAX_LOOKUPS: usize = 50_000;

/// The kinds that upstream's type checker looks at, sorted.
///
/// A rule with a wildcard in its groups or versions is passed over, and so are resources with a `*` or
/// a `/`. Once one rule has led to ten kinds, repeats counted, no further one is looked at.
#[must_use]
pub fn upstream_kinds(policy: &ValidatingAdmissionPolicy, mapper: &RestMapper) -> Vec<Gvk> {
    let mut kinds = BTreeSet::new();
    let mut n_lookups = 0;
    for rule in rules(policy) {
        let groups = sorted(list(rule.api_groups.as_ref()));
        let versions = sorted(list(rule.api_versions.as_ref()));
        if groups
            .iter()
            .chain(&versions)
            .any(|value| value.contains('*'))
        {
            continue;
        }
        let mut resources = sorted(list(rule.resources.as_ref()));
        resources.retain(|resource| !resource.contains(['*', '/']));
        let mut n_kinds = 0;
        for group in &groups {
            for version in &versions {
                for resource in &resources {
                    n_lookups += 1;
                    if n_lookups > MAX_LOOKUPS {
                        return kinds.into_iter().collect();
                    }
                    for gvk in mapper.kinds_for(group, version, resource) {
                        kinds.insert(gvk);
                        n_kinds += 1;
                        if n_kinds == MAX_TYPES_TO_CHECK {
                            return kinds.into_iter().collect();
                        }
                    }
                }
            }
        }
    }
    kinds.into_iter().collect()
}

fn sorted(values: &[String]) -> Vec<&str> {
    let mut values: Vec<_> = values.iter().map(String::as_str).collect();
    values.sort_unstable();
    values
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_is_held_against_the_resources_of_its_groups() {
        let groups = ["", "a", "ab", "b", "c.d"];
        let resource = |group: &&str| ApiResource {
            gvr: Gvr::new(*group, "v1", "things"),
            gvk: Gvk::new(*group, "v1", "Thing"),
            singular: String::new(),
            namespaced: true,
        };
        let mapper = RestMapper::new(groups.iter().map(resource).collect());
        let candidates = |groups: &[&str]| -> Vec<(usize, String)> {
            let rule: NamedRuleWithOperations =
                serde_json::from_value(json!({"apiGroups": groups})).unwrap();
            let candidates = Rule::new(&rule).candidates(&mapper).into_iter();
            candidates
                .map(|(n, resource)| (n, resource.gvr.group.clone()))
                .collect()
        };
        let table: [(&[&str], &[usize]); 6] = [
            (&[], &[]),
            (&["a"], &[1]),
            (&["c.d", "", "c.d", "none"], &[0, 4]),
            (&["aa"], &[]),
            (&["b", "*"], &[0, 1, 2, 3, 4]),
            (&["*"], &[0, 1, 2, 3, 4]),
        ];
        for (of_rule, expect) in table {
            let expect = expect.iter().map(|n| (*n, groups[*n].to_owned()));
            assert_eq!(
                candidates(of_rule),
                expect.collect::<Vec<_>>(),
                "{of_rule:?}"
            );
        }
    }
}
