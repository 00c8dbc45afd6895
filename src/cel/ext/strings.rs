//! The strings extension, up to version 2.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Dyn, Int, List, String};

const SOURCE: &str = "cel-go ext/strings.go, stringLib.CompileOptions";

/// What every version has.
pub static VERSION_0: &[OverloadRow] = &[
    OverloadRow::member(
        "charAt",
        "string_char_at_int",
        &[String, Int],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "indexOf",
        "string_index_of_string",
        &[String, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member(
        "indexOf",
        "string_index_of_string_int",
        &[String, String, Int],
        Int,
        SOURCE,
    ),
    OverloadRow::member(
        "lastIndexOf",
        "string_last_index_of_string",
        &[String, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member(
        "lastIndexOf",
        "string_last_index_of_string_int",
        &[String, String, Int],
        Int,
        SOURCE,
    ),
    OverloadRow::member(
        "lowerAscii",
        "string_lower_ascii",
        &[String],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "replace",
        "string_replace_string_string",
        &[String, String, String],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "replace",
        "string_replace_string_string_int",
        &[String, String, String, Int],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "split",
        "string_split_string",
        &[String, String],
        List(&String),
        SOURCE,
    ),
    OverloadRow::member(
        "split",
        "string_split_string_int",
        &[String, String, Int],
        List(&String),
        SOURCE,
    ),
    OverloadRow::member(
        "substring",
        "string_substring_int",
        &[String, Int],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "substring",
        "string_substring_int_int",
        &[String, Int, Int],
        String,
        SOURCE,
    ),
    OverloadRow::member("trim", "string_trim", &[String], String, SOURCE),
    OverloadRow::member(
        "upperAscii",
        "string_upper_ascii",
        &[String],
        String,
        SOURCE,
    ),
    OverloadRow::member("join", "list_join", &[List(&String)], String, SOURCE),
    OverloadRow::member(
        "join",
        "list_join_string",
        &[List(&String), String],
        String,
        SOURCE,
    ),
];

/// What version 1 adds.
pub static VERSION_1: &[OverloadRow] = &[
    OverloadRow::member(
        "format",
        "string_format",
        &[String, List(&Dyn)],
        String,
        SOURCE,
    ),
    OverloadRow::global("strings.quote", "strings_quote", &[String], String, SOURCE),
];
