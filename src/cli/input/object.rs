//! Splits files into documents as kubectl does, and reads the objects in them.
//!
//! Source: apimachinery `pkg/util/yaml/decoder.go` (`YAMLReader.Read`).

use std::ops::Range;
use std::sync::Arc;

use goyaml::{Copies, Data, Node, json};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::place::{Place, SourceText, locate};
use super::{Problem, ProblemKind};

/// Maximum nesting of lists in lists.
const MAX_LIST_DEPTH: usize = 8;

/// The YAML or JSON of an object: a document, or an item of a list.
#[derive(Clone, Debug)]
pub struct Document {
    /// The root node. Its spans are relative to the document's source in the file.
    pub node: Node,
    /// The byte offset in the file at which the document's source starts.
    base: usize,
    /// The index of the object in its file, from 0.
    pub index: usize,
}

impl Document {
    /// Returns a document with the root node `node`, which must consist of parts of this document.
    pub(in crate::cli) fn with(&self, node: Node) -> Self {
        Self {
            node,
            base: self.base,
            index: self.index,
        }
    }

    /// Returns the location of the start of `node`, which must be a part of the document.
    #[must_use]
    pub fn place(&self, source: &SourceText, node: &Node) -> Place {
        source.place(self.base + node.span.start)
    }

    /// Converts a span of the document to bytes of the file.
    pub(in crate::cli) fn bytes(&self, span: &Range<usize>) -> Range<usize> {
        self.base + span.start..self.base + span.end
    }
}

/// An object with its source.
#[derive(Clone, Debug)]
pub struct Object<T> {
    /// The decoded object.
    pub value: T,
    /// The file that contains the object.
    pub source: Arc<SourceText>,
    /// The document in the file.
    pub document: Document,
    /// The other files that contain an object of the same kind and name. Set only for policies.
    pub other_files: Box<[Arc<SourceText>]>,
}

impl<T> Object<T> {
    pub(in crate::cli) fn new(document: Document, source: &Arc<SourceText>, value: T) -> Self {
        Self {
            value,
            source: Arc::clone(source),
            document,
            other_files: Box::default(),
        }
    }

    /// Returns the `apiVersion` in the source.
    #[must_use]
    pub fn api_version(&self) -> &str {
        let node = self.document.node.get("apiVersion");
        node.and_then(Node::as_str).unwrap_or_default()
    }

    /// Returns the `kind` in the source.
    #[must_use]
    pub fn kind(&self) -> &str {
        let node = self.document.node.get("kind");
        node.and_then(Node::as_str).unwrap_or_default()
    }

