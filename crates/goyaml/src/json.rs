//! Parses JSON like kubectl, and records spans. kubectl parses a file as JSON if it starts with `{`.
//!
//! Source: apimachinery `pkg/util/yaml/decoder.go` (`YAMLOrJSONDecoder.Decode`), Go `encoding/json`
//! (`scanner`), `sigs.k8s.io/json` (`convertNumber`).

use std::collections::BTreeMap;

use serde_json::Value;

use super::compose::insert;
use super::{Data, MAX_DEPTH, MAX_NODES, Node, Style, YamlError, scalar};

/// The result of parsing valid JSON, and the byte index after the JSON value. The result is an error if a [`Node`]
/// cannot represent this value.
pub type Read = (Result<Node, YamlError>, usize);

/// Parses the value at the byte `start` of the source. Leading whitespace is skipped. Returns `None` if only
/// whitespace follows.
///
/// # Errors
///
/// Returns an error if there is no valid JSON at `start`.
pub fn read(text: &str, start: usize) -> Result<Option<Read>, YamlError> {
    let mut reader = Reader {
        text,
        offset: start,
        n_nodes: 0,
        too_large: None,
    };
    reader.skip_white_space();
    if reader.byte().is_none() {
        return Ok(None);
    }
    match reader.value(0) {
        Ok(node) => {
            let value = match reader.too_large {
                None => Ok(node),
                Some(offset) => {
                    let message = "this number does not fit into 64 bits".to_owned();
                    Err(YamlError::new(text, offset, message))
                }
            };
            Ok(Some((value, reader.offset)))
        }
        Err(message) => Err(YamlError::new(text, reader.offset, message)),
    }
}

/// Returns the characters of a JSON string, with their byte indices in `raw`. `raw` is the source of the string,
/// including the quotation marks.
pub(super) fn characters(raw: &str) -> Vec<(char, usize)> {
    let mut reader = Reader {
        text: raw,
        offset: 0,
        n_nodes: 0,
        too_large: None,
    };
    let mut characters = Vec::new();
    // Parsing cannot fail, because the string was parsed before.
    let _ = reader.string(&mut |character, offset| characters.push((character, offset)));
    characters
}

struct Reader<'a> {
    text: &'a str,
    offset: usize,
    n_nodes: usize,
    /// Start of a number that is valid JSON but too large for a double.
    too_large: Option<usize>,
}

