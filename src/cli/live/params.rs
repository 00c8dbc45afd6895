//! Reads the state of bindings and params for the policies of the input.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{Selector, discovery};
use serde_json::Value;

use super::objects::{self, Kind};
use super::{Gap, PolicyBindings, one_line};
use crate::cli::connection::Connected;
use crate::cli::input::Input;
use crate::cluster::error::Error;
use crate::policy;
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{Gvk, RestMapper};
use crate::status::bindings::BindingsState;
use crate::status::compute::{NotServed, ParamsState};

/// Reads the params of each policy's bindings. Returns the bindings and params by policy name.
pub(super) async fn bound(
    connected: &Connected,
    input: &Input,
    has_bindings: bool,
    mapper: &RestMapper,
    gaps: &mut Vec<Gap>,
) -> BTreeMap<String, PolicyBindings> {
    let mut of_policy: BTreeMap<&str, Vec<&ValidatingAdmissionPolicyBinding>> = BTreeMap::new();
    for binding in &input.bindings {
        let name = binding.value.spec.policy_name.as_str();
        of_policy.entry(name).or_default().push(&binding.value);
    }
    let mut all = BTreeMap::new();
    for policy in &input.policies {
        let Some(name) = policy.name() else { continue };
        if !has_bindings {
            let unknown = PolicyBindings {
                bindings: BindingsState::Unread,
                params: ParamsState::BindingsNotPermitted,
            };
            all.insert(name.to_owned(), unknown);
            continue;
        }
        let bindings = of_policy.get(name).map_or(&[][..], Vec::as_slice);
        let kind = policy::param_kind(&policy.value);
        let resource = kind.as_ref();
        let resource = resource.and_then(|gvk| mapper.resources_of_kind(gvk).next());
        let params = match resource {
            Some(resource) => params(connected, bindings, resource, gaps).await,
            None => ParamsState::NotReferred,
        };
        let bindings = bindings.iter().copied();
        let bindings = BindingsState::from_bindings(bindings, kind.is_some(), resource, mapper);
        all.insert(name.to_owned(), PolicyBindings { bindings, params });
    }
    all
}

/// Returns the paramKinds of the input's policies that a CustomResourceDefinition defines, but that the API server does
/// not serve. Returns each paramKind with the reason.
pub(super) async fn unserved(
    connected: &Connected,
    input: &Input,
    mapper: &RestMapper,
    gaps: &mut Vec<Gap>,
) -> BTreeMap<Gvk, NotServed> {
    let kinds = input.policies.iter();
    let kinds = kinds.filter_map(|policy| policy::declared_param_kind(&policy.value));
    let is_unknown = |gvk: &Gvk| {
        let mut incomplete = mapper.incomplete.iter();
        mapper.resources_of_kind(gvk).next().is_none()
            && !incomplete.any(|(of, _)| *of == gvk.api_version())
    };
    let kinds: BTreeSet<Gvk> = kinds.filter(is_unknown).collect();
    let mut reasons = BTreeMap::new();
    if kinds.is_empty() {
        return reasons;
    }
    let crds = match objects::list(connected, Kind::Crd, None).await {
        Ok(listed) => listed.items,
        Err(error) => {
            gaps.push(Gap {
                message: format!(
                    "the CustomResourceDefinitions of the cluster cannot be read: {}",
                    one_line(&error)
                ),
                help: "this requires the permission `list` on customresourcedefinitions.apiextensions.k8s.io; the reason \
                       why a paramKind is not served is unknown"
                    .to_owned(),
                is_fatal: true,
            });
            return reasons;
        }
    };
    for gvk in kinds {
        let defines = |crd: &&Value| {
            crd.pointer("/spec/group").and_then(Value::as_str) == Some(gvk.group.as_str())
                && crd.pointer("/spec/names/kind").and_then(Value::as_str)
                    == Some(gvk.kind.as_str())
        };
        // Prefers an established definition.
        let mut of_kind: Vec<&Value> = crds.iter().filter(defines).collect();
        of_kind
            .sort_by_key(|crd| condition(crd, "Established").is_none_or(|(is_true, _)| !is_true));
        if let Some(crd) = of_kind.first() {
            let reason = not_served(crd, &gvk);
            reasons.insert(gvk, reason);
        }
    }
    reasons
}

