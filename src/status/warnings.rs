//! `expressionWarnings`: the findings of type checking as upstream writes them, within the size that a status
//! may have.
//!
//! An API object may have 1.5 MiB in etcd, and everybody who watches policies holds its status. A
//! warning is written in full, to the byte, as long as it and the list stay within bounds; beyond
//! them, whole kinds and then whole expressions are left out, and a line says how many.

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};

use super::message;
use crate::cel::diagnostic::{Diagnostic, Severity};
use crate::policy::consequence::Consequence;
use crate::policy::finding::{ExpressionFindings, KindFindings, Note};

/// A warning: what is found about an expression, as the API server's status has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The text about each kind, in order; the last one ends with what is true of several kinds.
    pub parts: Box<[String]>,
    /// The kind that a condition names, `apps/v1 Deployment`, and what is wrong there.
    pub headline: Option<(String, String)>,
    /// True where the expression fails for some kind; else it hardly does what is meant.
    pub fails: bool,
    /// The fate of a request for which it fails.
    pub consequence: Consequence,
}

impl Warning {
    /// The whole text.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.join("\n")
    }
}

impl From<&ExpressionFindings> for Warning {
    fn from(found: &ExpressionFindings) -> Self {
        let mut parts = Vec::with_capacity(found.kinds.len());
        let mut kinds = found.kinds.iter().peekable();
        while let Some(kind) = kinds.next() {
            // The notes stand below a place in the source, and not as a part of a message.
            let with_source = kinds.peek().is_none() && !found.notes.is_empty();
            parts.push(part(kind, &found.text, with_source));
        }
        if let Some(last) = parts.last_mut() {
            for note in &found.notes {
                last.push_str(&self::note(*note));
                last.push('\n');
            }
        }
        let fails = found.has_errors();
        let first = found
            .iter()
            .find(|(_, severity, _)| !fails || *severity == Severity::Error);
        let headline = first.map(|(gvk, _, first)| (message::kind(gvk), first_line(first)));
        Self {
            field_ref: found.field_ref.clone(),
            parts: parts.into(),
            headline,
            fails,
            consequence: found.consequence,
        }
    }
}

/// The warnings, in the order of the policy's fields.
#[must_use]
pub fn warnings(found: &[ExpressionFindings]) -> Vec<Warning> {
    found.iter().map(Warning::from).collect()
}

/// The text about `kind`.
///
/// Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go`, `TypeCheckingResult.String`; cel-go
/// `common/errors.go`, `Errors.ToDisplayString`.
fn part(kind: &KindFindings, text: &str, with_source: bool) -> String {
    let mut part = format!("{}: ", kind.gvk);
    for (n, (severity, found)) in kind.by_severity().enumerate() {
        if n > 0 {
            part.push('\n');
        }
        let mut shown = kind.shown(severity);
        shown.with_source |= with_source;
        part.push_str(&found.render_as(text, shown));
    }
    part.push('\n');
    part
}

fn first_line(found: &Diagnostic) -> String {
    let message = found.to_string();
    message.lines().next().unwrap_or_default().trim().to_owned()
}

/// The text of a note.
#[must_use]
pub fn note(note: Note) -> String {
    match note {
        Note::MoreKinds(n) => format!("what is said of {n} more kinds is left out"),
        Note::NoWildcardKind { n_failing, n_all } => match n_failing {
            1 if n_all == 1 => {
                "the one kind that the wildcards match cannot be evaluated so".to_owned()
            }
            n if n == n_all => {
                format!("none of the {n} kinds that the wildcards match can be evaluated so")
            }
            1 => {
                "the one kind of the wildcards that comes to this cannot be evaluated so".to_owned()
            }
            n => format!(
                "none of the {n} kinds of the wildcards that come to this can be evaluated so"
            ),
        },
    }
}

/// The greatest length of one warning, in bytes.
const MAX_WARNING_BYTES: usize = 64 * 1024;

/// The greatest length of all warnings of a policy, in bytes.
pub const MAX_TOTAL_BYTES: usize = 256 * 1024;

