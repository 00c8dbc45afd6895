//! The lists library: order, sum, minimum, maximum and position of list elements.

use std::cmp::Ordering;

use super::args::Result;
use super::costs::{INCLUDED, SCANNED};
use crate::version::V1_37;
use Sig::{Bool, Bytes, Double, Duration, Dyn, Int, List, Param, String, Timestamp, Uint};
use cel::decls::{OverloadRow, Sig, Source};
use cel::stdlib::arithmetic;
use cel::value::{EvalBudget, EvalError, List as ListValue, Value};

const SOURCE: Source = Source::new("k8s.io/apiserver pkg/cel/library/lists.go, listsLibraryDecls");

const A: Sig = Param("A");
const LIST_A: Sig = List(&A);

/// The functions `isSorted`, `sum`, `min`, `max`, `indexOf` and `lastIndexOf`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "isSorted",
        "list_int_is_sorted_bool",
        &[List(&Int)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(is_sorted),
    OverloadRow::member(
        "isSorted",
        "list_uint_is_sorted_bool",
        &[List(&Uint)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(is_sorted),
    OverloadRow::member(
        "isSorted",
        "list_double_is_sorted_bool",
        &[List(&Double)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(is_sorted),
    OverloadRow::member(
        "isSorted",
        "list_bool_is_sorted_bool",
        &[List(&Bool)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(is_sorted),
    OverloadRow::member(
        "isSorted",
        "list_duration_is_sorted_bool",
        &[List(&Duration)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(is_sorted),
    OverloadRow::member(
        "isSorted",
        "list_timestamp_is_sorted_bool",
        &[List(&Timestamp)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(is_sorted),
    OverloadRow::member(
        "isSorted",
        "list_string_is_sorted_bool",
        &[List(&String)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(is_sorted),
    OverloadRow::member(
        "isSorted",
        "list_bytes_is_sorted_bool",
        &[List(&Bytes)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(is_sorted),
    OverloadRow::member(
        "sum",
        "list_int_sum_int",
        &[List(&Int)],
        Int,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(sum_of_ints),
    OverloadRow::member(
        "sum",
        "list_uint_sum_uint",
        &[List(&Uint)],
        Uint,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(sum_of_uints),
    OverloadRow::member(
        "sum",
        "list_double_sum_double",
        &[List(&Double)],
        Double,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(sum_of_doubles),
    OverloadRow::member(
        "sum",
        "list_duration_sum_duration",
        &[List(&Duration)],
        Duration,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(sum_of_durations),
    OverloadRow::member(
        "max",
        "list_int_max_int",
        &[List(&Int)],
        Int,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(max),
    OverloadRow::member(
        "max",
        "list_uint_max_uint",
        &[List(&Uint)],
        Uint,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(max),
    OverloadRow::member(
        "max",
        "list_double_max_double",
        &[List(&Double)],
        Double,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(max),
    OverloadRow::member(
        "max",
        "list_bool_max_bool",
        &[List(&Bool)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(max),
    OverloadRow::member(
        "max",
        "list_duration_max_duration",
        &[List(&Duration)],
        Duration,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(max),
    OverloadRow::member(
        "max",
        "list_timestamp_max_timestamp",
        &[List(&Timestamp)],
        Timestamp,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(max),
    OverloadRow::member(
        "max",
        "list_string_max_string",
        &[List(&String)],
        String,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(max),
    OverloadRow::member(
        "max",
        "list_bytes_max_bytes",
        &[List(&Bytes)],
        Bytes,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(max),
    OverloadRow::member(
        "min",
        "list_int_min_int",
        &[List(&Int)],
        Int,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(min),
    OverloadRow::member(
        "min",
        "list_uint_min_uint",
        &[List(&Uint)],
        Uint,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(min),
    OverloadRow::member(
        "min",
        "list_double_min_double",
        &[List(&Double)],
        Double,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(min),
    OverloadRow::member(
        "min",
        "list_bool_min_bool",
        &[List(&Bool)],
        Bool,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(min),
    OverloadRow::member(
        "min",
        "list_duration_min_duration",
        &[List(&Duration)],
        Duration,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(min),
    OverloadRow::member(
        "min",
        "list_timestamp_min_timestamp",
        &[List(&Timestamp)],
        Timestamp,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(min),
    OverloadRow::member(
        "min",
        "list_string_min_string",
        &[List(&String)],
        String,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(min),
    OverloadRow::member(
        "min",
        "list_bytes_min_bytes",
        &[List(&Bytes)],
        Bytes,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(min),
    OverloadRow::member(
        "indexOf",
        "list_a_index_of_int",
        &[LIST_A, A],
        Int,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(index_of),
    OverloadRow::member(
        "lastIndexOf",
        "list_a_last_index_of_int",
        &[LIST_A, A],
        Int,
        SCANNED,
        SOURCE,
    )
    .evaluated_by(last_index_of),
];

/// `includes`, which accepts values of all types.
pub static VERSION_1: &[OverloadRow] = &OverloadRow::introduced(
    V1_37,
    [OverloadRow::member(
        "includes",
        "list_includes_dyn_dyn",
        &[Dyn, Dyn],
        Bool,
        INCLUDED,
        SOURCE,
    )
    .evaluated_by(includes)],
);

/// If the first argument is a list, returns true if one of its elements equals the second argument. Otherwise, returns
/// true if both arguments are equal.
fn includes(budget: &EvalBudget, args: &[Value]) -> Result {
    let [target, item] = args else {
        return Err(EvalError::no_such_overload());
    };
    if let Some(list) = target.as_list() {
        let index = place(budget, args, 0..list.len())?;
        return Ok((!matches!(index, Value::Int(-1))).into());
    }
    match target.equals_within(item, budget) {
        Err(error) if error.ends_evaluation() => Err(error),
        result => Ok(result.unwrap_or(false).into()),
    }
}

fn list(args: &[Value]) -> std::result::Result<&ListValue, EvalError> {
    args.first()
        .and_then(Value::as_list)
        .ok_or(EvalError::no_such_overload())
}

/// Returns true if values of this type can be ordered.
///
/// Source: cel-go `common/types/traits`, `Comparer`.
fn is_comparable(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
    )
}

/// Iterates over the elements of `list`. Yields an error in place of each element that is not comparable.
fn comparable<'a>(
    list: &'a ListValue,
    budget: &'a EvalBudget,
) -> impl Iterator<Item = Result> + 'a {
    list.iter().map(|element| {
        budget.step()?;
        if is_comparable(&element) {
            Ok(element)
        } else {
            Err(EvalError::no_such_overload())
        }
    })
}

/// Returns true if the list is sorted. Two adjacent elements that cannot be ordered, such as NaN and a number, count as
/// sorted.
fn is_sorted(budget: &EvalBudget, args: &[Value]) -> Result {
    let mut previous: Option<Value> = None;
    for element in comparable(list(args)?, budget) {
        let element = element?;
        if let Some(previous) = previous
            && previous.compare(&element) == Ok(Ordering::Greater)
        {
            return Ok(false.into());
        }
        previous = Some(element);
    }
    Ok(true.into())
}

/// Returns the greatest element if `replaced_if` is `Less`, or the smallest element if it is `Greater`. If several
/// elements are equal, returns the first of them.
fn extreme(budget: &EvalBudget, args: &[Value], name: &str, replaced_if: Ordering) -> Result {
    let mut extreme: Option<Value> = None;
    for element in comparable(list(args)?, budget) {
        let element = element?;
        let replaces = extreme
            .as_ref()
            .is_none_or(|extreme| extreme.compare(&element) == Ok(replaced_if));
        if replaces {
            extreme = Some(element);
        }
    }
    extreme.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn max(budget: &EvalBudget, args: &[Value]) -> Result {
    extreme(budget, args, "max", Ordering::Less)
}

fn min(budget: &EvalBudget, args: &[Value]) -> Result {
    extreme(budget, args, "min", Ordering::Greater)
}

/// Returns the sum of `zero` and all elements of the list.
///
/// Source: k8s.io/apiserver `pkg/cel/library/lists.go`, `sum`.
fn sum(budget: &EvalBudget, args: &[Value], zero: Value) -> Result {
    list(args)?.iter().try_fold(zero, |sum, element| {
        budget.step()?;
        arithmetic::plus(&sum, &element, budget)
    })
}

fn sum_of_ints(budget: &EvalBudget, args: &[Value]) -> Result {
    sum(budget, args, Value::Int(0))
}

fn sum_of_uints(budget: &EvalBudget, args: &[Value]) -> Result {
    sum(budget, args, Value::Uint(0))
}

fn sum_of_doubles(budget: &EvalBudget, args: &[Value]) -> Result {
    sum(budget, args, Value::Double(0.0))
}

fn sum_of_durations(budget: &EvalBudget, args: &[Value]) -> Result {
    sum(budget, args, Value::Duration(0))
}

/// Returns the first index in `indices` at which the element equals the second argument. Returns -1 if no element is
/// equal.
fn place(budget: &EvalBudget, args: &[Value], indices: impl Iterator<Item = usize>) -> Result {
    let list = list(args)?;
    let item = args.get(1).ok_or(EvalError::no_such_overload())?;
    for index in indices {
        let Some(element) = list.get(index) else {
            continue;
        };
        match element.equals_within(item, budget) {
            Ok(true) => return Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))),
            Err(error) if error.ends_evaluation() => return Err(error),
            Ok(false) | Err(_) => {}
        }
    }
    Ok(Value::Int(-1))
}

fn index_of(budget: &EvalBudget, args: &[Value]) -> Result {
    place(budget, args, 0..list(args)?.len())
}

fn last_index_of(budget: &EvalBudget, args: &[Value]) -> Result {
    place(budget, args, (0..list(args)?.len()).rev())
}
