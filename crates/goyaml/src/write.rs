//! Writes values as YAML, in the style of `kubectl get -o yaml`.
//!
//! A string is quoted if a YAML 1.1 or 1.2 parser would not read the plain scalar as a string. All parsers therefore
//! return the same values.
//!
//! Source: libyaml `emitter.c` (`yaml_emitter_analyze_scalar`, `yaml_emitter_select_scalar_style`,
//! `yaml_emitter_write_literal_scalar`, `yaml_emitter_write_double_quoted_scalar`).

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};

use super::scalar::{Scalar, resolve};

/// Number of spaces by which nested maps and the lines of block scalars are indented.
const INDENT: usize = 2;

/// Maximum length of a key without `?`, in bytes.
const MAX_SIMPLE_KEY: usize = 128;

/// Writes `value` as a YAML document. In strings, each character for which `is_escaped` returns true is written as an
/// escape sequence. `is_escaped` is called only for printable characters below U+10000.
///
/// # Errors
/// Returns an error if `value` cannot be serialized, for example because a key is not a string.
pub fn to_string(
    value: &impl Serialize,
    is_escaped: fn(char) -> bool,
) -> Result<String, serde_json::Error> {
    let style = Style {
        is_escaped,
        containers: Vec::new(),
        position: Position::Inline,
        string: None,
        is_line_start: true,
    };
    let mut out = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, style))?;
    if out.last() != Some(&b'\n') {
        out.push(b'\n');
    }
    String::from_utf8(out).map_err(serde::ser::Error::custom)
}

/// The position of the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// At the start of the document, or after `- `, `? ` or `: `. A map or list starts on this line.
    Inline,
    /// The value is a key.
    Key,
    /// After `KEY:`. A map or list starts on the next line.
    AfterKey,
}

/// A list or map whose items are being written.
#[derive(Clone, Copy, Debug)]
struct Container {
    position: Position,
    indent: usize,
    is_empty: bool,
    /// True if the last key was written after `?`.
    has_complex_key: bool,
}

/// A formatter with which the JSON serializer writes YAML.
#[derive(Debug)]
struct Style {
    is_escaped: fn(char) -> bool,
    containers: Vec<Container>,
    position: Position,
    /// The string that is being serialized.
    string: Option<String>,
    is_line_start: bool,
}

impl Style {
    fn put<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        if !text.is_empty() {
            self.is_line_start = text.ends_with('\n');
        }
        out.write_all(text.as_bytes())
    }

    /// Returns the number of spaces before the items of the current container.
    fn indent(&self) -> Option<usize> {
        self.containers.last().map(|container| container.indent)
    }

    fn new_line<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if !self.is_line_start {
            self.put(out, "\n")?;
        }
        let indent = self.indent().unwrap_or_default();
        self.put(out, &" ".repeat(indent))
    }

    /// Writes `text`, a scalar that already contains its quotes and escape sequences.
    fn scalar<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        if self.position == Position::AfterKey {
            self.put(out, " ")?;
        }
        self.put(out, text)
    }

    /// Writes a number or boolean. If it is a key, appends it to `string` instead.
    fn plain<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        match &mut self.string {
            Some(string) => {
                string.push_str(text);
                Ok(())
            }
            None => self.scalar(out, text),
        }
    }

    fn begin(&mut self, is_list: bool) {
        let indent = match (self.indent(), self.position) {
            (None, _) => 0,
            (Some(indent), Position::AfterKey) if is_list => indent,
            (Some(indent), _) => indent + INDENT,
        };
        self.containers.push(Container {
            position: self.position,
            indent,
            is_empty: true,
            has_complex_key: false,
        });
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, empty: &str) -> io::Result<()> {
        match self.containers.pop() {
            Some(container) if container.is_empty => {
                self.position = container.position;
                self.scalar(out, empty)
            }
            _ => Ok(()),
        }
    }

    fn begin_item<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let Some(container) = self.containers.last_mut() else {
            return Ok(());
        };
        let is_inline = container.is_empty && container.position == Position::Inline;
        container.is_empty = false;
        if is_inline {
            return Ok(());
        }
        self.new_line(out)
    }

    fn end_key<W: ?Sized + Write>(&mut self, out: &mut W, key: &str) -> io::Result<()> {
        let is_complex = key.len() > MAX_SIMPLE_KEY || key.contains(is_break);
        if let Some(container) = self.containers.last_mut() {
            container.has_complex_key = is_complex;
        }
        if !is_complex {
            let text = in_one_line(key, self.is_escaped);
            return self.put(out, &text);
        }
        self.put(out, "? ")?;
        let text = self.in_any_style(key);
        self.put(out, &text)
    }

    fn in_any_style(&self, text: &str) -> String {
        let indent = self.indent().map_or(INDENT, |indent| indent + INDENT);
        literal(text, indent, self.is_escaped).unwrap_or_else(|| in_one_line(text, self.is_escaped))
    }
}

