//! The types in the rules of a CustomResourceDefinition: those of its structural schema, or of a part of it.
//!
//! They differ from the published schema: formats and references have no effect, and only the name is declared in the
//! metadata of a resource.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel/model/schemas.go` (`SchemaDeclType`).

use std::cell::Cell;
use std::sync::Arc;

use serde::de::DeserializeSeed;
use serde_json::{Map, Value};

use super::convert::Converter;
use super::decl_type::DeclType;
use super::error::SchemaError;
use super::intern::Interner;
use super::raw::{AdditionalProperties, Format, Schema};
use super::read::SchemaSeed;
use super::sizes;

/// Returns the type of values of `schema`, which must be structural and nest no deeper than
/// [`MAX_JSON_DEPTH`](super::crd::MAX_JSON_DEPTH). Returns `None` if rules cannot see the values.
pub(crate) fn rule_type(
    schema: &Map<String, Value>,
    is_resource: bool,
    interner: &mut Interner,
) -> Result<Option<Arc<DeclType>>, SchemaError> {
    let left = Cell::new(sizes::MAX_SCHEMAS);
    let mut schema = SchemaSeed { left: &left }
        .deserialize(schema)
        .map_err(|error| SchemaError::Document(error.to_string().into()))?;
    plain(&mut schema);
    let type_ = Converter::new(&[], interner).structural(&schema, is_resource)?;
    Ok(type_.is_exposed().then_some(type_))
}

/// Drops keywords that structural schemas do not have.
fn plain(schema: &mut Schema) {
    if schema.format == Format::IntOrString {
        schema.format = Format::None;
    }
    if schema.details().is_some() {
        let details = schema.details_mut();
        details.reference = None;
        for (_, property) in &mut details.properties {
            plain(property);
        }
        if let AdditionalProperties::Schema(value) = &mut details.additional {
            plain(value);
        }
        if let Some(items) = &mut details.items {
            plain(items);
        }
    }
}
