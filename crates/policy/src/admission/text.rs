//! Formats quoted strings, JSON and aggregated errors as Go does.

pub(super) use cel::go_text::quote as go_quote;
pub(super) use kubernetes::go_json::push_string as push_go_json;

pub(super) fn go_json_list(texts: &[String]) -> String {
    let mut list = String::from("[");
    for (n, text) in texts.iter().enumerate() {
        if n > 0 {
            list.push(',');
        }
        push_go_json(&mut list, text);
    }
    list.push(']');
    list
}

/// Aggregates errors: removes duplicates, and puts brackets around several errors.
///
/// Source: apimachinery `pkg/util/errors/errors.go`, `aggregate.Error`.
pub(super) fn aggregate(errors: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for error in errors {
        if !distinct.contains(&&**error) {
            distinct.push(error);
        }
    }
    match &distinct[..] {
        [only] => (*only).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Returns the first `max` bytes of a string. If this splits a character, each remaining byte of the character becomes
/// `U+FFFD`, as in Go's JSON output.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    cel::go_text::decode(text.as_bytes().get(..max).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_list_escapes_html_characters() {
        assert_eq!(
            go_json_list(&["<&>".to_owned(), "a\u{2028}\u{1f}\"".to_owned()]),
            r#"["\u003c\u0026\u003e","a\u2028\u001f\""]"#
        );
    }

    #[test]
    fn aggregated_errors_have_no_duplicates() {
        let errors = ["a".to_owned(), "b".to_owned(), "a".to_owned()];
        assert_eq!(aggregate(&errors), "[a, b]");
        assert_eq!(aggregate(&["a".to_owned(), "a".to_owned()]), "a");
    }

    #[test]
    fn each_byte_of_a_cut_character_is_replaced() {
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 2), "a\u{fffd}");
        assert_eq!(cut("a🙂", 4), "a\u{fffd}\u{fffd}\u{fffd}");
    }
}
