//! The base environment of a Kubernetes version: which library came with which minor version.
//!
//! Of a version all is known here that does not depend on a policy: functions, named types, macros,
//! validators. Variables and object types are added on top, by [`Env::extend`].
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`baseOpts`), `environment.go`
//! (`filterAndBuildOpts`).

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use super::{authz, cidr, format, ip, lists, quantity, regex, semver, types, url};
use cel::decls::{OverloadRow, Sig};
use cel::env::{Env, Library};
use cel::ext;
use cel::stdlib::{self, comparison};
use cel::types::OPTIONAL_TYPE;
use cel::validators::Validator;

/// A minor version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubernetesVersion {
    /// The major version.
    pub major: u16,
    /// The minor version.
    pub minor: u16,
}

impl KubernetesVersion {
    /// The version whose answers are reproduced.
    pub const LATEST: Self = Self::new(1, 36);

    /// The version `major.minor`.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl Default for KubernetesVersion {
    fn default() -> Self {
        Self::LATEST
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A macro, by what an expression calls: the function's name and the number of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacroName {
    /// The name of the function.
    pub function: &'static str,
    /// The number of arguments, without the receiver.
    pub n_args: usize,
}

const fn macro_name(function: &'static str, n_args: usize) -> MacroName {
    MacroName { function, n_args }
}

/// A library, and the versions that have it.
#[derive(Clone, Copy, Debug)]
pub struct VersionedLibrary {
    /// Upstream's name of the library.
    pub name: &'static str,
    /// The first version that has it.
    pub introduced: KubernetesVersion,
    /// The first version that no longer has it.
    pub removed: Option<KubernetesVersion>,
    /// Its overloads.
    pub overloads: &'static [&'static [OverloadRow]],
    /// The types whose names an expression may write.
    pub types: &'static [(&'static str, Sig)],
    /// Its macros.
    pub macros: &'static [MacroName],
    /// The checks it adds after the type checker.
    pub validators: &'static [Validator],
    /// The functions within whose calls literals may be heterogeneous.
    pub homogeneous_exempt: &'static [&'static str],
}

impl VersionedLibrary {
    const fn new(
        name: &'static str,
        introduced: KubernetesVersion,
        overloads: &'static [&'static [OverloadRow]],
    ) -> Self {
        Self {
            name,
            introduced,
            removed: None,
            overloads,
            types: &[],
            macros: &[],
            validators: &[],
            homogeneous_exempt: &[],
        }
    }

    const fn removed(self, removed: KubernetesVersion) -> Self {
        Self {
            removed: Some(removed),
            ..self
        }
    }

    const fn types(self, types: &'static [(&'static str, Sig)]) -> Self {
        Self { types, ..self }
    }

    const fn macros(self, macros: &'static [MacroName]) -> Self {
        Self { macros, ..self }
    }

    const fn validators(self, validators: &'static [Validator]) -> Self {
        Self { validators, ..self }
    }

    const fn homogeneous_exempt(self, functions: &'static [&'static str]) -> Self {
        Self {
            homogeneous_exempt: functions,
            ..self
        }
    }

    /// Whether `version` has the library.
    #[must_use]
    pub fn is_in(&self, version: KubernetesVersion) -> bool {
        version >= self.introduced && self.removed.is_none_or(|removed| version < removed)
    }
}

/// What is "always" there is dated 1.0, as upstream does.
const ALWAYS: KubernetesVersion = KubernetesVersion::new(1, 0);
const V1_27: KubernetesVersion = KubernetesVersion::new(1, 27);
const V1_28: KubernetesVersion = KubernetesVersion::new(1, 28);
const V1_29: KubernetesVersion = KubernetesVersion::new(1, 29);
const V1_30: KubernetesVersion = KubernetesVersion::new(1, 30);
const V1_31: KubernetesVersion = KubernetesVersion::new(1, 31);
const V1_32: KubernetesVersion = KubernetesVersion::new(1, 32);
const V1_33: KubernetesVersion = KubernetesVersion::new(1, 33);
const V1_34: KubernetesVersion = KubernetesVersion::new(1, 34);

