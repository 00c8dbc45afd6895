//! Determines the served resources and kinds that the rules of a policy match.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/matching/matching.go`.

mod kinds;
mod rule;
mod shared;
mod unserved;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use k8s_openapi::api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations};

use self::rule::{Exclusions, Incomplete, Rule};
use self::unserved::{MAX_SEARCHED, unserved};
use super::exempt;
use super::request_policy::RequestPolicy;
use cel::interrupt::checkpoint;
use kubernetes::schema::rest_mapper::{ApiResource, RestMapper};
use kubernetes::schema::{Gvk, Gvr};
use kubernetes::version::Behavior;

pub use self::kinds::{kinds, upstream_kinds};
pub(super) use self::kinds::{named_kinds, wildcard_kinds};
pub(super) use self::shared::Kinds;
pub use self::shared::{RuleMatches, describing};

/// A served resource that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MatchedResource {
    /// The resource or subresource.
    pub gvr: Gvr,
    /// The kind of the objects in requests for the resource.
    pub gvk: Gvk,
    /// True if only a wildcard matches the resource.
    pub by_wildcard: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Operations(u8);

impl Operations {
    /// All operations, in the order in which they are checked.
    pub(crate) const NAMES: [&'static str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

    fn bit(name: &str) -> u8 {
        match Self::NAMES.iter().position(|known| *known == name) {
            Some(idx) => 1 << idx,
            None if name == "*" => 0b1111,
            None => 0,
        }
    }

    pub(super) fn from_names(names: &[String]) -> Self {
        if names.is_empty() {
            return Self(Self::bit("*"));
        }
        Self(names.iter().fold(0, |bits, name| bits | Self::bit(name)))
    }

    /// Returns the operations that requests for `resource` can have.
    ///
    /// Source: `k8s.io/kubernetes` `pkg/registry/core/rest/storage_core.go` (the storages of subresources and their
    /// verbs).
    pub(super) fn possible(resource: &str) -> Self {
        let names: &[&str] = match resource.split_once('/') {
            None => &["CREATE", "UPDATE", "DELETE"],
            Some((_, "binding" | "eviction" | "token")) => &["CREATE"],
            Some((_, "exec" | "attach" | "portforward" | "proxy")) => &["CONNECT"],
            // Logs are read-only.
            Some(("pods", "log")) => &[],
            Some(_) => &["UPDATE"],
        };
        Self(names.iter().fold(0, |bits, name| bits | Self::bit(name)))
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .into_iter()
            .filter(move |name| self.0 & Self::bit(name) != 0)
    }
}

/// Returns true if requests for `resource`, which may be a subresource such as `pods/eviction`, can have the operation.
#[must_use]
pub fn may_have_operation(resource: &str, operation: &str) -> bool {
    let mut possible = Operations::possible(resource).names();
    possible.any(|name| name == operation)
}

/// Returns the only operation that requests for `resource` can have. `None` if there are several, or none.
#[must_use]
pub fn only_operation(resource: &str) -> Option<&'static str> {
    let mut possible = Operations::possible(resource).names();
    possible.next().filter(|_| possible.next().is_none())
}

/// A resource that rules match. Its properties combine all rules that match it.
#[derive(Clone, Debug)]
pub(super) struct Target<'a> {
    pub(super) resource: &'a ApiResource,
    pub(super) by_wildcard: bool,
    /// The operations in the rules. Operations that requests for the resource cannot have are removed.
    pub(super) operations: Operations,
}

/// A resource in a rule that the cluster does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedResource {
    /// The path of the rule in the policy, such as `spec.matchConstraints.resourceRules[0]`.
    pub field_ref: String,
    /// The index of the rule.
    pub index: usize,
    /// The resource as in the rule, such as `apps/v1 deployment`.
    pub rule: String,
    /// The name as in the rule, such as `deployment`.
    pub name: String,
    /// The name that was probably intended, such as `deployments`.
    pub suggestion: Option<String>,
    /// True if the name in the rule is most likely misspelled. The suggested resource is then in a group of the rule.
    /// The two names differ only in case, in number (singular or plural) or by one edit.
    pub is_misspelled: bool,
    /// True if the resource is served in another version of the group, or in a group with a similar name.
    pub is_known: bool,
}

