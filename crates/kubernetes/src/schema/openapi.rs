//! OpenAPI v3 documents, as an API server publishes one for each group version.
//!
//! A document is read, its kinds are turned into declared types, and then it is dropped: of
//! everything that it says, only what decides about types is kept while reading.
//!
//! Source: apiserver `pkg/cel/openapi/resolver/discovery.go` (`ClientDiscoveryResolver`).

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Gvk;
use super::convert::Converter;
use super::decl_type::DeclType;
use super::error::SchemaError;
use super::intern::Interner;
use super::raw::Schema;
use super::read::SchemaSeed;
use super::refs::Entry;
use super::{extensions, sizes};

/// A document: its schemas, and which of them are those of kinds.
#[derive(Debug)]
pub struct OpenApiDocument {
    /// The schemas, sorted by name.
    schemas: Vec<(Box<str>, Result<Schema, SchemaError>)>,
    /// For each kind the index of its schema.
    kinds: BTreeMap<Gvk, usize>,
}

/// The part of a document that is read; each schema is read on its own, so that one that cannot be
/// read is an error of its own.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default, deserialize_with = "null_to_default")]
    components: Components<'a>,
}

#[derive(Default, Deserialize)]
struct Components<'a> {
    #[serde(borrow, default, deserialize_with = "null_to_default")]
    schemas: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

/// The kinds of a schema that cannot be read as a whole.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "x-kubernetes-group-version-kind", default)]
    kinds: Value,
}

/// Reads null as the default.
pub(super) fn null_to_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl OpenApiDocument {
    /// Reads a document; text that is not UTF-8 is replaced, as only descriptions ever have any.
    ///
    /// # Errors
    /// [`SchemaError::Document`] where the document is not JSON or has another shape. A schema that
    /// cannot be read is an error of the kinds that need it, not of the document.
    pub fn parse(bytes: &[u8]) -> Result<Self, SchemaError> {
        let text = String::from_utf8_lossy(bytes);
        if !text.trim_start().starts_with('{') {
            // As a list of its fields, which serde would take.
            return Err(SchemaError::Document("it is not a JSON object".into()));
        }
        let document: Document<'_> = serde_json::from_str(&text)
            .map_err(|error| SchemaError::Document(error.to_string().into()))?;
        let left = Cell::new(sizes::MAX_SCHEMAS);
        let mut schemas = Vec::with_capacity(document.components.schemas.len());
        let mut kinds = BTreeMap::new();
        for (name, raw) in document.components.schemas {
            let schema = read_schema(raw, &left);
            if left.get() == 0 {
                let reason = format!("it has more than {} schemas", sizes::MAX_SCHEMAS);
                return Err(SchemaError::Document(reason.into()));
            }
            let gvks = match &schema {
                Ok(schema) => schema
                    .details()
                    .map_or_else(Vec::new, |details| details.kinds.clone()),
                Err(_) => serde_json::from_str::<Head>(raw.get())
                    .map_or_else(|_| Vec::new(), |head| extensions::kinds(&head.kinds)),
            };
            for gvk in gvks {
                // Of schemas that claim one kind, the first by name has it.
                kinds.entry(gvk).or_insert(schemas.len());
            }
            let schema = schema.map_err(|error| SchemaError::Schema {
                name: (&*name).into(),
                reason: error.to_string().into(),
            });
            schemas.push((Box::from(&*name), schema));
        }
        Ok(Self { schemas, kinds })
    }

    /// A document made of schemas, each with its name and the kind that it is the schema of.
    pub(super) fn of_schemas(
        schemas: impl IntoIterator<Item = (Box<str>, Schema, Option<Gvk>)>,
    ) -> Self {
        let mut schemas: Vec<_> = schemas.into_iter().collect();
        schemas.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        let mut kinds = BTreeMap::new();
        for (idx, (_, _, gvk)) in schemas.iter().enumerate() {
            kinds.extend(gvk.clone().map(|gvk| (gvk, idx)));
        }
        let schemas = schemas
            .into_iter()
            .map(|(name, schema, _)| (name, Ok(schema)))
            .collect();
        Self { schemas, kinds }
    }

    /// The kinds that the document has schemas for, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    /// The type of one kind; for more than a few, [`Self::decl_types`] does less work.
    ///
    /// # Errors
    /// [`SchemaError::UnknownKind`] where the document has no schema for the kind, and why its schema
    /// has no type otherwise.
    pub fn decl_type(&self, gvk: &Gvk) -> Result<Arc<DeclType>, SchemaError> {
        let idx = *self.kinds.get(gvk).ok_or(SchemaError::UnknownKind)?;
        let mut interner = Interner::default();
        Converter::new(&self.entries(), &mut interner).root(idx)
    }

    /// The types of all kinds, sorted by kind, or why a kind has none.
    #[must_use]
    pub fn decl_types(
        &self,
        interner: &mut Interner,
    ) -> Vec<(Gvk, Result<Arc<DeclType>, SchemaError>)> {
        let entries = self.entries();
        let mut converter = Converter::new(&entries, interner);
        self.kinds
            .iter()
            .map(|(gvk, idx)| (gvk.clone(), converter.root(*idx)))
            .collect()
    }

    fn entries(&self) -> Vec<Entry<'_>> {
        self.schemas
            .iter()
            .map(|(name, schema)| (&**name, schema.as_ref()))
            .collect()
    }
}

/// Reads one schema, which must not nest deeper than `serde_json` goes (128 levels of JSON).
fn read_schema(raw: &RawValue, left: &Cell<u32>) -> Result<Schema, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    SchemaSeed { left }.deserialize(&mut deserializer)
}
