//! Applies the operations of a patch one after the other.
//!
//! Source: `json-patch.v4` `patch.go`, `Patch.add`, `remove`, `replace`, `move`, `test`, `copy`, `findObject`.

use serde_json::Value;

use super::node::{Node, is_shallow};
use super::{
    MAX_COPIED_BYTES, MAX_DEPTH, MAX_MEASURED, NIL_MAP, NIL_POINTER, Operation, PatchError, array,
    reread,
};

/// Applies a patch to a copy of `object`. Returns the patched object as decoded by the API server.
///
/// # Errors
/// Returns a [`PatchError`] if an operation fails or an object nests too deeply.
pub fn apply(object: &Value, patch: &[Operation]) -> Result<Value, PatchError> {
    apply_to_failure(object, patch).map_err(|(error, _)| error)
}

/// Same as [`apply`], but an error is returned with the operation that failed. The operation is `None` if `object` or a
/// value in the patch nests too deeply.
///
/// # Errors
/// Returns the same errors as [`apply`].
pub fn apply_to_failure<'a>(
    object: &Value,
    patch: &'a [Operation],
) -> Result<Value, (PatchError, Option<&'a Operation>)> {
    let is_followed = is_shallow(object)
        && patch
            .iter()
            .all(|operation| operation.value.as_ref().is_none_or(is_shallow));
    if !is_followed {
        return Err((PatchError::TooDeep, None));
    }
    let root = Node::new(object);
    let (depth, _) = root.depth();
    let mut document = Document {
        root,
        depth,
        measured: 0,
        copied: 0,
    };
    for operation in patch {
        let applied = document.apply(operation);
        applied.map_err(|error| (error, Some(operation)))?;
    }
    Ok(document.root.into_value())
}

struct Document {
    root: Node,
    /// An upper bound on the number of nested levels in `root`.
    depth: usize,
    /// The number of values that have been visited to measure the depth of moved and copied values.
    measured: usize,
    /// The number of bytes that `copy` operations have added.
    copied: usize,
}

/// Returns the error for a path whose parent is not an object or list.
fn missing(text: &str) -> PatchError {
    PatchError::Missing(text.to_owned())
}

fn failed(text: String) -> PatchError {
    PatchError::Failed(text)
}

/// Adds the prefix `words` to the message of `error`. Errors other than [`PatchError::Missing`] become
/// [`PatchError::Failed`].
fn within(words: &str, error: PatchError) -> PatchError {
    match error {
        PatchError::Missing(text) => PatchError::Missing(format!("{words}: {text}")),
        other => PatchError::Failed(format!("{words}: {other}")),
    }
}

impl Document {
    fn apply(&mut self, operation: &Operation) -> Result<(), PatchError> {
        match reread(&operation.op) {
            Ok("add") => self.add(operation),
            Ok("remove") => self.remove(operation),
            Ok("replace") => self.replace(operation),
            Ok("move") => self.move_(operation),
            Ok("test") => self.test(operation),
            Ok("copy") => self.copy(operation),
            Ok(other) => Err(failed(format!("Unexpected kind: {other}"))),
            Err(_) => Err(failed("Unexpected kind: unknown".to_owned())),
        }
    }

    fn add(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path =
            reread(&operation.path).map_err(|_| missing("add operation failed to decode path"))?;
        let value = value_of(operation);
        self.deepen(levels(path).saturating_add(value.depth().0))?;
        let (holder, key) = find(&mut self.root, path).ok_or_else(|| {
            missing(&format!(
                "add operation does not apply: doc is missing path: \"{path}\""
            ))
        })?;
        holder
            .add(key, value)?
            .map_err(|error| failed(format!("error in add for path: '{path}': {error}")))
    }

    fn remove(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path = reread(&operation.path)
            .map_err(|_| missing("remove operation failed to decode path"))?;
        let (holder, key) = find(&mut self.root, path).ok_or_else(|| {
            missing(&format!(
                "remove operation does not apply: doc is missing path: \"{path}\""
            ))
        })?;
        let removed = holder.remove(&key);
        removed
            .map(drop)
            .map_err(|error| within(&format!("error in remove for path: '{path}'"), error))
    }

