//! Finds atomic lists, maps and objects in an applied object. The API server rejects an applied object that contains
//! any of them.
//!
//! Source: apiserver `pkg/admission/plugin/policy/mutating/patch/smd.go`, `findAtomics`.

use super::element::Path;
use super::node::Node;
use super::types::{Relationship, TypeRef, Types};

/// The maximum total size of the returned paths, in bytes. Further paths are dropped.
const MAX_BYTES: usize = 1024 * 1024;

/// Returns the paths of all atomic values in `value`, and the field names on the path to the first atomic value.
pub(super) fn find(types: &Types, type_: &TypeRef, value: &Node<'_>) -> (Vec<String>, Vec<String>) {
    let mut atomics = Atomics::default();
    atomics.visit(types, type_, value, &Path::Root);
    (atomics.paths, atomics.fields)
}

#[derive(Default)]
struct Atomics {
    paths: Vec<String>,
    fields: Vec<String>,
    bytes: usize,
}

impl Atomics {
    fn push(&mut self, path: &Path<'_>) {
        if self.bytes <= MAX_BYTES {
            if self.paths.is_empty() {
                self.fields = path.fields();
            }
            let path = path.text();
            self.bytes = self.bytes.saturating_add(path.len());
            self.paths.push(path);
        }
    }

    fn visit(&mut self, types: &Types, type_: &TypeRef, value: &Node<'_>, path: &Path<'_>) {
        let Some(resolved) = types.resolve(type_) else {
            return;
        };
        match (value, resolved.map, resolved.list) {
            (Node::Map(fields), Some((map, relationship)), _) => {
                if relationship == Relationship::Atomic {
                    self.push(path);
                }
                for (name, value) in fields {
                    // The API server does not search undeclared fields for atomic values.
                    if let Some(field) = map.fields.get(*name) {
                        self.visit(types, &field.type_, value, &Path::Field(path, name));
                    }
                }
            }
            (Node::List(items), _, Some((list, relationship))) => {
                if relationship == Relationship::Atomic {
                    self.push(path);
                }
                for (index, item) in items.iter().enumerate() {
                    self.visit(types, &list.element, item, &Path::Index(path, index));
                }
            }
            _ => {}
        }
    }
}
