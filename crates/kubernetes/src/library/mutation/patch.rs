//! The values of the type `JSONPatch`.
//!
//! Source: k8s.io/apiserver `pkg/cel/mutation/jsonpatch.go`, `JSONPatchVal`.

use std::sync::Arc;

use super::JSON_PATCH;
use cel::types::{StructType, Type};
use cel::value::{EvalBudget, EvalError, Opaque, Traits, Value};

/// A JSON patch operation constructed by an expression such as `JSONPatch{op: "add"}`.
#[derive(Clone, Debug, Default)]
pub struct JsonPatchValue {
    /// The operation, such as `add`.
    pub op: Arc<str>,
    /// The source path of `move` and `copy`. Empty if absent.
    pub from: Arc<str>,
    /// The target path.
    pub path: Arc<str>,
    /// The value, if the expression sets it.
    pub value: Option<Value>,
}

impl JsonPatchValue {
    /// Creates the operation from the fields that an expression sets.
    pub(super) fn new(fields: Vec<(Arc<str>, Value)>) -> Result<Self, EvalError> {
        let mut patch = Self::default();
        for (name, value) in fields {
            let slot = match &*name {
                "op" => &mut patch.op,
                "path" => &mut patch.path,
                "from" => &mut patch.from,
                "value" => {
                    patch.value = Some(value);
                    continue;
                }
                other => {
                    let message = format!("unexpected JSONPatchType field: {other}");
                    return Err(EvalError::new(message));
                }
            };
            match value {
                Value::String(text) => *slot = text,
                // A type is replaced by its name, such as `int`.
                Value::Type(of) => *slot = of.type_name().into(),
                other => {
                    return Err(EvalError::new(format!(
                        "unexpected type {} for JSONPatchType '{name}' field",
                        other.wrapped_go_type()
                    )));
                }
            }
        }
        Ok(patch)
    }

    /// Returns the value of the field `key`. Returns null for an unset `value`, and `None` for an unknown field.
    fn field(&self, key: &Value) -> Option<Value> {
        Some(match key.as_str()? {
            "op" => Value::String(Arc::clone(&self.op)),
            "path" => Value::String(Arc::clone(&self.path)),
            "from" => Value::String(Arc::clone(&self.from)),
            "value" => self.value.clone().unwrap_or(Value::Null),
            _ => return None,
        })
    }
}

/// Formats a key like Go's `%s` verb.
fn shown(key: &Value) -> String {
    match key {
        Value::String(text) => text.to_string(),
        other => format!("%!s({}={})", other.go_type(), other.to_go_string()),
    }
}

impl Opaque for JsonPatchValue {
    fn type_(&self) -> Type {
        Type::Struct(StructType::undeclared(JSON_PATCH))
    }

    fn own_type(&self) -> Result<Type, EvalError> {
        Ok(Type::type_of(self.type_()))
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        self.equals_within(other, &EvalBudget::default())
    }

    fn equals_within(&self, other: &Value, budget: &EvalBudget) -> Result<bool, EvalError> {
        let Some(other) = other.downcast::<Self>() else {
            return Ok(false);
        };
        if self.op != other.op || self.from != other.from || self.path != other.path {
            return Ok(false);
        }
        match (&self.value, &other.value) {
            (None, None) => Ok(true),
            (Some(a), Some(b)) => a.equals_within(b, budget),
            (None, Some(_)) | (Some(_), None) => Ok(false),
        }
    }

    fn traits(&self) -> Traits {
        Traits::FIELD_TESTER.and(Traits::INDEXER)
    }

    fn convert_to(&self, to: &Type) -> Result<Value, EvalError> {
        let name = to.type_name();
        Err(EvalError::new(format!("unsupported type: {name}")))
    }

    fn native_type(&self) -> &'static str {
        "*mutation.JSONPatchVal"
    }

    fn through_native(&self, _: &EvalBudget) -> Result<Option<Value>, EvalError> {
        Ok(None)
    }

    fn index(&self, key: &Value) -> Option<Result<Value, EvalError>> {
        let unsupported = || EvalError::new(format!("unsupported indexer: {}", shown(key)));
        Some(self.field(key).ok_or_else(unsupported))
    }

    fn is_set(&self, key: &Value) -> Result<bool, EvalError> {
        match key.as_str() {
            Some("op") => Ok(!self.op.is_empty()),
            Some("path") => Ok(!self.path.is_empty()),
            Some("from") => Ok(!self.from.is_empty()),
            Some("value") => Ok(self.value.is_some()),
            _ => Err(EvalError::new(format!("unsupported field: {}", shown(key)))),
        }
    }
}
