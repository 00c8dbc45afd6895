//! Records the results of individual expressions, to find those that fail.

use std::sync::{Mutex, PoisonError};

use cel::value::{EvalError, Value};

/// The cost limit of a traced evaluation, in cost units. Traces try many small requests.
pub(crate) const TRACED_CALL_LIMIT: u64 = 50_000;

/// The authorizer checks allowed in a traced evaluation in addition to that cost. They are expensive with a real
/// authorizer, and free without one.
pub(crate) const TRACED_CHECKS: u64 = 6;

/// The result of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The index of the expression among those of the policy.
    pub(crate) index: usize,
    /// Its value if it is a boolean, or its error.
    pub(crate) result: Result<Option<bool>, EvalError>,
}

/// The results, in the order of evaluation: variables precede their readers.
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
