//! The CEL types of values in CRD rules. They are derived from the CRD's structural schema, or from a schema nested in
//! it.
//!
//! These types differ from the types of the published schema. `format: int-or-string` and references have no effect.
//! The metadata of a resource declares only `name` and `generateName`.
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
use crate::version::Behavior;

/// Returns the type of values of `schema` for API servers with `behavior`. Returns `None` if rules cannot access the
/// values.
///
/// The schema must be structural and have at most [`MAX_JSON_DEPTH`](super::crd::MAX_JSON_DEPTH) levels.
pub(crate) fn rule_type(
    schema: &Map<String, Value>,
    is_resource: bool,
    behavior: Behavior,
    interner: &mut Interner,
) -> Result<Option<Arc<DeclType>>, SchemaError> {
    let left = Cell::new(sizes::MAX_SCHEMAS);
    let mut schema = SchemaSeed { left: &left }
        .deserialize(schema)
        .map_err(|error| SchemaError::Document(error.to_string().into()))?;
    plain(&mut schema);
    let type_ = Converter::new(&[], interner).structural(&schema, is_resource, behavior)?;
    Ok(type_.is_exposed().then_some(type_))
}

/// Removes keywords that have no effect in structural schemas.
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
