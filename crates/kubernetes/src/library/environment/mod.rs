//! The CEL base environment of the API server, which combines its libraries.
//!
//! The base environment contains everything that does not depend on a policy: functions, named types and validators.
//! [`Env::extend`] adds variables and object types.
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

/// The tables of overloads in addition to those of CEL's standard library, in the order in which they are added.
///
/// If several libraries have overloads of a function, the type checker tries them in this order. If two overloads have
/// the same id, the first overload is used.
///
/// Differs: upstream offers the selectors of `kubernetes.authzSelectors` in every version if the feature gate
/// `AuthorizeWithSelectors` is enabled, which is the default since 1.32. Here, version 1.31 adds the selectors.
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

/// The names of types that expressions can use, in addition to the names of CEL's own types.
static TYPES: &[(&str, Sig)] = &[
    (OPTIONAL_TYPE, Sig::Opaque(OPTIONAL_TYPE)),
    ("net.IP", types::IP),
    ("net.CIDR", types::CIDR),
];

/// The validators that run after the type checker. Their findings are reported in this order.
static VALIDATORS: &[Validator] = &[
    Validator::HomogeneousLiterals,
    Validator::Duration,
    Validator::Timestamp,
    Validator::Matches,
    Validator::StringFormat,
];

/// The functions whose arguments may contain list and map literals with elements of different types.
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

/// Returns all tables of overloads, in the order in which they are added.
fn tables() -> impl Iterator<Item = &'static [OverloadRow]> {
    let standard = stdlib::TABLES.iter().copied();
    let own = LIBRARIES.iter().copied();
    std::iter::once(strings::EQUALITY)
        .chain(standard)
        .chain(own)
}

/// Returns the base environment of [`LATEST`](super::version::LATEST): functions and named types, without variables.
///
/// The environment corresponds to `StoredExpressions` of the API server. The API server checks the expressions of a
/// created object in the environment `NewExpressions`, which lacks the additions of the newest version.
/// [`too_new`](super::version::too_new) finds the uses of these additions in an expression, and [`is_whole_in`] returns
/// true if a version has no such additions.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `MustBaseEnvSet`.
#[must_use]
pub fn base_env() -> &'static Env {
    &BASE
}

/// Returns true if an API server of `version` accepts all functions and macros of the base environment in new
/// expressions.
#[must_use]
pub fn is_whole_in(version: Version) -> bool {
    let rows = tables().flatten().map(|row| row.source.introduced);
    let macros = MACROS.iter().map(|(.., introduced)| *introduced);
    rows.chain(macros)
        .all(|introduced| usable_since(introduced) <= version)
}

#[cfg(test)]
mod tests;
