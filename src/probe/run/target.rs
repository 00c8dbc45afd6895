//! Functions that depend on the kind of the probe's subject.

use super::super::api::{Decision, Expect};
use super::super::{difference, mutation, webhook};
use crate::defaulting::Stage;
use crate::policy::admission::{Binding, ReviewOutcome};
use crate::policy::exempt;
use crate::policy::subject::SubjectKind;
use crate::schema::Gvr;
use crate::version::KubernetesVersion;

/// Returns true if API servers of `version` never evaluate the subject `name` of this kind for `resource`.
pub(super) fn is_exempt(
    (kind, name): (SubjectKind, &str),
    resource: &Gvr,
    version: KubernetesVersion,
) -> bool {
    match kind {
        SubjectKind::ValidatingAdmissionPolicy | SubjectKind::MutatingAdmissionPolicy => {
            exempt::is_exempt_from(name, resource, &version.behavior())
        }
        SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration => {
            exempt::is_exempt_from_webhooks(resource, version.behavior())
        }
        SubjectKind::CustomResourceDefinition => false,
    }
}

/// Returns the admission stage for which the objects of a case are prepared. Only mutating policies use the mutation
/// stage. Mutating webhooks use the validation stage.
pub(super) const fn stage(kind: SubjectKind) -> Stage {
    match kind {
        SubjectKind::MutatingAdmissionPolicy => Stage::Mutation,
        SubjectKind::ValidatingAdmissionPolicy
        | SubjectKind::ValidatingWebhookConfiguration
        | SubjectKind::MutatingWebhookConfiguration
        | SubjectKind::CustomResourceDefinition => Stage::Validation,
    }
}

/// Returns the reason of a decision as a clause without a period.
#[must_use]
pub fn explain(kind: SubjectKind, outcome: &ReviewOutcome) -> String {
    match kind {
        SubjectKind::ValidatingAdmissionPolicy => difference::explain(outcome),
        SubjectKind::MutatingAdmissionPolicy => mutation::explain(outcome),
        SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration => {
            webhook::explain(outcome)
        }
        SubjectKind::CustomResourceDefinition => explain_definition(outcome),
    }
}

/// Describes how an outcome differs from the expectation, if it differs.
pub(super) fn difference(
    kind: SubjectKind,
    expect: &Expect,
    policy: &str,
    bindings: &[Binding],
    outcome: &ReviewOutcome,
) -> Option<String> {
    match kind {
        SubjectKind::ValidatingAdmissionPolicy => {
            difference::difference(expect, policy, bindings, outcome)
        }
        SubjectKind::MutatingAdmissionPolicy => mutation::difference(expect, outcome),
        SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration => {
            webhook::difference(expect, outcome)
        }
        // For definitions, the module `custom_resource` compares the outcomes.
        SubjectKind::CustomResourceDefinition => None,
    }
}

/// Returns the decision about a request. For an allowed request, returns `None` if the subject is a mutating policy or
/// a webhook configuration. The response of a webhook is unknown, because the webhook is not called.
pub(super) fn decision(kind: SubjectKind, outcome: &ReviewOutcome) -> Option<Decision> {
    match kind {
        _ if !outcome.is_allowed() => Some(Decision::Deny),
        SubjectKind::ValidatingAdmissionPolicy | SubjectKind::CustomResourceDefinition => {
            Some(Decision::Allow)
        }
        SubjectKind::MutatingAdmissionPolicy
        | SubjectKind::ValidatingWebhookConfiguration
        | SubjectKind::MutatingWebhookConfiguration => None,
    }
}

/// Describes the validation of a custom resource as a clause without a period.
fn explain_definition(outcome: &ReviewOutcome) -> String {
    match &outcome.denial {
        None => "the object is valid".to_owned(),
        Some(_) if outcome.errors.len() > 1 => {
            format!("the object has {} errors", outcome.errors.len())
        }
        Some(denial) => denial.cause.clone(),
    }
}
