//! Named formats that a string is validated against.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{List, Optional, String};

use super::types::NAMED_FORMAT;

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/format.go, formatLibraryDecls";
const CONSTANTS_SOURCE: &str = "k8s.io/apiserver pkg/cel/library/format.go, ConstantFormats";

/// Formats by name, and validation.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "validate",
        "format-validate",
        &[NAMED_FORMAT, String],
        Optional(&List(&String)),
        SOURCE,
    ),
    OverloadRow::global(
        "format.named",
        "format-named",
        &[String],
        Optional(&NAMED_FORMAT),
        SOURCE,
    ),
];

/// One function without arguments for each format.
pub static CONSTANTS: &[OverloadRow] = &[
    OverloadRow::global(
        "format.dns1123Label",
        "format.dns1123Label",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.dns1123Subdomain",
        "format.dns1123Subdomain",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.dns1035Label",
        "format.dns1035Label",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.qualifiedName",
        "format.qualifiedName",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.dns1123LabelPrefix",
        "format.dns1123LabelPrefix",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.dns1123SubdomainPrefix",
        "format.dns1123SubdomainPrefix",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.dns1035LabelPrefix",
        "format.dns1035LabelPrefix",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.labelValue",
        "format.labelValue",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.uri",
        "format.uri",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.uuid",
        "format.uuid",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.byte",
        "format.byte",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.date",
        "format.date",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
    OverloadRow::global(
        "format.datetime",
        "format.datetime",
        &[],
        NAMED_FORMAT,
        CONSTANTS_SOURCE,
    ),
];
