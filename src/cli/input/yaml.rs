//! YAML as the API server's tools read it, with the place of everything: YAML 1.1 scalars over a YAML
//! 1.2 parser.
//!
//! `yes`, `on` and `0777` mean what they mean to kubectl, a key may be given twice (the last one
//! counts), and `<<` merges. What differs: more than 255 nested collections are refused (go-yaml:
//! 10,000), the bound on aliases is on what they copy, not on their share, and what is tagged
//! `!!timestamp` need not be one, and a tab may indent a document as a whole.
//!
//! Source: `sigs.k8s.io/yaml` `yaml.go` (`YAMLToJSON`, `convertToJSONableObject`) and
//! `go.yaml.in/yaml/v2` `decode.go` (`decoder.scalar`, `decoder.mapping`, `decoder.merge`).

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Number, Value};

use super::scalar;

/// The most nodes that a document may have, aliases resolved.
pub(super) const MAX_NODES: usize = 1_000_000;

/// The most nodes that anchors and aliases may copy: a short text can ask for billions.
const MAX_COPIED_NODES: usize = 100_000;

/// The most bytes of text in what they copy.
const MAX_COPIED_BYTES: usize = 16 * 1024 * 1024;

const CORE: &str = "tag:yaml.org,2002:";

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
    pub(super) fn remove(&mut self, name: &str) -> Option<Entry> {
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
    fn new(key: Range<usize>, node: Node) -> Self {
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
    /// `|` or `>`.
    Block,
}

impl From<ScalarStyle> for Style {
    fn from(style: ScalarStyle) -> Self {
        match style {
            ScalarStyle::Plain => Self::Plain,
            ScalarStyle::SingleQuoted => Self::SingleQuoted,
            ScalarStyle::DoubleQuoted => Self::DoubleQuoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Self::Block,
        }
    }
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
    pub(super) fn of_json(value: Value, span: &Range<usize>) -> Self {
        let data = match value {
            Value::Array(items) => Data::List(
                items
                    .into_iter()
                    .map(|item| Self::of_json(item, span))
                    .collect(),
            ),
            Value::Object(fields) => {
                let entries = fields.into_iter().map(|(name, value)| {
                    let entry = Entry::new(span.clone(), Self::of_json(value, span));
                    (name, entry)
                });
                Data::Map(entries.collect::<BTreeMap<_, _>>().into())
            }
            other => Data::Scalar(other, Style::DoubleQuoted),
        };
        Self {
            span: span.clone(),
            data,
        }
    }

    /// Sets the entry `name` of an object, with no place of its own, to a text.
    pub(super) fn set_text(&mut self, name: &str, text: &str) {
        let span = self.span.start..self.span.start;
        if let Data::Map(entries) = &mut self.data {
            let node = Self::of_json(text.into(), &span);
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

/// How much may still be copied for anchors and aliases, in one document or in several.
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
    /// A copy of `node`, with the nodes that it has, as long as that is allowed.
    fn of(&mut self, node: &Node) -> Result<(Node, usize), String> {
        let (nodes, bytes) = extent(node);
        match (self.nodes.checked_sub(nodes), self.bytes.checked_sub(bytes)) {
            (Some(n_left), Some(bytes_left)) => {
                self.nodes = n_left;
                self.bytes = bytes_left;
                Ok((node.clone(), nodes))
            }
            _ => Err(format!(
                "anchors and aliases stand for more than {MAX_COPIED_NODES} nodes, or {} MiB; \
                 write it out",
                MAX_COPIED_BYTES / 1024 / 1024
            )),
        }
    }
}

/// The first document of `text`; `None` if there is none.
///
/// # Errors
///
/// If `text` is no YAML, or has no counterpart in JSON.
pub fn read(text: &str, copies: &mut Copies) -> Result<Option<Node>, YamlError> {
    let mut options = granit_parser::options! { strict_indentation: true };
    options.set_emit_comments(false);
    let mut loader = Loader {
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        copies,
        root: None,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| YamlError {
            line: error.marker().line(),
            column: error.marker().col() + 1,
            message: match error.info() {
                info if info == "recursion limit exceeded" => {
                    "lists and objects nest more than 255 deep".to_owned()
                }
                info => info,
            },
        })?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        let bytes = span.byte_range().unwrap_or_default();
        loader.event(event, bytes).map_err(|message| YamlError {
            line: span.start.line(),
            column: span.start.col() + 1,
            message,
        })?;
    }
    Ok(loader.root)
}

enum Open {
    List {
        start: usize,
        anchor: usize,
        items: Vec<Node>,
    },
    Map {
        start: usize,
        anchor: usize,
        entries: BTreeMap<String, Entry>,
        key: Option<Key>,
    },
}

enum Key {
    Name(String, Range<usize>),
    Merge,
}

struct Loader<'a> {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    copies: &'a mut Copies,
    root: Option<Node>,
}

impl Loader<'_> {
    fn event(&mut self, event: Event<'_>, bytes: Range<usize>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let is_merge =
                    text == "<<" && (plain && tag.is_none() || is_merge_tag(tag.as_deref()));
                let value = scalar_value(&text, plain, tag.as_deref())?;
                let node = Node {
                    span: bytes,
                    data: Data::Scalar(value, style.into()),
                };
                self.done(node, is_merge, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open.push(Open::List {
                    start: bytes.start,
                    anchor,
                    items: Vec::new(),
                });
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                self.open.push(Open::Map {
                    start: bytes.start,
                    anchor,
                    entries: BTreeMap::new(),
                    key: None,
                });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (start, anchor, data) = match self.open.pop() {
                    Some(Open::List {
                        start,
                        anchor,
                        items,
                    }) => (start, anchor, Data::List(items)),
                    Some(Open::Map {
                        start,
                        anchor,
                        entries,
                        ..
                    }) => (start, anchor, Data::Map(entries.into())),
                    None => return Err("unbalanced end of a collection".to_owned()),
                };
                let span = start..bytes.end.max(start);
                self.done(Node { span, data }, false, anchor)
            }
            Event::Alias(anchor) => {
                let node = self
                    .anchors
                    .get(&anchor)
                    .ok_or("an anchor's value contains itself")?;
                let (node, n_copied) = self.copies.of(node)?;
                self.nodes = self.nodes.saturating_add(n_copied);
                self.done(node, false, 0)
            }
            _ => Ok(()),
        }
    }

    /// Puts a complete node where it belongs.
    fn done(&mut self, node: Node, is_merge: bool, anchor: usize) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > MAX_NODES {
            return Err(format!(
                "more than {MAX_NODES} nodes, aliases resolved; split the file"
            ));
        }
        if anchor != 0 {
            let (copy, _) = self.copies.of(&node)?;
            self.anchors.insert(anchor, copy);
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => match key.take() {
                None if is_merge => *key = Some(Key::Merge),
                None => *key = Some(Key::Name(key_name(&node)?, node.span)),
                Some(Key::Name(name, key)) => insert(entries, name, key, node),
                Some(Key::Merge) => merge(entries, node)?,
            },
        }
        Ok(())
    }
}

