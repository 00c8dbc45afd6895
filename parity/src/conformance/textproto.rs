//! A parser of protobuf's text format that needs no schema. The conformance tests are in this format.
//!
//! The parser converts a string to a [`Message`], which consists of named fields in order. The value of a field is a
//! message or an uninterpreted scalar. Callers check the names and types of fields.
//!
//! Source: the specification of the text format, protobuf.dev `reference/protobuf/textformat-spec`.

use anyhow::{Context as _, Result, bail};

const MAX_DEPTH: u32 = 100;

/// A message. The fields are in order. A repeated field occurs more than once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    fields: Vec<(String, Value)>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A message.
    Message(Message),
    /// The content of a quoted string. Without a schema, the parser cannot distinguish `string` and `bytes`.
    Bytes(Vec<u8>),
    /// The source of an unquoted scalar with its sign: a number, the name of an enum value, `true` or `inf`.
    Word(String),
}

impl Message {
    /// Parses the fields of a message.
    ///
    /// # Errors
    /// Returns an error with the line number if the string is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader {
            rest: text,
            line: 1,
        };
        let message = reader.fields(None, MAX_DEPTH);
        message.with_context(|| format!("line {}", reader.line))
    }

    /// Returns all fields with their names, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    /// Returns all values of the field `name`.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Value> {
        self.fields()
            .filter(move |(field, _)| *field == name)
            .map(|(_, value)| value)
    }

    /// Returns all messages in the field `name`.
    ///
    /// # Errors
    /// Returns an error if a value is not a message.
    pub fn messages(&self, name: &str) -> Result<Vec<&Message>> {
        self.all(name)
            .map(|value| match value {
                Value::Message(message) => Ok(message),
                Value::Bytes(_) | Value::Word(_) => bail!("`{name}` is not a message"),
            })
            .collect()
    }

    /// Returns the last message in the field `name`. Returns `None` if the field is not set.
    ///
    /// # Errors
    /// Returns an error if a value is not a message.
    pub fn message(&self, name: &str) -> Result<Option<&Message>> {
        Ok(self.messages(name)?.pop())
    }

    /// Returns the string in the field `name`. Returns an empty string if the field is not set.
    ///
    /// # Errors
    /// Returns an error if the value is not a UTF-8 string.
    pub fn text(&self, name: &str) -> Result<String> {
        match self.all(name).last() {
            None => Ok(String::new()),
            Some(value) => value.text().with_context(|| format!("`{name}`")),
        }
    }

    /// Returns true if the field `name` is set to true.
    ///
    /// # Errors
    /// Returns an error if the value is not a boolean.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.all(name).last() {
            None => Ok(false),
            Some(value) => value.flag().with_context(|| format!("`{name}`")),
        }
    }
}

impl Value {
    /// Returns the value of a field of the type `string`.
    ///
    /// # Errors
    /// Returns an error if the value is not a string or not UTF-8.
    pub fn text(&self) -> Result<String> {
        match self {
            Self::Bytes(bytes) => Ok(String::from_utf8(bytes.clone())?),
            Self::Message(_) | Self::Word(_) => bail!("not a string: {self:?}"),
        }
    }

    /// Returns the source of a number or of a name.
    ///
    /// # Errors
    /// Returns an error if the value is neither a number nor a name.
    pub fn word(&self) -> Result<&str> {
        match self {
            Self::Word(word) => Ok(word),
            Self::Message(_) | Self::Bytes(_) => bail!("neither a number nor a name: {self:?}"),
        }
    }

    /// Returns the value of a field of the type `bool`.
    ///
    /// # Errors
    /// Returns an error if the value is not a boolean.
    pub fn flag(&self) -> Result<bool> {
        match self.word()? {
            "true" | "True" | "t" | "1" => Ok(true),
            "false" | "False" | "f" | "0" => Ok(false),
            other => bail!("not a boolean: {other}"),
        }
    }

