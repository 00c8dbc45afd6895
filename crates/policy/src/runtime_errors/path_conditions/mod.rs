//! Path conditions: the branch conditions under which an evaluation reaches a node.
//!
//! `disjuncts` and `calls` translate a branch condition to disjuncts. A disjunct consists of constraints on the
//! request, and further branch conditions that must be solved. `solver` combines one disjunct of each condition.

mod calls;
mod disjuncts;
mod sample_text;
pub(crate) mod solver;

use std::rc::Rc;

use crate::runtime_errors::symbolic::BranchCondition;
pub(crate) use calls::texts_near;

/// A conjunction of branch conditions: a linked list with the innermost condition first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathCondition(Option<Rc<Conjunct>>);

#[derive(Debug)]
struct Conjunct {
    condition: BranchCondition,
    /// True if the node is reached even if the condition is false, but its error then has no effect. For example, `b`
    /// is a soft condition of `a` in `a && b`: `a` is always evaluated, but a false `b` absorbs its error.
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

    /// Returns the conditions, innermost first. Soft conditions are included if `with_soft` is true.
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

    /// Returns all conditions except the soft ones that cannot be true together with the others. `is_satisfiable` tests a
    /// conjunction.
    pub(crate) fn satisfiable(
        &self,
        is_satisfiable: impl Fn(Vec<BranchCondition>) -> bool,
    ) -> Vec<BranchCondition> {
        let mut conditions = self.conditions(false);
        let mut next = self.0.as_deref();
        while let Some(conjunct) = next {
            if conjunct.is_soft {
                conditions.push(conjunct.condition.clone());
                if !is_satisfiable(conditions.clone()) {
                    conditions.pop();
                }
            }
            next = conjunct.outer.0.as_deref();
        }
        conditions
    }

    /// Returns the arguments for successive calls of [`Self::conditions`]. The first call omits soft conditions. If
    /// there are any, the second call includes them.
    pub(crate) fn attempts(&self) -> &'static [bool] {
        if self.has_soft() {
            &[false, true]
        } else {
            &[false]
        }
    }

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
