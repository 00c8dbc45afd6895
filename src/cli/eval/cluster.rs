//! Reads data of a cluster that `eval`, `audit` and `diff` need and `check` does not: params, namespaces,
//! CustomResourceDefinitions, and lists of objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::policy_set::ClusterInputs;
use crate::cli::connection::Connected;
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::live::{
    self, ClusterData, Gap, ListScope, Selection, Served, objects, objects::Kind,
};
use crate::cluster::error::Error;
use crate::cluster::http;
use crate::policy;
use crate::policy::matching;
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{Crd, Gvk};

/// The number of objects per page of a list.
pub(in crate::cli) const PAGE_SIZE: u32 = 500;

/// A page of a list. Items are decoded one by one, so that an invalid item does not affect the others.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    token: Option<String>,
}

/// Reads the objects of a resource, page by page.
pub(in crate::cli) struct Pages<'a> {
    connected: &'a Connected,
    resource: &'a ApiResource,
    path: String,
    limit: u32,
    token: Option<String>,
    is_at_end: bool,
}

impl<'a> Pages<'a> {
    /// Creates a reader for the objects of `resource`, in `namespace` if it is set, in pages of `limit` objects.
    pub(in crate::cli) fn new(
        connected: &'a Connected,
        resource: &'a ApiResource,
        namespace: Option<&str>,
        limit: u32,
    ) -> Self {
        let gvr = &resource.gvr;
        let root = match gvr.group.as_str() {
            "" => format!("/api/{}", gvr.version),
            group => format!("/apis/{group}/{}", gvr.version),
        };
        let path = match namespace.filter(|_| resource.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{}/{}", escaped(namespace), gvr.resource),
            None => format!("{root}/{}", gvr.resource),
        };
        Self {
            connected,
            resource,
            path,
            limit: limit.max(1),
            token: None,
            is_at_end: false,
        }
    }

    /// Returns the next page, or `None` after the last one. An item that cannot be decoded is an error in the page.
    ///
    /// # Errors
    /// Returns an error if the page cannot be read.
    pub(in crate::cli) async fn next(
        &mut self,
    ) -> Result<Option<Vec<Result<Value, String>>>, Error> {
        if self.is_at_end {
            return Ok(None);
        }
        let page = loop {
            let more = match &self.token {
                Some(token) => format!("&continue={}", escaped(token)),
                None => String::new(),
            };
            let path = format!("{}?limit={}{more}", self.path, self.limit);
            let get = http::get(&self.connected.client, &path, "application/json", None);
            match self.connected.within(get).await {
                // The response may be too large: the next attempt requests fewer objects.
                Err(Error::Decode(_) | Error::Timeout(_)) if self.limit > 1 => self.limit /= 4,
                Err(error) => return Err(error),
                Ok(document) => break document,
            }
            self.limit = self.limit.max(1);
        };
        let Some(page) = page else {
            return Err(Error::Decode("an empty response".to_owned()));
        };
        let page: Page =
            serde_json::from_slice(&page.body).map_err(|error| Error::Decode(error.to_string()))?;
        self.token = page.metadata.token.filter(|token| !token.is_empty());
        self.is_at_end = self.token.is_none();
        let (api_version, kind) = (self.resource.gvk.api_version(), &self.resource.gvk.kind);
        let items = page.items.unwrap_or_default().into_iter().map(|item| {
            let read: Result<Value, _> = serde_json::from_str(item.get());
            let mut value = read.map_err(|error| error.to_string())?;
            // Items of a list have neither apiVersion nor kind.
            if let Some(fields) = value.as_object_mut() {
                fields.insert("apiVersion".to_owned(), api_version.as_str().into());
                fields.insert("kind".to_owned(), kind.as_str().into());
            }
            Ok(value)
        });
        Ok(Some(items.collect()))
    }
}

/// Escapes a string for the path or query of a URL.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Returns all objects of a resource. An object that cannot be decoded is an error.
async fn all(connected: &Connected, resource: &ApiResource) -> Result<Vec<Value>, Error> {
    let mut pages = Pages::new(connected, resource, None, PAGE_SIZE);
    let mut objects = Vec::new();
    while let Some(page) = pages.next().await? {
        for item in page {
            objects.push(item.map_err(Error::Decode)?);
        }
    }
    Ok(objects)
}

