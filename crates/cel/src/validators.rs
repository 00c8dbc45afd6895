//! Validators that run after the type checker and reject literals whose evaluation always fails.
//!
//! This module defines the names of the validators and their predicates on literals. `ast_validators` applies them to
//! expressions.
//!
//! Source: cel-go `cel/validator.go`, `ext/formatting.go`.

use super::ast::Literal;
use super::temporal;

/// A validator that runs after the type checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Validator {
    /// The elements of a list literal have a common type. The keys of a map literal have a common
    /// type, and so do its values.
    HomogeneousLiterals,
    /// The literal argument of `duration` is valid.
    Duration,
    /// The literal argument of `timestamp` is valid.
    Timestamp,
    /// The first argument of `matches` is a valid regular expression, if it is a literal.
    Matches,
    /// The clauses of a literal format string match a literal list of arguments.
    StringFormat,
}

impl Validator {
    /// Returns upstream's name.
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

/// Returns true if `duration(literal)` succeeds.
///
/// Only string literals can succeed: ints and `null` are never converted.
///
/// Source: cel-go `cel/validator.go`, `ValidateDurationLiterals`, `evalCall`.
#[must_use]
pub fn is_valid_duration_literal(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => temporal::parse_duration(text).is_some(),
        _ => false,
    }
}

/// Returns true if `timestamp(literal)` succeeds. An `int` literal denotes Unix time in seconds and
/// must be in range.
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

/// Returns true if the literal, the first argument of `matches`, is a valid regular expression.
///
/// Upstream validates the first argument after the receiver, even if there is no receiver. In `matches('(', 'a')`,
/// upstream therefore validates `'('`, the string to be searched.
///
/// Source: cel-go `cel/validator.go`, `ValidateRegexLiterals`, `compileRegex`.
#[must_use]
pub fn is_valid_matches_literal(literal: &Literal) -> bool {
    match literal {
        Literal::String(pattern) => is_valid_regex(pattern),
        _ => false,
    }
}

/// Returns true if `pattern` is a valid Go regular expression.
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
    fn malformed_duration_literal_is_rejected() {
        assert!(is_valid_duration_literal(&text("1.5h")));
        assert!(!is_valid_duration_literal(&text("1d")));
        assert!(!is_valid_duration_literal(&Literal::Int(1)));
        assert!(!is_valid_duration_literal(&Literal::Null));
    }

    #[test]
    fn malformed_timestamp_literal_is_rejected() {
        assert!(is_valid_timestamp_literal(&text("2024-01-01T00:00:00,5Z")));
        assert!(!is_valid_timestamp_literal(&text(
            "9999-12-31T23:59:59-00:01"
        )));
        assert!(is_valid_timestamp_literal(&Literal::Int(-62_135_596_800)));
        assert!(!is_valid_timestamp_literal(&Literal::Int(253_402_300_800)));
        assert!(!is_valid_timestamp_literal(&Literal::Null));
    }

    #[test]
    fn invalid_regex_literal_of_matches_is_rejected() {
        assert!(is_valid_matches_literal(&text("^[a-z]+$")));
        assert!(!is_valid_matches_literal(&text("(")));
        assert!(!is_valid_matches_literal(&Literal::Bytes(b"a"[..].into())));
    }
}
