//! Versions of the platform and of cel-go, and the behavior that depends on them.
//!
//! A [`Release`] contains both versions, because they are independent: a vendor may build a Kubernetes version with a
//! newer cel-go. Declarations have an [`Availability`], a range of releases. All other differences are fields of
//! [`Behavior`]. The parser, the type checker, the cost estimator and the planner read them. The evaluator does not.

use std::fmt;

/// A version of the platform that an environment targets, such as Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The major version.
    pub major: u16,
    /// The minor version.
    pub minor: u16,
    /// The patch version. It is 0 unless a declaration differs between the patch releases of the minor version.
    pub patch: u16,
}

impl Version {
    /// The version of declarations that are part of every environment.
    pub const ALWAYS: Self = Self::new(1, 0);

    /// Creates the version `major.minor`.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self {
            major,
            minor,
            patch: 0,
        }
    }

    /// Returns this version with the patch version `patch`.
    #[must_use]
    pub const fn with_patch(self, patch: u16) -> Self {
        Self { patch, ..self }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A minor version of cel-go. All versions up to now have the major version 0. Patch releases do not differ in
/// behavior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CelGo(u16);

impl CelGo {
    /// cel-go 0.17, the version in Kubernetes 1.30. The engine reproduces part of the behavior of this version, and no
    /// behavior of older versions.
    pub const OLDEST: Self = Self(17);

    /// cel-go 0.20, the version in Kubernetes 1.31.
    pub const V0_20: Self = Self(20);

    /// cel-go 0.22, the version in Kubernetes 1.32.
    pub const V0_22: Self = Self(22);

    /// cel-go 0.23, the version in Kubernetes 1.33.
    pub const V0_23: Self = Self(23);

    /// cel-go 0.26, the version in Kubernetes 1.34 to 1.36.
    pub const V0_26: Self = Self(26);

    /// cel-go 0.27.
    pub const V0_27: Self = Self(27);

    /// cel-go 0.28.
    pub const V0_28: Self = Self(28);

    /// cel-go 0.29, the version in Kubernetes 1.37.
    pub const V0_29: Self = Self(29);

    /// Returns the next minor version.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for CelGo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0.{}", self.0)
    }
}

/// The versions that determine the behavior of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The version of the platform.
    pub platform: Version,
    /// The version of cel-go in the platform.
    pub cel_go: CelGo,
}

impl Release {
    /// cel-go 0.26 in a platform that has all declarations.
    pub const DEFAULT: Self = Self {
        platform: Version::new(u16::MAX, u16::MAX),
        cel_go: CelGo::V0_26,
    };
}

impl Default for Release {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The releases that have a declaration: a range of platform versions and a range of cel-go versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The first platform version with the declaration.
    pub since: Version,
    /// The first platform version without the declaration.
    pub before: Option<Version>,
    /// The first cel-go version with the declaration.
    pub since_cel_go: CelGo,
    /// The first cel-go version without the declaration.
    pub before_cel_go: Option<CelGo>,
}

impl Availability {
    /// All releases.
    pub const ALWAYS: Self = Self {
        since: Version::ALWAYS,
        before: None,
        since_cel_go: CelGo::OLDEST,
        before_cel_go: None,
    };

    /// Returns true if `release` has the declaration.
    #[must_use]
    pub fn includes(&self, release: Release) -> bool {
        self.since <= release.platform
            && self.before.is_none_or(|before| release.platform < before)
            && self.includes_cel_go(release.cel_go)
    }

    /// Returns true if a platform with this version of cel-go can have the declaration.
    #[must_use]
    pub fn includes_cel_go(&self, cel_go: CelGo) -> bool {
        self.since_cel_go <= cel_go && self.before_cel_go.is_none_or(|before| cel_go < before)
    }
}

/// The differences between releases, other than their overloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag is one independent change of cel-go"
)]
pub struct Behavior {
    /// Field selections accept names in backticks: ``labels.`a/b` ``.
    ///
    /// Source: cel-go 0.28 `parser/options.go`, `EnableIdentEscapeSyntax`.
    pub escaped_field_names: bool,
    /// A variable of a comprehension hides a qualified name that starts with the same component. For example, `net.IP`
    /// selects a field of the variable `net` in `nets.all(net, net.IP == 'x')`.
    ///
    /// Source: cel-go 0.27 `checker/env.go`, `Env.resolveQualifiedIdent`.
    pub locals_hide_qualified_names: bool,
    /// A call of `lists.range` fails for more than 1,000,000 numbers. In older releases, all numbers are created before
    /// their cost is counted.
    ///
    /// Source: cel-go 0.29 `ext/lists.go`, `defaultMaxRangeSize`.
    pub limits_ranges: bool,
    /// The name `optional_type` denotes `optional_type(dyn)`. In older releases, it denotes `optional_type` without a
    /// parameter.
    ///
    /// Source: cel-go 0.28 `common/types/optional.go`, `OptionalType`.
    pub optional_type_has_parameter: bool,
    /// A selection from an optional reads the CEL value in it. In older releases, it reads the Go value, and fails for
    /// some types, such as a quantity in an optional.
    ///
    /// Source: cel-go 0.29 `interpreter/attributes.go`, `applyQualifiers`.
    pub optionals_hold_cel_values: bool,
    /// Cost estimates track the sizes of local variables, list elements and map entries, and ignore calls of `dyn`.
    ///
    /// Source: cel-go 0.23 `checker/cost.go`, `localVar`, `entrySizeEstimate`, `maybeUnwrapDynCall`.
    pub estimates_local_sizes: bool,
    /// The compiler validates literal format strings of `format`.
    ///
    /// Source: cel-go 0.20 `ext/formatting.go`, `stringFormatValidator`.
    pub validates_formats: bool,
    /// An expression can select a field with a keyword as its name without escaping the name: `namespace` instead of
    /// `__namespace__`. This depends on the platform, not on cel-go.
    ///
    /// Source: k8s.io/apiserver 0.31 `pkg/cel/environment/environment.go`, `EnvSet.filterAndBuildOpts`.
    pub keywords_as_field_names: bool,
    /// The macros with two variables, such as `all(i, v, v > i)` and `transformMap`, exist. This depends on the
    /// platform, not on cel-go.
    ///
    /// Source: cel-go `ext/comprehensions.go`, `TwoVarComprehensions`.
    pub two_variable_macros: bool,
    /// The macro `sortBy` exists. This depends on the platform, not on cel-go.
    ///
    /// Source: cel-go `ext/lists.go`, `sortByMacro`.
    pub sort_by_macro: bool,
}

impl Behavior {
    /// Returns the behavior of `cel_go` in a platform that enables all macros.
    #[must_use]
    pub const fn new(cel_go: CelGo) -> Self {
        Self {
            escaped_field_names: cel_go.0 >= CelGo::V0_28.0,
            locals_hide_qualified_names: cel_go.0 >= CelGo::V0_27.0,
            optional_type_has_parameter: cel_go.0 >= CelGo::V0_28.0,
            optionals_hold_cel_values: cel_go.0 >= CelGo::V0_29.0,
            limits_ranges: cel_go.0 >= CelGo::V0_29.0,
            estimates_local_sizes: cel_go.0 >= CelGo::V0_23.0,
            validates_formats: cel_go.0 >= CelGo::V0_20.0,
            keywords_as_field_names: true,
            two_variable_macros: true,
            sort_by_macro: true,
        }
    }
}