    /// Returns the `metadata.name`, if there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.document.node.get("metadata")?.get("name")?.as_str()
    }

    /// Returns the `metadata.namespace`, if there is one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let metadata = self.document.node.get("metadata")?;
        metadata.get("namespace")?.as_str()
    }

    /// Returns the location of the name, or of the object if it has no name.
    #[must_use]
    pub fn place(&self) -> Place {
        let node = self.document.node.get("metadata");
        let node = node.and_then(|metadata| metadata.get("name"));
        self.place_of(node.unwrap_or(&self.document.node))
    }

    /// Returns the location of the start of `node`, which must be a part of the object.
    #[must_use]
    pub fn place_of(&self, node: &Node) -> Place {
        self.document.place(&self.source, node)
    }

    /// Returns the location of the start of a byte range of the document, for example of a key.
    #[must_use]
    pub fn place_of_bytes(&self, bytes: &Range<usize>) -> Place {
        self.source.place(self.document.base + bytes.start)
    }

    /// Returns the length of the first line of `node` in code points, or 1 for a map or list of several lines.
    #[must_use]
    pub fn length_of(&self, node: &Node) -> usize {
        let bytes = self.document.base + node.span.start..self.document.base + node.span.end;
        let text = self.source.text().get(bytes).unwrap_or_default().trim_end();
        let is_scalar = matches!(node.data, Data::Scalar(..));
        match text.lines().next() {
            Some(line) if is_scalar || line.len() == text.len() => {
                line.trim_end().chars().count().max(1)
            }
            _ => 1,
        }
    }

    /// Returns the location of the field `field_ref`, or of its nearest ancestor that exists.
    #[must_use]
    pub fn place_of_field(&self, field_ref: &str) -> Place {
        self.place_of(self.document.node.nearest(field_ref))
    }

    /// Returns a hint about a field whose key kubectl parses as a boolean, such as `y` or `on` in YAML 1.1.
    ///
    /// Returns `None` if the key is a string, or literally `true` or `false`.
    #[must_use]
    pub fn advice_on_key(&self, field_ref: &str) -> Option<String> {
        let (parent, name) = field_ref.rsplit_once('.').unwrap_or(("", field_ref));
        if !matches!(name, "true" | "false") {
            return None;
        }
        let node = if parent.is_empty() {
            &self.document.node
        } else {
            self.document.node.nearest(parent)
        };
        let Data::Map(entries) = &node.data else {
            return None;
        };
        self.advice_on_key_at(&entries.get(name)?.key, name)
    }

    /// Returns the hint of [`Self::advice_on_key`] for the key at the bytes `bytes` of the document. `name` is the
    /// parsed key.
    #[must_use]
    pub fn advice_on_key_at(&self, bytes: &Range<usize>, name: &str) -> Option<String> {
        let bytes = self.document.base + bytes.start..self.document.base + bytes.end;
        let written = self.source.text().get(bytes)?.trim();
        let is_word = !written.is_empty() && written.chars().all(|it| it.is_ascii_alphabetic());
        (is_word && written != name && matches!(name, "true" | "false")).then(|| {
            format!(
                "kubectl parses the key `{written}` as the boolean {name}, as in YAML 1.1: quote it, as in '{written}'"
            )
        })
    }

    /// Returns the locations of the code points of the string in the field `field_ref`.
    #[must_use]
    pub fn places_in_field(&self, field_ref: &str) -> FieldPlaces<'_> {
        self.places_in_node(self.document.node.nearest(field_ref))
    }

    /// Returns the locations of the code points of a string node.
    #[must_use]
    pub fn places_in_node(&self, node: &Node) -> FieldPlaces<'_> {
        let start = self.document.base + node.span.start;
        let span = start..self.document.base + node.span.end;
        let bytes = match &node.data {
            Data::Scalar(Value::String(text), style) => {
                locate(self.source.text(), &span, *style, text)
            }
            _ => Vec::new(),
        };
        FieldPlaces {
            source: &self.source,
            start,
            bytes,
        }
    }
}

/// Maps the code points of a string field to locations in the source.
#[derive(Debug)]
pub struct FieldPlaces<'a> {
    source: &'a SourceText,
    start: usize,
    /// The byte offsets of the code points, from the beginning of the field.
    bytes: Vec<usize>,
}

impl FieldPlaces<'_> {
    /// Returns the location of the field.
    #[must_use]
    pub fn start(&self) -> Place {
        self.source.place(self.start)
    }

    /// Returns the location of the code point `offset` of the string, or of the field if the code point was not found
    /// in the source.
    #[must_use]
    pub fn at(&self, offset: usize) -> Place {
        let byte = self.bytes.get(offset).copied().unwrap_or(0);
        self.source.place(self.start + byte)
    }
}

impl Object<Value> {
    /// Decodes the object as `T`.
    ///
    /// # Errors
    /// Returns the object with the error as its value if it cannot be decoded.
    pub fn decode<T: DeserializeOwned>(self) -> Result<Object<T>, Object<String>> {
        let Self {
            value,
            source,
            document,
            ..
        } = self;
        match serde_json::from_value(value) {
            Ok(value) => Ok(Object::new(document, &source, value)),
            Err(error) => Err(Object::new(document, &source, error.to_string())),
        }
    }
}

