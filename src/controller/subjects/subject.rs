//! The content of a subject, by kind. Checks and probes evaluate this content.

use k8s_openapi::api::admissionregistration::v1::Mutation;
use serde::{Deserialize, Serialize};

use super::rules::Rules;
use crate::policy::{self, RequestPolicy};
use crate::schema::Gvk;

/// The content of a subject, without its metadata and its status.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Subject {
    ValidatingPolicy(RequestPolicy),
    MutatingPolicy {
        policy: RequestPolicy,
        mutations: Vec<Mutation>,
        reinvocation_policy: Option<String>,
    },
    /// The webhooks of a `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
    Webhooks(Vec<RequestPolicy>),
    CustomResourceDefinition(Rules),
}

impl Subject {
    /// Returns the policy. `None` for webhook configurations and CustomResourceDefinitions.
    pub(crate) const fn policy(&self) -> Option<&RequestPolicy> {
        match self {
            Self::ValidatingPolicy(policy) | Self::MutatingPolicy { policy, .. } => Some(policy),
            Self::Webhooks(_) | Self::CustomResourceDefinition(_) => None,
        }
    }

    /// Returns one policy, or the webhooks of a configuration. Empty for CustomResourceDefinitions.
    pub(crate) fn policies(&self) -> &[RequestPolicy] {
        match self {
            Self::ValidatingPolicy(policy) | Self::MutatingPolicy { policy, .. } => {
                std::slice::from_ref(policy)
            }
            Self::Webhooks(webhooks) => webhooks,
            Self::CustomResourceDefinition(_) => &[],
        }
    }

    /// Returns the webhooks of a configuration. Empty for other kinds.
    pub(crate) fn webhooks(&self) -> &[RequestPolicy] {
        match self {
            Self::Webhooks(webhooks) => webhooks,
            _ => &[],
        }
    }

    /// Returns the mutations of a mutating policy. `None` for other kinds.
    pub(crate) fn mutations(&self) -> Option<&[Mutation]> {
        match self {
            Self::MutatingPolicy { mutations, .. } => Some(mutations),
            _ => None,
        }
    }

    /// Returns the policy's paramKind. `None` if it has none or its `apiVersion` cannot be parsed.
    pub(crate) fn param_kind(&self) -> Option<Gvk> {
        self.policy().and_then(policy::param_kind)
    }

    /// Returns true for a CustomResourceDefinition with validation rules.
    pub(crate) const fn has_rules(&self) -> bool {
        matches!(self, Self::CustomResourceDefinition(rules) if rules.has_some)
    }

    /// Returns true if an evaluation error denies the request (`failurePolicy: Fail`). For a webhook configuration,
    /// returns true if at least one of its webhooks has `failurePolicy: Fail`.
    pub(crate) fn fails_closed(&self) -> bool {
        match self {
            Self::CustomResourceDefinition(_) => true,
            _ => self.policies().iter().any(policy::fails_closed),
        }
    }

    /// Returns the paths of the fields that the controller does not know, such as `spec.new` or `webhooks[0].new`.
    pub(crate) fn unknown_fields(&self) -> Vec<String> {
        if let Some(policy) = self.policy() {
            return policy.unknown_fields.clone();
        }
        let webhooks = self.webhooks().iter().enumerate();
        webhooks
            .flat_map(|(n, webhook)| {
                let fields = webhook.unknown_fields.iter();
                fields.map(move |field| format!("webhooks[{n}].{field}"))
            })
            .collect()
    }

    /// Removes the content. The kind remains.
    pub(crate) fn clear(&mut self) {
        *self = match self {
            Self::ValidatingPolicy(_) => Self::ValidatingPolicy(RequestPolicy::default()),
            Self::MutatingPolicy { .. } => Self::MutatingPolicy {
                policy: RequestPolicy::default(),
                mutations: Vec::new(),
                reinvocation_policy: None,
            },
            Self::Webhooks(_) => Self::Webhooks(Vec::new()),
            Self::CustomResourceDefinition(_) => Self::CustomResourceDefinition(Rules::default()),
        };
    }
}
