//! YAML as kubectl parses and prints it, with source spans.
//!
//! This crate accepts the same input as sigs.k8s.io/yaml and returns the same values. The language is YAML 1.1 with
//! libyaml's grammar, as implemented in go-yaml. `yes`, `on` and `0777` mean the same as in kubectl. If a key is
//! repeated, its last value wins. `<<` merges objects. ADR 17 lists the deliberate differences.
//!
//! The scanner (`scan`, with `cursor`, `text` and `tag`) produces tokens, the parser (`parse`) builds nodes, and the
//! composer (`compose`) converts them to values. `write` converts values to YAML.

mod comment;
mod compose;
mod cursor;
pub mod json;
mod parse;
mod places;
pub mod scalar;
mod scan;
mod tag;
mod text;
mod token;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

pub use comment::{About, Comment, comments};
pub use places::written;
pub use text::after_mark;
pub use write::to_string;

/// Maximum number of nodes in a document. The nodes in an anchored value count once more for each alias to it.
const MAX_NODES: usize = 1_000_000;

/// Maximum number of nodes that aliases copy. Without this limit, a short document could expand to billions of nodes.
const MAX_COPIED_NODES: usize = 100_000;

/// Maximum size of the scalars copied by aliases, in bytes.
const MAX_COPIED_BYTES: usize = 16 * 1024 * 1024;

/// Maximum nesting depth of lists and maps.
const MAX_DEPTH: usize = 255;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// An error, and the byte offset at which the scanner or parser detected it.
#[derive(Clone, Debug)]
struct ScanError {
    offset: usize,
    message: String,
}

impl ScanError {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
        }
    }
}

/// The error for invalid YAML or JSON, or for a value that JSON cannot represent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// Line number, starting at 1.
    pub line: usize,
    /// Column number in code points, starting at 1.
    pub column: usize,
    /// Description of the problem.
    pub message: String,
}

impl YamlError {
    fn new(text: &str, offset: usize, message: String) -> Self {
        let before = text.get(..offset.min(text.len())).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            message,
        }
    }
}

/// A value with its span in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The span in the source. An alias has the span of the anchored node.
    pub span: Range<usize>,
    /// The content of the node.
    pub data: Data,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Null, a boolean, a number or a string.
    Scalar(Value, Style),
    /// A list.
    List(Vec<Node>),
    /// A map.
    Map(Entries),
}

/// The entries of a map, sorted by name.
///
/// A vector stores the entries. For small maps, which most documents consist of, a tree would need ten times the
/// memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries(Vec<(String, Entry)>);

impl Entries {
    /// Returns the entry `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        let idx = self.find(name).ok()?;
        self.0.get(idx).map(|(_, entry)| entry)
    }

    /// Iterates over all entries with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    /// Removes the entry `name` and returns it.
    pub fn remove(&mut self, name: &str) -> Option<Entry> {
        let idx = self.find(name).ok()?;
        Some(self.0.remove(idx).1)
    }

    fn insert(&mut self, name: &str, entry: Entry) {
        match self.find(name) {
            Ok(idx) => {
                if let Some((_, known)) = self.0.get_mut(idx) {
                    *known = entry;
                }
            }
            Err(idx) => self.0.insert(idx, (name.to_owned(), entry)),
        }
    }
}

impl From<BTreeMap<String, Entry>> for Entries {
    fn from(entries: BTreeMap<String, Entry>) -> Self {
        Self(entries.into_iter().collect())
    }
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Span of the key.
    pub key: Range<usize>,
    /// The value.
    pub node: Node,
    /// Spans of earlier keys with the same name, except those in `merged`. Their values are ignored.
    pub repeats: Vec<Range<usize>>,
    /// Spans of earlier keys with the same name, in order. They come from a merge key, or a key from a merge key
    /// replaced them.
    pub merged: Vec<Range<usize>>,
    /// True if the entry comes from a merge key. A later entry may override it.
    is_merged: bool,
}

