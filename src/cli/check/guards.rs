//! Removes wrong comparisons from the suggested guards of absent values.
//!
//! A guard such as `has(a.b) && a.b <= '2Gi'` repeats the comparison of the expression. If another finding reports this
//! comparison, the guard would suggest the mistake.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::policy::PolicyAnalysis;
use super::tokens::TokenText;
use crate::cli::input::{Object, Place};
use crate::policy::RequestPolicy;
use crate::policy::rule::Rule;

/// Returns true for a finding about a comparison that is wrong as written.
fn is_of_comparison(finding: &Finding) -> bool {
    matches!(
        finding.rule,
        Rule::StringOrder
            | Rule::ImpossibleValue
            | Rule::IncomparableTypes
            | Rule::NoMatchingOverload
    )
}

/// Replaces the comparisons that other findings report by `...` in the help of findings about absent values.
pub(super) fn omit_wrong_operands(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    findings: &mut [Finding],
) {
    let is_absent = |finding: &Finding| {
        is_absent_rule(finding.rule) && finding.help.as_ref().is_some_and(|it| it.contains("has("))
    };
    let fields: BTreeSet<String> = findings
        .iter()
        .filter(|finding| is_absent(finding))
        .filter_map(|finding| finding.field_ref.clone())
        .collect();
    for field_ref in fields {
        let is_of_field = |finding: &Finding| finding.field_ref.as_ref() == Some(&field_ref);
        let reported: BTreeSet<Place> = findings
            .iter()
            .filter(|finding| is_of_field(finding) && is_of_comparison(finding))
            .filter_map(|finding| finding.location.place)
            .collect();
        if reported.is_empty() {
            continue;
        }
        let comparisons = comparisons(policy, analysis, &field_ref, &reported);
        for finding in findings.iter_mut().filter(|it| is_of_field(it)) {
            let help = finding
                .help
                .as_mut()
                .filter(|_| is_absent_rule(finding.rule));
            if let Some(help) = help {
                for text in &comparisons {
                    *help = help.replace(text, "...");
                }
            }
        }
    }
}

fn is_absent_rule(rule: Rule) -> bool {
    matches!(rule, Rule::AbsentField | Rule::AbsentKey)
}

/// Returns the source of the comparisons whose operator or right operand is at one of `places`.
fn comparisons(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    field_ref: &str,
    places: &BTreeSet<Place>,
) -> Vec<String> {
    let Some(expression) = analysis.expression(field_ref) else {
        return Vec::new();
    };
    let source = TokenText::new(&expression.text);
    let field = policy.places_in_field(field_ref);
    let is_reported = |n: usize| {
        let start = source.bytes(&(n..n + 1)).map(|bytes| bytes.start);
        let before = start.and_then(|start| expression.text.get(..start));
        before.is_some_and(|before| places.contains(&field.at(before.chars().count())))
    };
    let relations = (0..source.len()).filter_map(|n| {
        source.kind(n)?.relation()?;
        let (left, right) = source.operands(n)?;
        (is_reported(n) || is_reported(right.start)).then_some(())?;
        source.source(&(left.start..right.end)).map(str::to_owned)
    });
    relations.collect()
}
