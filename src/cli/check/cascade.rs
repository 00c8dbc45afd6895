//! Removes findings that are only consequences of another finding about the same object.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::suggestion::nearest;
use crate::policy::rule::Rule;

/// The field with the resource rules of a policy.
const RULES: &str = "spec.matchConstraints";

/// Returns true if `unknown` is probably a misspelling of the field `meant`.
fn is_misspelling(unknown: &str, meant: &str) -> bool {
    let parts = |field: &str| {
        let (parent, name) = field.rsplit_once('.').unwrap_or(("", field));
        (parent.to_owned(), name.to_owned())
    };
    let (unknown, meant) = (parts(unknown), parts(meant));
    unknown.0 == meant.0 && nearest(&unknown.1, std::iter::once(meant.1.as_str())).is_some()
}

/// Removes the findings that are consequences of others. `is_left_out` returns true for a finding about an invalid
/// value that the rest of the check ignores.
pub(super) fn remove_consequences(
    findings: &mut Vec<Finding>,
    is_left_out: &dyn Fn(&Finding) -> bool,
) {
    // A malformed or missing field causes other findings about the same field.
    let is_cause = |finding: &Finding| {
        finding.rejected && matches!(finding.rule, Rule::Required | Rule::InvalidObject)
    };
    let field = |finding: &Finding| finding.field_ref.clone().unwrap_or_default();
    let mut causes = BTreeSet::new();
    let mut firsts = BTreeSet::new();
    for finding in findings.iter().filter(|finding| is_cause(finding)) {
        causes.insert(field(finding));
    }
    // Resource rules with a missing or invalid field select the wrong resources, so findings about the selected
    // resources are misleading.
    let rules: Vec<String> = findings
        .iter()
        .filter(|finding| finding.rejected && !is_left_out(finding))
        .map(field)
        .filter(|field| field.starts_with(RULES))
        .collect();
    // A required field whose name is misspelled, or that is in another object, is not also reported as missing.
    let unknown: Vec<String> = findings
        .iter()
        .filter(|finding| finding.rule == Rule::UnknownField)
        .map(field)
        .collect();
    // The costs of params without a schema are estimated for values of any size.
    let is_param_kind = |finding: &Finding| finding.rule == Rule::ParamKindNotFound;
    let has_params_without_schema = findings.iter().any(is_param_kind);
    findings.retain(|finding| {
        let field_ref = field(finding);
        let of_spec = field_ref.strip_prefix("spec.");
        let is_moved = |of: &String| {
            let name = of.rsplit('.').next();
            of_spec.is_some_and(|field| name == Some(field))
        };
        let is_replaced = |of: &String| is_misspelling(of, &field_ref) || is_moved(of);
        if finding.rule == Rule::Required && unknown.iter().any(is_replaced) {
            return false;
        }
        if is_cause(finding) {
            return firsts.insert(field_ref);
        }
        match finding.rule {
            // After the first syntax error, the parser misreads the rest of the expression.
            Rule::Syntax => !causes.contains(&field_ref) && firsts.insert(field_ref),
            Rule::UnservedResource
            | Rule::ExemptResource
            | Rule::UnknownResource
            | Rule::ImpossibleOperation => !rules
                .iter()
                .any(|of| of.starts_with(&field_ref) || field_ref.starts_with(of.as_str())),
            Rule::NotChecked => rules.is_empty(),
            Rule::ParamKindNotFound => !causes.iter().any(|of| of.starts_with("spec.paramKind")),
            Rule::CostNearLimit => !has_params_without_schema,
            _ => true,
        }
    });
}
