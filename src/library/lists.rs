//! Lists: order, sums and positions.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Bytes, Double, Duration, Int, List, Param, String, Timestamp, Uint};

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/lists.go, listsLibraryDecls";

const A: Sig = Param("A");
const LIST_A: Sig = List(&A);

/// Functions on lists of comparable elements, and positions in any list.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "isSorted",
        "list_int_is_sorted_bool",
        &[List(&Int)],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isSorted",
        "list_uint_is_sorted_bool",
        &[List(&Uint)],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isSorted",
        "list_double_is_sorted_bool",
        &[List(&Double)],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isSorted",
        "list_bool_is_sorted_bool",
        &[List(&Bool)],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isSorted",
        "list_duration_is_sorted_bool",
        &[List(&Duration)],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isSorted",
        "list_timestamp_is_sorted_bool",
        &[List(&Timestamp)],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isSorted",
        "list_string_is_sorted_bool",
        &[List(&String)],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isSorted",
        "list_bytes_is_sorted_bool",
        &[List(&Bytes)],
        Bool,
        SOURCE,
    ),
    OverloadRow::member("sum", "list_int_sum_int", &[List(&Int)], Int, SOURCE),
    OverloadRow::member("sum", "list_uint_sum_uint", &[List(&Uint)], Uint, SOURCE),
    OverloadRow::member(
        "sum",
        "list_double_sum_double",
        &[List(&Double)],
        Double,
        SOURCE,
    ),
    OverloadRow::member(
        "sum",
        "list_duration_sum_duration",
        &[List(&Duration)],
        Duration,
        SOURCE,
    ),
    OverloadRow::member("max", "list_int_max_int", &[List(&Int)], Int, SOURCE),
    OverloadRow::member("max", "list_uint_max_uint", &[List(&Uint)], Uint, SOURCE),
    OverloadRow::member(
        "max",
        "list_double_max_double",
        &[List(&Double)],
        Double,
        SOURCE,
    ),
    OverloadRow::member("max", "list_bool_max_bool", &[List(&Bool)], Bool, SOURCE),
    OverloadRow::member(
        "max",
        "list_duration_max_duration",
        &[List(&Duration)],
        Duration,
        SOURCE,
    ),
    OverloadRow::member(
        "max",
        "list_timestamp_max_timestamp",
        &[List(&Timestamp)],
        Timestamp,
        SOURCE,
    ),
    OverloadRow::member(
        "max",
        "list_string_max_string",
        &[List(&String)],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "max",
        "list_bytes_max_bytes",
        &[List(&Bytes)],
        Bytes,
        SOURCE,
    ),
    OverloadRow::member("min", "list_int_min_int", &[List(&Int)], Int, SOURCE),
    OverloadRow::member("min", "list_uint_min_uint", &[List(&Uint)], Uint, SOURCE),
    OverloadRow::member(
        "min",
        "list_double_min_double",
        &[List(&Double)],
        Double,
        SOURCE,
    ),
    OverloadRow::member("min", "list_bool_min_bool", &[List(&Bool)], Bool, SOURCE),
    OverloadRow::member(
        "min",
        "list_duration_min_duration",
        &[List(&Duration)],
        Duration,
        SOURCE,
    ),
    OverloadRow::member(
        "min",
        "list_timestamp_min_timestamp",
        &[List(&Timestamp)],
        Timestamp,
        SOURCE,
    ),
    OverloadRow::member(
        "min",
        "list_string_min_string",
        &[List(&String)],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "min",
        "list_bytes_min_bytes",
        &[List(&Bytes)],
        Bytes,
        SOURCE,
    ),
    OverloadRow::member("indexOf", "list_a_index_of_int", &[LIST_A, A], Int, SOURCE),
    OverloadRow::member(
        "lastIndexOf",
        "list_a_last_index_of_int",
        &[LIST_A, A],
        Int,
        SOURCE,
    ),
];
