//! Reads the identity of the object in a watch event that is too long. The JSON of the event is not stored.

use std::mem;

/// The maximum length of a string that is stored, in bytes. Names have at most 253 characters.
const MAX_STRING: usize = 512;

/// The nesting depth of the fields in `object.metadata`.
const METADATA_DEPTH: usize = 3;

/// The position of a tokenizer, which receives JSON byte by byte.
#[derive(Debug, Default)]
struct Position {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
}

/// The role of a byte in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A quote that opens or closes a string.
    Quote,
    /// A byte inside a string.
    Text,
    /// The start of an object or array, after the depth was incremented.
    Open,
    /// The end of an object or array, after the depth was decremented.
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

/// The type of a watch event, and the identity of its object.
#[derive(Debug, Default)]
pub(super) struct Skim {
    position: Position,
    /// The names of the fields that enclose the current position, by depth.
    path: Vec<Vec<u8>>,
    string: Vec<u8>,
    /// True if the last string may be a value. False if it is a field name.
    is_value: bool,
    pub(super) n_bytes: usize,
    pub(super) type_: Option<String>,
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) version: Option<String>,
}

impl Skim {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.n_bytes = self.n_bytes.saturating_add(bytes.len());
        for &byte in bytes {
            match self.position.step(byte) {
                Role::Quote if self.position.is_string => {
                    self.string.clear();
                    self.is_value = false;
                }
                Role::Quote => self.is_value = true,
                Role::Text => {
                    if self.position.depth <= METADATA_DEPTH && self.string.len() <= MAX_STRING {
                        self.string.push(byte);
                    }
                }
                Role::Open => {
                    self.is_value = false;
                    if self.position.depth <= METADATA_DEPTH {
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

    /// Stores the last string if it is the value of a relevant field.
    fn value(&mut self, depth: usize) {
        if !mem::take(&mut self.is_value)
            || depth != self.path.len()
            || self.string.len() > MAX_STRING
        {
            return;
        }
        let path: Vec<&[u8]> = self.path.iter().map(Vec::as_slice).collect();
        let field = match path.as_slice() {
            [b"type"] => &mut self.type_,
            [b"object", b"metadata", b"name"] => &mut self.name,
            [b"object", b"metadata", b"namespace"] => &mut self.namespace,
            [b"object", b"metadata", b"resourceVersion"] => &mut self.version,
            _ => return,
        };
        *field = text(&self.string);
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` in chunks of several sizes, and compares the results with `expected`.
    #[track_caller]
    fn check_skim(text: &str, expected: [Option<&str>; 4]) {
        for size in [1, 2, 7, text.len()] {
            let mut skim = Skim::default();
            text.as_bytes()
                .chunks(size)
                .for_each(|bytes| skim.feed(bytes));
            let fields = [&skim.type_, &skim.name, &skim.namespace, &skim.version];
            assert_eq!(fields.map(Option::as_deref), expected, "{text}");
        }
    }

    #[test]
    fn identity_is_found_in_any_field_order() {
        let text = r#"{"object":{"spec":{"name":"x","metadata":{"name":"y"}},"a":["name",{"metadata":{"name":"z"}}],
            "metadata":{"annotations":{"name":"q\"}"},"name": "n","labels":{},"resourceVersion":"7","namespace":"s"}},
            "type":"ADDED"}"#;
        let expected = [Some("ADDED"), Some("n"), Some("s"), Some("7")];
        check_skim(text, expected);
    }

    #[test]
    fn skim_ignores_fields_at_other_paths_and_long_values() {
        let text = r#"{"object":{"metadata":{"name":"n","uid":{"name":"x"}},"name":"y"}}"#;
        check_skim(text, [None, Some("n"), None, None]);
        check_skim(r#"["type","name"]"#, [None; 4]);
        check_skim("}}]]\"", [None; 4]);
        let long = "n".repeat(600);
        let text = format!(r#"{{"object":{{"metadata":{{"name":"{long}"}}}}}}"#);
        check_skim(&text, [None; 4]);
    }
}
