//! Reads objects of a cluster as JSON: lists page by page, and single objects by name.

use kube::api::{Api, DynamicObject, ListParams};
use kube::core::discovery::ApiResource;
use serde_json::Value;

use crate::cli::connection::Connected;
use crate::cli::input::POLICY_VERSION;
use crate::cluster::error::Error;
use crate::schema::{GroupVersion, rest_mapper};

/// Number of objects per page.
const PAGE_SIZE: u32 = 500;

/// A kind that every cluster serves in a fixed version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Kind {
    /// ValidatingAdmissionPolicy.
    Policy,
    /// ValidatingAdmissionPolicyBinding.
    Binding,
    /// CustomResourceDefinition.
    Crd,
}

impl Kind {
    /// Returns the kind, the resource, and the singular name of the resource.
    pub(super) fn names(self) -> [&'static str; 3] {
        match self {
            Self::Policy => [
                "ValidatingAdmissionPolicy",
                "validatingadmissionpolicies",
                "validatingadmissionpolicy",
            ],
            Self::Binding => [
                "ValidatingAdmissionPolicyBinding",
                "validatingadmissionpolicybindings",
                "validatingadmissionpolicybinding",
            ],
            Self::Crd => [
                "CustomResourceDefinition",
                "customresourcedefinitions",
                "customresourcedefinition",
            ],
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::Policy | Self::Binding => POLICY_VERSION,
            Self::Crd => "apiextensions.k8s.io/v1",
        }
    }

    pub(in crate::cli) fn api(self, connected: &Connected) -> Api<DynamicObject> {
        let [kind, plural, _] = self.names();
        let api_version = self.api_version();
        let (group, version) = GroupVersion::split(api_version);
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::all_with(connected.client.clone(), &resource)
    }

    /// Converts an object to JSON, with the `apiVersion` and `kind` that items of lists do not have.
    pub(in crate::cli) fn json(self, object: DynamicObject) -> Result<Value, Error> {
        let [kind, ..] = self.names();
        json((self.api_version(), kind), object)
    }
}

fn json((api_version, kind): (&str, &str), object: DynamicObject) -> Result<Value, Error> {
    let value = serde_json::to_value(object);
    let mut value = value.map_err(|error| Error::Decode(error.to_string()))?;
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    Ok(value)
}

/// A list of objects with its resource version.
#[derive(Debug, Default)]
pub(in crate::cli) struct Listed {
    /// The objects, sorted by name.
    pub(in crate::cli) items: Vec<Value>,
    /// The resource version at which a watch begins.
    pub(in crate::cli) resource_version: String,
}

/// Lists the objects of a kind that `selector` selects.
///
/// # Errors
/// Returns an error if a request fails.
pub(in crate::cli) async fn list(
    connected: &Connected,
    kind: Kind,
    selector: Option<&str>,
) -> Result<Listed, Error> {
    list_pages(connected, &kind.api(connected), selector, |object| {
        kind.json(object)
    })
    .await
}

/// Lists the objects of a resource that `selector` selects, sorted by name.
///
/// # Errors
/// Returns an error if a request fails.
pub(super) async fn list_resource(
    connected: &Connected,
    resource: &rest_mapper::ApiResource,
    selector: Option<&str>,
) -> Result<Vec<Value>, Error> {
    let (api_version, kind) = (resource.gvk.api_version(), resource.gvk.kind.as_str());
    let of_kind = ApiResource {
        group: resource.gvr.group.clone(),
        version: resource.gvr.version.clone(),
        api_version: api_version.clone(),
        kind: kind.to_owned(),
        plural: resource.gvr.resource.clone(),
    };
    let api: Api<DynamicObject> = Api::all_with(connected.client.clone(), &of_kind);
    let listed = list_pages(connected, &api, selector, |object| {
        json((&api_version, kind), object)
    });
    listed.await.map(|listed| listed.items)
}

async fn list_pages(
    connected: &Connected,
    api: &Api<DynamicObject>,
    selector: Option<&str>,
    read: impl Fn(DynamicObject) -> Result<Value, Error>,
) -> Result<Listed, Error> {
    let mut listed = Listed::default();
    let mut params = ListParams::default().limit(PAGE_SIZE);
    if let Some(selector) = selector {
        params = params.labels(selector);
    }
    loop {
        let page = connected.within(api.list(&params)).await?;
        for object in page.items {
            listed.items.push(read(object)?);
        }
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => {
                listed.resource_version = page.metadata.resource_version.unwrap_or_default();
                break;
            }
        }
    }
    listed
        .items
        .sort_by(|left, right| name(left).cmp(name(right)));
    Ok(listed)
}

/// Reads the object with this name.
///
/// # Errors
/// Returns an error if the request fails or the object does not exist.
pub(in crate::cli) async fn get(
    connected: &Connected,
    kind: Kind,
    name: &str,
) -> Result<Value, Error> {
    let api = kind.api(connected);
    let object = connected.within(api.get(name)).await?;
    kind.json(object)
}

pub(in crate::cli) fn name(object: &Value) -> &str {
    let name = object.pointer("/metadata/name");
    name.and_then(Value::as_str).unwrap_or_default()
}
