//! The operator `==` and CEL's strings extension, with the API server's costs.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator`.

use super::costs::{EQUAL, JOINED, READ, REPLACED, SCANNED, SPLIT};
use crate::version::V1_29;
use cel::decls::OverloadRow;
use cel::ext::strings::{self, FORMAT, QUOTE};
use cel::stdlib::comparison;
use cel::version::CelGo;

/// The operator `==` with the API server's costs since 1.32. New and stored expressions have the same costs, so the
/// costs depend on the version of cel-go instead of the compatibility version.
pub static EQUALITY: &[OverloadRow] = &[comparison::EQUALS
    .with_costs(EQUAL)
    .since_cel_go(CelGo::V0_22)];

/// The functions of version 0 of the strings extension.
pub static VERSION_0: &[OverloadRow] = &[
    strings::CHAR_AT,
    strings::INDEX_OF_IN_RANGE.with_costs(SCANNED),
    strings::INDEX_OF_FROM_IN_RANGE.with_costs(SCANNED),
    strings::INDEX_OF.with_costs(SCANNED),
    strings::INDEX_OF_FROM.with_costs(SCANNED),
    strings::INDEX_OF_FROM_WITHIN.with_costs(SCANNED),
    strings::LAST_INDEX_OF_IN_RANGE.with_costs(SCANNED),
    strings::LAST_INDEX_OF_FROM_IN_RANGE.with_costs(SCANNED),
    strings::LAST_INDEX_OF.with_costs(SCANNED),
    strings::LAST_INDEX_OF_FROM.with_costs(SCANNED),
    strings::LAST_INDEX_OF_FROM_WITHIN.with_costs(SCANNED),
    strings::LOWER_ASCII.with_costs(READ),
    strings::REPLACE.with_costs(REPLACED),
    strings::REPLACE_N.with_costs(REPLACED),
    strings::SPLIT.with_costs(SPLIT),
    strings::SPLIT_N.with_costs(SPLIT),
    strings::SUBSTRING_FROM.with_costs(READ),
    strings::SUBSTRING.with_costs(READ),
    strings::TRIM.with_costs(READ),
    strings::UPPER_ASCII.with_costs(READ),
    strings::JOIN.with_costs(JOINED),
    strings::JOIN_WITH.with_costs(JOINED),
];

/// The functions that version 1 of the strings extension adds.
pub static VERSION_1: &[OverloadRow] = &OverloadRow::introduced(V1_29, [FORMAT, QUOTE]);
