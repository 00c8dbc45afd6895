//! The values of `Object` and its nested types, such as `Object.spec`.
//!
//! Source: k8s.io/apiserver `pkg/cel/mutation/dynamic/objects.go`, `ObjectVal`.

use std::fmt;
use std::sync::Arc;

use cel::types::{StructType, Type};
use cel::value::{EvalBudget, EvalError, Opaque, Traits, Value, format_double};

/// The maximum number of nested levels to traverse.
const MAX_DEPTH: u32 = 500;

/// An object constructed by an expression such as `Object{spec: Object.spec{}}`.
#[derive(Clone, Debug)]
pub struct ObjectValue {
    name: Arc<str>,
    /// The fields, sorted by name.
    fields: Vec<(Arc<str>, Value)>,
}

impl ObjectValue {
    /// Creates an object of the type `name`. Field names must be unique.
    #[must_use]
    pub fn new(name: Arc<str>, mut fields: Vec<(Arc<str>, Value)>) -> Self {
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { name, fields }
    }

    /// Returns the name of the object's type, such as `Object.spec`.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.name
    }

    /// Returns the fields of the object, sorted by name.
    #[must_use]
    pub fn fields(&self) -> &[(Arc<str>, Value)] {
        &self.fields
    }

    /// Returns the nested objects whose type name does not match the path of their field.
    ///
    /// For example, an object in the field `spec` of an `Object` must have the type `Object.spec`. The same applies to
    /// objects in lists and maps in `spec`. Map keys are not part of the path, as in upstream.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/mutation/dynamic/objects.go`, `CheckTypeNamesMatchFieldPathNames`.
    #[must_use]
    pub fn misplaced(&self) -> Vec<Misplaced> {
        let mut list = Vec::new();
        misplaced_below(self, &self.name, &mut list, 0);
        list
    }
}

/// A nested object whose type does not match its field path. Its `Display` is the API server's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// The type name of the object, such as `Object.wrong`.
    pub found: Arc<str>,
    /// The type name that matches the path, such as `Object.spec`.
    pub expected: String,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, expected } = self;
        write!(
            f,
            "unexpected type name \"{found}\", expected \"{expected}\", which matches field name path from root Object \
             type"
        )
    }
}

/// Adds `object` and its nested objects to `misplaced` if their type names do not match their paths. `expected` is the
/// type name that matches the path of `object`.
fn misplaced_below(
    object: &ObjectValue,
    expected: &str,
    misplaced: &mut Vec<Misplaced>,
    depth: u32,
) {
    if *expected != *object.name {
        misplaced.push(Misplaced {
            found: Arc::clone(&object.name),
            expected: expected.to_owned(),
        });
    }
    for (name, value) in &object.fields {
        let expected = format!("{expected}.{name}");
        misplaced_in(value, &expected, misplaced, depth.saturating_add(1));
    }
}

fn misplaced_in(value: &Value, expected: &str, misplaced: &mut Vec<Misplaced>, depth: u32) {
    if depth > MAX_DEPTH {
        return;
    }
    let deeper = depth.saturating_add(1);
    match value {
        Value::List(list) => {
            for element in list.as_slice().unwrap_or_default() {
                misplaced_in(element, expected, misplaced, deeper);
            }
        }
        Value::Map(map) => {
            for (_, value) in map.entries().unwrap_or_default() {
                misplaced_in(&value, expected, misplaced, deeper);
            }
        }
        Value::Opaque(_) => {
            if let Some(object) = value.downcast::<ObjectValue>() {
                misplaced_below(object, expected, misplaced, deeper);
            }
        }
        _ => {}
    }
}

impl Opaque for ObjectValue {
    fn type_(&self) -> Type {
        Type::Struct(StructType::undeclared(Arc::clone(&self.name)))
    }

    fn own_type(&self) -> Result<Type, EvalError> {
        Ok(Type::type_of(self.type_()))
    }

