//! Equality and order.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Bytes, Double, Duration, Int, Param, String, Timestamp, Uint};

const SOURCE: &str = "cel-go common/stdlib/standard.go, stdFunctions";

const A: Sig = Param("A");

/// `==`, `!=`, `<`, `<=`, `>` and `>=`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("_==_", "equals", &[A, A], Bool, SOURCE),
    OverloadRow::global("_!=_", "not_equals", &[A, A], Bool, SOURCE),
    OverloadRow::global("_<_", "less_bool", &[Bool, Bool], Bool, SOURCE),
    OverloadRow::global("_<_", "less_int64", &[Int, Int], Bool, SOURCE),
    OverloadRow::global("_<_", "less_int64_double", &[Int, Double], Bool, SOURCE),
    OverloadRow::global("_<_", "less_int64_uint64", &[Int, Uint], Bool, SOURCE),
    OverloadRow::global("_<_", "less_uint64", &[Uint, Uint], Bool, SOURCE),
    OverloadRow::global("_<_", "less_uint64_double", &[Uint, Double], Bool, SOURCE),
    OverloadRow::global("_<_", "less_uint64_int64", &[Uint, Int], Bool, SOURCE),
    OverloadRow::global("_<_", "less_double", &[Double, Double], Bool, SOURCE),
    OverloadRow::global("_<_", "less_double_int64", &[Double, Int], Bool, SOURCE),
    OverloadRow::global("_<_", "less_double_uint64", &[Double, Uint], Bool, SOURCE),
    OverloadRow::global("_<_", "less_string", &[String, String], Bool, SOURCE),
    OverloadRow::global("_<_", "less_bytes", &[Bytes, Bytes], Bool, SOURCE),
    OverloadRow::global(
        "_<_",
        "less_timestamp",
        &[Timestamp, Timestamp],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("_<_", "less_duration", &[Duration, Duration], Bool, SOURCE),
    OverloadRow::global("_<=_", "less_equals_bool", &[Bool, Bool], Bool, SOURCE),
    OverloadRow::global("_<=_", "less_equals_int64", &[Int, Int], Bool, SOURCE),
    OverloadRow::global(
        "_<=_",
        "less_equals_int64_double",
        &[Int, Double],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_<=_",
        "less_equals_int64_uint64",
        &[Int, Uint],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("_<=_", "less_equals_uint64", &[Uint, Uint], Bool, SOURCE),
    OverloadRow::global(
        "_<=_",
        "less_equals_uint64_double",
        &[Uint, Double],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_<=_",
        "less_equals_uint64_int64",
        &[Uint, Int],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_<=_",
        "less_equals_double",
        &[Double, Double],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_<=_",
        "less_equals_double_int64",
        &[Double, Int],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_<=_",
        "less_equals_double_uint64",
        &[Double, Uint],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_<=_",
        "less_equals_string",
        &[String, String],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("_<=_", "less_equals_bytes", &[Bytes, Bytes], Bool, SOURCE),
    OverloadRow::global(
        "_<=_",
        "less_equals_timestamp",
        &[Timestamp, Timestamp],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_<=_",
        "less_equals_duration",
        &[Duration, Duration],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("_>_", "greater_bool", &[Bool, Bool], Bool, SOURCE),
    OverloadRow::global("_>_", "greater_int64", &[Int, Int], Bool, SOURCE),
    OverloadRow::global("_>_", "greater_int64_double", &[Int, Double], Bool, SOURCE),
    OverloadRow::global("_>_", "greater_int64_uint64", &[Int, Uint], Bool, SOURCE),
    OverloadRow::global("_>_", "greater_uint64", &[Uint, Uint], Bool, SOURCE),
    OverloadRow::global(
        "_>_",
        "greater_uint64_double",
        &[Uint, Double],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("_>_", "greater_uint64_int64", &[Uint, Int], Bool, SOURCE),
    OverloadRow::global("_>_", "greater_double", &[Double, Double], Bool, SOURCE),
    OverloadRow::global("_>_", "greater_double_int64", &[Double, Int], Bool, SOURCE),
    OverloadRow::global(
        "_>_",
        "greater_double_uint64",
        &[Double, Uint],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("_>_", "greater_string", &[String, String], Bool, SOURCE),
    OverloadRow::global("_>_", "greater_bytes", &[Bytes, Bytes], Bool, SOURCE),
    OverloadRow::global(
        "_>_",
        "greater_timestamp",
        &[Timestamp, Timestamp],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>_",
        "greater_duration",
        &[Duration, Duration],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("_>=_", "greater_equals_bool", &[Bool, Bool], Bool, SOURCE),
    OverloadRow::global("_>=_", "greater_equals_int64", &[Int, Int], Bool, SOURCE),
    OverloadRow::global(
        "_>=_",
        "greater_equals_int64_double",
        &[Int, Double],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_int64_uint64",
        &[Int, Uint],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("_>=_", "greater_equals_uint64", &[Uint, Uint], Bool, SOURCE),
    OverloadRow::global(
        "_>=_",
        "greater_equals_uint64_double",
        &[Uint, Double],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_uint64_int64",
        &[Uint, Int],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_double",
        &[Double, Double],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_double_int64",
        &[Double, Int],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_double_uint64",
        &[Double, Uint],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_string",
        &[String, String],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_bytes",
        &[Bytes, Bytes],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_timestamp",
        &[Timestamp, Timestamp],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "_>=_",
        "greater_equals_duration",
        &[Duration, Duration],
        Bool,
        SOURCE,
    ),
];

/// Whether `row` orders numbers of two different types.
///
/// Source: cel-go `checker/env.go`, `crossTypeNumericComparisonOverloads`.
#[must_use]
pub fn is_cross_type(row: &OverloadRow) -> bool {
    matches!(row.function, "_<_" | "_<=_" | "_>_" | "_>=_")
        && matches!(row.args, [left, right] if left != right)
}
