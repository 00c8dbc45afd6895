//! Kubernetes versions: their functions and macros, and their other differences.
//!
//! A [`KubernetesVersion`] determines all results of this crate that depend on a version. Each overload row contains
//! the range of releases that have the overload. All other differences are fields of [`Behavior`].
//!
//! An API server checks new expressions with the environment of the previous version, so that a policy survives a
//! rollback. For example, additions of 1.34 are available in new expressions since 1.35. Stored expressions are checked
//! with the environment of the server's own version.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`baseOpts`, `DefaultCompatibilityVersion`),
//! `environment.go` (`EnvSet`).

mod behavior;

use std::fmt;
use std::str::FromStr;

use cel::version::{Availability, CelGo, Release, Version};
use serde::Deserialize;

pub use self::behavior::{Behavior, LengthErrors, StaticNames};

/// A version of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubernetesVersion {
    /// The minor version, such as 36 for 1.36.
    pub minor: u16,
    /// The patch version. `None` means the newest patch.
    pub patch: Option<u16>,
    /// The minor version that determines which functions new expressions can use.
    ///
    /// Source: k8s.io/component-base `compatibility/version.go`, `MinCompatibilityVersion`.
    pub min_compat: u16,
    /// The version of cel-go in the API server.
    pub cel_go: CelGo,
}

impl KubernetesVersion {
    /// The default version.
    pub const DEFAULT: Self = Self::new(36);

    /// The newest supported version.
    pub const NEWEST: Self = Self::new(37);

    /// The oldest supported version, the first with policies in a stable API.
    pub const OLDEST: Self = Self::new(30);

    /// The number of supported minor versions.
    pub const N_SUPPORTED: usize = (Self::NEWEST.minor - Self::OLDEST.minor + 1) as usize;

    /// Creates the newest patch of `1.minor`, built with the cel-go version of the upstream release.
    #[must_use]
    pub const fn new(minor: u16) -> Self {
        Self {
            minor,
            patch: None,
            min_compat: minor.saturating_sub(1),
            cel_go: upstream_cel_go(minor),
        }
    }

    /// Returns the version that an API server reports. Vendors append suffixes, as in `30+` and `v1.30.2-gke.100`. An
    /// API server that emulates an older version behaves like that version. `None` if the version cannot be parsed.
    #[must_use]
    pub fn from_info(info: &VersionInfo) -> Option<Self> {
        if leading_number(&info.major)? != 1 {
            return None;
        }
        let binary = leading_number(&info.minor)?;
        let minor = leading_number(&info.emulation_minor).unwrap_or(binary);
        let version = Self::new(minor);
        let patch = info.git_version.strip_prefix(&format!("v1.{minor}."));
        Some(Self {
            patch: patch.and_then(leading_number),
            min_compat: leading_number(&info.min_compatibility_minor).unwrap_or(version.min_compat),
            cel_go: upstream_cel_go(binary),
            ..version
        })
    }

    /// Returns this version with the given patch.
    #[must_use]
    pub const fn with_patch(mut self, patch: u16) -> Self {
        self.patch = Some(patch);
        self
    }

    /// Returns all supported minor versions, oldest first.
    pub fn supported() -> impl DoubleEndedIterator<Item = Self> {
        (Self::OLDEST.minor..=Self::NEWEST.minor).map(Self::new)
    }

    /// Returns true if the minor version is supported.
    #[must_use]
    pub const fn is_supported(&self) -> bool {
        Self::OLDEST.minor <= self.minor && self.minor <= Self::NEWEST.minor
    }

    /// Returns true if this minor version is lower than the minor version of `other`.
    #[must_use]
    pub const fn is_older_than(&self, other: &Self) -> bool {
        self.minor < other.minor
    }

    /// Returns true if both minor versions are equal, but the versions of cel-go differ. Ignores the patch.
    #[must_use]
    pub fn differs_only_in_cel_go(&self, other: &Self) -> bool {
        self.minor == other.minor && self.cel_go != other.cel_go
    }

    /// Returns true if `other` has the same minor version.
    #[must_use]
    pub const fn has_minor_of(&self, other: &Self) -> bool {
        self.minor == other.minor
    }

    /// Returns true if this is the newest supported minor version.
    #[must_use]
    pub const fn is_newest(&self) -> bool {
        self.minor == Self::NEWEST.minor
    }

    /// Returns true if this is the oldest supported minor version.
    #[must_use]
    pub const fn is_oldest(&self) -> bool {
        self.minor == Self::OLDEST.minor
    }