/// Sets an entry; of two of one name the last counts.
fn insert(entries: &mut BTreeMap<String, Entry>, name: String, key: Range<usize>, node: Node) {
    match entries.get_mut(&name) {
        Some(entry) => {
            let before = std::mem::replace(&mut entry.key, key);
            if std::mem::take(&mut entry.is_merged) {
                entry.merged.push(before);
            } else {
                entry.repeats.push(before);
            }
            entry.node = node;
        }
        None => {
            entries.insert(name, Entry::new(key, node));
        }
    }
}

/// Adds the entries of a merge key's value, over what is there: what stands behind the merge key
/// replaces them again, what stands before it does not.
fn merge(entries: &mut BTreeMap<String, Entry>, node: Node) -> Result<(), String> {
    const WRONG: &str = "map merge requires map or sequence of maps as the value";
    let merged = |of: Entries| {
        // What is merged in is no repeat of what replaces it.
        of.0.into_iter().map(|(name, mut entry)| {
            entry.repeats.clear();
            entry.is_merged = true;
            (name, entry)
        })
    };
    let add = |entries: &mut BTreeMap<String, Entry>, of: Entries| {
        for (name, mut entry) in merged(of) {
            if let Some(before) = entries.remove(&name) {
                entry.merged.push(before.key);
            }
            entries.insert(name, entry);
        }
    };
    match node.data {
        Data::Map(of) => add(entries, of),
        Data::List(items) => {
            for item in items.into_iter().rev() {
                let Data::Map(of) = item.data else {
                    return Err(WRONG.to_owned());
                };
                add(entries, of);
            }
        }
        Data::Scalar(..) => return Err(WRONG.to_owned()),
    }
    Ok(())
}

