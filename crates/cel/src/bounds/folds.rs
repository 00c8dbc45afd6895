//! Comprehensions: their costs, and the bounds of their results.

use std::sync::Arc;

use super::{Bound, Bounder, Local, is_scalar};
use crate::ast::{Comprehension, Expr, ExprId};
use crate::cost::{CostEstimate, SizeEstimate};
use crate::types::Type;

impl Bounder<'_> {
    pub(super) fn visit_fold(&mut self, fold: &Comprehension) -> (CostEstimate, Bound) {
        let mut cost = self.visit(fold.iter_range);
        cost = cost.plus(self.visit(fold.accu_init));
        let n_outer = self.locals.len();
        if self.ast.is_bind(fold) {
            let bound = self.bound_of(fold.accu_init);
            self.push(&fold.accu_var, bound, None);
            cost = cost.plus(self.visit(fold.result));
            self.locals.truncate(n_outer);
            return (cost, self.bound_of(fold.result));
        }
        let init = self.bound_of(fold.accu_init);
        let is_scalar = is_scalar(self.checked.type_at(fold.accu_init));
        let during = if is_scalar {
            init.clone()
        } else {
            Bound::UNKNOWN
        };
        self.push(&fold.accu_var, during, None);
        let n_steps = self.push_iteration(fold);
        let loop_cost = self.visit(fold.loop_condition);
        let step_cost = self.visit(fold.loop_step);
        self.locals.truncate(n_outer);
        cost = cost.plus(n_steps.times_cost(step_cost.plus(loop_cost)));
        let last = if is_scalar {
            init
        } else {
            self.accumulated(fold, n_steps.max)
        };
        self.push(&fold.accu_var, last, None);
        cost = cost.plus(self.visit(fold.result));
        self.locals.truncate(n_outer);
        (cost, self.bound_of(fold.result))
    }

    /// Adds the variables of an iteration. Returns the number of iterations.
    fn push_iteration(&mut self, fold: &Comprehension) -> SizeEstimate {
        let range = self.bound_of(fold.iter_range);
        let n = range.size();
        let value = self.values(&range);
        let (keys, is_map) = match self.checked.type_at(fold.iter_range) {
            Type::List(_) => (None, false),
            Type::Map(_) => (self.keys(&range), true),
            _ => (self.keys(&range), self.is_map(&range)),
        };
        match (&fold.iter_var2, keys) {
            (Some(var2), keys) => {
                self.push(&fold.iter_var, keys.unwrap_or(Bound::SCALAR), Some(n.max));
                self.push(var2, value, None);
            }
            (None, Some(keys)) => self.push(&fold.iter_var, keys, is_map.then_some(n.max)),
            (None, None) => self.push(&fold.iter_var, value, None),
        }
        n
    }

    fn push(&mut self, name: &Arc<str>, bound: Bound, n_distinct: Option<u64>) {
        self.locals.push(Local {
            name: Arc::clone(name),
            bound,
            n_distinct,
        });
    }

    /// Returns the bound of the accumulator after `n` steps. The bound is known only if the accumulator is initially an
    /// empty list or map, and each step adds elements or changes nothing.
    fn accumulated(&mut self, fold: &Comprehension, n: u64) -> Bound {
        if self.bound_of(fold.accu_init).max() != 0 {
            return Bound::UNKNOWN;
        }
        let mut step = fold.loop_step;
        loop {
            let Some((function, args)) = self.ast.global_call(step) else {
                return Bound::UNKNOWN;
            };
            let is_accu = |id: ExprId| matches!(self.ast.expr(id), Expr::Ident(name) if *name == fold.accu_var);
            let added = match (function, args) {
                ("_?_:_", [_, then, otherwise]) if is_accu(*otherwise) => {
                    step = *then;
                    continue;
                }
                ("_+_" | "cel.@mapInsert", [accu, added]) if is_accu(*accu) => {
                    self.bound_of(*added)
                }
                ("cel.@mapInsert", [accu, key, value]) if is_accu(*accu) => Bound::map(
                    SizeEstimate::fixed(1),
                    self.bound_of(*key),
                    self.bound_of(*value),
                ),
                _ => return Bound::UNKNOWN,
            };
            let size = SizeEstimate::new(0, n.saturating_mul(added.max()));
            let repeated = added.repeated(size, self);
            if added.max() > 1 {
                return repeated;
            }
            return repeated.with_sources(self.bound_of(fold.iter_range).sources());
        }
    }
}

impl Bound {
    /// Returns the bound of a concatenation of several values that each have this bound. `size` is the size of the
    /// concatenation.
    fn repeated(&self, size: SizeEstimate, bounder: &mut Bounder<'_>) -> Self {
        let value = bounder.values(self);
        match bounder.keys(self) {
            Some(key) => Self::map(size, key, value),
            None => Self::list(size, value),
        }
    }
}
