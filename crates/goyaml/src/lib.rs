//! YAML as kubectl reads it, with the place of everything.
//!
//! What sigs.k8s.io/yaml reads is read, to the same value, and what it refuses is refused: YAML 1.1 by the
//! grammar of libyaml as it is in go-yaml. `yes`, `on` and `0777` mean what they mean to kubectl, a key may be
//! given twice (the last one counts), and `<<` merges. ADR 17 names what differs on purpose.
//!
//! A text becomes tokens (`scan`, with `cursor`, `text` and `tag` for its parts), tokens become nodes as they
//! are written (`parse`), and these become values (`compose`).

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

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

pub use comment::{About, Comment, comments};
pub use places::written;
pub use text::after_mark;

/// The most nodes that a document may have, aliases resolved.
const MAX_NODES: usize = 1_000_000;

/// The most nodes that aliases may copy: a short text can ask for billions.
const MAX_COPIED_NODES: usize = 100_000;

/// The most bytes of text in what they copy.
const MAX_COPIED_BYTES: usize = 16 * 1024 * 1024;

/// The most lists and objects in one another.
const MAX_DEPTH: usize = 255;

/// The mark at the beginning of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Why a text cannot be read, and the byte at which that shows.
#[derive(Clone, Debug)]
struct ScanError {
    at: usize,
    message: String,
}

impl ScanError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

/// Why a text is no YAML, or has no counterpart in JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// The line, from 1.
    pub line: usize,
    /// The column in code points, from 1.
    pub column: usize,
    /// Description of the problem.
    pub message: String,
}

impl YamlError {
    /// The error at the byte `at` of `text`.
    fn new(text: &str, at: usize, message: String) -> Self {
        let before = text.get(..at.min(text.len())).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            message,
        }
    }
}

/// A value with its place in the text that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The bytes that it takes in the text; of an alias, those of what it stands for.
    pub span: Range<usize>,
    /// Content of the node.
    pub data: Data,
}

/// Content of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Null, a boolean, a number or a text.
    Scalar(Value, Style),
    /// A list.
    List(Vec<Node>),
    /// An object.
    Map(Entries),
}

/// The entries of an object, sorted by name: of most objects there are many and each has few, for which a
/// tree takes ten times the room.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries(Vec<(String, Entry)>);

impl Entries {
    /// The entry `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        let idx = self.find(name).ok()?;
        self.0.get(idx).map(|(_, entry)| entry)
    }

    /// All, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    /// Takes the entry `name` out.
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

/// An entry of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The bytes of its key.
    pub key: Range<usize>,
    /// Its value.
    pub node: Node,
    /// The bytes of the keys of the same name before it, whose values do not count.
    pub repeats: Vec<Range<usize>>,
    /// The bytes of the keys of the same name that a merge key has brought in or replaced, in order.
    pub merged: Vec<Range<usize>>,
    /// True if it comes from a merge key, and may be replaced.
    is_merged: bool,
}

impl Entry {
    /// Creates an entry without repeats.
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

/// How a scalar is written.
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
        /// The column of its lines, from 0.
        indent: u32,
    },
    /// `>`.
    Folded {
        /// The column of its lines, from 0.
        indent: u32,
    },
    /// A string of JSON, in a file of JSON.
    Json,
}

impl Node {
    /// The value as JSON.
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

    /// Creates a node from JSON, all of it at the bytes `span`.
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

    /// Creates an object of entries that are written elsewhere, at the bytes `span`.
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

    /// Sets the entry `name` of an object, with no place of its own, to a text.
    pub fn set_text(&mut self, name: &str, text: &str) {
        let span = self.span.start..self.span.start;
        if let Data::Map(entries) = &mut self.data {
            let node = Self::from_json(text.into(), &span);
            entries.insert(name, Entry::new(span, node));
        }
    }

    /// The entries of an object; of anything else none.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let entries = match &self.data {
            Data::Map(entries) => Some(entries),
            _ => None,
        };
        entries.into_iter().flat_map(Entries::iter)
    }

    /// The items of a list; of anything else none.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// The entry `name` of an object.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        match &self.data {
            Data::Map(entries) => entries.get(name),
            _ => None,
        }
    }

    /// The value of the entry `name` of an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.entry(name).map(|entry| &entry.node)
    }

    /// The text, where it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Scalar(value, _) => value.as_str(),
            _ => None,
        }
    }

    /// Reports whether it is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar(Value::Null, _))
    }

    /// Returns the node that a field reference of a status names, `spec.validations[0].expression`, or
    /// the nearest parent that exists.
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

/// The first document of `text` as JSON; null if there is none.
///
/// # Errors
///
/// If `text` is no YAML, or has no counterpart in JSON.
pub fn to_json(text: &str) -> Result<Value, YamlError> {
    Ok(read(text, &mut Copies::default())?.map_or(Value::Null, |node| node.to_json()))
}

/// How much may still be copied for aliases, in one document or in several.
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
    /// Counts a node of so many bytes of text that is read because of an alias.
    fn count(&mut self, n_bytes: usize) -> Result<(), String> {
        match (self.nodes.checked_sub(1), self.bytes.checked_sub(n_bytes)) {
            (Some(n_left), Some(bytes_left)) => {
                self.nodes = n_left;
                self.bytes = bytes_left;
                Ok(())
            }
            _ => Err(format!(
                "anchors and aliases stand for more than {MAX_COPIED_NODES} nodes, or {} MiB; write it out",
                MAX_COPIED_BYTES / 1024 / 1024
            )),
        }
    }
}