/// The name that a key has in JSON.
fn key_name(key: &Node) -> Result<String, String> {
    match &key.data {
        Data::Scalar(Value::String(name), _) => Ok(name.clone()),
        Data::Scalar(Value::Bool(flag), _) => Ok(flag.to_string()),
        Data::Scalar(Value::Number(number), _) if number.is_f64() || number.is_i64() => {
            Ok(number.to_string())
        }
        Data::Scalar(other, _) => Err(format!("unsupported map key: {other}")),
        Data::List(_) | Data::Map(_) => Err("unsupported map key: a collection".to_owned()),
    }
}

/// How many nodes there are, and how many bytes of text in them.
fn extent(node: &Node) -> (usize, usize) {
    let all = |nodes: &mut dyn Iterator<Item = (usize, usize)>| {
        nodes.fold((1_usize, 0_usize), |(n, bytes), (n_more, more)| {
            (n.saturating_add(n_more), bytes.saturating_add(more))
        })
    };
    match &node.data {
        Data::Scalar(value, _) => (1, value.as_str().map_or(0, str::len)),
        Data::List(items) => all(&mut items.iter().map(extent)),
        Data::Map(entries) => all(&mut entries.iter().map(|(name, entry)| {
            let (nodes, bytes) = extent(&entry.node);
            (nodes, bytes.saturating_add(name.len()))
        })),
    }
}

fn full_tag(tag: &Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix())
}

fn is_merge_tag(tag: Option<&Tag>) -> bool {
    tag.is_some_and(|tag| full_tag(tag).strip_prefix(CORE) == Some("merge"))
}

/// The value of a scalar by its tag, or by its looks if it is plain.
fn scalar_value(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Value, String> {
    let tag = tag.map(full_tag);
    let wanted = match &tag {
        None if plain => None,
        // Quoted, and the non-specific tag, which makes a string of anything.
        None => Some("str"),
        Some(tag) if tag == "!" => Some("str"),
        Some(tag) => Some(tag.strip_prefix(CORE).unwrap_or("str")),
    };
    let value = match wanted {
        None => scalar::resolve(text),
        Some("binary") => {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(Value::from(text))
                .map_err(|_| "!!binary value contains invalid base64 data")?;
            return Ok(Value::String(
                String::from_utf8_lossy(&bytes.0).into_owned(),
            ));
        }
        Some(kind @ ("bool" | "int" | "float" | "null")) => {
            let value = scalar::resolve(text);
            let fits = matches!(
                (&value, kind),
                (scalar::Scalar::Bool(_), "bool")
                    | (scalar::Scalar::Null, "null")
                    | (
                        scalar::Scalar::Int(_) | scalar::Scalar::Uint(_),
                        "int" | "float"
                    )
                    | (scalar::Scalar::Float(_), "float")
            );
            if !fits {
                return Err(format!("cannot decode `{text}` as a !!{kind}"));
            }
            value
        }
        Some(_) => scalar::Scalar::Text,
    };
    Ok(match value {
        scalar::Scalar::Null => Value::Null,
        scalar::Scalar::Bool(flag) => Value::Bool(flag),
        scalar::Scalar::Int(number) => Value::from(number),
        scalar::Scalar::Uint(number) => Value::from(number),
        scalar::Scalar::Float(number) => float(number)?,
        scalar::Scalar::Text => Value::from(text),
    })
}

/// A float as Go writes it in JSON: without a fraction where it has none, so that `1e3` may be read
/// as an integer.
fn float(number: f64) -> Result<Value, String> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number)
        .map(Value::Number)
        .ok_or_else(|| "unsupported value: NaN or infinity".to_owned())
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

        // Each anchor keeps a copy of what is within it.
        let nested: Vec<_> = (0..200).map(|n| format!("&a{n} [")).collect();
        let nested = nested.concat();
        let text = format!("{nested}{}{}", "x, ".repeat(100_000), "]".repeat(200));
        assert!(to_json(&text).unwrap_err().message.contains("more than"));
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
