//! Creates edits of a YAML or JSON file that replace a value, a key or a part of a string, and keep the quoting style
//! of the original.
//!
//! [`Edit::changes_one_value`] checks that an edit has only the intended effect.

mod offsets;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use goyaml::{Data, Node, Style};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;

use self::offsets::{byte_of_field, byte_of_repaired, byte_of_same};
use super::object::{Document, Object, values, yaml_documents};
use super::place::{SourceText, locate};

/// The start of an item of a block style list.
const DASH: &str = "- ";

/// A replacement of bytes of a file.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The file to edit.
    pub source: Arc<SourceText>,
    /// The bytes to replace.
    pub bytes: Range<usize>,
    /// The replacement.
    pub text: String,
    wanted: IntendedChange,
}

/// The intended effect of an edit on the document.
#[derive(Clone, Debug, PartialEq, Eq)]
enum IntendedChange {
    /// A value becomes this string.
    Value(String),
    /// A value becomes the only item of a list.
    List,
    /// An item of a list becomes these items.
    Items(Vec<String>),
    /// A key is renamed to this name.
    Key(String),
    /// A map becomes this list.
    Objects(Value),
    /// A list is replaced with an object whose only field has this name and contains the list.
    Field(String),
    /// An item of a list, or a key and its value, is removed.
    Removal,
    /// This edit and the other repairs of the document make it valid YAML.
    Repair,
}

/// The JSON output for an edit.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shape<'a> {
    /// The line where the replaced range starts, from 1.
    line: usize,
    /// The column where the replaced range starts, in code points from 1.
    column: usize,
    /// The line where the replaced range ends.
    end_line: usize,
    /// The column after the end of the replaced range.
    end_column: usize,
    /// The replacement.
    text: &'a str,
}

impl JsonSchema for Edit {
    fn schema_name() -> Cow<'static, str> {
        "Edit".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Shape::json_schema(generator)
    }
}

impl Serialize for Edit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let start = self.source.place(self.bytes.start);
        let end = self.source.place(self.bytes.end);
        Shape {
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            text: &self.text,
        }
        .serialize(serializer)
    }
}

impl Edit {
    /// Converts a byte offset in the replacement to the corresponding offset in the original file. The result is always
    /// within the replaced bytes.
    #[must_use]
    pub fn byte_before(&self, byte: usize) -> usize {
        let written = self.source.text().get(self.bytes.clone());
        if let Some(written) = written.filter(|_| self.is_repair()) {
            return self.bytes.start + byte_of_repaired(written, &self.text, byte);
        }
        if let (IntendedChange::Field(_), Some(written)) = (&self.wanted, written) {
            return self.bytes.start + byte_of_field(written, &self.text, byte);
        }
        // When a map becomes a list, only the start of each line changes. So the position of the rest of the line in
        // the original determines the offset.
        let end_of_line = self.text.get(byte..).and_then(|rest| rest.lines().next());
        if let (IntendedChange::Objects(_), Some(written), Some(end)) =
            (&self.wanted, written, end_of_line)
            && let Some((before, _)) = written.split_once(end).filter(|_| !end.is_empty())
        {
            return self.bytes.start + before.len();
        }
        let same = written.and_then(|written| byte_of_same(written, &self.text, byte));
        let within = same.unwrap_or_else(|| byte.min(self.bytes.len().saturating_sub(1)));
        self.bytes.start + within
    }

    /// Creates an edit of a document that is not valid YAML. The caller verifies that the repaired document is valid.
    pub(super) fn repair(source: &Arc<SourceText>, bytes: Range<usize>, text: String) -> Self {
        Self {
            source: Arc::clone(source),
            bytes,
            text,
            wanted: IntendedChange::Repair,
        }
    }

    /// Returns true if the edit repairs a document that is not valid YAML.
    #[must_use]
    pub fn is_repair(&self) -> bool {
        self.wanted == IntendedChange::Repair
    }

