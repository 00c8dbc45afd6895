//! Type-check findings for the expressions of a policy.
//!
//! Findings are structured data. Only their messages are strings. Statuses, terminal output and files are formatted
//! elsewhere.

use std::sync::Arc;

use super::consequence::Consequence;
use cel::diagnostic::{Diagnostic, Diagnostics, Severity, Shown};
use kubernetes::schema::Gvk;

/// The type-check findings for one expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionFindings {
    /// The index of the expression in the policy.
    pub index: usize,
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The source of the expression.
    pub text: Arc<str>,
    /// The effect on the request if the expression fails.
    pub consequence: Consequence,
    /// The findings for each kind, sorted by group, version and kind. Never empty.
    pub kinds: Vec<KindFindings>,
    /// Facts that do not concern a single kind.
    pub notes: Vec<Note>,
}

/// The findings for one expression and one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindFindings {
    /// The kind.
    pub gvk: Gvk,
    /// Subexpressions that fail, or that the API server rejects, sorted by location.
    pub errors: Diagnostics,
    /// Subexpressions that evaluate without an error but are probably mistakes, sorted by location.
    pub warnings: Diagnostics,
    /// True if an earlier kind has findings at the same locations. The source need not be shown again.
    pub repeats_locations: bool,
}

/// A fact about the findings that does not concern a single kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The number of kinds that have findings but are not listed.
    MoreKinds(usize),
    /// The expression fails for all kinds that wildcards match and for which the expression is evaluated.
    NoWildcardKind {
        /// The number of kinds for which the expression fails.
        n_failing: usize,
        /// The number of kinds that wildcards match.
        n_all: usize,
    },
}

impl ExpressionFindings {
    /// Returns true if `kinds` contains all kinds with findings.
    pub(crate) fn lists_all_kinds(&self) -> bool {
        let mut notes = self.notes.iter();
        !notes.any(|note| matches!(note, Note::MoreKinds(_)))
    }

    /// Returns the findings with their kinds and severities, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Gvk, Severity, &Diagnostic)> {
        self.kinds.iter().flat_map(|kind| {
            kind.iter()
                .map(|(severity, diagnostic)| (&kind.gvk, severity, diagnostic))
        })
    }

    /// Returns true if the expression fails or is rejected for at least one kind.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.errors.is_empty())
    }
}

impl KindFindings {
    /// Returns the findings with their severities, errors first.
    pub fn iter(&self) -> impl Iterator<Item = (Severity, &Diagnostic)> {
        let errors = self.errors.as_slice().iter();
        let warnings = self.warnings.as_slice().iter();
        let errors = errors.map(|diagnostic| (Severity::Error, diagnostic));
        errors.chain(warnings.map(|diagnostic| (Severity::Warning, diagnostic)))
    }

    /// Returns the findings grouped by severity, errors first.
    pub fn by_severity(&self) -> impl Iterator<Item = (Severity, &Diagnostics)> {
        [
            (Severity::Error, &self.errors),
            (Severity::Warning, &self.warnings),
        ]
        .into_iter()
        .filter(|(_, diagnostics)| !diagnostics.is_empty())
    }

    /// Returns the rendering options for findings of `severity`.
    #[must_use]
    pub fn shown(&self, severity: Severity) -> Shown {
        Shown {
            severity,
            with_source: !self.repeats_locations,
        }
    }

    /// Returns the length in bytes of the rendered findings. `text` is the source of the expression.
    pub(super) fn rendered_len(&self, text: &str) -> usize {
        let lengths = self.by_severity().map(|(severity, diagnostics)| {
            diagnostics.rendered_len(text, self.shown(severity)) + 1
        });
        lengths.sum::<usize>().saturating_sub(1)
    }
}