    /// Returns true if the version is newer than all supported versions.
    #[must_use]
    pub const fn is_too_new(&self) -> bool {
        self.minor > Self::NEWEST.minor
    }

    /// Returns this version, or the oldest supported version if this version is older. A version that is too new is not
    /// changed, because it has the behavior of the newest supported version.
    #[must_use]
    pub const fn at_least_oldest(self) -> Self {
        if self.minor < Self::OLDEST.minor {
            Self::OLDEST
        } else {
            self
        }
    }

    /// Returns the supported version that is closest to this version.
    #[must_use]
    pub const fn nearest_supported(self) -> Self {
        if self.minor < Self::OLDEST.minor {
            Self::OLDEST
        } else if self.minor > Self::NEWEST.minor {
            Self::NEWEST
        } else {
            self
        }
    }

    /// Returns true if this is the patch release `1.minor.patch` or any later version.
    #[must_use]
    pub fn has_patch(&self, minor: u16, patch: u16) -> bool {
        self.minor > minor || self.minor == minor && self.patch.is_none_or(|own| own >= patch)
    }

    /// Returns the steps of an upgrade from this version to `to`. Each step increases one minor version: first that of
    /// cel-go, then that of Kubernetes. The last element is `to`. Returns an empty list if `to` is not newer.
    #[must_use]
    pub fn steps_to(self, to: Self) -> Vec<Self> {
        let mut steps = Vec::new();
        let mut step = self;
        while step.cel_go < to.cel_go {
            step.cel_go = step.cel_go.next();
            steps.push(step);
        }
        for minor in self.minor.saturating_add(1)..to.minor {
            step = Self {
                cel_go: step.cel_go,
                ..Self::new(minor)
            };
            steps.push(step);
        }
        if self < to && steps.last() != Some(&to) {
            steps.push(to);
        }
        steps
    }

    /// Returns the minor version.
    #[must_use]
    pub const fn platform(&self) -> Version {
        Version::new(1, self.minor)
    }

    const fn compatibility(&self) -> Version {
        Version::new(1, self.min_compat)
    }

    /// Returns the versions that determine the functions of the base environment.
    #[must_use]
    pub const fn release(&self) -> Release {
        let has_patch = match self.patch {
            Some(patch) => patch >= CONTAINED_NETWORKS.patch,
            None => true,
        };
        let platform = if self.minor == CONTAINED_NETWORKS.minor && has_patch {
            CONTAINED_NETWORKS
        } else {
            self.platform()
        };
        Release {
            platform,
            cel_go: self.cel_go,
        }
    }

    /// Returns the versions that determine the functions that expressions can use in `mode`.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/environment/environment.go`, `EnvSet.NewExpressionsEnv`,
    /// `EnvSet.StoredExpressionsEnv`.
    #[must_use]
    pub const fn release_in(&self, mode: CompileMode) -> Release {
        match mode {
            CompileMode::New => Release {
                platform: self.compatibility(),
                cel_go: self.cel_go,
            },
            CompileMode::Stored => self.release(),
        }
    }

    /// Returns the behavior of cel-go for expressions that are compiled in `mode`.
    #[must_use]
    pub fn language_in(&self, mode: CompileMode) -> cel::version::Behavior {
        match mode {
            CompileMode::New => self.language(self.compatibility()),
            CompileMode::Stored => self.language(self.platform()),
        }
    }

    /// Returns the behavior of cel-go with the macros of `platform`.
    fn language(&self, platform: Version) -> cel::version::Behavior {
        cel::version::Behavior {
            keywords_as_field_names: platform >= V1_31,
            two_variable_macros: platform >= V1_32,
            sort_by_macro: platform >= V1_34,
            ..cel::version::Behavior::new(self.cel_go)
        }
    }

    /// Returns true if this version has a change that was backported to several minor versions. `patches` contains the
    /// first patch release of each minor version with the change, as pairs of minor and patch version, newest first.
    #[must_use]
    pub fn has_one_of(&self, patches: &[(u16, u16)]) -> bool {
        let newest = patches.first().map_or(u16::MAX, |(minor, _)| *minor);
        patches.iter().any(|(minor, patch)| {
            (*minor == newest || *minor == self.minor) && self.has_patch(*minor, *patch)
        })
    }

    /// Returns true if the minor version is at least `minor`.
    #[must_use]
    pub const fn has_minor(&self, minor: u16) -> bool {
        self.minor >= minor
    }

