//! Branch conditions, and the disjuncts that satisfy them.

use super::{ExprRef, Scope};
use kubernetes::validity::{Constraint, FieldPath};

/// A goal: something that has to be so for an evaluation to go on to a place.
#[derive(Clone, Debug)]
pub(crate) enum BranchCondition {
    /// The expression is `true`, or `false`.
    Evaluates(ExprRef, Scope, bool),
    /// The list or map at the path is not empty.
    NonEmpty(FieldPath),
}

/// One way to reach a goal: needs, and goals in its place.
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
