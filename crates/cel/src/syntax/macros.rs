//! The macros of the API server's environment, expanded as in cel-go.
//!
//! All nodes created by an expansion have the location of the macro call.
//!
//! Source: cel-go `parser/macro.go` (standard macros), `cel/library.go` (`optMap`, `optFlatMap`),
//! `ext/comprehensions.go` (two-variable macros), `ext/lists.go` (`sortByMacro`).

use std::sync::Arc;

use crate::ast::{AstBuilder, Comprehension, Expr, ExprId, Literal};
use crate::names::shared;
use crate::version::Behavior;

/// Name of the accumulator variable, which cannot occur in the source of an expression.
///
/// Source: cel-go `parser/macro.go`, `HiddenAccumulatorName`.
pub(crate) const ACCUMULATOR: &str = "@result";

/// Former name of the accumulator variable. Macros reject it as the name of an iteration variable.
///
/// Source: cel-go `parser/macro.go`, `AccumulatorName`.
pub(crate) const FORMER_ACCUMULATOR: &str = "__result__";

/// Iteration variable of a comprehension that only binds a name.
pub(super) const UNUSED_ITER_VAR: &str = "#unused";

/// Name to which `sortBy` binds its input.
pub(super) const SORT_BY_INPUT: &str = "@__sortBy_input__";

/// The reason why a macro call cannot be expanded.
#[derive(Debug)]
pub(super) enum MacroError {
    /// An argument has an invalid form. Contains the argument, which has the location of the error, and the message.
    Invalid(ExprId, String),
    TooLarge,
}

type Expansion = Result<ExprId, MacroError>;

fn is_available(function: &str, n_args: usize, behavior: Behavior) -> bool {
    match (function, n_args) {
        ("all" | "exists" | "exists_one" | "existsOne", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", _) => {
            behavior.two_variable_macros
        }
        ("sortBy", _) => behavior.sort_by_macro,
        _ => true,
    }
}

/// Expands a call of `function`. `None` if there is no such macro.
pub(super) fn expand(
    builder: &mut AstBuilder,
    max_nodes: usize,
    offset: u32,
    function: &str,
    target: Option<ExprId>,
    args: &[ExprId],
    behavior: Behavior,
) -> Option<Expansion> {
    if !is_available(function, args.len(), behavior) {
        return None;
    }
    let mut factory = Factory {
        builder,
        max_nodes,
        offset,
    };
    let expansion = match (function, target, args) {
        ("has", None, &[arg]) => factory.has(arg),
        ("all", Some(range), &[var, test]) => factory.quantifier(Quantifier::All, range, var, test),
        ("exists", Some(range), &[var, test]) => {
            factory.quantifier(Quantifier::Exists, range, var, test)
        }
        ("exists_one", Some(range), &[var, test]) => {
            factory.quantifier(Quantifier::ExistsOne, range, var, test)
        }
        ("map", Some(range), &[var, transform]) => factory.map(range, var, None, transform),
        ("map", Some(range), &[var, filter, transform]) => {
            factory.map(range, var, Some(filter), transform)
        }
        ("filter", Some(range), &[var, test]) => factory.filter(range, var, test),
        ("optMap", Some(target), &[var, transform]) => factory.opt_map(target, var, transform),
        ("optFlatMap", Some(target), &[var, transform]) => {
            factory.opt_flat_map(target, var, transform)
        }
        ("all", Some(range), &[var, var2, test]) => {
            factory.quantifier2(Quantifier::All, range, (var, var2), test)
        }
        ("exists", Some(range), &[var, var2, test]) => {
            factory.quantifier2(Quantifier::Exists, range, (var, var2), test)
        }
        ("exists_one" | "existsOne", Some(range), &[var, var2, test]) => {
            factory.quantifier2(Quantifier::ExistsOne, range, (var, var2), test)
        }
        (
            "transformList" | "transformMap" | "transformMapEntry",
            Some(range),
            &[v, v2, transform],
        ) => factory.transform(function, range, (v, v2), None, transform),
        (
            "transformList" | "transformMap" | "transformMapEntry",
            Some(range),
            &[v, v2, filter, transform],
        ) => factory.transform(function, range, (v, v2), Some(filter), transform),
        ("sortBy", Some(target), &[var, key]) => factory.sort_by(target, var, key),
        _ => return None,
    };
    Some(expansion)
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

/// The components of a comprehension that differ between macros.
struct Fold {
    init: ExprId,
    condition: ExprId,
    step: ExprId,
    result: ExprId,
}

/// Creates nodes at the location of the macro call.
struct Factory<'a> {
    builder: &'a mut AstBuilder,
    max_nodes: usize,
    offset: u32,
}

