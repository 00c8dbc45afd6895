//! Path conditions: the branch conditions on the way to a node, and constraints on a request that satisfy them.
//!
//! `disjuncts` and `calls` translate one branch condition to its disjuncts: alternatives that each consist of
//! constraints and residual branch conditions. `solver` combines one disjunct of each condition.

mod calls;
mod disjuncts;
mod sample_text;
pub(crate) mod solver;

use std::rc::Rc;

use crate::runtime_errors::symbolic::BranchCondition;

/// A conjunction of branch conditions, the innermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathCondition(Option<Rc<Conjunct>>);

#[derive(Debug)]
struct Conjunct {
    condition: BranchCondition,
    /// True if the node is also reached without this condition, and only the effect of its failure on the request
    /// depends on it. Soft conditions are left out in the first attempt ([`PathCondition::attempts`]).
    is_soft: bool,
    outer: PathCondition,
}

impl PathCondition {
    pub(crate) fn with(&self, condition: BranchCondition, is_soft: bool) -> Self {
        Self(Some(Rc::new(Conjunct {
            condition,
            is_soft,
            outer: self.clone(),
        })))
    }

    pub(crate) fn with_all(&self, conditions: Vec<BranchCondition>) -> Self {
        conditions
            .into_iter()
            .fold(self.clone(), |all, condition| all.with(condition, false))
    }

    /// Returns the conditions, the outermost last. Soft conditions are included if `with_soft`.
    pub(crate) fn conditions(&self, with_soft: bool) -> Vec<BranchCondition> {
        let mut conditions = Vec::new();
        let mut next = self.0.as_deref();
        while let Some(conjunct) = next {
            if with_soft || !conjunct.is_soft {
                conditions.push(conjunct.condition.clone());
            }
            next = conjunct.outer.0.as_deref();
        }
        conditions
    }

    /// Returns the values of `with_soft` to try in order.
    pub(crate) fn attempts(&self) -> &'static [bool] {
        if self.has_soft() {
            &[false, true]
        } else {
            &[false]
        }
    }

    /// Returns true if a condition is soft.
    fn has_soft(&self) -> bool {
        let mut next = self.0.as_deref();
        while let Some(conjunct) = next {
            if conjunct.is_soft {
                return true;
            }
            next = conjunct.outer.0.as_deref();
        }
        false
    }
}
