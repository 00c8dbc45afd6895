//! Merges an applied object into a live object, based on the schema of the kind. The API server does the same for the
//! `applyConfiguration` of mutating policies, which is a server-side apply without field ownership.
//!
//! [`Types`] contains the types of one OpenAPI document. [`apply`] merges two objects. If the schema of a list declares
//! keys, the list is merged item by item. An applied object with atomic lists, maps or structs is rejected.
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
//! Differs:
//!
//! - If an object has several errors, they are sorted by field name. Upstream's order is random.
//! - If an object has undeclared fields, only the first undeclared field is reported. Upstream reports a random
//!   undeclared field, possibly with the errors of other fields.
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

/// The maximum number of nested levels in an object.
///
/// Differs: the API server's limit is 10,000 levels.
pub const MAX_DEPTH: usize = 256;

/// An error: an object does not match its type, or two objects cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    /// The API server's message.
    pub reason: String,
    /// The field names on the path to the first error, without list elements.
    pub fields: Vec<String>,
}

/// An error of [`apply`]. Its `Display` is the API server's message, except for [`Error::TooDeep`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The applied object does not match the type of the kind.
    #[error("failed to convert patch object to typed object: {0}")]
    Applied(Invalid),
    /// The OpenAPI document has no schema for the kind.
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
        /// The field names on the path to the first atomic value.
        fields: Vec<String>,
    },
    /// The live object does not match the type of the kind.
    #[error("failed to convert original object to typed object: {0}")]
    Live(Invalid),
    /// The objects cannot be merged.
    #[error("failed to merge patch: {0}")]
    Merge(Invalid),
    /// One of the objects exceeds [`MAX_DEPTH`].
    #[error("the object nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

impl Error {
    /// Returns the field names on the path to the first error in the applied object. Returns `None` if the error is not
    /// in the applied object.
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

/// Merges `applied` into `live`, an object of the kind `gvk`. Returns the merged object.
///
/// `apiVersion` and `kind` of `applied` are ignored. `live` must have the form in which the API server merges objects.
/// A custom resource must be decoded. An object of a built-in kind must have the form that policies see.
///
/// # Errors
/// Returns an [`Error`] with the API server's message, without the API server's prefix `error applying patch: `.
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