    /// Returns the value after the edit. `None` if the edit renames a key, creates a list or splits an item.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        match &self.wanted {
            IntendedChange::Value(value) => Some(value),
            IntendedChange::List
            | IntendedChange::Items(_)
            | IntendedChange::Key(_)
            | IntendedChange::Objects(_)
            | IntendedChange::Field(_)
            | IntendedChange::Removal
            | IntendedChange::Repair => None,
        }
    }

    /// Returns true if the edit removes an item or a key.
    #[must_use]
    pub fn is_removal(&self) -> bool {
        self.wanted == IntendedChange::Removal
    }

    /// Returns the replacement as one line, for messages.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, str> {
        match &self.wanted {
            IntendedChange::Items(items) => items.join(", ").into(),
            _ => (&*self.text).into(),
        }
    }

    /// Returns the content of the file after the edit, or `None` if the edit is outside the file.
    #[must_use]
    pub fn applied(&self) -> Option<String> {
        applied(self.source.text(), std::slice::from_ref(self))
    }

    /// Returns true if the edit changes one value or one key of its document, and nothing else.
    #[must_use]
    pub fn changes_one_value(&self) -> bool {
        if self.is_repair() {
            return true;
        }
        let old = self.source.text();
        let Some(new) = self.applied() else {
            return false;
        };
        // If the edit is within one YAML document, only that document is parsed.
        let document = yaml_documents(&self.source)
            .into_iter()
            .find(|bytes| bytes.start <= self.bytes.start && self.bytes.end <= bytes.end);
        let (old, new) = match document {
            Some(bytes) => {
                let end = bytes.end + self.text.len() - self.bytes.len();
                (old.get(bytes.clone()), new.get(bytes.start..end))
            }
            None => (Some(old), Some(new.as_str())),
        };
        let (Some(old), Some(new)) = (old, new) else {
            return false;
        };
        let (old, new) = (values(old), values(new));
        if old.len() != new.len() {
            return false;
        }
        let mut changes = Vec::new();
        for pair in old.iter().zip(&new) {
            match pair {
                (Ok(old), Ok(new)) => differences(old, new, &mut changes),
                (Err(_), Err(_)) => {}
                _ => return false,
            }
        }
        changes == [Some(self.wanted.clone())]
    }
}

/// Sorts edits of a file, and removes each edit that overlaps an earlier one.
pub fn sort_disjoint(edits: &mut Vec<Edit>) {
    edits.sort_by_key(|edit| (edit.bytes.start, edit.bytes.end));
    let mut end = None;
    edits.retain(|edit| {
        let is_disjoint = end.is_none_or(|end| edit.bytes.start >= end);
        if is_disjoint {
            end = Some(edit.bytes.end);
        }
        is_disjoint
    });
}

/// Applies edits, which must be sorted and disjoint, to a file's content. Returns `None` if an edit is outside the
/// content.
#[must_use]
pub fn applied(text: &str, edits: &[Edit]) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        out.push_str(text.get(at..edit.bytes.start)?);
        out.push_str(&edit.text);
        at = edit.bytes.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// Adds the differences between two values to `changes`. A difference other than a new string value or a renamed key is
