//! Errors in parsing schemas and converting them to types.

use std::sync::Arc;

/// An error in parsing or converting a schema. The status conditions show its `Display` text as the reason.
///
/// Clones are cheap. One error may affect many kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The document is not JSON or not an OpenAPI document.
    #[error("cannot read the OpenAPI document: {0}")]
    Document(Arc<str>),
    /// A schema in the document is not JSON or nests too deeply.
    #[error("cannot read the schema `{name}`: {reason}")]
    Schema {
        /// The name of the schema in the document.
        name: Arc<str>,
        /// The problem with the schema.
        reason: Arc<str>,
    },
    /// A `$ref` refers to a schema that is not in the document.
    #[error("the schema refers to `{0}`, which the document does not contain")]
    UnresolvedRef(Arc<str>),
    /// The type has more than [`MAX_DEPTH`](super::sizes::MAX_DEPTH) levels.
    #[error("the schema nests deeper than {} levels", super::sizes::MAX_DEPTH)]
    TooDeep,
    /// Schemas with cyclic references expand to too many types.
    #[error("the schema expands to too many types because its schemas refer to each other")]
    TooComplex,
    /// The document has no schema for the kind.
    #[error("the document has no schema for the kind")]
    UnknownKind,
    /// A CustomResourceDefinition lacks a required name.
    #[error("cannot read the CustomResourceDefinition: {0}")]
    Crd(Arc<str>),
}
