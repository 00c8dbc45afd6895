//! What a kind makes of an expression: which parts are never evaluated for objects of that kind.
//!
//! For one kind `object.kind`, `request.resource.resource` and the like are constants. Where they decide a
//! condition (`object.kind == 'Pod' ? … : …`, `object.kind != 'Pod' || …`), the other branch is not evaluated,
//! or its error is absorbed, so that findings in it are no trouble. A pass of its own over the checked
//! tree: types are not changed.
//!
//! Source: cel-spec `doc/langdef.md`, "Logical Operators" (`error && false` is false, `error || true` is
//! true); `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go` (the values of `request`).

use std::sync::Arc;

use crate::cel::ast::{Comprehension, Expr, ExprId, Literal};
use crate::cel::checker::CheckedAst;
use crate::cel::types::Type;

/// A value that is known before any request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Const {
    Bool(bool),
    Text(Arc<str>),
    List(Vec<Const>),
}

/// What is known of all requests for one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFacts {
    /// Dotted names with their values: `object.kind` is `Pod`.
    pub(super) paths: Vec<(&'static str, Arc<str>)>,
    /// Variables with their values, where these are known.
    pub(super) variables: Vec<(String, Option<Const>)>,
}

/// What narrowing found out about an expression.
#[derive(Debug)]
pub(super) struct Reached {
    /// For each expression, whether it can be evaluated with an effect.
    reachable: Vec<bool>,
    /// The variables that are read where the expression is reached.
    pub(super) variables: Vec<String>,
    /// The value of the whole, where it is known.
    pub(super) value: Option<Const>,
}

impl Reached {
    /// Whether `id` can be evaluated with an effect.
    pub(super) fn is_reachable(&self, id: ExprId) -> bool {
        self.reachable.get(id.index()).copied().unwrap_or(true)
    }
}

/// The most evaluation steps for one expression; beyond that nothing is known.
const MAX_STEPS: u32 = 50_000;

/// Finds out what `facts` make of `checked`.
pub(super) fn narrow(checked: &CheckedAst, facts: &KnownFacts) -> Reached {
    let mut narrowing = Narrowing {
        checked,
        facts,
        scopes: Vec::new(),
        steps: 0,
        reached: Reached {
            reachable: vec![false; checked.ast().len()],
            variables: Vec::new(),
            value: None,
        },
    };
    let root = checked.ast().root();
    narrowing.reached.value = narrowing.eval(root);
    narrowing.reach(root);
    narrowing.reached
}

struct Narrowing<'a> {
    checked: &'a CheckedAst,
    facts: &'a KnownFacts,
    scopes: Vec<(Arc<str>, Option<Const>)>,
    steps: u32,
    reached: Reached,
}

