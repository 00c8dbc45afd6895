//! Serializes values as YAML that kubectl reads back unchanged.
//!
//! kubectl reads YAML 1.1, in which an unquoted `yes`, `off` or `1_000` is not a string. Serializers for YAML 1.2 do
//! not quote such strings.

use goyaml::scalar::{Scalar, resolve};
use serde::Serialize;
use serde_norway::{Error, Value};

use super::text::{is_unsafe, with_escapes};

/// Private-use characters of Unicode. The serializer does not quote them, so two of them serve as placeholders until
/// the document is serialized.
const MARKS: std::ops::RangeInclusive<char> = '\u{e000}'..='\u{f8ff}';

/// The placeholders for a document, which must not occur in the document itself.
#[derive(Clone, Copy)]
struct Marks {
    /// Replaced with a single quote after serialization.
    quote: char,
    /// The prefix of a string that must be written with escapes.
    escapes: char,
}

/// A control character. The serializer writes strings with this character in double quotes.
const FORCES_DOUBLE_QUOTES: char = '\u{7}';

/// Serializes `value` as YAML. Characters that a terminal would interpret are escaped.
///
/// # Errors
/// Returns an error if `value` cannot be serialized, for example because a key is not a string.
pub(in crate::cli) fn to_string(value: &impl Serialize) -> Result<String, Error> {
    let mut value = serde_norway::to_value(value)?;
    let plain = serde_norway::to_string(&value)?;
    let mut unused = MARKS.filter(|mark| !plain.contains(*mark));
    let (Some(quote), Some(escapes)) = (unused.next(), unused.next()) else {
        // JSON is valid YAML, and quotes all strings.
        let json = serde_json::to_string_pretty(&value);
        let json = json.map_err(<Error as serde::ser::Error>::custom)?;
        return Ok(with_escapes(json) + "\n");
    };
    let marks = Marks { quote, escapes };
    if !mark(&mut value, marks) {
        return Ok(plain);
    }
    let marked = serde_norway::to_string(&value)?;
    let marked = marked.replace(quote, "'");
    Ok(with_escapes(marked.replace(&format!("\\a{escapes}"), "")))
}

/// Adds placeholders to strings that need quotes in YAML 1.1, and to strings with unsafe characters. Returns true if
/// `value` contains such strings.
fn mark(value: &mut Value, marks: Marks) -> bool {
    match value {
        Value::String(text) if text.contains(is_unsafe) => {
            let escapes = marks.escapes;
            *text = format!("{FORCES_DOUBLE_QUOTES}{escapes}{text}");
            true
        }
        Value::String(text) if is_reinterpreted_in_1_1(text) => {
            let quote = marks.quote;
            *text = format!("{quote}{text}{quote}");
            true
        }
        Value::Sequence(items) => {
            let mut is_any = false;
            for item in items.iter_mut() {
                is_any |= mark(item, marks);
            }
            is_any
        }
        Value::Mapping(fields) => {
            let mut is_any = false;
            let marked = std::mem::take(fields)
                .into_iter()
                .map(|(mut key, mut value)| {
                    is_any |= mark(&mut key, marks);
                    is_any |= mark(&mut value, marks);
                    (key, value)
                });
            *fields = marked.collect();
            is_any
        }
        _ => false,
    }
}

/// Returns true if the unquoted scalar is a string in YAML 1.2, but not in YAML 1.1.
fn is_reinterpreted_in_1_1(text: &str) -> bool {
    let is_text = matches!(resolve(text), Scalar::Text(_));
    // An unquoted key `<<` would merge mappings.
    (!is_text || text == "<<") && matches!(serde_norway::from_str(text), Ok(Value::String(_)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use goyaml::to_json;

    #[test]
    fn to_string_keeps_strings_in_yaml_1_1() {
        let words = [
            "yes",
            "Yes",
            "y",
            "n",
            "NO",
            "on",
            "Off",
            "true",
            "null",
            "~",
            "",
            "1",
            "010",
            "0x1f",
            "0b1",
            "0o7",
            "1_000",
            "1.5",
            "1_0.5",
            ".inf",
            ".NaN",
            "-.Inf",
            "+1",
            "1e3",
            "1:30",
            "2020-01-01",
            "a",
            "yes!",
            "- a",
            "a: b",
            "'yes'",
            "# a",
            "a\nyes\n",
            "\u{e000}",
            "yes\u{e000}",
            "=",
            "<<",
        ];
        for word in words {
            let value = json!({"metadata": {"labels": {"a": word, word: "b"}}, "list": [word, [word]], "n": 1, "t": true});
            let text = to_string(&value).unwrap();
            let read: Json = to_json(&text).unwrap();
            assert_eq!(read, value, "{word:?}: {text}");
        }
    }

    #[test]
    fn to_string_keeps_private_use_characters() {
        let value = json!({"a": "yes", "b": "\u{e000}"});
        assert_eq!(to_string(&value).unwrap(), "a: 'yes'\nb: \u{e000}\n");
        let all: String = MARKS.collect();
        let value = json!({"a": "yes", "b": all, "c": "\u{202e}"});
        let text = to_string(&value).unwrap();
        assert!(!text.contains(is_unsafe));
        assert_eq!(to_json(&text).unwrap(), value);
    }

    #[test]
    fn to_string_escapes_unsafe_characters() {
        let unsafe_characters = ('\u{7f}'..='\u{ffff}').filter(|c| is_unsafe(*c));
        for character in unsafe_characters.chain(['\u{1b}', '\u{0}', '\u{8}']) {
            for text in [
                format!("{character}"),
                format!("a: {character} # b\\"),
                format!("line\n  \"{character}\"\n'line'\n"),
                format!("{}{character}", "long words ".repeat(40)),
            ] {
                let value = json!({"text": text, &text: [text, {"in": text}], "yes": "no"});
                let yaml = to_string(&value).unwrap();
                let is_shown = |c: char| c == '\n' || !(c.is_control() || is_unsafe(c));
                assert!(yaml.chars().all(is_shown), "{yaml:?}");
                assert_eq!(to_json(&yaml).unwrap(), value, "{yaml:?}");
                let peer: Json = serde_norway::from_str(&yaml).unwrap();
                assert_eq!(peer, value, "{yaml:?}");
                let json = with_escapes(serde_json::to_string_pretty(&value).unwrap());
                assert!(json.chars().all(is_shown), "{json:?}");
                assert_eq!(serde_json::from_str::<Json>(&json).unwrap(), value);
            }
        }
        let value = json!({"message": "denied \u{202e}lmth"});
        assert_eq!(
            to_string(&value).unwrap(),
            "message: \"denied \\u202elmth\"\n"
        );
    }
}
