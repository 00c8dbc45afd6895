//! State of a policy's bindings and of the params that they refer to.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};

use super::cluster_snapshot::ClusterSnapshot;
use super::context::Context;
use super::params::{Listing, Objects, Referrer};
use crate::policy;
use crate::policy::admission::Selector;
use crate::schema::rest_mapper::ApiResource;
use crate::status::bindings::{BindingFacts, BindingsState};
use crate::status::compute::{MissingParams, ParamsState};
use crate::telemetry::metrics::Source;

/// The bindings of a policy.
pub(crate) type Bindings = Vec<Arc<ValidatingAdmissionPolicyBinding>>;

/// The bindings of `policy`, or why they are not known.
pub(crate) fn bindings_of(
    context: &Context,
    policy: &ValidatingAdmissionPolicy,
) -> Result<Bindings, BindingsState> {
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    // Once we may not read them any more, what was listed before says nothing of today.
    match context.readiness.refusal(Source::Bindings) {
        // The whole of it is said once, by the log and `/readyz`.
        Some(_) => Err(BindingsState::NotPermitted),
        None => context.bindings.of(name).ok_or(BindingsState::Unread),
    }
}

/// The resource that serves the policy's paramKind, if one does.
pub(crate) fn param_resource<'a>(
    policy: &ValidatingAdmissionPolicy,
    snapshot: &'a ClusterSnapshot,
) -> Option<&'a ApiResource> {
    let gvk = policy::param_kind(policy)?;
    snapshot.mapper.resources_of_kind(&gvk).next()
}

/// Returns the state of the bindings, as the status reports it.
pub(crate) fn bindings_state(
    policy: &ValidatingAdmissionPolicy,
    bindings: &Bindings,
    params: Option<&ApiResource>,
) -> BindingsState {
    let has_param_kind = policy::param_kind(policy).is_some();
    let facts = |binding: &Arc<ValidatingAdmissionPolicyBinding>| {
        let spec = &binding.spec;
        let reference = spec.param_ref.as_ref().filter(|_| has_param_kind);
        BindingFacts {
            name: binding.metadata.name.clone().unwrap_or_default(),
            actions: spec.validation_actions.clone(),
            problem: reference.and_then(|reference| problem(reference, params)),
            gives_no_params: has_param_kind && reference.is_none(),
        }
    };
    BindingsState::Known(bindings.iter().map(facts).collect())
}

/// Why the API server cannot use a reference to params.
fn problem(reference: &ParamRef, params: Option<&ApiResource>) -> Option<String> {
    let has_name = reference.name.as_ref().is_some_and(|name| !name.is_empty());
    let has_namespace = reference
        .namespace
        .as_ref()
        .is_some_and(|namespace| !namespace.is_empty());
    match (has_name, &reference.selector) {
        (true, Some(_)) => return Some("paramRef has both name and selector".into()),
        (false, None) => return Some("paramRef has neither name nor selector".into()),
        (false, Some(selector)) => {
            if let Err(error) = Selector::new(selector) {
                return Some(format!("paramRef.selector is invalid: {error}"));
            }
        }
        (true, None) => {}
    }
    let is_cluster_scoped = params.is_some_and(|served| !served.namespaced);
    (has_namespace && is_cluster_scoped)
        .then(|| "paramRef.namespace is given, and objects of paramKind have no namespace".into())
}

/// Returns the state of the params that the bindings refer to, as the status reports it.
pub(crate) fn params_state(
    context: &Arc<Context>,
    policy: &str,
    bindings: Result<&Bindings, &BindingsState>,
    resource: &ApiResource,
) -> ParamsState {
    let bindings = match bindings {
        Ok(bindings) => bindings,
        Err(BindingsState::NotPermitted) => return ParamsState::BindingsNotPermitted,
        Err(_) => return ParamsState::Unread,
    };
    let references = bindings
        .iter()
        .filter_map(|binding| binding.spec.param_ref.as_ref());
    let references: Vec<&ParamRef> = references.collect();
    if references.is_empty() {
        context.params.forget(policy, Referrer::Bindings);
        return ParamsState::NotReferred;
    }
    let by = (policy, Referrer::Bindings);
    match context.params.referred(context, resource, by, references) {
        Listing::Unread => ParamsState::Unread,
        Listing::Refused(text) => ParamsState::NotPermitted(text),
        Listing::Failed(reason) => ParamsState::Failed(reason),
        Listing::Known(known) => examine(bindings, resource, &known),
    }
}

