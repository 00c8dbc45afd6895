//! Conversions of type.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Bytes, Double, Duration, Dyn, Int, Param, String, Timestamp, Type, Uint};

const SOURCE: &str = "cel-go common/stdlib/standard.go, stdFunctions";

const A: Sig = Param("A");

/// `type`, `dyn` and the functions named after their result.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("type", "type", &[A], Type(&A), SOURCE),
    OverloadRow::global("bool", "bool_to_bool", &[Bool], Bool, SOURCE),
    OverloadRow::global("bool", "string_to_bool", &[String], Bool, SOURCE),
    OverloadRow::global("bytes", "bytes_to_bytes", &[Bytes], Bytes, SOURCE),
    OverloadRow::global("bytes", "string_to_bytes", &[String], Bytes, SOURCE),
    OverloadRow::global("double", "double_to_double", &[Double], Double, SOURCE),
    OverloadRow::global("double", "int64_to_double", &[Int], Double, SOURCE),
    OverloadRow::global("double", "string_to_double", &[String], Double, SOURCE),
    OverloadRow::global("double", "uint64_to_double", &[Uint], Double, SOURCE),
    OverloadRow::global(
        "duration",
        "duration_to_duration",
        &[Duration],
        Duration,
        SOURCE,
    ),
    OverloadRow::global("duration", "int64_to_duration", &[Int], Duration, SOURCE),
    OverloadRow::global(
        "duration",
        "string_to_duration",
        &[String],
        Duration,
        SOURCE,
    ),
    OverloadRow::global("dyn", "to_dyn", &[A], Dyn, SOURCE),
    OverloadRow::global("int", "int64_to_int64", &[Int], Int, SOURCE),
    OverloadRow::global("int", "double_to_int64", &[Double], Int, SOURCE),
    OverloadRow::global("int", "duration_to_int64", &[Duration], Int, SOURCE),
    OverloadRow::global("int", "string_to_int64", &[String], Int, SOURCE),
    OverloadRow::global("int", "timestamp_to_int64", &[Timestamp], Int, SOURCE),
    OverloadRow::global("int", "uint64_to_int64", &[Uint], Int, SOURCE),
    OverloadRow::global("string", "string_to_string", &[String], String, SOURCE),
    OverloadRow::global("string", "bool_to_string", &[Bool], String, SOURCE),
    OverloadRow::global("string", "bytes_to_string", &[Bytes], String, SOURCE),
    OverloadRow::global("string", "double_to_string", &[Double], String, SOURCE),
    OverloadRow::global("string", "duration_to_string", &[Duration], String, SOURCE),
    OverloadRow::global("string", "int64_to_string", &[Int], String, SOURCE),
    OverloadRow::global(
        "string",
        "timestamp_to_string",
        &[Timestamp],
        String,
        SOURCE,
    ),
    OverloadRow::global("string", "uint64_to_string", &[Uint], String, SOURCE),
    OverloadRow::global(
        "timestamp",
        "timestamp_to_timestamp",
        &[Timestamp],
        Timestamp,
        SOURCE,
    ),
    OverloadRow::global("timestamp", "int64_to_timestamp", &[Int], Timestamp, SOURCE),
    OverloadRow::global(
        "timestamp",
        "string_to_timestamp",
        &[String],
        Timestamp,
        SOURCE,
    ),
    OverloadRow::global("uint", "uint64_to_uint64", &[Uint], Uint, SOURCE),
    OverloadRow::global("uint", "double_to_uint64", &[Double], Uint, SOURCE),
    OverloadRow::global("uint", "int64_to_uint64", &[Int], Uint, SOURCE),
    OverloadRow::global("uint", "string_to_uint64", &[String], Uint, SOURCE),
];
