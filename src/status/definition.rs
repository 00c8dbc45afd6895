//! Computes the conditions of CustomResourceDefinitions from the errors of their validation rules.
//!
//! The API server checks rules against the types in the schema. A rule with a type error does not compile, which
//! `Compiled` reports. `TypeChecked` reports the other errors for which the API server rejects a new rule: costs above
//! the limits, `oldSelf` where it is not allowed, and field paths that refer to no field.
//!
//! A stored definition can have such errors. An older API server may have accepted them, or an update may have left the
//! rules unchanged.

use std::collections::BTreeSet;

use super::compute::{Observations, TypeSummary};
use super::condition::{ConditionStatus, Reason};
use super::message;
use super::type_checked::is_all_uncompiled;
use super::verdict::Verdict;
use super::warnings::Warning;
use crate::policy::compile::{Cause, CompileFinding, CompileFindingKind};
use crate::policy::consequence::Consequence;
use crate::policy::rule::Rule;
use crate::validation_rules::{DefinitionError, DefinitionVerdict, ExpressionErrorKind};

/// The maximum number of stored errors per definition.
const MAX_ERRORS: usize = 200;

const MAX_TEXT_BYTES: usize = 32 * 1024;

/// The errors of a definition's rules, in the form of findings about a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFindings {
    /// The expressions that do not compile or cannot be checked.
    pub compiled: Vec<CompileFinding>,
    /// The number of expressions.
    pub n_expressions: usize,
    /// All errors as warnings, grouped by field.
    pub typed: TypeSummary,
}

impl RuleFindings {
    /// Creates findings from the errors of the rules. `schema_errors` are the other errors of the schemas.
    #[must_use]
    pub fn new(verdict: &DefinitionVerdict, schema_errors: &[DefinitionError]) -> Self {
        let mut findings = Self {
            n_expressions: verdict.costs.len(),
            ..Self::default()
        };
        let mut warnings = Vec::new();
        for error in verdict.errors.iter().take(MAX_ERRORS) {
            // `verdict.costs` does not include message expressions that do not compile.
            findings.n_expressions +=
                usize::from(error.expression().is_some() && is_message(error));
            findings.compiled.extend(uncompiled(error));
            warnings.push(warning(error));
        }
        if verdict.is_partial {
            // Other schema errors are reported only if they prevent the compilation of rules.
            let rest = MAX_ERRORS.saturating_sub(warnings.len());
            warnings.extend(schema_errors.iter().take(rest).map(warning));
            findings.compiled.push(not_compiled(&warnings));
        }
        findings.typed.warnings = warnings.into();
        findings
    }

    /// Creates the findings of a definition that cannot be parsed.
    #[must_use]
    pub fn unreadable(why: &str) -> Self {
        let field = "spec.versions".to_owned();
        Self {
            compiled: vec![unsupported(field, format!("cannot be read: {why}"))],
            n_expressions: 1,
            typed: TypeSummary::default(),
        }
    }
}

fn is_message(error: &DefinitionError) -> bool {
    error.error.field.ends_with(".messageExpression")
}

/// Returns the effect of an erroneous expression on the validated objects.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go` (`validateExpressions`: a rule that does
/// not compile is an error of each object; a messageExpression that does not compile is ignored).
fn consequence(error: &DefinitionError) -> Consequence {
    if is_message(error) {
        Consequence::OtherMessage
    } else {
        Consequence::Denied
    }
}

fn uncompiled(error: &DefinitionError) -> Option<CompileFinding> {
    let expression = error.expression()?;
    let kind = match expression.kind {
        ExpressionErrorKind::Rejected => CompileFindingKind::Failed,
        ExpressionErrorKind::Unsafe => CompileFindingKind::Unsafe,
        ExpressionErrorKind::Unsupported => CompileFindingKind::Unsupported,
    };
    Some(CompileFinding {
        field_ref: error.error.field.clone(),
        kind,
        cause: Cause::Whole {
            rule: Rule::CompilationFailed,
            message: message::cut(&expression.detail, MAX_TEXT_BYTES),
        },
        consequence: consequence(error),
    })
}

fn warning(error: &DefinitionError) -> Warning {
    let text = match error.expression() {
        Some(expression) => expression.detail.clone(),
        None => error.error.body(),
    };
    let first_line = text.lines().next().unwrap_or_default().to_owned();
    Warning {
        field_ref: error.error.field.clone(),
        parts: [message::cut(&text, MAX_TEXT_BYTES)].into(),
        headline: Some((String::new(), first_line)),
        fails: true,
        consequence: consequence(error),
    }
}

/// Returns the finding for rules that were not compiled because the schema has other errors.
fn not_compiled(errors: &[Warning]) -> CompileFinding {
    let field = errors.first().map(|error| error.field_ref.clone());
    unsupported(
        field.unwrap_or_else(|| "spec.versions".to_owned()),
        "the rules of this schema are not compiled because the schema has other errors".to_owned(),
    )
}

fn unsupported(field_ref: String, message: String) -> CompileFinding {
    CompileFinding {
        field_ref,
        kind: CompileFindingKind::Unsupported,
        cause: Cause::Whole {
            rule: Rule::NotChecked,
            message,
        },
        consequence: Consequence::Denied,
    }
}

pub(super) fn type_checked(observed: &Observations<'_>, uncompiled: &BTreeSet<&str>) -> Verdict {
    let (types, compiled) = match (observed.types.done(), observed.compiled.done()) {
        (Ok(types), Ok(compiled)) => (types, compiled),
        (Err(unknown), _) | (_, Err(unknown)) => return unknown,
    };
    let all = types.outcome.warnings.iter();
    let mut of_types = all.filter(|warning| !uncompiled.contains(warning.field_ref.as_str()));
    if let Some(first) = of_types.next() {
        let more = match of_types.count() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let why = first.headline.as_ref().map_or("", |(_, why)| why);
        return Verdict::new(
            ConditionStatus::False,
            Reason::ExpressionWarnings,
            format!(
                "{}{more}: the API server rejects this in a new definition: {why}",
                first.field_ref
            ),
        );
    }
    if is_all_uncompiled(observed, uncompiled) {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::CompilationFailed,
            "no expression compiles, so there are no types to check",
        );
    }
    let is_unsupported =
        |finding: &&CompileFinding| finding.kind == CompileFindingKind::Unsupported;
    if let Some(finding) = compiled.findings.iter().find(is_unsupported) {
        let why = finding.cause.message();
        let text = format!("{}: {why}", finding.field_ref);
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::UnsupportedExpression,
            text,
        );
    }
    let text = if compiled.n_expressions == 0 {
        NO_RULES
    } else {
        "no warnings; the rules match their schemas and are within the cost limits"
    };
    Verdict::new(ConditionStatus::True, Reason::NoWarnings, text)
}

/// The message for a definition without rules. Such a definition has conditions only if it has probes.
pub(super) const NO_RULES: &str = "the definition has no rules";
