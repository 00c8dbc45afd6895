//! The document to which a JSON patch is applied, as a tree.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{MAX_DEPTH, NIL_POINTER, PatchError};
use crate::go_json;

/// A node of the document. As in upstream's library, there are two kinds of `null`.
///
/// Source: `json-patch.v4` `patch.go`, `lazyNode`. Upstream decodes its value on first use. This type decodes its value
/// immediately.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// An absent value, or a `null` nested in a document or in an operation's value. A nil pointer in Go.
    Nil,
    /// A `null` that is an operation's whole value. A nil object in Go.
    Null,
    /// A string, a number or a boolean.
    Scalar(Value),
    Object(BTreeMap<String, Node>),
    Array(Vec<Node>),
}

impl Node {
    /// Creates the node of a nested value. `null` becomes [`Self::Nil`].
    pub(super) fn within(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nil,
            other => Self::new(other),
        }
    }

    /// Creates the node of a document or of an operation's whole value. `null` becomes [`Self::Null`].
    pub(super) fn new(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Number(number) => Self::Scalar(Value::Number(go_json::reread_number(number))),
            Value::Bool(_) | Value::String(_) => Self::Scalar(value.clone()),
            Value::Array(items) => Self::Array(items.iter().map(Self::within).collect()),
            Value::Object(fields) => Self::Object(
                fields
                    .iter()
                    .map(|(name, field)| (name.clone(), Self::within(field)))
                    .collect(),
            ),
        }
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Nil | Self::Null => Value::Null,
            Self::Scalar(value) => value,
            Self::Array(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Object(fields) => {
                let fields = fields.into_iter();
                let fields: Map<_, _> = fields
                    .map(|(name, field)| (name, field.into_value()))
                    .collect();
                Value::Object(fields)
            }
        }
    }

    /// Returns the JSON length in bytes. Returns 0 for [`Self::Nil`].
    pub(super) fn copied_bytes(&self) -> usize {
        match self {
            Self::Nil => 0,
            other => go_json::to_text(&other.clone().into_value()).len(),
        }
    }

    /// Returns the number of nested levels, including this node, and the number of visited values.
    pub(super) fn depth(&self) -> (usize, usize) {
        let (mut deepest, mut seen) = (0, 0_usize);
        let mut open = vec![(self, 1_usize)];
        while let Some((node, level)) = open.pop() {
            deepest = deepest.max(level);
            seen = seen.saturating_add(1);
            let next = level.saturating_add(1);
            match node {
                Self::Array(items) => open.extend(items.iter().map(|item| (item, next))),
                Self::Object(fields) => open.extend(fields.values().map(|field| (field, next))),
                Self::Nil | Self::Null | Self::Scalar(_) => {}
            }
        }
        (deepest, seen)
    }

    /// Returns the fields if the library treats the node as an object. [`Self::Null`] is an object without fields.
    fn fields(&self) -> Option<&BTreeMap<String, Self>> {
        static EMPTY: BTreeMap<String, Node> = BTreeMap::new();
        match self {
            Self::Object(fields) => Some(fields),
            Self::Null => Some(&EMPTY),
            Self::Nil | Self::Scalar(_) | Self::Array(_) => None,
        }
    }

    /// Compares the node with the value of a `test` operation, as upstream's library does.
    ///
    /// Source: `json-patch.v4` `patch.go`, `lazyNode.equal`.
    ///
    /// # Errors
    /// Returns [`PatchError::Panic`] for a `null` in a list, because the library panics.
    pub(super) fn equals(&self, other: &Self) -> Result<bool, PatchError> {
        if matches!(self, Self::Nil) || matches!(other, Self::Nil) {
            return Err(PatchError::Panic(NIL_POINTER));
        }
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => {
                Ok(a == b || go_json::to_text(a) == go_json::to_text(b))
            }
            (Self::Scalar(_), _) => Ok(false),
            (Self::Array(a), Self::Array(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b) {
                    if !a.equals(b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Self::Array(a), other) => Ok(a.is_empty() && matches!(other, Self::Null)),
            (a, b) => {
                let (Some(a), Some(b)) = (a.fields(), b.fields()) else {
                    return Ok(false);
                };
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (name, a) in a {
                    let same = match (a, b.get(name)) {
                        (Self::Nil, Some(b)) => matches!(b, Self::Nil),
                        (_, None | Some(Self::Nil)) => false,
                        (a, Some(b)) => a.equals(b)?,
                    };
                    if !same {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

/// Returns true if the value has at most [`MAX_DEPTH`] nested levels.
pub(super) fn is_shallow(value: &Value) -> bool {
    crate::schema::crd::is_shallower(value, MAX_DEPTH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_are_compared_as_in_upstream_library() {
        let panic = Err(PatchError::Panic(NIL_POINTER));
        for (a, b, expected) in [
            (json!(1), json!(1), Ok(true)),
            (json!(1), json!(2), Ok(false)),
            (json!("a"), json!("a"), Ok(true)),
            (json!("1"), json!(1), Ok(false)),
            (json!(1), json!([]), Ok(false)),
            (json!([]), json!(1), Ok(false)),
            (json!([]), json!([]), Ok(true)),
            (json!([1, "a"]), json!([1, "a"]), Ok(true)),
            (json!([1, 2]), json!([2, 1]), Ok(false)),
            (json!([1]), json!([1, 2]), Ok(false)),
            (json!([null]), json!([null]), panic.clone()),
            (json!([1]), json!([null]), panic),
            (json!([]), json!(null), Ok(true)),
            (json!([1]), json!(null), Ok(false)),
            (json!([]), json!({}), Ok(false)),
            (json!(null), json!(null), Ok(true)),
            (json!(null), json!({}), Ok(true)),
            (json!({}), json!(null), Ok(true)),
            (json!(null), json!({"a": 1}), Ok(false)),
            (json!({}), json!([]), Ok(false)),
            (json!({}), json!(1), Ok(false)),
            (json!({"a": 1}), json!({"a": 1}), Ok(true)),
            (json!({"a": 1}), json!({"a": 2}), Ok(false)),
            (json!({"a": 1}), json!({"b": 1}), Ok(false)),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), Ok(false)),
            (json!({"a": null}), json!({"a": null}), Ok(true)),
            (json!({"a": null}), json!({"b": null}), Ok(false)),
            (json!({"a": null}), json!({"a": 1}), Ok(false)),
            (json!({"a": 1}), json!({"a": null}), Ok(false)),
        ] {
            assert_eq!(Node::new(&a).equals(&Node::new(&b)), expected, "{a} {b}");
        }
    }

    #[test]
    fn nodes_have_length_and_depth() {
        for (value, n_bytes, depth, n_values) in [
            (json!("ab"), 4, 1, 1),
            (json!(null), 4, 1, 1),
            (json!([]), 2, 1, 1),
            (json!([1, null]), 8, 2, 3),
            (json!({"a": {"b": [true]}}), 18, 4, 4),
        ] {
            let node = Node::new(&value);
            assert_eq!(node.copied_bytes(), n_bytes, "{value}");
            assert_eq!(node.depth(), (depth, n_values), "{value}");
            assert_eq!(node.into_value(), value);
        }
        assert_eq!(Node::within(&json!(null)).copied_bytes(), 0);
    }
}
