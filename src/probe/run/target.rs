//! Functions that depend on the kind of the probe's subject: the stage at which it is evaluated, its decision, and the
//! difference from the expectation.

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

/// Returns the stage of a request at which a subject of this kind is evaluated. All webhooks get the object of the
/// validation stage.
pub(super) const fn stage(kind: SubjectKind) -> Stage {
    match kind {
        SubjectKind::MutatingAdmissionPolicy => Stage::Mutation,
        SubjectKind::ValidatingAdmissionPolicy
        | SubjectKind::ValidatingWebhookConfiguration
        | SubjectKind::MutatingWebhookConfiguration
        | SubjectKind::CustomResourceDefinition => Stage::Validation,
    }
}

/// Returns the reason of a decision, as a clause without a period.
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

/// Returns a description of how an outcome differs from the expected one. Returns `None` if it does not differ.
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
        // Module `custom_resource` runs the cases of definitions.
        SubjectKind::CustomResourceDefinition => None,
    }
}

/// Returns the decision about the request. Returns `None` for webhooks, which are not called, and for mutating
/// policies.
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

/// Returns the result of the validation of a custom resource, as a clause without a period.
fn explain_definition(outcome: &ReviewOutcome) -> String {
    match &outcome.denial {
        None => "the object is valid".to_owned(),
        Some(_) if outcome.errors.len() > 1 => {
            format!("the object has {} errors", outcome.errors.len())
        }
        Some(denial) => denial.cause.clone(),
    }
}
