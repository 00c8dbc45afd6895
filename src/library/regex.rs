//! Searches by regular expression.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Int, List, String};

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/regex.go, regexLibraryDecls";

/// The first match, and all matches.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "find",
        "string_find_string",
        &[String, String],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "findAll",
        "string_find_all_string",
        &[String, String],
        List(&String),
        SOURCE,
    ),
    OverloadRow::member(
        "findAll",
        "string_find_all_string_int",
        &[String, String, Int],
        List(&String),
        SOURCE,
    ),
];
