//! Advice about how to fix a mistake.

use std::fmt;

/// One line of advice about how to fix a mistake, with the replacement that it proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The advice for the author.
    pub text: String,
    /// The replacement, for an edit. `None` if several values are possible, or if the author must write more than a
    /// literal.
    pub replacement: Option<Replacement>,
}

/// A replacement for a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The value that replaces the literal at the location of the mistake.
    Literal(String),
    /// The value that replaces one of the literals of the comparison at the location of the mistake.
    ComparedLiteral(String),
    /// The value with which the check continues. It is not proposed, because the author may have meant a different one.
    Assumed(String),
    /// The segment that replaces the segment `undefined` of the path in the literal.
    PathSegment {
        /// The undefined segment.
        undefined: String,
        /// The segment that the author probably meant.
        meant: String,
    },
}

impl Advice {
    /// Returns the question whether the author meant the value of the replacement.
    #[must_use]
    pub fn did_you_mean(replacement: Replacement) -> Self {
        let text = format!("did you mean `{}`?", replacement.value());
        Self {
            text,
            replacement: Some(replacement),
        }
    }
}

impl Replacement {
    /// Returns the new text of the literal or of the path segment.
    #[must_use]
    pub fn value(&self) -> &str {
        match self {
            Self::Literal(value) | Self::ComparedLiteral(value) | Self::Assumed(value) => value,
            Self::PathSegment { meant, .. } => meant,
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Self {
        Self {
            text,
            replacement: None,
        }
    }
}

impl From<&str> for Advice {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