/// The API versions of mutating policies, in order of preference.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Reads the bindings of the mutating policies in `input`. If all policies are selected, first reads the mutating
/// policies of the cluster. Does nothing if the API server does not serve these kinds.
async fn mutating(
    connected: &Connected,
    selection: Option<&Selection>,
    input: &mut Input,
    (served, asked): (&Served, &mut ClusterData),
) {
    const SORTS: [(bool, &str, &str); 2] = [
        (true, "mutatingadmissionpolicies", "mutatingadmissionpolicy"),
        (
            false,
            "mutatingadmissionpolicybindings",
            "mutatingadmissionpolicybinding",
        ),
    ];
    let is_all = selection.is_some_and(Selection::is_all);
    if !is_all && input.mutating_policies.is_empty() {
        return;
    }
    for (is_policies, plural, singular) in SORTS {
        if is_policies && !is_all {
            continue;
        }
        let resources = served.mapper.resources.iter();
        let candidates = resources.filter(|it| {
            it.gvr.group == "admissionregistration.k8s.io" && it.gvr.resource == plural
        });
        let rank = |it: &&ApiResource| VERSIONS.iter().position(|of| *of == it.gvr.version);
        let Some(resource) = candidates.min_by_key(|it| rank(it).unwrap_or(VERSIONS.len())) else {
            continue;
        };
        let listed = match all(connected, resource).await {
            Ok(listed) => listed,
            Err(error) => {
                asked.gaps.push(Gap {
                    message: format!("the {plural} cannot be read: {}", live::one_line(&error)),
                    help: format!(
                        "this requires the permission `list` on {plural}.admissionregistration.k8s.io; validating \
                         policies are evaluated for the unmutated object"
                    ),
                    is_fatal: false,
                });
                return;
            }
        };
        let own: BTreeSet<String> = if is_policies {
            let policies = input.mutating_policies.iter().map(|policy| &policy.shared);
            policies
                .filter_map(|it| it.name().map(str::to_owned))
                .collect()
        } else {
            let bindings = input.mutating_bindings.iter();
            bindings
                .filter_map(|it| it.name().map(str::to_owned))
                .collect()
        };
        let policies = input.mutating_policies.iter().map(|policy| &policy.shared);
        let policies: BTreeSet<String> = policies
            .filter_map(|it| it.name().map(str::to_owned))
            .collect();
        for object in listed {
            let policy = object.pointer("/spec/policyName").and_then(Value::as_str);
            let matters = is_policies || policy.is_some_and(|name| policies.contains(name));
            // An object in a file replaces the cluster's object of the same name.
            if matters && !own.contains(objects::name(&object)) {
                live::add_named(input, singular, object);
            }
        }
    }
}

/// Reads policies and bindings of a cluster into `input`. Returns other data of the cluster: its APIs, params,
/// namespaces, and the CustomResourceDefinitions of `kinds`.
///
/// # Errors
/// Returns an error if the cluster cannot be reached, or if a named policy does not exist.
pub(in crate::cli) async fn read(
    connected: &Connected,
    selection: Option<&Selection>,
    input: &mut Input,
    crds: &Input,
    kinds: &BTreeSet<Gvk>,
) -> Result<(ClusterData, Served, ClusterInputs, Vec<Crd>), CliError> {
    let n_own_policies = input.policies.len();
    let n_own_mutating = input.mutating_policies.len();
    let asked = live::read(connected, selection, (input, crds), ListScope::Policies);
    let (mut asked, served) = asked.await?;
    mutating(connected, selection, input, (&served, &mut asked)).await;
    let mut cluster_inputs = ClusterInputs {
        n_own_policies,
        n_own_mutating,
        has_bindings: asked.has_bindings,
        ..ClusterInputs::default()
    };
    let param_kinds = input.all_policies().filter_map(policy::param_kind);
    let own_crds = input.crds.iter().chain(&crds.crds).map(|crd| &crd.value);
    let mapper = live::with_crds(&served.mapper, own_crds);
    for kind in param_kinds.collect::<BTreeSet<Gvk>>() {
        let listed = match served.mapper.resources_of_kind(&kind).next() {
            Some(resource) => all(connected, resource)
                .await
                .map_err(|error| live::one_line(&error)),
            None if mapper.resources_of_kind(&kind).next().is_some() => Ok(Vec::new()),
            None => Err(format!(
                "paramKind {} {} is not served",
                kind.api_version(),
                kind.kind
            )),
        };
        if let Err(why) = &listed {
            asked.gaps.push(Gap {
                message: format!("the params of kind {} cannot be read: {why}", kind.kind),
                help: "policies with this paramKind are evaluated as if the API server could not read their params"
                    .to_owned(),
                is_fatal: true,
            });
        }
        cluster_inputs.params.insert(kind, listed);
    }
    let namespace = Gvk::new("", "v1", "Namespace");
    if let Some(resource) = served.mapper.resources_of_kind(&namespace).next() {
        match all(connected, resource).await {
            Ok(listed) => cluster_inputs.namespaces = listed,
            Err(error) => asked.gaps.push(Gap {
                message: format!("the namespaces cannot be read: {}", live::one_line(&error)),
                help:
                    "this requires the permission `list` on namespaces; without it, only the names of namespaces are \
                     known"
                        .to_owned(),
                is_fatal: true,
            }),
        }
    }
    // Mutations need the schemas of the objects.
    let mutating = input
        .mutating_policies
        .iter()
        .map(|policy| &policy.shared.value);
    let mutated = mutating.flat_map(|policy| matching::kinds(policy, &served.mapper));
    let kinds: BTreeSet<Gvk> = kinds.iter().cloned().chain(mutated).collect();
    let mut crds_by_name = BTreeMap::new();
    for kind in &kinds {
        let served = served.mapper.resources_of_kind(kind).next();
        let Some(served) = served.filter(|_| kind.group.contains('.')) else {
            continue;
        };
        let name = format!("{}.{}", served.gvr.resource, kind.group);
        if kind.group.ends_with(".k8s.io") || crds_by_name.contains_key(&name) {
            continue;
        }
        match objects::get(connected, Kind::Crd, &name).await {
            Ok(crd) => {
                if let Ok(crd) = Crd::from_value(&crd) {
                    crds_by_name.insert(name, crd);
                }
            }
            // Aggregated APIs have no CustomResourceDefinition.
            Err(Error::Client(kube::Error::Api(status))) if status.code == 404 => {}
            Err(error) => asked.gaps.push(Gap {
                message: format!("the CustomResourceDefinition {name} cannot be read: {}", live::one_line(&error)),
                help: "this requires the permission `get` on customresourcedefinitions.apiextensions.k8s.io; without the \
                       definition, the defaults in its schema are not set"
                    .to_owned(),
                is_fatal: false,
            }),
        }
    }
    Ok((
        asked,
        served,
        cluster_inputs,
        crds_by_name.into_values().collect(),
    ))
}
