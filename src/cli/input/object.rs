//! The documents of a file, cut and read as kubectl does, and the objects in them.
//!
//! Source: apimachinery `pkg/util/yaml/decoder.go` (`YAMLReader.Read`).

use std::ops::Range;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::place::{Place, SourceText, locate};
use super::yaml::{self, Copies, Data, Node};
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
    /// Where `node`, a part of the document, begins.
    #[must_use]
    pub fn place(&self, source: &SourceText, node: &Node) -> Place {
        source.place(self.base + node.span.start)
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
    pub(super) fn new(document: Document, source: &Arc<SourceText>, value: T) -> Self {
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

    /// The places of what is in the text that the field `field_ref` holds.
    #[must_use]
    pub fn places_in_field(&self, field_ref: &str) -> FieldPlaces<'_> {
        let node = self.document.node.nearest(field_ref);
        let start = self.document.base + node.span.start;
        let end = self.document.base + node.span.end;
        let bytes = match (&node.data, self.source.text().get(start..end)) {
            (Data::Scalar(Value::String(text), style), Some(raw)) => locate(raw, *style, text),
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
    /// Where it does not have the shape: the object, with the reason as its value.
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
pub(super) fn documents(
    source: &Arc<SourceText>,
    copies: &mut Copies,
    each: &mut dyn FnMut(Result<Document, Problem>),
) {
    let mut index = 0;
    for piece in pieces(source.text()) {
        let (text, base) = match piece {
            Ok(bytes) => {
                let base = bytes.start;
                (source.text().get(bytes).unwrap_or_default(), base)
            }
            Err(at) => {
                let place = source.place(at);
                each(Err(problem(
                    source,
                    place,
                    "what follows `---` on its line is not read by kubectl",
                    Some("begin a new line after `---`".to_owned()),
                )));
                continue;
            }
        };
        match read(text, copies) {
            Ok(None) => {}
            Ok(Some(node)) => {
                for node in items(node, MAX_LIST_DEPTH) {
                    each(Ok(Document { node, base, index }));
                    index += 1;
                }
            }
            Err(error) => {
                let first = source.place(base).line;
                let place = Place {
                    line: first + error.line.saturating_sub(1),
                    column: error.column,
                };
                let help = help(text);
                each(Err(problem(source, place, &error.message, help)));
            }
        }
    }
}

fn problem(source: &Arc<SourceText>, place: Place, message: &str, help: Option<String>) -> Problem {
    Problem {
        kind: ProblemKind::InvalidYaml,
        file: source.name.clone(),
        source: Some(Arc::clone(source)),
        place: Some(place),
        message: format!("invalid YAML: {message}"),
        help,
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

/// A document as YAML, and where it is none, as JSON.
///
/// JSON may be indented by tabs, which YAML may not. They stand between values only, so that a space
/// in place of each changes nothing but that.
fn read(text: &str, copies: &mut Copies) -> Result<Option<Node>, yaml::YamlError> {
    yaml::read(text, copies).or_else(|error| {
        // Each value of JSON comes first or behind one of these.
        let n_nodes = text.matches(['[', '{', ',']).count();
        if !text.trim_start().starts_with(['{', '[']) || n_nodes > yaml::MAX_NODES {
            return Err(error);
        }
        let value: Value = serde_json::from_str(text).map_err(|_| error)?;
        let spaced = text.replace('\t', " ");
        let whole = 0..text.len();
        Ok(yaml::read(&spaced, copies).unwrap_or_else(|_| Some(Node::of_json(value, &whole))))
    })
}

/// The bytes of the documents of a text, cut at the lines that begin with `---`, whatever is above
/// them; or the place of such a line that says more.
fn pieces(text: &str) -> Vec<Result<Range<usize>, usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut at = 0;
    let push = |found: &mut Vec<_>, range: Range<usize>| {
        let piece = text.get(range.clone()).unwrap_or_default();
        let says_something = piece.lines().any(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#') && !line.starts_with('%')
        });
        if says_something {
            found.push(Ok(range));
        }
    };
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if let Some(rest) = line.strip_prefix("---") {
            let rest = rest.trim();
            push(&mut found, start..at);
            start = next;
            if !rest.is_empty() && !rest.starts_with('#') {
                found.push(Err(at));
            }
        }
        at = next;
    }
    push(&mut found, start..at);
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
            "%YAML 1.2\n--- # first\na: 1\n---   \n# nothing but a comment\n---\nkind: FooList\n\
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