/// added as `None`.
fn differences(old: &Value, new: &Value, changes: &mut Vec<Option<IntendedChange>>) {
    match (old, new) {
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (old, new) in old.iter().zip(new) {
                differences(old, new, changes);
            }
        }
        (Value::Array(old), Value::Array(new)) if new.len() + 1 == old.len() => {
            let n_before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
            let is_rest_equal = old.get(n_before + 1..) == new.get(n_before..);
            changes.push(is_rest_equal.then_some(IntendedChange::Removal));
        }
        (Value::Array(old), Value::Array(new)) if new.len() > old.len() => {
            let n_before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
            let n_after = old.len().saturating_sub(n_before + 1);
            let end = new.len().saturating_sub(n_after);
            let items = new.get(n_before..end).unwrap_or_default().iter();
            let items: Option<Vec<String>> = items.map(|it| Some(it.as_str()?.into())).collect();
            let is_rest_equal = old.get(n_before + 1..) == new.get(end..);
            changes.push(items.filter(|_| is_rest_equal).map(IntendedChange::Items));
        }
        (Value::Object(old), Value::Object(new)) => {
            for (name, old) in old {
                if let Some(new) = new.get(name) {
                    differences(old, new, changes);
                }
            }
            let removed = old.iter().filter(|(name, _)| !new.contains_key(*name));
            let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
            let (removed, added): (Vec<_>, Vec<_>) = (removed.collect(), added.collect());
            match (removed.as_slice(), added.as_slice()) {
                ([], []) => {}
                ([(_, old)], [(name, new)]) if old == new => {
                    changes.push(Some(IntendedChange::Key((*name).clone())));
                }
                ([_], []) => changes.push(Some(IntendedChange::Removal)),
                _ => changes.push(None),
            }
        }
        _ if old == new => {}
        (Value::Array(_), Value::Object(new)) => {
            let mut fields = new.iter();
            let field = fields.next().filter(|(_, value)| *value == old);
            let field = field.filter(|_| fields.next().is_none());
            changes.push(field.map(|(name, _)| IntendedChange::Field(name.clone())));
        }
        (Value::String(_) | Value::Object(_), Value::Array(items)) => {
            let is_only = matches!(&**items, [only] if only == old);
            let change = match old {
                _ if is_only => Some(IntendedChange::List),
                Value::Object(_) => Some(IntendedChange::Objects(new.clone())),
                _ => None,
            };
            changes.push(change);
        }
        (_, Value::String(new)) => changes.push(Some(IntendedChange::Value(new.clone()))),
        _ => changes.push(None),
    }
}

/// Returns the byte range of the whole lines that contain `bytes`. Returns `None` if anything other than a comment
/// follows `bytes` in the last line.
fn whole_lines(text: &str, bytes: &Range<usize>) -> Option<Range<usize>> {
    let start = text.get(..bytes.start)?.rfind('\n').map_or(0, |at| at + 1);
    let content = text.get(bytes.clone())?;
    let end = bytes.start + content.trim_end().len();
    let rest = text.get(end..)?;
    let line = rest
        .find('\n')
        .map_or(rest, |at| rest.get(..at).unwrap_or(rest));
    let is_blank = line.trim().is_empty() || line.trim_start().starts_with('#');
    let last = end + line.len();
    let has_break = text.len() > last;
    is_blank.then_some(start..last + usize::from(has_break))
}

impl Document {
    /// Returns the byte offset of the tag of `node`, such as `!x` in `!x == 1`. `None` for a tag of YAML itself, such as
    /// `!!str`.
    #[must_use]
    pub fn tag_start(&self, source: &SourceText, node: &Node) -> Option<usize> {
        let Data::Scalar(_, Style::Plain) = &node.data else {
            return None;
        };
        let start = self.bytes(&node.span).start;
        let (before, after) = source.text().split_at_checked(start)?;
        let line = before.rsplit('\n').next()?.trim_end();
        let word = line.rsplit([' ', '\t']).next()?;
        let (start, text) = if after.starts_with('!') {
            (start, after)
        } else {
            (before.trim_end().len() - word.len(), word)
        };
        (text.starts_with('!') && !text.starts_with("!!")).then_some(start)
    }

    /// Returns an edit that puts quotes around the rest of the line, starting at the tag of `node`.
    #[must_use]
    pub fn edit_tag(&self, source: &Arc<SourceText>, node: &Node) -> Option<Edit> {
        let start = self.tag_start(source, node)?;
        let line = source.text().get(start..)?.lines().next()?.trim_end();
        let edit = Edit {
            source: Arc::clone(source),
            bytes: start..start + line.len(),
            text: plain(line),
            wanted: IntendedChange::Value(line.to_owned()),
        };
        (!line.contains(" #") && edit.changes_one_value()).then_some(edit)
    }

