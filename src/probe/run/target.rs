//! The evaluation of each kind of subject that a probe may be about: when it runs, its decision, and the difference
//! from the expectation.

use super::super::api::{Decision, Expect};
use super::super::{difference, mutation, webhook};
use crate::defaulting::Stage;
use crate::policy::admission::{Binding, ReviewOutcome};
use crate::policy::exempt;
use crate::policy::subject::SubjectKind;
use crate::schema::Gvr;

/// Returns true if API servers never evaluate a subject of this kind for `resource`.
pub(super) fn is_exempt(kind: SubjectKind, resource: &Gvr) -> bool {
    match kind {
        SubjectKind::ValidatingAdmissionPolicy | SubjectKind::MutatingAdmissionPolicy => {
            exempt::is_exempt(resource)
        }
        SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration => {
            exempt::is_exempt_from_webhooks(resource)
        }
        SubjectKind::CustomResourceDefinition => false,
    }
}

/// Returns the step of a request at which a subject of this kind is evaluated. Webhooks get the object of validation.
pub(super) const fn stage(kind: SubjectKind) -> Stage {
    match kind {
        SubjectKind::MutatingAdmissionPolicy => Stage::Mutation,
        SubjectKind::ValidatingAdmissionPolicy
        | SubjectKind::ValidatingWebhookConfiguration
        | SubjectKind::MutatingWebhookConfiguration
        | SubjectKind::CustomResourceDefinition => Stage::Validation,
    }
}

/// Returns the reason of a decision, as a sentence.
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

/// Returns the difference between an outcome and the expected one. `None` if there is none.
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
        // `custom_resource` runs its cases.
        SubjectKind::CustomResourceDefinition => None,
    }
}

/// Returns the decision. `None` if it is unknown: webhooks are not called, and a mutation is not a decision.
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

/// Returns the result of validation of a custom resource, as a sentence.
fn explain_definition(outcome: &ReviewOutcome) -> String {
    match &outcome.denial {
        None => "the object is valid".to_owned(),
        Some(_) if outcome.errors.len() > 1 => {
            format!("the object has {} errors", outcome.errors.len())
        }
        Some(denial) => denial.cause.clone(),
    }
}