/// The first document of `text`, which begins with a byte order mark or not; `None` if there is none.
///
/// # Errors
///
/// If `text` is no YAML, or has no counterpart in JSON.
pub fn read(text: &str, copies: &mut Copies) -> Result<Option<Node>, YamlError> {
    // kubectl ends the last line where it has no end.
    let ended = if text.ends_with('\n') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    };
    let read = read_ended(&ended, copies);
    read.map_err(|error| YamlError::new(text, error.at, error.message))
}

/// The first document of a text whose last line has an end.
fn read_ended(text: &str, copies: &mut Copies) -> Result<Option<Node>, ScanError> {
    let start = if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len_utf8()
    } else {
        0
    };
    let document = match cursor::forbidden(text) {
        None => parse::document(text, start)?.0,
        Some((at, character)) => {
            let error = || {
                ScanError::new(
                    at,
                    format!(
                        "the character U+{:04X} is not allowed; escape it in double quotes",
                        u32::from(character)
                    ),
                )
            };
            // It does not matter where it is not come to.
            let before = text.get(..at).unwrap_or_default();
            let (document, end) = parse::document(before, start).map_err(|_| error())?;
            if end + LOOKAHEAD >= chunk_start(text, start, at) {
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

/// The characters that go-yaml looks at behind the place where it is.
const LOOKAHEAD: usize = 3;

/// Where the chunk begins that has the byte `at`: go-yaml reads texts in chunks, and looks at the characters of
/// each when it comes to the first.
///
/// Source: `go.yaml.in/yaml/v2` `readerc.go` (`yaml_parser_update_buffer`).
fn chunk_start(text: &str, start: usize, at: usize) -> usize {
    const CHUNK: usize = 512;
    // The mark at the beginning is read with the first chunk.
    let (mut begin, mut end) = (start, CHUNK);
    loop {
        while end < text.len() && !text.is_char_boundary(end) {
            end -= 1;
        }
        if at < end || end >= text.len() {
            return begin;
        }
        (begin, end) = (end, end + CHUNK);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_read_as_kubectl_reads_them() {
        for (text, wanted) in [
            ("", json!(null)),
            ("# nothing", json!(null)),
            (
                "a: yes\nb: 'yes'\nc: !!str yes\nd: ! 5",
                json!({"a": true, "b": "yes", "c": "yes", "d": "5"}),
            ),
            (
                "a: 0777\nb: 1e3\nc: 1.5\nd: 2001-01-01",
                json!({"a": 511, "b": 1000, "c": 1.5, "d": "2001-01-01"}),
            ),
            ("yes: 1\n2: 2\n1.5: 3", json!({"true": 1, "2": 2, "1.5": 3})),
            ("a: 1\na: 2", json!({"a": 2})),
            (
                "x: &x {a: 1, b: 2}\nw: {b: 3, <<: *x}\nz: {<<: *x, b: 3}",
                json!({
                    "x": {"a": 1, "b": 2}, "w": {"a": 1, "b": 2}, "z": {"a": 1, "b": 3}
                }),
            ),
            ("<<: [{a: 1}, {a: 2, b: 2}]", json!({"a": 1, "b": 2})),
            ("'<<': 1", json!({"<<": 1})),
            ("a: !!binary aGVsbG8=", json!({"a": "hello"})),
            ("a: 1\n...\nb: [", json!({"a": 1})),
            ("{\"a\": [1, null, true]}", json!({"a": [1, null, true]})),
        ] {
            assert_eq!(to_json(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_yaml_or_has_no_json_is_refused() {
        for text in [
            "a: [",
            "? [a]\n: b",
            "~: a",
            "a: .inf",
            "<<: 5",
            "a: !!int x",
            "a: &a [*a]",
            "a: *b",
        ] {
            assert!(to_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn aliases_cannot_exhaust_the_process() {
        let mut lines = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned()];
        for n in 1..20 {
            let items = vec![format!("*a{}", n - 1); 9].join(", ");
            lines.push(format!("a{n}: &a{n} [{items}]"));
        }
        let text = lines.join("\n");
        assert!(to_json(&text).unwrap_err().to_string().contains("line"));

        // An anchor costs nothing, however much is within it.
        let nested: Vec<_> = (0..200).map(|n| format!("&a{n} [")).collect();
        let nested = nested.concat();
        let text = format!("{nested}{}{}", "x, ".repeat(100_000), "]".repeat(200));
        assert!(to_json(&text).is_ok());
        let one_more = format!("[{text}, *a0]");
        let error = to_json(&one_more).unwrap_err();
        assert!(error.message.contains("more than"), "{error}");
    }

    #[test]
    fn depth_is_bounded() {
        assert!(to_json(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn everything_has_its_place() {
        let text = "a: 1\nb: {c: [x, 'y']}\na: &t |\n  text\nd: *t\n";
        let node = read(text, &mut Copies::default()).unwrap().unwrap();
        let slice = |node: &Node| text.get(node.span.clone()).unwrap().trim_end().to_owned();
        assert_eq!(slice(node.nearest("b.c[1]")), "'y'");
        assert_eq!(slice(node.nearest("b.c[7].x")), "[x, 'y']");
        assert_eq!(slice(node.get("a").unwrap()), "text");
        assert_eq!(node.get("d").unwrap().span, node.get("a").unwrap().span);
        assert_eq!(node.entry("a").unwrap().repeats, vec![0..1]);
        assert_eq!(node.entry("b").unwrap().key, 5..6);
    }

    #[test]
    fn what_replaces_a_merged_entry_is_no_repeat() {
        let text = "x: &x {b: 1}\nz: {<<: *x, b: 3, c: 1, c: 2}";
        let node = read(text, &mut Copies::default()).unwrap();
        let z = node.unwrap().get("z").unwrap().clone();
        assert!(z.entry("b").unwrap().repeats.is_empty());
        assert_eq!(z.entry("c").unwrap().repeats.len(), 1);
    }
}