/// Calls `each` for the objects and problems of a file in order. Passes them one by one to limit memory use, because
/// parsed documents are much larger than their source.
pub(in crate::cli) fn documents(
    source: &Arc<SourceText>,
    copies: &mut Copies,
    each: &mut dyn FnMut(Result<Document, Problem>),
) {
    let mut index = 0;
    for piece in pieces(source.text(), source.has_byte_order_mark()) {
        let (read, base) = read(source, piece, copies);
        match read {
            Ok(None) => {}
            Ok(Some(node)) => {
                for node in items(node, MAX_LIST_DEPTH) {
                    each(Ok(Document { node, base, index }));
                    index += 1;
                }
            }
            Err(problem) => each(Err(problem)),
        }
    }
}

/// Returns the byte ranges of the YAML documents of a file, without JSON documents.
pub(in crate::cli) fn yaml_documents(source: &SourceText) -> Vec<Range<usize>> {
    let pieces = pieces(source.text(), source.has_byte_order_mark()).into_iter();
    pieces
        .filter_map(|piece| match piece {
            Ok(Piece::Yaml(bytes)) => Some(bytes),
            Ok(Piece::Json(_)) | Err(_) => None,
        })
        .collect()
}

/// Returns the value of each document of a file as kubectl reads it, or the problem of an invalid document.
///
/// Unlike kubectl, continues after an invalid document.
#[must_use]
pub fn values(text: &str) -> Vec<Result<Value, Problem>> {
    let source = Arc::new(SourceText::new(String::new(), text.to_owned()));
    let mut copies = Copies::default();
    let mut pieces = pieces(source.text(), source.has_byte_order_mark())
        .into_iter()
        .peekable();
    let mut results = Vec::new();
    while let Some(piece) = pieces.next() {
        // kubectl drops the document before an invalid separator line.
        let is_lost = match (&piece, pieces.peek()) {
            (Ok(Piece::Yaml(bytes)), Some(Err(at))) => bytes.end == *at,
            _ => false,
        };
        if !is_lost {
            let (read, _) = read(&source, piece, &mut copies);
            results.extend(read.transpose());
        }
    }
    results
        .into_iter()
        .map(|read| read.map(|node| node.to_json()))
        .collect()
}

/// Parses a piece. Returns its document, and the byte offset in the file to which the spans of the document are
/// relative. Returns `None` for an empty or null document, which kubectl skips.
fn read(
    source: &Arc<SourceText>,
    piece: Result<Piece, usize>,
    copies: &mut Copies,
) -> (Result<Option<Node>, Problem>, usize) {
    let (read, base) = match piece {
        Ok(Piece::Yaml(bytes)) => {
            let base = bytes.start;
            let text = source.text().get(bytes).unwrap_or_default();
            let read = goyaml::read(text, copies);
            let read = read.map_err(|error| at_line_of(source, base, &error, text));
            (read, base)
        }
        Ok(Piece::Json(read)) => {
            let read =
                read.and_then(|start| json::read(source.text(), start)?.map(|it| it.0).transpose());
            (read.map_err(|error| at_line_of(source, 0, &error, "")), 0)
        }
        Err(at) => {
            let problem = problem(
                source,
                source.place(at),
                "kubectl rejects text after `---` on the same line",
                Some("begin a new line after `---`".to_owned()),
            );
            (Err(problem), at)
        }
    };
    let read = read.map(|node| node.filter(|node| !node.is_null()));
    (read, base)
}

/// Returns the problem for a YAML error in a document that begins at byte `base` of the file.
fn at_line_of(
    source: &Arc<SourceText>,
    base: usize,
    error: &goyaml::YamlError,
    text: &str,
) -> Problem {
    let first = source.place(base).line;
    let place = Place {
        line: first + error.line.saturating_sub(1),
        column: error.column,
    };
    let help = help(text).or_else(|| {
        let line = source.line(place.line);
        let before: String = line.chars().take(place.column.saturating_sub(1)).collect();
        has_tag(&before).then(|| TAG_HELP.to_owned())
    });
    problem(source, place, &error.message, help)
}

/// The help of a finding about a value that begins with `!`.
pub const TAG_HELP: &str = "`!` begins a tag in YAML: quote the expression";

