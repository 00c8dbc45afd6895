//! OpenAPI v3 documents. The API server publishes one per group version.
//!
//! Parsing keeps only the keywords that affect types. A document can be dropped after its kinds are converted to
//! declared types.
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

/// The schemas of a document, and the kinds described by these schemas.
#[derive(Debug)]
pub struct OpenApiDocument {
    /// The schemas, sorted by name. Each is a parsed schema or a parse error.
    schemas: Vec<(Box<str>, Result<Schema, SchemaError>)>,
    /// The index in `schemas` for each kind.
    kinds: BTreeMap<Gvk, usize>,
}

/// The parsed part of a document. Each schema is parsed separately, so that one invalid schema does not affect the
/// others.
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

/// The kinds that a schema describes. They are parsed separately, because the rest of the schema may be invalid.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "x-kubernetes-group-version-kind", default)]
    kinds: Value,
}

/// Deserializes null as the default value of `T`.
pub(super) fn null_to_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl OpenApiDocument {
    /// Parses a document. Invalid UTF-8, which occurs only in descriptions, is replaced.
    ///
    /// # Errors
    /// Returns [`SchemaError::Document`] if the document is not JSON or not an OpenAPI document. If a single schema is
    /// invalid, parsing succeeds, and converting the kinds that use the schema fails.
    pub fn parse(bytes: &[u8]) -> Result<Self, SchemaError> {
        let text = String::from_utf8_lossy(bytes);
        if !text.trim_start().starts_with('{') {
            // Without this check, serde would also accept an array of the document's fields.
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
                // If several schemas describe a kind, the first schema in name order is used.
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

    /// Creates a document from names, schemas, and the kinds that they describe.
    pub(super) fn from_schemas(
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

    /// Returns the kinds that have a schema in the document, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    /// Returns the type of one kind. To convert all kinds, use the faster [`Self::decl_types`].
    ///
    /// # Errors
    /// Returns [`SchemaError::UnknownKind`] if the document has no schema for the kind. Returns other errors if the
    /// schema cannot be converted.
    pub fn decl_type(&self, gvk: &Gvk) -> Result<Arc<DeclType>, SchemaError> {
        let idx = *self.kinds.get(gvk).ok_or(SchemaError::UnknownKind)?;
        let mut interner = Interner::default();
        Converter::new(&self.entries(), &mut interner).root(idx)
    }

    /// Converts the schemas of all kinds. Returns a type or an error for each kind, sorted by kind.
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

/// Parses one schema. `serde_json` limits the nesting to 128 levels of JSON.
fn read_schema(raw: &RawValue, left: &Cell<u32>) -> Result<Schema, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    SchemaSeed { left }.deserialize(&mut deserializer)
}
