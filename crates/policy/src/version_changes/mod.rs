//! Changes between Kubernetes versions that affect policies, and the nodes of expressions that a change may affect.
//!
//! A node that [`affected_nodes`] returns is only a candidate: the change affects requests only if an evaluation under
//! both versions confirms it ([`crate::runtime_errors::compare_versions`]).

mod table;

use std::fmt;

use crate::compile::{CompileMode, CompiledPolicy};
use crate::expressions::Words;
use crate::rule::Rule;
use cel::ast::{Expr, ExprId};
use cel::checker::CheckedAst;
use cel::types::Type;
use cel::version::CelGo;
use kubernetes::version::KubernetesVersion;

pub use table::ALL;

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
    affects: Option<fn(&CheckedAst, ExprId) -> bool>,
    /// Returns true if an expression that compiles only since the change contains this text. `None` if the change does
    /// not make expressions compile.
    compiles: Option<fn(&str) -> bool>,
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

/// A node of an expression that a change may affect.
#[derive(Clone, Copy, Debug)]
pub struct AffectedNode {
    /// The change.
    pub change: &'static VersionChange,
    /// The index of the expression in the policy.
    pub index: usize,
    /// The node.
    pub node: ExprId,
}

/// Returns the changes that `new` has and `old` lacks.
pub fn between(
    old: KubernetesVersion,
    new: KubernetesVersion,
) -> impl Iterator<Item = &'static VersionChange> {
    ALL.iter()
        .filter(move |change| change.since.includes(new) && !change.since.includes(old))
}

/// Returns the nodes of `policy` that a change between the two versions may affect. Expressions that do not compile in
/// the version of `policy` are skipped.
#[must_use]
pub fn affected_nodes(
    policy: &CompiledPolicy,
    old: KubernetesVersion,
    new: KubernetesVersion,
) -> Vec<AffectedNode> {
    let changes: Vec<_> = between(old, new)
        .filter_map(|change| Some((change, change.affects?)))
        .collect();
    let mut nodes = Vec::new();
    if changes.is_empty() {
        return nodes;
    }
    policy.compile_each(CompileMode::Stored, Words::Ours, |expression, sound| {
        let Some(sound) = sound else { return };
        let checked = &sound.checked;
        for (change, affects) in &changes {
            let ids = checked.ast().iter().map(|(id, _)| id);
            nodes.extend(
                ids.filter(|id| affects(checked, *id))
                    .map(|node| AffectedNode {
                        change,
                        index: expression.index,
                        node,
                    }),
            );
        }
    });
    nodes
}

/// Returns the change between two versions because of which the expression `text` compiles only in the newer one. `None`
/// if no change explains it.
#[must_use]
pub fn compiling_change(
    text: &str,
    old: KubernetesVersion,
    new: KubernetesVersion,
) -> Option<&'static VersionChange> {
    between(old, new).find(|change| change.compiles.is_some_and(|compiles| compiles(text)))
}

/// Returns the function, the receiver and the arguments of a call.
fn call(checked: &CheckedAst, id: ExprId) -> Option<(&str, Option<ExprId>, &[ExprId])> {
    match checked.ast().expr(id) {
        Expr::Call {
            function,
            target,
            args,
        } => Some((function, *target, args)),
        _ => None,
    }
}

/// Returns the arguments of a call of the function `namespace.name`. The parser represents the namespace as a receiver.
fn qualified_call<'a>(
    checked: &'a CheckedAst,
    id: ExprId,
    namespace: &str,
    names: &[&str],
) -> Option<&'a [ExprId]> {
    let (function, target, args) = call(checked, id)?;
    let is_namespace = checked.ast().qualified_name(target?).as_deref() == Some(namespace);
    (is_namespace && names.contains(&function)).then_some(args)
}

/// Returns true if `id` is a call of one of `functions` with a receiver.
fn is_method(checked: &CheckedAst, id: ExprId, functions: &[&str]) -> bool {
    call(checked, id)
        .is_some_and(|(function, target, _)| target.is_some() && functions.contains(&function))
}

/// Returns true if the static type of `id` is a type of a library, such as a quantity.
fn is_library_value(checked: &CheckedAst, id: ExprId) -> bool {
    matches!(checked.type_at(id), Type::Struct(type_) if type_.name.contains('.'))
}

#[cfg(test)]
mod tests;