    /// Returns true if the API server is built with cel-go `cel_go` or later.
    #[must_use]
    pub fn has_cel_go(&self, cel_go: CelGo) -> bool {
        self.cel_go >= cel_go
    }

    /// Returns the behavior of this version, except for its overloads.
    #[must_use]
    pub fn behavior(&self) -> Behavior {
        Behavior {
            language: self.language(self.platform()),
            patches_convert_nested_objects: self.has_one_of(NESTED_PATCH_VALUES),
            declares_untyped_params: self.minor >= 36,
            names_result_types: self.minor >= 32,
            omits_zero_times: self.minor >= 34,
            writes_lists_as_json: self.minor >= 34,
            rule_errors_have_values: self.minor >= 35,
            limits_labels_in_bytes: self.minor >= 35,
            webhooks_skip_reviews: self.minor >= 37,
            max_audited_failures: if self.minor >= 37 { 50 } else { 1 },
            reads_go_values: self.minor >= 37,
            is_incomplete: self.is_too_new(),
            lists_hold_cel_values: self.minor >= 37,
            formats_depend_on_type: self.minor >= 36,
            enforces_name_formats: self.accepts(V1_34),
            static_names: match self.minor {
                ..=35 => StaticNames::Accepted,
                36 => StaticNames::Warned,
                37.. => StaticNames::Rejected,
            },
            bounds_names_in_rules: self.minor >= 37,
            bounds_int_or_string_by_length: self.minor >= 34,
            has_defaults_of_1_37: self.minor >= 37,
            length_errors: match self.minor {
                ..=31 => LengthErrors::Separate,
                32 | 33 => LengthErrors::Bytes,
                34.. => LengthErrors::ByteOrBytes,
            },
            names_empty_owner_fields: self.minor < 34,
            reports_missing_metadata_fields: self.minor >= 37,
        }
    }
}

impl From<KubernetesVersion> for Release {
    /// Returns the versions that determine the functions of stored expressions.
    fn from(version: KubernetesVersion) -> Self {
        version.release()
    }
}

impl Default for KubernetesVersion {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)?;
        match self.patch {
            Some(patch) => write!(f, ".{patch}"),
            None => Ok(()),
        }
    }
}

/// The version of the API servers of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterVersion {
    /// The version for which expressions are compiled. It is the lowest version that an API server reports.
    pub version: KubernetesVersion,
    /// True if API servers report different versions, as during an upgrade.
    pub is_lowest_of_several: bool,
}

impl From<KubernetesVersion> for ClusterVersion {
    /// Returns the version of API servers that all report `version`.
    fn from(version: KubernetesVersion) -> Self {
        Self {
            version,
            is_lowest_of_several: false,
        }
    }
}

/// The situation in which the API server compiles an expression. It determines the declared names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileMode {
    /// A request creates or changes the expression.
    New,
    /// The API server loads the stored expression.
    Stored,
}

/// The response of an API server to a request for `/version`.
///
/// Source: k8s.io/apimachinery `pkg/version/types.go`, `Info`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VersionInfo {
    /// The major version, such as `1`.
    pub major: String,
    /// The minor version, such as `36` or `36+`.
    pub minor: String,
    /// The emulated minor version. Empty before 1.33.
    pub emulation_minor: String,
    /// The minor version that determines which functions new expressions can use. Empty before 1.33.
    pub min_compatibility_minor: String,
    /// The version with its patch, such as `v1.36.3`.
    pub git_version: String,
}

/// The error for a string that is not a supported version, such as `1.29` or `latest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedVersion;

impl fmt::Display for UnsupportedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (oldest, newest) = (KubernetesVersion::OLDEST, KubernetesVersion::NEWEST);
        write!(f, "supported versions are {oldest} to {newest}")
    }
}

impl std::error::Error for UnsupportedVersion {}

impl FromStr for KubernetesVersion {
    type Err = UnsupportedVersion;

    /// Parses a supported version such as `1.33`, `v1.33` or `1.33.4`.
    fn from_str(text: &str) -> Result<Self, UnsupportedVersion> {
        let number = |part: &str| part.parse::<u16>().map_err(|_| UnsupportedVersion);
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
        let (Some("1"), Some(minor)) = (parts.next(), parts.next()) else {
            return Err(UnsupportedVersion);
        };
        let mut version = Self::new(number(minor)?);
        if let Some(patch) = parts.next() {
            version.patch = Some(number(patch)?);
        }
        if version.is_supported() {
            Ok(version)
        } else {
            Err(UnsupportedVersion)
        }
    }
}

