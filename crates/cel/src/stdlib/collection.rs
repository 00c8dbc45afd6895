//! Lists and maps: index, membership and size.

use super::costs::IN_LIST;
use crate::cost::{Costs, ResultOf};
use crate::decls::{Operator, OverloadRow, Planning, Sig, Source};
use crate::value::{EvalBudget, EvalError, List as ValueList, Traits, Value};
use Sig::{Bool, Bytes, Int, List, Map, Param, String};

const SOURCE: Source = Source::new("cel-go common/stdlib/standard.go, stdFunctions");

const A: Sig = Param("A");
const B: Sig = Param("B");
const LIST_A: Sig = List(&A);
const MAP_AB: Sig = Map(&A, &B);

/// `[]`, `in` and `size`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("_[_]", "index_list", &[LIST_A, Int], A, Costs::ONE, SOURCE)
        .evaluated_as(Operator::Index)
        .with_result_of(ResultOf::Items),
    OverloadRow::global("_[_]", "index_map", &[MAP_AB, A], B, Costs::ONE, SOURCE)
        .evaluated_as(Operator::Index)
        .with_result_of(ResultOf::Values),
    OverloadRow::global("@in", "in_list", &[A, LIST_A], Bool, IN_LIST, SOURCE)
        .evaluated_as_singleton(is_in, Traits::NONE)
        .planned_by(Planning::Membership),
    OverloadRow::global("@in", "in_map", &[A, MAP_AB], Bool, Costs::ONE, SOURCE)
        .evaluated_as_singleton(is_in, Traits::NONE),
    OverloadRow::global("size", "size_bytes", &[Bytes], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(size, Traits::SIZER),
    OverloadRow::member("size", "bytes_size", &[Bytes], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(size, Traits::SIZER),
    OverloadRow::global("size", "size_list", &[LIST_A], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(size, Traits::SIZER),
    OverloadRow::member("size", "list_size", &[LIST_A], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(size, Traits::SIZER),
    OverloadRow::global("size", "size_map", &[MAP_AB], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(size, Traits::SIZER),
    OverloadRow::member("size", "map_size", &[MAP_AB], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(size, Traits::SIZER),
    OverloadRow::global("size", "size_string", &[String], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(size, Traits::SIZER),
    OverloadRow::member("size", "string_size", &[String], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(size, Traits::SIZER),
];

/// Source: cel-go `common/stdlib/standard.go`, `inAggregate`; `Contains` of each type.
fn is_in(budget: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [element, Value::List(list)] => list_contains(budget, list, element),
        [key, Value::Map(map)] if map.traits().has(Traits::CONTAINER) => {
            Ok(map.find(key)?.is_some().into())
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn list_contains(
    budget: &EvalBudget,
    list: &ValueList,
    element: &Value,
) -> Result<Value, EvalError> {
    if let Some(own) = list.source().and_then(|source| source.contains(element)) {
        return own.map(Value::Bool);
    }
    for candidate in list {
        match element.equals_within(&candidate, budget) {
            Ok(true) => return Ok(true.into()),
            Err(error) if error.ends_evaluation() => return Err(error),
            // As in upstream, elements that cannot be compared are skipped.
            Ok(false) | Err(_) => {}
        }
    }
    Ok(false.into())
}

fn size(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    let size = match args {
        [value] => value.size(),
        _ => None,
    };
    let size = size.ok_or(EvalError::no_such_overload())?;
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}
