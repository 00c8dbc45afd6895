//! Interprets comprehensions over lists and maps. Macros are expanded to comprehensions.

use std::sync::Arc;

use cel::ast::{Comprehension, Expr, ExprId};
use cel::diagnostic::DiagnosticKind;
use cel::types::Type;

use super::expression::Interpreter;
use super::value::{AbstractType, AbstractValue, Const};

/// Maximum number of iterations. If the accumulator has not reached a fixpoint by then, it becomes unknown.
const MAX_ITERATIONS: u32 = 4;

/// Maximum number of elements for interpreting a list element by element.
const MAX_UNROLLED: usize = 40;

/// The values of the two iteration variables. A comprehension with one variable does not use the second value.
type Iteration = (AbstractValue, AbstractValue);

impl Interpreter<'_> {
    pub(super) fn eval_fold(&mut self, fold: &Comprehension) -> AbstractValue {
        let range = self.eval(fold.iter_range);
        let accu = self.eval(fold.accu_init);
        if self.has_failed(fold.iter_range) {
            return AbstractValue::top();
        }
        let n_outer = self.scopes.len();
        let accu = match self.iterations(fold, &range) {
            Some(iterations) => self.unroll(fold, accu, &iterations),
            None => self.iterate(fold, accu, &range),
        };
        self.scopes.push((Arc::clone(&fold.accu_var), accu));
        let result = self.eval(fold.result);
        self.scopes.truncate(n_outer);
        result
    }

    /// Returns the values of the iteration variables, one pair per iteration. The range must be a short constant list,
    /// list literal or map literal. `None` for other ranges.
    fn iterations(
        &mut self,
        fold: &Comprehension,
        range: &AbstractValue,
    ) -> Option<Vec<Iteration>> {
        let has_two = fold.iter_var2.is_some();
        let of_list = |values: Vec<AbstractValue>| {
            let values = values.into_iter().zip(0..);
            let iterations = values.map(|(value, n)| {
                if has_two {
                    (AbstractValue::constant(Const::Int(n)), value)
                } else {
                    (value, AbstractValue::bottom())
                }
            });
            iterations.collect::<Vec<Iteration>>()
        };
        if let Some(Const::List(elements)) = range.as_const() {
            return (elements.len() <= MAX_UNROLLED).then(|| {
                of_list(
                    elements
                        .iter()
                        .cloned()
                        .map(AbstractValue::constant)
                        .collect(),
                )
            });
        }
        if let Expr::List {
            elements,
            optional_indices,
        } = self.ast.expr(fold.iter_range)
        {
            let fits = optional_indices.is_empty() && elements.len() <= MAX_UNROLLED;
            return fits.then(|| {
                self.without_recording(|this| {
                    of_list(elements.iter().map(|&id| this.eval(id)).collect())
                })
            });
        }
        match range.alternatives() {
            [only] if !range.is_top() => match &only.shape {
                AbstractType::Record(entries) => {
                    let iterations = entries.iter().map(|(key, value)| {
                        (
                            AbstractValue::constant(Const::Text(Arc::clone(key))),
                            value.clone(),
                        )
                    });
                    Some(iterations.collect())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Interprets the loop body once for each of `iterations`.
    fn unroll(
        &mut self,
        fold: &Comprehension,
        init: AbstractValue,
        iterations: &[Iteration],
    ) -> AbstractValue {
        let mut accu = init;
        let before = self.mark();
        let n_outer = self.scopes.len();
        self.n_conditions += 1;
        for (first, second) in iterations {
            self.scopes.push((Arc::clone(&fold.accu_var), accu.clone()));
            self.scopes
                .push((Arc::clone(&fold.iter_var), first.clone()));
            if let Some(var2) = &fold.iter_var2 {
                self.scopes.push((Arc::clone(var2), second.clone()));
            }
            let continues = self.eval(fold.loop_condition).as_bool();
            if continues == Some(false) {
                self.scopes.truncate(n_outer);
                break;
            }
            let next = self.eval(fold.loop_step);
            // If the loop may have ended earlier, the accumulator may have kept its previous value.
            accu = if continues == Some(true) || is_logical(self.ast.expr(fold.loop_step)) {
                next
            } else {
                accu.join(&next)
            };
            self.scopes.truncate(n_outer);
        }
        self.n_conditions -= 1;
        if self.is_absorbed(fold.loop_step, &accu) {
            self.discard_since(before);
        }
        accu
    }

    /// Returns true if the accumulator absorbs the errors of all iterations: it is false for `&&` or true for `||`.
    fn is_absorbed(&self, step: ExprId, accu: &AbstractValue) -> bool {
        match self.ast.expr(step) {
            Expr::Call { function, .. } => match &**function {
                "_&&_" => accu.as_bool() == Some(false),
                "_||_" => accu.as_bool() == Some(true),
                _ => false,
            },
            _ => false,
        }
    }

    /// Interprets the loop body for unknown elements until the accumulator reaches a fixpoint.
    fn iterate(
        &mut self,
        fold: &Comprehension,
        init: AbstractValue,
        range: &AbstractValue,
    ) -> AbstractValue {
        let (first, second) = self.elements(fold, range);
        if first.is_bottom() {
            return init;
        }
        let n_outer = self.scopes.len();
        let mut accu = init;
        self.n_conditions += 1;
        for iteration in 0..=MAX_ITERATIONS {
            if iteration == MAX_ITERATIONS {
                accu = AbstractValue::top();
            }
            self.scopes.push((Arc::clone(&fold.accu_var), accu.clone()));
            self.scopes
                .push((Arc::clone(&fold.iter_var), first.clone()));
            if let Some(var2) = &fold.iter_var2 {
                self.scopes.push((Arc::clone(var2), second.clone()));
            }
            let continues = self.eval(fold.loop_condition).as_bool();
            let next = if continues == Some(false) {
                AbstractValue::bottom()
            } else {
                self.eval(fold.loop_step)
            };
            self.scopes.truncate(n_outer);
            let joined = accu.join(&next);
            let is_stable = joined == accu || is_plain_scalar(&joined);
            accu = joined;
            if is_stable {
                break;
            }
        }
        self.n_conditions -= 1;
        accu
    }

    /// Returns, for each iteration variable, the join of its values in all iterations. If there are no iterations, the
    /// join for the first variable is bottom.
    fn elements(
        &mut self,
        fold: &Comprehension,
        range: &AbstractValue,
    ) -> (AbstractValue, AbstractValue) {
        if range.is_top() {
            return (range.clone(), range.clone());
        }
        let mut first = AbstractValue::bottom();
        let mut second = AbstractValue::bottom();
        let n_alternatives = range.alternatives().len();
        let mut unfit = None;
        let (mut fails, mut n_fit) = (false, 0);
        for alternative in range.alternatives() {
            let (one, other) = match &alternative.shape {
                AbstractType::List(elem, _) if elem.is_bottom() => {
                    (AbstractValue::bottom(), AbstractValue::bottom())
                }
                AbstractType::List(elem, _) if fold.iter_var2.is_some() => {
                    (AbstractValue::plain(Type::Int), elem.as_ref().clone())
                }
                AbstractType::List(elem, _) => (elem.as_ref().clone(), AbstractValue::bottom()),
                AbstractType::Map(value, _) if value.is_bottom() => {
                    (AbstractValue::bottom(), AbstractValue::bottom())
                }
                AbstractType::Map(value, true) => {
                    (AbstractValue::plain(Type::String), value.as_ref().clone())
                }
                AbstractType::Map(value, false) => (AbstractValue::top(), value.as_ref().clone()),
                AbstractType::Record(entries) if entries.is_empty() => {
                    (AbstractValue::bottom(), AbstractValue::bottom())
                }
                AbstractType::Record(entries) => (
                    AbstractValue::plain(Type::String),
                    entries
                        .iter()
                        .fold(AbstractValue::bottom(), |joined, (_, value)| {
                            joined.join(value)
                        }),
                ),
                AbstractType::Object(_) => {
                    (AbstractValue::plain(Type::String), AbstractValue::json())
                }
                shape @ (AbstractType::Plain(_) | AbstractType::Optional(_)) => {
                    let is_weak = alternative.is_default || shape.is_null() && n_alternatives > 1;
                    fails |= !is_weak;
                    unfit.get_or_insert_with(|| shape.to_type());
                    continue;
                }
            };
            n_fit += 1;
            first = first.join(&one);
            second = second.join(&other);
        }
        if let Some(type_) = unfit
            && (fails || n_fit == 0)
        {
            self.report(fold.iter_range, DiagnosticKind::NotARange { range: type_ });
        }
        (first, second)
    }
}

fn is_logical(step: &Expr) -> bool {
    matches!(step, Expr::Call { function, .. } if matches!(&**function, "_&&_" | "_||_"))
}

/// Returns true if only the scalar type of the value is known. Further iterations cannot change such a value.
fn is_plain_scalar(value: &AbstractValue) -> bool {
    value.as_const().is_none()
        && matches!(value.alternatives(), [only] if matches!(only.shape, AbstractType::Plain(Type::Bool | Type::Int)))
}
