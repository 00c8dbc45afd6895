//! Reads objects of the opt-in kinds for `status`: MutatingAdmissionPolicies, webhook configurations and
//! CustomResourceDefinitions, with the conditions that the controller has written for them (ADR 31).
//!
//! The objects are converted to validating policies, so that `status` can show them like policies. A kind that the
//! controller does not watch has no statuses.

use std::collections::HashMap;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};
use kube::api::{Api, DynamicObject, ListParams, ObjectList, PartialObjectMeta};
use kube::core::discovery::ApiResource;
use kube::{Resource, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::{Connected, Requested, one_line};
use super::error::CliError;
use crate::cluster::error::Error;
use crate::policy::subject::{Row, SubjectKind};
use crate::status::object::StatusObject;

/// The number of objects per page of a list.
const PAGE_SIZE: u32 = 500;

/// Selects the objects to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectFilter<'a> {
    /// The objects that match the selector, if the controller watches the kind.
    OptedIn(Option<&'a str>),
    /// The objects that match the selector, of a kind that the user requested.
    All(Option<&'a str>),
    /// The objects with these names.
    Named(&'a [String]),
}

#[derive(Debug, Default)]
pub(super) struct KindStatuses {
    /// The selected objects, sorted by name, as validating policies with their status.
    pub(super) policies: Vec<ValidatingAdmissionPolicy>,
    /// The names that do not exist in the cluster.
    pub(super) missing: Vec<String>,
    /// True if the cluster serves the status objects, which contain the conditions.
    pub(super) has_statuses: bool,
}

#[derive(Debug)]
pub(super) enum ListError {
    /// The command ends with this error.
    Fatal(CliError),
    /// The objects of the kind are omitted, with this message.
    Note(String),
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    metadata: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>,
    /// Webhook configurations have no spec.
    #[serde(default)]
    spec: Option<k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicySpec>,
}

/// Returns the objects of a kind that `filter` selects.
///
/// # Errors
/// Returns an error if the objects cannot be read.
pub(super) async fn policies(
    connected: &Connected,
    kind: SubjectKind,
    filter: ObjectFilter<'_>,
) -> Result<KindStatuses, ListError> {
    let row = kind.row();
    let Some(status_object) = &row.status_object else {
        return Ok(KindStatuses::default());
    };
    let is_asked_for = !matches!(filter, ObjectFilter::OptedIn(_));
    let list_error = |plural: &str, group: &str, error: &Error| {
        if is_asked_for {
            let resource = format!("{plural}.{group}");
            return ListError::Fatal(connected.explain(error, Requested::Resource(&resource)));
        }
        let why = one_line(&error.to_string());
        ListError::Note(format!(
            "{} are not shown: {plural} cannot be read: {why}",
            row.plural
        ))
    };
    let objects: Api<DynamicObject> = Api::all_with(
        connected.client.clone(),
        &ApiResource::erase::<StatusObject>(status_object),
    );
    let objects = match list(connected, &objects, None).await {
        Ok(objects) => objects,
        Err(error) => {
            let group = StatusObject::group(status_object);
            return Err(list_error(status_object.plural, &group, &error));
        }
    };
    let has_statuses = objects.is_some();
    let objects = objects.unwrap_or_default();
    // If the kind has no status objects, the controller does not watch it.
    if objects.is_empty() && !is_asked_for {
        return Ok(KindStatuses::default());
    }
    let selector = match filter {
        ObjectFilter::OptedIn(selector) | ObjectFilter::All(selector) => selector,
        ObjectFilter::Named(_) => None,
    };
    let mut listed = None;
    for version in row.versions {
        let policies = api(connected, row, version);
        listed = match list_of(connected, kind, &policies, selector).await {
            Ok(listed) => listed,
            Err(error) => return Err(list_error(row.plural, row.group, &error)),
        };
        if listed.is_some() {
            break;
        }
    }
    let mut by_name: HashMap<String, StatusObject> = HashMap::new();
    for object in objects {
        let object: StatusObject = decoded(object)?;
        let name = object.meta().name.clone().unwrap_or_default();
        by_name.insert(name, object);
    }
    let mut policies = Vec::new();
    for policy in listed.unwrap_or_default() {
        let Read { metadata, spec } = decoded(policy)?;
        let mut policy = ValidatingAdmissionPolicy {
            metadata: metadata.unwrap_or_default(),
            spec: spec.map(|spec| ValidatingAdmissionPolicySpec {
                failure_policy: spec.failure_policy,
                param_kind: spec.param_kind,
                ..ValidatingAdmissionPolicySpec::default()
            }),
            status: None,
        };
        let name = policy.metadata.name.clone().unwrap_or_default();
        let uid = policy.metadata.uid.as_deref();
        let object = by_name.get(&name).filter(|object| object.is_owned_by(uid));
        // The controller writes no conditions for a CustomResourceDefinition without validation rules.
        if object.is_none() && kind == SubjectKind::CustomResourceDefinition && !is_asked_for {
            continue;
        }
        policy.status = object.and_then(StatusObject::policy_status);
        policies.push(policy);
    }
    policies.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    let ObjectFilter::Named(names) = filter else {
        return Ok(KindStatuses {
            policies,
            missing: Vec::new(),
            has_statuses,
        });
    };
    let (mut named, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        let policy = policies
            .iter()
            .find(|policy| policy.metadata.name.as_ref() == Some(name));
        match policy {
            Some(policy) => named.push(policy.clone()),
            None => missing.push(name.clone()),
        }
    }
    Ok(KindStatuses {
        policies: named,
        missing,
        has_statuses,
    })
}

/// Returns the resource of the objects that contain the statuses of a kind, as `<plural>.<group>`.
pub(super) fn statuses(kind: SubjectKind) -> String {
    let object = kind.row().status_object.as_ref();
    object.map_or_else(String::new, |object| {
        format!("{}.{}", object.plural, StatusObject::group(object))
    })
}

fn api(connected: &Connected, row: &Row, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: row.group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{}/{version}", row.group),
        kind: row.kind.to_owned(),
        plural: row.plural.to_owned(),
    };
    Api::all_with(connected.client.clone(), &resource)
}

/// Returns all objects of a kind, or `None` if the kind is not served. CustomResourceDefinitions are read without their
/// spec and status.
async fn list_of(
    connected: &Connected,
    kind: SubjectKind,
    api: &Api<DynamicObject>,
    selector: Option<&str>,
) -> Result<Option<Vec<DynamicObject>>, Error> {
    if kind != SubjectKind::CustomResourceDefinition {
        return list(connected, api, selector).await;
    }
    let metadata = pages(connected, selector, async |params| {
        api.list_metadata(&params).await
    });
    let metadata = metadata.await?;
    Ok(metadata.map(|all| {
        let object = |partial: PartialObjectMeta<DynamicObject>| DynamicObject {
            types: partial.types,
            metadata: partial.metadata,
            data: json!({}),
        };
        all.into_iter().map(object).collect()
    }))
}

/// Returns all objects, or `None` if the kind is not served.
async fn list(
    connected: &Connected,
    api: &Api<DynamicObject>,
    selector: Option<&str>,
) -> Result<Option<Vec<DynamicObject>>, Error> {
    pages(connected, selector, async |params| api.list(&params).await).await
}

/// Returns all items of a list, or `None` if the kind is not served.
async fn pages<K: Clone>(
    connected: &Connected,
    selector: Option<&str>,
    page_of: impl AsyncFn(ListParams) -> Result<ObjectList<K>, kube::Error>,
) -> Result<Option<Vec<K>>, Error> {
    let mut params = ListParams::default().limit(PAGE_SIZE);
    if let Some(selector) = selector {
        params = params.labels(selector);
    }
    let mut all = Vec::new();
    loop {
        let page = match connected.within(page_of(params.clone())).await {
            Ok(page) => page,
            Err(Error::Client(kube::Error::Api(status))) if status.code == 404 => return Ok(None),
            Err(error) => return Err(error),
        };
        all.extend(page.items);
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => return Ok(Some(all)),
        }
    }
}

fn decoded<T: for<'de> Deserialize<'de>>(object: DynamicObject) -> Result<T, ListError> {
    let name = object.name_any();
    let value = serde_json::to_value(object).unwrap_or(Value::Null);
    serde_json::from_value(value).map_err(|error| {
        ListError::Fatal(CliError::Undecodable {
            name,
            reason: error.to_string(),
        })
    })
}
