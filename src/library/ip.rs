//! IP addresses.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Int, String};

use super::types::IP;

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/ip.go, ipLibraryDecls";

/// Addresses of both families.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("ip", "string_to_ip", &[String], IP, SOURCE),
    OverloadRow::member("family", "ip_family", &[IP], Int, SOURCE),
    OverloadRow::global("ip.isCanonical", "ip_is_canonical", &[String], Bool, SOURCE),
    OverloadRow::member("isUnspecified", "ip_is_unspecified", &[IP], Bool, SOURCE),
    OverloadRow::member("isLoopback", "ip_is_loopback", &[IP], Bool, SOURCE),
    OverloadRow::member(
        "isLinkLocalMulticast",
        "ip_is_link_local_multicast",
        &[IP],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isLinkLocalUnicast",
        "ip_is_link_local_unicast",
        &[IP],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isGlobalUnicast",
        "ip_is_global_unicast",
        &[IP],
        Bool,
        SOURCE,
    ),
    OverloadRow::global("isIP", "is_ip", &[String], Bool, SOURCE),
    OverloadRow::global("string", "ip_to_string", &[IP], String, SOURCE),
];
