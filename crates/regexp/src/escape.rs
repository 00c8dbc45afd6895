//! Parses escape sequences and character classes.
//!
//! Source: Go `regexp/syntax/parse.go` (`parseEscape`, `parseClass`, `parseNamedClass`,
//! `parsePerlClassEscape`, `parseUnicodeClass`).

use super::class::{Item, perl_set, posix_set};
use super::cursor::Cursor;
use super::error::{SyntaxError, SyntaxErrorCode};
use super::ranges::MAX_RUNE;
use super::unicode::UnicodeSet;

/// Parses an escape sequence for one character. The cursor must be at the backslash.
pub(super) fn parse_escape(cursor: &mut Cursor<'_>) -> Result<u32, SyntaxError> {
    let start = *cursor;
    cursor.take(1);
    let Some(c) = cursor.next_char() else {
        return Err(SyntaxError::new(SyntaxErrorCode::TrailingBackslash, ""));
    };
    let rune = match c {
        // A single digit would be a backreference, which Go does not support.
        '1'..='7' if !is_octal(cursor.byte(0)) => None,
        '0'..='7' => Some(octal(c, cursor)),
        'x' => hexadecimal(cursor),
        'a' => Some(0x7),
        'f' => Some(0xc),
        'n' => Some(0xa),
        'r' => Some(0xd),
        't' => Some(0x9),
        'v' => Some(0xb),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
        _ => None,
    };
    rune.ok_or_else(|| SyntaxError::new(SyntaxErrorCode::InvalidEscape, cursor.since(start)))
}

fn is_octal(byte: Option<u8>) -> bool {
    matches!(byte, Some(b'0'..=b'7'))
}

/// Parses up to three octal digits. `first` is the first digit, which is already consumed.
fn octal(first: char, cursor: &mut Cursor<'_>) -> u32 {
    let mut rune = first.to_digit(8).unwrap_or(0);
    for _ in 0..2 {
        if !is_octal(cursor.byte(0)) {
            break;
        }
        let digit = cursor.next_char().and_then(|c| c.to_digit(8)).unwrap_or(0);
        rune = rune * 8 + digit;
    }
    rune
}

/// Parses two hexadecimal digits, or any number of digits in braces.
fn hexadecimal(cursor: &mut Cursor<'_>) -> Option<u32> {
    let first = cursor.next_char()?;
    if first != '{' {
        let second = cursor.next_char();
        return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
    }
    let mut rune = None;
    loop {
        match cursor.next_char()? {
            '}' => return rune,
            digit => {
                let next = rune.unwrap_or(0) * 16 + digit.to_digit(16)?;
                rune = Some(next).filter(|rune| *rune <= MAX_RUNE);
                rune?;
            }
        }
    }
}

/// Parses `\d`, `\s` or `\w`, or a complement (`\D`, `\S` or `\W`). Returns `None` for other input.
pub(super) fn parse_perl_class(cursor: &mut Cursor<'_>) -> Option<Item> {
    if cursor.byte(0)? != b'\\' {
        return None;
    }
    let letter = cursor.byte(1)?;
    let set = perl_set(letter.to_ascii_lowercase())?;
    cursor.take(2);
    Some(Item::Ascii {
        set,
        negated: letter.is_ascii_uppercase(),
    })
}

/// Parses `\pN` or `\p{Name}`, or a complement (`\PN` or `\P{Name}`). Returns `None` for other input.
pub(super) fn parse_unicode_class(cursor: &mut Cursor<'_>) -> Result<Option<Item>, SyntaxError> {
    let start = *cursor;
    let mut negated = match (cursor.byte(0), cursor.byte(1)) {
        (Some(b'\\'), Some(b'p')) => false,
        (Some(b'\\'), Some(b'P')) => true,
        _ => return Ok(None),
    };
    let invalid = |expr: &str| Err(SyntaxError::new(SyntaxErrorCode::InvalidCharRange, expr));
    cursor.take(2);
    let mut name = if cursor.eat("{") {
        let name = cursor.take_while(|c| c != '}');
        if !cursor.eat("}") {
            return invalid(start.rest());
        }
        name
    } else {
        let length = cursor.rest().chars().next().map_or(0, char::len_utf8);
        cursor.take(length)
    };
    if let Some(rest) = name.strip_prefix('^') {
        negated = !negated;
        name = rest;
    }
    match UnicodeSet::by_name(name) {
        Some((set, is_complement)) => Ok(Some(Item::Unicode {
            set,
            negated: negated != is_complement,
        })),
        None => invalid(cursor.since(start)),
    }
}

/// Parses `[:name:]` within a class. Returns `None` for other input. If the rest of the pattern contains no `:]`, sets
/// `is_possible` to false, so that later calls do not search again.
fn parse_posix_class(
    cursor: &mut Cursor<'_>,
    is_possible: &mut bool,
) -> Result<Option<Item>, SyntaxError> {
    if !*is_possible {
        return Ok(None);
    }
    let Some(rest) = cursor.rest().strip_prefix("[:") else {
        return Ok(None);
    };
    let Some((name, _)) = rest.split_once(":]") else {
        *is_possible = false;
        return Ok(None);
    };
    let written = cursor.take(name.len() + "[::]".len());
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    match posix_set(name) {
        Some(set) => Ok(Some(Item::Ascii { set, negated })),
        None => Err(SyntaxError::new(SyntaxErrorCode::InvalidCharRange, written)),
    }
}

/// Parses a bracket class. The cursor must be at the opening bracket. Returns the items of the class. The boolean is
/// true for a negated class.
///
/// Sets `has_posix` to false if the rest of the pattern contains no `:]`.
pub(super) fn parse_class(
    cursor: &mut Cursor<'_>,
    has_posix: &mut bool,
) -> Result<(Vec<Item>, bool), SyntaxError> {
    let start = *cursor;
    cursor.take(1);
    let negated = cursor.eat("^");
    let mut items = Vec::new();
    // A closing bracket at the start of a class is a literal character.
    while items.is_empty() || !cursor.eat("]") {
        if let Some(item) = parse_posix_class(cursor, has_posix)? {
            items.push(item);
        } else if let Some(item) = parse_unicode_class(cursor)? {
            items.push(item);
        } else if let Some(item) = parse_perl_class(cursor) {
            items.push(item);
        } else {
            items.push(parse_range(cursor, start)?);
        }
    }
    Ok((items, negated))
}

/// Parses one character of a class, or a range of characters.
fn parse_range(cursor: &mut Cursor<'_>, class: Cursor<'_>) -> Result<Item, SyntaxError> {
    let start = *cursor;
    let lo = parse_class_char(cursor, class)?;
    // A trailing hyphen is a literal character.
    if cursor.byte(0) != Some(b'-') || matches!(cursor.byte(1), None | Some(b']')) {
        return Ok(Item::Range(lo, lo));
    }
    cursor.take(1);
    let hi = parse_class_char(cursor, class)?;
    if hi < lo {
        return Err(SyntaxError::new(
            SyntaxErrorCode::InvalidCharRange,
            cursor.since(start),
        ));
    }
    Ok(Item::Range(lo, hi))
}

fn parse_class_char(cursor: &mut Cursor<'_>, class: Cursor<'_>) -> Result<u32, SyntaxError> {
    if cursor.byte(0) == Some(b'\\') {
        return parse_escape(cursor);
    }
    let missing = || SyntaxError::new(SyntaxErrorCode::MissingBracket, class.rest());
    cursor.next_char().map(u32::from).ok_or_else(missing)
}
