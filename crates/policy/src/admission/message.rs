//! Determines the message of a denial.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/validator.go`, `Validate`.

use super::stage::Evaluated;
use cel::value::Value;
use kubernetes::library::limits::MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES;

/// Trims white space as Go does.
///
/// Source: Go `strings.TrimSpace`. Its `unicode.IsSpace` accepts the characters with Unicode's property `White_Space`.
pub(super) fn trim(text: &str) -> &str {
    text.trim()
}

/// Returns the message for a validation that has no message expression. If `message` is absent or blank, the result
/// contains the source of the validation.
pub(super) fn fixed(message: Option<&str>, expression: &str) -> String {
    match trim(message.unwrap_or_default()) {
        "" => format!("failed expression: {}", trim(expression)),
        message => message.to_owned(),
    }
}

/// Returns the result of a message expression. `None` if it is not a string, is empty, is too long, or has several
/// lines.
pub(super) fn evaluated(result: Evaluated) -> Option<String> {
    let Some(Ok(Value::String(text))) = result else {
        return None;
    };
    let message = trim(&text);
    let is_usable = !message.is_empty()
        && message.len() <= MAX_EVALUATED_MESSAGE_EXPRESSION_SIZE_BYTES
        && !message.contains('\n');
    is_usable.then(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_falls_back_to_expression() {
        assert_eq!(fixed(Some(" at most 5\n"), "x"), "at most 5");
        assert_eq!(
            fixed(Some(" \n"), " a\n&& b "),
            "failed expression: a\n&& b"
        );
        assert_eq!(fixed(None, "a"), "failed expression: a");
    }

    #[track_caller]
    fn check(value: impl Into<Value>, expect: Option<&str>) {
        assert_eq!(evaluated(Some(Ok(value.into()))).as_deref(), expect);
    }

    #[test]
    fn evaluated_message_that_is_blank_multiline_or_too_long_is_ignored() {
        check(" padded\u{2003}\n", Some("padded"));
        check("two\nlines", None);
        check("a\r b", Some("a\r b"));
        check(" ", None);
        check(1_i64, None);
        check(Value::Null, None);
        check(&*"x".repeat(5 * 1024), Some(&*"x".repeat(5 * 1024)));
        check(&*"é".repeat(5 * 512 + 1), None);
        assert_eq!(evaluated(Some(Err("no".to_owned()))), None);
        assert_eq!(evaluated(None), None);
    }
}
