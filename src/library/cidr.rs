//! Networks in CIDR notation.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Int, String};

use super::types::{CIDR, IP};

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/cidr.go, cidrLibraryDecls";

/// Networks of both families.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("cidr", "string_to_cidr", &[String], CIDR, SOURCE),
    OverloadRow::member(
        "containsIP",
        "cidr_contains_ip_string",
        &[CIDR, String],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "containsIP",
        "cidr_contains_ip_ip",
        &[CIDR, IP],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "containsCIDR",
        "cidr_contains_cidr_string",
        &[CIDR, String],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "containsCIDR",
        "cidr_contains_cidr",
        &[CIDR, CIDR],
        Bool,
        SOURCE,
    ),
    OverloadRow::member("ip", "cidr_ip", &[CIDR], IP, SOURCE),
    OverloadRow::member("prefixLength", "cidr_prefix_length", &[CIDR], Int, SOURCE),
    OverloadRow::member("masked", "cidr_masked", &[CIDR], CIDR, SOURCE),
    OverloadRow::global("isCIDR", "is_cidr", &[String], Bool, SOURCE),
    OverloadRow::global("string", "cidr_to_string", &[CIDR], String, SOURCE),
];
