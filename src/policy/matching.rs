//! Which served kinds the rules of a policy match.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/matching/matching.go`,
//! `pkg/admission/plugin/webhook/predicates/rules/rules.go` (`Matcher`),
//! `plugin/policy/validating/typechecking.go` (`typesToCheck`).

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    NamedRuleWithOperations, ValidatingAdmissionPolicy,
};

use crate::schema::rest_mapper::{ApiResource, RestMapper};
use crate::schema::{Gvk, Gvr};

/// A resource that a rule matches and the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MatchedResource {
    /// The resource or subresource.
    pub gvr: Gvr,
    /// The kind of the object in its requests.
    pub gvk: Gvk,
    /// Whether it was matched by a wildcard only.
    pub by_wildcard: bool,
}

/// The operations that a rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Operations(u8);

impl Operations {
    /// The names of the operations, in the order in which they are looked at.
    pub(super) const NAMES: [&'static str; 4] = ["UPDATE", "CREATE", "DELETE", "CONNECT"];

    fn bit(name: &str) -> u8 {
        match Self::NAMES.iter().position(|known| *known == name) {
            Some(idx) => 1 << idx,
            None if name == "*" => 0b1111,
            None => 0,
        }
    }

    fn of(names: &[String]) -> Self {
        if names.is_empty() {
            return Self(Self::bit("*"));
        }
        Self(names.iter().fold(0, |bits, name| bits | Self::bit(name)))
    }

    /// The operations of which requests for `resource` exist at all.
    ///
    /// Source: `k8s.io/kubernetes` `pkg/registry/core/rest/storage_core.go` (the storages of subresources
    /// and their verbs).
    fn possible(resource: &str) -> Self {
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
    /// Whether it is matched by a wildcard only.
    pub(super) by_wildcard: bool,
    /// The operations of the rules, those left out that no request has.
    pub(super) operations: Operations,
}

/// A resource that a rule names and that nothing serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedResource {
    /// The field of the policy, `spec.matchConstraints.resourceRules[0]`.
    pub field_ref: String,
    /// What the rule says, `apps/v1 deployment`.
    pub rule: String,
    /// What was probably meant, `deployments`.
    pub suggestion: Option<String>,
}

/// What the rules of a policy match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// The served resources, sorted, without repeats.
    pub resources: Vec<MatchedResource>,
    /// The resources that rules name and nothing serves.
    pub unserved: Vec<UnservedResource>,
    /// Group versions that a rule touches and whose discovery failed, with the reason.
    pub incomplete: Vec<(String, String)>,
}

/// A list of a rule; an absent one is empty.
fn list(values: Option<&Vec<String>>) -> &[String] {
    values.map(Vec::as_slice).unwrap_or_default()
}

fn rules(policy: &ValidatingAdmissionPolicy) -> &[NamedRuleWithOperations] {
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

/// The operations that no rule takes out again. A rule about certain objects takes out none.
fn without_excluded(
    operations: Operations,
    resource: &ApiResource,
    excluded: &[NamedRuleWithOperations],
) -> Operations {
    excluded
        .iter()
        .filter(|rule| list(rule.resource_names.as_ref()).is_empty())
        .filter(|rule| {
            let names = list(rule.resources.as_ref());
            names.iter().any(|name| matches_rule(rule, name, resource))
        })
        .fold(operations, |left, rule| {
            Operations(left.0 & !Operations::of(list(rule.operations.as_ref())).0)
        })
}

/// Whether `rule` tells `resource` from others: not by wildcards alone.
fn is_by_wildcard(rule: &NamedRuleWithOperations, name: &str, resource: &ApiResource) -> bool {
    name.contains('*') || !list(rule.api_groups.as_ref()).contains(&resource.gvr.group)
}

/// The resources that the rules of `policy` match, sorted.
pub(super) fn targets<'a>(
    policy: &ValidatingAdmissionPolicy,
    mapper: &'a RestMapper,
) -> Vec<Target<'a>> {
    let excluded = excluded(policy);
    let mut targets: Vec<Target<'a>> = Vec::new();
    for rule in rules(policy) {
        let wanted = Operations::of(list(rule.operations.as_ref()));
        for name in list(rule.resources.as_ref()) {
            for resource in &mapper.resources {
                if !matches_rule(rule, name, resource) {
                    continue;
                }
                let operations = without_excluded(wanted, resource, excluded);
                if operations.0 == 0 {
                    continue;
                }
                let possible = operations.0 & Operations::possible(&resource.gvr.resource).0;
                let by_wildcard = is_by_wildcard(rule, name, resource);
                // A wildcard does not mean what it cannot match: `pods/exec` where only CREATE is asked for.
                if by_wildcard && possible == 0 {
                    continue;
                }
                targets.push(Target {
                    resource,
                    by_wildcard,
                    operations: if possible == 0 {
                        operations
                    } else {
                        Operations(possible)
                    },
                });
            }
        }
    }
    targets.sort_by(|a, b| a.resource.gvr.cmp(&b.resource.gvr));
    targets.dedup_by(|later, kept| {
        let same = later.resource.gvr == kept.resource.gvr;
        if same {
            kept.by_wildcard &= later.by_wildcard;
            kept.operations.0 |= later.operations.0;
        }
        same
    });
    targets
}

