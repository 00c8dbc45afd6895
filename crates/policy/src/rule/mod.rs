//! The table of rules, with the stable id, summary, example and fix of each.
//!
//! `kubectl vap explain`, `docs/rules.md` and the rules in SARIF are generated from it.

mod table;

use cel::diagnostic::Code;
use serde::{Serialize, Serializer};

pub use table::Rule;

/// A row of the table of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id, `undefined-field`. It never changes after a release.
    pub id: &'static str,
    /// A summary of its findings, in one sentence without capital and full stop.
    pub summary: &'static str,
    /// An example.
    pub example: Example,
    /// The fix, in sentences.
    pub mend: &'static str,
}

/// An example of a finding, and its correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Example {
    /// The expression of a validation in a policy for Deployments.
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
    /// A description.
    Words(&'static str),
}

impl Rule {
    /// The id, `undefined-field`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.entry().id
    }

    /// Returns the summary, in one sentence.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// Returns the rule with an id.
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