/// Implements the methods that write numbers and booleans.
macro_rules! plain {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method<W: ?Sized + Write>(&mut self, out: &mut W, value: $type) -> io::Result<()> {
            self.plain(out, &value.to_string())
        })*
    };
}

impl Formatter for Style {
    plain! {
        write_bool: bool, write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128, write_u8: u8,
        write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128, write_number_str: &str,
    }

    fn write_f32<W: ?Sized + Write>(&mut self, out: &mut W, value: f32) -> io::Result<()> {
        self.plain(out, &serde_json::to_string(&value)?)
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        self.plain(out, &serde_json::to_string(&value)?)
    }

    fn write_null<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.scalar(out, "null")
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, out: &mut W, json: &str) -> io::Result<()> {
        // JSON is valid YAML.
        self.scalar(out, json)
    }

    fn begin_string<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.string = Some(String::new());
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        _: &mut W,
        text: &str,
    ) -> io::Result<()> {
        if let Some(string) = &mut self.string {
            string.push_str(text);
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        _: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        if let Some(string) = &mut self.string {
            string.push(match escape {
                CharEscape::Quote => '"',
                CharEscape::ReverseSolidus => '\\',
                CharEscape::Solidus => '/',
                CharEscape::Backspace => '\u{8}',
                CharEscape::FormFeed => '\u{c}',
                CharEscape::LineFeed => '\n',
                CharEscape::CarriageReturn => '\r',
                CharEscape::Tab => '\t',
                CharEscape::AsciiControl(byte) => char::from(byte),
            });
        }
        Ok(())
    }

    fn end_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let string = self.string.take().unwrap_or_default();
        if self.position == Position::Key {
            return self.end_key(out, &string);
        }
        let text = self.in_any_style(&string);
        self.scalar(out, &text)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.begin(true);
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, "[]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, _: bool) -> io::Result<()> {
        self.begin_item(out)?;
        self.position = Position::Inline;
        self.put(out, "- ")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.begin(false);
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, "{}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, _: bool) -> io::Result<()> {
        self.begin_item(out)?;
        self.position = Position::Key;
        Ok(())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        if self
            .containers
            .last()
            .is_some_and(|container| container.has_complex_key)
        {
            self.new_line(out)?;
            self.position = Position::Inline;
            return self.put(out, ": ");
        }
        self.position = Position::AfterKey;
        self.put(out, ":")
    }
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns true if the character is not a line break and needs no escape sequence.
fn is_printable(character: char) -> bool {
    matches!(character,
        ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
            | '\u{10000}'..
    )
}

/// Returns the string as a literal block (`|`). Returns `None` if it has only one line or needs quotes.
fn literal(text: &str, indent: usize, is_escaped: fn(char) -> bool) -> Option<String> {
    let is_readable = |c: char| c == '\n' || is_printable(c) && !is_escaped(c);
    if !text.contains('\n')
        || !text.chars().all(is_readable)
        || text.contains(" \n")
        || text.ends_with(' ')
    {
        return None;
    }
    let mut out = String::from("|");
    if text.starts_with([' ', '\n']) {
        let _ = write!(out, "{INDENT}");
    }
    if !text.ends_with('\n') {
        out.push('-');
    } else if text == "\n" || text.ends_with("\n\n") {
        out.push('+');
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            let _ = write!(out, "{:indent$}{line}", "");
        }
    }
    if text.ends_with('\n') {
        out.push('\n');
    }
    Some(out)
}

/// Returns the string as a scalar on one line, with quotes if it needs them.
fn in_one_line(text: &str, is_escaped: fn(char) -> bool) -> String {
    if !text.chars().all(|c| is_printable(c) && !is_escaped(c)) {
        return double_quoted(text, is_escaped);
    }
    // An unquoted key `<<` would merge maps.
    let is_string = text != "<<" && matches!(resolve(text), Scalar::Text(_));
    if is_string && is_plain(text) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns true if YAML parsers do not read any part of the unquoted string as syntax.
fn is_plain(text: &str) -> bool {
    let has_indicator = text.starts_with([
        '#', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`',
    ]) || matches!(text, "-" | "?")
        || ["---", "...", "- ", "? "]
            .iter()
            .any(|mark| text.starts_with(mark));
    !has_indicator
        && !text.starts_with(' ')
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
}

fn double_quoted(text: &str, is_escaped: fn(char) -> bool) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        let code = u32::from(character);
        let short = match character {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' | '\\' => character,
            '\u{85}' => 'N',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ if !is_printable(character) => {
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02X}"),
                    0x100..=0xffff => write!(out, "\\u{code:04X}"),
                    _ => write!(out, "\\U{code:08X}"),
                };
                continue;
            }
            _ if is_escaped(character) => {
                let _ = write!(out, "\\u{code:04x}");
                continue;
            }
            _ => {
                out.push(character);
                continue;
            }
        };
        out.push('\\');
        out.push(short);
    }
    out.push('"');
    out
}
