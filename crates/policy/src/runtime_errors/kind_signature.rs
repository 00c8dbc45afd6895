//! Signatures of kinds: the properties that determine for which requests a policy fails. If two kinds have the same
//! signature, only the first of them is searched.

use super::failure_sites::{FailureCause, FailureSite};
use super::requests::RequestBuilder;
use super::symbolic::constant_conditions::constant_truth;
use super::symbolic::{ExprRef, Scope, SymbolicEvaluator};
use crate::admission::Operation;
use cel::ast::{Expr, ExprId};
use kubernetes::validity::FieldPath;

/// The properties of a built-in kind that affect the failures of a policy.
///
/// The failure sites depend on the types of all values that the policy reads. The path conditions of the sites depend
/// on these types too, and on comparisons with the names of the kind.
#[derive(Debug, PartialEq)]
pub(super) struct KindSignature {
    operations: Vec<Operation>,
    is_namespaced: bool,
    is_subresource: bool,
    /// The node, chain, path and cause of each failure site.
    sites: Vec<(ExprRef, ExprId, FieldPath, FailureCause)>,
    /// The comparisons and macros that have the same value in all requests for the kind, each with this value.
    constants: Vec<(ExprRef, bool)>,
}

impl KindSignature {
    /// Returns the signature of the builder's kind. `None` for custom resources, because their CRDs have different
    /// validation rules.
    pub(super) fn new(
        builder: &RequestBuilder<'_>,
        evaluator: &SymbolicEvaluator<'_>,
        sites: &[FailureSite],
    ) -> Option<Self> {
        builder.object.is_builtin().then_some(())?;
        let mut constants = Vec::new();
        for (index, expression) in evaluator.policy.expressions().iter().enumerate() {
            let Ok(ast) = expression.parsed() else {
                continue;
            };
            for (id, expr) in ast.iter() {
                let is_comparison = match expr {
                    Expr::Call { function, .. } => {
                        matches!(&**function, "_==_" | "_!=_" | "@in")
                    }
                    Expr::Comprehension(_) => true,
                    _ => false,
                };
                let node = ExprRef { index, id };
                let truth = || constant_truth(evaluator, node, &Scope::default());
                if let Some(value) = is_comparison.then(truth).flatten() {
                    constants.push((node, value));
                }
            }
        }
        let site = |site: &FailureSite| (site.node, site.chain, site.path.clone(), site.cause);
        Some(Self {
            operations: builder.operations.clone(),
            is_namespaced: builder.resource.namespaced,
            is_subresource: builder.resource.gvr.is_subresource(),
            sites: sites.iter().map(site).collect(),
            constants,
        })
    }
}
