//! Semantic versions, version 1 of the library.

mod value;

pub use value::{Semver, SemverError};

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Int, String};

use super::types::SEMVER;

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/semverlib.go, semverLibType.declarations";

/// What every version has.
pub static VERSION_0: &[OverloadRow] = &[
    OverloadRow::global("semver", "string_to_semver", &[String], SEMVER, SOURCE),
    OverloadRow::global("isSemver", "is_semver_string", &[String], Bool, SOURCE),
    OverloadRow::member(
        "isGreaterThan",
        "semver_is_greater_than",
        &[SEMVER, SEMVER],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isLessThan",
        "semver_is_less_than",
        &[SEMVER, SEMVER],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "compareTo",
        "semver_compare_to",
        &[SEMVER, SEMVER],
        Int,
        SOURCE,
    ),
    OverloadRow::member("major", "semver_major", &[SEMVER], Int, SOURCE),
    OverloadRow::member("minor", "semver_minor", &[SEMVER], Int, SOURCE),
    OverloadRow::member("patch", "semver_patch", &[SEMVER], Int, SOURCE),
];

/// What version 1 adds: versions normalized first.
pub static VERSION_1: &[OverloadRow] = &[
    OverloadRow::global(
        "semver",
        "string_bool_to_semver",
        &[String, Bool],
        SEMVER,
        SOURCE,
    ),
    OverloadRow::global(
        "isSemver",
        "is_semver_string_bool",
        &[String, Bool],
        Bool,
        SOURCE,
    ),
];
