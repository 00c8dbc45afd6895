//! Whose expressions are checked: what people read differs by it, the engine's answers do not.

use crate::status::compute;

/// The sort of object that has expressions which decide on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A ValidatingAdmissionPolicy.
    Policy,
    /// A MutatingAdmissionPolicy.
    MutatingPolicy,
    /// One webhook of a `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
    Webhook,
}

impl Subject {
    /// The sort as conditions are computed of it. Of a webhook in files only the conditions are read that a policy has too.
    pub(super) const fn of_status(self) -> compute::Subject {
        match self {
            Self::Policy | Self::Webhook => compute::Subject::Validating,
            Self::MutatingPolicy => compute::Subject::Mutating,
        }
    }

    /// The object that a cluster has.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Policy | Self::MutatingPolicy => "policy",
            Self::Webhook => "webhook configuration",
        }
    }

    /// The one that an API server asks about a request.
    pub(super) const fn asked(self) -> &'static str {
        match self {
            Self::Policy | Self::MutatingPolicy => "policy",
            Self::Webhook => "webhook",
        }
    }

    /// The consequence where no request matches.
    pub(super) const fn never_runs(self) -> &'static str {
        match self {
            Self::Policy | Self::MutatingPolicy => "the policy never runs",
            Self::Webhook => "the webhook is never called",
        }
    }
}
