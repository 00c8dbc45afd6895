//! Computes the coverage of policies by test cases: true and false results of expressions; operands of `&&` and `||`;
//! conditions of `?:`; predicates of macros; actions of bindings; and operations and resources of rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::input::Object;
use crate::cli::text::clean;
use crate::policy::admission::{AdmissionRequest, Recording};
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::Role;
use crate::policy::subexpressions::{self, SubexpressionRole};
use crate::policy::{RequestPolicy, matching};

/// The coverage of one policy.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// The name of the policy.
    pub policy: String,
    /// The path of the policy's file.
    pub file: String,
    /// The number of probes that test the policy. If it is 0, no item is covered.
    pub probes: usize,
    /// The number of items.
    pub total: usize,
    /// The number of covered items.
    pub covered: usize,
    /// The items, in the order of the policy.
    pub items: Vec<Item>,
}

/// A coverage item.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// One of `validation`, `matchCondition`, `branch`, `operation`, `resource`, `action`.
    pub kind: &'static str,
    /// The field of the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The line of the item in the file of the policy.
    pub line: usize,
    /// The condition that a case must meet, in words.
    pub description: String,
    /// 0 if no case covers the item, otherwise the number of times that it was covered.
    pub hits: u64,
}

/// The items of a policy that its cases have covered.
#[derive(Clone, Debug, Default)]
pub(super) struct CoverageHits {
    recording: Recording,
    operations: BTreeSet<String>,
    resources: BTreeSet<(String, String)>,
    actions: BTreeMap<String, u64>,
}

impl CoverageHits {
    /// Adds a request that the policy matches, and the recorded values of its evaluation.
    pub(super) fn add(&mut self, request: &AdmissionRequest, recording: &Recording) {
        for (part, seen) in recording {
            self.recording.entry(*part).or_default().add(seen);
        }
        self.operations.insert(request.operation.to_string());
        let resource = if request.subresource.is_empty() {
            request.gvr.resource.clone()
        } else {
            format!("{}/{}", request.gvr.resource, request.subresource)
        };
        self.resources.insert((request.gvr.group.clone(), resource));
    }

    pub(super) fn add_action(&mut self, action: &str) {
        let n = self.actions.entry(action.to_owned()).or_default();
        *n = n.saturating_add(1);
    }
}

/// Returns the coverage of `policy`. `actions` are the actions of its bindings. The caller sets the number of probes,
/// which is 0 here.
pub(super) fn policy_coverage(
    policy: &Object<RequestPolicy>,
    compiled: &CompiledPolicy,
    hits: &CoverageHits,
    actions: &BTreeSet<String>,
) -> Coverage {
    let mut items = Vec::new();
    add_rule_items(policy, hits, &mut items);
    for (index, expression) in compiled.expressions().iter().enumerate() {
        let kind = match expression.role {
            Role::MatchCondition => "matchCondition",
            Role::Validation => "validation",
            Role::Variable
            | Role::MessageExpression
            | Role::AuditAnnotation
            | Role::ApplyConfiguration
            | Role::JsonPatch => "branch",
        };
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        let places = policy.places_in_field(&expression.field_ref);
        for part in subexpressions::subexpressions(ast) {
            let is_whole = part.role == SubexpressionRole::Whole && kind != "branch";
            let is_branch = matches!(
                part.role,
                SubexpressionRole::Term | SubexpressionRole::Condition | SubexpressionRole::Test
            );
            if !is_whole && !is_branch {
                continue;
            }
            let seen = hits.recording.get(&(index, part.id.index()));
            let offset = usize::try_from(ast.offset(part.id)).unwrap_or(0);
            for expected in [true, false] {
                let is_hit = seen.is_some_and(|seen| {
                    if expected {
                        seen.is_true
                    } else {
                        seen.is_false
                    }
                });
                items.push(Item {
                    kind: if is_whole { kind } else { "branch" },
                    field_ref: expression.field_ref.clone(),
                    line: places.at(offset).line,
                    description: format!("`{}` is {expected}", part.text),
                    hits: if is_hit {
                        seen.map_or(0, |seen| seen.n)
                    } else {
                        0
                    },
                });
            }
        }
    }
    for action in actions {
        items.push(Item {
            kind: "action",
            field_ref: "spec.validationActions".to_owned(),
            line: policy.place().line,
            description: format!("the action {action} of a binding is taken"),
            hits: hits.actions.get(action).copied().unwrap_or(0),
        });
    }
    Coverage {
        policy: policy.name().unwrap_or_default().to_owned(),
        file: policy.source.name.clone(),
        probes: 0,
        total: items.len(),
        covered: items.iter().filter(|item| item.hits > 0).count(),
        items,
    }
}

