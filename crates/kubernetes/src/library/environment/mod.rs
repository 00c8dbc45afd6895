//! The base environment of the API server: its libraries, put together.
//!
//! Of the environment all is known here that does not depend on a policy: functions, named types, validators.
//! Variables and object types are added on top, by [`Env::extend`].
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

/// All tables beside the language's own, in the order in which their overloads are added.
///
/// The order decides between overloads of one function from several libraries. Of two overloads with one id
/// the first counts.
///
/// Differs: upstream has the selectors of `kubernetes.authzSelectors` in every version while the feature
/// gate `AuthorizeWithSelectors` is on, as it is by default since 1.32; here they come with 1.31.
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

/// The types beside the language's own whose names an expression may write.
static TYPES: &[(&str, Sig)] = &[
    (OPTIONAL_TYPE, Sig::Opaque(OPTIONAL_TYPE)),
    ("net.IP", types::IP),
    ("net.CIDR", types::CIDR),
];

/// The checks after the type checker, in the order in which they report.
static VALIDATORS: &[Validator] = &[
    Validator::HomogeneousLiterals,
    Validator::Duration,
    Validator::Timestamp,
    Validator::Matches,
    Validator::StringFormat,
];

/// The functions within whose calls literals may be heterogeneous.
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

/// All tables, in the order in which their overloads are added.
fn tables() -> impl Iterator<Item = &'static [OverloadRow]> {
    let standard = stdlib::TABLES.iter().copied();
    let own = LIBRARIES.iter().copied();
    std::iter::once(strings::EQUALITY)
        .chain(standard)
        .chain(own)
}

/// The base environment of [`LATEST`](super::version::LATEST): functions and named types, without variables.
///
/// The API server has two: this is `StoredExpressions`. With `NewExpressions`, by which it judges what is
/// created, it also refuses what the version before its own does not have:
/// [`too_new`](super::version::too_new) finds that, and [`is_whole_in`] tells whether there is any.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `MustBaseEnvSet`.
#[must_use]
pub fn base_env() -> &'static Env {
    &BASE
}

/// Reports whether an API server of `version` takes everything of the base environment in new expressions.
#[must_use]
pub fn is_whole_in(version: Version) -> bool {
    let rows = tables().flatten().map(|row| row.source.introduced);
    let macros = MACROS.iter().map(|(.., introduced)| *introduced);
    rows.chain(macros)
        .all(|introduced| usable_since(introduced) <= version)
}

#[cfg(test)]
mod tests;
