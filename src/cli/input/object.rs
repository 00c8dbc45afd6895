//! The documents of a file, cut and read as kubectl does, and the objects in them.
//!
//! Source: apimachinery `pkg/util/yaml/decoder.go` (`YAMLReader.Read`).

use std::ops::Range;
use std::sync::Arc;

use goyaml::{Copies, Data, Node, json};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::place::{Place, SourceText, locate};
use super::{Problem, ProblemKind};

/// The deepest nesting of lists in lists that is taken apart.
const MAX_LIST_DEPTH: usize = 8;

/// An object as it is written: a document, or an item of a list.
#[derive(Debug)]
pub struct Document {
    /// Content, with places from the beginning of the text that was cut out of the file.
    pub node: Node,
    /// Where that text begins in the file, in bytes.
    base: usize,
    /// The place of the object in its file, from 0.
    pub index: usize,
}

impl Document {
    /// A document with another content, made of parts of this one, whose places stay theirs.
    pub(in crate::cli) fn with(&self, node: Node) -> Self {
        Self {
            node,
            base: self.base,
            index: self.index,
        }
    }

    /// Where `node`, a part of the document, begins.
    #[must_use]
    pub fn place(&self, source: &SourceText, node: &Node) -> Place {
        source.place(self.base + node.span.start)
    }

    /// The bytes of the file that `span` of the document is.
    pub(super) fn bytes(&self, span: &Range<usize>) -> Range<usize> {
        self.base + span.start..self.base + span.end
    }
}

/// An object with the place where it is written.
#[derive(Debug)]
pub struct Object<T> {
    /// The object.
    pub value: T,
    /// The file.
    pub source: Arc<SourceText>,
    /// As it is written.
    pub document: Document,
}

impl<T> Object<T> {
    pub(in crate::cli) fn new(document: Document, source: &Arc<SourceText>, value: T) -> Self {
        Self {
            value,
            source: Arc::clone(source),
            document,
        }
    }

    /// The `apiVersion`, as written.
    #[must_use]
    pub fn api_version(&self) -> &str {
        let node = self.document.node.get("apiVersion");
        node.and_then(Node::as_str).unwrap_or_default()
    }

    /// The `kind`, as written.
    #[must_use]
    pub fn kind(&self) -> &str {
        let node = self.document.node.get("kind");
        node.and_then(Node::as_str).unwrap_or_default()
    }

    /// The `metadata.name`, where there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.document.node.get("metadata")?.get("name")?.as_str()
    }

    /// The `metadata.namespace`, where there is one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let metadata = self.document.node.get("metadata")?;
        metadata.get("namespace")?.as_str()
    }

    /// The place of the name, or of the object where it has none.
    #[must_use]
    pub fn place(&self) -> Place {
        let node = self.document.node.get("metadata");
        let node = node.and_then(|metadata| metadata.get("name"));
        self.place_of(node.unwrap_or(&self.document.node))
    }

    /// Where a part of the object begins.
    #[must_use]
    pub fn place_of(&self, node: &Node) -> Place {
        self.document.place(&self.source, node)
    }

    /// Where bytes of the document begin, such as those of a key.
    #[must_use]
    pub fn place_of_bytes(&self, bytes: &Range<usize>) -> Place {
        self.source.place(self.document.base + bytes.start)
    }

    /// How many code points a part of the object takes on the line on which it begins; 1 where it is a collection
    /// of several lines.
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

    /// The place of the field that `field_ref` names, or of what is nearest to it.
    #[must_use]
    pub fn place_of_field(&self, field_ref: &str) -> Place {
        self.place_of(self.document.node.nearest(field_ref))
    }

    /// The advice about a field whose key kubectl reads as a boolean, since YAML 1.1 has `y`, `on` and others for that;
    /// `None` where the key is a text, or says `true` or `false` as it is.
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

    /// The same for a key at `bytes` of the document, which is read as `name`.
    #[must_use]
    pub fn advice_on_key_at(&self, bytes: &Range<usize>, name: &str) -> Option<String> {
        let bytes = self.document.base + bytes.start..self.document.base + bytes.end;
        let written = self.source.text().get(bytes)?.trim();
        let is_word = !written.is_empty() && written.chars().all(|it| it.is_ascii_alphabetic());
        (is_word && written != name && matches!(name, "true" | "false")).then(|| {
            format!(
                "kubectl reads the key `{written}` as the boolean {name}, as YAML 1.1 has it: write '{written}' in \
                 quotation marks"
            )
        })
    }

    /// The places of what is in the text that the field `field_ref` holds.
    #[must_use]
    pub fn places_in_field(&self, field_ref: &str) -> FieldPlaces<'_> {
        self.places_in_node(self.document.node.nearest(field_ref))
    }

    /// The places of what is in the text of a part of the object.
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

