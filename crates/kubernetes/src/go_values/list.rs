//! Slices.

use std::sync::Arc;

use super::equality;
use cel::value::{EvalBudget, EvalError, List, ListSource, Value};

/// Source: k8s.io/apiserver `pkg/cel/common/valuesschemalesstyped.go`, `reflectSchemalessTypedList`.
#[derive(Debug)]
pub(super) struct GoList(Vec<Value>);

impl GoList {
    pub(super) fn value(elements: Vec<Value>) -> Value {
        Value::List(List::from_source(Arc::new(Self(elements))))
    }
}

impl ListSource for GoList {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value> {
        self.0.get(index).cloned()
    }

    fn held(&self) -> Option<&[Value]> {
        Some(&self.0)
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        let Value::List(other) = other else {
            return Some(Err(equality::no_such_overload(other)));
        };
        let is_equal = self.len() == other.len()
            && self
                .0
                .iter()
                .zip(other)
                .all(|(own, other)| equality::elements(own, &other).unwrap_or(false));
        Some(Ok(is_equal))
    }

    fn contains(&self, element: &Value) -> Option<Result<bool, EvalError>> {
        let mut elements = self.0.iter();
        Some(Ok(elements.any(|own| {
            equality::elements(own, element).unwrap_or(false)
        })))
    }

    /// The concatenation is a list of CEL values, like a list literal.
    fn add(&self, other: &Value, budget: &EvalBudget) -> Option<Result<Value, EvalError>> {
        let Value::List(other) = other else {
            return Some(Err(equality::no_such_overload(other)));
        };
        let len = self.len().saturating_add(other.len());
        if let Err(error) = budget.reserve_list(len) {
            return Some(Err(error));
        }
        let elements = self.0.iter().cloned().chain(other);
        Some(Ok(Value::list(elements.collect::<Vec<_>>())))
    }

    fn index_error(&self, index: &Value) -> EvalError {
        EvalError::new(format!("unsupported index type: {}", index.go_type()))
    }

    fn go_type(&self) -> &'static str {
        "*common.reflectSchemalessTypedList"
    }

    fn native_error(&self, to: &str) -> Option<EvalError> {
        Some(EvalError::new(format!(
            "type conversion error from 'list(dyn)' to '{to}'"
        )))
    }
}
