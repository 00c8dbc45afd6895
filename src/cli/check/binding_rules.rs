//! Findings about the resource rules of bindings.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::finding::{Finding, Owner, Severity};
use super::known::{self, Known};
use super::lint::{correct_rule, field_finding, remove_resources_of_void_rules};
use super::resources::{self, ResourceRules};
use crate::cli::input::Object;
use crate::policy::RequestPolicy;
use crate::policy::lint;
use crate::policy::matching::{self, Matches, UnservedResource};
use crate::policy::rule::Rule;

/// The resource rules of a policy, and those of a binding.
const FIELDS: [&str; 2] = ["spec.matchConstraints", "spec.matchResources"];

/// The effect of rules that match no served resource.
const NEVER_RUNS: &str = "the binding has no effect";

/// Returns the findings about unserved resources, impossible groups and impossible operations in the rules of a
/// validating or mutating binding.
pub(super) fn check(
    binding: &Object<ValidatingAdmissionPolicyBinding>,
    known: &Known,
) -> Vec<Finding> {
    let Some(resources) = &binding.value.spec.match_resources else {
        return Vec::new();
    };
    let policy = RequestPolicy::with_constraints(resources.clone());
    let mut matches = matching::resolve(&policy, &known.mapper);
    rename_fields(&mut matches.unserved);
    let mut excluded = matching::unserved_exclusions(&policy, &known.mapper);
    rename_fields(&mut excluded);
    let lints = lint::find_in_rules(resources, FIELDS[1], &known.mapper);
    if matches.unserved.is_empty() && excluded.is_empty() && lints.is_empty() {
        return Vec::new();
    }
    let object = Object {
        value: policy,
        source: Arc::clone(&binding.source),
        document: binding.document.clone(),
        other_files: Box::default(),
    };
    let mut findings = Vec::new();
    let rules = ResourceRules {
        object: &object,
        matches: &matches,
        never_runs: matches_nothing(&object, &matches, known).then_some(NEVER_RUNS),
    };
    resources::unserved(&rules, known, &mut findings);
    resources::exclusions(&object, excluded, &mut findings);
    remove_resources_of_void_rules(&object, &lints, &mut findings);
    findings.extend(lints.iter().map(|lint| {
        let mut finding = field_finding(&object, Severity::Warning, lint);
        correct_rule(&object, known, lint, &mut finding);
        finding
    }));
    findings
}

/// Removes a binding's note about unknown resources if a policy has a note with the same message.
pub(super) fn remove_repeated_notes(findings: &mut Vec<Finding>) {
    let of_policies: HashSet<String> = findings
        .iter()
        .filter(|it| it.rule == Rule::UnknownResource && matches!(it.owner, Owner::Policy(_)))
        .map(|it| it.message.clone())
        .collect();
    findings.retain(|it| {
        let is_of_binding = matches!(it.owner, Owner::Binding(_));
        it.rule != Rule::UnknownResource || !is_of_binding || !of_policies.contains(&it.message)
    });
}

/// Replaces `spec.matchConstraints` with `spec.matchResources` in the paths of the fields.
fn rename_fields(unserved: &mut [UnservedResource]) {
    for resource in unserved {
        resource.field_ref = resource.field_ref.replacen(FIELDS[0], FIELDS[1], 1);
    }
}

/// Returns true if the rules certainly match no served resource.
fn matches_nothing(object: &Object<RequestPolicy>, matches: &Matches, known: &Known) -> bool {
    let is_certain = |unserved: &UnservedResource| {
        let rule = known::rule(&object.value, unserved.index);
        let is_open = rule.is_none_or(|rule| known.open_groups(rule).next().is_some());
        unserved.is_misspelled || unserved.is_known || !is_open
    };
    matches.is_nothing() && !matches.unserved.is_empty() && matches.unserved.iter().all(is_certain)
}