/// A matched resource that is exempt from policies ([`exempt`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExemptResource {
    /// The group and name of the resource, such as `authentication.k8s.io tokenreviews`.
    pub resource: String,
    /// The path of the rule in the policy, such as `spec.matchConstraints.resourceRules[0]`.
    pub field_ref: String,
    /// The name in the rule that matches the resource, such as `tokenreviews` or `*`.
    pub name: String,
    /// True if only wildcards match the resource.
    pub by_wildcard: bool,
}

/// The served resources that the rules of a policy match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// The resources for which the policy is evaluated, sorted and without duplicates.
    pub resources: Vec<MatchedResource>,
    /// The resources that are exempt from policies, sorted by name.
    pub exempt: Vec<ExemptResource>,
    /// The resources in rules that the cluster does not serve.
    pub unserved: Vec<UnservedResource>,
    /// The group versions in rules whose discovery failed, each with the reason.
    pub incomplete: Vec<(String, String)>,
    /// The group versions in rules whose latest successful discovery is too old ([`RestMapper::undiscovered`]).
    pub undiscovered: Vec<String>,
}

impl Matches {
    /// Returns true if the rules match no served resource, and the discovery of their groups is complete.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.resources.is_empty()
            && self.exempt.is_empty()
            && self.incomplete.is_empty()
            && self.undiscovered.is_empty()
    }
}

/// Returns the values of a list in a rule. An absent list is empty.
fn list(values: Option<&Vec<String>>) -> &[String] {
    values.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the API groups in the rules of `policy`. They may include `*`.
pub fn groups(policy: &RequestPolicy) -> impl Iterator<Item = &str> {
    let groups = rules(policy).iter();
    groups
        .flat_map(|rule| list(rule.api_groups.as_ref()))
        .map(String::as_str)
}

/// Returns the rules of `policy`.
#[must_use]
pub fn rules(policy: &RequestPolicy) -> &[NamedRuleWithOperations] {
    let constraints = policy.match_constraints.as_ref();
    let rules = constraints.and_then(|constraints| constraints.resource_rules.as_deref());
    rules.unwrap_or_default()
}

fn excluded(policy: &RequestPolicy) -> &[NamedRuleWithOperations] {
    let constraints = policy.match_constraints.as_ref();
    let rules = constraints.and_then(|constraints| constraints.exclude_resource_rules.as_deref());
    rules.unwrap_or_default()
}

/// Returns the resources in the excludeResourceRules of `policy` that the cluster does not serve.
#[must_use]
pub fn unserved_exclusions(policy: &RequestPolicy, mapper: &RestMapper) -> Vec<UnservedResource> {
    if excluded(policy).is_empty() {
        return Vec::new();
    }
    let rules_of = |rules: &[NamedRuleWithOperations]| RequestPolicy {
        match_constraints: Some(MatchResources {
            resource_rules: Some(rules.to_vec()),
            ..MatchResources::default()
        }),
        ..RequestPolicy::default()
    };
    let mut unserved = resolve(&rules_of(excluded(policy)), mapper).unserved;
    for resource in &mut unserved {
        resource.field_ref = format!(
            "spec.matchConstraints.excludeResourceRules[{}]",
            resource.index
        );
    }
    unserved
}

/// Returns the resources that the rules of `policy` match, sorted and without exempt resources.
pub(super) fn targets<'a>(policy: &RequestPolicy, mapper: &'a RestMapper) -> Vec<Target<'a>> {
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
            // A wildcard does not match a resource that has none of the operations. For example, `*` with CREATE does
            // not match `pods/exec`.
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

/// Returns true if `constraints` has rules, but none of them matches a served resource. Returns false as long as the
/// discovery of a group in the rules is incomplete.
#[must_use]
pub fn match_nothing(constraints: &MatchResources, mapper: &RestMapper) -> bool {
    let policy = RequestPolicy::with_constraints(constraints.clone());
    !rules(&policy).is_empty() && resolve(&policy, mapper).is_nothing()
}

