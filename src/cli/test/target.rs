//! Probes of what is no validating policy: `target` in the place of `policyName`.
//!
//! Takes a probe as it is written, gives its target, and what of the probe does not go with it. A sort of target has a
//! variant of [`TargetKind`], and a kind in [`kind_of`].

use std::collections::HashMap;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Map, Value as Json, json};

use crate::cli::check::webhook;
use crate::cli::input::Object;
use crate::policy::nearest::nearest;
use crate::probe::api::{PolicyProbeSpec, Target};
use crate::probe::crd::TARGET_KINDS;
use crate::probe::run::TargetKind;
use crate::probe::validation::Violation;
use crate::schema::Crd;

/// The kind of CustomResourceDefinitions.
const DEFINITION: &str = "CustomResourceDefinition";

/// Fields that say something of policies alone.
const OF_POLICIES: [&str; 6] = [
    "policyName",
    "policyNames",
    "params",
    "inlineParams",
    "bindings",
    "inlineBindings",
];

/// The sort of objects of a kind that a target may have.
pub(super) fn kind_of(target: &Target) -> Option<TargetKind> {
    match target.kind.as_str() {
        DEFINITION => Some(TargetKind::Definition),
        "MutatingAdmissionPolicy" => Some(TargetKind::Mutating),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            Some(TargetKind::Webhook)
        }
        _ => None,
    }
}

/// The target of a probe, with the probe in the form that is read; `None` for a probe of validating policies.
///
/// # Errors
/// What of the probe does not go with its target, by its field.
pub(super) fn take(probe: &Json) -> Result<Option<(Json, Target)>, Vec<Violation>> {
    let Some(target) = probe.pointer("/spec/target") else {
        return Ok(None);
    };
    let violation = |field: &str, message: String| Violation {
        field_ref: format!("spec.{field}"),
        message,
    };
    let target: Target = serde_json::from_value(target.clone()).map_err(|error| {
        let message = format!("must be `{{kind, name}}`, with `webhook` for a webhook: {error}");
        vec![violation("target", message)]
    })?;
    let Some(kind) = kind_of(&target) else {
        let message = if target.kind == "ValidatingAdmissionPolicy" {
            "is for other kinds; write `policyName` for a ValidatingAdmissionPolicy".to_owned()
        } else {
            let known = TARGET_KINDS
                .into_iter()
                .chain(["ValidatingAdmissionPolicy"]);
            let meant = match nearest(&target.kind, known) {
                Some("ValidatingAdmissionPolicy") => {
                    "; write `policyName` for a ValidatingAdmissionPolicy".to_owned()
                }
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => String::new(),
            };
            let kinds = TARGET_KINDS.join(", ");
            format!("is `{}`, and must be one of {kinds}{meant}", target.kind)
        };
        return Err(vec![violation("target.kind", message)]);
    };
    let mut found = Vec::new();
    let mut probe = probe.clone();
    if let Some(spec) = probe.get_mut("spec").and_then(Json::as_object_mut) {
        let (fields, what) = match kind {
            TargetKind::Webhook => (OF_POLICIES.as_slice(), "policies, and not for a webhook"),
            TargetKind::Definition => (
                OF_POLICIES.as_slice(),
                "policies, and not for a CustomResourceDefinition",
            ),
            TargetKind::Policy | TargetKind::Mutating => (
                &["policyName", "policyNames"][..],
                "validating policies, and not for a target",
            ),
        };
        for field in fields.iter().filter(|field| spec.contains_key(**field)) {
            found.push(violation(field, format!("is for {what}")));
        }
        if kind == TargetKind::Webhook {
            spec.insert("bindings".to_owned(), json!("Implied"));
        }
    }
    if found.is_empty() {
        Ok(Some((probe, target)))
    } else {
        Err(found)
    }
}

/// The expectations of a probe that cannot be held against its target.
pub(super) fn unfit(spec: &PolicyProbeSpec, target: &Target) -> Vec<Violation> {
    let (allowed, message): (&[&str], &str) = match kind_of(target) {
        None | Some(TargetKind::Policy) => return Vec::new(),
        Some(TargetKind::Webhook) => (
            &["applies", "error"],
            "the answer of a webhook is not known here: expect `applies`, whether it is called, or `error`",
        ),
        Some(TargetKind::Definition) => (
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
        Some(TargetKind::Mutating) => (
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
                webhook: Some((webhook.policy.value.metadata.name.clone()).unwrap_or_default()),
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

/// The CustomResourceDefinitions of the input.
#[derive(Default)]
pub(super) struct Definitions {
    /// The names that they have in probes.
    pub(super) keys: Vec<String>,
    /// Those that a probe names; of several of one name the last, as `kubectl apply` has it.
    pub(super) named: HashMap<String, Object<Crd>>,
    /// The custom kinds of all of them.
    pub(super) crds: Vec<Crd>,
}

/// Sorts `crds` by what `probes` name.
pub(super) fn definitions(
    probes: &[Object<Json>],
    crds: impl Iterator<Item = Object<Crd>>,
) -> Definitions {
    let is_named = |name: &str| {
        probes.iter().any(|probe| {
            let target = |field: &str| probe.value.pointer(&format!("/spec/target/{field}"));
            target("kind") == Some(&json!(DEFINITION)) && target("name") == Some(&json!(name))
        })
    };
    let mut definitions = Definitions::default();
    for crd in crds {
        let name = crd.name().unwrap_or_default();
        let key = format!("{DEFINITION}/{name}");
        definitions.keys.push(key.clone());
        if is_named(name) {
            definitions.crds.push(crd.value.clone());
            definitions.named.insert(key, crd);
        } else {
            definitions.crds.push(crd.value);
        }
    }
    definitions
}
