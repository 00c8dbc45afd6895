//! Equality and ordering operators.

use std::cmp::Ordering;

use super::costs::COMPARED;
use crate::cost::Costs;
use crate::decls::{Operator, OverloadRow, Sig, Source};
use crate::value::{EvalBudget, EvalError, Traits, Value};
use Sig::{Bool, Bytes, Double, Duration, Int, Param, String, Timestamp, Uint};

const SOURCE: Source = Source::new("cel-go common/stdlib/standard.go, stdFunctions");

const A: Sig = Param("A");

/// `==`.
pub const EQUALS: OverloadRow =
    OverloadRow::global("_==_", "equals", &[A, A], Bool, COMPARED, SOURCE)
        .evaluated_as(Operator::Equal);

/// `==`, `!=`, `<`, `<=`, `>` and `>=`.
pub static ROWS: &[OverloadRow] = &[
    EQUALS,
    OverloadRow::global("_!=_", "not_equals", &[A, A], Bool, COMPARED, SOURCE)
        .evaluated_as(Operator::NotEqual),
    OverloadRow::global("_<_", "less_bool", &[Bool, Bool], Bool, Costs::ONE, SOURCE)
        .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global("_<_", "less_int64", &[Int, Int], Bool, Costs::ONE, SOURCE)
        .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_int64_double",
        &[Int, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_int64_uint64",
        &[Int, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_uint64",
        &[Uint, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_uint64_double",
        &[Uint, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_uint64_int64",
        &[Uint, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_double",
        &[Double, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_double_int64",
        &[Double, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_double_uint64",
        &[Double, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_string",
        &[String, String],
        Bool,
        COMPARED,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global("_<_", "less_bytes", &[Bytes, Bytes], Bool, COMPARED, SOURCE)
        .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_timestamp",
        &[Timestamp, Timestamp],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<_",
        "less_duration",
        &[Duration, Duration],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_bool",
        &[Bool, Bool],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_int64",
        &[Int, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_int64_double",
        &[Int, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_int64_uint64",
        &[Int, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_uint64",
        &[Uint, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_uint64_double",
        &[Uint, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_uint64_int64",
        &[Uint, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_double",
        &[Double, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_double_int64",
        &[Double, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_double_uint64",
        &[Double, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_string",
        &[String, String],
        Bool,
        COMPARED,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_bytes",
        &[Bytes, Bytes],
        Bool,
        COMPARED,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_timestamp",
        &[Timestamp, Timestamp],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_<=_",
        "less_equals_duration",
        &[Duration, Duration],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(less_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_bool",
        &[Bool, Bool],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_int64",
        &[Int, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_int64_double",
        &[Int, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_int64_uint64",
        &[Int, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_uint64",
        &[Uint, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_uint64_double",
        &[Uint, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_uint64_int64",
        &[Uint, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_double",
        &[Double, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_double_int64",
        &[Double, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_double_uint64",
        &[Double, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_string",
        &[String, String],
        Bool,
        COMPARED,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_bytes",
        &[Bytes, Bytes],
        Bool,
        COMPARED,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_timestamp",
        &[Timestamp, Timestamp],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>_",
        "greater_duration",
        &[Duration, Duration],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_bool",
        &[Bool, Bool],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_int64",
        &[Int, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_int64_double",
        &[Int, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_int64_uint64",
        &[Int, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_uint64",
        &[Uint, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_uint64_double",
        &[Uint, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_uint64_int64",
        &[Uint, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_double",
        &[Double, Double],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_double_int64",
        &[Double, Int],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_double_uint64",
        &[Double, Uint],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_string",
        &[String, String],
        Bool,
        COMPARED,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_bytes",
        &[Bytes, Bytes],
        Bool,
        COMPARED,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_timestamp",
        &[Timestamp, Timestamp],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
    OverloadRow::global(
        "_>=_",
        "greater_equals_duration",
        &[Duration, Duration],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as_singleton(greater_equals, Traits::COMPARER),
];

/// Compares the two arguments of a call.
fn order(args: &[Value]) -> Result<Ordering, EvalError> {
    match args {
        [left, right] => left.compare(right),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn less(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    order(args).map(|order| order.is_lt().into())
}

fn less_equals(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    order(args).map(|order| order.is_le().into())
}

fn greater(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    order(args).map(|order| order.is_gt().into())
}

fn greater_equals(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    order(args).map(|order| order.is_ge().into())
}
