//! Optional values, up to version 2 of the library.

use crate::cost::Costs;
use crate::decls::{Operator, OverloadRow, Receiver, Sig, Source};
use crate::value::{EvalBudget, EvalError, Value};
use crate::version::CelGo;
use Sig::{Bool, Dyn, Int, List, Map, Optional, Param, String};

const SOURCE: Source = Source::new("cel-go cel/library.go, optionalLib.CompileOptions");

const SOURCE_2: Source = SOURCE.since_cel_go(CelGo::V0_23);

const K: Sig = Param("K");
const V: Sig = Param("V");
const LIST_V: Sig = List(&V);
const MAP_KV: Sig = Map(&K, &V);
const OPTIONAL_V: Sig = Optional(&V);

const SELECT: OverloadRow = OverloadRow::global(
    "_?._",
    "select_optional_field",
    &[Dyn, String],
    OPTIONAL_V,
    Costs::ONE,
    SOURCE,
)
.evaluated_as(Operator::OptionalIndex);

/// Overload of optional field selection, to which the checker resolves `.?`.
pub static SELECT_FIELD: OverloadRow = SELECT;

const OR: OverloadRow = OverloadRow::member(
    "or",
    "optional_or_optional",
    &[OPTIONAL_V, OPTIONAL_V],
    OPTIONAL_V,
    Costs::ONE,
    SOURCE,
)
.evaluated_as(Operator::OptionalOr(Receiver::Any));

const OR_VALUE: OverloadRow = OverloadRow::member(
    "orValue",
    "optional_orValue_value",
    &[OPTIONAL_V, V],
    V,
    Costs::ONE,
    SOURCE,
)
.evaluated_as(Operator::OptionalOrValue(Receiver::Any));

/// Overloads of version 0, which all later versions include.
pub const VERSION_0: [OverloadRow; 16] = [
    OverloadRow::global(
        "optional.of",
        "optional_of",
        &[V],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(optional_of),
    OverloadRow::global(
        "optional.ofNonZeroValue",
        "optional_ofNonZeroValue",
        &[V],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(optional_of_non_zero),
    OverloadRow::global(
        "optional.none",
        "optional_none",
        &[],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(none),
    OverloadRow::member(
        "value",
        "optional_value",
        &[OPTIONAL_V],
        V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(value),
    OverloadRow::member(
        "hasValue",
        "optional_hasValue",
        &[OPTIONAL_V],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(has_value),
    OR.before_cel_go(CelGo::V0_28),
    OR.evaluated_as(Operator::OptionalOr(Receiver::Optional))
        .since_cel_go(CelGo::V0_28),
    OR_VALUE.before_cel_go(CelGo::V0_28),
    OR_VALUE
        .evaluated_as(Operator::OptionalOrValue(Receiver::Optional))
        .since_cel_go(CelGo::V0_28),
    SELECT,
    OverloadRow::global(
        "_[?_]",
        "list_optindex_optional_int",
        &[LIST_V, Int],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as(Operator::OptionalIndex),
    OverloadRow::global(
        "_[?_]",
        "optional_list_optindex_optional_int",
        &[Optional(&LIST_V), Int],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as(Operator::OptionalIndex),
    OverloadRow::global(
        "_[?_]",
        "map_optindex_optional_value",
        &[MAP_KV, K],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as(Operator::OptionalIndex),
    OverloadRow::global(
        "_[?_]",
        "optional_map_optindex_optional_value",
        &[Optional(&MAP_KV), K],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as(Operator::OptionalIndex),
    OverloadRow::global(
        "_[_]",
        "optional_list_index_int",
        &[Optional(&LIST_V), Int],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as(Operator::Index),
    OverloadRow::global(
        "_[_]",
        "optional_map_index_value",
        &[Optional(&MAP_KV), K],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as(Operator::Index),
];

/// Overloads added by version 2.
pub const VERSION_2: [OverloadRow; 4] = [
    OverloadRow::member(
        "last",
        "list_last",
        &[LIST_V],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE_2,
    )
    .evaluated_by(last),
    OverloadRow::member(
        "first",
        "list_first",
        &[LIST_V],
        OPTIONAL_V,
        Costs::ONE,
        SOURCE_2,
    )
    .evaluated_by(first),
    OverloadRow::global(
        "optional.unwrap",
        "optional_unwrap",
        &[List(&OPTIONAL_V)],
        LIST_V,
        Costs::ONE,
        SOURCE_2,
    )
    .evaluated_by(unwrap),
    OverloadRow::member(
        "unwrapOpt",
        "optional_unwrapOpt",
        &[List(&OPTIONAL_V)],
        LIST_V,
        Costs::ONE,
        SOURCE_2,
    )
    .evaluated_by(unwrap),
];

fn optional_of(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [value] => Ok(Value::some(value.clone())),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Source: cel-go `common/types`, `IsZeroValue` of each type.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) | Value::Duration(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        // Go's zero time is the first second of the year 1.
        Value::Timestamp(at) => at.instant() == (crate::temporal::MIN_UNIX_SECONDS, 0),
        Value::List(list) => list.source().is_none() && list.is_empty(),
        Value::Map(map) => map.source().is_none() && map.is_empty(),
        Value::Opaque(opaque) => opaque.is_zero(),
        Value::Type(_) | Value::Optional(_) | Value::Error(_) => false,
    }
}

fn optional_of_non_zero(budget: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [value] if is_zero(value) => Ok(Value::none()),
        _ => optional_of(budget, args),
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all implementations have the same signature"
)]
fn none(_: &EvalBudget, _: &[Value]) -> Result<Value, EvalError> {
    Ok(Value::none())
}

fn value(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [Value::Optional(optional)] => match optional.get() {
            Some(held) => Ok(held.clone()),
            None => Err(EvalError::fixed("optional.none() dereference")),
        },
        _ => Err(EvalError::no_such_overload()),
    }
}

fn has_value(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [Value::Optional(optional)] => Ok(optional.get().is_some().into()),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Returns the element of a list at an index as an optional. `index` computes the index from the length of the list.
/// The optional is empty if the index is out of range.
fn element(args: &[Value], index: fn(usize) -> usize) -> Result<Value, EvalError> {
    match args {
        [Value::List(list)] => Ok(list
            .get(index(list.len()))
            .map_or_else(Value::none, Value::some)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn last(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    element(args, |len| len.saturating_sub(1))
}

fn first(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    element(args, |_| 0)
}

/// Source: cel-go `cel/library.go`, `optUnwrap`.
fn unwrap(budget: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    let [Value::List(list)] = args else {
        return Err(EvalError::no_such_overload());
    };
    let mut held = Vec::new();
    for element in list {
        budget.step()?;
        if held.len() == held.capacity() {
            budget.reserve_list(held.len().saturating_mul(3))?;
        }
        match &element {
            Value::Optional(optional) => held.extend(optional.get().cloned()),
            other => {
                return Err(EvalError::new(format!(
                    "value {} is not optional",
                    other.to_go_string()
                )));
            }
        }
    }
    Ok(Value::list(held))
}
