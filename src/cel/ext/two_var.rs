//! Comprehensions of two variables.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Map, Param};

const SOURCE: &str = "cel-go ext/comprehensions.go, compreV2Lib.CompileOptions";

const K: Sig = Param("K");
const V: Sig = Param("V");
const MAP_KV: Sig = Map(&K, &V);

/// What the macros that make maps expand to.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global(
        "cel.@mapInsert",
        "@mapInsert_map_key_value",
        &[MAP_KV, K, V],
        MAP_KV,
        SOURCE,
    ),
    OverloadRow::global(
        "cel.@mapInsert",
        "@mapInsert_map_map",
        &[MAP_KV, MAP_KV],
        MAP_KV,
        SOURCE,
    ),
];
