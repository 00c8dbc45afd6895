//! Places in files: lines and columns of bytes, and of the code points of a text that is written as a
//! YAML scalar.

use std::ops::Range;

use super::yaml::Style;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in code points, from 1.
    pub column: usize,
}

impl Place {
    /// The beginning of a file.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// The text of a file, by lines.
#[derive(Debug)]
pub struct SourceText {
    /// The name, as its path was given or found; `<stdin>` for standard input.
    pub name: String,
    text: String,
    line_starts: Vec<usize>,
    /// Then a byte is a column.
    is_ascii: bool,
}

impl SourceText {
    /// Indexes `text`.
    #[must_use]
    pub fn new(name: String, text: String) -> Self {
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let is_ascii = text.is_ascii();
        Self {
            name,
            text,
            line_starts,
            is_ascii,
        }
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place of the byte `byte`; what is beyond the end is at the end.
    #[must_use]
    pub fn place(&self, byte: usize) -> Place {
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let start = line
            .checked_sub(1)
            .and_then(|idx| self.line_starts.get(idx))
            .copied()
            .unwrap_or(0);
        let n_before = if self.is_ascii {
            byte.min(self.text.len()).saturating_sub(start)
        } else {
            let before = self.text.get(start..byte).unwrap_or_default();
            before.chars().count()
        };
        Place {
            line: line.max(1),
            column: n_before + 1,
        }
    }

    /// The line `line`, from 1, without its line break.
    #[must_use]
    pub fn line(&self, line: usize) -> &str {
        let start = line
            .checked_sub(1)
            .and_then(|idx| self.line_starts.get(idx));
        let rest = start.and_then(|start| self.text.get(*start..));
        rest.and_then(|rest| rest.lines().next())
            .unwrap_or_default()
    }
}

/// Whether YAML may fold, strip or add the character.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// The byte of `raw`, a scalar as it is written, at which the code point `offset` of its text `value`
/// stands; a blank is behind the character before it.
///
/// White space is what YAML changes: it folds lines, strips indents, chomps ends. All other characters
/// are in the value as they are written, one by one, escapes aside. `None` where the two do not match
/// after all.
#[must_use]
pub fn locate(raw: &str, style: Style, value: &str, offset: usize) -> Option<usize> {
    let written = written(raw, style)?;
    let mut solid = written.iter();
    let mut last = None;
    let mut n_blanks = 0;
    for character in value.chars().take(offset) {
        if is_blank(character) {
            n_blanks += 1;
            continue;
        }
        let (found, bytes) = solid.next()?;
        if *found != character {
            return None;
        }
        last = Some(bytes.end);
        n_blanks = 0;
    }
    match (value.chars().nth(offset), last) {
        (Some(character), _) if !is_blank(character) => {
            let (found, bytes) = solid.next()?;
            (*found == character).then_some(bytes.start)
        }
        // Between blanks and at the end: as far behind the last character as its line goes.
        (_, Some(end)) => {
            let blanks = raw.get(end..)?.chars().take(n_blanks);
            let same_line = blanks.take_while(|c| matches!(c, ' ' | '\t')).count();
            Some(end + same_line)
        }
        (_, None) => Some(written.first().map_or(0, |(_, bytes)| bytes.start)),
    }
}

/// The characters of a scalar that are not blank, with their bytes.
fn written(raw: &str, style: Style) -> Option<Vec<(char, Range<usize>)>> {
    let solid = |from: usize, text: &str| {
        text.char_indices()
            .filter(|(_, character)| !is_blank(*character))
            .map(|(at, character)| (character, from + at..from + at + character.len_utf8()))
            .collect::<Vec<_>>()
    };
    match style {
        // The place of a block is that of its content, without the indicator.
        Style::Plain | Style::Block => Some(solid(0, raw)),
        Style::SingleQuoted => {
            let mut found = solid(1, raw.strip_prefix('\'')?.strip_suffix('\'')?);
            let mut is_escape = false;
            found.retain(|(character, _)| {
                is_escape = *character == '\'' && !is_escape;
                !is_escape
            });
            Some(found)
        }
        Style::DoubleQuoted => double_quoted(raw.strip_prefix('"')?.strip_suffix('"')?),
    }
}

/// The same for what stands between double quotation marks.
///
/// Source: YAML 1.2.2, section 5.7, "Escaped Characters".
fn double_quoted(content: &str) -> Option<Vec<(char, Range<usize>)>> {
    let mut found = Vec::new();
    let mut chars = content.char_indices();
    while let Some((at, character)) = chars.next() {
        // The opening quotation mark is one byte.
        let start = at + 1;
        if character != '\\' {
            if !is_blank(character) {
                found.push((character, start..start + character.len_utf8()));
            }
            continue;
        }
        let (_, escape) = chars.next()?;
        let n_digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let decoded = if n_digits > 0 {
            let digits: String = chars.by_ref().take(n_digits).map(|(_, c)| c).collect();
            char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
        } else {
            match escape {
                '0' => '\0',
                'a' => '\u{7}',
                'b' => '\u{8}',
                't' => '\t',
                'n' => '\n',
                'v' => '\u{b}',
                'f' => '\u{c}',
                'r' => '\r',
                'e' => '\u{1b}',
                'N' => '\u{85}',
                '_' => '\u{a0}',
                'L' => '\u{2028}',
                'P' => '\u{2029}',
                other => other,
            }
        };
        if !is_blank(decoded) {
            let end = chars.offset() + 1;
            found.push((decoded, start..end));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    /// Checks that each character of `text` that is not blank is found where it stands.
    #[track_caller]
    fn check(yaml: &str, marked: &str) {
        let read = yaml::read(yaml, &mut yaml::Copies::default());
        let node = read.unwrap().unwrap();
        let node = node.get("a").unwrap();
        let yaml::Data::Scalar(value, style) = &node.data else {
            panic!("no scalar")
        };
        let value = value.as_str().unwrap();
        let raw = yaml.get(node.span.clone()).unwrap();
        let mut found = String::new();
        for (offset, character) in value.chars().enumerate() {
            let byte = locate(raw, *style, value, offset);
            let byte = byte.unwrap_or_else(|| panic!("{character} of {value:?} in {raw:?}"));
            if !is_blank(character) {
                found.extend(raw.get(byte..).unwrap().chars().next());
            }
        }
        assert_eq!(found, marked, "{raw:?}");
        let end = locate(raw, *style, value, value.chars().count()).unwrap();
        assert!(end <= raw.len(), "{raw:?}");
    }

    #[test]
    fn characters_are_found_in_all_styles() {
        check("a: x == y", "x==y");
        check("a: x ==\n    y\n\n    z\nb: 1", "x==yz");
        check("a: 'it''s  é''\n  \n   b'", "it\'sé\'b");
        check(
            "a: \"x \\\"y\\\" \\n\\u00e9 \\\n   z\\\\ \\x41\"",
            "x\\y\\\\z\\\\",
        );
        check("a: |\n  x ==\n    y\n\n  z\n", "x==yz");
        check("a: |2-  # why\n    x ==\n  y", "x==y");
        check("a: >-\n  x ==\n  y\n\n    z\n  w\nb: |\n  q", "x==yzw");
        check("a: &x !!str |\n  é 漢 x", "é漢x");
    }

    #[test]
    fn the_end_is_behind_the_last_character() {
        assert_eq!(locate("x == ", Style::Plain, "x == ", 5), Some(5));
        assert_eq!(locate("x ==\n", Style::Block, "x ==\n", 5), Some(4));
        assert_eq!(locate("''", Style::SingleQuoted, "", 0), Some(0));
        assert_eq!(locate("other", Style::Plain, "x", 0), None);
    }

    #[test]
    fn places_count_code_points() {
        let source = SourceText::new("f".to_owned(), "a\né: b\r\nc".to_owned());
        assert_eq!(source.place(0), Place::START);
        assert_eq!(source.place(4), Place { line: 2, column: 2 });
        assert_eq!(source.line(2), "é: b");
        assert_eq!(source.line(9), "");
        assert_eq!(source.place(99).line, 3);
    }
}