/// The version that lets `<` and its like compare numbers of different types.
///
/// Differs: upstream's earlier versions forget the filter inside of comprehensions, where such
/// comparisons pass; here they do not. No version with policies in a stable API is concerned.
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`; cel-go `checker/env.go`, `enterScope`.
const CROSS_TYPE_NUMERIC_COMPARISONS: KubernetesVersion = V1_28;

/// All libraries, in the order in which their overloads are added.
///
/// The order decides between overloads of one function from several libraries.
///
/// Differs: upstream has the selectors of `kubernetes.authzSelectors` in every version while the feature
/// gate `AuthorizeWithSelectors` is on, as it is by default since 1.32; here they come with 1.31.
pub static LIBRARIES: &[VersionedLibrary] = &[
    VersionedLibrary::new("cel.lib.std", ALWAYS, stdlib::TABLES).macros(&[
        macro_name("has", 1),
        macro_name("all", 2),
        macro_name("exists", 2),
        macro_name("exists_one", 2),
        macro_name("map", 2),
        macro_name("map", 3),
        macro_name("filter", 2),
    ]),
    VersionedLibrary::new("homogeneous literals", ALWAYS, &[])
        .validators(&[Validator::HomogeneousLiterals]),
    VersionedLibrary::new("kubernetes.urls", ALWAYS, &[url::ROWS]),
    VersionedLibrary::new("kubernetes.regex", ALWAYS, &[regex::ROWS]),
    VersionedLibrary::new("kubernetes.lists", ALWAYS, &[lists::ROWS]),
    VersionedLibrary::new("kubernetes.authz", V1_27, &[authz::ROWS]),
    VersionedLibrary::new(
        "cel.lib.optional",
        V1_28,
        &[ext::optional::VERSION_0, ext::optional::VERSION_2],
    )
    .types(&[(OPTIONAL_TYPE, Sig::Opaque(OPTIONAL_TYPE))])
    .macros(&[macro_name("optMap", 2), macro_name("optFlatMap", 2)]),
    VersionedLibrary::new("kubernetes.quantity", V1_28, &[quantity::ROWS]),
    VersionedLibrary::new("literals", V1_29, &[]).validators(&[
        Validator::Duration,
        Validator::Timestamp,
        Validator::Matches,
    ]),
    VersionedLibrary::new("cel.lib.ext.strings", ALWAYS, &[ext::strings::VERSION_0]).removed(V1_29),
    VersionedLibrary::new(
        "cel.lib.ext.strings",
        V1_29,
        &[ext::strings::VERSION_0, ext::strings::VERSION_1],
    )
    .validators(&[Validator::StringFormat])
    .homogeneous_exempt(&["format"]),
    VersionedLibrary::new("cel.lib.ext.sets", V1_29, &[ext::sets::ROWS]),
    VersionedLibrary::new("kubernetes.net.ip", V1_30, &[ip::ROWS]).types(&[("net.IP", types::IP)]),
    VersionedLibrary::new("kubernetes.net.cidr", V1_30, &[cidr::ROWS])
        .types(&[("net.CIDR", types::CIDR)]),
    VersionedLibrary::new(
        "kubernetes.format",
        V1_31,
        &[format::ROWS, format::CONSTANTS],
    ),
    VersionedLibrary::new("kubernetes.authzSelectors", V1_31, &[authz::SELECTORS]),
    VersionedLibrary::new("cel.lib.ext.comprev2", V1_32, &[ext::two_var::ROWS]).macros(&[
        macro_name("all", 3),
        macro_name("exists", 3),
        macro_name("existsOne", 3),
        macro_name("exists_one", 3),
        macro_name("transformList", 3),
        macro_name("transformList", 4),
        macro_name("transformMap", 3),
        macro_name("transformMap", 4),
        macro_name("transformMapEntry", 3),
        macro_name("transformMapEntry", 4),
    ]),
    VersionedLibrary::new(
        "kubernetes.Semver",
        V1_33,
        &[semver::VERSION_0, semver::VERSION_1],
    ),
    VersionedLibrary::new(
        "cel.lib.ext.lists",
        V1_34,
        &[
            ext::lists::VERSION_0,
            ext::lists::VERSION_1,
            ext::lists::VERSION_2,
        ],
    )
    .macros(&[macro_name("sortBy", 2)]),
];

/// The base environment of a version.
#[derive(Debug)]
pub struct BaseEnvironment {
    /// Functions and named types, without variables.
    pub env: Env,
    /// The macros.
    pub macros: Box<[MacroName]>,
}

impl BaseEnvironment {
    fn new(version: KubernetesVersion) -> Self {
        let mut library = Library::default();
        stdlib::add_types_to(&mut library);
        let (mut macros, mut validators, mut exempt) = (Vec::new(), Vec::new(), Vec::new());
        for versioned in LIBRARIES.iter().filter(|library| library.is_in(version)) {
            add(&mut library, versioned);
            macros.extend_from_slice(versioned.macros);
            validators.extend_from_slice(versioned.validators);
            exempt.extend_from_slice(versioned.homogeneous_exempt);
        }
        if version < CROSS_TYPE_NUMERIC_COMPARISONS {
            library.retain_overloads(|row| !comparison::is_cross_type(row));
        }
        library.set_validators(&validators, &exempt);
        Self {
            env: Env::new(Arc::new(library)),
            macros: macros.into(),
        }
    }
}

fn add(library: &mut Library, versioned: &VersionedLibrary) {
    for rows in versioned.overloads {
        library.add_overloads(rows);
    }
    for (name, sig) in versioned.types {
        library.add_type(name, sig.to_type());
    }
}

/// The environments that differ, each from the version it begins with, made when first asked for.
struct Epochs {
    first: OnceLock<BaseEnvironment>,
    later: Vec<(KubernetesVersion, OnceLock<BaseEnvironment>)>,
}

static EPOCHS: LazyLock<Epochs> = LazyLock::new(|| {
    let mut versions: Vec<_> = LIBRARIES
        .iter()
        .flat_map(|library| [Some(library.introduced), library.removed])
        .flatten()
        .chain([CROSS_TYPE_NUMERIC_COMPARISONS])
        .filter(|version| *version > ALWAYS)
        .collect();
    versions.sort_unstable();
    versions.dedup();
    let later = versions
        .into_iter()
        .map(|version| (version, OnceLock::new()))
        .collect();
    Epochs {
        first: OnceLock::new(),
        later,
    }
});

/// The base environment of `version`; of one newer than all libraries, that of the newest.
///
/// The API server has two: this is `NewExpressions`, by which what is written is judged; what is stored
/// already is judged by that of the latest version. (A server of 1.36 judges what is new by 1.35, its
/// minimum compatibility version, which has the same libraries.)
///
/// Source: k8s.io/apiserver `pkg/cel/environment/base.go`, `MustBaseEnvSet`,
/// `DefaultCompatibilityVersion`.
#[must_use]
pub fn base(version: KubernetesVersion) -> &'static BaseEnvironment {
    match EPOCHS
        .later
        .iter()
        .rev()
        .find(|(epoch, _)| *epoch <= version)
    {
        Some((epoch, cell)) => cell.get_or_init(|| BaseEnvironment::new(*epoch)),
        None => EPOCHS.first.get_or_init(|| BaseEnvironment::new(ALWAYS)),
    }
}

/// The functions and named types of [`base`].
#[must_use]
pub fn base_env(version: KubernetesVersion) -> &'static Env {
    &base(version).env
}

#[cfg(test)]
mod tests;
