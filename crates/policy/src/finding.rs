//! Findings of type checking for the expressions of a policy, as data.
//!
//! Only the messages are text. The renderers of statuses, terminals and files format the rest.

use std::sync::Arc;

use super::consequence::Consequence;
use cel::diagnostic::{Diagnostic, Diagnostics, Severity, Shown};
use kubernetes::schema::Gvk;

/// The findings for one expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionFindings {
    /// The index of the expression among those of the policy.
    pub index: usize,
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The text of the expression.
    pub text: Arc<str>,
    /// The effect of the failing expression on the request.
    pub consequence: Consequence,
    /// The findings by kind, sorted by group, version and kind. Never empty.
    pub kinds: Vec<KindFindings>,
    /// Facts about several kinds.
    pub notes: Vec<Note>,
}

/// The findings for an expression and the objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindFindings {
    /// The kind.
    pub gvk: Gvk,
    /// Subexpressions that cannot be evaluated or that the API server rejects, sorted by location.
    pub errors: Diagnostics,
    /// Subexpressions that can be evaluated but are probably mistakes, sorted by location.
    pub warnings: Diagnostics,
    /// True if a previous kind has findings at the same locations, so that the source is not shown again.
    pub repeats_places: bool,
}

/// A fact about several kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The number of further kinds with findings.
    MoreKinds(usize),
    /// The number of kinds matched by wildcards for which the expression is evaluated and fails; it succeeds for none.
    NoWildcardKind {
        /// The number of kinds that fail.
        n_failing: usize,
        /// The number of all kinds that wildcards match.
        n_all: usize,
    },
}

impl ExpressionFindings {
    /// Returns the findings with their kinds, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Gvk, Severity, &Diagnostic)> {
        self.kinds.iter().flat_map(|kind| {
            kind.iter()
                .map(|(severity, diagnostic)| (&kind.gvk, severity, diagnostic))
        })
    }

    /// Returns true if an expression fails or is rejected for some kind.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.errors.is_empty())
    }
}

impl KindFindings {
    /// Returns the findings, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Severity, &Diagnostic)> {
        let errors = self.errors.as_slice().iter();
        let warnings = self.warnings.as_slice().iter();
        let errors = errors.map(|diagnostic| (Severity::Error, diagnostic));
        errors.chain(warnings.map(|diagnostic| (Severity::Warning, diagnostic)))
    }

    /// Returns the findings by severity, in order.
    pub fn by_severity(&self) -> impl Iterator<Item = (Severity, &Diagnostics)> {
        [
            (Severity::Error, &self.errors),
            (Severity::Warning, &self.warnings),
        ]
        .into_iter()
        .filter(|(_, diagnostics)| !diagnostics.is_empty())
    }

    /// Returns the rendering options for the findings of a severity.
    #[must_use]
    pub fn shown(&self, severity: Severity) -> Shown {
        Shown {
            severity,
            with_source: !self.repeats_places,
        }
    }

    /// Returns the length of the rendered findings for the expression `text`, in bytes.
    pub(super) fn rendered_len(&self, text: &str) -> usize {
        let lengths = self.by_severity().map(|(severity, diagnostics)| {
            diagnostics.rendered_len(text, self.shown(severity)) + 1
        });
        lengths.sum::<usize>().saturating_sub(1)
    }
}