    fn replace(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path = reread(&operation.path)
            .map_err(|error| failed(format!("replace operation failed to decode path: {error}")))?;
        let value = value_of(operation);
        if path.is_empty() {
            match value {
                Node::Nil => return Err(PatchError::Panic(NIL_POINTER)),
                Node::Scalar(_) => {
                    let text = "replace operation value must be object or array: %!w(<nil>)";
                    return Err(failed(text.to_owned()));
                }
                Node::Null | Node::Object(_) | Node::Array(_) => {
                    self.deepen(value.depth().0)?;
                    self.root = value;
                }
            }
            return Ok(());
        }
        self.deepen(levels(path).saturating_add(value.depth().0))?;
        let (holder, key) = find(&mut self.root, path).ok_or_else(|| {
            missing(&format!(
                "replace operation does not apply: doc is missing path: {path}"
            ))
        })?;
        holder.get(&key).map_err(|_| {
            missing(&format!(
                "replace operation does not apply: doc is missing key: {path}"
            ))
        })?;
        holder.set(key, value)
    }

    fn move_(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let from = from_of(operation)
            .map_err(|error| failed(format!("move operation failed to decode from: {error}")))?;
        let (holder, key) = find(&mut self.root, from).ok_or_else(|| {
            missing(&format!(
                "move operation does not apply: doc is missing from path: {from}"
            ))
        })?;
        let in_move =
            |key: &str, error| failed(format!("error in move for path: '{key}': {error}"));
        holder.get(&key).map_err(|error| in_move(&key, error))?;
        let value = holder.remove(&key);
        let value = value.map_err(|error| in_move(&key, error.to_string()))?;
        let path = reread(&operation.path)
            .map_err(|error| failed(format!("move operation failed to decode path: {error}")))?;
        self.deepen_by(from, path, &value)?;
        let (holder, key) = find(&mut self.root, path).ok_or_else(|| {
            missing(&format!(
                "move operation does not apply: doc is missing destination path: {path}"
            ))
        })?;
        holder
            .add(key, value)?
            .map_err(|error| in_move(path, error))
    }

    fn copy(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let from = from_of(operation)
            .map_err(|error| failed(format!("copy operation failed to decode from: {error}")))?;
        let (holder, key) = find(&mut self.root, from).ok_or_else(|| {
            missing(&format!(
                "copy operation does not apply: doc is missing from path: {from}"
            ))
        })?;
        let value = holder
            .get(&key)
            .map_err(|error| failed(format!("error in copy for from: '{from}': {error}")))?;
        let bytes = value.copied_bytes();
        self.copied = self.copied.saturating_add(bytes);
        let is_within = self.copied <= MAX_COPIED_BYTES;
        // As in upstream, the destination path is resolved even if the limit is exceeded, because an error in this path
        // takes precedence.
        let value = if is_within { value.copied() } else { Node::Nil };
        let path =
            reread(&operation.path).map_err(|_| missing("copy operation failed to decode path"))?;
        self.deepen_by(from, path, &value)?;
        let (holder, key) = find(&mut self.root, path).ok_or_else(|| {
            missing(&format!(
                "copy operation does not apply: doc is missing destination path: {path}"
            ))
        })?;
        if !is_within {
            return Err(failed(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {}",
                self.copied, MAX_COPIED_BYTES
            )));
        }
        holder
            .add(key, value)?
            .map_err(|error| failed(format!("error while adding value during copy: {error}")))
    }

    fn test(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path = reread(&operation.path)
            .map_err(|error| failed(format!("test operation failed to decode path: {error}")))?;
        let expected = value_of(operation);
        let is_equal = if path.is_empty() {
            self.root.equals(&expected)?
        } else {
            let (holder, key) = find(&mut self.root, path).ok_or_else(|| {
                missing(&format!(
                    "test operation does not apply: is missing path: {path}"
                ))
            })?;
            let actual = holder
                .get(&key)
                .map_err(|error| failed(format!("error in test for path: '{path}': {error}")))?;
            match (actual, &expected) {
                (Node::Nil, Node::Nil) => true,
                (Node::Nil, _) | (_, Node::Nil) => false,
                (actual, expected) => actual.equals(expected)?,
            }
        };
        if is_equal {
            Ok(())
        } else {
            Err(PatchError::TestFailed(path.to_owned()))
        }
    }

    /// Raises the bound on the document's depth to at least `levels`. Returns an error if the bound exceeds
    /// [`MAX_DEPTH`].
    fn deepen(&mut self, levels: usize) -> Result<(), PatchError> {
        self.depth = self.depth.max(levels);
        if self.depth > MAX_DEPTH {
            return Err(PatchError::TooDeep);
        }
        Ok(())
    }

    /// Raises the bound on the document's depth for a value that is moved or copied from `from` to `path`. Measures the
    /// depth of the value only if its upper bound exceeds the limit.
    fn deepen_by(&mut self, from: &str, path: &str, value: &Node) -> Result<(), PatchError> {
        let bound = levels(path).saturating_add(self.depth.saturating_sub(levels(from)));
        if bound <= MAX_DEPTH {
            return self.deepen(bound);
        }
        let (depth, seen) = value.depth();
        self.measured = self.measured.saturating_add(seen);
        if self.measured > MAX_MEASURED {
            return Err(PatchError::TooDeep);
        }
        self.deepen(levels(path).saturating_add(depth))
    }
}

