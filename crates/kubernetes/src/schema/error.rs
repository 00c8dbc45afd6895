//! Errors of parsing schemas and converting them to types.

use std::sync::Arc;

/// A failure to parse or convert a schema. Its `Display` is shown as the reason in the status.
///
/// Cloning is cheap, because one failure may affect many kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The document is not JSON or not an OpenAPI document.
    #[error("cannot read the OpenAPI document: {0}")]
    Document(Arc<str>),
    /// A schema in a document is not JSON or nests too deeply.
    #[error("cannot read the schema `{name}`: {reason}")]
    Schema {
        /// The name of the schema in its document.
        name: Arc<str>,
        /// The problem with the schema.
        reason: Arc<str>,
    },
    /// A `$ref` points to a schema that the document does not contain.
    #[error("the schema refers to `{0}`, which the document does not contain")]
    UnresolvedRef(Arc<str>),
    /// The type of the schema has more than [`MAX_DEPTH`](super::sizes::MAX_DEPTH) levels.
    #[error("the schema nests deeper than {} levels", super::sizes::MAX_DEPTH)]
    TooDeep,
    /// Schemas that refer to each other would expand to too many types.
    #[error("the schema expands to too many types because its schemas refer to each other")]
    TooComplex,
    /// The document has no schema for the kind.
    #[error("the document has no schema for the kind")]
    UnknownKind,
    /// A required name is missing in a CustomResourceDefinition.
    #[error("cannot read the CustomResourceDefinition: {0}")]
    Crd(Arc<str>),
}
