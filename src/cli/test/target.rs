//! Probes of webhooks: `target` in the place of `policyName`, a form that only files have.
//!
//! Takes a probe as it is written, gives it in the form of the CRD, about a policy that stands for the webhook.

use std::collections::HashMap;
use std::fmt;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::cli::check::webhook;
use crate::cli::input::Object;
use crate::probe::api::PolicyProbeSpec;
use crate::probe::validation::Violation;

/// The kinds that a target may have.
const KINDS: [&str; 2] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
];

/// The name of the policy in a probe of a webhook until it is read.
const PLACEHOLDER: &str = "webhook";

/// Fields that say something of policies alone.
const OF_POLICIES: [&str; 6] = [
    "policyName",
    "policyNames",
    "params",
    "inlineParams",
    "bindings",
    "inlineBindings",
];

/// A webhook that a probe is about.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The kind of the configuration.
    pub kind: String,
    /// The name of the configuration.
    pub name: String,
    /// The name of the webhook in it.
    pub webhook: String,
}

impl Target {
    /// The name of the policy that stands for it, which no policy can have.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}/{}", self.kind, self.name, self.webhook)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "webhook {} of {} {}", self.webhook, self.kind, self.name)
    }
}

/// A probe of a webhook in the form of the CRD, with the webhook; `None` for a probe of policies.
///
/// # Errors
/// What of the probe is none of a webhook, by its field.
pub(super) fn take(probe: &Json) -> Result<Option<(Json, Target)>, Vec<Violation>> {
    let Some(target) = probe.pointer("/spec/target") else {
        return Ok(None);
    };
    let violation = |field: &str, message: String| Violation {
        field_ref: format!("spec.{field}"),
        message,
    };
    let target: Target = serde_json::from_value(target.clone()).map_err(|error| {
        let message = format!("must be `{{kind, name, webhook}}`: {error}");
        vec![violation("target", message)]
    })?;
    let mut found = Vec::new();
    if !KINDS.contains(&target.kind.as_str()) {
        let message = format!("must be one of {}", KINDS.join(", "));
        found.push(violation("target.kind", message));
    }
    let mut probe = probe.clone();
    if let Some(spec) = probe.get_mut("spec").and_then(Json::as_object_mut) {
        spec.remove("target");
        for field in OF_POLICIES
            .iter()
            .filter(|field| spec.contains_key(**field))
        {
            let message = "is for policies, and not for a webhook".to_owned();
            found.push(violation(field, message));
        }
        spec.insert("policyName".to_owned(), json!(PLACEHOLDER));
        spec.insert("bindings".to_owned(), json!("Implied"));
    }
    if found.is_empty() {
        Ok(Some((probe, target)))
    } else {
        Err(found)
    }
}

/// The expectations of a probe that cannot be held against a webhook.
pub(super) fn unfit(spec: &PolicyProbeSpec) -> Vec<Violation> {
    let mut found = Vec::new();
    for (n, case) in spec.cases.iter().enumerate() {
        let Ok(Json::Object(expect)) = serde_json::to_value(&case.expect) else {
            continue;
        };
        let fields =
            Map::keys(&expect).filter(|field| !matches!(field.as_str(), "applies" | "error"));
        found.extend(fields.map(|field| Violation {
            field_ref: format!("spec.cases[{n}].expect.{field}"),
            message: "the answer of a webhook is not known here: expect `applies`, whether it is called, or `error`"
                .to_owned(),
        }));
    }
    found
}

/// A webhook among the input.
pub(super) struct Webhook<'a> {
    /// Its configuration.
    pub(super) configuration: &'a Object<Json>,
    /// Its place in it.
    pub(super) n: usize,
    /// The policy that stands for it.
    pub(super) policy: Object<ValidatingAdmissionPolicy>,
}

/// The webhooks of the input, by the names of the policies that stand for them.
pub(super) fn webhooks(configurations: &[Object<Json>]) -> HashMap<String, Webhook<'_>> {
    let mut found = HashMap::new();
    for configuration in configurations {
        let kind = configuration.value.get("kind").and_then(Json::as_str);
        for webhook in webhook::as_policies(configuration) {
            let target = Target {
                kind: kind.unwrap_or_default().to_owned(),
                name: configuration.name().unwrap_or_default().to_owned(),
                webhook: webhook
                    .policy
                    .value
                    .metadata
                    .name
                    .clone()
                    .unwrap_or_default(),
            };
            let (n, policy) = (webhook.n, webhook.policy);
            found.insert(
                target.key(),
                Webhook {
                    configuration,
                    n,
                    policy,
                },
            );
        }
    }
    found
}