/// Resolves the rules of `policy` to served resources.
#[must_use]
pub fn resolve(policy: &RequestPolicy, mapper: &RestMapper) -> Matches {
    let mut matches = Matches::default();
    let mut exclusions = Exclusions::new(policy);
    let mut by_wildcard: BTreeMap<(&Gvr, &Gvk), bool> = BTreeMap::new();
    let mut exempt_resources: BTreeMap<String, ExemptResource> = BTreeMap::new();
    let incomplete = mapper.incomplete.iter();
    let incomplete = Incomplete::new(incomplete.map(|(group_version, _)| group_version.as_str()));
    let undiscovered = Incomplete::new(mapper.undiscovered.iter().map(String::as_str));
    let (mut touched, mut touched_undiscovered) = (BTreeSet::new(), BTreeSet::new());
    for (n, rule) in rules(policy).iter().map(Rule::new).enumerate() {
        let mut matched_names: HashSet<String> = HashSet::new();
        for (idx, resource) in rule.candidates(mapper) {
            let mut matching_name = String::new();
            let is_exempt = exempt::is_exempt(&resource.gvr);
            let is_by_wildcard = rule.by_wildcard(resource, |name| {
                if is_exempt && (matching_name.is_empty() || matching_name.contains('*')) {
                    name.clone_into(&mut matching_name);
                }
                if !matched_names.contains(name) {
                    matched_names.insert(name.to_owned());
                }
            });
            let Some(is_by_wildcard) = is_by_wildcard else {
                continue;
            };
            if exclusions.without(rule.operations, idx, resource).0 == 0 {
                continue;
            }
            if is_exempt {
                let exemption = ExemptResource {
                    resource: exempt::name(&resource.gvr),
                    field_ref: field_ref(n),
                    name: matching_name,
                    by_wildcard: is_by_wildcard,
                };
                let entry = exempt_resources.entry(exemption.resource.clone());
                let entry = entry.or_insert_with(|| exemption.clone());
                if entry.by_wildcard && !exemption.by_wildcard {
                    *entry = exemption;
                }
                continue;
            }
            let entry = by_wildcard.entry((&resource.gvr, &resource.gvk));
            *entry.or_insert(true) &= is_by_wildcard;
        }
        for name in list(rule.spec.resources.as_ref()) {
            checkpoint();
            // A name that occurs in several rules is reported once.
            if matched_names.insert(name.clone()) {
                let is_searched = matches.unserved.len() < MAX_SEARCHED;
                let unserved = unserved(n, rule.spec, name, mapper, is_searched);
                matches.unserved.push(unserved);
            }
        }
        incomplete.touched(&rule, &mut touched);
        undiscovered.touched(&rule, &mut touched_undiscovered);
    }
    matches.undiscovered = touched_undiscovered
        .into_iter()
        .filter_map(|n| mapper.undiscovered.get(n).cloned())
        .collect();
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

/// Converts the matches of a policy to the matches of a webhook with the same rules. Also returns true if the webhook
/// is called for reviews, such as `TokenReview`.
///
/// Unlike policies, webhooks are never called for webhook configurations. Before Kubernetes 1.37, they are called for
/// reviews. The `resources` of the result never contain reviews, because the kinds of reviews are not checked.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/predicates/rules/rules.go`,
/// `IsExemptAdmissionConfigurationResource`.
#[must_use]
pub fn webhook_matches(
    policy: &RequestPolicy,
    mut matches: Matches,
    behavior: Behavior,
) -> (Matches, bool) {
    let n_exempt = matches.exempt.len();
    matches.exempt.retain(|of| !is_called_review(of, behavior));
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

/// Like [`webhook_matches`], but instead of the boolean, returns the reviews for which the webhook is called.
#[must_use]
pub fn webhook_matches_and_reviews(
    policy: &RequestPolicy,
    matches: &Matches,
    behavior: Behavior,
) -> (Matches, Vec<ExemptResource>) {
    let exempt = matches.exempt.iter();
    let reviews = exempt.filter(|of| is_called_review(of, behavior));
    let reviews = reviews.cloned().collect();
    (
        webhook_matches(policy, matches.clone(), behavior).0,
        reviews,
    )
}

/// Returns true if `resource` is a review for which webhooks are called. All reviews are exempt from policies.
fn is_called_review(resource: &ExemptResource, behavior: Behavior) -> bool {
    !behavior.webhooks_skip_reviews && !resource.resource.starts_with(exempt::CONFIGURATION_GROUP)
}

/// Returns the path of the resource rule with the index `n`.
fn field_ref(n: usize) -> String {
    format!("spec.matchConstraints.resourceRules[{n}]")
}
