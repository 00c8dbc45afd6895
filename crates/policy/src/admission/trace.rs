//! The results of single expressions, for who wants to know which of them fails, and where.

use std::sync::{Mutex, PoisonError};

use cel::value::{EvalError, Value};

/// The greatest cost of an evaluation that is traced, in cost units: who traces tries many small requests.
pub(crate) const TRACED_CALL_LIMIT: u64 = 50_000;

/// The checks of the authorizer that a traced evaluation may ask for besides. They cost much where an authorizer is
/// asked, and nothing where none is.
pub(crate) const TRACED_CHECKS: u64 = 6;

/// The result of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The index of the expression among those of the policy.
    pub(crate) index: usize,
    /// Its value if that is a boolean, or its error.
    pub(crate) result: Result<Option<bool>, EvalError>,
}

/// The results in the order in which they came up; those of variables before those of who reads them.
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