impl Entry {
    /// Creates an entry whose key is not repeated.
    #[must_use]
    pub fn new(key: Range<usize>, node: Node) -> Self {
        Self {
            key,
            node,
            repeats: Vec::new(),
            merged: Vec::new(),
            is_merged: false,
        }
    }
}

/// The style of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotation marks.
    Plain,
    /// `'…'`.
    SingleQuoted,
    /// `"…"`.
    DoubleQuoted,
    /// `|`.
    Literal {
        /// Column of the scalar's lines, starting at 0.
        indent: u32,
    },
    /// `>`.
    Folded {
        /// Column of the scalar's lines, starting at 0.
        indent: u32,
    },
    /// A string in a JSON file.
    Json,
}

impl Node {
    /// Converts the value to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.data {
            Data::Scalar(value, _) => value.clone(),
            Data::List(items) => items.iter().map(Self::to_json).collect(),
            Data::Map(entries) => entries
                .iter()
                .map(|(name, entry)| (name.to_owned(), entry.node.to_json()))
                .collect(),
        }
    }

    /// Converts JSON to a node. The node and all its descendants get the span `span`.
    fn from_json(value: Value, span: &Range<usize>) -> Self {
        let data = match value {
            Value::Array(items) => Data::List(
                items
                    .into_iter()
                    .map(|item| Self::from_json(item, span))
                    .collect(),
            ),
            Value::Object(fields) => {
                let entries = fields.into_iter().map(|(name, value)| {
                    let entry = Entry::new(span.clone(), Self::from_json(value, span));
                    (name, entry)
                });
                Data::Map(entries.collect::<BTreeMap<_, _>>().into())
            }
            other => Data::Scalar(other, Style::Json),
        };
        Self {
            span: span.clone(),
            data,
        }
    }

    /// Creates a map with the span `span`. The entries have their own spans.
    pub fn from_entries<'a>(
        span: Range<usize>,
        entries: impl IntoIterator<Item = (&'a str, Entry)>,
    ) -> Self {
        let entries = entries.into_iter();
        let entries = entries.map(|(name, entry)| (name.to_owned(), entry));
        Self {
            span,
            data: Data::Map(entries.collect::<BTreeMap<_, _>>().into()),
        }
    }

    /// Sets the entry `name` of a map to the string `text`, with an empty span. Does nothing for other nodes.
    pub fn set_text(&mut self, name: &str, text: &str) {
        let span = self.span.start..self.span.start;
        if let Data::Map(entries) = &mut self.data {
            let node = Self::from_json(text.into(), &span);
            entries.insert(name, Entry::new(span, node));
        }
    }

    /// Iterates over the entries of a map. Yields nothing for other nodes.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let entries = match &self.data {
            Data::Map(entries) => Some(entries),
            _ => None,
        };
        entries.into_iter().flat_map(Entries::iter)
    }

    /// Returns the items of a list. Returns an empty slice for other nodes.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the entry `name` of a map.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        match &self.data {
            Data::Map(entries) => entries.get(name),
            _ => None,
        }
    }

    /// Returns the value of the entry `name` of a map.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.entry(name).map(|entry| &entry.node)
    }

    /// Returns the content of a string node.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Scalar(value, _) => value.as_str(),
            _ => None,
        }
    }

    /// Returns true if the node is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar(Value::Null, _))
    }

    /// Returns the node at a field reference such as `spec.validations[0].expression`, or its nearest existing
    /// ancestor.
    #[must_use]
    pub fn nearest(&self, field_ref: &str) -> &Self {
        let mut node = self;
        for part in field_ref.split('.') {
            let (name, indices) = part.split_once('[').unwrap_or((part, ""));
            let Some(next) = node.get(name) else {
                return node;
            };
            node = next;
            for index in indices.split(['[', ']']).filter(|index| !index.is_empty()) {
                let Some(item) = index.parse().ok().and_then(|n: usize| node.items().get(n)) else {
                    return node;
                };
                node = item;
            }
        }
        node
    }
}

