//! Finds fields that a schema does not declare. Strict decoding rejects such fields.
//!
//! Source: `sigs.k8s.io/json` `internal/golang/encoding/json/kubernetes_patch.go` (`saveStrictError`).

use std::fmt::Write as _;

use serde_json::Value;

use super::types::{TypeRef, Types};
use super::{MAX_DEPTH, is_shallower};
use crate::schema::Gvk;

/// The maximum number of reported fields.
///
/// Source: `sigs.k8s.io/json` `internal/golang/encoding/json/kubernetes_patch.go`, `strictErrors`.
const MAX_FIELDS: usize = 100;

/// Returns the paths of the undeclared fields of an object, such as `spec.ports[0].pot`, sorted by name.
#[must_use]
pub fn undeclared(types: &Types, gvk: &Gvk, object: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    if let Some(root) = types.root(gvk)
        && is_shallower(object, MAX_DEPTH)
    {
        visit(types, root, object, &mut String::new(), &mut paths);
    }
    paths
}

fn visit(
    types: &Types,
    type_: &TypeRef,
    value: &Value,
    path: &mut String,
    paths: &mut Vec<String>,
) {
    let Some(resolved) = types.resolve(type_) else {
        return;
    };
    let length = path.len();
    match (value, resolved.map, resolved.list) {
        (Value::Object(fields), Some((map, _)), _) => {
            for (name, field) in fields {
                if paths.len() >= MAX_FIELDS {
                    return;
                }
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                let declared = map.fields.get(name).map(|field| &field.type_);
                match declared.or(map.element.as_ref()) {
                    Some(type_) => visit(types, type_, field, path, paths),
                    None => paths.push(path.clone()),
                }
                path.truncate(length);
            }
        }
        (Value::Array(items), _, Some((list, _))) => {
            for (n, item) in items.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = write!(path, "[{n}]");
                visit(types, &list.element, item, path, paths);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