    /// Returns the value of an integer field. The notation may be decimal, octal or hexadecimal.
    ///
    /// # Errors
    /// Returns an error if the value is not an integer.
    pub fn integer(&self) -> Result<i128> {
        let word = self.word()?;
        let (sign, digits) = match word.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, word),
        };
        let magnitude = if let Some(hex) = digits
            .strip_prefix("0x")
            .or_else(|| digits.strip_prefix("0X"))
        {
            i128::from_str_radix(hex, 16)
        } else if digits.len() > 1 && digits.starts_with('0') {
            i128::from_str_radix(digits, 8)
        } else {
            digits.parse()
        };
        Ok(sign * magnitude.with_context(|| format!("integer {word}"))?)
    }

    /// Returns the value of a field of the type `double`.
    ///
    /// # Errors
    /// Returns an error if the value is not a number.
    pub fn double(&self) -> Result<f64> {
        let word = self.word()?.to_ascii_lowercase();
        let is_float = !matches!(word.trim_start_matches('-'), "inf" | "infinity" | "nan");
        let digits = if is_float {
            word.trim_end_matches('f')
        } else {
            &word
        };
        digits.parse().with_context(|| format!("number {word}"))
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl Reader<'_> {
    /// Parses fields up to and including the character `end`. If `end` is `None`, parses up to the end of the input.
    fn fields(&mut self, end: Option<char>, depth: u32) -> Result<Message> {
        let depth = depth.checked_sub(1).context("nested too deeply")?;
        let mut message = Message::default();
        loop {
            self.space();
            match self.peek() {
                None if end.is_none() => return Ok(message),
                None => bail!("a message is not terminated"),
                next if next == end => {
                    self.take();
                    return Ok(message);
                }
                Some(',' | ';') => {
                    self.take();
                }
                Some('[') => {
                    let name = self.extension_name()?;
                    self.values(&name, &mut message, depth)?;
                }
                Some(_) => {
                    let name = self.word()?;
                    self.values(&name, &mut message, depth)?;
                }
            }
        }
    }

    /// Parses the name of an extension or of the type of an `Any`, and the closing bracket after it.
    fn extension_name(&mut self) -> Result<String> {
        self.take();
        let mut name = String::new();
        loop {
            match self
                .take()
                .context("the name of an extension is not terminated")?
            {
                ']' => return Ok(name),
                c if c.is_whitespace() => {}
                c => name.push(c),
            }
        }
    }

    /// Parses the value after a field name, or several values in brackets. Adds them to `message`.
    fn values(&mut self, name: &str, message: &mut Message, depth: u32) -> Result<()> {
        self.space();
        if self.peek() == Some(':') {
            self.take();
            self.space();
        }
        if self.peek() != Some('[') {
            let value = self.value(depth)?;
            message.fields.push((name.to_owned(), value));
            return Ok(());
        }
        self.take();
        loop {
            self.space();
            match self.peek() {
                None => bail!("a list is not terminated"),
                Some(']') => {
                    self.take();
                    return Ok(());
                }
                Some(',') => {
                    self.take();
                }
                Some(_) => {
                    let value = self.value(depth)?;
                    message.fields.push((name.to_owned(), value));
                }
            }
        }
    }

    fn value(&mut self, depth: u32) -> Result<Value> {
        match self.peek() {
            Some('{') => {
                self.take();
                Ok(Value::Message(self.fields(Some('}'), depth)?))
            }
            Some('<') => {
                self.take();
                Ok(Value::Message(self.fields(Some('>'), depth)?))
            }
            Some('"' | '\'') => self.strings(),
            _ => Ok(Value::Word(self.word()?)),
        }
    }

    fn word(&mut self) -> Result<String> {
        let mut word = String::new();
        if self.peek() == Some('-') {
            self.take();
            self.space();
            word.push('-');
        }
        while let Some(c) = self.peek() {
            let is_exponent_sign = matches!(c, '+' | '-') && word.ends_with(['e', 'E']);
            if !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.') || is_exponent_sign) {
                break;
            }
            self.take();
            word.push(c);
        }
        if word.is_empty() || word == "-" {
            bail!("a name or a number is missing before {:?}", self.peek());
        }
        Ok(word)
    }

    /// Parses one or more adjacent strings and concatenates them.
    fn strings(&mut self) -> Result<Value> {
        let mut bytes = Vec::new();
        while let Some(quote @ ('"' | '\'')) = self.peek() {
            self.take();
            loop {
                match self.take().context("a string is not terminated")? {
                    c if c == quote => break,
                    '\n' => bail!("a string is not terminated"),
                    '\\' => self.escape(&mut bytes)?,
                    c => push_char(c, &mut bytes),
                }
            }
            self.space();
        }
        Ok(Value::Bytes(bytes))
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let c = self
            .take()
            .context("an escape sequence is not terminated")?;
        match c {
            'a' => bytes.push(0x07),
            'b' => bytes.push(0x08),
            'f' => bytes.push(0x0c),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(0x0b),
            '?' | '\\' | '\'' | '"' => push_char(c, bytes),
            'x' | 'X' => {
                let value = self.digits(16, 2, 0)?;
                bytes.push(u8::try_from(value)?);
            }
            'u' => self.code_point(4, bytes)?,
            'U' => self.code_point(8, bytes)?,
            '0'..='7' => {
                let first = c.to_digit(8).unwrap_or_default();
                let value = self.digits(8, 2, first)?;
                bytes.push(u8::try_from(value)?);
            }
            other => bail!("unknown escape \\{other}"),
        }
        Ok(())
    }

    fn code_point(&mut self, n_digits: u32, bytes: &mut Vec<u8>) -> Result<()> {
        let value = self.digits(16, n_digits, 0)?;
        let c = char::from_u32(value).with_context(|| format!("code point {value:#x}"))?;
        push_char(c, bytes);
        Ok(())
    }

    /// Parses at most `most` more digits of a number. `first` is the value of the digits that were already parsed.
    fn digits(&mut self, radix: u32, most: u32, first: u32) -> Result<u32> {
        let mut value = first;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.take();
            let next = value
                .checked_mul(radix)
                .and_then(|value| value.checked_add(digit));
            value = next.context("the value of an escape sequence is too large")?;
        }
        Ok(value)
    }

    fn space(&mut self) {
        while let Some(c) = self.peek() {
            if c == '#' {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.take();
                }
            } else if c.is_whitespace() {
                self.take();
            } else {
                return;
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }
}

