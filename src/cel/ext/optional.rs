//! Optional values, up to version 2.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Dyn, Int, List, Map, Optional, Param, String};

const SOURCE: &str = "cel-go cel/library.go, optionalLib.CompileOptions";

const K: Sig = Param("K");
const V: Sig = Param("V");
const LIST_V: Sig = List(&V);
const MAP_KV: Sig = Map(&K, &V);
const OPTIONAL_V: Sig = Optional(&V);

/// What every version has.
pub static VERSION_0: &[OverloadRow] = &[
    OverloadRow::global("optional.of", "optional_of", &[V], OPTIONAL_V, SOURCE),
    OverloadRow::global(
        "optional.ofNonZeroValue",
        "optional_ofNonZeroValue",
        &[V],
        OPTIONAL_V,
        SOURCE,
    ),
    OverloadRow::global("optional.none", "optional_none", &[], OPTIONAL_V, SOURCE),
    OverloadRow::member("value", "optional_value", &[OPTIONAL_V], V, SOURCE),
    OverloadRow::member("hasValue", "optional_hasValue", &[OPTIONAL_V], Bool, SOURCE),
    OverloadRow::member(
        "or",
        "optional_or_optional",
        &[OPTIONAL_V, OPTIONAL_V],
        OPTIONAL_V,
        SOURCE,
    ),
    OverloadRow::member(
        "orValue",
        "optional_orValue_value",
        &[OPTIONAL_V, V],
        V,
        SOURCE,
    ),
    OverloadRow::global(
        "_?._",
        "select_optional_field",
        &[Dyn, String],
        OPTIONAL_V,
        SOURCE,
    ),
    OverloadRow::global(
        "_[?_]",
        "list_optindex_optional_int",
        &[LIST_V, Int],
        OPTIONAL_V,
        SOURCE,
    ),
    OverloadRow::global(
        "_[?_]",
        "optional_list_optindex_optional_int",
        &[Optional(&LIST_V), Int],
        OPTIONAL_V,
        SOURCE,
    ),
    OverloadRow::global(
        "_[?_]",
        "map_optindex_optional_value",
        &[MAP_KV, K],
        OPTIONAL_V,
        SOURCE,
    ),
    OverloadRow::global(
        "_[?_]",
        "optional_map_optindex_optional_value",
        &[Optional(&MAP_KV), K],
        OPTIONAL_V,
        SOURCE,
    ),
    OverloadRow::global(
        "_[_]",
        "optional_list_index_int",
        &[Optional(&LIST_V), Int],
        OPTIONAL_V,
        SOURCE,
    ),
    OverloadRow::global(
        "_[_]",
        "optional_map_index_value",
        &[Optional(&MAP_KV), K],
        OPTIONAL_V,
        SOURCE,
    ),
];

/// What version 2 adds.
pub static VERSION_2: &[OverloadRow] = &[
    OverloadRow::member("last", "list_last", &[LIST_V], OPTIONAL_V, SOURCE),
    OverloadRow::member("first", "list_first", &[LIST_V], OPTIONAL_V, SOURCE),
    OverloadRow::global(
        "optional.unwrap",
        "optional_unwrap",
        &[List(&OPTIONAL_V)],
        LIST_V,
        SOURCE,
    ),
    OverloadRow::member(
        "unwrapOpt",
        "optional_unwrapOpt",
        &[List(&OPTIONAL_V)],
        LIST_V,
        SOURCE,
    ),
];
