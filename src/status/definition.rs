//! Conditions of CustomResourceDefinitions: what is wrong with the rules in their schemas.
//!
//! A schema says the types of all values that a rule sees. So rules have no types that an API server does not check:
//! what has the wrong type does not compile (`Compiled`). `TypeChecked` is about all else that it refuses of rules in a
//! new definition: costs beyond the limits, `oldSelf` where there is none, paths to no field. A definition that is
//! stored may have both, as it was taken by an older server, or had them before.

use std::collections::BTreeSet;

use super::compute::{Observed, Typed};
use super::condition::{ConditionStatus, Reason};
use super::message;
use super::type_checked::is_all_uncompiled;
use super::verdict::Verdict;
use super::warnings::Warning;
use crate::policy::compile::{Cause, CompileFinding, CompileFindingKind};
use crate::policy::consequence::Consequence;
use crate::policy::rule::Rule;
use crate::validation_rules::{DefinitionError, DefinitionVerdict, Trouble};

/// The most errors of a definition that are kept.
const MAX_ERRORS: usize = 200;

/// The most bytes that are kept of the text of one error.
const MAX_TEXT_BYTES: usize = 32 * 1024;

/// Faults of the rules of a definition, in the form of those of a policy's expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleFindings {
    /// The expressions in trouble.
    pub compiled: Vec<CompileFinding>,
    /// How many expressions there are.
    pub n_expressions: usize,
    /// All that is wrong, by field.
    pub typed: Typed,
}

impl RuleFindings {
    /// Faults that a verdict names; `of_schemas` are those of the schemas beside their rules.
    #[must_use]
    pub fn new(verdict: &DefinitionVerdict, of_schemas: &[DefinitionError]) -> Self {
        let mut found = Self {
            n_expressions: verdict.costs.len(),
            ..Self::default()
        };
        let mut warnings = Vec::new();
        for error in verdict.errors.iter().take(MAX_ERRORS) {
            // A message that does not compile has no cost.
            found.n_expressions += usize::from(error.expression().is_some() && is_message(error));
            found.compiled.extend(uncompiled(error));
            warnings.push(warning(error));
        }
        if verdict.is_partial {
            // What keeps rules from being compiled is told with them.
            let rest = MAX_ERRORS.saturating_sub(warnings.len());
            warnings.extend(of_schemas.iter().take(rest).map(warning));
            found.compiled.push(not_compiled(&warnings));
        }
        found.typed.warnings = warnings.into();
        found
    }

    /// The finding of a definition that cannot be looked at.
    #[must_use]
    pub fn unreadable(why: &str) -> Self {
        let field = "spec.versions".to_owned();
        Self {
            compiled: vec![unjudged(field, format!("cannot be read: {why}"))],
            n_expressions: 1,
            typed: Typed::default(),
        }
    }
}

fn is_message(error: &DefinitionError) -> bool {
    error.error.field.ends_with(".messageExpression")
}

/// The fate of an object for which the expression with an error fails.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go` (`validateExpressions`: a rule that did not
/// compile is an error of each object; a messageExpression that did not is passed over).
fn consequence(error: &DefinitionError) -> Consequence {
    if is_message(error) {
        Consequence::OtherMessage
    } else {
        Consequence::Denied
    }
}

fn uncompiled(error: &DefinitionError) -> Option<CompileFinding> {
    let expression = error.expression()?;
    let kind = match expression.trouble {
        Trouble::Refused => CompileFindingKind::Failed,
        Trouble::Unsafe => CompileFindingKind::Unsafe,
        Trouble::Unjudged => CompileFindingKind::Unsupported,
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

/// The finding of rules that are not compiled because of other faults.
fn not_compiled(faults: &[Warning]) -> CompileFinding {
    let field = faults.first().map(|fault| fault.field_ref.clone());
    unjudged(
        field.unwrap_or_else(|| "spec.versions".to_owned()),
        "rules of this schema are not compiled, which has other faults".to_owned(),
    )
}

fn unjudged(field_ref: String, message: String) -> CompileFinding {
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

/// The condition `TypeChecked` of a definition.
pub(super) fn type_checked(observed: &Observed<'_>, uncompiled: &BTreeSet<&str>) -> Verdict {
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
                "{}{more}: the API server refuses that in a new definition: {why}",
                first.field_ref
            ),
        );
    }
    if is_all_uncompiled(observed, uncompiled) {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::CompilationFailed,
            "what does not compile has no types",
        );
    }
    let is_unjudged = |finding: &&CompileFinding| finding.kind == CompileFindingKind::Unsupported;
    if let Some(unjudged) = compiled.findings.iter().find(is_unjudged) {
        let why = unjudged.cause.message();
        let text = format!("{}: {why}", unjudged.field_ref);
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::UnsupportedExpression,
            text,
        );
    }
    let text = if compiled.n_expressions == 0 {
        NO_RULES
    } else {
        "no warnings; the rules fit their schemas and the limits of their costs"
    };
    Verdict::new(ConditionStatus::True, Reason::NoWarnings, text)
}

/// The text about a definition that is judged for its probes alone.
pub(super) const NO_RULES: &str = "it has no rules";
