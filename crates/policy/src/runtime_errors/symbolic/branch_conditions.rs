//! Branch conditions, and the disjuncts that satisfy them.

use super::{ExprRef, Scope};
use kubernetes::validity::{Constraint, FieldPath};

/// A condition for reaching a node.
#[derive(Clone, Debug)]
pub(crate) enum BranchCondition {
    /// The boolean expression evaluates to the given value.
    Evaluates(ExprRef, Scope, bool),
    /// The list or map at the path has at least this many elements or entries.
    HasElements(FieldPath, usize),
}

/// One way to satisfy a branch condition: constraints, and further branch conditions that must be solved.
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