/// Converts the first document of a YAML stream to JSON. Returns null if the stream has no document.
///
/// # Errors
///
/// Returns an error if the document is not valid YAML, or if JSON cannot represent it.
pub fn to_json(text: &str) -> Result<Value, YamlError> {
    Ok(read(text, &mut Copies::default())?.map_or(Value::Null, |node| node.to_json()))
}

/// The remaining number of nodes and bytes that aliases may copy. Several documents can share one limit.
#[derive(Debug)]
pub struct Copies {
    nodes: usize,
    bytes: usize,
}

impl Default for Copies {
    fn default() -> Self {
        Self {
            nodes: MAX_COPIED_NODES,
            bytes: MAX_COPIED_BYTES,
        }
    }
}

impl Copies {
    /// Counts a node that is copied by an alias. `n_bytes` is the size of the node's scalar.
    fn count(&mut self, n_bytes: usize) -> Result<(), String> {
        match (self.nodes.checked_sub(1), self.bytes.checked_sub(n_bytes)) {
            (Some(n_left), Some(bytes_left)) => {
                self.nodes = n_left;
                self.bytes = bytes_left;
                Ok(())
            }
            _ => Err(format!(
                "aliases expand to more than {MAX_COPIED_NODES} nodes or {} MiB; write the content out instead",
                MAX_COPIED_BYTES / 1024 / 1024
            )),
        }
    }
}

/// Parses the first document of a YAML stream. A byte order mark at the start is skipped. Returns `None` if the stream
/// has no document.
///
/// # Errors
///
/// Returns an error if the document is not valid YAML, or if JSON cannot represent it.
pub fn read(text: &str, copies: &mut Copies) -> Result<Option<Node>, YamlError> {
    // Like kubectl, adds a missing line break at the end.
    let ended = if text.ends_with('\n') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    };
    let read = read_ended(&ended, copies);
    read.map_err(|error| YamlError::new(text, error.offset, error.message))
}

/// Parses the first document of a YAML stream. The stream must end with a line break.
fn read_ended(text: &str, copies: &mut Copies) -> Result<Option<Node>, ScanError> {
    let start = if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len_utf8()
    } else {
        0
    };
    let document = match cursor::forbidden(text) {
        None => parse::document(text, start)?.0,
        Some((offset, character)) => {
            let error = || {
                ScanError::new(
                    offset,
                    format!(
                        "the character U+{:04X} is not allowed; escape it in double quotes",
                        u32::from(character)
                    ),
                )
            };
            // go-yaml reports the forbidden character only if its parser reaches the chunk that contains this
            // character.
            let before = text.get(..offset).unwrap_or_default();
            let (document, end) = parse::document(before, start).map_err(|_| error())?;
            if end + LOOKAHEAD >= chunk_start(text, start, offset) {
                return Err(error());
            }
            document
        }
    };
    let Some((nodes, root)) = document else {
        return Ok(None);
    };
    compose::compose(nodes, root, copies).map(Some)
}

/// Number of characters that go-yaml reads ahead.
const LOOKAHEAD: usize = 3;

/// Returns the start of the chunk that contains the byte `offset`.
///
/// go-yaml reads its input in chunks. Before it parses a chunk, it validates all characters of the chunk.
///
/// Source: `go.yaml.in/yaml/v2` `readerc.go` (`yaml_parser_update_buffer`).
fn chunk_start(text: &str, start: usize, offset: usize) -> usize {
    const CHUNK: usize = 512;
    // The first chunk includes the byte order mark, so it starts at 0 and ends at `CHUNK`.
    let (mut begin, mut end) = (start, CHUNK);
    loop {
        while end < text.len() && !text.is_char_boundary(end) {
            end -= 1;
        }
        if offset < end || end >= text.len() {
            return begin;
        }
        (begin, end) = (end, end + CHUNK);
    }
}

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
