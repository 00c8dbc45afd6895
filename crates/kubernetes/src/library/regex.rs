//! The regex library: search with regular expressions.

use std::sync::Arc;

use super::args::{Result, failed, strings, text};
use super::costs::SEARCHED;
use Sig::{Int, List, String};
use cel::decls::{OverloadRow, Planning, Sig, Source, Specialized};
use cel::stdlib::string::{SEARCHED_LENGTHS, subject};
use cel::value::{EvalBudget, EvalError, Value};
use regexp::{EngineBudget, Program};

const SOURCE: Source = Source::new("k8s.io/apiserver pkg/cel/library/regex.go, regexLibraryDecls");

/// The functions `find` and `findAll`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "find",
        "string_find_string",
        &[String, String],
        String,
        SEARCHED,
        SOURCE,
    )
    .evaluated_by(find)
    .planned_by(Planning::Pattern(finding))
    .precharge_lengths(SEARCHED_LENGTHS),
    OverloadRow::member(
        "findAll",
        "string_find_all_string",
        &[String, String],
        List(&String),
        SEARCHED,
        SOURCE,
    )
    .evaluated_by(find_all)
    .planned_by(Planning::Pattern(finding_all))
    .precharge_lengths(SEARCHED_LENGTHS),
    OverloadRow::member(
        "findAll",
        "string_find_all_string_int",
        &[String, String, Int],
        List(&String),
        SEARCHED,
        SOURCE,
    )
    .evaluated_by(find_all)
    .planned_by(Planning::Pattern(finding_all))
    .precharge_lengths(SEARCHED_LENGTHS),
];

fn program(args: &[Value]) -> std::result::Result<Program, EvalError> {
    Program::cached(text(args, 1)?).map_err(|error| failed(format!("Illegal regex: {error}")))
}

fn find(budget: &EvalBudget, args: &[Value]) -> Result {
    let text = text(args, 0)?;
    let first = program(args)?.find(text, budget)?;
    Ok(first.unwrap_or_default().into())
}

fn find_all(budget: &EvalBudget, args: &[Value]) -> Result {
    text(args, 0)?;
    let program = program(args)?;
    all_matches(&program, budget, args)
}

/// Compiles a call of `find` that has a constant pattern.
///
/// Source: k8s.io/apiserver `pkg/cel/library/regex.go`, `FindRegexOptimization`.
fn finding(
    pattern: &str,
    engines: &Arc<EngineBudget>,
) -> std::result::Result<Specialized, EvalError> {
    let program = Program::within(pattern, engines).map_err(failed)?;
    Ok(Box::new(move |budget, args| {
        let text = subject(args)?;
        Ok(program.find(&text, budget)?.unwrap_or_default().into())
    }))
}

/// Compiles a call of `findAll` that has a constant pattern.
///
/// Source: k8s.io/apiserver `pkg/cel/library/regex.go`, `FindAllRegexOptimization`.
fn finding_all(
    pattern: &str,
    engines: &Arc<EngineBudget>,
) -> std::result::Result<Specialized, EvalError> {
    let program = Program::within(pattern, engines).map_err(failed)?;
    Ok(Box::new(move |budget, args| {
        all_matches(&program, budget, args)
    }))
}

/// The memory that each match needs while the result is built, in bytes, without the characters of the match. This is
/// the memory of the list element, of the string header, and of a borrowed slice in a vector whose capacity may be
/// twice its length.
const MATCH: usize = size_of::<Value>() + 32 + 2 * size_of::<&str>();

/// Returns the matches of a pattern in the first argument. The third argument limits the number of matches. A negative
/// limit means no limit.
fn all_matches(program: &Program, budget: &EvalBudget, args: &[Value]) -> Result {
    let limit = match args.get(2) {
        None => None,
        Some(Value::Int(limit)) => usize::try_from(*limit).ok(),
        Some(_) => return Err(EvalError::no_such_overload()),
    };
    let text = subject(args)?;
    // The search stops when the matches exceed the memory budget.
    let max = budget.bytes_left() / MATCH + 1;
    let matches = program.find_all(
        &text,
        Some(limit.map_or(max, |limit| limit.min(max))),
        budget,
    )?;
    let n_bytes = matches
        .iter()
        .fold(0, |sum: usize, text| sum.saturating_add(text.len()));
    budget.reserve(matches.len().saturating_mul(MATCH).saturating_add(n_bytes))?;
    // The evaluator counts the memory of the returned list, but not the memory of its strings.
    budget.allocate(matches.len().saturating_mul(32).saturating_add(n_bytes))?;
    Ok(strings(matches))
}