/// Looks for the params of each reference.
///
/// A reference without a namespace, to objects that have one, means those in the namespace of the
/// request: that there are some in any namespace is all that can be told.
fn examine(bindings: &Bindings, resource: &ApiResource, known: &Objects) -> ParamsState {
    let mut n_found = 0;
    let mut missing = Vec::new();
    for binding in bindings {
        let Some(reference) = &binding.spec.param_ref else {
            continue;
        };
        let namespace = reference
            .namespace
            .as_deref()
            .filter(|namespace| resource.namespaced && !namespace.is_empty());
        let (exists, what) = match (&reference.name, &reference.selector) {
            (Some(name), None) => (known.has(name, namespace), name.clone()),
            (_, Some(selector)) => {
                let Ok(selector) = Selector::new(selector) else {
                    continue;
                };
                (
                    known.has_selected(namespace, &selector),
                    "any that the selector selects".to_owned(),
                )
            }
            (None, None) => continue,
        };
        if exists {
            n_found += 1;
            continue;
        }
        let place = match (namespace, resource.namespaced) {
            (Some(namespace), _) => format!(" in namespace {namespace}"),
            (None, true) => " in any namespace".to_owned(),
            (None, false) => String::new(),
        };
        missing.push(MissingParams {
            binding: binding.metadata.name.clone().unwrap_or_default(),
            what: format!("{what}{place}"),
            denies: reference.parameter_not_found_action.as_deref() == Some("Deny"),
        });
    }
    ParamsState::Examined { n_found, missing }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::cluster_snapshot::tests::resource;
    use crate::controller::params::Meta;

    fn bindings(references: &[Value]) -> Bindings {
        let binding = |(n, reference): (usize, &Value)| {
            let value = json!({
                "metadata": {"name": format!("b{n}")},
                "spec": {"policyName": "p", "validationActions": ["Deny"], "paramRef": reference},
            });
            Arc::new(serde_json::from_value(value).unwrap())
        };
        references.iter().enumerate().map(binding).collect()
    }

    fn known(objects: &[(&str, &str, &str)]) -> Objects {
        let entry = |(namespace, name, team): &(&str, &str, &str)| {
            let meta = Meta {
                labels: [("team".to_owned(), (*team).to_owned())].into(),
                ..Meta::default()
            };
            (((*namespace).to_owned(), (*name).to_owned()), meta)
        };
        let known = Objects::default();
        known.replace(objects.iter().map(entry).collect());
        known
    }

    #[test]
    fn references_are_looked_up_where_they_point() {
        let resource = resource("example.com/v1", "limits", "Limit");
        let known = known(&[("a", "one", "x"), ("b", "two", "y")]);
        let table = [
            (json!({"name": "one"}), None),
            (json!({"name": "one", "namespace": "a"}), None),
            (
                json!({"name": "one", "namespace": "b"}),
                Some("one in namespace b"),
            ),
            (
                json!({"name": "three", "parameterNotFoundAction": "Deny"}),
                Some("three in any namespace"),
            ),
            (json!({"selector": {"matchLabels": {"team": "y"}}}), None),
            (
                json!({"selector": {"matchLabels": {"team": "y"}}, "namespace": "a"}),
                Some("any that the selector selects in namespace a"),
            ),
        ];
        for (reference, expect) in table {
            let denies = reference.get("parameterNotFoundAction").is_some();
            let state = examine(
                &bindings(std::slice::from_ref(&reference)),
                &resource,
                &known,
            );
            let missing = expect.map(|what| MissingParams {
                binding: "b0".into(),
                what: what.into(),
                denies,
            });
            let expect = ParamsState::Examined {
                n_found: usize::from(missing.is_none()),
                missing: missing.into_iter().collect(),
            };
            assert_eq!(state, expect, "{reference}");
        }
    }

    #[test]
    fn what_the_api_server_cannot_use_is_said() {
        let mut served = resource("example.com/v1", "limits", "Limit");
        let of = |reference: Value, served: &ApiResource| {
            problem(&serde_json::from_value(reference).unwrap(), Some(served))
        };
        assert_eq!(of(json!({"name": "a", "namespace": "b"}), &served), None);
        assert!(
            of(json!({}), &served)
                .unwrap()
                .contains("neither name nor selector")
        );
        assert!(
            of(json!({"name": "a", "selector": {}}), &served)
                .unwrap()
                .contains("both")
        );
        let bad = json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}});
        assert!(of(bad, &served).unwrap().contains("invalid"));
        served.namespaced = false;
        assert!(
            of(json!({"name": "a", "namespace": "b"}), &served)
                .unwrap()
                .contains("no namespace")
        );
    }
}
