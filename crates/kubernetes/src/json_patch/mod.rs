//! JSON patches, as the API server applies those of mutating policies to an object.
//!
//! That is RFC 6902 with what the library of the API server makes of it: an index below zero counts from the end,
//! `replace` adds a field that is not there, a `null` that a patch has set is an empty object to `test`, and some
//! patches make the API server panic ([`PatchError::Panic`]).
//!
//! ```
//! use kubernetes::json_patch::{Operation, PatchError, apply};
//! use serde_json::json;
//!
//! let object = json!({"metadata": {"labels": {"app": "web"}}});
//! let add = Operation::new("add", "/metadata/labels/tier").with_value(json!("front"));
//! let patched = apply(&object, &[add])?;
//! assert_eq!(patched, json!({"metadata": {"labels": {"app": "web", "tier": "front"}}}));
//!
//! let remove = Operation::new("remove", "/metadata/labels/tier");
//! assert_eq!(
//!     apply(&object, &[remove]).unwrap_err().to_string(),
//!     "error in remove for path: '/metadata/labels/tier': Unable to remove nonexistent key: tier: missing value"
//! );
//! # Ok::<(), PatchError>(())
//! ```
//!
//! Source: `gopkg.in/evanphx/json-patch.v4` v4.13.0 `patch.go` (`Patch.ApplyIndent`); apiserver
//! `pkg/admission/plugin/policy/mutating/patch/json_patch.go` (`jsonPatcher`); apiserver `pkg/server/config.go`
//! (`JSONPatchMaxCopyBytes`).

mod apply;
mod array;
mod decode;
mod node;

use serde_json::Value;

use cel::go_text;

pub use apply::{apply, apply_to_failure};
pub use decode::decoded;

/// How many bytes all `copy` operations of a patch may add.
///
/// Source: apiserver `pkg/server/config.go`, `NewConfig`.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// How deep an object, and what a patch makes of it, may nest.
///
/// Differs: the API server reads ten thousand levels.
pub const MAX_DEPTH: usize = 256;

/// How many values are looked at to see how deep a patch nests what it moves.
const MAX_MEASURED: usize = 10_000_000;

/// One operation of a patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// `add`, `remove`, `replace`, `move`, `copy` or `test`; any other is an error.
    pub op: String,
    /// The path, a JSON pointer.
    pub path: String,
    /// Where `move` and `copy` take the value from; an empty one counts for none.
    pub from: Option<String>,
    /// The value of `add`, `replace` and `test`; `null` differs from none.
    pub value: Option<Value>,
}

impl Operation {
    /// An operation without `from` and `value`.
    #[must_use]
    pub fn new(op: &str, path: &str) -> Self {
        Self {
            op: op.to_owned(),
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// The operation with this value.
    #[must_use]
    pub fn with_value(self, value: Value) -> Self {
        Self {
            value: Some(value),
            ..self
        }
    }

    /// The operation with this `from`.
    #[must_use]
    pub fn with_from(self, from: &str) -> Self {
        Self {
            from: Some(from.to_owned()),
            ..self
        }
    }
}

/// The reason that a patch gives no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// A `test` has failed: the API server goes on with the object as it was.
    #[error("testing value {0} failed: test failed")]
    TestFailed(String),
    /// A path leads to nothing; in the words of the API server.
    #[error("{0}: missing value")]
    Missing(String),
    /// Any other error, in the words of the API server.
    #[error("{0}")]
    Failed(String),
    /// The API server panics, and answers the request with an internal error; the reason is in its log.
    #[error("{0}")]
    Panic(&'static str),
    /// The object, or what the patch makes of it, is beyond what is followed here.
    #[error("the object nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// The panic of a write to a map that is nil.
const NIL_MAP: &str = "assignment to entry in nil map";

/// The panic of a value that is not there.
const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

/// A text of an operation as the library reads it: the API server quotes it as Go does, and what that writes is not
/// always JSON.
///
/// # Errors
/// What Go's reader of JSON says.
fn reread(text: &str) -> Result<&str, String> {
    let quoted = go_text::quote(text);
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            continue;
        }
        if let Some(escaped @ ('a' | 'v' | 'x' | 'U')) = chars.next() {
            return Err(format!(
                "invalid character '{escaped}' in string escape code"
            ));
        }
    }
    Ok(text)
}