/// Returns the reason why the API server does not serve `gvk`. `crd` is the CustomResourceDefinition of its kind.
fn not_served(crd: &Value, gvk: &Gvk) -> NotServed {
    let name = objects::name(crd).to_owned();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten();
    let served = served.filter(|version| version.get("served") == Some(&Value::Bool(true)));
    let served: Vec<&str> = served
        .filter_map(|version| version.get("name")?.as_str())
        .collect();
    let established = condition(crd, "Established");
    if served.is_empty() {
        NotServed::NoVersion { crd: name }
    } else if !served.contains(&gvk.version.as_str()) {
        let versions = served
            .iter()
            .map(|version| format!("{}/{version}", gvk.group));
        NotServed::OtherVersions(versions.collect())
    } else if established.as_ref().is_some_and(|(is_true, _)| *is_true) {
        NotServed::NotListed { crd: name }
    } else {
        let conditions = [condition(crd, "NamesAccepted"), established];
        let failed = conditions.into_iter().flatten();
        let mut failed = failed.filter(|(is_true, message)| !is_true && !message.is_empty());
        NotServed::NotEstablished {
            crd: name,
            reason: failed.next().map(|(_, message)| message),
        }
    }
}

/// Returns the state of a condition of a CRD: whether it is True, and its message. Returns `None` if the CRD does not
/// have the condition.
fn condition(crd: &Value, type_: &str) -> Option<(bool, String)> {
    let conditions = crd.pointer("/status/conditions")?.as_array()?;
    let of_type = |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some(type_);
    let condition = conditions.iter().find(of_type)?;
    let text = |key| {
        condition
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    Some((text("status") == "True", text("message").to_owned()))
}

async fn params(
    connected: &Connected,
    bindings: &[&ValidatingAdmissionPolicyBinding],
    resource: &ApiResource,
    gaps: &mut Vec<Gap>,
) -> ParamsState {
    let mut existing = BTreeSet::new();
    let mut n_references = 0;
    for binding in bindings {
        if binding.spec.param_ref.is_none() {
            continue;
        }
        n_references += 1;
        match has_params(connected, binding, resource).await {
            Ok(true) => {
                existing.insert(binding.metadata.name.clone());
            }
            Ok(false) => {}
            Err(error) => {
                let reason = one_line(&error);
                let name = binding.metadata.name.as_deref().unwrap_or_default();
                let resource = &resource.gvr.resource;
                gaps.push(Gap {
                    message: format!("the params of binding {name} cannot be read: {reason}"),
                    help: format!(
                        "this requires the permission `list` on {resource}; missing params are not reported"
                    ),
                    is_fatal: true,
                });
                return ParamsState::NotPermitted(reason);
            }
        }
    }
    if n_references == 0 {
        return ParamsState::NotReferred;
    }
    let bindings = bindings.iter().copied();
    ParamsState::examine(bindings, resource, |binding, _| {
        existing.contains(&binding.metadata.name)
    })
}

/// Returns true if the cluster has an object to which the binding's paramRef refers.
async fn has_params(
    connected: &Connected,
    binding: &ValidatingAdmissionPolicyBinding,
    resource: &ApiResource,
) -> Result<bool, Error> {
    let Some(reference) = &binding.spec.param_ref else {
        return Ok(false);
    };
    let mut params = ListParams::default().limit(1);
    if let Some(name) = &reference.name {
        params = params.fields(&format!("metadata.name={name}"));
    }
    if let Some(selector) = &reference.selector {
        let Ok(selector) = Selector::try_from(selector.clone()) else {
            // An invalid selector has its own finding.
            return Ok(false);
        };
        params = params.labels_from(&selector);
    }
    let kind = discovery::ApiResource {
        group: resource.gvr.group.clone(),
        version: resource.gvr.version.clone(),
        api_version: resource.gvk.api_version(),
        kind: resource.gvk.kind.clone(),
        plural: resource.gvr.resource.clone(),
    };
    let namespace = reference.namespace.as_deref();
    let client = connected.client.clone();
    let api: Api<DynamicObject> = match namespace.filter(|it| resource.namespaced && !it.is_empty())
    {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind),
        None => Api::all_with(client, &kind),
    };
    let mut listed = connected.within(api.list_metadata(&params)).await?;
    // An empty page may precede pages with items.
    while listed.items.is_empty() {
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => {
                let next = params.clone().continue_token(&token);
                listed = connected.within(api.list_metadata(&next)).await?;
            }
            None => return Ok(false),
        }
    }
    Ok(true)
}
