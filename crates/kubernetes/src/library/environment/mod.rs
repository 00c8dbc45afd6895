//! The CEL base environment of the API server, which combines its libraries.
//!
//! The base environment contains functions, named types and validators. It does not depend on a policy. [`Env::extend`]
//! adds variables and object types.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`baseOpts`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{authz, cidr, format, ip, lists, quantity, regex, semver, strings, types, url};
use crate::version::{
    KubernetesVersion, V1_28, V1_29, V1_30, V1_32, V1_34, measures_library_costs,
};
use cel::decls::{OverloadRow, Sig};
use cel::env::{Env, Library};
use cel::ext;
use cel::stdlib;
use cel::types::{OPTIONAL_TYPE, Type};
use cel::validators::Validator;
use cel::version::{Release, Version};

static OPTIONAL_0: &[OverloadRow] = &OverloadRow::introduced(V1_28, ext::optional::VERSION_0);
static SETS: &[OverloadRow] = &OverloadRow::introduced(V1_29, ext::sets::ROWS);
static TWO_VAR: &[OverloadRow] = &OverloadRow::introduced(V1_32, ext::two_var::ROWS);
static LISTS_0: &[OverloadRow] = &OverloadRow::introduced(V1_34, ext::lists::VERSION_0);
static LISTS_1: &[OverloadRow] = &OverloadRow::introduced(V1_34, ext::lists::VERSION_1);
static LISTS_2: &[OverloadRow] = &OverloadRow::introduced(V1_34, ext::lists::VERSION_2);

/// The overload tables of the libraries, except CEL's standard library, in the order in which they are added.
///
/// If several libraries have overloads of a function, the type checker tries the overloads in this order. If two
/// overloads have the same id, the first overload is used.
///
/// Differs: here, `kubernetes.authzSelectors` is available since version 1.31. In upstream, this library is available
/// in every version if the feature gate `AuthorizeWithSelectors` is enabled. The gate is enabled by default since 1.32.
static LIBRARIES: &[&[OverloadRow]] = &[
    url::ROWS,
    regex::ROWS,
    lists::ROWS,
    authz::ROWS,
    OPTIONAL_0,
    // The API server does not restrict the version of the optional library, so the version of cel-go determines it
    // (k8s.io/apiserver `pkg/cel/environment/base.go`, `cel.OptionalTypes()`).
    &ext::optional::VERSION_2,
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
    lists::VERSION_1,
];

/// The macros introduced after version 1.0: the name, the number of arguments without the receiver, and the version
/// that introduced the macro.
pub static MACROS: &[(&str, usize, Version)] = &[
    ("optMap", 2, V1_28),
    ("optFlatMap", 2, V1_28),
    ("all", 3, V1_32),
    ("exists", 3, V1_32),
    ("existsOne", 3, V1_32),
    ("exists_one", 3, V1_32),
    ("transformList", 3, V1_32),
    ("transformList", 4, V1_32),
    ("transformMap", 3, V1_32),
    ("transformMap", 4, V1_32),
    ("transformMapEntry", 3, V1_32),
    ("transformMapEntry", 4, V1_32),
    ("sortBy", 2, V1_34),
];

/// The type names that expressions can use, in addition to CEL's own type names, and the versions that introduced them.
static TYPES: &[(&str, Sig, Version)] = &[
    ("net.IP", types::IP, V1_30),
    ("net.CIDR", types::CIDR, V1_30),
];

/// The validators that run after the type checker, in the order in which their findings are reported.
static VALIDATORS: &[Validator] = &[
    Validator::HomogeneousLiterals,
    Validator::Duration,
    Validator::Timestamp,
    Validator::Matches,
    Validator::StringFormat,
];

/// The functions whose arguments may contain list and map literals with mixed element types.
static HOMOGENEOUS_EXEMPT: &[&str] = &[ext::strings::FORMAT.function];

fn new_base_env(release: Release) -> Env {
    let mut library = Library::new(release);
    stdlib::add_types_to(&mut library);
    for rows in tables() {
        library.add_overloads(rows);
    }
    for (name, sig, introduced) in TYPES {
        if *introduced <= release.platform {
            library.add_type(name, sig.to_type());
        }
    }
    let behavior = cel::version::Behavior::new(release.cel_go);
    let params = behavior
        .optional_type_has_parameter
        .then_some(Type::Dyn)
        .into_iter()
        .collect();
    library.add_type(OPTIONAL_TYPE, Type::opaque(OPTIONAL_TYPE, params));
    library.set_validators(VALIDATORS, HOMOGENEOUS_EXEMPT);
    if !measures_library_costs(release) {
        library.ignore_platform_costs();
    }
    Env::new(Arc::new(library))
}

fn tables() -> impl Iterator<Item = &'static [OverloadRow]> {
    let standard = stdlib::TABLES.iter().copied();
    let own = LIBRARIES.iter().copied();
    std::iter::once(strings::EQUALITY)
        .chain(standard)
        .chain(own)
}

/// Returns the base environment of `release`: functions and named types, without variables.
///
/// For the release of a [`KubernetesVersion`], the environment corresponds to `StoredExpressions` of the API server.
/// The API server checks the expressions of a created object in the environment `NewExpressions`, which lacks the
/// additions of the newest version. [`too_new`](super::too_new::too_new) finds uses of these additions in an
/// expression, and [`is_whole_in`] returns true if a version has no such additions.
///
/// An environment is built once for each release and never freed.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `MustBaseEnvSet`.
#[must_use]
pub fn base_env(release: impl Into<Release>) -> &'static Env {
    static ENVS: ByRelease = ByRelease::new();
    ENVS.get_or_build(release.into(), new_base_env)
}

/// Returns the scalar types that an environment with object types declares for the type checker only. The planner
/// rejects expressions with the names of these types, such as `type(x) == timestamp`.
///
/// Source: k8s.io/apiserver `pkg/cel/types.go`, `findScalar`.
pub fn declared_scalars() -> impl Iterator<Item = (Arc<str>, Type)> {
    [("duration", Type::Duration), ("timestamp", Type::Timestamp)]
        .into_iter()
        .map(|(name, type_)| (name.into(), type_))
}

/// The environments that have been built, by release.
pub(super) struct ByRelease(Mutex<BTreeMap<Release, &'static Env>>);

impl ByRelease {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(super) fn get_or_build(
        &self,
        release: Release,
        build: impl FnOnce(Release) -> Env,
    ) -> &'static Env {
        let mut built = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        built
            .entry(release)
            .or_insert_with(|| Box::leak(Box::new(build(release))))
    }
}

/// Returns the rows for the same overload as `row`, in all releases.
pub(crate) fn rows_with_id_of(
    row: &'static OverloadRow,
) -> impl Iterator<Item = &'static OverloadRow> {
    let is_same = |other: &&OverloadRow| (other.function, other.id) == (row.function, row.id);
    tables().flatten().filter(is_same)
}

/// Returns true if an API server of `version` accepts all functions and macros of its base environment in new
/// expressions.
#[must_use]
pub fn is_whole_in(version: KubernetesVersion) -> bool {
    let mut rows = tables().flatten().map(|row| &row.source.available);
    let mut macros = MACROS.iter().map(|(.., introduced)| *introduced);
    let release = version.release();
    rows.all(|available| !available.includes(release) || version.has(available))
        && macros.all(|introduced| version.accepts(introduced))
}

#[cfg(test)]
mod tests;
