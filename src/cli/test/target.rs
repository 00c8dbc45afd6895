//! Handles probes that test something other than a validating policy. Such a probe has a `target` instead of
//! `policyName`.
//!
//! Parses the target of a probe, and finds fields of the probe that are incompatible with the target (see
//! `probe::target`).

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use crate::cli::input::Object;
use crate::cli::input::webhook;
use crate::policy::RequestPolicy;
use crate::policy::subject::SubjectKind;
use crate::probe::api::Target;
use crate::probe::target;
use crate::probe::validation::Violation;
use crate::schema::Crd;

pub(super) use crate::probe::target::{TargetId, disallowed_expectations};

/// Returns the target of a probe, and the probe with the implied bindings. Returns `None` for a probe of a validating
/// policy.
///
/// # Errors
/// Returns the fields of the probe that are incompatible with its target.
pub(super) fn parse(probe: &Json) -> Result<Option<(Json, Target)>, Vec<Violation>> {
    let Some(target) = probe.pointer("/spec/target") else {
        return Ok(None);
    };
    let target: Target = serde_json::from_value(target.clone()).map_err(|error| {
        vec![Violation {
            field_ref: "spec.target".to_owned(),
            message: format!("must be `{{kind, name}}`, with `webhook` for a webhook: {error}"),
        }]
    })?;
    let spec = probe.get("spec");
    let violations = target::violations(&target, |field| {
        spec.is_some_and(|spec| spec.get(field).is_some())
    });
    if !violations.is_empty() {
        return Err(violations);
    }
    let mut probe = probe.clone();
    if let Some(bindings) = target::kind_of(&target).and_then(target::implied_bindings)
        && let Some(spec) = probe.get_mut("spec").and_then(Json::as_object_mut)
    {
        spec.insert("bindings".to_owned(), json!(bindings));
    }
    Ok(Some((probe, target)))
}

pub(super) struct Webhook<'a> {
    pub(super) configuration: &'a Object<Json>,
    /// The index of the webhook in its configuration.
    pub(super) n: usize,
    /// The policy that represents the webhook.
    pub(super) policy: Object<RequestPolicy>,
}

pub(super) fn webhooks(configurations: &[Object<Json>]) -> HashMap<TargetId, Webhook<'_>> {
    let mut by_id = HashMap::new();
    for configuration in configurations {
        let kind = configuration.value.get("kind").and_then(Json::as_str);
        let Some(kind) = kind.and_then(SubjectKind::from_kind) else {
            continue;
        };
        for webhook in webhook::as_policies(configuration) {
            let (n, policy) = (webhook.n, webhook.policy);
            let name = configuration.name().unwrap_or_default();
            let webhook = policy.value.name.as_deref().unwrap_or_default();
            by_id.insert(
                TargetId::webhook(kind, name, webhook),
                Webhook {
                    configuration,
                    n,
                    policy,
                },
            );
        }
    }
    by_id
}

const DEFINITIONS: SubjectKind = SubjectKind::CustomResourceDefinition;

/// The CustomResourceDefinitions of the input.
#[derive(Default)]
pub(super) struct Definitions {
    /// The identities of all definitions.
    pub(super) ids: Vec<TargetId>,
    /// The definitions that a probe targets. If several definitions have the same name, the last definition is used, as
    /// with `kubectl apply`.
    pub(super) named: HashMap<TargetId, Object<Crd>>,
    /// All definitions, including those that no probe targets.
    pub(super) crds: Vec<Crd>,
}

/// Separates the `crds` that `probes` target from the others.
pub(super) fn definitions(
    probes: &[Object<Json>],
    crds: impl Iterator<Item = Object<Crd>>,
) -> Definitions {
    let is_named = |name: &str| {
        probes.iter().any(|probe| {
            let target = |field: &str| probe.value.pointer(&format!("/spec/target/{field}"));
            target("kind") == Some(&json!(DEFINITIONS.as_str()))
                && target("name") == Some(&json!(name))
        })
    };
    let mut definitions = Definitions::default();
    for crd in crds {
        let name = crd.name().unwrap_or_default();
        let id = TargetId::new(DEFINITIONS, name);
        definitions.ids.push(id.clone());
        if is_named(name) {
            definitions.crds.push(crd.value.clone());
            definitions.named.insert(id, crd);
        } else {
            definitions.crds.push(crd.value);
        }
    }
    definitions
}