/// A range of supported versions, or one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRange {
    /// The oldest version.
    pub first: KubernetesVersion,
    /// The newest version.
    pub last: KubernetesVersion,
}

impl VersionRange {
    /// Returns the versions of the range except the newest one, newest first. Each minor version occurs once.
    #[must_use]
    pub fn older(&self) -> Vec<KubernetesVersion> {
        let minors = self.first.minor..self.last.minor;
        let version = |minor| {
            if minor == self.first.minor {
                self.first
            } else {
                KubernetesVersion::new(minor)
            }
        };
        minors.rev().map(version).collect()
    }
}

impl FromStr for VersionRange {
    type Err = InvalidRange;

    /// Parses a version such as `1.33`, or a range such as `1.33-1.37`.
    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first: KubernetesVersion = first.trim().parse()?;
        let last: KubernetesVersion = last.trim().parse()?;
        if last.is_older_than(&first) {
            return Err(InvalidRange::Order);
        }
        Ok(Self { first, last })
    }
}

/// The error for a string that is not a [`VersionRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRange {
    /// One of the versions is not supported.
    #[error(transparent)]
    Version(#[from] UnsupportedVersion),
    /// The second version is older.
    #[error("write the older version first, as in 1.33-1.37")]
    Order,
}

/// Parses the digits at the start of `text`. `None` if there are none.
fn leading_number(text: &str) -> Option<u16> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.get(..end.unwrap_or(text.len()))?.parse().ok()
}

/// Returns the cel-go version of Kubernetes `1.minor`. A patch release never changes it.
///
/// Source: `go.mod` of k8s.io/kubernetes in each release branch.
const fn upstream_cel_go(minor: u16) -> CelGo {
    match minor {
        ..=30 => CelGo::OLDEST,
        31 => CelGo::V0_20,
        32 => CelGo::V0_22,
        33 => CelGo::V0_23,
        34..=36 => CelGo::V0_26,
        37.. => CelGo::V0_29,
    }
}

pub(crate) const V1_27: Version = Version::new(1, 27);
pub(crate) const V1_28: Version = Version::new(1, 28);
pub(crate) const V1_29: Version = Version::new(1, 29);
pub(crate) const V1_30: Version = Version::new(1, 30);
pub(crate) const V1_31: Version = Version::new(1, 31);
pub(crate) const V1_32: Version = Version::new(1, 32);
pub(crate) const V1_33: Version = Version::new(1, 33);
pub(crate) const V1_34: Version = Version::new(1, 34);
pub(crate) const V1_35: Version = Version::new(1, 35);
pub(crate) const V1_37: Version = Version::new(1, 37);

/// The first patch release in which `containsCIDR` returns true for a contained network with a different start address.
///
/// Source: k8s.io/kubernetes `CHANGELOG/CHANGELOG-1.32.md`, v1.32.4 (#130773).
pub(crate) const CONTAINED_NETWORKS: Version = V1_32.with_patch(4);

/// The first patch releases in which [`Behavior::patches_convert_nested_objects`] is true.
pub const NESTED_PATCH_VALUES: &[(u16, u16)] = &[(36, 5), (35, 10)];

/// Returns true if an API server of `release` applies the cost rules of its libraries when it measures the costs of
/// calls.
///
/// Source: k8s.io/apiserver 0.32 `pkg/features/kube_features.go`, `StrictCostEnforcementForVAP`.
pub(crate) fn measures_library_costs(release: Release) -> bool {
    release.platform >= V1_32
}

/// Returns the first Kubernetes version whose upstream release contains cel-go `cel_go` or later.
#[must_use]
pub fn first_with(cel_go: CelGo) -> Version {
    let mut supported = KubernetesVersion::supported();
    let first = supported.find(|version| version.cel_go >= cel_go);
    first.unwrap_or(KubernetesVersion::NEWEST).platform()
}

/// Returns the first version whose API server accepts new expressions with the additions of the version `introduced`.
#[must_use]
pub const fn usable_since(introduced: Version) -> Version {
    Version::new(introduced.major, introduced.minor.saturating_add(1))
}

impl KubernetesVersion {
    /// Returns true if an API server of this version accepts new expressions with the additions of the version
    /// `introduced`.
    pub(crate) fn accepts(&self, introduced: Version) -> bool {
        introduced <= self.compatibility()
    }

