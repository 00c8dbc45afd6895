//! `expressionWarnings`: the warnings of the type checker within the size that a status may have.
//!
//! An API object may have 1.5 MiB in etcd, and everybody who watches policies holds its status. A
//! warning is written in full, to the byte, as long as it and the list stay within bounds; beyond
//! them, whole kinds and then whole expressions are left out, and a line says how many.

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};

use super::message;
use crate::policy::typecheck::Warning;

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

/// What `field_ref` and the list's own overhead take for each warning, in bytes.
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
        let text = cut_warning(&warning.warning, MAX_WARNING_BYTES.min(budget_bytes / 2));
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

/// The first kind of a warning and what is wrong there: `apps/v1 Deployment` and
/// `undefined field 'replicsa'`.
///
/// The text is `<kind>: ERROR: <input>:<line>:<column>: <message>`, and more lines; `WARNING` stands in
/// place of `ERROR` where nothing fails.
pub(super) fn headline(warning: &str) -> Option<(String, &str)> {
    let first = warning.lines().next()?;
    let (kind, issue) = first
        .split_once(": ERROR: <input>:")
        .or_else(|| first.split_once(": WARNING: <input>:"))?;
    let mut parts = issue.splitn(3, ':');
    let (_line, _column, message) = (parts.next()?, parts.next()?, parts.next()?);
    let (group_version, kind) = kind.split_once(", Kind=")?;
    let kind = format!("{} {kind}", group_version.trim_start_matches('/'));
    Some((kind, message.trim()))
}

/// Whether a warning tells of nothing that fails, but only of tests in vain.
pub(super) fn is_only_vain(warning: &str) -> bool {
    let has = |severity: &str| {
        let (inner, first) = (
            format!(": {severity}: <input>:"),
            format!("{severity}: <input>:"),
        );
        warning
            .lines()
            .any(|line| line.starts_with(&first) || line.contains(&inner))
    };
    has("WARNING") && !has("ERROR")
}

/// The text of one warning, whole kinds left out from its end where it is longer than `max_bytes`.
///
/// The parts of the kinds are parted by an empty line (`crate::policy::typecheck`).
fn cut_warning(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    // Room for the line that says what was left out.
    let room = max_bytes.saturating_sub(OVERHEAD_BYTES);
    let parts: Vec<&str> = text.split("\n\n").collect();
    let mut kept = String::new();
    let mut n_kept = 0;
    for part in &parts {
        if kept.len() + part.len() + 2 > room {
            break;
        }
        kept.push_str(part);
        kept.push_str("\n\n");
        n_kept += 1;
    }
    if n_kept == 0 {
        kept.push_str(&message::cut(
            parts.first().copied().unwrap_or_default(),
            room,
        ));
        kept.push_str("\n\n");
        n_kept = 1;
    }
    let left_out = match parts.len() - n_kept {
        0 => "the rest of this warning is".to_owned(),
        n => message::count(n, "more kind"),
    };
    kept.push_str(&left_out);
    kept.push_str(" left out to keep the status small\n");
    kept
}