impl Factory<'_> {
    fn add(&mut self, expr: Expr) -> ExprId {
        self.builder.add(self.offset, expr)
    }

    fn ident(&mut self, name: &str) -> ExprId {
        self.add(Expr::Ident(shared(name)))
    }

    fn accu(&mut self) -> ExprId {
        self.ident(ACCUMULATOR)
    }

    fn literal(&mut self, literal: Literal) -> ExprId {
        self.add(Expr::Literal(literal))
    }

    fn list(&mut self, elements: &[ExprId]) -> ExprId {
        self.add(Expr::List {
            elements: elements.into(),
            optional_indices: Box::default(),
        })
    }

    fn call(&mut self, function: &str, args: &[ExprId]) -> ExprId {
        self.add(Expr::Call {
            function: shared(function),
            target: None,
            args: args.into(),
        })
    }

    fn member_call(&mut self, function: &str, target: ExprId, args: &[ExprId]) -> ExprId {
        self.add(Expr::Call {
            function: shared(function),
            target: Some(target),
            args: args.into(),
        })
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "each fold is used for one comprehension"
    )]
    fn fold(&mut self, range: ExprId, var: Arc<str>, var2: Option<Arc<str>>, fold: Fold) -> ExprId {
        self.add(Expr::Comprehension(Box::new(Comprehension {
            iter_range: range,
            iter_var: var,
            iter_var2: var2,
            accu_var: shared(ACCUMULATOR),
            accu_init: fold.init,
            loop_condition: fold.condition,
            loop_step: fold.step,
            result: fold.result,
        })))
    }

    /// Binds `value` to `name` within `result`.
    fn bind(&mut self, name: &str, value: ExprId, result: ExprId) -> ExprId {
        let iter_range = self.list(&[]);
        let loop_condition = self.literal(Literal::Bool(false));
        let loop_step = self.ident(name);
        self.add(Expr::Comprehension(Box::new(Comprehension {
            iter_range,
            iter_var: shared(UNUSED_ITER_VAR),
            iter_var2: None,
            accu_var: name.into(),
            accu_init: value,
            loop_condition,
            loop_step,
            result,
        })))
    }

    fn simple_name(&self, id: ExprId) -> Option<Arc<str>> {
        match self.builder.expr(id) {
            Expr::Ident(name) => Some(Arc::clone(name)),
            _ => None,
        }
    }

    fn iter_var(&self, id: ExprId, otherwise: &str) -> Result<Arc<str>, MacroError> {
        let name = self
            .simple_name(id)
            .ok_or_else(|| MacroError::Invalid(id, otherwise.to_owned()))?;
        if *name == *ACCUMULATOR || *name == *FORMER_ACCUMULATOR {
            let message = "iteration variable overwrites accumulator variable";
            return Err(MacroError::Invalid(id, message.into()));
        }
        Ok(name)
    }

    fn iter_vars(
        &self,
        (first, second): (ExprId, ExprId),
    ) -> Result<(Arc<str>, Arc<str>), MacroError> {
        let not_simple = |id| MacroError::Invalid(id, "argument must be a simple name".into());
        let name = self.simple_name(first).ok_or_else(|| not_simple(first))?;
        let name2 = self.simple_name(second).ok_or_else(|| not_simple(second))?;
        if name == name2 {
            return Err(MacroError::Invalid(
                second,
                format!("duplicate variable name: {name}"),
            ));
        }
        self.iter_var(first, "")?;
        self.iter_var(second, "")?;
        Ok((name, name2))
    }

    fn has(&mut self, arg: ExprId) -> Expansion {
        match self.builder.expr(arg) {
            // As in cel-go, presence tests may be nested: `has(has(a.b))` is `has(a.b)`.
            Expr::Select { operand, field, .. } => {
                let (operand, field) = (*operand, Arc::clone(field));
                Ok(self.add(Expr::Select {
                    operand,
                    field,
                    test_only: true,
                }))
            }
            _ => Err(MacroError::Invalid(
                arg,
                "invalid argument to has() macro".into(),
            )),
        }
    }

    fn quantifier_fold(&mut self, quantifier: Quantifier, test: ExprId) -> Fold {
        match quantifier {
            Quantifier::All => {
                let init = self.literal(Literal::Bool(true));
                let accu = self.accu();
                let condition = self.call("@not_strictly_false", &[accu]);
                let accu = self.accu();
                let step = self.call("_&&_", &[accu, test]);
                Fold {
                    init,
                    condition,
                    step,
                    result: self.accu(),
                }
            }
            Quantifier::Exists => {
                let init = self.literal(Literal::Bool(false));
                let accu = self.accu();
                let negated = self.call("!_", &[accu]);
                let condition = self.call("@not_strictly_false", &[negated]);
                let accu = self.accu();
                let step = self.call("_||_", &[accu, test]);
                Fold {
                    init,
                    condition,
                    step,
                    result: self.accu(),
                }
            }
            Quantifier::ExistsOne => {
                let init = self.literal(Literal::Int(0));
                let condition = self.literal(Literal::Bool(true));
                let (accu, one) = (self.accu(), self.literal(Literal::Int(1)));
                let incremented = self.call("_+_", &[accu, one]);
                let accu = self.accu();
                let step = self.call("_?_:_", &[test, incremented, accu]);
                let (accu, one) = (self.accu(), self.literal(Literal::Int(1)));
                Fold {
                    init,
                    condition,
                    step,
                    result: self.call("_==_", &[accu, one]),
                }
            }
        }
    }

    fn quantifier(
        &mut self,
        quantifier: Quantifier,
        range: ExprId,
        var: ExprId,
        test: ExprId,
    ) -> Expansion {
        let name = self.iter_var(var, "argument must be a simple name")?;
        let fold = self.quantifier_fold(quantifier, test);
        Ok(self.fold(range, name, None, fold))
    }

    fn quantifier2(
        &mut self,
        quantifier: Quantifier,
        range: ExprId,
        vars: (ExprId, ExprId),
        test: ExprId,
    ) -> Expansion {
        let (name, name2) = self.iter_vars(vars)?;
        let fold = self.quantifier_fold(quantifier, test);
        Ok(self.fold(range, name, Some(name2), fold))
    }

    /// Creates a comprehension that builds a list or map. Skips the elements for which `filter` is false.
    fn collect(&mut self, init: ExprId, filter: Option<ExprId>, appended: ExprId) -> Fold {
        let condition = self.literal(Literal::Bool(true));
        let step = match filter {
            None => appended,
            Some(filter) => {
                let accu = self.accu();
                self.call("_?_:_", &[filter, appended, accu])
            }
        };
        Fold {
            init,
            condition,
            step,
            result: self.accu(),
        }
    }

    fn appended(&mut self, element: ExprId) -> ExprId {
        let accu = self.accu();
        let list = self.list(&[element]);
        self.call("_+_", &[accu, list])
    }

    fn map(
        &mut self,
        range: ExprId,
        var: ExprId,
        filter: Option<ExprId>,
        transform: ExprId,
    ) -> Expansion {
        let name = self.iter_var(var, "argument is not an identifier")?;
        let init = self.list(&[]);
        let appended = self.appended(transform);
        let fold = self.collect(init, filter, appended);
        Ok(self.fold(range, name, None, fold))
    }

    fn filter(&mut self, range: ExprId, var: ExprId, test: ExprId) -> Expansion {
        self.map(range, var, Some(test), var)
    }

    fn transform(
        &mut self,
        function: &str,
        range: ExprId,
        vars: (ExprId, ExprId),
        filter: Option<ExprId>,
        transform: ExprId,
    ) -> Expansion {
        let (name, name2) = self.iter_vars(vars)?;
        let (init, step) = if function == "transformList" {
            (self.list(&[]), self.appended(transform))
        } else {
            let init = self.add(Expr::Map(Box::default()));
            let accu = self.accu();
            let step = if function == "transformMap" {
                let key = self.ident(&name);
                self.call("cel.@mapInsert", &[accu, key, transform])
            } else {
                self.call("cel.@mapInsert", &[accu, transform])
            };
            (init, step)
        };
        let fold = self.collect(init, filter, step);
        Ok(self.fold(range, name, Some(name2), fold))
    }

    /// Binds the value of the optional `target` to a name within `transform`.
    fn opt_binding(
        &mut self,
        function: &str,
        target: ExprId,
        var: ExprId,
        transform: ExprId,
    ) -> Result<(ExprId, ExprId), MacroError> {
        let name = self.simple_name(var).ok_or_else(|| {
            let message = format!("{function}() variable name must be a simple identifier");
            MacroError::Invalid(var, message)
        })?;
        let has_value = self.member_call("hasValue", target, &[]);
        let copy = self.copy(target)?;
        let value = self.member_call("value", copy, &[]);
        Ok((has_value, self.bind(&name, value, transform)))
    }

    fn opt_map(&mut self, target: ExprId, var: ExprId, transform: ExprId) -> Expansion {
        let (has_value, bound) = self.opt_binding("optMap", target, var, transform)?;
        let some = self.call("optional.of", &[bound]);
        let none = self.call("optional.none", &[]);
        Ok(self.call("_?_:_", &[has_value, some, none]))
    }

    fn opt_flat_map(&mut self, target: ExprId, var: ExprId, transform: ExprId) -> Expansion {
        let (has_value, bound) = self.opt_binding("optFlatMap", target, var, transform)?;
        let none = self.call("optional.none", &[]);
        Ok(self.call("_?_:_", &[has_value, bound, none]))
    }

    /// Copies the subtree `id`, keeping the location of each node.
    fn copy(&mut self, id: ExprId) -> Expansion {
        if self.builder.len() >= self.max_nodes {
            return Err(MacroError::TooLarge);
        }
        let offset = self.builder.offset(id);
        let mut expr = self.builder.expr(id).clone();
        match &mut expr {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => *operand = self.copy(*operand)?,
            Expr::Call { target, args, .. } => {
                for part in target.iter_mut().chain(args.iter_mut()) {
                    *part = self.copy(*part)?;
                }
            }
            Expr::List { elements, .. } => {
                for element in elements.iter_mut() {
                    *element = self.copy(*element)?;
                }
            }
            Expr::Map(entries) => {
                for entry in entries.iter_mut() {
                    entry.id = self.copy(entry.id)?;
                    entry.key = self.copy(entry.key)?;
                    entry.value = self.copy(entry.value)?;
                }
            }
            Expr::Struct { fields, .. } => {
                for field in fields.iter_mut() {
                    field.id = self.copy(field.id)?;
                    field.value = self.copy(field.value)?;
                }
            }
            Expr::Comprehension(fold) => {
                for part in [
                    &mut fold.iter_range,
                    &mut fold.accu_init,
                    &mut fold.loop_condition,
                    &mut fold.loop_step,
                    &mut fold.result,
                ] {
                    *part = self.copy(*part)?;
                }
            }
        }
        Ok(self.builder.add(offset, expr))
    }

    fn sort_by(&mut self, target: ExprId, var: ExprId, key: ExprId) -> Expansion {
        let is_list_like = matches!(
            self.builder.expr(target),
            Expr::List { .. }
                | Expr::Select { .. }
                | Expr::Ident(_)
                | Expr::Comprehension(_)
                | Expr::Call { .. }
        );
        if !is_list_like {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or \
                           select expression";
            return Err(MacroError::Invalid(target, message.into()));
        }
        let input = self.ident(SORT_BY_INPUT);
        let keys = self.map(input, var, None, key)?;
        let input = self.ident(SORT_BY_INPUT);
        let sorted = self.member_call("@sortByAssociatedKeys", input, &[keys]);
        Ok(self.bind(SORT_BY_INPUT, target, sorted))
    }
}
