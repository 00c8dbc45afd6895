//! Records the result of each expression. Callers use it to find the expressions that failed.

use std::sync::{Mutex, PoisonError};

use cel::value::{EvalError, Value};

/// The cost limit of a traced evaluation. It is low because many small requests are traced.
pub(crate) const TRACED_CALL_LIMIT: u64 = 50_000;

/// The number of authorizer checks whose cost is added to the limit of a traced evaluation. A check has a high cost,
/// but takes no time without a real authorizer.
pub(crate) const TRACED_CHECKS: u64 = 6;

#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The index of the expression in the policy.
    pub(crate) index: usize,
    /// A boolean value, `None` for any other value, or the error.
    pub(crate) result: Result<Option<bool>, EvalError>,
}

/// The results in the order of evaluation. The result of a variable precedes those of the expressions that read it.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Vec<Step>>);

impl Trace {
    pub(super) fn add(&self, index: usize, result: &Result<Value, EvalError>) {
        let result = match result {
            Ok(Value::Bool(value)) => Ok(Some(*value)),
            Ok(_) => Ok(None),
            Err(error) => Err(error.clone()),
        };
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        steps.push(Step { index, result });
    }

    pub(super) fn take(&self) -> Vec<Step> {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut steps)
    }
}
