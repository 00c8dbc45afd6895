//! The types of structured-merge-diff. They determine how values are merged.
//!
//! Source: structured-merge-diff `schema/elements.go`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{convert, custom};
use crate::schema::crd::{Crd, CrdVersion, MAX_JSON_DEPTH, is_shallower};
use crate::schema::{Builtin, Gvk, SchemaError};

/// The types of one OpenAPI document.
#[derive(Debug, Default)]
pub struct Types {
    named: BTreeMap<String, Atom>,
    /// The object type of each kind.
    kinds: BTreeMap<Gvk, TypeRef>,
}

impl Types {
    /// Converts an OpenAPI v3 document of a group version.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the document cannot be parsed or if any schema cannot be converted. In this
    /// case, the API server has no types for the kinds in the document.
    pub fn from_document(bytes: &[u8]) -> Result<Self, SchemaError> {
        let text = String::from_utf8_lossy(bytes);
        let document: Value = serde_json::from_str(&text)
            .map_err(|error| SchemaError::Document(error.to_string().into()))?;
        Self::from_value(&document)
    }

    /// Converts the OpenAPI document that the API server publishes for a version of a CRD.
    ///
    /// # Errors
    /// Returns the errors of [`Self::from_document`], or an error if the schema is too deep.
    pub fn from_crd(crd: &Crd, version: &CrdVersion) -> Result<Self, SchemaError> {
        Self::from_value(&custom::document(crd, version)?)
    }

    /// Converts the built-in OpenAPI document that contains the kind `gvk`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::from_document`], or [`SchemaError::UnknownKind`] if no document contains the kind.
    pub fn from_builtin(builtin: &Builtin, gvk: &Gvk) -> Result<Self, SchemaError> {
        Self::from_document(builtin.document(gvk)?.as_bytes())
    }

    fn from_value(document: &Value) -> Result<Self, SchemaError> {
        if !is_shallower(document, MAX_JSON_DEPTH.saturating_add(MAX_JSON_DEPTH)) {
            return Err(SchemaError::Document("it nests too deeply".into()));
        }
        let schemas = document
            .pointer("/components/schemas")
            .and_then(Value::as_object);
        let (named, kinds) = match schemas {
            Some(schemas) => convert::convert(schemas).map_err(|errors| {
                let reason = format!("failed to convert models to schema: {}", errors.join("\n"));
                SchemaError::Document(reason.into())
            })?,
            None => Default::default(),
        };
        Ok(Self { named, kinds })
    }

    /// Returns true if the document has a schema for the kind.
    #[must_use]
    pub fn has(&self, gvk: &Gvk) -> bool {
        self.kinds.contains_key(gvk)
    }

    /// Returns the kinds that have a schema, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    pub(super) fn root(&self, gvk: &Gvk) -> Option<&TypeRef> {
        self.kinds.get(gvk)
    }

    /// Resolves a reference to a type. Returns `None` if there is no type with this name, or if `reference` overrides
    /// the relationship of a type that is neither a map nor a list.
    ///
    /// Source: structured-merge-diff `schema/elements.go`, `Schema.Resolve`.
    pub(super) fn resolve<'a>(&'a self, reference: &'a TypeRef) -> Option<Resolved<'a>> {
        let atom = match &reference.target {
            Target::Inline(atom) => atom,
            Target::Named(name) => self.named.get(name)?,
        };
        let mut resolved = Resolved {
            map: atom.map.as_deref().map(|map| (map, map.relationship)),
            scalar: atom.scalar,
            list: atom.list.as_deref().map(|list| (list, list.relationship)),
        };
        if let Some(relationship) = reference.relationship {
            match &mut resolved {
                Resolved {
                    map: Some((_, of)), ..
                }
                | Resolved {
                    list: Some((_, of)),
                    ..
                } => *of = relationship,
                Resolved { .. } => return None,
            }
        }
        Some(resolved)
    }
}

/// A type with up to three alternatives: map, scalar and list. A member is `None` if the type does not have this
/// alternative.
#[derive(Clone, Debug, Default)]
pub(super) struct Atom {
    pub(super) map: Option<Box<MapType>>,
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<Box<ListType>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Untyped,
}

/// The way in which list items or map entries are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relationship {
    /// List items are matched by their keys or values.
    Associative,
    /// The list or map is replaced as a whole.
    Atomic,
    /// The entries of a map are merged one by one.
    Separable,
}

#[derive(Clone, Debug)]
pub(super) struct MapType {
    pub(super) fields: BTreeMap<String, Field>,
    /// The type of entries that `fields` does not contain. `None` if such entries are not allowed.
    pub(super) element: Option<TypeRef>,
    pub(super) relationship: Relationship,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) type_: TypeRef,
    pub(super) default: Option<Value>,
}

#[derive(Clone, Debug)]
pub(super) struct ListType {
    pub(super) element: TypeRef,
    pub(super) keys: Vec<String>,
    pub(super) relationship: Relationship,
}

/// A reference to a named type, or an inline type.
#[derive(Clone, Debug)]
pub(super) struct TypeRef {
    pub(super) target: Target,
    /// If set, overrides the relationship of the referenced type.
    pub(super) relationship: Option<Relationship>,
}

#[derive(Clone, Debug)]
pub(super) enum Target {
    Named(String),
    Inline(Atom),
}

impl TypeRef {
    pub(super) fn named(name: &str) -> Self {
        Self {
            target: Target::Named(name.to_owned()),
            relationship: None,
        }
    }

    /// Returns the type name for error messages.
    pub(super) fn name(&self) -> &str {
        match &self.target {
            Target::Named(name) => name,
            Target::Inline(_) => "inlined type",
        }
    }
}

/// A resolved type. If the reference overrides the type's relationship, the members contain the relationship of the
/// reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolved<'a> {
    pub(super) map: Option<(&'a MapType, Relationship)>,
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<(&'a ListType, Relationship)>,
}

/// The alternative of a type that matches a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    Map(&'a MapType, Relationship),
    Scalar(Scalar),
    List(&'a ListType, Relationship),
}

impl<'a> Resolved<'a> {
    /// Returns the alternatives that match the value. If no alternative matches, returns all alternatives.
    ///
    /// Source: structured-merge-diff `typed/helpers.go`, `deduceAtom`.
    pub(super) fn deduced(self, value: Option<&super::node::Node<'_>>) -> Self {
        use super::node::Node;
        let none = Self {
            map: None,
            scalar: None,
            list: None,
        };
        match value {
            Some(value) if value.is_scalar() && self.scalar.is_some() => Self {
                scalar: self.scalar,
                ..none
            },
            Some(Node::List(_)) if self.list.is_some() => Self {
                list: self.list,
                ..none
            },
            Some(Node::Map(_)) if self.map.is_some() => Self {
                map: self.map,
                ..none
            },
            _ => self,
        }
    }

    /// Returns the first alternative in upstream's order: map, scalar, list.
    ///
    /// Source: structured-merge-diff `typed/helpers.go`, `handleAtom`.
    pub(super) fn form(self) -> Option<Form<'a>> {
        match self {
            Self {
                map: Some((map, relationship)),
                ..
            } => Some(Form::Map(map, relationship)),
            Self {
                scalar: Some(scalar),
                ..
            } => Some(Form::Scalar(scalar)),
            Self {
                list: Some((list, relationship)),
                ..
            } => Some(Form::List(list, relationship)),
            Self { .. } => None,
        }
    }

    /// Returns true if both types have the same alternatives.
    pub(super) fn has_forms_of(&self, other: &Self) -> bool {
        self.map.is_some() == other.map.is_some()
            && self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
    }
}