/// Returns true if the value of a key or an item in `line` begins with a tag.
fn has_tag(line: &str) -> bool {
    let mut values = [": ", "- "]
        .into_iter()
        .flat_map(|before| line.split(before).skip(1));
    values.any(|value| {
        let value = value.trim_start();
        value.starts_with('!') && !value.starts_with("!!")
    })
}

fn problem(source: &Arc<SourceText>, place: Place, message: &str, help: Option<String>) -> Problem {
    Problem {
        kind: ProblemKind::InvalidYaml,
        file: source.name.clone(),
        source: Some(Arc::clone(source)),
        place: Some(place),
        message: format!("invalid YAML: {message}"),
        help,
        fix: None,
    }
}

/// The help of a finding about a file that is probably a template.
pub(in crate::cli) const TEMPLATE_HELP: &str = "this looks like a template; render it first, as in \
                                                `helm template CHART | kubectl vap check -`";

/// Returns a hint about invalid YAML.
fn help(text: &str) -> Option<String> {
    text.contains("{{").then(|| TEMPLATE_HELP.to_owned())
}

/// A part of a file with one document.
enum Piece {
    /// The byte range of a YAML document.
    Yaml(Range<usize>),
    /// The start of a JSON document as a byte offset, or the error of an invalid document.
    Json(Result<usize, goyaml::YamlError>),
}

/// Splits a file into documents. An `Err` in the result is the byte offset of a line that has other content after the
/// separator `---`.
///
/// A file that begins with `{` is a sequence of JSON documents, which YAML may follow.
fn pieces(text: &str, has_byte_order_mark: bool) -> Vec<Result<Piece, usize>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    if !has_byte_order_mark && text.trim_start().starts_with('{') {
        loop {
            match json::read(text, start) {
                Ok(None) => return pieces,
                Ok(Some((_, end))) => {
                    pieces.push(Ok(Piece::Json(Ok(start))));
                    start = end;
                }
                Err(error) if pieces.len() > 1 => {
                    pieces.push(Ok(Piece::Json(Err(error))));
                    return pieces;
                }
                Err(error) => match yaml_after_json(text, start) {
                    Some(next) => {
                        start = next;
                        break;
                    }
                    None => {
                        pieces.push(Ok(Piece::Json(Err(error))));
                        return pieces;
                    }
                },
            }
        }
    }
    let yaml = yaml_pieces(text, start, has_byte_order_mark);
    pieces.extend(yaml.into_iter().map(|piece| piece.map(Piece::Yaml)));
    pieces
}

/// Returns the byte offset of the YAML that follows the JSON documents, which end at `start`. Skips white space up to
/// and including the first line break.
///
/// Returns `None` if fewer than four bytes remain, because kubectl peeks at four bytes, and stops if it cannot.
///
/// Source: apimachinery `pkg/util/yaml/decoder.go` (`YAMLOrJSONDecoder.consumeWhitespace`).
fn yaml_after_json(text: &str, start: usize) -> Option<usize> {
    const LOOKAHEAD: usize = 4;
    let rest = text.get(start..)?;
    for (at, character) in rest.char_indices() {
        if rest.len() - at < LOOKAHEAD {
            return None;
        }
        if !character.is_whitespace() {
            return Some(start + at);
        }
        if character == '\n' {
            return Some(start + at + 1);
        }
    }
    None
}

/// Splits the content of a file at the lines that begin with `---` into byte ranges of YAML documents.
///
/// An `Err` in the result is the byte offset of such a line with other content after `---`.
fn yaml_pieces(
    text: &str,
    start: usize,
    has_byte_order_mark: bool,
) -> Vec<Result<Range<usize>, usize>> {
    let mut pieces = Vec::new();
    let mut begun = start;
    let mut at = start;
    for line in text.get(start..).unwrap_or_default().split_inclusive('\n') {
        let next = at + line.len();
        let is_marked = at == 0 && has_byte_order_mark;
        if let Some(rest) = line.strip_prefix("---").filter(|_| !is_marked) {
            let rest = rest.trim();
            let is_wrong = !rest.is_empty() && !rest.starts_with('#');
            if begun < at {
                pieces.push(Ok(begun..at));
                begun = next;
            }
            if is_wrong {
                pieces.push(Err(at));
                begun = next;
            }
        }
        at = next;
    }
    if begun < at {
        pieces.push(Ok(begun..at));
    }
    pieces
}

