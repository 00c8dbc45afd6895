//! URLs and their parts.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, List, Map, String};

use super::types::URL;

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/urls.go, urlLibraryDecls";

/// Conversion, and the parts.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("url", "string_to_url", &[String], URL, SOURCE),
    OverloadRow::member("getScheme", "url_get_scheme", &[URL], String, SOURCE),
    OverloadRow::member("getHost", "url_get_host", &[URL], String, SOURCE),
    OverloadRow::member("getHostname", "url_get_hostname", &[URL], String, SOURCE),
    OverloadRow::member("getPort", "url_get_port", &[URL], String, SOURCE),
    OverloadRow::member(
        "getEscapedPath",
        "url_get_escaped_path",
        &[URL],
        String,
        SOURCE,
    ),
    OverloadRow::member(
        "getQuery",
        "url_get_query",
        &[URL],
        Map(&String, &List(&String)),
        SOURCE,
    ),
    OverloadRow::global("isURL", "is_url_string", &[String], Bool, SOURCE),
];
