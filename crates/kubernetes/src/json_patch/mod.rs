//! Applies JSON patches like the API server does for mutating policies.
//!
//! The patches follow RFC 6902, with the deviations of the API server's library:
//!
//! - A negative index counts from the end.
//! - `replace` adds a missing field.
//! - `test` treats a `null` that a patch has set as an empty object.
//! - Some patches cause a panic in the API server ([`PatchError::Panic`]).
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

/// The maximum number of bytes that the `copy` operations of a patch can add in total.
///
/// Source: apiserver `pkg/server/config.go`, `NewConfig`.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// The maximum number of nested levels of an object, before and after a patch.
///
/// Differs: the API server's limit is 10,000 levels.
pub const MAX_DEPTH: usize = 256;

/// The maximum number of values that a patch may visit to measure the depth of moved and copied values.
const MAX_MEASURED: usize = 10_000_000;

/// One operation of a JSON patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// The operation: `add`, `remove`, `replace`, `move`, `copy` or `test`. Other values cause an error when the patch
    /// is applied.
    pub op: String,
    /// The target path, a JSON pointer.
    pub path: String,
    /// The source path of `move` and `copy`. An empty string counts as absent.
    pub from: Option<String>,
    /// The value of `add`, `replace` and `test`. A `null` value is different from an absent value.
    pub value: Option<Value>,
}

impl Operation {
    /// Creates an operation without `from` and `value`.
    #[must_use]
    pub fn new(op: &str, path: &str) -> Self {
        Self {
            op: op.to_owned(),
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// Sets the value.
    #[must_use]
    pub fn with_value(self, value: Value) -> Self {
        Self {
            value: Some(value),
            ..self
        }
    }

    /// Sets the source path.
    #[must_use]
    pub fn with_from(self, from: &str) -> Self {
        Self {
            from: Some(from.to_owned()),
            ..self
        }
    }
}

/// A failure to apply a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// A `test` operation failed. The API server ignores the whole patch and continues with the unpatched object.
    #[error("testing value {0} failed: test failed")]
    TestFailed(String),
    /// A path does not exist. Contains the API server's message.
    #[error("{0}: missing value")]
    Missing(String),
    /// Any other error, with the API server's message.
    #[error("{0}")]
    Failed(String),
    /// The API server panics and responds with an internal error. Contains the panic message from the server's log.
    #[error("{0}")]
    Panic(&'static str),
    /// The object or the patched object has more than [`MAX_DEPTH`] levels.
    #[error("the object nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// The panic message for writing to a nil map.
const NIL_MAP: &str = "assignment to entry in nil map";

/// The panic message for dereferencing a nil pointer.
const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

/// Decodes a string in an operation. The API server quotes the string in Go syntax and then decodes it as JSON. If the
/// Go syntax contains an escape sequence that JSON lacks (such as `\a`), decoding fails.
///
/// # Errors
/// Returns the message of Go's JSON decoder.
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
