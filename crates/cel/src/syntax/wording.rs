//! Messages of syntax errors, which suggest a correction.
//!
//! cel-go's messages list rules and tokens of the grammar. The messages of this module may differ, because only the
//! author of an expression sees them: the API server rejects expressions with syntax errors.

use super::lexer::LexError;
use super::parser::Expected;
use super::token::{Kind, Token};
use crate::source::SourceMap;

/// Maximum number of characters of the source quoted in a message.
const MAX_SHOWN: usize = 40;

fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let escaped = shown
        .replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t");
    format!("`{escaped}`")
}

/// Returns the message for the token `at`, given the expected input.
pub(super) fn unexpected(text: &str, at: Token, expected: Expected) -> String {
    let actual = if at.kind == Kind::End {
        "the end of the expression".to_owned()
    } else {
        quoted(at.text(text))
    };
    let description = match expected {
        Expected::Operand => "a value".to_owned(),
        Expected::FieldName | Expected::Name => "a name".to_owned(),
        Expected::FieldOrOptional => "the name of a field".to_owned(),
        Expected::Token(Kind::End) => "an operator or the end of the expression".to_owned(),
        Expected::Token(kind) => kind.describe().to_owned(),
        Expected::Close(kind, open) => {
            let place = SourceMap::new(text).location(open.offset);
            format!(
                "{} for the {} at {}:{}",
                kind.describe(),
                open.kind.describe(),
                place.line,
                place.column + 1
            )
        }
    };
    let hint = match (expected, at.kind) {
        (
            Expected::Name | Expected::FieldName,
            Kind::True | Kind::False | Kind::Null | Kind::In,
        ) => "; write a field of that name in brackets, as in a['in']",
        (Expected::Operand, Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace) => {
            "; an operand may be missing before it"
        }
        _ => "",
    };
    format!("Syntax error: expected {description}, found {actual}{hint}")
}

/// Returns the message for characters that do not form a token.
pub(super) fn no_token(text: &str, error: &LexError) -> String {
    let dropped = text
        .get(error.start as usize..error.end as usize)
        .unwrap_or_default();
    let is_last = error.end as usize >= text.len();
    let hint = match dropped.chars().next() {
        Some('=') => equals_hint(text, error),
        Some('&') => "; use `&&` for logical AND",
        Some('|') => "; use `||` for logical OR",
        Some('\'' | '"') if dropped.contains('\\') && !is_last => {
            "; write a backslash in a string as `\\\\`, or use a raw string r'...'"
        }
        Some('\'' | '"') => "; the string has no closing quote",
        Some('`') => "; write such a field name in brackets, as in a['b-c']",
        _ => "",
    };
    format!(
        "Syntax error: unexpected {}{hint}",
        quoted(dropped.trim_end())
    )
}

/// Returns the hint for an `=` that is not part of a CEL operator.
fn equals_hint(text: &str, error: &LexError) -> &'static str {
    let (start, end) = (error.start as usize, error.end as usize);
    let dropped = text.get(start..end).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    let before = text.get(..start).unwrap_or_default();
    match (dropped.chars().nth(1), after.chars().next()) {
        (Some('~'), _) | (None, Some('~')) => "; use `matches()` to search for a pattern",
        (Some('<'), _) | (None, Some('<')) => "; use `<=` to compare",
        (Some('>'), _) | (None, Some('>')) => "; use `>=` to compare",
        _ if before.ends_with(['+', '-', '*', '/', '%', ':']) => {
            "; expressions cannot assign values"
        }
        _ => "; use `==` to compare",
    }
}
