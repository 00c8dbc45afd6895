//! CEL's equality and strings extension, with the costs of the API server.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator`.

use super::costs::{EQUAL, JOINED, READ, REPLACED, SCANNED, SPLIT};
use crate::version::V1_29;
use cel::decls::OverloadRow;
use cel::ext::strings::{self, FORMAT, QUOTE};
use cel::stdlib::comparison;

/// The operator `==`.
pub static EQUALITY: &[OverloadRow] = &[comparison::EQUALS.costing(EQUAL)];

/// The functions of version 0 of the strings extension.
pub static VERSION_0: &[OverloadRow] = &[
    strings::CHAR_AT,
    strings::INDEX_OF.costing(SCANNED),
    strings::INDEX_OF_FROM.costing(SCANNED),
    strings::INDEX_OF_FROM_WITHIN.costing(SCANNED),
    strings::LAST_INDEX_OF.costing(SCANNED),
    strings::LAST_INDEX_OF_FROM.costing(SCANNED),
    strings::LAST_INDEX_OF_FROM_WITHIN.costing(SCANNED),
    strings::LOWER_ASCII.costing(READ),
    strings::REPLACE.costing(REPLACED),
    strings::REPLACE_N.costing(REPLACED),
    strings::SPLIT.costing(SPLIT),
    strings::SPLIT_N.costing(SPLIT),
    strings::SUBSTRING_FROM.costing(READ),
    strings::SUBSTRING.costing(READ),
    strings::TRIM.costing(READ),
    strings::UPPER_ASCII.costing(READ),
    strings::JOIN.costing(JOINED),
    strings::JOIN_WITH.costing(JOINED),
];

/// The functions that version 1 of the strings extension adds.
pub static VERSION_1: &[OverloadRow] = &OverloadRow::introduced(V1_29, [FORMAT, QUOTE]);