impl Reader<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn skip_white_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.offset += 1;
        }
    }

    /// Consumes and returns a byte, which must be `first` or `second`.
    fn one_of(&mut self, first: u8, second: u8) -> Result<u8, String> {
        self.skip_white_space();
        match self.byte() {
            Some(byte) if byte == first || byte == second => {
                self.offset += 1;
                Ok(byte)
            }
            _ => Err(format!(
                "expected `{}` or `{}`",
                char::from(first),
                char::from(second)
            )),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, String> {
        self.n_nodes += 1;
        if self.n_nodes > MAX_NODES {
            return Err(format!("more than {MAX_NODES} nodes; split the file"));
        }
        self.skip_white_space();
        let start = self.offset;
        let data = match self.byte() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => return Err(super::parse::too_deep()),
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => {
                let mut text = String::new();
                self.string(&mut |character, _| text.push(character))?;
                Data::Scalar(Value::String(text), Style::Json)
            }
            Some(b'-' | b'0'..=b'9') => Data::Scalar(self.number()?, Style::Plain),
            _ => {
                let rest = self.text.get(start..).unwrap_or_default();
                let words = [
                    ("null", Value::Null),
                    ("true", Value::Bool(true)),
                    ("false", Value::Bool(false)),
                ];
                let keyword = words.into_iter().find(|(word, _)| rest.starts_with(word));
                let (word, value) = keyword.ok_or("expected a JSON value")?;
                self.offset += word.len();
                Data::Scalar(value, Style::Plain)
            }
        };
        Ok(Node {
            span: start..self.offset,
            data,
        })
    }

    fn list(&mut self, depth: usize) -> Result<Data, String> {
        self.offset += 1;
        let mut items = Vec::new();
        self.skip_white_space();
        if self.byte() == Some(b']') {
            self.offset += 1;
            return Ok(Data::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.one_of(b',', b']')? == b']' {
                return Ok(Data::List(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Data, String> {
        self.offset += 1;
        let mut entries = BTreeMap::new();
        self.skip_white_space();
        if self.byte() == Some(b'}') {
            self.offset += 1;
            return Ok(Data::Map(entries.into()));
        }
        loop {
            self.skip_white_space();
            let start = self.offset;
            let mut name = String::new();
            self.string(&mut |character, _| name.push(character))?;
            let key = start..self.offset;
            self.one_of(b':', b':')
                .map_err(|_| "expected `:`".to_owned())?;
            let node = self.value(depth + 1)?;
            insert(&mut entries, name, key, node, false);
            if self.one_of(b',', b'}')? == b'}' {
                return Ok(Data::Map(entries.into()));
            }
        }
    }

    /// Parses a string. Calls `each` with every character and its byte index.
    fn string(&mut self, each: &mut dyn FnMut(char, usize)) -> Result<(), String> {
        if self.byte() != Some(b'"') {
            return Err("expected a name in double quotes".to_owned());
        }
        self.offset += 1;
        loop {
            let start = self.offset;
            let rest = self.text.get(start..).unwrap_or_default();
            let Some(character) = rest.chars().next() else {
                return Err("missing closing `\"`".to_owned());
            };
            self.offset += character.len_utf8();
            match character {
                '"' => return Ok(()),
                '\\' => each(self.escape()?, start),
                '\0'..' ' => {
                    self.offset = start;
                    return Err(
                        "a JSON string cannot contain control characters or line breaks".to_owned(),
                    );
                }
                other => each(other, start),
            }
        }
    }

    /// Parses an escape sequence. The backslash is already consumed.
    fn escape(&mut self) -> Result<char, String> {
        let byte = self.byte();
        self.offset += 1;
        Ok(match byte {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.code_unit()?;
                if let Some(character) = char::from_u32(high) {
                    return Ok(character);
                }
                // A surrogate pair is one character. A surrogate without its counterpart becomes U+FFFD.
                let before_low = self.offset;
                let rest = self.text.get(self.offset..).unwrap_or_default();
                if rest.starts_with("\\u") {
                    self.offset += 2;
                    let low = self.code_unit()?;
                    if (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low) {
                        let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
                    }
                }
                self.offset = before_low;
                '\u{fffd}'
            }
            _ => {
                self.offset -= 1;
                return Err("JSON does not support this escape sequence".to_owned());
            }
        })
    }

    fn code_unit(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.offset..self.offset + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.offset += 4;
        unit.ok_or_else(|| {
            self.offset -= 4;
            "expected 4 hexadecimal digits".to_owned()
        })
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.offset;
        let digits = |reader: &mut Self| {
            let from = reader.offset;
            while reader.byte().is_some_and(|byte| byte.is_ascii_digit()) {
                reader.offset += 1;
            }
            reader.offset > from
        };
        if self.byte() == Some(b'-') {
            self.offset += 1;
        }
        let starts_with_zero = self.byte() == Some(b'0');
        let mut is_valid = if starts_with_zero {
            self.offset += 1;
            true
        } else {
            digits(self)
        };
        let mut is_integer = true;
        if is_valid && self.byte() == Some(b'.') {
            self.offset += 1;
            is_integer = false;
            is_valid = digits(self);
        }
        if is_valid && matches!(self.byte(), Some(b'e' | b'E')) {
            self.offset += 1;
            is_integer = false;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.offset += 1;
            }
            is_valid = digits(self);
        }
        if !is_valid {
            return Err("expected a digit".to_owned());
        }
        let text = self.text.get(start..self.offset).unwrap_or_default();
        if is_integer && let Ok(number) = text.parse::<i64>() {
            return Ok(Value::from(number));
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.and_then(scalar::json_float);
        if number.is_none() {
            self.too_large.get_or_insert(start);
        }
        Ok(number.unwrap_or_default())
    }
}
