//! Path conditions: the branch conditions on the way to a node.
//!
//! `disjuncts` and `calls` translate a branch condition to its disjuncts. Each disjunct consists of constraints on a
//! request and of branch conditions that remain to be solved. `solver` combines one disjunct of each condition.

mod calls;
mod disjuncts;
mod sample_text;
pub(crate) mod solver;

use std::rc::Rc;

use crate::runtime_errors::symbolic::BranchCondition;

/// A conjunction of branch conditions, as a linked list with the innermost condition first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathCondition(Option<Rc<Conjunct>>);

#[derive(Debug)]
struct Conjunct {
    condition: BranchCondition,
    /// True if the condition does not determine whether the evaluation reaches the node, but whether an error of the
    /// node affects the request. For example, `a` in `a && b` is always reached, but if `b` is false, it absorbs the
    /// error of `a`. Therefore `b` is a soft condition of `a`.
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

    /// Returns the conditions, innermost first. Soft conditions are included only if `with_soft`.
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

    /// Returns the values of `with_soft` for which to solve [`Self::conditions`], in this order: first without soft
    /// conditions, and then with them if there are any.
    pub(crate) fn attempts(&self) -> &'static [bool] {
        if self.has_soft() {
            &[false, true]
        } else {
            &[false]
        }
    }

    /// Returns true if one of the conditions is soft.
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
