//! Type conversions.

use std::sync::Arc;

use super::costs::{DECODED, ENCODED};
use crate::cost::{Costs, ResultOf};
use crate::decls::{OverloadRow, Sig, Source};
use crate::types;
use crate::value::{EvalBudget, EvalError, Traits, Value};
use crate::version::CelGo;
use Sig::{Bool, Bytes, Double, Duration, Dyn, Int, Param, String, Timestamp, Type, Uint};

const SOURCE: Source = Source::new("cel-go common/stdlib/standard.go, stdFunctions");

const A: Sig = Param("A");

const TYPE: OverloadRow = OverloadRow::global("type", "type", &[A], Type(&A), Costs::ONE, SOURCE)
    .evaluated_as_singleton(type_of, Traits::NONE);

/// `type`, `dyn` and the conversion functions named after their result type.
pub static ROWS: &[OverloadRow] = &[
    TYPE.before_cel_go(CelGo::V0_28),
    TYPE.evaluated_as_singleton(type_with_parameter, Traits::NONE)
        .since_cel_go(CelGo::V0_28),
    OverloadRow::global("bool", "bool_to_bool", &[Bool], Bool, Costs::ONE, SOURCE)
        .evaluated_by(identity),
    OverloadRow::global(
        "bool",
        "string_to_bool",
        &[String],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_bool),
    OverloadRow::global(
        "bytes",
        "bytes_to_bytes",
        &[Bytes],
        Bytes,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(identity),
    OverloadRow::global(
        "bytes",
        "string_to_bytes",
        &[String],
        Bytes,
        ENCODED,
        SOURCE,
    )
    .evaluated_by(to_bytes),
    OverloadRow::global(
        "double",
        "double_to_double",
        &[Double],
        Double,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(identity),
    OverloadRow::global(
        "double",
        "int64_to_double",
        &[Int],
        Double,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_double),
    OverloadRow::global(
        "double",
        "string_to_double",
        &[String],
        Double,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_double),
    OverloadRow::global(
        "double",
        "uint64_to_double",
        &[Uint],
        Double,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_double),
    OverloadRow::global(
        "duration",
        "duration_to_duration",
        &[Duration],
        Duration,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(identity),
    OverloadRow::global(
        "duration",
        "int64_to_duration",
        &[Int],
        Duration,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_duration)
    .before_cel_go(CelGo::V0_28),
    OverloadRow::global(
        "duration",
        "string_to_duration",
        &[String],
        Duration,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_duration),
    OverloadRow::global("dyn", "to_dyn", &[A], Dyn, Costs::ONE, SOURCE)
        .evaluated_as_singleton(identity, Traits::NONE)
        .with_result_of(ResultOf::Argument),
    OverloadRow::global("int", "int64_to_int64", &[Int], Int, Costs::ONE, SOURCE)
        .evaluated_by(identity),
    OverloadRow::global("int", "double_to_int64", &[Double], Int, Costs::ONE, SOURCE)
        .evaluated_by(to_int),
    OverloadRow::global(
        "int",
        "duration_to_int64",
        &[Duration],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_int),
    OverloadRow::global("int", "string_to_int64", &[String], Int, Costs::ONE, SOURCE)
        .evaluated_by(to_int),
    OverloadRow::global(
        "int",
        "timestamp_to_int64",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_int),
    OverloadRow::global("int", "uint64_to_int64", &[Uint], Int, Costs::ONE, SOURCE)
        .evaluated_by(to_int),
    OverloadRow::global(
        "string",
        "string_to_string",
        &[String],
        String,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(identity),
    OverloadRow::global(
        "string",
        "bool_to_string",
        &[Bool],
        String,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_string),
    OverloadRow::global(
        "string",
        "bytes_to_string",
        &[Bytes],
        String,
        DECODED,
        SOURCE,
    )
    .evaluated_by(to_string),
    OverloadRow::global(
        "string",
        "double_to_string",
        &[Double],
        String,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_string),
    OverloadRow::global(
        "string",
        "duration_to_string",
        &[Duration],
        String,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_string),
    OverloadRow::global(
        "string",
        "int64_to_string",
        &[Int],
        String,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_string),
    OverloadRow::global(
        "string",
        "timestamp_to_string",
        &[Timestamp],
        String,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_string),
    OverloadRow::global(
        "string",
        "uint64_to_string",
        &[Uint],
        String,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_string),
    OverloadRow::global(
        "timestamp",
        "timestamp_to_timestamp",
        &[Timestamp],
        Timestamp,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(identity),
    OverloadRow::global(
        "timestamp",
        "int64_to_timestamp",
        &[Int],
        Timestamp,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_timestamp),
    OverloadRow::global(
        "timestamp",
        "string_to_timestamp",
        &[String],
        Timestamp,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_timestamp),
    OverloadRow::global(
        "uint",
        "uint64_to_uint64",
        &[Uint],
        Uint,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(identity),
    OverloadRow::global(
        "uint",
        "double_to_uint64",
        &[Double],
        Uint,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_uint),
    OverloadRow::global("uint", "int64_to_uint64", &[Int], Uint, Costs::ONE, SOURCE)
        .evaluated_by(to_uint),
    OverloadRow::global(
        "uint",
        "string_to_uint64",
        &[String],
        Uint,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(to_uint),
];

fn only(args: &[Value]) -> Result<&Value, EvalError> {
    match args {
        [value] => Ok(value),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn identity(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args).cloned()
}

fn type_of(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    let type_ = match only(args)? {
        Value::Opaque(opaque) => opaque.own_type()?,
        value => value.type_(),
    };
    Ok(Value::Type(Arc::new(type_)))
}

/// Like [`type_of`], but the type of an optional has the parameter `dyn`.
fn type_with_parameter(budget: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match only(args)? {
        Value::Optional(_) => Ok(Value::Type(Arc::new(types::Type::optional(
            types::Type::Dyn,
        )))),
        _ => type_of(budget, args),
    }
}

fn to_bool(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args)?.convert_to(&types::Type::Bool)
}

fn to_bytes(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args)?.convert_to(&types::Type::Bytes)
}

fn to_double(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args)?.convert_to(&types::Type::Double)
}

fn to_duration(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args)?.convert_to(&types::Type::Duration)
}

fn to_int(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args)?.convert_to(&types::Type::Int)
}

fn to_string(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args)?.convert_to(&types::Type::String)
}

fn to_timestamp(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args)?.convert_to(&types::Type::Timestamp)
}

fn to_uint(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    only(args)?.convert_to(&types::Type::Uint)
}
