//! Changes of the API server, and the releases that contain them.

use std::fmt;

use crate::rule::Rule;
use cel::ast::ExprId;
use cel::checker::CheckedAst;
use cel::version::CelGo;
use kubernetes::version::{KubernetesVersion, first_with};

/// A change of the API server that affects policies.
#[derive(Debug)]
pub struct VersionChange {
    /// The stable identifier, such as `or-value-without-optional`.
    pub id: &'static str,
    /// The first release with the change.
    pub since: Since,
    /// The behavior since this release and the earlier behavior, as Markdown.
    pub summary: &'static str,
    /// The upstream file and symbol with the change.
    pub source: &'static str,
    /// The rule of `check` that reports affected expressions. `None` if there is none.
    pub rule: Option<Rule>,
    /// Returns true if the change may affect a node of an expression. `None` if the change does not affect single nodes.
    pub(super) affects: Option<fn(&CheckedAst, ExprId) -> bool>,
    /// Returns true if an expression with this text might compile only with the change. `None` if all expressions that
    /// compile with the change also compile without it.
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
            Self::CelGo(cel_go) => version.has_cel_go(cel_go),
            Self::Kubernetes(minor) => version.has_minor(minor),
            Self::Patches(patches) => version.has_one_of(patches),
        }
    }

    /// Returns the releases of Kubernetes for the documentation, such as `1.37` or `1.36.5, 1.35.10`.
    #[must_use]
    pub fn kubernetes(self) -> String {
        match self {
            Self::CelGo(cel_go) => first_with(cel_go).to_string(),
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
        write!(f, "Kubernetes {}", self.kubernetes())?;
        match self {
            Self::CelGo(cel_go) => write!(f, " (cel-go {cel_go})"),
            Self::Kubernetes(_) | Self::Patches(_) => Ok(()),
        }
    }
}
