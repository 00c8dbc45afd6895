//! Structs and maps.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use super::equality;
use cel::value::{EvalError, Map, MapSource, Value};

/// The Go type of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StructType {
    /// A struct with an index in the table of defaults.
    Table(usize),
    /// A struct that is identified by its name.
    Named(&'static str),
}

/// Source: k8s.io/apiserver `pkg/cel/common/valuesschemalesstyped.go`, `reflectSchemalessTypedStruct`.
#[derive(Debug)]
pub(super) struct GoStruct {
    pub(super) type_: StructType,
    /// The name of the Go type, such as `v1.PodSpec`.
    name: Cow<'static, str>,
    pub(super) fields: Map,
}

impl GoStruct {
    pub(super) fn value(type_: StructType, name: Cow<'static, str>, fields: Map) -> Value {
        Value::Map(Map::from_source(Arc::new(Self {
            type_,
            name,
            fields,
        })))
    }

    /// Returns the struct in `value`. `None` for other values.
    pub(super) fn downcast(value: &Value) -> Option<&Self> {
        let source: &dyn Any = value.as_map()?.source()?.as_ref();
        source.downcast_ref()
    }
}

impl MapSource for GoStruct {
    fn find(&self, key: &Value) -> Result<Option<Value>, EvalError> {
        find(&self.fields, key)
    }

    fn held(&self) -> Option<&Map> {
        Some(&self.fields)
    }

    fn len(&self) -> usize {
        self.fields.len()
    }

    fn keys(&self) -> Result<Vec<Value>, EvalError> {
        self.fields.keys()
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        Some(match (Self::downcast(other), other) {
            (Some(other), _) => Ok(equality::structs(self, other)),
            (None, Value::Map(other)) => equality::struct_and_map(self, other),
            _ => Err(equality::no_such_overload(other)),
        })
    }

    fn is_compared_by_entries(&self) -> bool {
        false
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn native_error(&self, to: &str) -> Option<EvalError> {
        Some(EvalError::new(format!(
            "type conversion error from struct type {} to {to}",
            self.name
        )))
    }

    fn go_type(&self) -> &'static str {
        "*common.reflectSchemalessTypedStruct"
    }
}

/// Source: k8s.io/apiserver `pkg/cel/common/valuesschemalesstyped.go`, `reflectSchemalessTypedMap`.
#[derive(Debug)]
pub(super) struct GoMap(Map);

impl GoMap {
    pub(super) fn value(entries: Map) -> Value {
        Value::Map(Map::from_source(Arc::new(Self(entries))))
    }
}

impl MapSource for GoMap {
    fn find(&self, key: &Value) -> Result<Option<Value>, EvalError> {
        find(&self.0, key)
    }

    fn held(&self) -> Option<&Map> {
        Some(&self.0)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn keys(&self) -> Result<Vec<Value>, EvalError> {
        self.0.keys()
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        let Value::Map(other) = other else {
            return Some(Err(equality::no_such_overload(other)));
        };
        Some(Ok(equality::maps(&self.0, other)))
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn native_error(&self, to: &str) -> Option<EvalError> {
        Some(EvalError::new(format!(
            "type conversion error from 'map(dyn, dyn)' to '{to}'"
        )))
    }

    fn go_type(&self) -> &'static str {
        "*common.reflectSchemalessTypedMap"
    }
}

fn find(fields: &Map, key: &Value) -> Result<Option<Value>, EvalError> {
    match key {
        Value::String(name) => Ok(fields.field(name).cloned()),
        Value::Error(error) => Err(error.clone()),
        _ => Err(EvalError::new(format!(
            "unsupported map key type: {}",
            key.go_type()
        ))),
    }
}
