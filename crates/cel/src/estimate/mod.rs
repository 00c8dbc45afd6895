//! Cost estimates: the minimum and maximum cost of an evaluation, computed by a traversal of the checked AST.
//!
//! Takes a [`CheckedAst`] and a [`SizeEstimator`], and returns a [`CostEstimate`]. The [`SizeEstimator`] supplies the
//! sizes of variables. An estimate never fails, and takes time linear in the size of the tree.
//!
//! Source: cel-go `checker/cost.go`, `coster`.

#![warn(clippy::arithmetic_side_effects)]

mod facts;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::ast::{Ast, Comprehension, Expr, ExprId, MapEntry};
use crate::checker::{CheckedAst, Reference};
use crate::cost::factors::{
    CONST_COST, LIST_CREATE_BASE_COST, MAP_CREATE_BASE_COST, SELECT_AND_IDENT_COST,
    STRUCT_CREATE_BASE_COST,
};
use crate::cost::{
    Call, CostEstimate, PathId, PathStep, Paths, ResultOf, SizeEstimate, SizeEstimator,
};
use crate::decls::OverloadRow;
use crate::interrupt::checkpoint;
use crate::stack::{SHALLOW_DEPTH, run_on_deep_stack};
use crate::syntax::{ACCUMULATOR, FORMER_ACCUMULATOR};
use crate::types::Type;
use crate::version::Behavior;
use facts::{EntrySize, Facts, LocalVariable};

/// Options of the cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostOptions {
    /// True if a presence test, such as `has(a.b)`, is charged (`PresenceTestHasCost`).
    pub presence_test_has_cost: bool,
}

impl Default for CostOptions {
    fn default() -> Self {
        Self {
            presence_test_has_cost: true,
        }
    }
}

/// Estimates the cost of evaluating `checked`.
///
/// The estimate of an expression with errors is meaningless.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use cel::cost::{CostEstimate, UnknownSizes};
/// use cel::env::Env;
/// use cel::estimate::{CostOptions, estimate};
/// use cel::{checker, stdlib, syntax};
///
/// let env = Env::new(Arc::new(stdlib::library()));
/// let text = "1 > 2 && 3 > 4";
/// let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
/// let (checked, _) = checker::check(&ast, text, &env);
/// let cost = estimate(&checked, &UnknownSizes, CostOptions::default());
/// assert_eq!(cost, CostEstimate::new(1, 2));
/// # Ok::<(), &str>(())
/// ```
///
/// Source: cel-go `checker/cost.go`, `Cost`.
#[must_use]
pub fn estimate(
    checked: &CheckedAst,
    sizes: &dyn SizeEstimator,
    options: CostOptions,
) -> CostEstimate {
    let ast: &Ast = checked.ast();
    run_on_deep_stack(ast.depth() > SHALLOW_DEPTH, || {
        Coster::new(checked, sizes, options).cost(ast.root())
    })
}

/// The empty range. Its union with any range is that range.
const NO_COST: CostEstimate = CostEstimate::new(u64::MAX, 0);

/// The empty range. Its union with any range is that range.
const NO_SIZE: SizeEstimate = SizeEstimate::new(u64::MAX, 0);

struct Coster<'a> {
    checked: &'a CheckedAst,
    ast: &'a Ast,
    sizes: &'a dyn SizeEstimator,
    behavior: Behavior,
    options: CostOptions,
    paths: Paths,
    facts: Vec<Facts>,
    /// Variables of the enclosing comprehensions, innermost last.
    scopes: Vec<LocalVariable>,
}

/// Returns true if `name` is the accumulator variable of a standard macro.
fn is_accumulator(name: &str) -> bool {
    [FORMER_ACCUMULATOR, ACCUMULATOR].contains(&name)
}

struct CostedCall<'b> {
    target: Option<ExprId>,
    args: &'b [ExprId],
    arg_costs: &'b [CostEstimate],
}

impl<'a> Coster<'a> {
    fn new(checked: &'a CheckedAst, sizes: &'a dyn SizeEstimator, options: CostOptions) -> Self {
        let ast: &Ast = checked.ast();
        Self {
            checked,
            ast,
            sizes,
            behavior: checked.behavior(),
            options,
            paths: Paths::default(),
            facts: vec![Facts::default(); ast.len()],
            scopes: Vec::new(),
        }
    }