    /// Returns an edit that replaces the value `node` with `new`. Returns `None` if `node` is not a scalar, is a block
    /// scalar of several lines, or cannot represent `new` in its style.
    #[must_use]
    pub fn edit_value(&self, source: &Arc<SourceText>, node: &Node, new: &str) -> Option<Edit> {
        let bytes = self.bytes(&node.span);
        let Data::Scalar(value, style) = &node.data else {
            return None;
        };
        let mut wanted = new.to_owned();
        let new = Some(new).filter(|new| !new.chars().any(char::is_control))?;
        let (bytes, text) = match style {
            Style::Plain => (bytes, plain(new)),
            Style::SingleQuoted | Style::DoubleQuoted | Style::Json => {
                let within = bytes.start + 1..bytes.end.checked_sub(1)?;
                (within, within_style(*style, new)?)
            }
            Style::Literal { .. } | Style::Folded { .. } => {
                let whole = value.as_str()?;
                let value = whole.trim_matches('\n');
                wanted = whole.replacen(value, new, 1);
                let is_one_line = !value.is_empty() && !value.contains('\n');
                let end = bytes.start + value.len();
                if !is_one_line || source.text().get(bytes.start..end) != Some(value) {
                    return None;
                }
                (bytes.start..end, within_style(*style, new)?)
            }
        };
        Some(Edit {
            source: Arc::clone(source),
            bytes,
            text,
            wanted: IntendedChange::Value(wanted),
        })
    }

    /// Returns an edit that replaces the string or map `node` with a list that contains it. Returns `None` if the
    /// string is a block scalar, or if it contains characters that have a special meaning in a list, such as commas.
    #[must_use]
    pub fn edit_into_list(&self, source: &Arc<SourceText>, node: &Node) -> Option<Edit> {
        let bytes = self.bytes(&node.span);
        let written = source.text().get(bytes.clone())?;
        let text = match &node.data {
            Data::Scalar(Value::String(value), style) => {
                let is_plain = *style == Style::Plain;
                let is_flow = |c: char| matches!(c, ',' | '[' | ']' | '{' | '}');
                let is_block = matches!(style, Style::Literal { .. } | Style::Folded { .. });
                if is_block || is_plain && value.contains(is_flow) {
                    return None;
                }
                format!("[{written}]")
            }
            Data::Map(_) if written.starts_with('{') => format!("[{written}]"),
            // The other lines of a block list item are indented like the content after its dash.
            Data::Map(_) => {
                let mut lines = written.split_inclusive('\n');
                let mut text = format!("- {}", lines.next()?);
                for line in lines {
                    if !line.trim().is_empty() {
                        text.push_str("  ");
                    }
                    text.push_str(line);
                }
                text
            }
            Data::Scalar(..) | Data::List(_) => return None,
        };
        let edit = Edit {
            source: Arc::clone(source),
            text,
            bytes,
            wanted: IntendedChange::List,
        };
        edit.changes_one_value().then_some(edit)
    }

    /// Returns an edit that replaces the list `node` with an object whose only field, `name`, contains the list.
    #[must_use]
    pub fn edit_into_field(
        &self,
        source: &Arc<SourceText>,
        node: &Node,
        name: &str,
    ) -> Option<Edit> {
        let bytes = self.bytes(&node.span);
        let written = source.text().get(bytes.clone())?;
        let indent = source.text().get(..bytes.start)?.rsplit('\n').next()?;
        let texts = if written.starts_with('[') {
            let is_json = source.text().trim_start().starts_with('{');
            let quote = if is_json { "\"" } else { "" };
            vec![format!("{{{quote}{name}{quote}: {written}}}")]
        } else if !indent.trim().is_empty() {
            return None;
        } else {
            // A list may have the same indentation as its key. A field of an object must be indented more than the key
            // of the object.
            let nested = |shift: &str| {
                let mut text = format!("{shift}{name}:\n{indent}{shift}");
                for (n, line) in written.split_inclusive('\n').enumerate() {
                    if n > 0 && !line.trim().is_empty() {
                        text.push_str(shift);
                    }
                    text.push_str(line);
                }
                text
            };
            vec![nested(""), nested("  ")]
        };
        let mut edits = texts.into_iter().map(|text| Edit {
            source: Arc::clone(source),
            bytes: bytes.clone(),
            text,
            wanted: IntendedChange::Field(name.to_owned()),
        });
        matches!(node.data, Data::List(_)).then_some(())?;
        edits.find(Edit::changes_one_value)
    }

