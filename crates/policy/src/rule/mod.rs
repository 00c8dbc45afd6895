//! The rules that findings belong to, in one table: each with its stable id, what it finds, an example, and what
//! to do about it.
//!
//! From the table come `kubectl vap explain`, `docs/rules.md` and the rules of SARIF.

mod table;

use cel::diagnostic::Code;
use serde::{Serialize, Serializer};

pub use table::Rule;

/// A row of the table of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id, `undefined-field`. It is for good once released.
    pub id: &'static str,
    /// The findings that belong to it, in one sentence without capital and full stop.
    pub summary: &'static str,
    /// A case of it.
    pub example: Example,
    /// The mend, in sentences.
    pub mend: &'static str,
}

/// A case of a rule, and the same as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Example {
    /// An expression: that of a validation of a policy on Deployments.
    Expression {
        /// With the finding.
        wrong: &'static str,
        /// Without it.
        right: &'static str,
    },
    /// Fields of such a policy's spec.
    Spec {
        /// With the finding.
        wrong: &'static str,
        /// Without it.
        right: &'static str,
    },
    /// A file.
    File {
        /// With the finding.
        wrong: &'static str,
        /// Without it.
        right: &'static str,
    },
    /// A case in words.
    Words(&'static str),
}

impl Rule {
    /// The id, `undefined-field`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.entry().id
    }

    /// One sentence of what it finds.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// The rule of an id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.id() == id)
    }
}

/// The id.
impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

impl From<Code> for Rule {
    fn from(code: Code) -> Self {
        match code {
            Code::Syntax => Self::Syntax,
            Code::LimitExceeded => Self::LimitExceeded,
            Code::InvalidMacroCall => Self::InvalidMacroCall,
            Code::UndeclaredReference => Self::UndeclaredReference,
            Code::UndefinedField => Self::UndefinedField,
            Code::NoMatchingOverload => Self::NoMatchingOverload,
            Code::NoFieldSelection => Self::NoFieldSelection,
            Code::NotARange => Self::NotARange,
            Code::TypeMismatch | Code::MixedLiteral => Self::TypeMismatch,
            Code::UnresolvedType => Self::UnresolvedType,
            Code::NotAType => Self::NotAType,
            Code::InvalidOptionalSelection => Self::InvalidOptionalSelection,
            Code::InvalidLiteral => Self::InvalidLiteral,
            Code::TooComplex => Self::UnsupportedExpression,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_by_id_and_complete() {
        assert!(Rule::ALL.windows(2).all(|pair| pair[0].id() < pair[1].id()));
        for rule in Rule::ALL {
            assert_eq!(Rule::from_id(rule.id()), Some(*rule));
            let Entry { summary, mend, .. } = rule.entry();
            assert!(!summary.ends_with('.') && mend.ends_with('.'), "{rule:?}");
        }
        assert_eq!(Rule::from_id("undefined"), None);
    }
}
