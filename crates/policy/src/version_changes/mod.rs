//! Changes between Kubernetes versions that affect policies, and the nodes of expressions that a change may affect.
//!
//! The nodes that [`affected_nodes`] returns are only candidates. [`crate::runtime_errors::compare_versions`] evaluates
//! requests under both versions, and so confirms that a change affects them.

mod calls;
mod change;
mod table;

use crate::compile::{CompileMode, CompiledPolicy};
use crate::expressions::Words;
use cel::ast::ExprId;
use kubernetes::version::KubernetesVersion;

pub use change::{Since, VersionChange};
pub use table::ALL;

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

/// Returns the change between two versions that explains why the expression `text` compiles only in the newer version.
/// `None` if no change explains it.
#[must_use]
pub fn compiling_change(
    text: &str,
    old: KubernetesVersion,
    new: KubernetesVersion,
) -> Option<&'static VersionChange> {
    between(old, new).find(|change| change.compiles.is_some_and(|compiles| compiles(text)))
}

#[cfg(test)]
mod tests;
