//! Strings: substrings and regular expressions.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, String};

const SOURCE: &str = "cel-go common/stdlib/standard.go, stdFunctions";

/// `contains`, `endsWith`, `startsWith` and `matches`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "contains",
        "contains_string",
        &[String, String],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "endsWith",
        "ends_with_string",
        &[String, String],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "startsWith",
        "starts_with_string",
        &[String, String],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("matches", "matches", &[String, String], Bool, SOURCE),
    OverloadRow::member("matches", "matches_string", &[String, String], Bool, SOURCE),
];
