//! The table of rules. Each rule has a stable id, a summary, an example and a remedy.
//!
//! `kubectl vap explain`, `docs/rules.md` and the rules in SARIF are generated from the table.

mod scope;
mod table;

use cel::diagnostic::Code;
use serde::{Serialize, Serializer};

pub use scope::{RuleLevel, RuleObject, Scope};
pub use table::Rule;

/// An entry in the table of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The stable id, such as `undefined-field`. It does not change after a release.
    pub id: &'static str,
    /// A summary of the rule's findings: one sentence without an initial capital letter or a final period.
    pub summary: &'static str,
    /// An example of a finding.
    pub example: Example,
    /// How to fix a finding, in full sentences.
    pub mend: &'static str,
}

/// An example of a finding, usually with a correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Example {
    /// An expression of a validation. The policy is for Deployments.
    Expression {
        /// The expression that causes the finding.
        wrong: &'static str,
        /// The corrected expression.
        right: &'static str,
    },
    /// Fields of a policy's spec. The policy is for Deployments.
    Spec {
        /// The fields that cause the finding.
        wrong: &'static str,
        /// The corrected fields.
        right: &'static str,
    },
    /// The content of a file.
    File {
        /// The content that causes the finding.
        wrong: &'static str,
        /// The corrected content.
        right: &'static str,
    },
    /// A description without a correction.
    Words(&'static str),
}

impl Rule {
    /// Returns the stable id, such as `undefined-field`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.entry().id
    }

    /// Returns the summary of the rule's findings: one sentence.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// Returns the rule with this id. `None` if there is no such rule.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.id() == id)
    }
}

/// Serializes a rule as its id.
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
    fn rules_are_sorted_and_found_by_id() {
        assert!(Rule::ALL.windows(2).all(|pair| pair[0].id() < pair[1].id()));
        for rule in Rule::ALL {
            assert_eq!(Rule::from_id(rule.id()), Some(*rule));
            let Entry { summary, mend, .. } = rule.entry();
            assert!(!summary.ends_with('.') && mend.ends_with('.'), "{rule:?}");
        }
        assert_eq!(Rule::from_id("undefined"), None);
    }
}
