//! Checks that follow the type checker: literals that would fail whenever they were evaluated.
//!
//! The checks of the tree belong to the checker; here are their names and the questions they ask of a
//! literal.
//!
//! Source: cel-go `cel/validator.go`, `ext/formatting.go`.

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
