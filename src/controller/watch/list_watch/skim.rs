//! Reading JSON as it arrives, without keeping it: the identity of an object that is too long, and the items of a page.

use std::mem;

/// The greatest length of a string that is captured, in bytes. Names have at most 253 characters.
const MAX_STRING: usize = 512;

/// The greatest length of the parts of a page other than its items, in bytes.
const MAX_REST: usize = 1 << 20;

/// The position in JSON that arrives byte by byte.
#[derive(Debug, Default)]
struct Position {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
}

/// A byte by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A quote that opens or closes a string.
    Quote,
    /// A byte of a string.
    Text,
    /// The begin of an object or an array. The depth includes it.
    Open,
    /// The end of an object or an array. The depth excludes it.
    Close,
    /// White space.
    Space,
    /// Any other byte.
    Other,
}

impl Position {
    fn step(&mut self, byte: u8) -> Role {
        if self.is_string {
            if mem::take(&mut self.is_escaped) {
                return Role::Text;
            }
            match byte {
                b'\\' => self.is_escaped = true,
                b'"' => {
                    self.is_string = false;
                    return Role::Quote;
                }
                _ => {}
            }
            return Role::Text;
        }
        match byte {
            b'"' => {
                self.is_string = true;
                Role::Quote
            }
            b'{' | b'[' => {
                self.depth += 1;
                Role::Open
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                Role::Close
            }
            b' ' | b'\t' | b'\r' | b'\n' => Role::Space,
            _ => Role::Other,
        }
    }
}

/// The identity of an object, read from a text that is not kept.
#[derive(Debug, Default)]
pub(super) struct Skim {
    position: Position,
    /// The fields that enclose the current position, by depth.
    path: Vec<Vec<u8>>,
    /// The last string.
    string: Vec<u8>,
    /// True if the last string may be a value.
    is_value: bool,
    /// The field of the object in the text. `None` if the text is the object.
    within: Option<&'static str>,
    /// The length of the text, in bytes.
    pub(super) n_bytes: usize,
    /// The type of the event.
    pub(super) type_: Option<String>,
    /// The name of the object.
    pub(super) name: Option<String>,
    /// The namespace of the object.
    pub(super) namespace: Option<String>,
    /// The resource version of the object.
    pub(super) version: Option<String>,
}

impl Skim {
    /// Reads an object, or the object in the field `within`.
    pub(super) fn new(within: Option<&'static str>) -> Self {
        Self {
            within,
            ..Self::default()
        }
    }

