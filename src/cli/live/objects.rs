//! Objects of a cluster: lists in pieces, and single ones by name, as JSON.

use kube::api::{Api, DynamicObject, ListParams};
use kube::core::discovery::ApiResource;
use serde_json::Value;

use crate::cli::connection::Connected;
use crate::cli::input::POLICY_VERSION;
use crate::cluster::error::Error;

/// Objects asked for at once, so that a large cluster is read in bounded pieces.
const PAGE_SIZE: u32 = 500;

/// A kind that is read as it is.
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
    /// The kind, the resource, and the singular name of the resource.
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

    /// The apiVersion.
    fn api_version(self) -> &'static str {
        match self {
            Self::Policy | Self::Binding => POLICY_VERSION,
            Self::Crd => "apiextensions.k8s.io/v1",
        }
    }

    pub(in crate::cli) fn api(self, connected: &Connected) -> Api<DynamicObject> {
        let [kind, plural, _] = self.names();
        let api_version = self.api_version();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Api::all_with(connected.client.clone(), &resource)
    }

    /// An object as JSON; those of a list do not say what they are.
    pub(in crate::cli) fn json(self, object: DynamicObject) -> Result<Value, Error> {
        let value = serde_json::to_value(object);
        let mut value = value.map_err(|error| Error::Decode(error.to_string()))?;
        if let Value::Object(fields) = &mut value {
            fields.insert("apiVersion".to_owned(), self.api_version().into());
            let [kind, ..] = self.names();
            fields.insert("kind".to_owned(), kind.into());
        }
        Ok(value)
    }
}

/// A list with the version of the cluster that it is of.
#[derive(Debug, Default)]
pub(in crate::cli) struct Listed {
    /// The objects, in order of name.
    pub(in crate::cli) items: Vec<Value>,
    /// Where a watch begins.
    pub(in crate::cli) resource_version: String,
}

/// All objects of the kind that the selector selects.
///
/// # Errors
/// Where they cannot be read.
pub(in crate::cli) async fn list(
    connected: &Connected,
    kind: Kind,
    selector: Option<&str>,
) -> Result<Listed, Error> {
    let api = kind.api(connected);
    let mut listed = Listed::default();
    let mut params = ListParams::default().limit(PAGE_SIZE);
    if let Some(selector) = selector {
        params = params.labels(selector);
    }
    loop {
        let page = connected.within(api.list(&params)).await?;
        for object in page.items {
            listed.items.push(kind.json(object)?);
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

/// The object of that name.
///
/// # Errors
/// Where it cannot be read, or there is none.
pub(in crate::cli) async fn get(
    connected: &Connected,
    kind: Kind,
    name: &str,
) -> Result<Value, Error> {
    let api = kind.api(connected);
    let object = connected.within(api.get(name)).await?;
    kind.json(object)
}

/// The name of an object.
pub(in crate::cli) fn name(object: &Value) -> &str {
    let name = object.pointer("/metadata/name");
    name.and_then(Value::as_str).unwrap_or_default()
}