fn add_rule_items(policy: &Object<RequestPolicy>, hits: &CoverageHits, items: &mut Vec<Item>) {
    for (n, rule) in matching::rules(&policy.value).iter().enumerate() {
        let field = format!("spec.matchConstraints.resourceRules[{n}]");
        let line = |field: &str| policy.place_of_field(field).line;
        for operation in rule.operations.iter().flatten() {
            let is_hit = operation == "*" && !hits.operations.is_empty()
                || hits.operations.contains(operation);
            let field = format!("{field}.operations");
            items.push(Item {
                kind: "operation",
                line: line(&field),
                field_ref: field,
                description: format!("a request has the operation {operation}"),
                hits: u64::from(is_hit),
            });
        }
        for resource in rule.resources.iter().flatten() {
            let is_hit = hits.resources.iter().any(|(group, resource_name)| {
                let groups = rule.api_groups.iter().flatten();
                let is_group = groups.into_iter().any(|it| it == "*" || it == group);
                is_group && (resource == resource_name || resource.contains('*'))
            });
            let field = format!("{field}.resources");
            items.push(Item {
                kind: "resource",
                line: line(&field),
                field_ref: field,
                description: format!("a request is for {resource}"),
                hits: u64::from(is_hit),
            });
        }
    }
}

/// Returns the coverage in percent, rounded down.
#[must_use]
pub fn percent(coverage: &[Coverage]) -> usize {
    let total: usize = coverage.iter().map(|it| it.total).sum();
    let covered: usize = coverage.iter().map(|it| it.covered).sum();
    (covered * 100).checked_div(total).unwrap_or(100)
}

/// Returns the names of the policies that no probe tests.
pub fn untested(coverage: &[Coverage]) -> impl Iterator<Item = &str> {
    let untested = coverage.iter().filter(|it| it.probes == 0);
    untested.map(|it| it.policy.as_str())
}

/// Renders the uncovered items as lines, by policy. A policy without probes is one line.
#[must_use]
pub fn text(coverage: &[Coverage]) -> String {
    let mut out = String::new();
    if coverage
        .iter()
        .all(|policy_coverage| policy_coverage.total == 0)
    {
        return "coverage: unknown, because there is nothing to measure\n".to_owned();
    }
    for policy_coverage in coverage {
        if policy_coverage.probes == 0 {
            let _ = writeln!(
                out,
                "coverage of {}: 0 of {}, because no probe tests it ({})",
                clean(&policy_coverage.policy),
                policy_coverage.total,
                clean(&policy_coverage.file)
            );
            continue;
        }
        let _ = writeln!(
            out,
            "coverage of {}: {} of {}",
            clean(&policy_coverage.policy),
            policy_coverage.covered,
            policy_coverage.total
        );
        for item in policy_coverage.items.iter().filter(|item| item.hits == 0) {
            let _ = writeln!(
                out,
                "  not covered: {} ({}, {}:{})",
                clean(&item.description),
                item.field_ref,
                clean(&policy_coverage.file),
                item.line
            );
        }
    }
    let _ = writeln!(out, "coverage: {}%", percent(coverage));
    out
}

/// Renders the coverage in the format of lcov.
///
/// Source: the manual page of `geninfo`, "FILES".
#[must_use]
pub fn lcov(coverage: &[Coverage]) -> String {
    let mut out = String::new();
    for policy_coverage in coverage {
        let _ = writeln!(out, "TN:\nSF:{}", clean(&policy_coverage.file));
        let mut lines: BTreeMap<usize, u64> = BTreeMap::new();
        for (n, item) in policy_coverage.items.iter().enumerate() {
            let hits = lines.entry(item.line).or_default();
            *hits = (*hits).max(item.hits);
            let _ = writeln!(out, "BRDA:{},0,{n},{}", item.line, item.hits);
        }
        let _ = writeln!(
            out,
            "BRF:{}\nBRH:{}",
            policy_coverage.total, policy_coverage.covered
        );
        for (line, hits) in &lines {
            let _ = writeln!(out, "DA:{line},{hits}");
        }
        let hit = lines.values().filter(|hits| **hits > 0).count();
        let _ = writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_is_rounded_down_and_100_percent_without_items() {
        let coverage = |covered, total| Coverage {
            policy: String::new(),
            file: String::new(),
            probes: 1,
            total,
            covered,
            items: Vec::new(),
        };
        assert_eq!(percent(&[]), 100);
        assert_eq!(percent(&[coverage(0, 3)]), 0);
        assert_eq!(percent(&[coverage(2, 3)]), 66);
        assert_eq!(percent(&[coverage(2, 3), coverage(3, 3)]), 83);
        assert_eq!(percent(&[coverage(3, 3)]), 100);
    }
}
