//! Targets of probes that are about something else than a ValidatingAdmissionPolicy: their kinds, and which fields and
//! expectations of a probe go with which of them.
//!
//! A target has one of the kinds of [`SubjectKind::opt_in`].

use serde_json::{Map, Value as Json};

use super::api::{BindingSource, PolicyProbeSpec, Target};
use super::validation::Violation;
use crate::policy::nearest::nearest;
use crate::policy::subject::SubjectKind;

/// Fields that say something of policies alone.
const OF_POLICIES: [&str; 6] = [
    "policyName",
    "policyNames",
    "params",
    "inlineParams",
    "bindings",
    "inlineBindings",
];

/// Returns the kinds that a target may have, in alphabetical order.
pub(super) fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&str> = SubjectKind::opt_in().map(SubjectKind::as_str).collect();
    kinds.sort_unstable();
    kinds
}

/// Returns the kind of a target. `None` for kinds that a target must not have.
#[must_use]
pub fn kind_of(target: &Target) -> Option<SubjectKind> {
    SubjectKind::opt_in().find(|kind| kind.as_str() == target.kind)
}

/// The faults of a probe with this target whose spec has the fields of which `has` is true.
#[must_use]
pub fn faults(target: &Target, has: impl Fn(&str) -> bool) -> Vec<Violation> {
    let violation = |field: &str, message: String| Violation {
        field_ref: format!("spec.{field}"),
        message,
    };
    let Some(kind) = kind_of(target) else {
        let message = if target.kind == "ValidatingAdmissionPolicy" {
            "is for other kinds; write `policyName` for a ValidatingAdmissionPolicy".to_owned()
        } else {
            let kinds = kinds();
            let known = kinds.iter().copied().chain(["ValidatingAdmissionPolicy"]);
            let meant = match nearest(&target.kind, known) {
                Some("ValidatingAdmissionPolicy") => {
                    "; write `policyName` for a ValidatingAdmissionPolicy".to_owned()
                }
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => String::new(),
            };
            let kinds = kinds.join(", ");
            format!("is `{}`, and must be one of {kinds}{meant}", target.kind)
        };
        return vec![violation("target.kind", message)];
    };
    let (fields, what) = match kind {
        SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration => {
            (OF_POLICIES.as_slice(), "policies, and not for a webhook")
        }
        SubjectKind::CustomResourceDefinition => (
            OF_POLICIES.as_slice(),
            "policies, and not for a CustomResourceDefinition",
        ),
        SubjectKind::ValidatingAdmissionPolicy | SubjectKind::MutatingAdmissionPolicy => (
            &["policyName", "policyNames"][..],
            "validating policies, and not for a target",
        ),
    };
    let fields = fields.iter().filter(|field| has(field));
    fields
        .map(|field| violation(field, format!("is for {what}")))
        .collect()
}

/// The source of bindings of a target that has none; `None` where the probe says it.
#[must_use]
pub fn implied_bindings(kind: SubjectKind) -> Option<BindingSource> {
    kind.is_webhooks().then_some(BindingSource::Implied)
}

/// The expectations of a probe that cannot be held against its target.
#[must_use]
pub fn unfit(spec: &PolicyProbeSpec, target: &Target) -> Vec<Violation> {
    let (allowed, message): (&[&str], &str) = match kind_of(target) {
        None | Some(SubjectKind::ValidatingAdmissionPolicy) => return Vec::new(),
        Some(
            SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration,
        ) => (
            &["applies", "error"],
            "the answer of a webhook is not known here: expect `applies`, whether it is called, or `error`",
        ),
        Some(SubjectKind::CustomResourceDefinition) => (
            &[
                "decision",
                "message",
                "messageContains",
                "messagePattern",
                "forbiddenMessages",
                "reason",
                "field",
                "errors",
            ],
            "is for policies: of a custom resource expect `decision`, and with Deny `field`, `message`, `reason` or `errors`",
        ),
        Some(SubjectKind::MutatingAdmissionPolicy) => (
            &["applies", "error", "object", "patch", "unchanged"],
            "a mutating policy validates nothing: expect `object`, `patch`, `unchanged`, `applies` or `error`",
        ),
    };
    let mut found = Vec::new();
    for (n, case) in spec.cases.iter().enumerate() {
        let Ok(Json::Object(expect)) = serde_json::to_value(&case.expect) else {
            continue;
        };
        let fields = Map::keys(&expect).filter(|field| !allowed.contains(&field.as_str()));
        found.extend(fields.map(|field| Violation {
            field_ref: format!("spec.cases[{n}].expect.{field}"),
            message: message.to_owned(),
        }));
    }
    found
}