/// Resolves the rules of `policy` against what is served.
#[must_use]
pub fn resolve(policy: &ValidatingAdmissionPolicy, mapper: &RestMapper) -> Matches {
    let mut matches = Matches::default();
    let mut named = BTreeSet::new();
    let mut by_wildcard = BTreeSet::new();
    for (n, rule) in rules(policy).iter().enumerate() {
        for name in list(rule.resources.as_ref()) {
            let mut n_found = 0;
            for resource in &mapper.resources {
                if !matches_rule(rule, name, resource) {
                    continue;
                }
                n_found += 1;
                let operations = Operations::of(list(rule.operations.as_ref()));
                if without_excluded(operations, resource, excluded(policy)).0 == 0 {
                    continue;
                }
                let set = if is_by_wildcard(rule, name, resource) {
                    &mut by_wildcard
                } else {
                    &mut named
                };
                set.insert((resource.gvr.clone(), resource.gvk.clone()));
            }
            if n_found == 0 {
                matches.unserved.push(unserved(n, rule, name, mapper));
            }
        }
        matches.incomplete.extend(
            mapper
                .incomplete
                .iter()
                .filter(|(gv, _)| touches(rule, gv))
                .cloned(),
        );
    }
    matches.incomplete.sort();
    matches.incomplete.dedup();
    let wildcard_only = by_wildcard.difference(&named).cloned();
    matches.resources = wildcard_only
        .map(|(gvr, gvk)| MatchedResource {
            gvr,
            gvk,
            by_wildcard: true,
        })
        .chain(named.iter().cloned().map(|(gvr, gvk)| MatchedResource {
            gvr,
            gvk,
            by_wildcard: false,
        }))
        .collect();
    matches.resources.sort();
    matches
}

/// Whether `rule`, by its resource `name`, matches requests for `resource`.
fn matches_rule(rule: &NamedRuleWithOperations, name: &str, resource: &ApiResource) -> bool {
    let is_in = |values: &[String], value: &str| values.iter().any(|v| v == "*" || v == value);
    let (wanted, wanted_sub) = name.split_once('/').unwrap_or((name, ""));
    let (served, served_sub) = resource
        .gvr
        .resource
        .split_once('/')
        .unwrap_or((&resource.gvr.resource, ""));
    let in_scope = match rule.scope.as_deref() {
        Some("Cluster") => !resource.namespaced,
        Some("Namespaced") => resource.namespaced,
        _ => true,
    };
    in_scope
        && (wanted == "*" || wanted == served)
        && (wanted_sub == "*" || wanted_sub == served_sub)
        && is_in(list(rule.api_groups.as_ref()), &resource.gvr.group)
        && is_in(list(rule.api_versions.as_ref()), &resource.gvr.version)
}

/// Whether `rule` names something in the group version `gv`.
fn touches(rule: &NamedRuleWithOperations, gv: &str) -> bool {
    let (group, version) = gv.split_once('/').unwrap_or(("", gv));
    let is_in = |values: &[String], value: &str| values.iter().any(|v| v == "*" || v == value);
    is_in(list(rule.api_groups.as_ref()), group)
        && (version.is_empty() || is_in(list(rule.api_versions.as_ref()), version))
}

fn unserved(
    n: usize,
    rule: &NamedRuleWithOperations,
    name: &str,
    mapper: &RestMapper,
) -> UnservedResource {
    let joined = |values: &[String]| values.join(",");
    let groups = list(rule.api_groups.as_ref());
    let versions = joined(list(rule.api_versions.as_ref()));
    let group_version = match joined(groups) {
        core if core.is_empty() => versions,
        groups => format!("{groups}/{versions}"),
    };
    UnservedResource {
        field_ref: format!("spec.matchConstraints.resourceRules[{n}]"),
        rule: format!("{group_version} {name}"),
        suggestion: suggestion(groups, name, mapper),
    }
}

/// The served resource that a rule probably means: another spelling first, another group after.
fn suggestion(groups: &[String], name: &str, mapper: &RestMapper) -> Option<String> {
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
        .find(|r| groups.contains(&r.gvr.group) && is_respelt(r) && r.gvr.resource != name)
        .map(|r| r.gvr.resource.clone())
        .or_else(|| {
            candidates().find(|r| is_respelt(r)).map(|r| {
                let gvk = Gvk::new(r.gvr.group.clone(), r.gvr.version.clone(), "");
                format!("{} {}", gvk.api_version(), r.gvr.resource)
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

/// The most kinds that upstream takes from one rule.
///
/// Source: `typechecking.go`, `maxTypesToCheck`.
const MAX_TYPES_TO_CHECK: usize = 10;

/// The kinds that upstream's type checker looks at, sorted.
///
/// A rule with a wildcard in its groups or versions is passed over, and so are resources with a `*` or
/// a `/`. Once one rule has led to ten kinds, repeats counted, no further one is looked at.
#[must_use]
pub fn upstream_kinds(policy: &ValidatingAdmissionPolicy, mapper: &RestMapper) -> Vec<Gvk> {
    let mut kinds = BTreeSet::new();
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
