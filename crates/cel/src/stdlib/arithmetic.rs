//! Arithmetic operators, including concatenation.

use super::costs::{JOINED_LISTS, JOINED_TEXTS};
use crate::cost::{Costs, ResultOf};
use crate::decls::{OverloadRow, Sig, Source};
use crate::temporal::is_unix_seconds;
use crate::value::{EvalBudget, EvalError, Timestamp as At, Traits, Value};
use Sig::{Bytes, Double, Duration, Int, List, Param, String, Timestamp, Uint};

const SOURCE: Source = Source::new("cel-go common/stdlib/standard.go, stdFunctions");

const A: Sig = Param("A");
const LIST_A: Sig = List(&A);

/// `+`, `/`, `%`, `*` and both forms of `-`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global(
        "_+_",
        "add_bytes",
        &[Bytes, Bytes],
        Bytes,
        JOINED_TEXTS,
        SOURCE,
    )
    .evaluated_as_singleton(add, Traits::ADDER)
    .with_result_of(ResultOf::Operands),
    OverloadRow::global(
        "_+_",
        "add_double",
        &[Double, Double],
        Double,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(add, Traits::ADDER),
    OverloadRow::global(
        "_+_",
        "add_duration_duration",
        &[Duration, Duration],
        Duration,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(add, Traits::ADDER),
    OverloadRow::global(
        "_+_",
        "add_duration_timestamp",
        &[Duration, Timestamp],
        Timestamp,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(add, Traits::ADDER),
    OverloadRow::global(
        "_+_",
        "add_timestamp_duration",
        &[Timestamp, Duration],
        Timestamp,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(add, Traits::ADDER),
    OverloadRow::global("_+_", "add_int64", &[Int, Int], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(add, Traits::ADDER),
    OverloadRow::global(
        "_+_",
        "add_list",
        &[LIST_A, LIST_A],
        LIST_A,
        JOINED_LISTS,
        SOURCE,
    )
    .evaluated_as_singleton(add, Traits::ADDER)
    .with_result_of(ResultOf::Operands),
    OverloadRow::global(
        "_+_",
        "add_string",
        &[String, String],
        String,
        JOINED_TEXTS,
        SOURCE,
    )
    .evaluated_as_singleton(add, Traits::ADDER)
    .with_result_of(ResultOf::Operands),
    OverloadRow::global("_+_", "add_uint64", &[Uint, Uint], Uint, Costs::ONE, SOURCE)
        .evaluated_as_singleton(add, Traits::ADDER),
    OverloadRow::global(
        "_/_",
        "divide_double",
        &[Double, Double],
        Double,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(divide, Traits::DIVIDER),
    OverloadRow::global("_/_", "divide_int64", &[Int, Int], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(divide, Traits::DIVIDER),
    OverloadRow::global(
        "_/_",
        "divide_uint64",
        &[Uint, Uint],
        Uint,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(divide, Traits::DIVIDER),
    OverloadRow::global("_%_", "modulo_int64", &[Int, Int], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(modulo, Traits::MODDER),
    OverloadRow::global(
        "_%_",
        "modulo_uint64",
        &[Uint, Uint],
        Uint,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(modulo, Traits::MODDER),
    OverloadRow::global(
        "_*_",
        "multiply_double",
        &[Double, Double],
        Double,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(multiply, Traits::MULTIPLIER),
    OverloadRow::global(
        "_*_",
        "multiply_int64",
        &[Int, Int],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(multiply, Traits::MULTIPLIER),
    OverloadRow::global(
        "_*_",
        "multiply_uint64",
        &[Uint, Uint],
        Uint,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(multiply, Traits::MULTIPLIER),
    OverloadRow::global("-_", "negate_double", &[Double], Double, Costs::ONE, SOURCE)
        .evaluated_as_singleton(negate, Traits::NEGATER),
    OverloadRow::global("-_", "negate_int64", &[Int], Int, Costs::ONE, SOURCE)
        .evaluated_as_singleton(negate, Traits::NEGATER),
    OverloadRow::global(
        "_-_",
        "subtract_double",
        &[Double, Double],
        Double,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(subtract, Traits::SUBTRACTOR),
    OverloadRow::global(
        "_-_",
        "subtract_duration_duration",
        &[Duration, Duration],
        Duration,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(subtract, Traits::SUBTRACTOR),
    OverloadRow::global(
        "_-_",
        "subtract_int64",
        &[Int, Int],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(subtract, Traits::SUBTRACTOR),
    OverloadRow::global(
        "_-_",
        "subtract_timestamp_duration",
        &[Timestamp, Duration],
        Timestamp,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(subtract, Traits::SUBTRACTOR),
    OverloadRow::global(
        "_-_",
        "subtract_timestamp_timestamp",
        &[Timestamp, Timestamp],
        Duration,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(subtract, Traits::SUBTRACTOR),
    OverloadRow::global(
        "_-_",
        "subtract_uint64",
        &[Uint, Uint],
        Uint,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(subtract, Traits::SUBTRACTOR),
];

const INT_OVERFLOW: EvalError = EvalError::fixed("integer overflow");
const UINT_OVERFLOW: EvalError = EvalError::fixed("unsigned integer overflow");
const DIVISION_BY_ZERO: EvalError = EvalError::fixed("division by zero");
const MODULUS_BY_ZERO: EvalError = EvalError::fixed("modulus by zero");
const TIMESTAMP_OVERFLOW: EvalError = EvalError::fixed("timestamp overflow");
const NANOS_PER_SECOND: i64 = 1_000_000_000;

type Outcome = Result<Value, EvalError>;

fn int(value: Option<i64>) -> Outcome {
    value.map(Value::Int).ok_or(INT_OVERFLOW)
}

fn uint(value: Option<u64>) -> Outcome {
    value.map(Value::Uint).ok_or(UINT_OVERFLOW)
}

fn duration(nanos: Option<i64>) -> Outcome {
    nanos.map(Value::Duration).ok_or(INT_OVERFLOW)
}

fn add(budget: &EvalBudget, args: &[Value]) -> Outcome {
    match args {
        [left, right] => plus(left, right, budget),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Returns the sum or concatenation of two values.
///
/// # Errors
///
/// Returns `no such overload` for operands that cannot be added, and an error if the result overflows or exceeds
/// `budget`.
///
/// Source: cel-go `common/types`, `Add` of each type.
pub fn plus(left: &Value, right: &Value, budget: &EvalBudget) -> Outcome {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_add(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_add(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            budget.reserve_text(a.len().saturating_add(b.len()))?;
            Ok(Value::from([&**a, &**b].concat()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            budget.reserve_text(a.len().saturating_add(b.len()))?;
            Ok(Value::bytes([&**a, &**b].concat()))
        }
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_add(*b)),
        (Value::Duration(nanos), Value::Timestamp(at))
        | (Value::Timestamp(at), Value::Duration(nanos)) => later(*at, *nanos),
        (Value::List(a), other) => {
            if let Some(own) = a.source().and_then(|source| source.add(other, budget)) {
                return own;
            }
            match other {
                Value::List(b) => {
                    budget.allocate(a.join_size(b))?;
                    Ok(Value::List(a.clone().join(b)))
                }
                _ => Err(EvalError::no_such_overload()),
            }
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Adds a duration in nanoseconds to a timestamp.
///
/// Source: cel-go `common/types/overflow.go`, `addTimeDurationChecked`.
fn later(at: At, nanos: i64) -> Outcome {
    let sum = i64::from(at.nanos).saturating_add(nanos.rem_euclid(NANOS_PER_SECOND));
    let seconds = at
        .seconds
        .checked_add(nanos.div_euclid(NANOS_PER_SECOND))
        .and_then(|seconds| seconds.checked_add(sum.div_euclid(NANOS_PER_SECOND)))
        .ok_or(INT_OVERFLOW)?;
    if !is_unix_seconds(seconds) {
        return Err(TIMESTAMP_OVERFLOW);
    }
    Ok(Value::Timestamp(At {
        seconds,
        nanos: u32::try_from(sum.rem_euclid(NANOS_PER_SECOND)).unwrap_or(0),
        offset_seconds: at.offset_seconds,
    }))
}

/// Source: cel-go `common/types`, `Subtract` of each type.
fn subtract(_: &EvalBudget, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_sub(*b)),
        [Value::Timestamp(at), Value::Duration(nanos)] => {
            later(*at, nanos.checked_neg().ok_or(INT_OVERFLOW)?)
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => {
            let nanos = i64::from(a.nanos).saturating_sub(i64::from(b.nanos));
            let seconds = a.seconds.checked_sub(b.seconds);
            let scaled = seconds.and_then(|seconds| seconds.checked_mul(NANOS_PER_SECOND));
            duration(scaled.and_then(|scaled| scaled.checked_add(nanos)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Source: cel-go `common/types`, `Multiply` of each type.
fn multiply(_: &EvalBudget, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_mul(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_mul(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Source: cel-go `common/types`, `Divide` of each type.
fn divide(_: &EvalBudget, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(DIVISION_BY_ZERO),
        [Value::Int(a), Value::Int(b)] => int(a.checked_div(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_div(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Source: cel-go `common/types`, `Modulo` of each type.
fn modulo(_: &EvalBudget, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => Err(MODULUS_BY_ZERO),
        [Value::Int(a), Value::Int(b)] => int(a.checked_rem(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_rem(*b)),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Source: cel-go `common/stdlib/standard.go` (`operators.Negate`), `common/types`, `Negate` of each type.
fn negate(_: &EvalBudget, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(value)] => int(value.checked_neg()),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        [Value::Duration(nanos)] => duration(nanos.checked_neg()),
        // Upstream can negate a `bool`, but the operator `-` has no overload for it.
        _ => Err(EvalError::no_such_overload()),
    }
}
