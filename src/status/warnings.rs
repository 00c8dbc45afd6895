//! Converts the findings of type checking to `expressionWarnings` in the API server's format, within a size limit.
//!
//! A warning is byte-equal to the warning of the API server, unless a limit is exceeded. etcd limits an object to 1.5
//! MiB, and clients that watch policies keep the statuses in memory. If a warning is too long, whole kinds are omitted
//! from the warning. If the list is too long, whole warnings are omitted. An added line contains the number of
//! omissions.

use k8s_openapi::api::admissionregistration::v1::ExpressionWarning;

use super::message;
use crate::cel::diagnostic::{Diagnostic, Severity};
use crate::policy::RequestPolicy;
use crate::policy::consequence::Consequence;
use crate::policy::finding::{ExpressionFindings, KindFindings, Note};

/// The findings about one expression, in the format of the API server's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The field of the expression, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The messages, one for each kind. Notes about several kinds are at the end of the last message.
    pub parts: Box<[String]>,
    /// The kind and the problem that a condition shows. Example: `apps/v1 Deployment`, and the first line of the error
    /// message.
    pub headline: Option<(String, String)>,
    /// True if the expression fails for at least one kind. False if no evaluation fails, but the expression may not
    /// work as intended.
    pub fails: bool,
    /// The effect of a failure on the request.
    pub consequence: Consequence,
}

impl Warning {
    /// Returns the complete message of the warning.
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
            // If notes follow, the last message includes source excerpts, which separate the message from the notes.
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

/// Converts findings to warnings. The order of the policy's fields is preserved.
#[must_use]
pub fn warnings(found: &[ExpressionFindings]) -> Vec<Warning> {
    found.iter().map(Warning::from).collect()
}

/// Formats the findings for one kind.
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

/// Formats a note about several kinds.
#[must_use]
pub fn note(note: Note) -> String {
    match note {
        Note::MoreKinds(n) => format!("findings for {n} more kinds are omitted"),
        Note::NoWildcardKind { n_failing, n_all } => match n_failing {
            1 if n_all == 1 => {
                "the evaluation fails for the one kind that the wildcards match".to_owned()
            }
            n if n == n_all => {
                format!("the evaluation fails for all {n} kinds that the wildcards match")
            }
            1 => "only one of the kinds matched by wildcards has requests that reach this expression, and for those requests the evaluation fails"
                .to_owned(),
            n => format!(
                "only {n} of the kinds matched by wildcards have requests that reach this expression, and for those requests the evaluation fails"
            ),
        },
    }
}

const MAX_WARNING_BYTES: usize = 64 * 1024;

/// The maximum total length of a policy's warnings, in bytes.
pub const MAX_TOTAL_BYTES: usize = 256 * 1024;

/// The minimum of [`budget_bytes`], which applies to large policies.
const MIN_TOTAL_BYTES: usize = 4 * 1024;

/// The maximum size of an object in etcd, minus a margin for metadata and encoding, in bytes.
///
/// Source: etcd `server/embed/config.go`, `DefaultMaxRequestBytes` (1.5 MiB).
const MAX_OBJECT_BYTES: usize = 1280 * 1024;

/// The overhead of each warning in the encoded list, in bytes.
const OVERHEAD_BYTES: usize = 64;

/// Returns the maximum total length of the warnings about `policy`, in bytes.
///
/// A large policy has a lower limit. Its expressions count twice, because `kubectl apply` stores a copy in an
/// annotation.
#[must_use]
pub fn budget_bytes(policy: Option<&RequestPolicy>) -> usize {
    let n_bytes = policy.map_or(0, expression_bytes);
    MAX_OBJECT_BYTES
        .saturating_sub(n_bytes.saturating_mul(2))
        .clamp(MIN_TOTAL_BYTES, MAX_TOTAL_BYTES)
}

fn expression_bytes(policy: &RequestPolicy) -> usize {
    let validations = policy.validations.iter().map(|validation| {
        validation.expression.len()
            + validation.message.as_ref().map_or(0, String::len)
            + validation
                .message_expression
                .as_ref()
                .map_or(0, String::len)
    });
    let variables = policy
        .variables
        .iter()
        .map(|variable| variable.expression.len());
    let conditions = policy
        .match_conditions
        .iter()
        .map(|condition| condition.expression.len());
    let annotations = policy
        .audit_annotations
        .iter()
        .map(|annotation| annotation.value_expression.len());
    validations
        .chain(variables)
        .chain(conditions)
        .chain(annotations)
        .sum()
}

/// Converts warnings to the API type. The total length is at most `budget_bytes`.
#[must_use]
pub fn expression_warnings(warnings: &[Warning], budget_bytes: usize) -> Vec<ExpressionWarning> {
    let mut included = Vec::with_capacity(warnings.len());
    let mut remaining = budget_bytes;
    for (n_included, warning) in warnings.iter().enumerate() {
        let text = cut_warning(warning, MAX_WARNING_BYTES.min(budget_bytes / 2));
        let size = text.len() + warning.field_ref.len() + OVERHEAD_BYTES;
        if size > remaining {
            let n_omitted = warnings.len() - n_included;
            included.push(ExpressionWarning {
                field_ref: "spec".to_owned(),
                warning: format!(
                    "{} omitted (status size limit)",
                    message::count(n_omitted, "more expression warning")
                ),
            });
            break;
        }
        remaining -= size;
        included.push(ExpressionWarning {
            field_ref: warning.field_ref.clone(),
            warning: text,
        });
    }
    included
}

/// Formats a warning. If the text exceeds `max_bytes`, whole kinds are omitted at the end.
fn cut_warning(warning: &Warning, max_bytes: usize) -> String {
    let text = warning.text();
    if text.len() <= max_bytes {
        return text;
    }
    // Reserves space for the line about omitted kinds.
    let room = max_bytes.saturating_sub(OVERHEAD_BYTES);
    let mut shown = String::new();
    let mut n_shown = 0;
    for part in &warning.parts {
        if shown.len() + part.len() + 1 > room {
            break;
        }
        shown.push_str(part);
        shown.push('\n');
        n_shown += 1;
    }
    if n_shown == 0 {
        let first = warning.parts.first().map_or("", String::as_str);
        shown.push_str(&message::cut(first.trim_end_matches('\n'), room));
        shown.push_str("\n\n");
        n_shown = 1;
    }
    let omitted = match warning.parts.len() - n_shown {
        0 => "the rest of this warning is".to_owned(),
        n => message::count(n, "more kind"),
    };
    shown.push_str(&omitted);
    shown.push_str(" omitted (status size limit)\n");
    shown
}