    /// Reads more of the text.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.n_bytes = self.n_bytes.saturating_add(bytes.len());
        // Fields of deeper objects are not read.
        let max_depth = 2 + usize::from(self.within.is_some());
        for &byte in bytes {
            match self.position.step(byte) {
                Role::Quote if self.position.is_string => {
                    self.string.clear();
                    self.is_value = false;
                }
                Role::Quote => self.is_value = true,
                Role::Text => {
                    if self.position.depth <= max_depth && self.string.len() <= MAX_STRING {
                        self.string.push(byte);
                    }
                }
                Role::Open => {
                    self.is_value = false;
                    if self.position.depth <= max_depth {
                        self.path.resize(self.position.depth, Vec::new());
                        if let Some(field) = self.path.last_mut() {
                            field.clear();
                        }
                    }
                }
                Role::Close => {
                    self.value(self.position.depth + 1);
                    self.path.truncate(self.position.depth);
                }
                Role::Other if byte == b':' => {
                    self.is_value = false;
                    if self.position.depth == self.path.len()
                        && let Some(field) = self.path.last_mut()
                    {
                        field.clone_from(&self.string);
                    }
                }
                Role::Other if byte == b',' => self.value(self.position.depth),
                Role::Other | Role::Space => {}
            }
        }
    }

    /// Notes a string that is the value of the current field.
    fn value(&mut self, depth: usize) {
        if !mem::take(&mut self.is_value)
            || depth != self.path.len()
            || self.string.len() > MAX_STRING
        {
            return;
        }
        let mut path: Vec<&[u8]> = self.path.iter().map(Vec::as_slice).collect();
        if let Some(within) = self.within {
            if path == [b"type".as_slice()] {
                self.type_ = text(&self.string);
                return;
            }
            if path.first() != Some(&within.as_bytes()) {
                return;
            }
            path.remove(0);
        }
        let field = match path.as_slice() {
            [b"metadata", b"name"] => &mut self.name,
            [b"metadata", b"namespace"] => &mut self.namespace,
            [b"metadata", b"resourceVersion"] => &mut self.version,
            _ => return,
        };
        *field = text(&self.string);
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// An item of a page.
#[derive(Debug)]
pub(super) enum Item {
    /// Its text.
    Whole(Vec<u8>),
    /// Its identity, if it is too long.
    TooLong(Box<Skim>),
}

/// Splits a page of a list into items as it arrives: no more than one item is in memory.
#[derive(Debug)]
pub(super) struct Splitter {
    position: Position,
    /// The last string of the list itself.
    key: Vec<u8>,
    is_in_items: bool,
    item: Vec<u8>,
    skim: Option<Box<Skim>>,
    /// The greatest length of an item, in bytes.
    max_item: usize,
    /// The page without its items.
    rest: Vec<u8>,
}

impl Splitter {
    /// Splits a page whose items have at most `max_item` bytes.
    pub(super) fn new(max_item: usize) -> Self {
        Self {
            position: Position::default(),
            key: Vec::new(),
            is_in_items: false,
            item: Vec::new(),
            skim: None,
            max_item,
            rest: Vec::new(),
        }
    }

    /// Reads more of the page. Returns false if it is no list.
    pub(super) fn feed(&mut self, bytes: &[u8], mut emit: impl FnMut(Item)) -> bool {
        for &byte in bytes {
            let role = self.position.step(byte);
            let depth = self.position.depth;
            if self.is_in_items {
                match role {
                    Role::Close if depth < 2 => {
                        self.end_item(&mut emit);
                        self.is_in_items = false;
                        self.rest.push(byte);
                    }
                    Role::Other if depth == 2 && byte == b',' => self.end_item(&mut emit),
                    Role::Space if depth == 2 => {}
                    _ => self.push(byte),
                }
                continue;
            }
            match role {
                Role::Quote if self.position.is_string => self.key.clear(),
                Role::Text if depth == 1 && self.key.len() <= MAX_STRING => self.key.push(byte),
                Role::Open if depth == 2 && byte == b'[' && self.key == b"items" => {
                    self.is_in_items = true;
                }
                _ => {}
            }
            self.rest.push(byte);
            if self.rest.len() > MAX_REST {
                return false;
            }
        }
        true
    }

    /// Returns the page without its items.
    pub(super) fn rest(&self) -> &[u8] {
        &self.rest
    }

    fn push(&mut self, byte: u8) {
        if let Some(skim) = &mut self.skim {
            skim.feed(&[byte]);
            return;
        }
        self.item.push(byte);
        if self.item.len() > self.max_item {
            let mut skim = Box::new(Skim::new(None));
            skim.feed(&mem::take(&mut self.item));
            self.skim = Some(skim);
        }
    }

    fn end_item(&mut self, emit: &mut impl FnMut(Item)) {
        if let Some(skim) = self.skim.take() {
            emit(Item::TooLong(skim));
        } else if !self.item.is_empty() {
            emit(Item::Whole(mem::take(&mut self.item)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text in pieces of each size.
    #[track_caller]
    fn check_skim(text: &str, within: Option<&'static str>, expected: [Option<&str>; 4]) {
        for size in [1, 2, 7, text.len()] {
            let mut skim = Skim::new(within);
            text.as_bytes()
                .chunks(size)
                .for_each(|bytes| skim.feed(bytes));
            let found = [&skim.type_, &skim.name, &skim.namespace, &skim.version];
            assert_eq!(found.map(Option::as_deref), expected, "{text}");
        }
    }

    #[test]
    fn skim_event_reads_identity_in_any_order() {
        let text = r#"{"object":{"spec":{"name":"x","metadata":{"name":"y"}},"a":["name",{"metadata":{"name":"z"}}],
            "metadata":{"annotations":{"name":"q\"}"},"name": "n","labels":{},"resourceVersion":"7","namespace":"s"}},
            "type":"ADDED"}"#;
        let expected = [Some("ADDED"), Some("n"), Some("s"), Some("7")];
        check_skim(text, Some("object"), expected);
    }

    #[test]
    fn skim_object_ignores_other_fields() {
        check_skim(
            r#"{"metadata":{"name":"n","uid":{"name":"x"}},"name":"y"}"#,
            None,
            [None, Some("n"), None, None],
        );
        check_skim(r#"["metadata","name"]"#, None, [None; 4]);
        check_skim("}}]]\"", None, [None; 4]);
        check_skim(
            &format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "n".repeat(600)),
            None,
            [None; 4],
        );
    }

    fn split(text: &str, size: usize, max_item: usize) -> (Vec<String>, String) {
        let mut splitter = Splitter::new(max_item);
        let mut items = Vec::new();
        for bytes in text.as_bytes().chunks(size) {
            assert!(splitter.feed(bytes, |item| items.push(match item {
                Item::Whole(bytes) => String::from_utf8(bytes).unwrap(),
                Item::TooLong(skim) => format!("{} bytes: {:?}", skim.n_bytes, skim.name),
            })));
        }
        let rest = String::from_utf8(splitter.rest().to_vec()).unwrap();
        (items, rest)
    }

    #[test]
    fn splitter_emits_items_one_by_one() {
        let text = r#"{"kind":"items","items": [ {"a":[1,"]}"]} ,null, {"metadata":{"name":"long"},"x":"yyyyyyyyyyy"},{}],
            "metadata":{"continue":"c","items":[1]}}"#;
        for size in [1, 3, text.len()] {
            let (items, rest) = split(text, size, 20);
            assert_eq!(
                items,
                [
                    r#"{"a":[1,"]}"]}"#,
                    "null",
                    "46 bytes: Some(\"long\")",
                    "{}"
                ]
            );
            let rest: serde_json::Value = serde_json::from_str(&rest).unwrap();
            assert_eq!(rest["items"], serde_json::json!([]));
            assert_eq!(rest["metadata"]["items"], serde_json::json!([1]));
        }
    }

    #[test]
    fn splitter_rejects_endless_text() {
        let mut splitter = Splitter::new(10);
        assert!(!splitter.feed(&vec![b'x'; MAX_REST + 1], |_| ()));
        let (items, rest) = split("<html>[{}]</html>", 4, 10);
        assert_eq!((items.len(), &*rest), (0, "<html>[{}]</html>"));
    }
}
