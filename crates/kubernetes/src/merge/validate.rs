//! Validates values against their structured-merge-diff types.
//!
//! Source: structured-merge-diff `typed/validate.go`.

use std::collections::BTreeSet;

use super::Invalid;
use super::element::{Key, Path, key_of};
use super::go_syntax;
use super::node::Node;
use super::types::{Form, ListType, MapType, Relationship, Scalar, TypeRef, Types};

/// The maximum total size of error messages, in bytes. Further errors are dropped.
const MAX_BYTES: usize = 1024 * 1024;

/// The error messages for an object.
#[derive(Debug, Default)]
pub(super) struct Texts {
    reasons: Vec<String>,
    /// The field names on the path to the first error.
    fields: Vec<String>,
    bytes: usize,
}

impl Texts {
    pub(super) fn push(&mut self, path: &Path<'_>, reason: impl FnOnce() -> String) {
        if self.bytes > MAX_BYTES {
            return;
        }
        if self.reasons.is_empty() {
            self.fields = path.fields();
        }
        let path = path.text();
        let reason = reason();
        let text = if path.is_empty() {
            reason
        } else {
            format!("{path}: {reason}")
        };
        self.bytes = self.bytes.saturating_add(text.len());
        self.reasons.push(text);
    }

    pub(super) fn into_reasons(self) -> Option<Vec<String>> {
        (!self.reasons.is_empty()).then_some(self.reasons)
    }

    /// Combines all messages into one error like upstream.
    ///
    /// Source: structured-merge-diff `typed/helpers.go`, `ValidationErrors.Error`.
    pub(super) fn into_result(self) -> Result<(), Invalid> {
        let reason = match self.reasons.as_slice() {
            [] => return Ok(()),
            [only] => only.clone(),
            several => format!("errors:\n  {}", several.join("\n  ")),
        };
        let fields = self.fields;
        Err(Invalid { reason, fields })
    }
}

/// The types and options for validating an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validation<'a> {
    types: &'a Types,
    allows_duplicates: bool,
}

impl<'a> Validation<'a> {
    pub(super) fn new(types: &'a Types, allows_duplicates: bool) -> Self {
        Self {
            types,
            allows_duplicates,
        }
    }

    pub(super) fn check(&self, type_: &'a TypeRef, value: &Node<'a>, errors: &mut Texts) {
        self.value(type_, value, &Path::Root, errors);
    }

    fn value(&self, type_: &'a TypeRef, value: &Node<'a>, path: &Path<'_>, errors: &mut Texts) {
        let Some(resolved) = self.types.resolve(type_) else {
            errors.push(path, || {
                format!("schema error: no type found matching: {}", type_.name())
            });
            return;
        };
        match resolved.deduced(Some(value)).form() {
            Some(Form::Map(map, _)) => match value {
                Node::Map(_) => self.map(map, value, path, errors),
                Node::Null => {}
                other => errors.push(path, || {
                    format!("expected map, got {}", go_syntax::plain(other))
                }),
            },
            Some(Form::Scalar(scalar)) => {
                if let Err(reason) = scalar_error(scalar, value) {
                    errors.push(path, || reason);
                }
            }
            Some(Form::List(list, relationship)) => match value {
                Node::List(items) => self.list(list, relationship, items, path, errors),
                Node::Null => {}
                other => errors.push(path, || {
                    format!("expected list, got {}", go_syntax::plain(other))
                }),
            },
            None => errors.push(path, || {
                format!("schema error: invalid atom: {}", atom_name(type_))
            }),
        }
    }

    fn map(&self, map: &'a MapType, value: &Node<'a>, path: &Path<'_>, errors: &mut Texts) {
        let Node::Map(fields) = value else {
            return;
        };
        if map.element.is_none()
            && let Some(name) = fields.keys().find(|name| !map.fields.contains_key(**name))
        {
            let path = Path::Field(path, name);
            errors.push(&path, || "field not declared in schema".to_owned());
            return;
        }
        for (name, field) in fields {
            let declared = map.fields.get(*name).map(|field| &field.type_);
            if let Some(type_) = declared.or(map.element.as_ref()) {
                self.value(type_, field, &Path::Field(path, name), errors);
            }
        }
    }

    fn list(
        &self,
        list: &'a ListType,
        relationship: Relationship,
        items: &[Node<'a>],
        path: &Path<'_>,
        errors: &mut Texts,
    ) {
        let mut observed: BTreeSet<Key<'a>> = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if relationship != Relationship::Associative {
                self.value(&list.element, item, &Path::Index(path, index), errors);
                continue;
            }
            match key_of(self.types, list, relationship, item) {
                Ok(key) => {
                    if observed.contains(&key) && !self.allows_duplicates {
                        errors.push(path, || format!("duplicate entries for key {}", key.text()));
                    }
                    self.value(&list.element, item, &Path::Item(path, &key), errors);
                    observed.insert(key);
                }
                Err(reason) => {
                    errors.push(path, || format!("element {index}: {reason}"));
                    return;
                }
            }
        }
    }
}

/// Formats the name of a type that has no alternatives, for error messages.
fn atom_name(type_: &TypeRef) -> String {
    match &type_.target {
        super::types::Target::Named(name) => format!("named type: {name}"),
        super::types::Target::Inline(_) => "inlined".to_owned(),
    }
}

/// Returns an error if the value does not have the scalar type.
///
/// Source: structured-merge-diff `typed/validate.go`, `validateScalar`.
pub(super) fn scalar_error(scalar: Scalar, value: &Node<'_>) -> Result<(), String> {
    match (scalar, value) {
        (_, Node::Null)
        | (Scalar::Numeric, Node::Int(_) | Node::Double(_))
        | (Scalar::Text, Node::Text(_))
        | (Scalar::Boolean, Node::Bool(_)) => Ok(()),
        (Scalar::Untyped, value) if value.is_scalar() => Ok(()),
        (Scalar::Numeric, other) => Err(format!(
            "expected numeric (int or float), got {}",
            go_syntax::type_name(other)
        )),
        (Scalar::Text, other) => Err(format!("expected string, got {}", go_syntax::syntax(other))),
        (Scalar::Boolean, other) => {
            Err(format!("expected boolean, got {}", go_syntax::plain(other)))
        }
        (Scalar::Untyped, other) => Err(format!(
            "expected any scalar, got {}",
            go_syntax::plain(other)
        )),
    }
}
