//! Slices.

use super::equality;
use cel::value::{EvalBudget, EvalError, ListSource, List, Value};
use std::sync::Arc;

/// Source: k8s.io/apiserver `pkg/cel/common/valuesschemalesstyped.go`, `reflectSchemalessTypedList`.
#[derive(Debug)]
pub(super) struct GoList {
    go_type: &'static str,
    elements: Vec<Value>,
}

impl GoList {
    pub(super) fn value(go_type: &'static str, elements: Vec<Value>) -> Value {
        Value::List(List::from_source(Arc::new(Self { go_type, elements })))
    }
}

impl ListSource for GoList {
    fn len(&self) -> usize {
        self.elements.len()
    }

    fn get(&self, index: usize) -> Option<Value> {
        self.elements.get(index).cloned()
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        let Value::List(other) = other else {
            return Some(Err(equality::no_such_overload(other)));
        };
        let is_equal = self.len() == other.len()
            && self
                .elements
                .iter()
                .zip(other)
                .all(|(own, other)| equality::elements(own, &other).unwrap_or(false));
        Some(Ok(is_equal))
    }

    fn contains(&self, element: &Value) -> Option<Result<bool, EvalError>> {
        let mut elements = self.elements.iter();
        Some(Ok(elements.any(|own| {
            equality::elements(own, element).unwrap_or(false)
        })))
    }

    /// The result is a list of CEL values, like the result of a list literal.
    fn add(&self, other: &Value, budget: &EvalBudget) -> Option<Result<Value, EvalError>> {
        let Value::List(other) = other else {
            return Some(Err(equality::no_such_overload(other)));
        };
        let len = self.len().saturating_add(other.len());
        if let Err(error) = budget.reserve_list(len) {
            return Some(Err(error));
        }
        let elements = self.elements.iter().cloned().chain(other);
        Some(Ok(Value::list(elements.collect::<Vec<_>>())))
    }

    fn index_error(&self, index: &Value) -> EvalError {
        EvalError::new(format!("unsupported index type: {}", index.go_type()))
    }

    fn go_type(&self) -> &'static str {
        "*common.reflectSchemalessTypedList"
    }

    /// Upstream asserts that the Go value is a list of strings, and recovers from the panic.
    fn check_strings(&self) -> Result<(), EvalError> {
        if self.go_type == "[]string" {
            return Ok(());
        }
        Err(EvalError::internal(&format!(
            "interface conversion: interface {{}} is {}, not []string",
            self.go_type
        )))
    }
}
