//! The sorts of objects that a probe may be about: how each is called, asked, and held against what is expected.
//!
//! A sort is a variant of [`TargetKind`], with what it needs beside a policy in [`Target`], and a module of its own that
//! drives it.

use super::super::api::{Decision, Expect};
use super::super::mutation::{self, Mutating};
use super::super::{difference, webhook};
use crate::defaulting::Stage;
use crate::policy::admission::{Binding, ReviewOutcome};
use crate::policy::exempt;
use crate::schema::Gvr;

/// The sort of object that an API server asks about the requests of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A `ValidatingAdmissionPolicy`.
    Policy,
    /// A webhook of a configuration, as a policy with its rules, selectors and match conditions and without
    /// validations: what is known is whether it is called.
    Webhook,
    /// A `MutatingAdmissionPolicy`, of which the object after its mutations is known.
    Mutating,
    /// A `CustomResourceDefinition`, against which the API server holds custom resources; its cases are run apart.
    Definition,
}

/// The object that a probe is about, as far as it is more than a policy.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A `ValidatingAdmissionPolicy`.
    Policy,
    /// A webhook of a configuration.
    Webhook,
    /// A `MutatingAdmissionPolicy`.
    Mutating(Mutating<'a>),
}

impl Target<'_> {
    /// The sort.
    #[must_use]
    pub const fn kind(&self) -> TargetKind {
        match self {
            Self::Policy => TargetKind::Policy,
            Self::Webhook => TargetKind::Webhook,
            Self::Mutating(_) => TargetKind::Mutating,
        }
    }
}

impl TargetKind {
    /// Reports whether no API server asks it about `resource`.
    pub(super) fn is_exempt(self, resource: &Gvr) -> bool {
        match self {
            Self::Policy | Self::Mutating => exempt::is_exempt(resource),
            Self::Definition => false,
            Self::Webhook => exempt::is_exempt_from_webhooks(resource),
        }
    }

    /// Where among the steps of a request the API server asks it.
    pub(super) const fn stage(self) -> Stage {
        match self {
            Self::Policy | Self::Webhook | Self::Definition => Stage::Validation,
            Self::Mutating => Stage::Mutation,
        }
    }

    /// The name in messages.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Policy | Self::Mutating => "policy",
            Self::Webhook => "webhook",
            Self::Definition => "definition",
        }
    }

    /// Why a request was decided so, in a sentence.
    #[must_use]
    pub fn explain(self, outcome: &ReviewOutcome) -> String {
        match self {
            Self::Policy => difference::explain(outcome),
            Self::Webhook => webhook::explain(outcome),
            Self::Mutating => mutation::explain(outcome),
            Self::Definition => explain_definition(outcome),
        }
    }

    /// How an outcome differs from what is expected of it, where it does.
    pub(super) fn difference(
        self,
        expect: &Expect,
        policy: &str,
        bindings: &[Binding],
        outcome: &ReviewOutcome,
    ) -> Option<String> {
        match self {
            Self::Policy => difference::of(expect, policy, bindings, outcome),
            Self::Webhook => webhook::difference(expect, outcome),
            Self::Mutating => mutation::difference(expect, outcome),
            // Its cases are not run as those of policies.
            Self::Definition => None,
        }
    }

    /// The decision that is known.
    pub(super) fn decision(self, outcome: &ReviewOutcome) -> Option<Decision> {
        match (outcome.is_allowed(), self) {
            // What a webhook says is not known, and a mutation is no decision.
            (true, Self::Webhook | Self::Mutating) => None,
            (true, Self::Policy | Self::Definition) => Some(Decision::Allow),
            (false, _) => Some(Decision::Deny),
        }
    }
}

/// Says what the API server says of a custom resource, in a sentence.
fn explain_definition(outcome: &ReviewOutcome) -> String {
    match &outcome.denial {
        None => "the object is valid".to_owned(),
        Some(_) if outcome.errors.len() > 1 => {
            format!("the object has {} errors", outcome.errors.len())
        }
        Some(denial) => denial.cause.clone(),
    }
}