/// The length that remains for warnings in any case, in bytes.
const MIN_TOTAL_BYTES: usize = 4 * 1024;

/// How large an object may be, less a margin for metadata and encoding, in bytes.
///
/// Source: etcd `server/embed/config.go`, `DefaultMaxRequestBytes` (1.5 MiB).
const MAX_OBJECT_BYTES: usize = 1280 * 1024;

/// The room that `field_ref` and the list's own overhead take for each warning, in bytes.
const OVERHEAD_BYTES: usize = 64;

/// How many bytes the warnings of `policy` may have.
///
/// A large policy leaves less room. Its expressions are counted twice, since `kubectl apply` keeps a
/// second copy of them in an annotation.
#[must_use]
pub fn budget_bytes(policy: &ValidatingAdmissionPolicy) -> usize {
    let spec_bytes = policy.spec.as_ref().map_or(0, expression_bytes);
    MAX_OBJECT_BYTES
        .saturating_sub(spec_bytes.saturating_mul(2))
        .clamp(MIN_TOTAL_BYTES, MAX_TOTAL_BYTES)
}

/// The length of all expressions and messages of a spec.
fn expression_bytes(spec: &ValidatingAdmissionPolicySpec) -> usize {
    let validations = spec.validations.iter().flatten().map(|validation| {
        validation.expression.len()
            + validation.message.as_ref().map_or(0, String::len)
            + validation
                .message_expression
                .as_ref()
                .map_or(0, String::len)
    });
    let variables = spec
        .variables
        .iter()
        .flatten()
        .map(|variable| variable.expression.len());
    let conditions = spec
        .match_conditions
        .iter()
        .flatten()
        .map(|condition| condition.expression.len());
    let annotations = spec
        .audit_annotations
        .iter()
        .flatten()
        .map(|annotation| annotation.value_expression.len());
    validations
        .chain(variables)
        .chain(conditions)
        .chain(annotations)
        .sum()
}

/// The warnings as the API has them, cut to `budget_bytes`.
#[must_use]
pub fn expression_warnings(warnings: &[Warning], budget_bytes: usize) -> Vec<ExpressionWarning> {
    let mut kept = Vec::with_capacity(warnings.len());
    let mut remaining = budget_bytes;
    for (n_kept, warning) in warnings.iter().enumerate() {
        let text = cut_warning(warning, MAX_WARNING_BYTES.min(budget_bytes / 2));
        let size = text.len() + warning.field_ref.len() + OVERHEAD_BYTES;
        if size > remaining {
            let n_left_out = warnings.len() - n_kept;
            kept.push(ExpressionWarning {
                field_ref: "spec".to_owned(),
                warning: format!(
                    "{} left out to keep the status small",
                    message::count(n_left_out, "more expression warning")
                ),
            });
            break;
        }
        remaining -= size;
        kept.push(ExpressionWarning {
            field_ref: warning.field_ref.clone(),
            warning: text,
        });
    }
    kept
}

/// The text of one warning, whole kinds left out from its end where it is longer than `max_bytes`.
fn cut_warning(warning: &Warning, max_bytes: usize) -> String {
    let text = warning.text();
    if text.len() <= max_bytes {
        return text;
    }
    // Room for the line that says what was left out.
    let room = max_bytes.saturating_sub(OVERHEAD_BYTES);
    let mut kept = String::new();
    let mut n_kept = 0;
    for part in &warning.parts {
        if kept.len() + part.len() + 1 > room {
            break;
        }
        kept.push_str(part);
        kept.push('\n');
        n_kept += 1;
    }
    if n_kept == 0 {
        let first = warning.parts.first().map_or("", String::as_str);
        kept.push_str(&message::cut(first.trim_end_matches('\n'), room));
        kept.push_str("\n\n");
        n_kept = 1;
    }
    let left_out = match warning.parts.len() - n_kept {
        0 => "the rest of this warning is".to_owned(),
        n => message::count(n, "more kind"),
    };
    kept.push_str(&left_out);
    kept.push_str(" left out to keep the status small\n");
    kept
}
