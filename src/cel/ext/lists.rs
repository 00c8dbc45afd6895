//! The lists extension, up to version 3.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Bytes, Double, Duration, Dyn, Int, List, Param, String, Timestamp, Uint};

const SOURCE: &str = "cel-go ext/lists.go, listsLib.CompileOptions";

const T: Sig = Param("T");
const LIST_T: Sig = List(&T);

/// What every version has.
pub static VERSION_0: &[OverloadRow] = &[OverloadRow::member(
    "slice",
    "list_slice",
    &[LIST_T, Int, Int],
    LIST_T,
    SOURCE,
)];

/// What version 1 adds.
pub static VERSION_1: &[OverloadRow] = &[
    OverloadRow::member("flatten", "list_flatten", &[List(&LIST_T)], LIST_T, SOURCE),
    OverloadRow::member(
        "flatten",
        "list_flatten_int",
        &[List(&Dyn), Int],
        List(&Dyn),
        SOURCE,
    ),
];

/// What version 2 adds.
pub static VERSION_2: &[OverloadRow] = &[
    OverloadRow::member("sort", "list_int_sort", &[List(&Int)], List(&Int), SOURCE),
    OverloadRow::member(
        "sort",
        "list_uint_sort",
        &[List(&Uint)],
        List(&Uint),
        SOURCE,
    ),
    OverloadRow::member(
        "sort",
        "list_double_sort",
        &[List(&Double)],
        List(&Double),
        SOURCE,
    ),
    OverloadRow::member(
        "sort",
        "list_bool_sort",
        &[List(&Bool)],
        List(&Bool),
        SOURCE,
    ),
    OverloadRow::member(
        "sort",
        "list_google.protobuf.Duration_sort",
        &[List(&Duration)],
        List(&Duration),
        SOURCE,
    ),
    OverloadRow::member(
        "sort",
        "list_google.protobuf.Timestamp_sort",
        &[List(&Timestamp)],
        List(&Timestamp),
        SOURCE,
    ),
    OverloadRow::member(
        "sort",
        "list_string_sort",
        &[List(&String)],
        List(&String),
        SOURCE,
    ),
    OverloadRow::member(
        "sort",
        "list_bytes_sort",
        &[List(&Bytes)],
        List(&Bytes),
        SOURCE,
    ),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_int_sortByAssociatedKeys",
        &[LIST_T, List(&Int)],
        LIST_T,
        SOURCE,
    ),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_uint_sortByAssociatedKeys",
        &[LIST_T, List(&Uint)],
        LIST_T,
        SOURCE,
    ),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_double_sortByAssociatedKeys",
        &[LIST_T, List(&Double)],
        LIST_T,
        SOURCE,
    ),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_bool_sortByAssociatedKeys",
        &[LIST_T, List(&Bool)],
        LIST_T,
        SOURCE,
    ),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_google.protobuf.Duration_sortByAssociatedKeys",
        &[LIST_T, List(&Duration)],
        LIST_T,
        SOURCE,
    ),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_google.protobuf.Timestamp_sortByAssociatedKeys",
        &[LIST_T, List(&Timestamp)],
        LIST_T,
        SOURCE,
    ),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_string_sortByAssociatedKeys",
        &[LIST_T, List(&String)],
        LIST_T,
        SOURCE,
    ),
    OverloadRow::member(
        "@sortByAssociatedKeys",
        "list_bytes_sortByAssociatedKeys",
        &[LIST_T, List(&Bytes)],
        LIST_T,
        SOURCE,
    ),
    OverloadRow::global("lists.range", "lists_range", &[Int], List(&Int), SOURCE),
    OverloadRow::member("reverse", "list_reverse", &[LIST_T], LIST_T, SOURCE),
    OverloadRow::member("distinct", "list_distinct", &[LIST_T], LIST_T, SOURCE),
];