impl<'a> Narrowing<'a> {
    fn expr(&self, id: ExprId) -> &'a Expr {
        self.checked.ast().expr(id)
    }

    fn variable_read(&self, id: ExprId) -> Option<&'a str> {
        let is_variables = |operand: ExprId| matches!(self.expr(operand), Expr::Ident(name) if &**name == "variables");
        match self.expr(id) {
            Expr::Select { operand, field, .. } if is_variables(*operand) => Some(field),
            Expr::Call { function, args, .. } if &**function == "_?._" => match &**args {
                [operand, field] if is_variables(*operand) => match self.expr(*field) {
                    Expr::Literal(Literal::String(name)) => Some(name),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Marks what is evaluated with an effect from `id` down.
    fn reach(&mut self, id: ExprId) {
        if let Some(flag) = self.reached.reachable.get_mut(id.index()) {
            *flag = true;
        }
        if let Some(name) = self.variable_read(id)
            && !self.reached.variables.iter().any(|known| known == name)
        {
            self.reached.variables.push(name.to_owned());
        }
        match self.expr(id) {
            Expr::Call { function, args, .. } => match (&**function, &**args) {
                ("_&&_", &[left, right]) => self.reach_logical(left, right, false),
                ("_||_", &[left, right]) => self.reach_logical(left, right, true),
                ("_?_:_", &[condition, then, otherwise]) => {
                    self.reach(condition);
                    match self.eval(condition) {
                        Some(Const::Bool(true)) => self.reach(then),
                        Some(Const::Bool(false)) => self.reach(otherwise),
                        _ => {
                            self.reach(then);
                            self.reach(otherwise);
                        }
                    }
                }
                _ => self.reach_parts(id),
            },
            Expr::Comprehension(fold) => self.reach_fold(fold),
            _ => self.reach_parts(id),
        }
    }

    fn reach_parts(&mut self, id: ExprId) {
        let mut parts = Vec::new();
        self.checked
            .ast()
            .for_each_child(id, |part| parts.push(part));
        for part in parts {
            self.reach(part);
        }
    }

    /// An operand that is `absorbing` decides the whole, whichever side it is on.
    fn reach_logical(&mut self, left: ExprId, right: ExprId, absorbing: bool) {
        let absorbing = Some(Const::Bool(absorbing));
        if self.eval(left) == absorbing {
            self.reach(left);
        } else if self.eval(right) == absorbing {
            self.reach(right);
        } else {
            self.reach(left);
            self.reach(right);
        }
    }

    fn reach_fold(&mut self, fold: &Comprehension) {
        self.reach(fold.iter_range);
        self.reach(fold.accu_init);
        let n_outer = self.scopes.len();
        // A fold over no elements binds a name to a value; any other changes its accumulator.
        let binds = matches!(self.expr(fold.iter_range), Expr::List { elements, .. } if elements.is_empty());
        let accu = if binds {
            self.eval(fold.accu_init)
        } else {
            None
        };
        self.scopes.push((Arc::clone(&fold.accu_var), accu));
        self.scopes.push((Arc::clone(&fold.iter_var), None));
        if let Some(var2) = &fold.iter_var2 {
            self.scopes.push((Arc::clone(var2), None));
        }
        if !binds {
            self.reach(fold.loop_condition);
            self.reach(fold.loop_step);
        }
        self.reach(fold.result);
        self.scopes.truncate(n_outer);
    }

    /// The value of `id`, where it is known.
    fn eval(&mut self, id: ExprId) -> Option<Const> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        match self.expr(id) {
            Expr::Literal(Literal::Bool(value)) => Some(Const::Bool(*value)),
            Expr::Literal(Literal::String(value)) => Some(Const::Text(Arc::clone(value))),
            Expr::Ident(name) => {
                let found = self
                    .scopes
                    .iter()
                    .rev()
                    .find(|(variable, _)| variable == name)?;
                found.1.clone()
            }
            Expr::Select {
                operand,
                field,
                test_only,
            } => self.eval_select(id, *operand, field, *test_only),
            Expr::List {
                elements,
                optional_indices,
            } if optional_indices.is_empty() => {
                let values: Option<Vec<_>> = elements.iter().map(|&e| self.eval(e)).collect();
                values.map(Const::List)
            }
            Expr::Call {
                function,
                target,
                args,
            } => self.eval_call(function, *target, args),
            Expr::Comprehension(fold) => self.eval_fold(fold),
            _ => None,
        }
    }

    fn eval_select(
        &self,
        id: ExprId,
        operand: ExprId,
        field: &str,
        test_only: bool,
    ) -> Option<Const> {
        if test_only {
            // A field that no object of the kind has is never there.
            let Type::Struct(object) = self.checked.type_of(operand) else {
                return None;
            };
            let fields = object.fields.as_ref()?;
            let known = fields.field_type(&object.name, field).is_some() || fields.may_hold(field);
            return (!known).then_some(Const::Bool(false));
        }
        if let Some(name) = self.variable_read(id) {
            let found = self
                .facts
                .variables
                .iter()
                .find(|(variable, _)| variable == name)?;
            return found.1.clone();
        }
        let path = self.checked.ast().qualified_name(id)?;
        let is_shadowed = path
            .split('.')
            .next()
            .is_some_and(|root| self.scopes.iter().any(|(variable, _)| **variable == *root));
        if is_shadowed {
            return None;
        }
        let (_, value) = self.facts.paths.iter().find(|(known, _)| *known == path)?;
        Some(Const::Text(Arc::clone(value)))
    }

    fn eval_call(
        &mut self,
        function: &str,
        target: Option<ExprId>,
        args: &[ExprId],
    ) -> Option<Const> {
        let boolean = |value| Some(Const::Bool(value));
        match (function, target, args) {
            ("!_", None, &[operand]) => match self.eval(operand)? {
                Const::Bool(value) => boolean(!value),
                Const::Text(_) | Const::List(_) => None,
            },
            ("@not_strictly_false", None, &[operand]) => self.eval(operand),
            ("_&&_", None, &[left, right]) => self.eval_logical(left, right, false),
            ("_||_", None, &[left, right]) => self.eval_logical(left, right, true),
            ("_?_:_", None, &[condition, then, otherwise]) => match self.eval(condition)? {
                Const::Bool(true) => self.eval(then),
                Const::Bool(false) => self.eval(otherwise),
                Const::Text(_) | Const::List(_) => None,
            },
            ("_==_", None, &[left, right]) => boolean(self.eval(left)? == self.eval(right)?),
            ("_!=_", None, &[left, right]) => boolean(self.eval(left)? != self.eval(right)?),
            ("@in", None, &[element, list]) => match (self.eval(element)?, self.eval(list)?) {
                (element, Const::List(values)) => boolean(values.contains(&element)),
                _ => None,
            },
            ("_+_", None, &[left, right]) => match (self.eval(left)?, self.eval(right)?) {
                (Const::List(mut left), Const::List(right)) => {
                    left.extend(right);
                    Some(Const::List(left))
                }
                _ => None,
            },
            ("startsWith" | "endsWith" | "contains", Some(text), &[part]) => {
                let (Const::Text(text), Const::Text(part)) = (self.eval(text)?, self.eval(part)?)
                else {
                    return None;
                };
                boolean(match function {
                    "startsWith" => text.starts_with(&*part),
                    "endsWith" => text.ends_with(&*part),
                    _ => text.contains(&*part),
                })
            }
            _ => None,
        }
    }

    fn eval_logical(&mut self, left: ExprId, right: ExprId, absorbing: bool) -> Option<Const> {
        let (left, right) = (self.eval(left), self.eval(right));
        let is = |value: &Option<Const>, wanted| *value == Some(Const::Bool(wanted));
        if is(&left, absorbing) || is(&right, absorbing) {
            return Some(Const::Bool(absorbing));
        }
        (is(&left, !absorbing) && is(&right, !absorbing)).then_some(Const::Bool(!absorbing))
    }

    /// A fold over a list that is known, or one that only binds a name.
    fn eval_fold(&mut self, fold: &Comprehension) -> Option<Const> {
        let Const::List(values) = self.eval(fold.iter_range)? else {
            return None;
        };
        if fold.iter_var2.is_some() {
            return None;
        }
        let mut accu = self.eval(fold.accu_init);
        let n_outer = self.scopes.len();
        for value in values {
            self.scopes.push((Arc::clone(&fold.accu_var), accu));
            self.scopes.push((Arc::clone(&fold.iter_var), Some(value)));
            accu = self.eval(fold.loop_step);
            self.scopes.truncate(n_outer);
        }
        self.scopes.push((Arc::clone(&fold.accu_var), accu));
        let result = self.eval(fold.result);
        self.scopes.truncate(n_outer);
        result
    }
}
