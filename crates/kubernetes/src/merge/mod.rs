//! Merges an applied object into a live object, based on the schema of the kind. The API server does this for the
//! `applyConfiguration` of mutating policies: server-side apply without field ownership.
//!
//! [`Types`] contains the schemas of one OpenAPI document as types of structured-merge-diff. [`apply`] merges two
//! objects. Lists whose schema declares keys are merged item by item. An applied object that contains atomic lists,
//! maps or structs is rejected.
//!
//! ```
//! use kubernetes::merge::{Applied, Error, Types, apply};
//! use kubernetes::schema::Gvk;
//! use serde_json::json;
//!
//! let document = br#"{"components": {"schemas": {"Box": {
//!     "type": "object",
//!     "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Box"}],
//!     "properties": {
//!         "apiVersion": {"type": "string"}, "kind": {"type": "string"},
//!         "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
//!         "sizes": {"type": "array", "items": {"type": "integer"}}
//!     }
//! }}}}"#;
//! let types = Types::from_document(document).map_err(|error| error.to_string())?;
//! let gvk = Gvk::new("example.com", "v1", "Box");
//! let live = json!({"apiVersion": "example.com/v1", "kind": "Box", "tags": ["a"], "sizes": [1]});
//!
//! let merged = apply(&types, &gvk, &live, &Applied::from(&json!({"tags": ["b"]})));
//! let expected = json!({"apiVersion": "example.com/v1", "kind": "Box", "tags": ["a", "b"], "sizes": [1]});
//! assert_eq!(merged, Ok(expected));
//!
//! let rejected = apply(&types, &gvk, &live, &Applied::from(&json!({"sizes": [2]})));
//! assert_eq!(
//!     rejected.unwrap_err().to_string(),
//!     "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .sizes"
//! );
//! # Ok::<(), String>(())
//! ```
//!
//! Differs: several errors of one object are sorted by field name; upstream's order is random. If an object has fields
//! that its schema does not declare, upstream reports a random undeclared field, possibly with the errors of other
//! fields. Here, only the first undeclared field is reported.
//!
//! Source: apiserver `pkg/admission/plugin/policy/mutating/patch/smd.go` (`ApplyStructuredMergeDiff`);
//! structured-merge-diff v6.3.3 `typed` (`TypedValue.Merge`, `Validate`); apimachinery
//! `pkg/util/managedfields/internal/typeconverter.go`; kube-openapi `pkg/schemaconv`.

mod applied;
mod atomics;
mod convert;
mod custom;
mod element;
mod go_syntax;
mod node;
#[cfg(test)]
mod tests;
mod types;
mod undeclared;
mod validate;
mod walk;

use serde_json::Value;

use crate::schema::Gvk;
use crate::schema::crd::is_shallower;

pub use applied::{Applied, NonJson};
pub use types::Types;
pub use undeclared::undeclared;

use node::Node;
use validate::{Texts, Validation};

/// The maximum number of levels of an object.
///
/// Differs: the API server's limit is 10,000 levels.
pub const MAX_DEPTH: usize = 256;

/// Error for an object that does not match its type, or for two objects that cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    /// The API server's message.
    pub reason: String,
    /// The names of the fields on the path to the first error, without list elements.
    pub fields: Vec<String>,
}

/// Error of [`apply`]. Its `Display` is the API server's message, except for [`Error::TooDeep`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The applied object does not match the type of its kind.
    #[error("failed to convert patch object to typed object: {0}")]
    Applied(Invalid),
    /// The OpenAPI document has no schema for this kind.
    #[error("failed to convert patch object to typed object: no corresponding type for {0}")]
    NoType(String),
    /// The applied object contains atomic lists, maps or structs.
    #[error(
        "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
        .paths.join(", ")
    )]
    Atomic {
        /// The paths of the atomic values.
        paths: Vec<String>,
        /// The names of the fields on the path to the first atomic value.
        fields: Vec<String>,
    },
    /// The live object does not match the type of its kind.
    #[error("failed to convert original object to typed object: {0}")]
    Live(Invalid),
    /// The objects cannot be merged.
    #[error("failed to merge patch: {0}")]
    Merge(Invalid),
    /// The live or the applied object exceeds [`MAX_DEPTH`].
    #[error("the object nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

impl Error {
    /// Returns the names of the fields on the path to the value in the applied object that caused the first error.
    /// Returns `None` for errors that no such value causes.
    #[must_use]
    pub fn fields(&self) -> Option<&[String]> {
        match self {
            Self::Applied(Invalid { fields, .. })
            | Self::Merge(Invalid { fields, .. })
            | Self::Atomic { fields, .. } => Some(fields),
            Self::NoType(_) | Self::Live(_) | Self::TooDeep => None,
        }
    }
}

/// Merges `applied` into `live`, an object of the kind `gvk`, and returns the merged object.
///
/// `apiVersion` and `kind` of `applied` are ignored. If `live` is a custom resource, it must be decoded as in the API
/// server. If `live` is an object of a built-in kind, it must have the form that the API server passes to policies.
///
/// # Errors
/// Returns an [`Error`] with the API server's message. The API server reports the message after `error applying patch:
/// `.
pub fn apply(types: &Types, gvk: &Gvk, live: &Value, applied: &Applied) -> Result<Value, Error> {
    if !is_shallower(live, MAX_DEPTH) || !applied.is_shallower(MAX_DEPTH) {
        return Err(Error::TooDeep);
    }
    let Some(root) = types.root(gvk) else {
        let kind = format!("{}, Kind={}", gvk.api_version(), gvk.kind);
        return Err(Error::NoType(kind));
    };
    let api_version = gvk.api_version();
    let mut patch = Node::from_applied(applied);
    if let Node::Map(fields) = &mut patch {
        fields.insert("apiVersion", Node::Text(&api_version));
        fields.insert("kind", Node::Text(&gvk.kind));
    }
    let mut errors = Texts::default();
    Validation::new(types, false).check(root, &patch, &mut errors);
    errors.into_result().map_err(Error::Applied)?;

    let (paths, fields) = atomics::find(types, root, &patch);
    if !paths.is_empty() {
        return Err(Error::Atomic { paths, fields });
    }

    let live = Node::from_json(live);
    let mut errors = Texts::default();
    Validation::new(types, true).check(root, &live, &mut errors);
    errors.into_result().map_err(Error::Live)?;

    let mut errors = Texts::default();
    let merged = walk::merge(types, root, &live, &patch, &mut errors);
    errors.into_result().map_err(Error::Merge)?;
    Ok(merged)
}