    fn cost(&mut self, id: ExprId) -> CostEstimate {
        checkpoint();
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Unspecified => CostEstimate::default(),
            Expr::Literal(_) => CostEstimate::fixed(CONST_COST),
            Expr::Ident(name) => {
                let name = self.resolved_name(id).unwrap_or(name);
                self.cost_ident(id, name)
            }
            Expr::Select {
                operand,
                field,
                test_only,
            } => match self.resolved_name(id) {
                Some(name) => self.cost_ident(id, name),
                None if *test_only => self.cost_presence_test(*operand),
                None => self.cost_select(id, *operand, field),
            },
            Expr::Call { target, args, .. } => self.cost_call(id, *target, args),
            Expr::List { elements, .. } => self.cost_list(id, elements),
            Expr::Map(entries) => self.cost_map(id, entries),
            Expr::Struct { fields, .. } => {
                let mut sum = CostEstimate::fixed(STRUCT_CREATE_BASE_COST);
                for field in fields {
                    sum = sum.plus(self.cost(field.value));
                }
                sum
            }
            Expr::Comprehension(fold) if self.is_bind(fold) => self.cost_bind(id, fold),
            Expr::Comprehension(fold) => self.cost_comprehension(id, fold),
        }
    }

    /// Returns the qualified name of the variable or type to which `id` resolves. `None` if `id` resolves to neither a
    /// variable nor a type.
    fn resolved_name(&self, id: ExprId) -> Option<&'a Arc<str>> {
        match self.checked.reference(id) {
            Some(Reference::Ident(name)) => Some(name),
            _ => None,
        }
    }

    fn cost_ident(&mut self, id: ExprId, name: &Arc<str>) -> CostEstimate {
        let path = match self.local(name) {
            Some(variable) => variable.path,
            None if is_accumulator(name) => None,
            None => Some(self.paths.add(None, PathStep::Variable(Arc::clone(name)))),
        };
        self.set_path(id, path);
        CostEstimate::fixed(SELECT_AND_IDENT_COST)
    }

    fn cost_presence_test(&mut self, operand: ExprId) -> CostEstimate {
        let own = u64::from(self.options.presence_test_has_cost);
        self.cost(operand).plus(CostEstimate::fixed(own))
    }

    fn cost_select(&mut self, id: ExprId, operand: ExprId, field: &Arc<str>) -> CostEstimate {
        let mut sum = self.cost(operand);
        let type_ = self.checked.type_at(operand);
        if matches!(type_, Type::Map(_) | Type::Struct(_) | Type::Param(_)) {
            sum = sum.plus(CostEstimate::fixed(SELECT_AND_IDENT_COST));
        }
        self.extend_path(id, operand, PathStep::Field(Arc::clone(field)));
        sum
    }

    fn cost_list(&mut self, id: ExprId, elements: &[ExprId]) -> CostEstimate {
        let mut sum = CostEstimate::fixed(LIST_CREATE_BASE_COST);
        let mut item_size = NO_SIZE;
        for &element in elements {
            sum = sum.plus(self.cost(element));
            item_size = item_size.union(self.size_or_unknown(element));
        }
        let item_size = non_empty(item_size, elements.len());
        self.set_entry(id, Some(EntrySize::for_elements(item_size)));
        sum
    }

    fn cost_map(&mut self, id: ExprId, entries: &[MapEntry]) -> CostEstimate {
        let mut sum = CostEstimate::fixed(MAP_CREATE_BASE_COST);
        let (mut key_size, mut value_size) = (NO_SIZE, NO_SIZE);
        for entry in entries {
            sum = sum.plus(self.cost(entry.key));
            sum = sum.plus(self.cost(entry.value));
            key_size = key_size.union(self.size_or_unknown(entry.key));
            value_size = value_size.union(self.size_or_unknown(entry.value));
        }
        let entry = EntrySize {
            is_list: false,
            key: non_empty(key_size, entries.len()),
            value: non_empty(value_size, entries.len()),
        };
        self.set_entry(id, Some(entry));
        sum
    }

    fn cost_call(&mut self, id: ExprId, target: Option<ExprId>, args: &[ExprId]) -> CostEstimate {
        let Some(Reference::Function {
            overloads,
            namespaced,
            ..
        }) = self.checked.reference(id)
        else {
            return CostEstimate::default();
        };
        if let ([only], [arg]) = (&**overloads, args)
            && only.result_of == ResultOf::Argument
            && self.behavior.estimates_local_sizes
        {
            let cost = self.cost(*arg).plus(CostEstimate::fixed(1));
            self.copy_sizes(id, *arg);
            return cost;
        }
        let arg_costs: Vec<_> = args.iter().map(|arg| self.cost(*arg)).collect();
        // `optional` in `optional.of(x)` is part of the function name, not a receiver.
        let target = target.filter(|_| !namespaced);
        let target_cost = target.map_or_else(CostEstimate::default, |target| self.cost(target));
        let call = CostedCall {
            target,
            args,
            arg_costs: &arg_costs,
        };
        self.set_index_path(id, overloads, args);
        let (cost, size) = self.overloads_estimate(id, overloads, &call);
        self.set_size(id, size);
        self.set_joined_entry(id, overloads, args);
        target_cost.plus(cost)
    }

    /// Returns the union of the estimates of all overloads, and the size of the result.
    fn overloads_estimate(
        &self,
        id: ExprId,
        overloads: &[&'static OverloadRow],
        call: &CostedCall<'_>,
    ) -> (CostEstimate, Option<SizeEstimate>) {
        let args: Vec<_> = call.args.iter().map(|arg| self.node(*arg)).collect();
        let target = call.target.map(|target| self.node(target));
        let operands = Call {
            target: target.as_ref(),
            args: &args,
        };
        let mut cost = NO_COST;
        let mut size: Option<SizeEstimate> = None;
        for overload in overloads {
            let static_cost = overload.costs.estimate;
            let estimate = static_cost.estimate(&operands, call.arg_costs, self.sizes);
            cost = cost.union(estimate.cost);
            size = match (size, estimate.result_size) {
                (Some(size), Some(other)) => Some(size.union(other)),
                (size, other) => size.or(other),
            };
            if !self.behavior.estimates_local_sizes {
                continue;
            }
            if let (ResultOf::Items | ResultOf::Values, [container, ..]) =
                (overload.result_of, call.args)
            {
                size = self.entry(*container).map(|entry| entry.value);
            }
            size = size.or_else(|| self.size(id));
        }
        (cost, size)
    }

    /// Sets the path of `id`, an element of a list or a value of a map. A container that could be a list or a map is
    /// treated as a map.
    fn set_index_path(&mut self, id: ExprId, overloads: &[&'static OverloadRow], args: &[ExprId]) {
        let step = overloads
            .iter()
            .rev()
            .find_map(|overload| match overload.result_of {
                ResultOf::Items => Some(PathStep::Items),
                ResultOf::Values => Some(PathStep::Values),
                ResultOf::Call | ResultOf::Operands | ResultOf::Argument => None,
            });
        if let (Some(step), [container, ..]) = (step, args) {
            self.extend_path(id, *container, step);
        }
    }

    /// Sets the entry sizes of a concatenation or conditional to the union of the sizes of its two operands.
    fn set_joined_entry(
        &mut self,
        id: ExprId,
        overloads: &[&'static OverloadRow],
        args: &[ExprId],
    ) {
        let is_joined = overloads
            .iter()
            .any(|overload| overload.result_of == ResultOf::Operands);
        if let ([_, one, other] | [one, other], true) = (args, is_joined) {
            let entries = self.entry(*one).zip(self.entry(*other));
            self.set_entry(id, entries.map(|(one, other)| one.union(other)));
        }
    }

    /// Returns true if the comprehension only binds a name, and the release estimates it as a binding.
    fn is_bind(&self, fold: &Comprehension) -> bool {
        self.behavior.estimates_local_sizes
            && self.ast.is_bind(fold)
            && *fold.accu_var != *FORMER_ACCUMULATOR
    }

    fn cost_bind(&mut self, id: ExprId, fold: &Comprehension) -> CostEstimate {
        let mut sum = self.cost(fold.iter_range);
        sum = sum.plus(self.cost(fold.accu_init));
        let n_outer = self.scopes.len();
        self.push_accumulator(fold);
        sum = sum.plus(self.cost(fold.result));
        self.scopes.truncate(n_outer);
        self.copy_sizes(id, fold.result);
        sum
    }

    fn cost_comprehension(&mut self, id: ExprId, fold: &Comprehension) -> CostEstimate {
        let mut sum = self.cost(fold.iter_range);
        sum = sum.plus(self.cost(fold.accu_init));
        let n_outer = self.scopes.len();
        self.push_accumulator(fold);
        let n_loop = self.scopes.len();
        self.push_iteration(fold);
        let loop_cost = self.cost(fold.loop_condition);
        let step_cost = self.cost(fold.loop_step);
        self.scopes.truncate(n_loop);
        sum = sum.plus(self.cost(fold.result));
        self.scopes.truncate(n_outer);

        let n_steps = self.size_or_unknown(fold.iter_range);
        sum = sum.plus(n_steps.times_cost(step_cost.plus(loop_cost)));
        match self.ast.expr(fold.accu_init) {
            _ if !self.behavior.estimates_local_sizes => self.set_size(id, Some(n_steps)),
            Expr::Literal(_) => {
                let size = self.size(fold.accu_init);
                self.set_size(id, size);
            }
            Expr::List { .. } | Expr::Map(_) => {
                self.set_size(id, Some(n_steps));
                let entry = self.entry(fold.loop_step);
                self.set_entry(id, entry);
            }
            _ => {}
        }
        sum
    }

    fn push_accumulator(&mut self, fold: &Comprehension) {
        if !self.behavior.estimates_local_sizes {
            return;
        }
        let size = self.size(fold.accu_init);
        let entry = self.entry(fold.accu_init);
        let variable = LocalVariable {
            name: Arc::clone(&fold.accu_var),
            path: self.path_of(fold.accu_init),
            size,
            entry,
        };
        self.scopes.push(variable);
    }

    /// Source: cel-go `checker/cost.go`, `pushIterKey`, `pushIterValue`, `pushIterSingle`.
    fn push_iteration(&mut self, fold: &Comprehension) {
        let entry = self.entry(fold.iter_range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.checked.type_at(fold.iter_range), Type::List(_)),
        };
        let before = self.path_of(fold.iter_range);
        let key = if is_list {
            PathStep::Indices
        } else {
            PathStep::Keys
        };
        let value = if is_list {
            PathStep::Items
        } else {
            PathStep::Values
        };
        let key_size = entry.map(|entry| entry.key);
        let value_size = entry.map(|entry| entry.value);
        if !self.behavior.estimates_local_sizes {
            let is_map = matches!(self.checked.type_at(fold.iter_range), Type::Map(_));
            let step = if is_list { value } else { key };
            let path = (is_list || is_map).then(|| self.paths.add(before, step));
            self.push_variable(&fold.iter_var, path, None);
            return;
        }
        let value_path = Some(self.paths.add(before, value));
        let key_path = Some(self.paths.add(before, key));
        match &fold.iter_var2 {
            Some(var2) => {
                self.push_variable(&fold.iter_var, key_path, key_size);
                self.push_variable(var2, value_path, value_size);
            }
            None if is_list => self.push_variable(&fold.iter_var, value_path, value_size),
            None => self.push_variable(&fold.iter_var, key_path, key_size),
        }
    }

    fn push_variable(&mut self, name: &Arc<str>, path: Option<PathId>, size: Option<SizeEstimate>) {
        self.scopes.push(LocalVariable {
            name: Arc::clone(name),
            path,
            size,
            entry: None,
        });
    }
}

/// Returns `size`, which is the union of `n_parts` sizes. Returns 0 if there are no parts.
fn non_empty(size: SizeEstimate, n_parts: usize) -> SizeEstimate {
    if n_parts == 0 {
        SizeEstimate::fixed(0)
    } else {
        size
    }
}
