//! The sets extension.

use super::costs::{SETS, SETS_BOTH_WAYS};
use super::hashing::Values;
use crate::decls::{OverloadRow, Sig, Source};
use crate::value::{EvalBudget, EvalError, List as ListValue, Value};
use Sig::{Bool, List, Param};

const SOURCE: Source = Source::new("cel-go ext/sets.go, setsLib.CompileOptions");

const T: Sig = Param("T");
const LIST_T: Sig = List(&T);

/// Functions that treat lists as sets.
pub const ROWS: [OverloadRow; 3] = [
    OverloadRow::global(
        "sets.contains",
        "list_sets_contains_list",
        &[LIST_T, LIST_T],
        Bool,
        SETS,
        SOURCE,
    )
    .evaluated_by(contains),
    OverloadRow::global(
        "sets.equivalent",
        "list_sets_equivalent_list",
        &[LIST_T, LIST_T],
        Bool,
        SETS_BOTH_WAYS,
        SOURCE,
    )
    .evaluated_by(equivalent),
    OverloadRow::global(
        "sets.intersects",
        "list_sets_intersects_list",
        &[LIST_T, LIST_T],
        Bool,
        SETS,
        SOURCE,
    )
    .evaluated_by(intersects),
];

type Result<T = Value> = std::result::Result<T, EvalError>;

fn two_lists(args: &[Value]) -> Result<(&ListValue, &ListValue)> {
    match args {
        [Value::List(left), Value::List(right)] => Ok((left, right)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn values_of<'b>(list: &ListValue, budget: &'b EvalBudget) -> Result<Values<'b>> {
    let mut values = Values::new(budget);
    for value in list {
        values.insert(value)?;
    }
    Ok(values)
}

/// Source: cel-go `common/types/list.go`, `baseList.Contains`.
fn is_equal(budget: &EvalBudget) -> impl Fn(&Value, &Value) -> Result<bool> {
    |element, sought| sought.equals_within(element, budget)
}

/// Returns true if each element of `sublist` is in `list`.
///
/// Source: cel-go `ext/sets.go`, `setsContains`.
fn contains_all(budget: &EvalBudget, list: &ListValue, sublist: &ListValue) -> Result<bool> {
    if sublist.is_empty() {
        return Ok(true);
    }
    let values = values_of(list, budget)?;
    for element in sublist {
        if !values.contains(&element, is_equal(budget))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains(budget: &EvalBudget, args: &[Value]) -> Result {
    let (list, sublist) = two_lists(args)?;
    contains_all(budget, list, sublist).map(Value::Bool)
}

/// Source: cel-go `ext/sets.go`, `setsEquivalent`.
fn equivalent(budget: &EvalBudget, args: &[Value]) -> Result {
    let (left, right) = two_lists(args)?;
    Ok((contains_all(budget, left, right)? && contains_all(budget, right, left)?).into())
}

/// Source: cel-go `ext/sets.go`, `setsIntersects`.
fn intersects(budget: &EvalBudget, args: &[Value]) -> Result {
    let (left, right) = two_lists(args)?;
    if left.is_empty() {
        return Ok(false.into());
    }
    let values = values_of(right, budget)?;
    for element in left {
        if values.contains(&element, is_equal(budget))? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}
