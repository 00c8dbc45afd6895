//! Memory used by a single value, for [`EvalBudget`](super::EvalBudget).
//!
//! Only a value with a single reference is counted. Such a value was just created, so its memory is counted once. The
//! memory of elements is not counted again: a list that contains a large value twice adds only the memory of two
//! references.

use std::sync::Arc;

use super::Value;

/// The counters of an `Arc` and the header of an allocation, in bytes.
pub(crate) const ALLOCATION: usize = 32;

/// Memory of an element appended to a mutable list, in bytes. A vector may reserve twice its length.
pub(crate) const GROWN_ELEMENT: usize = 2 * size_of::<Value>();

/// Memory of an entry inserted into a mutable map, including the index, in bytes.
pub(crate) const GROWN_ENTRY: usize = 4 * size_of::<Value>() + 96;

impl Value {
    /// Returns true if the value uses no heap memory.
    #[inline]
    pub(crate) fn is_inline(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Bool(_)
                | Self::Int(_)
                | Self::Uint(_)
                | Self::Double(_)
                | Self::Duration(_)
                | Self::Timestamp(_)
        )
    }

    /// Returns [`Self::own_size`], or `None` if the value may contain other values.
    #[inline]
    pub(crate) fn flat_size(&self) -> Option<usize> {
        match self {
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Duration(_)
            | Self::Timestamp(_)
            | Self::String(_)
            | Self::Bytes(_) => Some(self.own_size()),
            Self::List(_)
            | Self::Map(_)
            | Self::Type(_)
            | Self::Optional(_)
            | Self::Opaque(_)
            | Self::Error(_) => None,
        }
    }

    /// Returns the memory owned exclusively by this value, in bytes, excluding its elements. Zero
    /// if the value is shared.
    #[inline]
    pub(crate) fn own_size(&self) -> usize {
        match self {
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Duration(_)
            | Self::Timestamp(_) => 0,
            Self::String(text) => size_of_new(text, text.len()),
            Self::Bytes(bytes) => size_of_new(bytes, bytes.len()),
            Self::List(list) => list.own_size(),
            Self::Map(map) => map.own_size(),
            Self::Type(of) => size_of_new(of, size_of_val(&**of)),
            Self::Optional(optional) => optional.own_size(),
            Self::Opaque(opaque) => {
                let n_bytes = size_of_val(&**opaque).saturating_add(opaque.heap_size());
                size_of_new(opaque, n_bytes)
            }
            Self::Error(error) => error.own_size(),
        }
    }
}

/// Returns the size in bytes of an allocation with `n_bytes` of content. Zero if `shared` has several references.
#[inline]
pub(super) fn size_of_new<T: ?Sized>(shared: &Arc<T>, n_bytes: usize) -> usize {
    if Arc::strong_count(shared) == 1 {
        n_bytes.saturating_add(ALLOCATION)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_size_of_shared_value_is_zero() {
        let text = Value::from("x".repeat(100));
        assert_eq!(text.own_size(), 100 + ALLOCATION);
        let list = Value::list(vec![text.clone(), text.clone()]);
        assert_eq!(text.own_size(), 0);
        assert_eq!(list.own_size(), 2 * size_of::<Value>() + ALLOCATION);
        let shared = list.clone();
        assert_eq!((list.own_size(), shared.own_size()), (0, 0));
    }

    #[test]
    fn own_size_of_optional_includes_unshared_content() {
        let text = Value::from("x".repeat(100));
        assert!(Value::some(text.clone()).own_size() < 100);
        drop(text);
        assert!(Value::some(Value::from("x".repeat(100))).own_size() > 100);
    }

    #[test]
    fn own_size_of_map_includes_index() {
        let entries = |n| Value::map((0..n).map(|n| (Value::Int(n), Value::Null))).unwrap();
        assert!(entries(100).own_size() > 100 * 3 * size_of::<Value>());
        assert!(entries(2).own_size() >= 2 * 2 * size_of::<Value>());
    }
}
