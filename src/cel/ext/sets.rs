//! The sets extension.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, List, Param};

const SOURCE: &str = "cel-go ext/sets.go, setsLib.CompileOptions";

const T: Sig = Param("T");
const LIST_T: Sig = List(&T);

/// Lists taken as sets.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global(
        "sets.contains",
        "list_sets_contains_list",
        &[LIST_T, LIST_T],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "sets.equivalent",
        "list_sets_equivalent_list",
        &[LIST_T, LIST_T],
        Bool,
        SOURCE,
    ),
    OverloadRow::global(
        "sets.intersects",
        "list_sets_intersects_list",
        &[LIST_T, LIST_T],
        Bool,
        SOURCE,
    ),
];