    /// Returns an edit that replaces the map `node` with a list that has an object for each entry. Each object has the
    /// key of the entry in the field `name`, and its value in the field `value`. Returns `None` for a block style map
    /// without indentation.
    #[must_use]
    pub fn edit_into_objects(
        &self,
        source: &Arc<SourceText>,
        node: &Node,
        (name, value): (&str, &str),
    ) -> Option<Edit> {
        let Data::Map(entries) = &node.data else {
            return None;
        };
        let mut entries: Vec<_> = entries.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.key.start);
        let objects = entries.iter().map(|&(key, entry)| {
            let fields = [(name, key.into()), (value, entry.node.to_json())];
            let fields = fields.map(|(field, value): (&str, Value)| (field.to_owned(), value));
            Value::Object(fields.into_iter().collect())
        });
        let objects = Value::Array(objects.collect());
        let mut bytes = self.bytes(&node.span);
        let text = if source.text().get(bytes.clone())?.starts_with('{') {
            objects.to_string()
        } else {
            bytes.start = bytes.start.checked_sub(DASH.len())?;
            let mut text = String::new();
            let mut end = bytes.start;
            for (_, entry) in &entries {
                let key = self.bytes(&entry.key);
                let start = key.start.checked_sub(DASH.len())?;
                let before = source.text().get(end..start)?;
                let indent = source.text().get(..key.start)?.rsplit('\n').next()?;
                let written = source.text().get(key.clone())?;
                let _ = write!(text, "{before}{DASH}{name}: {written}\n{indent}{value}");
                end = key.end;
            }
            text.push_str(source.text().get(end..bytes.end)?);
            text
        };
        let edit = Edit {
            source: Arc::clone(source),
            bytes,
            text,
            wanted: IntendedChange::Objects(objects),
        };
        edit.changes_one_value().then_some(edit)
    }

    /// Returns an edit that replaces the string `node`, an item of a list, with several items. Returns `None` if the string
    /// is a block scalar.
    #[must_use]
    pub fn edit_into_items(
        &self,
        source: &Arc<SourceText>,
        node: &Node,
        items: &[&str],
    ) -> Option<Edit> {
        let bytes = self.bytes(&node.span);
        let Data::Scalar(_, style) = &node.data else {
            return None;
        };
        let scalar = |item: &str| {
            let text = within_style(*style, item)?;
            match style {
                Style::Plain => Some(plain(&text)),
                Style::SingleQuoted => Some(format!("'{text}'")),
                Style::DoubleQuoted | Style::Json => Some(format!("\"{text}\"")),
                Style::Literal { .. } | Style::Folded { .. } => None,
            }
        };
        let scalars: Option<Vec<_>> = items.iter().map(|item| scalar(item)).collect();
        let before = source.text().get(..bytes.start)?;
        let line = before.rsplit('\n').next()?;
        // In a block list, each item needs its own line with a dash.
        let separator = match line.trim() {
            "-" if before.ends_with(&format!("\r\n{line}")) => format!("\r\n{line}"),
            "-" => format!("\n{line}"),
            _ => ", ".to_owned(),
        };
        let edit = Edit {
            source: Arc::clone(source),
            bytes,
            text: scalars?.join(&separator),
            wanted: IntendedChange::Items(items.iter().map(|&item| item.to_owned()).collect()),
        };
        edit.changes_one_value().then_some(edit)
    }

    /// Returns an edit that removes the item `n` of the list `node`, which has other items.
    #[must_use]
    pub fn edit_without_item(
        &self,
        source: &Arc<SourceText>,
        node: &Node,
        n: usize,
    ) -> Option<Edit> {
        let items = node.items();
        let bytes = self.bytes(&items.get(n)?.span);
        let is_block = source
            .text()
            .get(..bytes.start)?
            .rsplit('\n')
            .next()?
            .trim()
            == "-";
        if is_block {
            return Self::removal(source, whole_lines(source.text(), &bytes)?);
        }
        let neighbor = |n: usize| Some(self.bytes(&items.get(n)?.span));
        let bytes = match n.checked_sub(1) {
            Some(before) => neighbor(before)?.end..bytes.end,
            None => bytes.start..neighbor(1)?.start,
        };
        Self::removal(source, bytes)
    }

    /// Returns an edit that removes the lines of the key at the bytes `key` and of its value.
    #[must_use]
    pub fn edit_without_key(
        &self,
        source: &Arc<SourceText>,
        key: &Range<usize>,
        value: &Node,
    ) -> Option<Edit> {
        let bytes = self.bytes(key).start..self.bytes(&value.span).end;
        let before = source.text().get(..bytes.start)?;
        let is_first = before.rsplit('\n').next()?.trim().is_empty();
        let lines = whole_lines(source.text(), &bytes).filter(|_| is_first)?;
        Self::removal(source, lines)
    }

    fn removal(source: &Arc<SourceText>, bytes: Range<usize>) -> Option<Edit> {
        let edit = Edit {
            source: Arc::clone(source),
            bytes,
            text: String::new(),
            wanted: IntendedChange::Removal,
        };
        edit.changes_one_value().then_some(edit)
    }

    /// Returns the source of a scalar that is not a string, such as `no`.
    #[must_use]
    pub fn scalar_text<'s>(&self, source: &'s SourceText, node: &Node) -> Option<&'s str> {
        matches!(&node.data, Data::Scalar(value, Style::Plain) if !value.is_string())
            .then(|| source.text().get(self.bytes(&node.span)))?
    }

    /// Returns an edit that renames the key at the bytes `key`, or `None` if the style of the key cannot represent
    /// `new`.
    #[must_use]
    pub fn edit_key(
        &self,
        source: &Arc<SourceText>,
        key: &Range<usize>,
        new: &str,
    ) -> Option<Edit> {
        let bytes = self.bytes(key);
        let raw = source.text().get(bytes.clone())?;
        let quoted = |style| {
            let within = bytes.start + 1..bytes.end.checked_sub(1)?;
            Some((within, within_style(style, new)?))
        };
        let (bytes, text) = match raw.as_bytes().first()? {
            b'\'' => quoted(Style::SingleQuoted)?,
            b'"' => quoted(Style::DoubleQuoted)?,
            _ => (bytes.clone(), plain(new)),
        };
        Some(Edit {
            source: Arc::clone(source),
            bytes,
            text,
            wanted: IntendedChange::Key(new.to_owned()),
        })
    }
}

