//! Converts literals to values.
//!
//! The lexer has already validated their syntax, so the only remaining errors are values out of range.
//!
//! Source: cel-go `parser/parser.go` (`VisitInt`, `VisitUint`, `VisitDouble`), `parser/unescape.go`.

use std::borrow::Cow;

/// Returns the value of an `int` literal with the given sign. `None` if it is out of range.
pub(super) fn int(digits: &str, negative: bool) -> Option<i64> {
    let magnitude = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    }
    .ok()?;
    if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// Returns the value of a `uint` literal. `text` includes the suffix `u`. `None` if it is out of range.
pub(super) fn uint(text: &str) -> Option<u64> {
    let digits = text.strip_suffix(['u', 'U']).unwrap_or(text);
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    }
    .ok()
}

/// Returns the value of a `double` literal. `None` if it is out of range.
pub(super) fn double(digits: &str, negative: bool) -> Option<f64> {
    let magnitude: f64 = digits.parse().ok()?;
    if magnitude.is_infinite() {
        return None;
    }
    Some(if negative { -magnitude } else { magnitude })
}

const BAD_CODE_POINT: &str = "invalid unicode code point";
const BAD_ESCAPE: &str = "unable to unescape string";

/// Returns the characters between the quotes, and true if the literal is a raw string.
fn body(literal: &str) -> (&str, bool) {
    let (quoted, raw) = match literal.strip_prefix(['r', 'R']) {
        Some(quoted) => (quoted, true),
        None => (literal, false),
    };
    for quotes in ["'''", "\"\"\"", "'", "\""] {
        if quoted.len() >= 2 * quotes.len()
            && let Some(body) = quoted
                .strip_prefix(quotes)
                .and_then(|rest| rest.strip_suffix(quotes))
        {
            return (body, raw);
        }
    }
    (quoted, raw)
}

/// Normalizes line breaks to line feeds.
fn with_line_feeds(body: &str) -> Cow<'_, str> {
    if body.contains('\r') {
        Cow::Owned(body.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(body)
    }
}

/// Returns the value of a string literal. `literal` includes the quotes.
///
/// # Errors
///
/// Returns cel-go's message if an escape sequence does not denote a code point.
pub(super) fn string(literal: &str) -> Result<Cow<'_, str>, &'static str> {
    let (body, raw) = body(literal);
    let body = with_line_feeds(body);
    if raw || !body.contains('\\') {
        return Ok(body);
    }
    let mut value = String::with_capacity(body.len());
    let mut rest = &*body;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        value.push_str(plain);
        let (number, after) = escape(escaped).ok_or(BAD_ESCAPE)?;
        value.push(char::from_u32(number.value).ok_or(BAD_CODE_POINT)?);
        rest = after;
    }
    value.push_str(rest);
    Ok(Cow::Owned(value))
}

/// Returns the value of a bytes literal. `literal` does not include the prefix `b`.
///
/// # Errors
///
/// Returns cel-go's message if an escape sequence does not denote a byte.
pub(super) fn bytes(literal: &str) -> Result<Vec<u8>, &'static str> {
    let (body, raw) = body(literal);
    let body = with_line_feeds(body);
    if raw || !body.contains('\\') {
        return Ok(body.as_bytes().to_vec());
    }
    let mut value = Vec::with_capacity(body.len());
    let mut rest = &*body;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        value.extend_from_slice(plain.as_bytes());
        let (number, after) = escape(escaped).ok_or(BAD_ESCAPE)?;
        if number.is_code_point {
            return Err(BAD_ESCAPE);
        }
        value.push(u8::try_from(number.value).map_err(|_| BAD_ESCAPE)?);
        rest = after;
    }
    value.extend_from_slice(rest.as_bytes());
    Ok(value)
}

/// A decoded escape sequence.
struct Escape {
    value: u32,
    /// True for `\u` and `\U`, which are not allowed in bytes.
    is_code_point: bool,
}

/// Decodes the escape sequence after a backslash. Returns its value and the remaining characters.
fn escape(rest: &str) -> Option<(Escape, &str)> {
    let first = rest.chars().next()?;
    let after = rest.get(first.len_utf8()..)?;
    let (n_digits, radix, digits) = match first {
        'x' | 'X' => (2, 16, after),
        'u' => (4, 16, after),
        'U' => (8, 16, after),
        '0'..='3' => (3, 8, rest),
        _ => {
            let value = match first {
                'a' => 0x07,
                'b' => 0x08,
                'f' => 0x0c,
                'n' => 0x0a,
                'r' => 0x0d,
                't' => 0x09,
                'v' => 0x0b,
                '\\' | '\'' | '"' | '`' | '?' => u32::from(first),
                _ => return None,
            };
            let is_code_point = false;
            return Some((
                Escape {
                    value,
                    is_code_point,
                },
                after,
            ));
        }
    };
    let value = u32::from_str_radix(digits.get(..n_digits)?, radix).ok()?;
    let is_code_point = matches!(first, 'u' | 'U');
    Some((
        Escape {
            value,
            is_code_point,
        },
        digits.get(n_digits..)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_literals_out_of_range_have_no_value() {
        assert_eq!(int("9223372036854775808", true), Some(i64::MIN));
        assert_eq!(int("9223372036854775808", false), None);
        assert_eq!(int("0x10", true), Some(-16));
        assert_eq!(uint("0xFFu"), Some(255));
        assert_eq!(uint("18446744073709551616u"), None);
        assert_eq!(double("1e400", false), None);
        assert_eq!(double(".5", true), Some(-0.5));
    }

    #[test]
    fn string_literals_are_unescaped() {
        assert_eq!(string(r"'a\n\x41\u00e9\101'").as_deref(), Ok("a\nA\u{e9}A"));
        assert_eq!(string(r"r'a\n'").as_deref(), Ok(r"a\n"));
        assert_eq!(string("'''a\r\nb'''").as_deref(), Ok("a\nb"));
        assert_eq!(string("''").as_deref(), Ok(""));
        assert_eq!(string(r"'\ud800'"), Err(BAD_CODE_POINT));
        assert_eq!(
            bytes(r"'\xff\303é'").as_deref(),
            Ok(&[0xff, 0xc3, 0xc3, 0xa9][..])
        );
        assert_eq!(bytes(r"'\u00e9'"), Err(BAD_ESCAPE));
    }
}
