//! CEL values that wrap Go values of built-in types: structs, maps and slices.
//!
//! Since Kubernetes 1.37, validating policies read such values instead of unstructured objects. They have the same
//! fields and elements, but different equality, lookup and conversions. Scalars are plain CEL values.
//!
//! Differs: times are compared with the precision of their JSON form, and raw JSON is compared by value instead of by
//! its bytes.
//!
//! Source: k8s.io/apiserver `pkg/cel/common/valuesschemalesstyped.go`, `SchemalessTypedToVal`.

mod equality;
mod list;
mod map;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use cel::value::{List, Map, Value};

use self::list::GoList;
use self::map::{GoMap, GoStruct, StructType};
use crate::defaulting::table::{Go, Shape, Table};
use crate::schema::Gvk;

/// Converts an object to its Go type. The object must have the form that policies see. Returns `None` if the Go type of
/// the kind is unknown.
///
/// The value of a field that the Go type lacks is not converted.
#[must_use]
pub fn object(gvk: &Gvk, object: &Value) -> Option<Value> {
    let table = Table::get().ok()?;
    let root = table.root(gvk)?;
    let fields = object.as_map().and_then(Map::as_fields)?;
    let name = format!("{}.{}", gvk.version, gvk.kind);
    Some(typed_struct(table, (root, name.into()), fields))
}

/// Creates a struct of the Go type with this name.
#[must_use]
pub fn structure(go_type: &'static str, fields: Vec<(Arc<str>, Value)>) -> Value {
    let fields = Map::from_fields(fields);
    GoStruct::value(StructType::Named(go_type), go_type.into(), fields)
}

/// Creates a map.
#[must_use]
pub fn map(entries: Vec<(Arc<str>, Value)>) -> Value {
    GoMap::value(Map::from_fields(entries))
}

/// Creates a slice.
#[must_use]
pub fn list(elements: Vec<Value>) -> Value {
    GoList::value(elements)
}

fn typed_struct(
    table: &'static Table,
    (n, name): (usize, Cow<'static, str>),
    given: &[(Arc<str>, Value)],
) -> Value {
    let fields = given.iter().map(|(name, value)| {
        let field = table.fields(n).iter().find(|field| field.0 == **name);
        let value = field.map_or_else(|| value.clone(), |field| typed(table, value, field.go()));
        (Arc::clone(name), value)
    });
    GoStruct::value(
        StructType::Table(n),
        name,
        Map::from_fields(fields.collect()),
    )
}

/// Converts `value` to a Go type. A value of the wrong type is not changed.
fn typed(table: &'static Table, value: &Value, go: Go<'static>) -> Value {
    match (go.type_.shape(), value) {
        (_, Value::Null) => Value::Null,
        (Shape::Pointer(inner), _) => typed(table, value, go.within(inner)),
        (Shape::Struct(n), Value::Map(map)) => map.as_fields().map_or_else(
            || value.clone(),
            |fields| typed_struct(table, (n, go.text.into()), fields),
        ),
        (Shape::Map(inner), Value::Map(entries)) => {
            let entries = entries.as_fields().unwrap_or_default().iter();
            let inner = go.within(inner);
            let entries = entries.map(|(key, value)| (Arc::clone(key), typed(table, value, inner)));
            map(entries.collect())
        }
        (Shape::List(inner), Value::List(elements)) => {
            let elements = List::iter(elements);
            let inner = go.within(inner);
            let elements = elements.map(|element| typed(table, &element, inner));
            list(elements.collect())
        }
        _ => value.clone(),
    }
}
