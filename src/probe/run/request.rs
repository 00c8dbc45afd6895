//! Converts the requests of cases to admission requests.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::api::{self, PolicyProbeSpec, Request};
use crate::policy::admission::{
    AdmissionRequest, Equivalent, Object, Operation, UserInfo, kind_of,
};
use crate::schema::rest_mapper::RestMapper;
use crate::schema::{GroupVersion, Gvk, Gvr};

/// Returns the API groups of the resources and objects in a probe. Converting the cases requires discovery of these
/// groups.
#[must_use]
pub fn groups(probe: &PolicyProbeSpec) -> BTreeSet<String> {
    let requests = probe.cases.iter().map(|case| &case.request);
    let request_groups = |request: &Request| -> Vec<String> {
        let resource = request.resource.iter();
        let resource = resource.map(|resource| resource.group.clone());
        let objects = [&request.object, &request.old_object].into_iter().flatten();
        let object_group = |object: &Value| {
            let api_version = object.get("apiVersion")?.as_str()?;
            let (group, _) = GroupVersion::split(api_version);
            Some(group.to_owned())
        };
        resource.chain(objects.filter_map(object_group)).collect()
    };
    requests.flat_map(request_groups).collect()
}

/// Returns the group versions of the sample objects of a probe.
#[must_use]
pub fn group_versions(probe: &PolicyProbeSpec) -> BTreeSet<GroupVersion> {
    let requests = probe.cases.iter().map(|case| &case.request);
    let of_request = |request: &Request| -> Vec<GroupVersion> {
        let objects = [&request.object, &request.old_object].into_iter().flatten();
        let of_objects = objects.map(|object| kind_of(object).group_version());
        let namespace = request.namespace_object.iter();
        let of_namespace = namespace.map(|_| Gvk::new("", "v1", "Namespace").group_version());
        of_objects.chain(of_namespace).collect()
    };
    requests.flat_map(of_request).collect()
}

/// Converts the request of a case to an admission request.
///
/// # Errors
/// Returns an error if the request cannot be converted.
pub fn admission_request(
    request: &Request,
    mapper: &RestMapper,
) -> Result<AdmissionRequest, String> {
    let operation = match request.operation.as_deref() {
        None => Operation::Create,
        Some(text) => text.parse()?,
    };
    let object = request.object.as_ref().map(Object::new);
    let old_object = request.old_object.as_ref().map(Object::new);
    let subject = object.as_ref().or(old_object.as_ref());
    let subresource = request.sub_resource.clone().unwrap_or_default();
    let (gvr, gvk, is_namespaced) = resource_of(request, subject, &subresource, mapper)?;
    let text_of = |given: &Option<String>, default: fn(&Object) -> &str| {
        given
            .clone()
            .unwrap_or_else(|| subject.map(default).unwrap_or_default().to_owned())
    };
    let name = text_of(&request.name, Object::name);
    let mut namespace = text_of(&request.namespace, Object::namespace);
    let is_namespace = gvr.group.is_empty() && gvr.resource == "namespaces";
    if is_namespace {
        namespace.clone_from(&name);
    } else if namespace.is_empty() && is_namespaced {
        "default".clone_into(&mut namespace);
    }
    Ok(AdmissionRequest {
        operation,
        equivalents: equivalents(&gvr, &subresource, mapper),
        gvk,
        gvr,
        subresource,
        name,
        namespace,
        object,
        old_object,
        options: options(request, operation).as_ref().map(Object::new),
        dry_run: request.dry_run,
        user_info: user_info(request.user_info.clone()),
    })
}

/// Converts the user of a case. If `given` is `None`, the user is unauthenticated.
#[must_use]
pub fn user_info(given: Option<api::UserInfo>) -> UserInfo {
    let user = user(given.unwrap_or_default());
    let extra = user.extra.into_iter();
    UserInfo {
        username: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: extra.map(|(key, values)| (key, Some(values))).collect(),
    }
}

/// Returns the options of a request. Adds the fields that the API server sets: `apiVersion`, `kind` and `dryRun`.
///
/// Source: `k8s.io/apiserver` `pkg/endpoints/handlers/{create,update,delete}.go`.
fn options(request: &Request, operation: Operation) -> Option<Value> {
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return request.options.clone(),
    };
    let mut options = request.options.clone().unwrap_or_else(|| json!({}));
    if let Some(fields) = options.as_object_mut() {
        fields
            .entry("apiVersion")
            .or_insert_with(|| "meta.k8s.io/v1".into());
        fields.entry("kind").or_insert_with(|| kind.into());
        if request.dry_run {
            fields.entry("dryRun").or_insert_with(|| json!(["All"]));
        }
    }
    Some(options)
}

