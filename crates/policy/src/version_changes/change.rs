//! The type of a change, and the releases that have it.

use std::fmt;

use crate::rule::Rule;
use cel::ast::ExprId;
use cel::checker::CheckedAst;
use cel::version::CelGo;
use kubernetes::version::KubernetesVersion;

/// A change of the API server that affects policies.
#[derive(Debug)]
pub struct VersionChange {
    /// The stable identifier, such as `or-value-without-optional`.
    pub id: &'static str,
    /// The first release with the change.
    pub since: Since,
    /// The behavior since this release and before, as Markdown.
    pub summary: &'static str,
    /// The upstream file and symbol with the change.
    pub source: &'static str,
    /// The rule of `check` that reports affected expressions. `None` if there is none.
    pub rule: Option<Rule>,
    /// Returns true if the change may affect a node of an expression. `None` if the change does not affect single nodes.
    pub(super) affects: Option<fn(&CheckedAst, ExprId) -> bool>,
    /// Returns true if an expression that compiles only since the change contains this text. `None` if the change does
    /// not make expressions compile.
    pub(super) compiles: Option<fn(&str) -> bool>,
}

/// The first release with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// A version of cel-go.
    CelGo(CelGo),
    /// A minor version of Kubernetes.
    Kubernetes(u16),
    /// Patch releases of several minor versions, as pairs of minor version and patch, newest first.
    Patches(&'static [(u16, u16)]),
}

impl Since {
    /// Returns true if `version` has the change.
    #[must_use]
    pub fn includes(self, version: KubernetesVersion) -> bool {
        match self {
            Self::CelGo(cel_go) => cel_go <= version.cel_go,
            Self::Kubernetes(minor) => minor <= version.minor,
            Self::Patches(patches) => {
                let mut patches = patches.iter();
                let is_newest = |minor| minor < version.minor;
                patches.next().is_some_and(|(minor, patch)| {
                    is_newest(*minor) || version.has_patch(*minor, *patch)
                }) || patches.any(|(minor, patch)| {
                    *minor == version.minor && version.has_patch(*minor, *patch)
                })
            }
        }
    }

    /// Returns the releases of Kubernetes for the documentation, such as `1.37` or `1.36.5, 1.35.10`.
    #[must_use]
    pub fn kubernetes(self) -> String {
        match self {
            Self::CelGo(cel_go) => {
                let mut versions = KubernetesVersion::supported();
                let first = versions.find(|version| cel_go <= version.cel_go);
                first.map_or_else(|| "later".to_owned(), |version| version.to_string())
            }
            Self::Kubernetes(minor) => KubernetesVersion::new(minor).to_string(),
            Self::Patches(patches) => {
                let patches = patches.iter();
                let patches: Vec<String> = patches
                    .map(|(minor, patch)| {
                        KubernetesVersion::new(*minor)
                            .with_patch(*patch)
                            .to_string()
                    })
                    .collect();
                patches.join(", ")
            }
        }
    }
}

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CelGo(cel_go) => {
                write!(f, "Kubernetes {} (cel-go {cel_go})", self.kubernetes())
            }
            Self::Kubernetes(_) | Self::Patches(_) => {
                write!(f, "Kubernetes {}", self.kubernetes())
            }
        }
    }
}
