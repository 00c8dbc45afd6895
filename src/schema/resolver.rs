//! Where the type of a kind comes from.

use super::Gvk;
use crate::cel::types::Type;

/// The answer to the question for the schema of a kind.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The type of objects of the kind, named `<Kind>#`.
    Found(Type),
    /// The kind has no published schema.
    NotFound,
    /// The schema could not be had now, or cannot be read; the text says why.
    Unavailable(String),
}

/// Gives the type of a kind's objects.
pub trait SchemaResolver {
    /// The type of `gvk`.
    fn resolve(&self, gvk: &Gvk) -> Resolution;
}