    /// Returns true if an API server of this version accepts a function with the given availability in new expressions.
    pub(crate) fn has(&self, available: &Availability) -> bool {
        self.accepts(available.since) && available.includes_cel_go(self.cel_go)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_versions_are_parsed() {
        let parse = |text: &str| text.parse::<KubernetesVersion>();
        assert_eq!(parse("1.30"), Ok(KubernetesVersion::new(30)));
        assert_eq!(
            parse("v1.36.4"),
            Ok(KubernetesVersion::new(36).with_patch(4))
        );
        for unknown in ["1.29", "1.38", "2.30", "1", "1.x", "1.33.x", ""] {
            assert_eq!(parse(unknown), Err(UnsupportedVersion), "{unknown}");
        }
    }

    #[test]
    fn reported_version_has_patch_emulated_version_and_min_compatibility() {
        let info =
            |minor: &str, git_version: &str, emulation: &str, min_compat: &str| VersionInfo {
                major: "1".to_owned(),
                minor: minor.to_owned(),
                emulation_minor: emulation.to_owned(),
                min_compatibility_minor: min_compat.to_owned(),
                git_version: git_version.to_owned(),
            };
        let version = |info| KubernetesVersion::from_info(&info);
        let reported = version(info("32", "v1.32.1", "", ""));
        assert_eq!(reported, Some(KubernetesVersion::new(32).with_patch(1)));
        let reported = version(info("30+", "v1.30.2-gke.100", "", ""));
        assert_eq!(reported, Some(KubernetesVersion::new(30).with_patch(2)));
        let reported = version(info("36", "v1.36.3", "36", "34"));
        assert_eq!(reported.map(|version| version.min_compat), Some(34));
        // A binary that emulates an older version keeps its own cel-go. The patch version of the emulated version is
        // unknown.
        let reported = version(info("37", "v1.37.2", "35", "35"));
        let expected = KubernetesVersion {
            min_compat: 35,
            cel_go: CelGo::V0_29,
            ..KubernetesVersion::new(35)
        };
        assert_eq!(reported, Some(expected));
        assert_eq!(version(info("", "unknown", "", "")), None);
    }

    #[test]
    fn each_version_step_changes_one_release_of_kubernetes_or_cel_go() {
        let steps = |from: &str, to: &str| -> Vec<String> {
            let [from, to]: [KubernetesVersion; 2] = [from, to].map(|text| text.parse().unwrap());
            let steps = from.steps_to(to).into_iter();
            steps.map(|it| format!("{it}/{}", it.cel_go)).collect()
        };
        assert_eq!(
            steps("1.35.4", "1.37.1"),
            [
                "1.35.4/0.27",
                "1.35.4/0.28",
                "1.35.4/0.29",
                "1.36/0.29",
                "1.37.1/0.29"
            ]
        );
        assert_eq!(steps("1.36.3", "1.36.6"), ["1.36.6/0.26"]);
        assert_eq!(steps("1.36", "1.36"), [""; 0]);
        assert_eq!(steps("1.37", "1.36"), [""; 0]);
    }

    #[test]
    fn length_errors_have_the_text_of_the_version() {
        for (minor, metadata, string) in [
            (31, "must have at most 1 bytes", "may not be longer than 1"),
            (
                33,
                "may not be more than 1 bytes",
                "may not be more than 1 bytes",
            ),
            (
                34,
                "may not be more than 1 byte",
                "may not be more than 1 byte",
            ),
        ] {
            let texts = KubernetesVersion::new(minor).behavior().length_errors;
            assert_eq!(texts.metadata_text(1), metadata, "1.{minor}");
            assert_eq!(texts.string_text(1), string, "1.{minor}");
            assert_eq!(texts.string_text(-1), "value is too long");
        }
    }

    #[test]
    fn json_patches_convert_nested_objects_since_1_35_10_and_1_36_5() {
        for (version, expected) in [
            ("1.34.13", false),
            ("1.35.9", false),
            ("1.35.10", true),
            ("1.35", true),
            ("1.36.4", false),
            ("1.36.5", true),
            ("1.36", true),
            ("1.37.0", true),
        ] {
            let version: KubernetesVersion = version.parse().unwrap();
            let behavior = version.behavior();
            assert_eq!(
                behavior.patches_convert_nested_objects, expected,
                "{version}"
            );
        }
    }
}
