//! The names of tokens and token sets in the generated parser.
//!
//! Source: cel-go `parser/gen/cel_parser.go` (`LiteralNames`, `SymbolicNames`);
//! `github.com/antlr4-go/antlr/v4` `interval_set.go` (`toTokenString`), `error_strategy.go`
//! (`GetTokenErrorDisplay`, `escapeWSAndQuote`).

use cel::syntax::token::{Kind, Token, TokenSet};

pub(super) const END: &str = "<EOF>";

/// Token kinds and their names, in the order in which messages list them.
const NAMES: [(Kind, &str); 36] = [
    (Kind::End, END),
    (Kind::Equals, "'=='"),
    (Kind::NotEquals, "'!='"),
    (Kind::In, "'in'"),
    (Kind::Less, "'<'"),
    (Kind::LessEquals, "'<='"),
    (Kind::GreaterEquals, "'>='"),
    (Kind::Greater, "'>'"),
    (Kind::And, "'&&'"),
    (Kind::Or, "'||'"),
    (Kind::OpenBracket, "'['"),
    (Kind::CloseBracket, "']'"),
    (Kind::OpenBrace, "'{'"),
    (Kind::CloseBrace, "'}'"),
    (Kind::OpenParen, "'('"),
    (Kind::CloseParen, "')'"),
    (Kind::Dot, "'.'"),
    (Kind::Comma, "','"),
    (Kind::Minus, "'-'"),
    (Kind::Exclamation, "'!'"),
    (Kind::Question, "'?'"),
    (Kind::Colon, "':'"),
    (Kind::Plus, "'+'"),
    (Kind::Star, "'*'"),
    (Kind::Slash, "'/'"),
    (Kind::Percent, "'%'"),
    (Kind::True, "'true'"),
    (Kind::False, "'false'"),
    (Kind::Null, "'null'"),
    (Kind::Float, "NUM_FLOAT"),
    (Kind::Int, "NUM_INT"),
    (Kind::Uint, "NUM_UINT"),
    (Kind::String, "STRING"),
    (Kind::Bytes, "BYTES"),
    (Kind::Ident, "IDENTIFIER"),
    (Kind::EscapedIdent, "ESC_IDENTIFIER"),
];

/// Returns the names of the tokens in `set`: `'=='` for one token, `{'==', '!='}` for several.
pub(super) fn set_text(set: TokenSet) -> String {
    let names: Vec<_> = NAMES
        .iter()
        .filter(|(kind, _)| set.contains(*kind))
        .map(|(_, name)| *name)
        .collect();
    match names.as_slice() {
        [only] => (*only).to_owned(),
        several => format!("{{{}}}", several.join(", ")),
    }
}

/// Returns the source of `token` in quotes, for a message. For the end token, returns [`END`] in quotes.
pub(super) fn token_text(token: Token, source: &str) -> String {
    match token.kind {
        Kind::End => quoted(END),
        _ => quoted(token.text(source)),
    }
}

/// Quotes a source excerpt for a message and escapes its tabs and line breaks.
pub(super) fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\t', "\\t")
        .replace('\n', "\\n")
        .replace('\r', "\\r");
    format!("'{escaped}'")
}

/// Prefix of ANTLR's message for input that matches no alternative.
pub(super) const NO_VIABLE: &str = "no viable alternative at input ";

/// Replaces each [`NO_VIABLE`] error in `message` that quotes one character and a reserved word, such as `.true`. The
/// replacement is cel-go's error that an identifier was expected.
///
/// Source: cel-go `parser/parser.go` (`reservedIdentifier`, `mismatchedReservedIdentifier`).
pub(super) fn with_reserved_words(message: String) -> String {
    if !message.contains(NO_VIABLE) {
        return message;
    }
    let (mut out, mut rest) = (String::with_capacity(message.len()), message.as_str());
    while let Some((before, from)) = rest.split_once(NO_VIABLE) {
        out.push_str(before);
        if let Some((word, rest_after)) = reserved_word(from) {
            out.push_str("mismatched input '");
            out.push_str(word);
            out.push_str("' expecting IDENTIFIER");
            rest = rest_after;
        } else {
            out.push_str(NO_VIABLE);
            rest = from;
        }
    }
    out.push_str(rest);
    out
}

/// Parses a quote, any character, a reserved word and a closing quote. Returns the word and the remaining input.
fn reserved_word(from: &str) -> Option<(&str, &str)> {
    let mut quoted = from.strip_prefix('\'')?.chars();
    quoted.next().filter(|&c| c != '\n')?;
    let from = quoted.as_str();
    ["true", "false", "null"]
        .iter()
        .find_map(|word| Some((*word, from.strip_prefix(word)?.strip_prefix('\'')?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_of_one_token_is_shown_without_braces() {
        assert_eq!(set_text(TokenSet::new(&[Kind::Colon])), "':'");
        assert_eq!(
            set_text(TokenSet::new(&[Kind::Ident, Kind::End, Kind::Dot])),
            "{<EOF>, '.', IDENTIFIER}"
        );
    }

    #[track_caller]
    fn check(message: &str, expected: &str) {
        assert_eq!(with_reserved_words(message.to_owned()), expected);
    }

    #[test]
    fn reserved_word_after_dot_is_reported_as_mismatched_input() {
        check(
            "no viable alternative at input '.true'",
            "mismatched input 'true' expecting IDENTIFIER",
        );
        check(
            "no viable alternative at input '. true'",
            "no viable alternative at input '. true'",
        );
        check(
            "no viable alternative at input 'no viable alternative at input '\u{e9}null'",
            "no viable alternative at input 'mismatched input 'null' expecting IDENTIFIER",
        );
        check("extraneous input '.true'", "extraneous input '.true'");
    }
}
