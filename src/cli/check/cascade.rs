//! Removes findings that are only consequences of another finding about the same object.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::shape;
use super::suggestion::{completed, nearest};
use crate::policy::rule::Rule;

/// The fields with the resource rules of a policy and of a binding.
const RULES: [&str; 2] = ["spec.matchConstraints", "spec.matchResources"];

/// Returns true if `unknown` is probably a misspelling of the field `meant`.
fn is_misspelling(unknown: &str, meant: &str) -> bool {
    let parts = |field: &str| {
        let (parent, name) = field.rsplit_once('.').unwrap_or(("", field));
        (parent.to_owned(), name.to_owned())
    };
    let (unknown, meant) = (parts(unknown), parts(meant));
    let only = || std::iter::once(meant.1.as_str());
    let is_meant = || {
        let near = nearest(&unknown.1, only())
            .or_else(|| completed(&unknown.1, unknown.1.len() / 2, only()));
        near.is_some() || shape::is_alias(&unknown.1, &meant.1)
    };
    unknown.0 == meant.0 && is_meant()
}

/// Removes the findings that are consequences of others. `is_left_out` returns true for a finding about an invalid
/// value that the check ignores.
pub(super) fn remove_consequences(
    findings: &mut Vec<Finding>,
    is_left_out: &dyn Fn(&Finding) -> bool,
) {
    // A malformed or missing field causes other findings about this field.
    let is_cause = |finding: &Finding| {
        finding.rejected && matches!(finding.rule, Rule::Required | Rule::InvalidObject)
    };
    let field = |finding: &Finding| finding.field_ref.clone().unwrap_or_default();
    let mut causes = BTreeSet::new();
    let mut firsts = BTreeSet::new();
    let mut overloads = BTreeSet::new();
    for finding in findings.iter().filter(|finding| is_cause(finding)) {
        causes.insert(field(finding));
    }
    // Resource rules with a missing or invalid field select the wrong resources, so findings about the selected
    // resources are misleading.
    let rules: Vec<String> = findings
        .iter()
        .filter(|finding| finding.rejected && !is_left_out(finding))
        .map(field)
        .filter(|field| RULES.iter().any(|rules| field.starts_with(rules)))
        .collect();
    // If an unknown field is a misspelled or misplaced required field, the required field is not also reported as
    // missing.
    let unknown: Vec<String> = findings
        .iter()
        .filter(|finding| finding.rule == Rule::UnknownField)
        .map(field)
        .collect();
    // Without a schema of the params, costs are estimated for params of any size, so findings about high costs are
    // misleading.
    let is_param_kind = |finding: &Finding| finding.rule == Rule::ParamKindNotFound;
    let has_params_without_schema = findings.iter().any(is_param_kind);
    split_api_version(findings);
    // The parser reads a dotted key such as `a.b.io/c-d` as selections and names. The findings about these selections
    // and names share one fix.
    let fix = |finding: &Finding| {
        let fix = finding.fix.as_ref()?;
        Some((field(finding), fix.bytes.clone(), fix.text.clone()))
    };
    let undeclared: Vec<_> = findings
        .iter()
        .filter(|finding| finding.rule == Rule::UndeclaredReference)
        .filter_map(fix)
        .collect();
    findings.retain(|finding| {
        let is_repeated = || fix(finding).is_some_and(|fix| undeclared.contains(&fix));
        finding.rule != Rule::NoFieldSelection || !is_repeated()
    });
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
            // The expansion of a macro may call several operators with the same wrong operand.
            Rule::NoMatchingOverload => {
                let (place, kinds) = (finding.location.place, finding.kinds.clone());
                finding.help.is_none() || overloads.insert((place, kinds, finding.help.clone()))
            }
            // An invalid operation of a rule may be a misspelling of an operation that the resources support.
            Rule::ImpossibleOperation
                if field_ref.split(".resources[").next().is_some_and(|rule| {
                    let operations = format!("{rule}.operations");
                    rules.iter().any(|of| of.starts_with(&operations))
                }) =>
            {
                false
            }
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

/// Merges the findings about a paramKind with `group` and `version` instead of `apiVersion`.
fn split_api_version(findings: &mut Vec<Finding>) {
    const FIELD: &str = "spec.paramKind.";
    let is_at = |finding: &Finding, rule: Rule, field: &str| {
        let path = finding.field_ref.as_deref();
        finding.rule == rule && path.and_then(|it| it.strip_prefix(FIELD)) == Some(field)
    };
    let has = |rule: Rule, field: &str| findings.iter().any(|it| is_at(it, rule, field));
    if !has(Rule::UnknownField, "group") && !has(Rule::UnknownField, "version")
        || !has(Rule::Required, "apiVersion")
    {
        return;
    }
    findings.retain_mut(|finding| {
        if is_at(finding, Rule::Required, "apiVersion") {
            let help = "write `apiVersion: group/version`, or only the version for the core group, in place of `group` and \
                        `version`; the API server rejects the object";
            finding.help = Some(help.to_owned());
        }
        let is_part = ["group", "version"]
            .iter()
            .any(|field| is_at(finding, Rule::UnknownField, field));
        !is_part && finding.rule != Rule::ParamKindNotFound
    });
}
