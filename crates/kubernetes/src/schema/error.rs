//! Errors of converting a schema to a type.

use std::sync::Arc;

/// A schema that cannot be parsed or converted. The text is shown as the reason in the status.
///
/// Clones are cheap, since one failure may affect many kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The document is not JSON or not an OpenAPI document.
    #[error("cannot read the OpenAPI document: {0}")]
    Document(Arc<str>),
    /// One schema of a document is not JSON or nests too deeply.
    #[error("cannot read the schema `{name}`: {reason}")]
    Schema {
        /// The name of the schema in its document.
        name: Arc<str>,
        /// The reason why it is invalid.
        reason: Arc<str>,
    },
    /// A `$ref` to a schema that the document does not have.
    #[error("the schema refers to `{0}`, which the document does not have")]
    UnresolvedRef(Arc<str>),
    /// The types nest deeper than [`MAX_DEPTH`](super::sizes::MAX_DEPTH).
    #[error("the schema nests deeper than {} levels", super::sizes::MAX_DEPTH)]
    TooDeep,
    /// Schemas that refer to each other expand to too many types.
    #[error("the schema expands to too many types, as its parts refer to each other")]
    TooComplex,
    /// The document has no schema for the kind.
    #[error("the document has no schema for the kind")]
    UnknownKind,
    /// A CustomResourceDefinition without the names of its resource.
    #[error("cannot read the CustomResourceDefinition: {0}")]
    Crd(Arc<str>),
}
