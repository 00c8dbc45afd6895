//! Escapes property names as CEL identifiers, and unescapes identifiers.
//!
//! Source: apiserver `pkg/cel/escaping.go`.

use std::borrow::Cow;

/// Returns true if CEL reserves `word`. A property with a reserved name is escaped. For example, `namespace` becomes
/// `__namespace__`.
///
/// Source: `celReservedSymbols`.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "as" | "break"
            | "const"
            | "continue"
            | "else"
            | "false"
            | "for"
            | "function"
            | "if"
            | "import"
            | "in"
            | "let"
            | "loop"
            | "namespace"
            | "null"
            | "package"
            | "return"
            | "true"
            | "var"
            | "void"
            | "while"
    )
}

/// Escapes the property name `name` for use in expressions. Returns `None` if the name cannot be escaped.
///
/// Source: `Escape`.
#[must_use]
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__").into());
    }
    let mut is_plain = true;
    let mut before = 0;
    for byte in name.bytes() {
        match byte {
            b'_' => is_plain &= before != b'_',
            b'.' | b'-' | b'/' => is_plain = false,
            _ if byte.is_ascii_alphanumeric() => {}
            _ => return None,
        }
        before = byte;
    }
    if is_plain {
        return Some(name.into());
    }
    let mut escaped = String::with_capacity(name.len() + 16);
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '_' if chars.next_if_eq(&'_').is_some() => escaped.push_str("__underscores__"),
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            c => escaped.push(c),
        }
    }
    Some(escaped.into())
}

/// Returns the property name of the identifier `escaped`. Returns `None` if `escaped` contains an invalid escape
/// sequence.
///
/// Source: `Unescape`.
#[must_use]
pub fn unescape(escaped: &str) -> Option<Cow<'_, str>> {
    if !escaped.as_bytes().windows(2).any(|pair| pair == b"__") {
        return Some(escaped.into());
    }
    let mut name = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((before, after)) = rest.split_once("__") {
        name.push_str(before);
        // An escape sequence consists of two underscores, other characters, and two underscores.
        let sequence = after
            .split_once("__")
            .filter(|(s, _)| !s.is_empty() && !s.contains('_'));
        let Some((sequence, remaining)) = sequence else {
            // Consume only the first underscore. If there are three, the second one may start an escape sequence.
            name.push('_');
            rest = rest.get(before.len() + 1..).unwrap_or_default();
            continue;
        };
        match sequence {
            "underscores" => name.push_str("__"),
            "dot" => name.push('.'),
            "dash" => name.push('-'),
            "slash" => name.push('/'),
            word if is_reserved(word) && word.len() + 4 == escaped.len() => name.push_str(word),
            _ => return None,
        }
        rest = remaining;
    }
    name.push_str(rest);
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, escaped: &str) {
        assert_eq!(escape(name).as_deref(), Some(escaped));
        assert_eq!(unescape(escaped).as_deref(), Some(name));
    }

    #[test]
    fn escaped_property_names_round_trip() {
        check("replicas", "replicas");
        check("_private", "_private");
        check("namespace", "__namespace__");
        check("in", "__in__");
        check("dash-ed", "dash__dash__ed");
        check("a.b/c", "a__dot__b__slash__c");
        check(".hidden", "__dot__hidden");
        check("a__b", "a__underscores__b");
        check("__a", "__underscores__a");
        check("int", "int");
    }

    #[test]
    fn reserved_words_are_recognized() {
        assert!(
            ["as", "function", "namespace", "while"]
                .into_iter()
                .all(is_reserved)
        );
        assert!(!is_reserved("name"));
    }

    #[test]
    fn runs_of_underscores_are_escaped_from_left() {
        assert_eq!(escape("a___b").as_deref(), Some("a__underscores___b"));
        assert_eq!(
            escape("a____b").as_deref(),
            Some("a__underscores____underscores__b")
        );
    }

    #[test]
    fn names_with_invalid_characters_cannot_be_escaped() {
        for name in ["", "1st", "$ref", "a b", "größe", "a@b"] {
            assert_eq!(escape(name), None, "{name}");
        }
    }

    #[test]
    fn unknown_escape_sequence_is_rejected() {
        assert_eq!(unescape("a__what__b"), None);
        assert_eq!(unescape("a__in__b"), None);
        assert_eq!(unescape("a___x__"), None);
        assert_eq!(unescape("a____b").as_deref(), Some("a____b"));
        assert_eq!(unescape("a__b_c__").as_deref(), Some("a__b_c__"));
    }
}
