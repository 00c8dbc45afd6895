//! Why a schema could not be turned into a type.

use std::sync::Arc;

/// A schema that cannot be read or converted; the text is the reason that a status gives.
///
/// Cheap to clone: one failure may be the answer for many kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The document is not JSON, or not shaped as an OpenAPI document is.
    #[error("cannot read the OpenAPI document: {0}")]
    Document(Arc<str>),
    /// One schema of a document is not JSON, or nests too deeply to be read.
    #[error("cannot read the schema `{name}`: {reason}")]
    Schema {
        /// The name of the schema in its document.
        name: Arc<str>,
        /// What is wrong with it.
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
    /// A CustomResourceDefinition without what names its resource.
    #[error("cannot read the CustomResourceDefinition: {0}")]
    Crd(Arc<str>),
}
