//! Values of fields without a declared type, as with `x-kubernetes-preserve-unknown-fields`.

use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Opaque, Value};

use super::raw::{go_type, unwrapped};

/// A value without a declared type. Expressions can compare such values, but support no other operation.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unknownPreserved`.
#[derive(Debug)]
pub(super) struct Preserved(pub(super) Value);

impl Opaque for Preserved {
    fn type_(&self) -> Type {
        Type::opaque("unknown", Vec::new())
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        self.equals_within(other, &EvalBudget::default())
    }

    fn equals_within(&self, other: &Value, budget: &EvalBudget) -> Result<bool, EvalError> {
        let other = unwrapped(other, budget)?;
        Ok(go_type(&self.0) == go_type(&other) && self.0.equals_within(&other, budget)?)
    }

    fn convert_to(&self, to: &Type) -> Result<Value, EvalError> {
        Err(EvalError::new(format!(
            "type conversion to '{}' not supported for values preserved by \
             x-kubernetes-preserve-unknown-fields",
            to.type_name()
        )))
    }

    fn own_type(&self) -> Result<Type, EvalError> {
        self.convert_to(&Type::Type(None)).map(|of| of.type_())
    }

    fn native_type(&self) -> &'static str {
        go_type(&self.0)
    }

    fn go_type(&self) -> &'static str {
        "*common.unknownPreserved"
    }

    fn through_native(&self, _: &EvalBudget) -> Result<Option<Value>, EvalError> {
        Ok(None)
    }
}