/// Completes the user as the API server does. The default name is `system:anonymous`. Other users get their implicit
/// groups, such as `system:authenticated`.
///
/// Source: `k8s.io/apiserver` `pkg/authentication/request/anonymous/anonymous.go`,
/// `pkg/authentication/group/authenticated_group_adder.go` (`AuthenticateRequest`),
/// `pkg/authentication/serviceaccount/util.go` (`MakeGroupNames`).
fn user(mut user: api::UserInfo) -> api::UserInfo {
    const ANONYMOUS: &str = "system:anonymous";
    const AUTHENTICATED: &str = "system:authenticated";
    const UNAUTHENTICATED: &str = "system:unauthenticated";
    if user.username.is_empty() {
        ANONYMOUS.clone_into(&mut user.username);
    }
    if user.username == ANONYMOUS {
        if user.groups.is_empty() {
            user.groups = vec![UNAUTHENTICATED.to_owned()];
        }
        return user;
    }
    let account = user.username.strip_prefix("system:serviceaccount:");
    if user.groups.is_empty()
        && let Some((namespace, _)) = account.and_then(|account| account.split_once(':'))
    {
        user.groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
    }
    let is_set = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
    if !user.groups.iter().any(is_set) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// Returns the resource and the kind of a request. The boolean is true if the resource is namespaced.
fn resource_of(
    request: &Request,
    subject: Option<&Object>,
    subresource: &str,
    mapper: &RestMapper,
) -> Result<(Gvr, Gvk, bool), String> {
    let of_subject = subject
        .map(|subject| subject.gvk().clone())
        .filter(|gvk| !gvk.kind.is_empty());
    let Some(resource) = &request.resource else {
        let Some(gvk) = of_subject else {
            return Err(
                "the request has no resource, and its object has no apiVersion and kind".to_owned(),
            );
        };
        let served = mapper.resources_of_kind(&gvk).next().ok_or_else(|| {
            if !subresource.is_empty() {
                return format!(
                    "cannot determine the resource of the subresource `{subresource}` from an object of kind {} {}: set \
                     the resource of the request",
                    gvk.api_version(),
                    gvk.kind
                );
            }
            format!(
                "no resource of kind {} {} is served: add its CustomResourceDefinition, or set the resource of the request",
                gvk.api_version(),
                gvk.kind
            )
        })?;
        let (gvr, namespaced) = (served.gvr.clone(), served.namespaced);
        return Ok((gvr, gvk, namespaced));
    };
    let gvr = Gvr::new(
        resource.group.as_str(),
        resource.version.as_str(),
        resource.resource.as_str(),
    );
    let full = if subresource.is_empty() {
        gvr.clone()
    } else {
        Gvr::new(
            resource.group.as_str(),
            resource.version.as_str(),
            format!("{}/{subresource}", resource.resource),
        )
    };
    let served = mapper.resource(&full);
    let gvk = of_subject
        .or_else(|| served.map(|served| served.gvk.clone()))
        .ok_or_else(|| {
            format!(
                "{} {} is not served, and the request has no object with a kind",
                gvr.group_version(),
                full.resource
            )
        })?;
    Ok((gvr, gvk, served.is_some_and(|served| served.namespaced)))
}

/// Returns the resources that serve the same objects as `gvr`. These are other versions of the same resource. Events
/// also have a second API group.
///
/// Source: `k8s.io/apiserver` `pkg/endpoints/installer.go` (registers each storage in the
/// `EquivalentResourceRegistry`), `k8s.io/kubernetes` `pkg/controlplane/instance.go`.
#[must_use]
pub fn equivalents(gvr: &Gvr, subresource: &str, mapper: &RestMapper) -> Vec<Equivalent> {
    const EVENT_GROUPS: [&str; 2] = ["", "events.k8s.io"];
    let is_event = |gvr: &Gvr| gvr.resource == "events" && EVENT_GROUPS.contains(&&*gvr.group);
    mapper
        .resources
        .iter()
        .filter(|served| {
            let other = &served.gvr;
            let (name, other_subresource) = other
                .resource
                .split_once('/')
                .unwrap_or((&other.resource, ""));
            let in_group = other.group == gvr.group || (is_event(gvr) && is_event(other));
            in_group
                && name == gvr.resource
                && other_subresource == subresource
                && (other.group != gvr.group || other.version != gvr.version)
        })
        .map(|served| Equivalent {
            gvr: Gvr::new(
                &*served.gvr.group,
                &*served.gvr.version,
                gvr.resource.as_str(),
            ),
            gvk: served.gvk.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_groups_of_probe_come_from_resources_and_objects() {
        let probe: PolicyProbeSpec = serde_json::from_value(json!({"policyName": "a", "cases": [
            {"name": "a", "expect": {"decision": "Allow"}, "request": {
                "object": {"apiVersion": "apps/v1", "kind": "Deployment"},
                "oldObject": {"apiVersion": "extensions/v1beta1", "kind": "Deployment"}}},
            {"name": "b", "expect": {"decision": "Allow"}, "request": {
                "resource": {"group": "example.com", "version": "v1", "resource": "limits"},
                "object": {"apiVersion": 7}}},
            {"name": "c", "expect": {"decision": "Allow"}, "request": {
                "object": {"apiVersion": "v1", "kind": "Pod"}}},
        ]}))
        .unwrap();
        let groups: Vec<String> = groups(&probe).into_iter().collect();
        assert_eq!(groups, ["", "apps", "example.com", "extensions"]);
    }
}
