//! Rules for probes whose target is not a ValidatingAdmissionPolicy: the allowed kinds, fields and expectations.
//!
//! The kind of a target must be one of [`SubjectKind::opt_in`].

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::api::{BindingSource, PolicyProbeSpec, Target};
use super::validation::Violation;
use crate::policy::nearest::nearest;
use crate::policy::subject::{SubjectId, SubjectKind};

/// Identifies the object that a probe tests: a subject, or one webhook of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId {
    /// The policy, webhook configuration or CustomResourceDefinition.
    pub subject: SubjectId,
    /// The name of the webhook, if the subject is a webhook configuration.
    pub webhook: Option<Arc<str>>,
}

impl TargetId {
    /// Returns the identity of the subject with this kind and name.
    #[must_use]
    pub fn new(kind: SubjectKind, name: &str) -> Self {
        Self {
            subject: SubjectId::new(kind, name),
            webhook: None,
        }
    }

    /// Returns the identity of the ValidatingAdmissionPolicy with this name.
    #[must_use]
    pub fn policy(name: &str) -> Self {
        Self::new(SubjectKind::ValidatingAdmissionPolicy, name)
    }

    /// Returns the identity of a webhook of the configuration with this kind and name.
    #[must_use]
    pub fn webhook(kind: SubjectKind, configuration: &str, webhook: &str) -> Self {
        Self {
            subject: SubjectId::new(kind, configuration),
            webhook: Some(webhook.into()),
        }
    }

    /// Returns the identity of the object that a valid probe tests.
    #[must_use]
    pub fn from_spec(spec: &PolicyProbeSpec) -> Self {
        let Some(target) = &spec.target else {
            return Self::policy(&spec.policy_name);
        };
        Self {
            subject: SubjectId::new(kind_of(target).unwrap_or_default(), target.name.as_str()),
            webhook: target.webhook.as_deref().map(Into::into),
        }
    }

    /// Returns the kind of the subject.
    #[must_use]
    pub const fn kind(&self) -> SubjectKind {
        self.subject.kind
    }
}

/// Formats the name of a ValidatingAdmissionPolicy, or else `KIND/NAME` or `KIND/NAME/WEBHOOK`.
impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind() != SubjectKind::ValidatingAdmissionPolicy {
            write!(f, "{}/", self.kind())?;
        }
        f.write_str(&self.subject.name)?;
        match &self.webhook {
            None => Ok(()),
            Some(webhook) => write!(f, "/{webhook}"),
        }
    }
}

/// Fields of a probe that are allowed only if the subject is a policy.
const POLICY_FIELDS: [&str; 6] = [
    "policyName",
    "policyNames",
    "params",
    "inlineParams",
    "bindings",
    "inlineBindings",
];

/// Returns the allowed kinds of a target in alphabetical order.
pub(super) fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&str> = SubjectKind::opt_in().map(SubjectKind::as_str).collect();
    kinds.sort_unstable();
    kinds
}

/// Returns the kind of a target. Returns `None` if the kind is not allowed.
#[must_use]
pub fn kind_of(target: &Target) -> Option<SubjectKind> {
    SubjectKind::opt_in().find(|kind| kind.as_str() == target.kind)
}

/// Returns the violations of a probe with this target. `has` returns true if the probe has the given field.
#[must_use]
pub fn violations(target: &Target, has: impl Fn(&str) -> bool) -> Vec<Violation> {
    let violation = |field: &str, message: String| Violation {
        field_ref: format!("spec.{field}"),
        message,
    };
    let Some(kind) = kind_of(target) else {
        let message = if target.kind == "ValidatingAdmissionPolicy" {
            "must be another kind; use `policyName` for a ValidatingAdmissionPolicy".to_owned()
        } else {
            let kinds = kinds();
            let candidates = kinds.iter().copied().chain(["ValidatingAdmissionPolicy"]);
            let hint = match nearest(&target.kind, candidates) {
                Some("ValidatingAdmissionPolicy") => {
                    "; use `policyName` for a ValidatingAdmissionPolicy".to_owned()
                }
                Some(kind) => format!("; did you mean `{kind}`?"),
                None => String::new(),
            };
            let kinds = kinds.join(", ");
            format!("is `{}`, but must be one of {kinds}{hint}", target.kind)
        };
        return vec![violation("target.kind", message)];
    };
    let (fields, restriction) = match kind {
        SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration => {
            (POLICY_FIELDS.as_slice(), "policies, not for webhooks")
        }
        SubjectKind::CustomResourceDefinition => (
            POLICY_FIELDS.as_slice(),
            "policies, not for CustomResourceDefinitions",
        ),
        SubjectKind::ValidatingAdmissionPolicy | SubjectKind::MutatingAdmissionPolicy => (
            &["policyName", "policyNames"][..],
            "ValidatingAdmissionPolicies, not together with a target",
        ),
    };
    let fields = fields.iter().filter(|field| has(field));
    fields
        .map(|field| violation(field, format!("is allowed for {restriction}")))
        .collect()
}

/// Returns `Implied` for webhooks, which have no bindings. Returns `None` for other kinds, because their probes specify
/// the source of bindings.
#[must_use]
pub fn implied_bindings(kind: SubjectKind) -> Option<BindingSource> {
    kind.is_webhooks().then_some(BindingSource::Implied)
}

/// Returns the expectations of a probe that its target does not allow.
#[must_use]
pub fn disallowed_expectations(spec: &PolicyProbeSpec, target: &Target) -> Vec<Violation> {
    let (allowed, message): (&[&str], &str) = match kind_of(target) {
        None | Some(SubjectKind::ValidatingAdmissionPolicy) => return Vec::new(),
        Some(
            SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration,
        ) => (
            &["applies", "error"],
            "the response of a webhook is unknown; expect `applies` (true if the webhook is called) or `error`",
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
            "is for policies; for a custom resource, expect `decision`, and with `Deny` also `field`, `message`, `reason` or `errors`",
        ),
        Some(SubjectKind::MutatingAdmissionPolicy) => (
            &["applies", "error", "object", "patch", "unchanged"],
            "a mutating policy has no validations; expect `object`, `patch`, `unchanged`, `applies` or `error`",
        ),
    };
    let mut disallowed = Vec::new();
    for (n, case) in spec.cases.iter().enumerate() {
        let Ok(Json::Object(expect)) = serde_json::to_value(&case.expect) else {
            continue;
        };
        let fields = Map::keys(&expect).filter(|field| !allowed.contains(&field.as_str()));
        disallowed.extend(fields.map(|field| Violation {
            field_ref: format!("spec.cases[{n}].expect.{field}"),
            message: message.to_owned(),
        }));
    }
    disallowed
}
