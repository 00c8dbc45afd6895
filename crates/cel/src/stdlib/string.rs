//! String functions: substring tests and regular expressions.

use std::borrow::Cow;
use std::sync::Arc;

use regexp::{EngineBudget, Limits, SyntaxError};

use super::costs::{AFFIX, AFFIX_BY_ARGUMENT, CONTAINED, MATCHED, MATCHED_GLOBALLY};
use crate::cost::Costs;
use crate::decls::{OverloadRow, Planning, Sig, Source, Specialized};
use crate::value::{EvalBudget, EvalError, Traits, Value};
use crate::version::CelGo;
use Sig::{Bool, String};

const SOURCE: Source = Source::new("cel-go common/stdlib/standard.go, stdFunctions");

/// Maximum lengths of the searched string and of the pattern, in bytes. If one of them is longer, the cost is
/// compared with the limit before the call. Such a call may take seconds and much memory.
pub const SEARCHED_LENGTHS: &[usize] = &[100_000, 1_000];

const ENDS_WITH: OverloadRow = OverloadRow::member(
    "endsWith",
    "ends_with_string",
    &[String, String],
    Bool,
    AFFIX,
    SOURCE,
)
.evaluated_by(ends_with)
.without_guards();

const STARTS_WITH: OverloadRow = OverloadRow::member(
    "startsWith",
    "starts_with_string",
    &[String, String],
    Bool,
    AFFIX,
    SOURCE,
)
.evaluated_by(starts_with)
.without_guards();

const MATCHES: OverloadRow = OverloadRow::global(
    "matches",
    "matches",
    &[String, String],
    Bool,
    Costs::ONE,
    SOURCE,
)
.evaluated_as_singleton(matches, Traits::MATCHER)
.planned_by(Planning::Pattern(matching))
.precharge_lengths(SEARCHED_LENGTHS);

/// `contains`, `endsWith`, `startsWith` and `matches`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "contains",
        "contains_string",
        &[String, String],
        Bool,
        CONTAINED,
        SOURCE,
    )
    .evaluated_by(contains)
    .without_guards(),
    ENDS_WITH.before_cel_go(CelGo::V0_29),
    ENDS_WITH
        .with_costs(AFFIX_BY_ARGUMENT)
        .since_cel_go(CelGo::V0_29),
    STARTS_WITH.before_cel_go(CelGo::V0_29),
    STARTS_WITH
        .with_costs(AFFIX_BY_ARGUMENT)
        .since_cel_go(CelGo::V0_29),
    MATCHES.before_cel_go(CelGo::V0_29),
    MATCHES
        .with_costs(MATCHED_GLOBALLY)
        .since_cel_go(CelGo::V0_29),
    OverloadRow::member(
        "matches",
        "matches_string",
        &[String, String],
        Bool,
        MATCHED,
        SOURCE,
    )
    .evaluated_as_singleton(matches, Traits::MATCHER)
    .planned_by(Planning::Pattern(matching))
    .precharge_lengths(SEARCHED_LENGTHS),
];

/// Returns the two arguments of a call, which must be strings.
fn two_texts(args: &[Value]) -> Result<(&str, &str), EvalError> {
    match args {
        [Value::String(text), Value::String(part)] => Ok((text, part)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn contains(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    two_texts(args).map(|(text, part)| text.contains(part).into())
}

fn ends_with(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    two_texts(args).map(|(text, part)| text.ends_with(part).into())
}

fn starts_with(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    two_texts(args).map(|(text, part)| text.starts_with(part).into())
}

/// Limits regular expression searches by the budget of the evaluation.
impl Limits for EvalBudget {
    type Error = EvalError;

    fn work(&self, n_steps: usize) -> Result<(), EvalError> {
        // Eight steps of a regular expression search count as one step of the budget.
        self.poll((n_steps as u64) / 8)
    }

    fn allocate(&self, n_bytes: usize) -> Result<(), EvalError> {
        self.allocate(n_bytes)
    }

    fn exceeded(&self) -> EvalError {
        let error = self.allocate(usize::MAX).err();
        error.unwrap_or_else(|| EvalError::cancelled("the regular expression is too large"))
    }
}

fn invalid(error: &SyntaxError) -> EvalError {
    EvalError::new(error.to_string())
}

/// Source: cel-go `common/types/string.go`, `String.Match`.
fn matches(budget: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    let (text, pattern) = two_texts(args)?;
    let program = regexp::Program::cached(pattern).map_err(|error| invalid(&error))?;
    program.is_match(text, budget).map(Value::Bool)
}

/// Specializes `matches` for a constant pattern.
///
/// Source: cel-go `interpreter/optimizations.go`, `MatchesRegexOptimization`.
fn matching(pattern: &str, engines: &Arc<EngineBudget>) -> Result<Specialized, EvalError> {
    let program = regexp::Program::within(pattern, engines).map_err(|error| invalid(&error))?;
    Ok(Box::new(move |budget, args| {
        let is_match = program.is_match(&subject(args)?, budget)?;
        Ok(is_match.into())
    }))
}

/// Returns the Go string that the first argument wraps. A constant pattern is matched against this string.
///
/// # Errors
///
/// Returns an error for other values.
///
/// Source: cel-go `common/types/types.go`, `Type.Value`; `common/types/optional.go`, `Optional.Value`.
pub fn subject(args: &[Value]) -> Result<Cow<'_, str>, EvalError> {
    fn wrapped(value: &Value) -> Option<Cow<'_, str>> {
        match value {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Type(of) => Some(Cow::Owned(of.type_name())),
            Value::Optional(optional) => wrapped(optional.get()?),
            _ => None,
        }
    }
    args.first()
        .and_then(wrapped)
        .ok_or(EvalError::no_such_overload())
}
