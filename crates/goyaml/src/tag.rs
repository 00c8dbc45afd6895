//! Scans tags and the directives `%YAML` and `%TAG`.
//!
//! Source: `go.yaml.in/yaml/v2` `scannerc.go` (`yaml_parser_scan_directive`, `yaml_parser_scan_tag`).

use super::ScanError;
use super::cursor::Cursor;
use super::token::Token;

/// Scans the directive at `cursor` and its line break.
pub(super) fn directive<'a>(cursor: &mut Cursor<'a>) -> Result<Token<'a>, ScanError> {
    let start = cursor.offset;
    cursor.advance();
    let name_start = cursor.offset;
    while cursor.is_word() {
        cursor.advance();
    }
    let name = cursor.since(name_start);
    if !cursor.is_blank_or_end(0) {
        return Err(unknown_directive(start));
    }
    let token = match name {
        "YAML" => {
            cursor.skip_blanks();
            let major = version_number(cursor)?;
            if cursor.byte(0) != b'.' {
                return Err(ScanError::new(
                    cursor.offset,
                    "expected a YAML version such as `1.1`",
                ));
            }
            cursor.advance();
            Token::Version(major, version_number(cursor)?)
        }
        "TAG" => {
            cursor.skip_blanks();
            let handle = handle(cursor)?;
            if handle != "!" && !(handle.len() > 1 && handle.ends_with('!')) {
                return Err(ScanError::new(
                    cursor.offset,
                    "a tag handle must end with `!`",
                ));
            }
            if !cursor.is_blank(0) {
                return Err(ScanError::new(
                    cursor.offset,
                    "missing space after the tag handle",
                ));
            }
            cursor.skip_blanks();
            let prefix = uri(cursor, "", false)?;
            if !cursor.is_blank_or_end(0) {
                return Err(not_in_uri(cursor));
            }
            Token::TagDirective { handle, prefix }
        }
        _ => return Err(unknown_directive(start)),
    };
    cursor.skip_blanks();
    cursor.skip_comment();
    if !cursor.is_break_or_end(0) {
        return Err(ScanError::new(
            cursor.offset,
            "only a comment may follow a directive on its line",
        ));
    }
    cursor.advance_line();
    Ok(token)
}

fn unknown_directive(start: usize) -> ScanError {
    ScanError::new(
        start,
        "unknown directive: a line that begins with `%` must be `%YAML` or `%TAG`",
    )
}

fn version_number(cursor: &mut Cursor<'_>) -> Result<u8, ScanError> {
    let start = cursor.offset;
    while cursor.byte(0).is_ascii_digit() {
        cursor.advance();
    }
    let digits = cursor.since(start);
    let number = digits.parse().ok().filter(|_| digits.len() <= 2);
    number.ok_or_else(|| ScanError::new(start, "expected a YAML version such as `1.1`"))
}

/// Scans the tag at `cursor`. Returns the handle and the suffix. The handle of a full URI is empty.
pub(super) fn tag(cursor: &mut Cursor<'_>) -> Result<(String, String), ScanError> {
    let (handle, suffix) = if cursor.byte(1) == b'<' {
        cursor.advance_by(2);
        let suffix = uri(cursor, "", false)?;
        if cursor.byte(0) != b'>' {
            return Err(ScanError::new(
                cursor.offset,
                "missing `>` at the end of the tag",
            ));
        }
        cursor.advance();
        (String::new(), suffix)
    } else {
        let handle = handle(cursor)?;
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = uri(cursor, "", false)?;
            (handle, suffix)
        } else {
            let head = handle.strip_prefix('!').unwrap_or_default();
            let suffix = uri(cursor, head, true)?;
            if suffix.is_empty() {
                (String::new(), "!".to_owned())
            } else {
                ("!".to_owned(), suffix)
            }
        }
    };
    if cursor.is_blank_or_end(0) {
        Ok((handle, suffix))
    } else {
        Err(not_in_uri(cursor))
    }
}

fn not_in_uri(cursor: &Cursor<'_>) -> ScanError {
    ScanError::new(
        cursor.offset,
        "missing space after the tag; quote the string if `!` is part of it",
    )
}

/// Scans a handle (`!`, `!!` or `!name!`), or the start of a tag without a handle (`!name`).
fn handle(cursor: &mut Cursor<'_>) -> Result<String, ScanError> {
    let start = cursor.offset;
    if cursor.byte(0) != b'!' {
        return Err(ScanError::new(start, "a tag handle must begin with `!`"));
    }
    cursor.advance();
    while cursor.is_word() {
        cursor.advance();
    }
    if cursor.byte(0) == b'!' {
        cursor.advance();
    }
    Ok(cursor.since(start).to_owned())
}

/// Scans a URI. `head` is the start of the URI, which is already consumed.
fn uri(cursor: &mut Cursor<'_>, head: &str, may_be_empty: bool) -> Result<String, ScanError> {
    let start = cursor.offset;
    let mut bytes = head.as_bytes().to_vec();
    loop {
        match cursor.byte(0) {
            b'%' => octets(cursor, &mut bytes)?,
            byte if cursor.is_word() || b";/?:@&=+$,.!~*'()[]".contains(&byte) => {
                bytes.push(byte);
                cursor.advance();
            }
            _ => break,
        }
    }
    if cursor.offset == start && !may_be_empty {
        return Err(ScanError::new(start, "missing tag name"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Scans the octets of one character. Each octet is a `%` and two hexadecimal digits.
fn octets(cursor: &mut Cursor<'_>, into: &mut Vec<u8>) -> Result<(), ScanError> {
    let mut n_left = None;
    while n_left != Some(0) {
        let start = cursor.offset;
        let digits = cursor.rest().get(1..3).filter(|digits| {
            cursor.byte(0) == b'%' && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        let octet = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(octet) = octet else {
            return Err(ScanError::new(
                start,
                "expected `%` and two hexadecimal digits",
            ));
        };
        let width = match octet {
            0..0x80 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0..0xf8 => 4,
            _ => 0,
        };
        let is_wrong = match n_left {
            None => width == 0,
            Some(_) => octet & 0xc0 != 0x80,
        };
        if is_wrong {
            return Err(ScanError::new(start, "these octets are not valid UTF-8"));
        }
        into.push(octet);
        cursor.advance_by(3);
        n_left = Some(n_left.unwrap_or(width) - 1);
    }
    Ok(())
}
