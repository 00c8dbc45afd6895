//! Atomic lists, maps and objects that an applied object sets, which it may not.
//!
//! Source: apiserver `pkg/admission/plugin/policy/mutating/patch/smd.go`, `findAtomics`.

use super::element::Path;
use super::node::Node;
use super::types::{Relationship, TypeRef, Types};

/// How many bytes of paths are kept.
const MAX_BYTES: usize = 1024 * 1024;

/// The paths of all atomic values in `value`, with the fields that lead to the first.
pub(super) fn find(types: &Types, type_: &TypeRef, value: &Node<'_>) -> (Vec<String>, Vec<String>) {
    let mut found = Found::default();
    found.look(types, type_, value, &Path::Root);
    (found.paths, found.fields)
}

#[derive(Default)]
struct Found {
    paths: Vec<String>,
    fields: Vec<String>,
    bytes: usize,
}

impl Found {
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

    fn look(&mut self, types: &Types, type_: &TypeRef, value: &Node<'_>, path: &Path<'_>) {
        let Some(resolved) = types.resolve(type_) else {
            return;
        };
        match (value, resolved.map, resolved.list) {
            (Node::Map(fields), Some((map, relationship)), _) => {
                if relationship == Relationship::Atomic {
                    self.push(path);
                }
                for (name, value) in fields {
                    // What is no declared field is not looked into.
                    if let Some(field) = map.fields.get(*name) {
                        self.look(types, &field.type_, value, &Path::Field(path, name));
                    }
                }
            }
            (Node::List(items), _, Some((list, relationship))) => {
                if relationship == Relationship::Atomic {
                    self.push(path);
                }
                for (index, item) in items.iter().enumerate() {
                    self.look(types, &list.element, item, &Path::Index(path, index));
                }
            }
            _ => {}
        }
    }
}
