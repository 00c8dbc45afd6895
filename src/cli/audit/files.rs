//! Reads the objects of files one by one. At most one object and the content of one file are in memory at the same
//! time.
//!
//! JSON lists, as written by `kubectl get -o json`, are read item by item. YAML files are read document by document.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use goyaml::Copies;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::decide::Item;
use crate::cli::input::files::{ReadFile, ReadOptions, read_all};
use crate::cli::input::object::documents;
use crate::cli::input::{Place, SourceText};

/// The fields that show whether a JSON value is a list of objects.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(default, rename = "apiVersion")]
    api_version: Option<Value>,
    #[serde(default)]
    kind: Option<Value>,
    #[serde(borrow, default)]
    items: Option<&'a RawValue>,
}

/// Calls `each` for all objects in `paths`, and for files and documents that cannot be read.
///
/// In directories, skips documents that are not Kubernetes objects. Returns the number of skipped documents.
pub(in crate::cli) fn read(
    paths: &[PathBuf],
    stdin: &mut dyn Read,
    each: &mut dyn FnMut(Item),
) -> usize {
    let mut copies = Copies::default();
    let mut n_skipped = 0;
    read_all(paths, stdin, &ReadOptions::default(), &mut |file| {
        n_skipped += read_file(file, &mut copies, each);
    });
    n_skipped
}

fn read_file(file: ReadFile, copies: &mut Copies, each: &mut dyn FnMut(Item)) -> usize {
    let name: Arc<str> = file.name.as_str().into();
    let text = match file.text {
        Ok(text) => text,
        Err(why) => {
            each(Item {
                value: Err(format!("cannot read the file: {why}")),
                place: Some((name, 1)),
                is_file: true,
            });
            return 0;
        }
    };
    let mut reader = Documents {
        name,
        is_given: file.is_given,
        n_skipped: 0,
        line_cursor: (0, 1),
        each,
    };
    if !reader.json(&text) {
        reader.yaml(file.name, text, copies);
    }
    reader.n_skipped
}

struct Documents<'a> {
    name: Arc<str>,
    is_given: bool,
    n_skipped: usize,
    /// The byte offset up to which line breaks have been counted, and the line number at that offset.
    line_cursor: (usize, usize),
    each: &'a mut dyn FnMut(Item),
}

impl Documents<'_> {
    /// Passes the objects of a JSON file to `each`. Returns false if the content is not JSON.
    fn json(&mut self, text: &str) -> bool {
        if !text.trim_start().starts_with('{') {
            return false;
        }
        let all = || serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        if all().any(|value| value.is_err()) {
            return false;
        }
        for value in all().flatten() {
            self.json_value(text, value, None, 0);
        }
        true
    }

    /// Passes an object or the items of a list to `each`. Items without apiVersion and kind get the values in
    /// `list_type`.
    fn json_value(
        &mut self,
        text: &str,
        raw: &RawValue,
        list_type: Option<(&str, &str)>,
        depth: u8,
    ) {
        const MAX_LISTS: u8 = 8;
        let line = self.line_of(text, raw.get());
        let head: Option<Head<'_>> = serde_json::from_str(raw.get()).ok();
        if let Some(head) = &head
            && let Some(kind) = head.kind.as_ref().and_then(Value::as_str)
            && let Some(item_type) = kind.strip_suffix("List")
            && depth < MAX_LISTS
        {
            let items = head
                .items
                .map(|items| serde_json::from_str::<Vec<&RawValue>>(items.get()));
            if let Some(Ok(items)) = items {
                let api_version = head.api_version.as_ref().and_then(Value::as_str);
                let item_type = (api_version.unwrap_or_default(), item_type);
                let item_type = (!item_type.1.is_empty()).then_some(item_type);
                for item in items {
                    self.json_value(text, item, item_type, depth + 1);
                }
                return;
            }
        }
        let read: Result<Value, _> = serde_json::from_str(raw.get());
        let value = read
            .map_err(|error| error.to_string())
            .and_then(|mut value| {
                let kind = value.get("kind").and_then(Value::as_str);
                if kind.is_some_and(|kind| kind.ends_with("List")) && value.get("items").is_some() {
                    return Err("it is a list whose items cannot be read".to_owned());
                }
                if let (Some((api_version, kind)), Some(fields)) =
                    (list_type, value.as_object_mut())
                {
                    fields
                        .entry("apiVersion")
                        .or_insert_with(|| api_version.into());
                    fields.entry("kind").or_insert_with(|| kind.into());
                }
                Ok(value)
            });
        self.emit(value, line);
    }

    /// Returns the line number of `part`, a slice of `text`. Must be called for the slices in the order in which they
    /// occur in `text`, since counting continues where the previous call ended.
    fn line_of(&mut self, text: &str, part: &str) -> usize {
        let offset = part.as_ptr().addr().checked_sub(text.as_ptr().addr());
        let offset = offset.unwrap_or_default();
        let (from, line) = self.line_cursor;
        let between = text.as_bytes().get(from..offset);
        let breaks = between
            .unwrap_or_default()
            .iter()
            .filter(|byte| **byte == b'\n');
        let line = line + breaks.count();
        if offset > from {
            self.line_cursor = (offset, line);
        }
        line
    }

    fn yaml(&mut self, name: String, text: String, copies: &mut Copies) {
        let source = Arc::new(SourceText::new(name, text));
        let line_of = |place: Option<Place>| place.map_or(1, |place| place.line);
        documents(&source, copies, &mut |document| match document {
            Ok(document) => {
                let line = document.place(&source, &document.node).line;
                self.emit(Ok(document.node.to_json()), line);
            }
            Err(problem) => self.emit(Err(problem.message), line_of(problem.place)),
        });
    }

    fn emit(&mut self, value: Result<Value, String>, line: usize) {
        let text = |value: &Value, field| value.get(field).is_some_and(Value::is_string);
        let is_object = |value: &Value| text(value, "apiVersion") && text(value, "kind");
        if !self.is_given && value.as_ref().is_ok_and(|value| !is_object(value)) {
            self.n_skipped += 1;
            return;
        }
        (self.each)(Item {
            value,
            place: Some((Arc::clone(&self.name), line)),
            is_file: false,
        });
    }
}