impl<T> Object<T> {
    /// Returns an edit that replaces the code points `part` of the string in the field `field_ref`. Returns `None` if
    /// the field is not a string, or if its source or style does not permit the edit.
    #[must_use]
    pub fn edit_text(&self, field_ref: &str, part: Range<usize>, new: &str) -> Option<Edit> {
        self.edit_text_of(self.document.node.nearest(field_ref), part, new)
    }

    /// Returns an edit like [`Self::edit_text`], but for the string `node`.
    #[must_use]
    pub fn edit_text_of(&self, node: &Node, part: Range<usize>, new: &str) -> Option<Edit> {
        let Data::Scalar(Value::String(value), style) = &node.data else {
            return None;
        };
        let source = &self.source;
        let span = self.document.bytes(&node.span);
        let places = locate(source.text(), &span, *style, value);
        let first = span.start + places.get(part.start)?;
        let last = span.start + places.get(part.end.checked_sub(1)?)?;
        let bytes = first..last + written_len(source.text().get(last..)?, *style)?;
        (bytes.start < bytes.end && bytes.end <= span.end).then_some(())?;
        let before = value.chars().take(part.start);
        let after = value.chars().skip(part.end);
        let value: String = before.chain(new.chars()).chain(after).collect();
        let edit = Edit {
            source: Arc::clone(source),
            bytes,
            text: within_style(*style, new)?,
            wanted: IntendedChange::Value(value.clone()),
        };
        // A plain scalar must not become a tag, a comment or a mapping.
        if *style != Style::Plain || edit.changes_one_value() {
            return Some(edit);
        }
        let quoted = Edit {
            bytes: span,
            text: double_quoted(&value)?,
            ..edit.clone()
        };
        Some(if quoted.changes_one_value() {
            quoted
        } else {
            edit
        })
    }
}

