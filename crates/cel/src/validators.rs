//! Checks that follow the type checker: literals that would fail whenever they were evaluated.
//!
//! The checks of the tree belong to the checker; here are their names and the questions they ask of a
//! literal.
//!
//! Source: cel-go `cel/validator.go`, `ext/formatting.go`.

use super::ast::Literal;
use super::temporal;

/// A check that follows the type checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Validator {
    /// The elements of a list literal are of one type, and so are the keys and the values of a map's.
    HomogeneousLiterals,
    /// The literal argument of `duration` can be converted.
    Duration,
    /// The literal argument of `timestamp` can be converted.
    Timestamp,
    /// The first argument of `matches`, where it is a literal, is a regular expression.
    Matches,
    /// The clauses of a literal format fit the literal list of arguments.
    StringFormat,
}

impl Validator {
    /// Upstream's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HomogeneousLiterals => "cel.validator.homogeneous_literals",
            Self::Duration => "cel.validator.duration",
            Self::Timestamp => "cel.validator.timestamp",
            Self::Matches => "cel.validator.matches",
            Self::StringFormat => "cel.validator.string_format",
        }
    }
}

/// Whether `duration(literal)` can be evaluated.
///
/// Of the literals that pass the type checker, only texts can: neither an int nor `null` is ever
/// converted.
///
/// Source: cel-go `cel/validator.go`, `ValidateDurationLiterals`, `evalCall`.
#[must_use]
pub fn is_valid_duration_literal(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => temporal::parse_duration(text).is_some(),
        _ => false,
    }
}

/// Whether `timestamp(literal)` can be evaluated; of an int, which is seconds, if it is in range.
///
/// Source: cel-go `cel/validator.go`, `ValidateTimestampLiterals`, `evalCall`.
#[must_use]
pub fn is_valid_timestamp_literal(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => temporal::parse_timestamp(text).is_ok(),
        Literal::Int(seconds) => temporal::is_unix_seconds(*seconds),
        _ => false,
    }
}

/// Whether the literal, the first argument of `matches`, is a regular expression.
///
/// Upstream looks at the first argument behind the receiver, also where there is no receiver: of
/// `matches('(', 'a')` it takes the text for the expression.
///
/// Source: cel-go `cel/validator.go`, `ValidateRegexLiterals`, `compileRegex`.
#[must_use]
pub fn is_valid_matches_literal(literal: &Literal) -> bool {
    match literal {
        Literal::String(pattern) => is_valid_regex(pattern),
        _ => false,
    }
}

/// Whether `pattern` is a regular expression of Go.
#[must_use]
pub fn is_valid_regex(pattern: &str) -> bool {
    regexp::parse(pattern).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Literal {
        Literal::String(text.into())
    }

    #[test]
    fn durations() {
        assert!(is_valid_duration_literal(&text("1.5h")));
        assert!(!is_valid_duration_literal(&text("1d")));
        assert!(!is_valid_duration_literal(&Literal::Int(1)));
        assert!(!is_valid_duration_literal(&Literal::Null));
    }

    #[test]
    fn timestamps() {
        assert!(is_valid_timestamp_literal(&text("2024-01-01T00:00:00,5Z")));
        assert!(!is_valid_timestamp_literal(&text(
            "9999-12-31T23:59:59-00:01"
        )));
        assert!(is_valid_timestamp_literal(&Literal::Int(-62_135_596_800)));
        assert!(!is_valid_timestamp_literal(&Literal::Int(253_402_300_800)));
        assert!(!is_valid_timestamp_literal(&Literal::Null));
    }

    #[test]
    fn regular_expressions() {
        assert!(is_valid_matches_literal(&text("^[a-z]+$")));
        assert!(!is_valid_matches_literal(&text("(")));
        assert!(!is_valid_matches_literal(&Literal::Bytes(b"a"[..].into())));
    }
}