/// Where the code points of the text of a field are written.
#[derive(Debug)]
pub struct FieldPlaces<'a> {
    source: &'a SourceText,
    start: usize,
    /// By the index of the code point, from the beginning of the field.
    bytes: Vec<usize>,
}

impl FieldPlaces<'_> {
    /// The place of the field.
    #[must_use]
    pub fn start(&self) -> Place {
        self.source.place(self.start)
    }

    /// The source from the beginning of the field on.
    #[must_use]
    pub fn text_at_start(&self) -> &str {
        self.source.text().get(self.start..).unwrap_or_default()
    }

    /// The place of the code point `offset`; that of the field where it is not told by the text as written.
    #[must_use]
    pub fn of(&self, offset: usize) -> Place {
        let byte = self.bytes.get(offset).copied().unwrap_or(0);
        self.source.place(self.start + byte)
    }
}

impl Object<Value> {
    /// The object as a type of its kind.
    ///
    /// # Errors
    /// If it does not have the shape: the object, with the reason as its value.
    pub fn decode<T: DeserializeOwned>(self) -> Result<Object<T>, Object<String>> {
        let Self {
            value,
            source,
            document,
        } = self;
        match serde_json::from_value(value) {
            Ok(value) => Ok(Object {
                value,
                source,
                document,
            }),
            Err(error) => Err(Object {
                value: error.to_string(),
                source,
                document,
            }),
        }
    }
}

/// Hands on the objects of a file, and what is no document, in order and one by one: read, they take
/// many times the room of their text.
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

/// The bytes of the YAML documents of a file, but for those of JSON.
pub(in crate::cli) fn yaml_documents(source: &SourceText) -> Vec<Range<usize>> {
    let pieces = pieces(source.text(), source.has_byte_order_mark()).into_iter();
    pieces
        .filter_map(|piece| match piece {
            Ok(Piece::Yaml(bytes)) => Some(bytes),
            Ok(Piece::Json(_)) | Err(_) => None,
        })
        .collect()
}

/// The values of the documents of a text, and why others are none, as kubectl reads them, or as it would
/// behind a document that it refuses.
#[must_use]
pub fn values(text: &str) -> Vec<Result<Value, Problem>> {
    let source = Arc::new(SourceText::new(String::new(), text.to_owned()));
    let mut copies = Copies::default();
    let mut pieces = pieces(source.text(), source.has_byte_order_mark())
        .into_iter()
        .peekable();
    let mut found = Vec::new();
    while let Some(piece) = pieces.next() {
        // kubectl loses what is above a line that it cannot read.
        let is_lost = match (&piece, pieces.peek()) {
            (Ok(Piece::Yaml(bytes)), Some(Err(at))) => bytes.end == *at,
            _ => false,
        };
        if !is_lost {
            let (read, _) = read(&source, piece, &mut copies);
            found.extend(read.transpose());
        }
    }
    found
        .into_iter()
        .map(|read| read.map(|node| node.to_json()))
        .collect()
}

/// The document of a piece, with the byte from which its places count; `None` where there is none, or null,
/// which kubectl passes over.
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
                "what follows `---` on its line is not read by kubectl",
                Some("begin a new line after `---`".to_owned()),
            );
            (Err(problem), at)
        }
    };
    let read = read.map(|node| node.filter(|node| !node.is_null()));
    (read, base)
}

/// The problem in `text`, which begins at the byte `base` of the file.
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
    problem(source, place, &error.message, help(text))
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

/// Returns advice about a text that is not YAML.
fn help(text: &str) -> Option<String> {
    text.contains("{{").then(|| {
        "this looks like a template; render it first, as in \
         `helm template CHART | kubectl vap check -`"
            .to_owned()
    })
}

/// A part of a file that is one document.
enum Piece {
    /// The bytes of YAML.
    Yaml(Range<usize>),
    /// The byte at which a document of JSON begins, which is read when it is its turn; or why it is none,
    /// behind several that are.
    Json(Result<usize, goyaml::YamlError>),
}

