//! Continues the check without the invalid operations, label requirements and exclusions of policies, so that they do
//! not hide other findings. The validation of the manifest reports these values.

use std::collections::BTreeMap;

use goyaml::Data;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::finding::Finding;
use super::fixes::OPERATIONS;
use crate::cli::input::{Input, Object};
use crate::policy::RequestPolicy;
use crate::policy::admission::Selector;
use crate::policy::matching;
use crate::policy::rule::Rule;

/// The end of the help of a finding about a value that the rest of the check ignores.
const WITHOUT: &str = "continuing without it";

/// The end of the help of a finding about an unknown field in an exclusion. The rest of the check ignores the whole
/// exclusion.
const WITHOUT_EXCLUSION: &str = "continuing without this exclusion";

/// The fields with the selectors of a policy.
const SELECTORS: [&str; 2] = [
    "spec.matchConstraints.namespaceSelector.",
    "spec.matchConstraints.objectSelector.",
];

/// The field with the rules that exclude requests.
const EXCLUSIONS: &str = "spec.matchConstraints.excludeResourceRules";

/// The fields of a rule.
const RULE_FIELDS: [&str; 6] = [
    "apiGroups",
    "apiVersions",
    "operations",
    "resourceNames",
    "resources",
    "scope",
];

/// Removes the invalid label requirements of all policies of the input, the exclusions with an unknown field, and the
/// operation DELETE of mutating policies. An API server rejects a policy with such a value.
pub(super) fn remove_invalid_requirements(input: &mut Input) {
    for policy in &mut input.mutating_policies {
        let constraints = policy.shared.value.match_constraints.as_mut();
        let rules = constraints.and_then(|it| it.resource_rules.as_mut());
        let operations = rules.into_iter().flatten();
        for operations in operations.filter_map(|rule| rule.operations.as_mut()) {
            // A rule without other valid operations stays unchanged.
            if operations
                .iter()
                .any(|it| it != "DELETE" && is_operation(it))
            {
                operations.retain(|it| it != "DELETE");
            }
        }
    }
    let mutating = input.mutating_policies.iter_mut();
    let mutating = mutating.map(|policy| &mut policy.shared);
    for policy in input.policies.iter_mut().chain(mutating) {
        empty_partial_exclusions(policy);
        let Some(resources) = &mut policy.value.match_constraints else {
            continue;
        };
        let selectors = [
            &mut resources.namespace_selector,
            &mut resources.object_selector,
        ];
        for selector in selectors.into_iter().flatten() {
            if Selector::new(selector).is_err() {
                remove_invalid(selector);
            }
        }
    }
}

/// Empties each item of excludeResourceRules that has an unknown field, so that the item excludes nothing. The field
/// probably restricts the exclusion. If only the field were ignored, the item would exclude too much.
fn empty_partial_exclusions(policy: &mut Object<RequestPolicy>) {
    let constraints = policy.value.match_constraints.as_mut();
    let exclusions = constraints.and_then(|it| it.exclude_resource_rules.as_mut());
    for (n, rule) in exclusions.into_iter().flatten().enumerate() {
        let node = policy.document.node.nearest(&format!("{EXCLUSIONS}[{n}]"));
        if let Data::Map(entries) = &node.data
            && entries.iter().any(|(name, _)| !RULE_FIELDS.contains(&name))
        {
            rule.resources = None;
        }
    }
}

fn remove_invalid(selector: &mut LabelSelector) {
    if let Some(labels) = &mut selector.match_labels {
        labels.retain(|key, value| {
            let only = BTreeMap::from([(key.clone(), value.clone())]);
            let only = LabelSelector {
                match_labels: Some(only),
                ..LabelSelector::default()
            };
            Selector::new(&only).is_ok()
        });
    }
    if let Some(requirements) = &mut selector.match_expressions {
        requirements.retain(|requirement| {
            let only = LabelSelector {
                match_expressions: Some(vec![requirement.clone()]),
                ..LabelSelector::default()
            };
            Selector::new(&only).is_ok()
        });
    }
}

/// Returns true if the finding is about an invalid value that the rest of the check ignores: a label requirement, an
/// exclusion with an unknown field, or one of several operations.
pub(super) fn is_left_out(policy: &Object<RequestPolicy>, finding: &Finding) -> bool {
    let Some(field_ref) = finding.field_ref.as_deref().filter(|_| finding.rejected) else {
        return false;
    };
    if SELECTORS
        .iter()
        .any(|selector| field_ref.starts_with(selector))
    {
        return true;
    }
    if finding.rule == Rule::UnknownField && field_ref.starts_with(EXCLUSIONS) {
        return true;
    }
    let Some((rule, item)) = field_ref.split_once(".operations[") else {
        return false;
    };
    let mut rules = matching::rules(&policy.value).iter().enumerate();
    let is_own = |n| rule == format!("spec.matchConstraints.resourceRules[{n}]");
    let own_rule = rules.find(|(n, _)| is_own(*n));
    let operations = own_rule.and_then(|(_, rule)| rule.operations.as_ref());
    let item = item.trim_end_matches(']').parse();
    let mut others = operations.into_iter().flatten().enumerate();
    finding.rule == Rule::InvalidValue
        && others.any(|(n, name)| item != Ok(n) && is_operation(name))
}

fn is_operation(name: &str) -> bool {
    name == "*" || OPERATIONS.contains(&name)
}

/// Extends the help of each finding about an ignored value that has no fix: the check continues without the value.
pub(super) fn mark(policy: &Object<RequestPolicy>, findings: &mut [Finding]) {
    let without_fix = findings.iter_mut().filter(|finding| finding.fix.is_none());
    for finding in without_fix.filter(|finding| is_left_out(policy, finding)) {
        let is_exclusion = finding.rule == Rule::UnknownField;
        finding.add_help(if is_exclusion {
            WITHOUT_EXCLUSION
        } else {
            WITHOUT
        });
    }
}
