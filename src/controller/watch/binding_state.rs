//! Determines the state of a policy's bindings and of their params.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{ParamRef, ValidatingAdmissionPolicyBinding};

use super::params;
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::context::Context;
use crate::controller::subjects::binding_annotations;
use crate::controller::subjects::params::{Listing, Objects, Referrer};
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::schema::Gvk;
use crate::schema::rest_mapper::{ApiResource, RestMapper};
use crate::status::bindings::BindingsState;
use crate::status::compute::{ParamLookup, ParamsState};
use crate::telemetry::metrics::Source;

pub(crate) type Bindings = Vec<Arc<ValidatingAdmissionPolicyBinding>>;

/// Returns the bindings of a policy, or why they are unknown. For a kind without bindings, the list is empty.
pub(crate) fn bindings_of(context: &Context, id: &SubjectId) -> Result<Bindings, BindingsState> {
    let (source, bindings) = match id.kind {
        SubjectKind::ValidatingAdmissionPolicy => (Source::Bindings, &context.bindings),
        SubjectKind::MutatingAdmissionPolicy => match context.opt_in.state(id.kind) {
            Some(state) => (Source::MutatingBindings, &state.bindings),
            None => return Ok(Bindings::new()),
        },
        SubjectKind::ValidatingWebhookConfiguration
        | SubjectKind::MutatingWebhookConfiguration
        | SubjectKind::CustomResourceDefinition => return Ok(Bindings::new()),
    };
    // If the permission was revoked, the listed bindings are not used, since they may be outdated.
    match context.readiness.rejection(source) {
        // The message is not repeated here, since the log and `/readyz` state the missing permission.
        Some(_) => Err(BindingsState::NotPermitted),
        None => bindings.for_policy(id).ok_or(BindingsState::Unread),
    }
}

/// Returns the resource of a paramKind. `None` if the cluster does not serve it.
pub(crate) fn param_resource<'a>(
    param_kind: Option<&Gvk>,
    snapshot: &'a ClusterSnapshot,
) -> Option<&'a ApiResource> {
    snapshot.mapper.resources_of_kind(param_kind?).next()
}

/// Returns the state of the bindings in the form that the status reports.
pub(crate) fn bindings_state(
    has_param_kind: bool,
    bindings: &Bindings,
    params: Option<&ApiResource>,
    mapper: &RestMapper,
) -> BindingsState {
    let bindings = bindings.iter().map(AsRef::as_ref);
    BindingsState::from_bindings(bindings, has_param_kind, params, mapper)
}

/// Returns the names of the bindings with fields that the controller does not know, and these fields.
pub(crate) fn unknown_fields(
    bindings: &[Arc<ValidatingAdmissionPolicyBinding>],
) -> Vec<(String, Vec<String>)> {
    let bindings = bindings.iter().filter_map(|binding| {
        let fields = binding_annotations::unknown_fields(&binding.metadata);
        let name = binding.metadata.name.clone().unwrap_or_default();
        (!fields.is_empty()).then_some((name, fields))
    });
    bindings.collect()
}

/// Returns the state of the params that the bindings refer to, in the form that the status reports.
pub(crate) fn params_state(
    context: &Arc<Context>,
    policy: &SubjectId,
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
    match params::referred(context, resource, by, references) {
        Listing::Unread => ParamsState::Unread,
        Listing::Refused(text) => ParamsState::NotPermitted(text),
        Listing::Failed(reason) => ParamsState::Failed(reason),
        Listing::Known(known) => examine(bindings, resource, &known),
    }
}

fn examine(bindings: &Bindings, resource: &ApiResource, known: &Objects) -> ParamsState {
    let bindings = bindings.iter().map(AsRef::as_ref);
    ParamsState::examine(bindings, resource, |_, sought| match sought {
        ParamLookup::ByName(name, namespace) => known.has(name, namespace),
        ParamLookup::BySelector(selector, namespace) => known.has_selected(namespace, &selector),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::cluster::snapshot::tests::resource;
    use crate::controller::subjects::params::Meta;
    use crate::status::compute::MissingParams;

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

    fn param_objects(objects: &[(&str, &str, &str)]) -> Objects {
        let entry = |(namespace, name, team): &(&str, &str, &str)| {
            let meta = Meta {
                labels: [("team".to_owned(), (*team).to_owned())].into(),
                ..Meta::default()
            };
            (((*namespace).to_owned(), (*name).to_owned()), meta)
        };
        let params = Objects::default();
        params.replace(objects.iter().map(entry).collect());
        params
    }

    #[test]
    fn binding_state_finds_params_by_name_selector_and_namespace() {
        let resource = resource("example.com/v1", "limits", "Limit");
        let params = param_objects(&[("a", "one", "x"), ("b", "two", "y")]);
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
                Some("any object that matches the selector in namespace a"),
            ),
        ];
        for (reference, expect) in table {
            let denies = reference.get("parameterNotFoundAction").is_some();
            let state = examine(
                &bindings(std::slice::from_ref(&reference)),
                &resource,
                &params,
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
}
