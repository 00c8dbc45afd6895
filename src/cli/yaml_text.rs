//! YAML that kubectl reads back to the same values.
//!
//! kubectl reads YAML 1.1, where an unquoted `yes`, `off` or `1_000` is no text; writers of YAML 1.2 leave these bare.

use serde::Serialize;
use serde_norway::{Error, Value};

use super::input::scalar::{Scalar, resolve};

/// Stands for a quote until the text is written: a character of no meaning, which is written bare.
const MARK: char = '\u{e000}';

/// Writes `value` as YAML.
///
/// # Errors
/// If it cannot be written as YAML: a key that is no text.
pub(in crate::cli) fn to_string(value: &impl Serialize) -> Result<String, Error> {
    let mut value = serde_norway::to_value(value)?;
    let plain = serde_norway::to_string(&value)?;
    // What has the mark already would be changed by it; it is written as it is.
    if plain.contains(MARK) || !mark(&mut value) {
        return Ok(plain);
    }
    let marked = serde_norway::to_string(&value)?;
    Ok(marked.replace(MARK, "'"))
}

/// Marks the texts in `value` that YAML 1.1 takes for something else; whether there are any.
fn mark(value: &mut Value) -> bool {
    match value {
        Value::String(text) if is_other_in_1_1(text) => {
            *text = format!("{MARK}{text}{MARK}");
            true
        }
        Value::Sequence(items) => {
            let mut is_any = false;
            for item in items.iter_mut() {
                is_any |= mark(item);
            }
            is_any
        }
        Value::Mapping(fields) => {
            let mut is_any = false;
            let marked = std::mem::take(fields)
                .into_iter()
                .map(|(mut key, mut value)| {
                    is_any |= mark(&mut key);
                    is_any |= mark(&mut value);
                    (key, value)
                });
            *fields = marked.collect();
            is_any
        }
        _ => false,
    }
}

/// Reports whether `text`, written bare, is a text in YAML 1.2 and none in YAML 1.1.
fn is_other_in_1_1(text: &str) -> bool {
    let is_text = matches!(resolve(text), Scalar::Text(_));
    // The key `<<` merges.
    (!is_text || text == "<<") && matches!(serde_norway::from_str(text), Ok(Value::String(_)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::cli::input::yaml::to_json;

    #[test]
    fn texts_stay_texts() {
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
            if !word.contains(MARK) {
                let read: Json = to_json(&text).unwrap();
                assert_eq!(read, value, "{word:?}: {text}");
            }
        }
    }

    #[test]
    fn what_has_the_mark_already_is_left_alone() {
        let value = json!({"a": "yes", "b": "\u{e000}"});
        assert_eq!(to_string(&value).unwrap(), "a: yes\nb: \u{e000}\n");
    }
}
