//! Merging an applied object into the live one by the schema of the kind, as the API server does for the
//! `applyConfiguration` of mutating policies: server-side apply without ownership.
//!
//! [`Types`] are the schemas of one OpenAPI document, in the form of structured-merge-diff, and [`apply`] merges. A
//! list whose schema says by which keys its items are told apart is merged item by item, an atomic one may not be
//! applied at all.
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
//! let types = Types::of_document(document).map_err(|error| error.to_string())?;
//! let gvk = Gvk::new("example.com", "v1", "Box");
//! let live = json!({"apiVersion": "example.com/v1", "kind": "Box", "tags": ["a"], "sizes": [1]});
//!
//! let merged = apply(&types, &gvk, &live, &Applied::from(&json!({"tags": ["b"]})));
//! let expected = json!({"apiVersion": "example.com/v1", "kind": "Box", "tags": ["a", "b"], "sizes": [1]});
//! assert_eq!(merged, Ok(expected));
//!
//! let refused = apply(&types, &gvk, &live, &Applied::from(&json!({"sizes": [2]})));
//! assert_eq!(
//!     refused.unwrap_err().to_string(),
//!     "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .sizes"
//! );
//! # Ok::<(), String>(())
//! ```
//!
//! The order in which the API server names several errors is that of Go's maps; here it is that of the fields' names.
//! Of an object with fields that its schema does not declare, the API server names one of them and perhaps errors of
//! other fields; here the first of them is named alone.
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
mod types;
mod undeclared;
mod validate;
mod walk;

use serde_json::Value;

use crate::schema::Gvk;
use crate::schema::crd::is_shallower;

pub use applied::{Applied, Foreign};
pub use types::Types;
pub use undeclared::undeclared;

use node::Node;
use validate::{Texts, Validation};

/// How deep an object may nest.
///
/// Differs: the API server reads ten thousand levels.
pub const MAX_DEPTH: usize = 256;

/// An object that is not one of its kind, or does not go together with another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    /// The reason, in the words of the API server.
    pub reason: String,
    /// The fields that lead to what it is about first, without the elements of lists.
    pub fields: Vec<String>,
}

/// The reason that an object cannot be merged, in the words of the API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The applied object is not one of its kind.
    #[error("failed to convert patch object to typed object: {0}")]
    Applied(Invalid),
    /// There is no type for its kind.
    #[error("failed to convert patch object to typed object: no corresponding type for {0}")]
    NoType(String),
    /// The applied object sets what has to be set as a whole.
    #[error(
        "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
        .paths.join(", ")
    )]
    Atomic {
        /// The paths.
        paths: Vec<String>,
        /// The fields that lead to the first.
        fields: Vec<String>,
    },
    /// The live object is not one of its kind.
    #[error("failed to convert original object to typed object: {0}")]
    Live(Invalid),
    /// The objects cannot be merged.
    #[error("failed to merge patch: {0}")]
    Merge(Invalid),
    /// An object is beyond what is followed here.
    #[error("the object nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

impl Error {
    /// The fields of the applied object that lead to what the error is about first, where it is about a field of it.
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

/// Merges `applied` into `live`, an object of the kind `gvk`, and gives the merged object.
///
/// What `applied` says of apiVersion and kind does not count. A custom resource is one that the API server has decoded;
/// an object of Kubernetes' own APIs is one as policies see it.
///
/// # Errors
/// [`Error`], in the words of the API server, which puts `error applying patch: ` before them.
pub fn apply(types: &Types, gvk: &Gvk, live: &Value, applied: &Applied) -> Result<Value, Error> {
    if !is_shallower(live, MAX_DEPTH) || !applied.is_shallower(MAX_DEPTH) {
        return Err(Error::TooDeep);
    }
    let Some(root) = types.root(gvk) else {
        let kind = format!("{}, Kind={}", gvk.api_version(), gvk.kind);
        return Err(Error::NoType(kind));
    };
    let api_version = gvk.api_version();
    let mut patch = Node::of_applied(applied);
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

    let live = Node::of_json(live);
    let mut errors = Texts::default();
    Validation::new(types, true).check(root, &live, &mut errors);
    errors.into_result().map_err(Error::Live)?;

    let mut errors = Texts::default();
    let merged = walk::merge(types, root, &live, &patch, &mut errors);
    errors.into_result().map_err(Error::Merge)?;
    Ok(merged)
}
