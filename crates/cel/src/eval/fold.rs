//! Evaluation of comprehensions.
//!
//! Source: cel-go `interpreter/interpretable.go`, `evalFold`, `folder`.

use super::machine::{Machine, fatal};
use super::node::{Fold, Local, LoopVariable, Node};
use crate::interrupt::checkpoint;
use crate::value::{EvalError, List, Map, Value};

/// Number of iterations between two checks for interruption.
///
/// Source: k8s.io/apiserver `pkg/apis/cel/config.go`, `CheckFrequency`.
const CHECK_FREQUENCY: u32 = 100;

/// Variables of a comprehension.
#[derive(Debug)]
pub(super) struct Frame<'p> {
    first: Value,
    second: Value,
    accumulator: Accumulator<'p>,
}

/// The accumulator, which is initialized on first access.
#[derive(Debug)]
enum Accumulator<'p> {
    None,
    Initial(&'p Node),
    Ready(Result<Value, EvalError>),
}

impl Default for Frame<'_> {
    fn default() -> Self {
        Self {
            first: Value::Null,
            second: Value::Null,
            accumulator: Accumulator::None,
        }
    }
}

impl<'p> Machine<'p> {
    /// Returns the value of a comprehension variable if it is already computed.
    #[inline]
    pub(super) fn held_local(&self, local: Local) -> Option<&Value> {
        let frame = self.frames.get(local.slot)?;
        match local.variable {
            LoopVariable::First => Some(&frame.first),
            LoopVariable::Second => Some(&frame.second),
            LoopVariable::Accumulator => match &frame.accumulator {
                Accumulator::Ready(value) => value.as_ref().ok(),
                Accumulator::None | Accumulator::Initial(_) => None,
            },
        }
    }

    /// Returns the value of a comprehension variable. Initializes the accumulator if necessary.
    ///
    /// Source: cel-go `interpreter/interpretable.go`, `folder.ResolveName`.
    pub(super) fn local(&mut self, local: Local) -> Result<Value, EvalError> {
        let Some(frame) = self.frames.get(local.slot) else {
            return Err(EvalError::no_such_overload());
        };
        match local.variable {
            LoopVariable::First => Ok(frame.first.clone()),
            LoopVariable::Second => Ok(frame.second.clone()),
            LoopVariable::Accumulator => match &frame.accumulator {
                Accumulator::Ready(value) => value.clone(),
                Accumulator::None => Err(EvalError::no_such_overload()),
                Accumulator::Initial(node) => {
                    let initial = fatal(self.eval(node))?.map(|value| match value {
                        Value::List(list) if list.is_empty() => Value::List(List::growing()),
                        Value::Map(map) if map.is_empty() => Value::Map(Map::growing()),
                        other => other,
                    });
                    self.set_accumulator(local.slot, initial.clone());
                    initial
                }
            },
        }
    }

    fn set_accumulator(&mut self, slot: usize, value: Result<Value, EvalError>) {
        if let Some(frame) = self.frames.get_mut(slot) {
            frame.accumulator = Accumulator::Ready(value);
        }
    }

    /// Evaluates a comprehension, without charging the cost of the comprehension itself.
    pub(super) fn fold(&mut self, fold: &'p Fold) -> Result<Value, EvalError> {
        let range = self.eval(&fold.range)?;
        if let Some(frame) = self.frames.get_mut(fold.slot) {
            frame.accumulator = Accumulator::Initial(&fold.init);
        }
        let result = self.fold_over(fold, &range);
        if let Some(frame) = self.frames.get_mut(fold.slot) {
            *frame = Frame::default();
        }
        self.freeze(result?)
    }

    fn fold_over(&mut self, fold: &'p Fold, range: &Value) -> Result<Value, EvalError> {
        let mut before = self.tracker.n_steps();
        match range {
            Value::List(list) => {
                let mut one = |n: usize, element: Value| {
                    let (first, second) = if fold.has_two_vars {
                        (Value::Int(i64::try_from(n).unwrap_or(i64::MAX)), element)
                    } else {
                        (element, Value::Null)
                    };
                    self.iterate(fold, first, second, &mut before)
                };
                if let Some(elements) = list.held() {
                    for (n, element) in elements.iter().enumerate() {
                        if !one(n, element.clone())? {
                            break;
                        }
                    }
                } else {
                    for (n, element) in list.iter().take(list.len()).enumerate() {
                        if !one(n, element)? {
                            break;
                        }
                    }
                }
            }
            // Iterates over entries instead of keys, because some keys, such as NaN, cannot be
            // found by a lookup.
            Value::Map(map) if fold.has_two_vars && map.source().is_none() => {
                let copied = map.len().saturating_mul(size_of::<(Value, Value)>());
                self.budget.allocate(copied)?;
                for (key, value) in map.entries()? {
                    if !self.iterate(fold, key, value, &mut before)? {
                        break;
                    }
                }
                self.budget.free(copied);
            }
            Value::Map(map) => {
                let copied = map.len().saturating_mul(size_of::<Value>());
                self.budget.allocate(copied)?;
                for key in map.keys()? {
                    let second = if fold.has_two_vars {
                        map.get(&key)
                    } else {
                        Value::Null
                    };
                    if !self.iterate(fold, key, second, &mut before)? {
                        break;
                    }
                }
                self.budget.free(copied);
            }
            other if fold.has_two_vars => {
                let error = format!("unsupported comprehension range type: {}", other.go_type());
                return Err(EvalError::new(error).at_step(fold.range.id));
            }
            other => {
                let error = format!("got '{}', expected iterable type", other.go_type());
                return Err(EvalError::new(error).at_step(fold.range.id));
            }
        }
        self.eval(&fold.result)
    }

    /// Runs one iteration. If the loop condition is false, returns false without evaluating the loop step. The
    /// leftover steps of the previous iteration start at the index `before` in the cost tracker.
    fn iterate(
        &mut self,
        fold: &'p Fold,
        first: Value,
        second: Value,
        before: &mut usize,
    ) -> Result<bool, EvalError> {
        let start = self.tracker.n_steps();
        if let Some(frame) = self.frames.get_mut(fold.slot) {
            frame.first = first;
            frame.second = second;
        }
        if let Ok(Value::Bool(false)) = fatal(self.eval(&fold.condition))? {
            return Ok(false);
        }
        let next = fatal(self.eval(&fold.step))?;
        self.set_accumulator(fold.slot, next);
        self.check_interruption()?;
        // Removes the leftover steps of the previous iteration. The steps of this iteration are kept for the next one.
        let n_kept = self.tracker.n_steps();
        if n_kept >= start {
            self.tracker.forget(*before, start);
            *before = self
                .tracker
                .n_steps()
                .saturating_sub(n_kept.saturating_sub(start));
        } else {
            *before = n_kept;
        }
        Ok(true)
    }

    /// Source: cel-go `cel/program.go`, `interruptActivation`.
    fn check_interruption(&mut self) -> Result<(), EvalError> {
        checkpoint();
        self.n_iterations = self.n_iterations.wrapping_add(1);
        if self.n_iterations.is_multiple_of(CHECK_FREQUENCY)
            && let Some(is_interrupted) = self.limits.is_interrupted
            && is_interrupted()
        {
            return Err(EvalError::cancelled("operation interrupted"));
        }
        Ok(())
    }
}
