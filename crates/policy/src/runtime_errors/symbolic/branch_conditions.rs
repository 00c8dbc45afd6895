//! Branch conditions, and the disjuncts that satisfy them.

use super::{ExprRef, Scope};
use kubernetes::validity::{Constraint, FieldPath};

/// A condition of a branch on the way to a node.
#[derive(Clone, Debug)]
pub(crate) enum BranchCondition {
    /// The boolean expression evaluates to this value.
    Evaluates(ExprRef, Scope, bool),
    /// The list or map at the path has an element.
    NonEmpty(FieldPath),
}

/// One disjunct of a branch condition: constraints, and residual branch conditions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disjunct {
    pub(crate) constraints: Vec<(FieldPath, Constraint)>,
    pub(crate) conditions: Vec<BranchCondition>,
}

impl Disjunct {
    pub(crate) fn from_constraint(path: &FieldPath, constraint: Constraint) -> Self {
        Self {
            constraints: vec![(path.clone(), constraint)],
            conditions: Vec::new(),
        }
    }

    pub(crate) fn from_conditions(conditions: Vec<BranchCondition>) -> Self {
        Self {
            constraints: Vec::new(),
            conditions,
        }
    }
}