fn push_char(c: char, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parse(text: &str) -> Message {
        Message::parse(text).unwrap()
    }

    #[test]
    fn nested_messages_of_text_proto_are_parsed_with_and_without_colon() {
        let message = parse("a { b: 1 } # c\na: < b: 2, b: [3, -4]; >");
        let values: Vec<i128> = message
            .messages("a")
            .unwrap()
            .iter()
            .flat_map(|a| a.all("b").map(|b| b.integer().unwrap()))
            .collect();
        assert_eq!(values, [1, 2, 3, -4]);
    }

    #[test]
    fn strings_are_concatenated_and_unescaped() {
        let message = parse(r#"s: "a\x41\101" 'b"' "\u00e9\?\n" b: '\377\0'"#);
        assert_eq!(message.text("s").unwrap(), "aAAb\"\u{e9}?\n");
        assert_eq!(
            message.all("b").next(),
            Some(&Value::Bytes(vec![0xff, 0x00]))
        );
        assert!(message.text("b").is_err());
    }

    #[test]
    fn numbers_in_all_notations_are_parsed() {
        let message = parse("a: 1e-5 b: -inf c: nan d: 0x1F e: -017 f: 1.5f");
        let value = |name| message.all(name).next().unwrap();
        assert!((value("a").double().unwrap() - 1e-5).abs() < f64::EPSILON);
        assert!(value("b").double().unwrap() < f64::MIN);
        assert!(value("c").double().unwrap().is_nan());
        assert_eq!(value("d").integer().unwrap(), 31);
        assert_eq!(value("e").integer().unwrap(), -15);
        assert!((value("f").double().unwrap() - 1.5).abs() < f64::EPSILON);
    }

    #[test]
    fn extension_names_in_brackets_are_parsed() {
        let message = parse("[type.googleapis.com/a.B] { c: 1 }");
        assert_eq!(
            message.fields().next().unwrap().0,
            "type.googleapis.com/a.B"
        );
    }

    #[test]
    fn malformed_text_proto_is_an_error_with_line() {
        for text in ["a {", "a: 'b", "a: ", "\n\na: [1", "a: '\\q'", "}"] {
            assert!(Message::parse(text).is_err(), "{text:?}");
        }
        let error = Message::parse("\n\na: ]").unwrap_err();
        assert_eq!(error.to_string(), "line 3");
        let deep = "a {".repeat(100_000);
        assert!(Message::parse(&deep).is_err());
    }
}
