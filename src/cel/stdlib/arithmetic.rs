//! The arithmetic operators, with concatenation.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bytes, Double, Duration, Int, List, Param, String, Timestamp, Uint};

const SOURCE: &str = "cel-go common/stdlib/standard.go, stdFunctions";

const A: Sig = Param("A");
const LIST_A: Sig = List(&A);

/// `+`, `/`, `%`, `*` and both forms of `-`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("_+_", "add_bytes", &[Bytes, Bytes], Bytes, SOURCE),
    OverloadRow::global("_+_", "add_double", &[Double, Double], Double, SOURCE),
    OverloadRow::global(
        "_+_",
        "add_duration_duration",
        &[Duration, Duration],
        Duration,
        SOURCE,
    ),
    OverloadRow::global(
        "_+_",
        "add_duration_timestamp",
        &[Duration, Timestamp],
        Timestamp,
        SOURCE,
    ),
    OverloadRow::global(
        "_+_",
        "add_timestamp_duration",
        &[Timestamp, Duration],
        Timestamp,
        SOURCE,
    ),
    OverloadRow::global("_+_", "add_int64", &[Int, Int], Int, SOURCE),
    OverloadRow::global("_+_", "add_list", &[LIST_A, LIST_A], LIST_A, SOURCE),
    OverloadRow::global("_+_", "add_string", &[String, String], String, SOURCE),
    OverloadRow::global("_+_", "add_uint64", &[Uint, Uint], Uint, SOURCE),
    OverloadRow::global("_/_", "divide_double", &[Double, Double], Double, SOURCE),
    OverloadRow::global("_/_", "divide_int64", &[Int, Int], Int, SOURCE),
    OverloadRow::global("_/_", "divide_uint64", &[Uint, Uint], Uint, SOURCE),
    OverloadRow::global("_%_", "modulo_int64", &[Int, Int], Int, SOURCE),
    OverloadRow::global("_%_", "modulo_uint64", &[Uint, Uint], Uint, SOURCE),
    OverloadRow::global("_*_", "multiply_double", &[Double, Double], Double, SOURCE),
    OverloadRow::global("_*_", "multiply_int64", &[Int, Int], Int, SOURCE),
    OverloadRow::global("_*_", "multiply_uint64", &[Uint, Uint], Uint, SOURCE),
    OverloadRow::global("-_", "negate_double", &[Double], Double, SOURCE),
    OverloadRow::global("-_", "negate_int64", &[Int], Int, SOURCE),
    OverloadRow::global("_-_", "subtract_double", &[Double, Double], Double, SOURCE),
    OverloadRow::global(
        "_-_",
        "subtract_duration_duration",
        &[Duration, Duration],
        Duration,
        SOURCE,
    ),
    OverloadRow::global("_-_", "subtract_int64", &[Int, Int], Int, SOURCE),
    OverloadRow::global(
        "_-_",
        "subtract_timestamp_duration",
        &[Timestamp, Duration],
        Timestamp,
        SOURCE,
    ),
    OverloadRow::global(
        "_-_",
        "subtract_timestamp_timestamp",
        &[Timestamp, Timestamp],
        Duration,
        SOURCE,
    ),
    OverloadRow::global("_-_", "subtract_uint64", &[Uint, Uint], Uint, SOURCE),
];
