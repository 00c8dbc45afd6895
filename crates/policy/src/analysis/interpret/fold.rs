//! Folds over lists and maps, which is what macros are expanded to.

use std::sync::Arc;

use cel::ast::{Comprehension, Expr, ExprId};
use cel::diagnostic::DiagnosticKind;
use cel::types::Type;

use super::expression::Interpreter;
use super::value::{Const, Shape, Value};

/// The most rounds until the accumulator must have come to rest.
const MAX_ROUNDS: u32 = 4;

/// The longest list whose elements are gone through one by one.
const MAX_UNROLLED: usize = 40;

/// The values of the two iteration variables; the second is not used where there is but one.
type Round = (Value, Value);

impl Interpreter<'_> {
    pub(super) fn eval_fold(&mut self, fold: &Comprehension) -> Value {
        let range = self.eval(fold.iter_range);
        let accu = self.eval(fold.accu_init);
        if self.has_failed(fold.iter_range) {
            return Value::unknown();
        }
        let n_outer = self.scopes.len();
        let accu = match self.rounds(fold, &range) {
            Some(rounds) => self.unroll(fold, accu, &rounds),
            None => self.iterate(fold, accu, &range),
        };
        self.scopes.push((Arc::clone(&fold.accu_var), accu));
        let result = self.eval(fold.result);
        self.scopes.truncate(n_outer);
        result
    }

    /// The values of the iteration variables in each round, where there are few and they are told apart: the
    /// elements of a list that is known or written out, the entries of a map that is written out.
    fn rounds(&mut self, fold: &Comprehension, range: &Value) -> Option<Vec<Round>> {
        let has_two = fold.iter_var2.is_some();
        let of_list = |values: Vec<Value>| {
            let values = values.into_iter().zip(0..);
            let rounds = values.map(|(value, n)| {
                if has_two {
                    (Value::constant(Const::Int(n)), value)
                } else {
                    (value, Value::never())
                }
            });
            rounds.collect::<Vec<Round>>()
        };
        if let Some(Const::List(elements)) = range.as_const() {
            return (elements.len() <= MAX_UNROLLED)
                .then(|| of_list(elements.iter().cloned().map(Value::constant).collect()));
        }
        if let Expr::List {
            elements,
            optional_indices,
        } = self.ast.expr(fold.iter_range)
        {
            let fits = optional_indices.is_empty() && elements.len() <= MAX_UNROLLED;
            return fits.then(|| {
                self.quietly(|this| of_list(elements.iter().map(|&id| this.eval(id)).collect()))
            });
        }
        match range.choices() {
            [only] if !range.is_unknown() => match &only.shape {
                Shape::Record(entries) => {
                    let rounds = entries.iter().map(|(key, value)| {
                        (Value::constant(Const::Text(Arc::clone(key))), value.clone())
                    });
                    Some(rounds.collect())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Goes through rounds that are known.
    fn unroll(&mut self, fold: &Comprehension, init: Value, rounds: &[Round]) -> Value {
        let mut accu = init;
        let before = self.mark();
        let n_outer = self.scopes.len();
        self.n_conditions += 1;
        for (first, second) in rounds {
            self.scopes.push((Arc::clone(&fold.accu_var), accu.clone()));
            self.scopes
                .push((Arc::clone(&fold.iter_var), first.clone()));
            if let Some(var2) = &fold.iter_var2 {
                self.scopes.push((Arc::clone(var2), second.clone()));
            }
            let goes_on = self.eval(fold.loop_condition).as_bool();
            if goes_on == Some(false) {
                self.scopes.truncate(n_outer);
                break;
            }
            let next = self.eval(fold.loop_step);
            // Where it may have ended already, the accumulator may be the one before.
            accu = if goes_on == Some(true) || is_logical(self.ast.expr(fold.loop_step)) {
                next
            } else {
                accu.or(&next)
            };
            self.scopes.truncate(n_outer);
        }
        self.n_conditions -= 1;
        if self.is_absorbed(fold.loop_step, &accu) {
            self.take_back(before);
        }
        accu
    }

    /// Reports whether the accumulator decides the whole, whatever failed on the way.
    fn is_absorbed(&self, step: ExprId, accu: &Value) -> bool {
        match self.ast.expr(step) {
            Expr::Call { function, .. } => match &**function {
                "_&&_" => accu.as_bool() == Some(false),
                "_||_" => accu.as_bool() == Some(true),
                _ => false,
            },
            _ => false,
        }
    }

    /// Goes over elements that are not known, until the accumulator rests.
    fn iterate(&mut self, fold: &Comprehension, init: Value, range: &Value) -> Value {
        let (first, second) = self.elements(fold, range);
        if first.is_never() {
            return init;
        }
        let n_outer = self.scopes.len();
        let mut accu = init;
        self.n_conditions += 1;
        for round in 0..=MAX_ROUNDS {
            if round == MAX_ROUNDS {
                accu = Value::unknown();
            }
            self.scopes.push((Arc::clone(&fold.accu_var), accu.clone()));
            self.scopes
                .push((Arc::clone(&fold.iter_var), first.clone()));
            if let Some(var2) = &fold.iter_var2 {
                self.scopes.push((Arc::clone(var2), second.clone()));
            }
            let goes_on = self.eval(fold.loop_condition).as_bool();
            let next = if goes_on == Some(false) {
                Value::never()
            } else {
                self.eval(fold.loop_step)
            };
            self.scopes.truncate(n_outer);
            let joined = accu.or(&next);
            let rests = joined == accu || is_plain_scalar(&joined);
            accu = joined;
            if rests {
                break;
            }
        }
        self.n_conditions -= 1;
        accu
    }

    /// The values of the iteration variables; a first one that never is means no iteration.
    fn elements(&mut self, fold: &Comprehension, range: &Value) -> (Value, Value) {
        if range.is_unknown() {
            return (Value::unknown(), Value::unknown());
        }
        let mut first = Value::never();
        let mut second = Value::never();
        let n_choices = range.choices().len();
        let mut unfit = None;
        let (mut fails, mut n_fit) = (false, 0);
        for choice in range.choices() {
            let (one, other) = match &choice.shape {
                Shape::List(elem, _) if elem.is_never() => (Value::never(), Value::never()),
                Shape::List(elem, _) if fold.iter_var2.is_some() => {
                    (Value::plain(Type::Int), elem.as_ref().clone())
                }
                Shape::List(elem, _) => (elem.as_ref().clone(), Value::never()),
                Shape::Map(value, _) if value.is_never() => (Value::never(), Value::never()),
                Shape::Map(value, true) => (Value::plain(Type::String), value.as_ref().clone()),
                Shape::Map(value, false) => (Value::unknown(), value.as_ref().clone()),
                Shape::Record(entries) if entries.is_empty() => (Value::never(), Value::never()),
                Shape::Record(entries) => (
                    Value::plain(Type::String),
                    entries
                        .iter()
                        .fold(Value::never(), |joined, (_, value)| joined.or(value)),
                ),
                Shape::Object(_) => (Value::plain(Type::String), Value::unknown()),
                shape @ (Shape::Plain(_) | Shape::Optional(_)) => {
                    let is_weak = choice.is_default || shape.is_null() && n_choices > 1;
                    fails |= !is_weak;
                    unfit.get_or_insert_with(|| shape.to_type());
                    continue;
                }
            };
            n_fit += 1;
            first = first.or(&one);
            second = second.or(&other);
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

/// Reports whether the value is a scalar of which nothing is known but its type: another round changes nothing.
fn is_plain_scalar(value: &Value) -> bool {
    value.as_const().is_none()
        && matches!(value.choices(), [only] if matches!(only.shape, Shape::Plain(Type::Bool | Type::Int)))
}
