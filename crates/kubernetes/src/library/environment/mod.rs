//! The base environment of the API server: the combination of its libraries.
//!
//! It contains everything that does not depend on a policy: functions, named types, validators. Variables and object
//! types are added by [`Env::extend`].
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`baseOpts`).

use std::sync::{Arc, LazyLock};

use super::version::{MACROS, V1_28, V1_29, V1_32, V1_34, usable_since};
use super::{authz, cidr, format, ip, lists, quantity, regex, semver, strings, types, url};
use cel::decls::{OverloadRow, Sig, Version};
use cel::env::{Env, Library};
use cel::ext;
use cel::stdlib;
use cel::types::OPTIONAL_TYPE;
use cel::validators::Validator;

static OPTIONAL_0: &[OverloadRow] = &OverloadRow::introduced(V1_28, ext::optional::VERSION_0);
static OPTIONAL_2: &[OverloadRow] = &OverloadRow::introduced(V1_28, ext::optional::VERSION_2);
static SETS: &[OverloadRow] = &OverloadRow::introduced(V1_29, ext::sets::ROWS);
static TWO_VAR: &[OverloadRow] = &OverloadRow::introduced(V1_32, ext::two_var::ROWS);
static LISTS_0: &[OverloadRow] = &OverloadRow::introduced(V1_34, ext::lists::VERSION_0);
static LISTS_1: &[OverloadRow] = &OverloadRow::introduced(V1_34, ext::lists::VERSION_1);
static LISTS_2: &[OverloadRow] = &OverloadRow::introduced(V1_34, ext::lists::VERSION_2);

/// All tables in addition to those of the language, in the order in which their overloads are added.
///
/// The order decides between overloads of one function from several libraries. If two overloads have the same id, the
/// first counts.
///
/// Differs: upstream has the selectors of `kubernetes.authzSelectors` in every version while the feature gate
/// `AuthorizeWithSelectors` is on, the default since 1.32; here they are added in 1.31.
static LIBRARIES: &[&[OverloadRow]] = &[
    url::ROWS,
    regex::ROWS,
    lists::ROWS,
    authz::ROWS,
    OPTIONAL_0,
    OPTIONAL_2,
    quantity::ROWS,
    strings::VERSION_0,
    strings::VERSION_1,
    SETS,
    ip::ROWS,
    cidr::ROWS,
    format::ROWS,
    format::CONSTANTS,
    authz::SELECTORS,
    TWO_VAR,
    semver::VERSION_0,
    semver::VERSION_1,
    LISTS_0,
    LISTS_1,
    LISTS_2,
];

/// The types, in addition to those of the language, whose names are valid in expressions.
static TYPES: &[(&str, Sig)] = &[
    (OPTIONAL_TYPE, Sig::Opaque(OPTIONAL_TYPE)),
    ("net.IP", types::IP),
    ("net.CIDR", types::CIDR),
];

/// The validators that run after the type checker, in the order of their reports.
static VALIDATORS: &[Validator] = &[
    Validator::HomogeneousLiterals,
    Validator::Duration,
    Validator::Timestamp,
    Validator::Matches,
    Validator::StringFormat,
];

/// The functions whose calls may contain heterogeneous literals.
static HOMOGENEOUS_EXEMPT: &[&str] = &[ext::strings::FORMAT.function];

static BASE: LazyLock<Env> = LazyLock::new(|| {
    let mut library = Library::default();
    stdlib::add_types_to(&mut library);
    for rows in tables() {
        library.add_overloads(rows);
    }
    for (name, sig) in TYPES {
        library.add_type(name, sig.to_type());
    }
    library.set_validators(VALIDATORS, HOMOGENEOUS_EXEMPT);
    Env::new(Arc::new(library))
});

/// Returns all tables, in the order in which their overloads are added.
fn tables() -> impl Iterator<Item = &'static [OverloadRow]> {
    let standard = stdlib::TABLES.iter().copied();
    let own = LIBRARIES.iter().copied();
    std::iter::once(strings::EQUALITY)
        .chain(standard)
        .chain(own)
}

/// Returns the base environment of [`LATEST`](super::version::LATEST): functions and named types, without variables.
///
/// The API server has two environments: this is `StoredExpressions`. With `NewExpressions`, used for created objects,
/// it also rejects additions that the previous version does not have. [`too_new`](super::version::too_new) finds these,
/// and [`is_whole_in`] returns true if there are none.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `MustBaseEnvSet`.
#[must_use]
pub fn base_env() -> &'static Env {
    &BASE
}

/// Returns true if an API server of `version` accepts everything in the base environment in new expressions.
#[must_use]
pub fn is_whole_in(version: Version) -> bool {
    let rows = tables().flatten().map(|row| row.source.introduced);
    let macros = MACROS.iter().map(|(.., introduced)| *introduced);
    rows.chain(macros)
        .all(|introduced| usable_since(introduced) <= version)
}

#[cfg(test)]
mod tests;