/// The documents of a text, or the place of a line that begins with `---` and says more.
///
/// A text that begins with `{` is JSON, one document behind another, as far as that can be read; what follows
/// one of them may be YAML.
fn pieces(text: &str, has_byte_order_mark: bool) -> Vec<Result<Piece, usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    if !has_byte_order_mark && text.trim_start().starts_with('{') {
        loop {
            match json::read(text, start) {
                Ok(None) => return found,
                Ok(Some((_, end))) => {
                    found.push(Ok(Piece::Json(Ok(start))));
                    start = end;
                }
                Err(error) if found.len() > 1 => {
                    found.push(Ok(Piece::Json(Err(error))));
                    return found;
                }
                Err(error) => match behind_json(text, start) {
                    Some(next) => {
                        start = next;
                        break;
                    }
                    None => {
                        found.push(Ok(Piece::Json(Err(error))));
                        return found;
                    }
                },
            }
        }
    }
    let yaml = yaml_pieces(text, start, has_byte_order_mark);
    found.extend(yaml.into_iter().map(|piece| piece.map(Piece::Yaml)));
    found
}

/// Where YAML begins in what is behind JSON, or in place of it: behind white space and the first line break;
/// `None` where kubectl does not come so far, since it looks at four bytes at a time.
///
/// Source: apimachinery `pkg/util/yaml/decoder.go` (`YAMLOrJSONDecoder.consumeWhitespace`).
fn behind_json(text: &str, start: usize) -> Option<usize> {
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

/// The bytes of the YAML documents of a text, cut at the lines that begin with `---`, whatever is above
/// them; or the place of such a line that says more.
fn yaml_pieces(
    text: &str,
    start: usize,
    has_byte_order_mark: bool,
) -> Vec<Result<Range<usize>, usize>> {
    let mut found = Vec::new();
    let mut begun = start;
    let mut at = start;
    for line in text.get(start..).unwrap_or_default().split_inclusive('\n') {
        let next = at + line.len();
        let is_marked = at == 0 && has_byte_order_mark;
        if let Some(rest) = line.strip_prefix("---").filter(|_| !is_marked) {
            let rest = rest.trim();
            let is_wrong = !rest.is_empty() && !rest.starts_with('#');
            if begun < at {
                found.push(Ok(begun..at));
                begun = next;
            }
            if is_wrong {
                found.push(Err(at));
                begun = next;
            }
        }
        at = next;
    }
    if begun < at {
        found.push(Ok(begun..at));
    }
    found
}

/// The items of a list, lists in it taken apart as well, and otherwise the document itself.
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
            // The API server leaves out what the kind of the list says.
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
        let mut found = Vec::new();
        documents(&source, &mut Copies::default(), &mut |it| found.push(it));
        found
    }

    #[test]
    fn documents_are_cut_at_separator_lines_and_counted() {
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
    fn a_separator_with_content_is_a_problem_of_its_own() {
        let [Ok(first), Err(problem), Ok(last)] = &read_all("a: 1\n--- b: 2\nc: 3\n")[..] else {
            panic!("three parts")
        };
        assert_eq!(problem.place, Some(Place { line: 2, column: 1 }));
        assert_eq!(first.node.to_json(), json!({"a": 1}));
        assert_eq!(last.node.to_json(), json!({"c": 3}));
    }

    #[test]
    fn json_may_be_indented_by_tabs() {
        let text = "{\n\t\"a\": [\n\t\t\"b\"\n\t]\n}";
        let source = SourceText::new("f.json".to_owned(), text.to_owned());
        let [Ok(document)] = &read_all(text)[..] else {
            panic!("one document")
        };
        let place = document.place(&source, document.node.nearest("a[0]"));
        assert_eq!(place, Place { line: 3, column: 3 });
        // YAML does not know surrogates; then everything is where the document is.
        let [Ok(document)] = &read_all("{\"a\": \"\\ud83d\\ude00\"}")[..] else {
            panic!("one document")
        };
        assert_eq!(document.node.to_json(), json!({"a": "😀"}));
    }

    #[test]
    fn templates_are_told() {
        let [Err(problem)] = &read_all("a: {{ .Values.x }}\nb: {{- y\n")[..] else {
            panic!("one problem")
        };
        assert!(problem.help.as_ref().unwrap().contains("helm template"));
    }
}