/// Returns `value` as a double-quoted scalar. `None` if it has control characters.
fn double_quoted(value: &str) -> Option<String> {
    Some(format!("\"{}\"", within_style(Style::DoubleQuoted, value)?))
}

/// Returns the length in bytes of the first character of a scalar's source in `style`. The character may be an
/// escape sequence. Returns `None` if the source is empty.
fn written_len(text: &str, style: Style) -> Option<usize> {
    let mut chars = text.chars();
    let first = chars.next()?;
    let second = chars.next();
    Some(match (style, first, second) {
        (Style::SingleQuoted, '\'', Some('\'')) => 2,
        (Style::DoubleQuoted | Style::Json, '\\', Some(escape)) => match escape {
            'x' if style == Style::DoubleQuoted => 4,
            'U' if style == Style::DoubleQuoted => 10,
            // JSON escapes a character outside the basic multilingual plane as a surrogate pair.
            'u' if style == Style::Json && is_surrogate(text) => 12,
            'u' => 6,
            other => 1 + other.len_utf8(),
        },
        _ => first.len_utf8(),
    })
}

fn is_surrogate(text: &str) -> bool {
    let digits = text.get(2..6);
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| (0xd800..0xdc00).contains(&number))
}

/// Escapes `new` for a scalar in the given style. Returns `None` if the style cannot represent it.
fn within_style(style: Style, new: &str) -> Option<String> {
    let is_of_lines = matches!(style, Style::Literal { .. });
    let is_unwritable = |c: char| c.is_control() && !(is_of_lines && c == '\n');
    if new.chars().any(is_unwritable) {
        return None;
    }
    Some(match style {
        Style::SingleQuoted => new.replace('\'', "''"),
        Style::DoubleQuoted | Style::Json => new.replace('\\', "\\\\").replace('"', "\\\""),
        Style::Literal { .. } | Style::Folded { .. } if new.is_empty() => return None,
        Style::Literal { indent } => {
            let indent = " ".repeat(usize::try_from(indent).ok()?);
            let mut lines = new.split('\n');
            let first = lines.next().unwrap_or_default().to_owned();
            lines.fold(first, |text, line| match line {
                "" => text + "\n",
                line => text + "\n" + &indent + line,
            })
        }
        Style::Plain | Style::Folded { .. } => new.to_owned(),
    })
}

/// Formats `new` as a scalar. Adds quotes if YAML would read a plain scalar differently.
fn plain(new: &str) -> String {
    let is_plain = [format!("[{new}]"), format!("- {new}\n")]
        .iter()
        .all(|text| {
            let read = goyaml::to_json(text);
            read.is_ok_and(|read| read == Value::from(vec![new]))
        });
    if is_plain {
        new.to_owned()
    } else {
        format!("\"{}\"", new.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests;
