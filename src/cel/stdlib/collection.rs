//! Lists and maps: index, membership and size.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Bytes, Int, List, Map, Param, String};

const SOURCE: &str = "cel-go common/stdlib/standard.go, stdFunctions";

const A: Sig = Param("A");
const B: Sig = Param("B");
const LIST_A: Sig = List(&A);
const MAP_AB: Sig = Map(&A, &B);

/// `[]`, `in` and `size`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("_[_]", "index_list", &[LIST_A, Int], A, SOURCE),
    OverloadRow::global("_[_]", "index_map", &[MAP_AB, A], B, SOURCE),
    OverloadRow::global("@in", "in_list", &[A, LIST_A], Bool, SOURCE),
    OverloadRow::global("@in", "in_map", &[A, MAP_AB], Bool, SOURCE),
    OverloadRow::global("size", "size_bytes", &[Bytes], Int, SOURCE),
    OverloadRow::member("size", "bytes_size", &[Bytes], Int, SOURCE),
    OverloadRow::global("size", "size_list", &[LIST_A], Int, SOURCE),
    OverloadRow::member("size", "list_size", &[LIST_A], Int, SOURCE),
    OverloadRow::global("size", "size_map", &[MAP_AB], Int, SOURCE),
    OverloadRow::member("size", "map_size", &[MAP_AB], Int, SOURCE),
    OverloadRow::global("size", "size_string", &[String], Int, SOURCE),
    OverloadRow::member("size", "string_size", &[String], Int, SOURCE),
];
