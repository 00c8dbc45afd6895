//! Findings of type checking about the expressions of a policy, as data.
//!
//! Nothing here is text but the message of each finding: how findings read in a status, in a terminal or in a
//! file is for who shows them.

use std::sync::Arc;

use super::consequence::Consequence;
use cel::diagnostic::{Diagnostic, Diagnostics, Severity, Shown};
use kubernetes::schema::Gvk;

/// The findings about one expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionFindings {
    /// The index of the expression among those of the policy.
    pub index: usize,
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The text of the expression.
    pub text: Arc<str>,
    /// The fate of a request for which the expression fails.
    pub consequence: Consequence,
    /// The findings by kind, sorted by group, version and kind; never empty.
    pub kinds: Vec<KindFindings>,
    /// Facts about several kinds.
    pub notes: Vec<Note>,
}

/// The findings about an expression for the objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindFindings {
    /// The kind.
    pub gvk: Gvk,
    /// Parts that cannot be evaluated, or are refused, sorted by place.
    pub errors: Diagnostics,
    /// Parts that can be evaluated and hardly do what is meant, sorted by place.
    pub warnings: Diagnostics,
    /// True where a kind before this one has findings at the same places, whose source need not be shown again.
    pub repeats_places: bool,
}

/// A fact about several kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// There are findings for so many more kinds.
    MoreKinds(usize),
    /// So many of the kinds that wildcards match come to the expression, and it can be evaluated for none.
    NoWildcardKind {
        /// Those that fail.
        n_failing: usize,
        /// All that wildcards match.
        n_all: usize,
    },
}

impl ExpressionFindings {
    /// The findings with the kind that each is about, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&Gvk, Severity, &Diagnostic)> {
        self.kinds.iter().flat_map(|kind| {
            kind.iter()
                .map(|(severity, found)| (&kind.gvk, severity, found))
        })
    }

    /// Tells whether something fails or is refused, for some kind.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.errors.is_empty())
    }
}

impl KindFindings {
    /// The findings, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Severity, &Diagnostic)> {
        let errors = self.errors.as_slice().iter();
        let warnings = self.warnings.as_slice().iter();
        let errors = errors.map(|found| (Severity::Error, found));
        errors.chain(warnings.map(|found| (Severity::Warning, found)))
    }

    /// The findings by severity, in their order.
    pub fn by_severity(&self) -> impl Iterator<Item = (Severity, &Diagnostics)> {
        [
            (Severity::Error, &self.errors),
            (Severity::Warning, &self.warnings),
        ]
        .into_iter()
        .filter(|(_, found)| !found.is_empty())
    }

    /// The form in which the findings of a severity are rendered.
    #[must_use]
    pub fn shown(&self, severity: Severity) -> Shown {
        Shown {
            severity,
            with_source: !self.repeats_places,
        }
    }

    /// The length of all findings in the expression `text` once they are rendered, in bytes.
    pub(super) fn rendered_len(&self, text: &str) -> usize {
        let lengths = self
            .by_severity()
            .map(|(severity, found)| found.rendered_len(text, self.shown(severity)) + 1);
        lengths.sum::<usize>().saturating_sub(1)
    }
}
