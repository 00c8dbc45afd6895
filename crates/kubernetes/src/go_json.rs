//! Encodes JSON like Go's `encoding/json`: sorted field names, Go's number format, and escaped HTML characters.
//!
//! Source: Go `encoding/json/encode.go` (`appendString` with `escapeHTML`, `floatEncoder`).

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Formats a value as JSON.
///
/// The function is recursive, so the caller must limit the depth of the value.
#[must_use]
pub fn to_text(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    text
}

fn write(into: &mut String, value: &Value) {
    match value {
        Value::Null => into.push_str("null"),
        Value::Bool(true) => into.push_str("true"),
        Value::Bool(false) => into.push_str("false"),
        Value::Number(number) => into.push_str(&number_text(number)),
        Value::String(text) => push_string(into, text),
        Value::Array(items) => {
            into.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    into.push(',');
                }
                write(into, item);
            }
            into.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            into.push('{');
            for (n, (name, field)) in sorted.into_iter().enumerate() {
                if n > 0 {
                    into.push(',');
                }
                push_string(into, name);
                into.push(':');
                write(into, field);
            }
            into.push('}');
        }
    }
}

/// Formats a number. If it does not fit into a signed 64-bit integer, it is formatted as a double, because Go decodes
/// it as a double.
#[must_use]
pub fn number_text(number: &Number) -> String {
    match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => double_text(number.as_f64().unwrap_or_default()),
    }
}

fn double_text(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// Returns the number after Go has encoded it as JSON and decoded it again. A double with an integral value that fits
/// into 64 bits becomes an integer. For example, `3.0` becomes `3`.
#[must_use]
pub fn reread_number(number: &Number) -> Number {
    if number.is_i64() {
        return number.clone();
    }
    let text = number_text(number);
    match text.parse::<i64>() {
        Ok(integer) => integer.into(),
        Err(_) => number
            .as_f64()
            .and_then(Number::from_f64)
            .unwrap_or_else(|| number.clone()),
    }
}

/// Formats a string as a quoted JSON string with escaped HTML characters.
#[must_use]
pub fn string_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().saturating_add(2));
    push_string(&mut quoted, text);
    quoted
}

/// Appends a string in the format of [`string_text`].
pub fn push_string(into: &mut String, text: &str) {
    into.push('"');
    for c in text.chars() {
        match c {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            '\u{8}' => into.push_str("\\b"),
            '\u{c}' => into.push_str("\\f"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            '<' | '>' | '&' | '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(into, "\\u{:04x}", u32::from(c));
            }
            other => into.push(other),
        }
    }
    into.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_text_agrees_with_go() {
        let value = json!({"b": [1, 1.0, 2.5, 1e21, 1e-7, -0.0, null, true], "a": "<&>\u{2028}\u{1}\n\u{7f}"});
        assert_eq!(
            to_text(&value),
            "{\"a\":\"\\u003c\\u0026\\u003e\\u2028\\u0001\\n\u{7f}\",\"b\":[1,1,2.5,1e+21,1e-7,-0,null,true]}"
        );
        let big: Value = serde_json::from_str("18446744073709551615").unwrap();
        assert_eq!(to_text(&big), "18446744073709552000");
    }

    #[test]
    fn integral_doubles_become_integers_when_read_again() {
        let reread = |text: &str| reread_number(&serde_json::from_str(text).unwrap()).to_string();
        assert_eq!(reread("3.0"), "3");
        assert_eq!(reread("1e18"), "1000000000000000000");
        assert_eq!(reread("1e19"), "1e+19");
        assert_eq!(reread("2.5"), "2.5");
    }
}