/// Returns the items of a list, including the items of nested lists. If `node` is not a list, returns `node` itself.
fn items(mut node: Node, depth: usize) -> Vec<Node> {
    let text = |name| node.get(name).and_then(Node::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
    let item_kind = kind.strip_suffix("List").unwrap_or_default();
    let has_items = node
        .get("items")
        .is_some_and(|items| matches!(items.data, Data::List(_)));
    let is_list = kind.ends_with("List") && has_items && depth > 0;
    if let Data::Map(entries) = &mut node.data
        && is_list
        && let Some(Data::List(listed)) = entries.remove("items").map(|entry| entry.node.data)
    {
        let typed = listed.into_iter().map(|mut item| {
            // The API server omits the kind of items, which follows from the kind of the list.
            if !item_kind.is_empty() && item.get("kind").is_none() {
                item.set_text("apiVersion", &api_version);
                item.set_text("kind", item_kind);
            }
            item
        });
        return typed.flat_map(|item| items(item, depth - 1)).collect();
    }
    vec![node]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(text: &str) -> Vec<Result<Document, Problem>> {
        let source = Arc::new(SourceText::new("f.yaml".to_owned(), text.to_owned()));
        let mut results = Vec::new();
        documents(&source, &mut Copies::default(), &mut |it| results.push(it));
        results
    }

    #[test]
    fn documents_are_split_at_separators_and_numbered() {
        let documents = read_all(
            "# above\n--- # first\na: 1\n---   \n# nothing but a comment\n---\nkind: FooList\n\
             apiVersion: v1\nitems: [{b: 2}, {kind: Bar}]\n---\nc: [\n---\nd: |\n  x\n---\n  e: 1",
        );
        let seen: Vec<_> = documents
            .iter()
            .map(|document| {
                let document = document.as_ref().ok()?;
                Some((document.index, document.node.to_json()))
            })
            .collect();
        assert_eq!(
            seen,
            [
                Some((0, json!({"a": 1}))),
                Some((1, json!({"apiVersion": "v1", "b": 2, "kind": "Foo"}))),
                Some((2, json!({"kind": "Bar"}))),
                None,
                Some((3, json!({"d": "x\n"}))),
                Some((4, json!({"e": 1}))),
            ]
        );
        let Some(Err(problem)) = documents.get(3) else {
            panic!("no problem")
        };
        assert_eq!(problem.place.map(|place| place.line), Some(11));
    }

    #[test]
    fn separator_with_text_is_a_problem() {
        let [Ok(first), Err(problem), Ok(last)] = &read_all("a: 1\n--- b: 2\nc: 3\n")[..] else {
            panic!("three parts")
        };
        assert_eq!(problem.place, Some(Place { line: 2, column: 1 }));
        assert_eq!(first.node.to_json(), json!({"a": 1}));
        assert_eq!(last.node.to_json(), json!({"c": 3}));
    }

    #[test]
    fn json_with_tabs_is_read() {
        let text = "{\n\t\"a\": [\n\t\t\"b\"\n\t]\n}";
        let source = SourceText::new("f.json".to_owned(), text.to_owned());
        let [Ok(document)] = &read_all(text)[..] else {
            panic!("one document")
        };
        let place = document.place(&source, document.node.nearest("a[0]"));
        assert_eq!(place, Place { line: 3, column: 3 });
        // YAML has no surrogate pairs, JSON does.
        let [Ok(document)] = &read_all("{\"a\": \"\\ud83d\\ude00\"}")[..] else {
            panic!("one document")
        };
        assert_eq!(document.node.to_json(), json!({"a": "😀"}));
    }

    #[test]
    fn documents_with_template_syntax_suggest_helm_template() {
        let [Err(problem)] = &read_all("a: {{ .Values.x }}\nb: {{- y\n")[..] else {
            panic!("one problem")
        };
        assert!(problem.help.as_ref().unwrap().contains("helm template"));
    }
}
