//! Serializes values as YAML that kubectl reads back unchanged, and that is safe to show in a terminal.

use serde::Serialize;

use super::text::is_unsafe;

/// Serializes `value` as YAML. Characters that a terminal would interpret are escaped.
///
/// # Errors
/// Returns an error if `value` cannot be serialized, for example because a key is not a string.
pub(in crate::cli) fn to_string(value: &impl Serialize) -> Result<String, serde_json::Error> {
    goyaml::to_string(value, is_unsafe)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::cli::text::with_escapes;
    use goyaml::to_json;

    #[test]
    fn written_strings_are_strings_in_yaml_1_1() {
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
    fn private_use_characters_are_kept() {
        let value = json!({"a": "yes", "b": "\u{e000}"});
        assert_eq!(to_string(&value).unwrap(), "a: 'yes'\nb: \u{e000}\n");
        let all: String = ('\u{e000}'..='\u{f8ff}').collect();
        let value = json!({"a": "yes", "b": all, "c": "\u{202e}"});
        let text = to_string(&value).unwrap();
        assert!(!text.contains(is_unsafe));
        assert_eq!(to_json(&text).unwrap(), value);
    }

    #[test]
    fn unsafe_characters_are_escaped() {
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
