//! Types of values, as structured-merge-diff has them.
//!
//! Source: structured-merge-diff `schema/elements.go`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{convert, custom};
use crate::schema::crd::{Crd, CrdVersion, MAX_JSON_DEPTH, is_shallower};
use crate::schema::{Builtin, Gvk, SchemaError};

/// The types of the schemas of one OpenAPI document.
#[derive(Debug, Default)]
pub struct Types {
    named: BTreeMap<String, Atom>,
    /// For each kind its type.
    kinds: BTreeMap<Gvk, TypeRef>,
}

impl Types {
    /// The types of an OpenAPI v3 document, as the API server publishes one for each group version.
    ///
    /// # Errors
    /// [`SchemaError::Document`] where it is no document, or has a schema that cannot be converted: the API server
    /// then knows none of its kinds.
    pub fn of_document(bytes: &[u8]) -> Result<Self, SchemaError> {
        let text = String::from_utf8_lossy(bytes);
        let document: Value = serde_json::from_str(&text)
            .map_err(|error| SchemaError::Document(error.to_string().into()))?;
        Self::of_value(&document)
    }

    /// The types of the document that is published for a version of a CustomResourceDefinition.
    ///
    /// # Errors
    /// As [`Self::of_document`], and where the schema nests too deeply.
    pub fn of_crd(crd: &Crd, version: &CrdVersion) -> Result<Self, SchemaError> {
        Self::of_value(&custom::document(crd, version)?)
    }

    /// The types of the document that has the schema of a kind of Kubernetes' own APIs.
    ///
    /// # Errors
    /// As [`Self::of_document`], and [`SchemaError::UnknownKind`] where there is no such kind.
    pub fn of_builtin(builtin: &Builtin, gvk: &Gvk) -> Result<Self, SchemaError> {
        Self::of_document(&builtin.document(gvk)?)
    }

    fn of_value(document: &Value) -> Result<Self, SchemaError> {
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

    /// Reports whether there is a schema for objects of the kind.
    #[must_use]
    pub fn has(&self, gvk: &Gvk) -> bool {
        self.kinds.contains_key(gvk)
    }

    /// The kinds that there are schemas for, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    pub(super) fn root(&self, gvk: &Gvk) -> Option<&TypeRef> {
        self.kinds.get(gvk)
    }

    /// The type that is referred to; `None` where there is none of the name.
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

/// The possible forms of a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Atom {
    pub(super) map: Option<Box<MapType>>,
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<Box<ListType>>,
}

/// The type of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Untyped,
}

/// The relationship of the items of a list, or the entries of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relationship {
    /// The items of a list are told apart by keys, or by their values.
    Associative,
    /// There are no items but only a whole.
    Atomic,
    /// The entries of a map.
    Separable,
}

/// A map or an object.
#[derive(Clone, Debug)]
pub(super) struct MapType {
    pub(super) fields: BTreeMap<String, Field>,
    /// The type of what is no field; `None` where there must be nothing else.
    pub(super) element: Option<TypeRef>,
    pub(super) relationship: Relationship,
}

/// A field of an object.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) type_: TypeRef,
    pub(super) default: Option<Value>,
}

/// A list.
#[derive(Clone, Debug)]
pub(super) struct ListType {
    pub(super) element: TypeRef,
    pub(super) keys: Vec<String>,
    pub(super) relationship: Relationship,
}

/// A type, by its name or at its place.
#[derive(Clone, Debug)]
pub(super) struct TypeRef {
    pub(super) target: Target,
    /// The relationship that counts instead of that of the type.
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

    /// The name of the type as messages have it.
    pub(super) fn name(&self) -> &str {
        match &self.target {
            Target::Named(name) => name,
            Target::Inline(_) => "inlined type",
        }
    }
}

/// The forms of a value, with the relationship that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolved<'a> {
    pub(super) map: Option<(&'a MapType, Relationship)>,
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<(&'a ListType, Relationship)>,
}

/// The form that a value has to have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    Map(&'a MapType, Relationship),
    Scalar(Scalar),
    List(&'a ListType, Relationship),
}

impl<'a> Resolved<'a> {
    /// The forms that are left where the value is known; all of them where it has none of these.
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

    /// The form that counts.
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

    /// Reports whether two choices of forms of one type are the same.
    pub(super) fn has_forms_of(&self, other: &Self) -> bool {
        self.map.is_some() == other.map.is_some()
            && self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
    }
}
