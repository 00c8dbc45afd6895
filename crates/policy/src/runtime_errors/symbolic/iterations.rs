//! Determines the elements that a comprehension visits, and the conditions under which it visits them.

use serde_json::json;

use super::{
    ANY_KEY, BranchCondition, ComprehensionKind, ExprRef, MAX_ALTERNATIVES, Scope,
    SymbolicEvaluator, SymbolicValue, comprehension_kind, input_value,
};
use cel::ast::{Comprehension, Expr};
use kubernetes::validity::FieldPath;

impl SymbolicEvaluator<'_> {
    /// Returns the elements that a macro visits in the list or map `symbolic`, each with the conditions under which it
    /// is visited.
    pub(crate) fn elements(
        &self,
        symbolic: &SymbolicValue,
        depth: usize,
    ) -> Vec<(SymbolicValue, Vec<BranchCondition>)> {
        if depth > 8 || !self.take_step() {
            return Vec::new();
        }
        match symbolic {
            SymbolicValue::Input { path, .. } if self.is_map(path) => {
                vec![(
                    SymbolicValue::MapKey(path.clone()),
                    vec![BranchCondition::HasElements(path.clone(), 1)],
                )]
            }
            SymbolicValue::Input { path, .. } => (0..self.n_elements)
                .filter_map(|n| {
                    let element = input_value(path.element(n)?);
                    let condition = BranchCondition::HasElements(path.clone(), n.saturating_add(1));
                    Some((element, vec![condition]))
                })
                .collect(),
            SymbolicValue::List(elements) => {
                let elements = elements.iter().take(MAX_ALTERNATIVES);
                elements
                    .map(|element| (element.clone(), Vec::new()))
                    .collect()
            }
            SymbolicValue::Concat(sides) => {
                let (left, right) = &**sides;
                let both = left.iter().chain(right);
                both.flat_map(|side| self.elements(side, depth.saturating_add(1)))
                    .take(MAX_ALTERNATIVES)
                    .collect()
            }
            SymbolicValue::Comprehension(node, scope) => {
                self.comprehension_elements(*node, scope, depth)
            }
            SymbolicValue::Constant(_)
            | SymbolicValue::MapKey(_)
            | SymbolicValue::Size(_)
            | SymbolicValue::SplitParts(_)
            | SymbolicValue::Unknown => Vec::new(),
        }
    }

    /// Returns conditions under which the result of a `filter` or `map` macro may be too short for an index: the filter
    /// is false for all elements that the evaluator visits. Also returns the path of the list that the macro iterates
    /// over. `None` if `symbolic` is not the result of such a macro, or if the list is not an input.
    pub(crate) fn short_list_conditions(
        &self,
        symbolic: &SymbolicValue,
    ) -> Option<(FieldPath, Vec<BranchCondition>)> {
        let SymbolicValue::Comprehension(node, scope) = symbolic else {
            return None;
        };
        let Expr::Comprehension(fold) = self.expr(*node) else {
            return None;
        };
        let ComprehensionKind::FilterMap(filter, _) = comprehension_kind(self, node.index, fold)
        else {
            return None;
        };
        let node_at = |id| node.with_id(id);
        let ranges = self.evaluate(node_at(fold.iter_range), scope);
        let path = ranges.iter().find_map(|range| self.first_path(range, 0))?;
        if let Some(collected) = ranges
            .iter()
            .find(|range| filter.is_none() && matches!(range, SymbolicValue::Comprehension(..)))
        {
            return self.short_list_conditions(collected);
        }
        let iterations = self.iterations(node.index, fold, scope, 0).into_iter();
        let excluded = filter.map_or_else(Vec::new, |filter| {
            iterations
                .map(|(iteration, _)| BranchCondition::Evaluates(node_at(filter), iteration, false))
                .collect()
        });
        Some((path, excluded))
    }

    /// Returns the path of the first input from which the elements of the list `symbolic` come. `None` if there is no
    /// such input.
    fn first_path(&self, symbolic: &SymbolicValue, depth: usize) -> Option<FieldPath> {
        if depth > 8 {
            return None;
        }
        let depth = depth.saturating_add(1);
        match symbolic {
            SymbolicValue::Input { path, .. } | SymbolicValue::SplitParts(path) => {
                Some(path.clone())
            }
            SymbolicValue::Concat(sides) => {
                let mut both = sides.0.iter().chain(&sides.1);
                both.find_map(|side| self.first_path(side, depth))
            }
            SymbolicValue::Comprehension(node, scope) => {
                let Expr::Comprehension(fold) = self.expr(*node) else {
                    return None;
                };
                let range = node.with_id(fold.iter_range);
                let ranges = self.evaluate(range, scope);
                ranges
                    .iter()
                    .find_map(|range| self.first_path(range, depth))
            }
            _ => None,
        }
    }

    fn comprehension_elements(
        &self,
        node: ExprRef,
        scope: &Scope,
        depth: usize,
    ) -> Vec<(SymbolicValue, Vec<BranchCondition>)> {
        let Expr::Comprehension(fold) = self.expr(node) else {
            return Vec::new();
        };
        let ComprehensionKind::FilterMap(filter, transform) =
            comprehension_kind(self, node.index, fold)
        else {
            return Vec::new();
        };
        let node_at = |id| node.with_id(id);
        let mut alternatives = Vec::new();
        for (scope, mut conditions) in self.iterations(node.index, fold, scope, depth) {
            conditions.extend(
                filter.map(|id| BranchCondition::Evaluates(node_at(id), scope.clone(), true)),
            );
            for symbolic in self.evaluate(node_at(transform), &scope) {
                alternatives.push((symbolic, conditions.clone()));
            }
        }
        alternatives.truncate(MAX_ALTERNATIVES);
        alternatives
    }

    /// Returns one scope for the loop body of `fold` per known element, with the conditions under which the element is
    /// visited.
    pub(crate) fn iterations(
        &self,
        index: usize,
        fold: &Comprehension,
        scope: &Scope,
        depth: usize,
    ) -> Vec<(Scope, Vec<BranchCondition>)> {
        let range = ExprRef {
            index,
            id: fold.iter_range,
        };
        let mut iterations = Vec::new();
        for symbolic in self.evaluate(range, scope) {
            for (element, conditions) in self.elements(&symbolic, depth.saturating_add(1)) {
                let scope = match &fold.iter_var2 {
                    None => scope.with(&fold.iter_var, vec![element]),
                    Some(second) => match &element {
                        SymbolicValue::MapKey(map) => {
                            let value = map
                                .field(ANY_KEY)
                                .map_or(SymbolicValue::Unknown, input_value);
                            scope
                                .with(&fold.iter_var, vec![element.clone()])
                                .with(second, vec![value])
                        }
                        _ => scope
                            .with(&fold.iter_var, vec![SymbolicValue::Constant(json!(0))])
                            .with(second, vec![element]),
                    },
                };
                iterations.push((scope, conditions));
                if iterations.len() >= MAX_ALTERNATIVES {
                    return iterations;
                }
            }
        }
        iterations
    }
}