    /// Compares the fields like Go's `reflect.DeepEqual`. `1` and `1.0` differ. A CEL list never equals another list.
    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        let other = other.downcast::<Self>();
        Ok(other.is_some_and(|other| same_objects(self, other, 0)))
    }

    fn traits(&self) -> Traits {
        Traits::FIELD_TESTER.and(Traits::INDEXER)
    }

    fn convert_to(&self, to: &Type) -> Result<Value, EvalError> {
        if to.type_name() == *self.name {
            return Ok(Value::opaque(self.clone()));
        }
        let to = to.declared_string();
        Err(EvalError::new(format!("unsupported conversion into {to}")))
    }

    fn heap_size(&self) -> usize {
        self.fields
            .capacity()
            .saturating_mul(size_of::<(Arc<str>, Value)>())
    }

    fn native_type(&self) -> &'static str {
        "map[string]interface {}"
    }

    fn go_type(&self) -> &'static str {
        "*dynamic.ObjectVal"
    }

    /// Converts the object to a map, like upstream's conversion to a native Go value.
    ///
    /// Source: `ObjectVal.Value`, `convertField`.
    fn through_native(&self, budget: &EvalBudget) -> Result<Option<Value>, EvalError> {
        budget.allocate(self.heap_size())?;
        let mut fields = Vec::with_capacity(self.fields.len());
        for (name, value) in &self.fields {
            let value = converted(value, budget).map_err(|error| match error {
                error if error.ends_evaluation() => error,
                why => EvalError::new(format!("fail to convert field \"{name}\": {why}")),
            })?;
            fields.push((Arc::clone(name), value));
        }
        Ok(Some(Value::object(fields)))
    }

    fn is_zero(&self) -> bool {
        self.fields.is_empty()
    }
}

/// Converts a nested value to a Go value and back to CEL.
fn converted(value: &Value, budget: &EvalBudget) -> Result<Value, EvalError> {
    match value {
        Value::List(list) => match list.as_slice() {
            Some(elements) if !list.is_json() => {
                budget.allocate(size_of_val(elements))?;
                let elements = elements
                    .iter()
                    .map(|element| element.through_native(budget));
                Ok(Value::list(elements.collect::<Result<Vec<_>, _>>()?))
            }
            _ => value.through_native(budget),
        },
        Value::Map(map) if map.source().is_none() && map.as_fields().is_none() => {
            budget.allocate(map.len().saturating_mul(4 * size_of::<Value>()))?;
            let entries = map.entries()?;
            let mut fields = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                let Value::String(key) = &key else {
                    return Err(EvalError::new(format!(
                        "map key {} is of type {}, not string",
                        quoted(&key),
                        key.go_type()
                    )));
                };
                fields.push((Arc::clone(key), value.through_native(budget)?));
            }
            Ok(Value::object(fields))
        }
        other => other.through_native(budget),
    }
}

/// Formats a map key like Go's `%q` verb.
fn quoted(key: &Value) -> String {
    let rune = match key {
        Value::Int(number) => u32::try_from(*number).ok(),
        Value::Uint(number) => u32::try_from(*number).ok(),
        Value::Double(number) => {
            return format!("%!q(types.Double={})", format_double(*number));
        }
        Value::Bool(value) => return format!("%!q(types.Bool={value})"),
        _ => None,
    };
    let rune = rune.and_then(char::from_u32).unwrap_or('\u{fffd}');
    format!("{rune:?}")
}

fn same_objects(a: &ObjectValue, b: &ObjectValue, depth: u32) -> bool {
    *a.name == *b.name
        && a.fields.len() == b.fields.len()
        && a.fields
            .iter()
            .zip(&b.fields)
            .all(|((a_name, a), (b_name, b))| {
                a_name == b_name && same(a, b, false, depth.saturating_add(1))
            })
}

/// Compares two values like Go's `reflect.DeepEqual`. Two lists can be equal only if they are native Go lists
/// (`is_native` is true). CEL lists always differ.
fn same(a: &Value, b: &Value, is_native: bool, depth: u32) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let deeper = depth.saturating_add(1);
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            is_native
                && a.len() == b.len()
                && a.iter()
                    .zip(b.iter())
                    .all(|(a, b)| same(&a, &b, true, deeper))
        }
        (Value::Map(a), Value::Map(b)) => {
            let (a_native, b_native) = (a.as_fields().is_some(), b.as_fields().is_some());
            let Ok(entries) = a.entries() else {
                return false;
            };
            a_native == b_native
                && a.len() == b.len()
                && entries.iter().all(|(key, a)| match b.find(key) {
                    Ok(Some(b)) => same(a, &b, a_native, deeper),
                    _ => false,
                })
        }
        (Value::Opaque(_), Value::Opaque(_)) => {
            match (a.downcast::<ObjectValue>(), b.downcast::<ObjectValue>()) {
                (Some(a), Some(b)) => same_objects(a, b, deeper),
                _ => a.equals(b).unwrap_or(false),
            }
        }
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        #[expect(clippy::float_cmp, reason = "Go compares floats exactly")]
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Optional(a), Value::Optional(b)) => match (a.get(), b.get()) {
            (None, None) => true,
            (Some(a), Some(b)) => same(a, b, false, deeper),
            (None, Some(_)) | (Some(_), None) => false,
        },
        _ => false,
    }
}