impl Node {
    /// Copies the node. As in upstream, which encodes and decodes the node, a nested [`Node::Null`] becomes
    /// [`Node::Nil`].
    fn copied(&self) -> Self {
        match self {
            Self::Nil => Self::Nil,
            other => Self::new(&other.clone().into_value()),
        }
    }

    /// Returns the field or item at `key`. Returns [`Node::Nil`] for a missing field of an object.
    fn get(&self, key: &str) -> Result<&Self, String> {
        static NIL: Node = Node::Nil;
        match self {
            Self::Object(fields) => Ok(fields.get(key).unwrap_or(&NIL)),
            Self::Array(items) => {
                let index = array::position(items, key)?;
                Ok(items.get(index).unwrap_or(&NIL))
            }
            Self::Nil | Self::Null | Self::Scalar(_) => Ok(&NIL),
        }
    }

    /// Sets a field, or inserts an item before the index `key`.
    fn add(&mut self, key: String, value: Self) -> Result<Result<(), String>, PatchError> {
        match self {
            Self::Object(fields) => {
                fields.insert(key, value);
                Ok(Ok(()))
            }
            Self::Array(items) => Ok(array::add(items, &key, value)),
            Self::Nil | Self::Null | Self::Scalar(_) => Err(PatchError::Panic(NIL_MAP)),
        }
    }

    /// Sets a field, or replaces the existing item at the index `key`.
    fn set(&mut self, key: String, value: Self) -> Result<(), PatchError> {
        match self {
            Self::Object(fields) => {
                fields.insert(key, value);
                Ok(())
            }
            Self::Array(items) => {
                let place = array::position(items, &key)
                    .ok()
                    .and_then(|index| items.get_mut(index));
                if let Some(place) = place {
                    *place = value;
                }
                Ok(())
            }
            Self::Nil | Self::Null | Self::Scalar(_) => Err(PatchError::Panic(NIL_MAP)),
        }
    }

    fn remove(&mut self, key: &str) -> Result<Self, PatchError> {
        match self {
            Self::Array(items) => {
                let index = array::position(items, key).map_err(failed)?;
                Ok(items.remove(index))
            }
            Self::Object(fields) if fields.contains_key(key) => {
                Ok(fields.remove(key).unwrap_or(Self::Nil))
            }
            _ => Err(missing(&format!("Unable to remove nonexistent key: {key}"))),
        }
    }
}

/// Returns the value of an operation. Returns [`Node::Nil`] if the operation has no value.
fn value_of(operation: &Operation) -> Node {
    operation.value.as_ref().map_or(Node::Nil, Node::new)
}

fn from_of(operation: &Operation) -> Result<&str, String> {
    match operation.from.as_deref() {
        None | Some("") => Err("operation, missing from field: missing value".to_owned()),
        Some(from) => reread(from),
    }
}

/// Returns the number of levels above the target of a JSON pointer.
fn levels(path: &str) -> usize {
    path.matches('/').count()
}

/// Resolves a JSON pointer to the parent of its target, and to the target's key in the parent. Returns `None` if the
/// parent is not an existing object or list.
fn find<'a>(root: &'a mut Node, path: &str) -> Option<(&'a mut Node, String)> {
    let mut parts = path.split('/').skip(1).peekable();
    parts.peek()?;
    let mut holder = root;
    while let Some(part) = parts.next() {
        let key = unescaped(part);
        if parts.peek().is_none() {
            return Some((holder, key));
        }
        let next = match holder {
            Node::Object(fields) => fields.get_mut(&key)?,
            Node::Array(items) => {
                let index = array::position(items, &key).ok()?;
                items.get_mut(index)?
            }
            Node::Nil | Node::Null | Node::Scalar(_) => return None,
        };
        match next {
            Node::Nil | Node::Scalar(_) => return None,
            Node::Null | Node::Object(_) | Node::Array(_) => holder = next,
        }
    }
    None
}

/// Decodes the escapes `~0` and `~1` in a segment of a JSON pointer.
///
/// Source: `json-patch.v4` `patch.go`, `decodePatchKey`.
fn unescaped(part: &str) -> String {
    let mut key = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('~') {
        key.push_str(before);
        rest = if let Some(after) = after.strip_prefix('1') {
            key.push('/');
            after
        } else if let Some(after) = after.strip_prefix('0') {
            key.push('~');
            after
        } else {
            key.push('~');
            after
        };
    }
    key.push_str(rest);
    key
}
