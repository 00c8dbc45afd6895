//! Discovers the resources that the API server serves: by aggregated discovery, or by one request for each group
//! version.
//!
//! Aggregated discovery consists of two documents with entity tags, so that polling is cheap. An API server without
//! aggregated discovery returns the list of groups instead. In this case, the resources of each group version are
//! requested separately, and a failed request does not affect the other group versions.
//!
//! Source: apiserver `pkg/endpoints/discovery/aggregated`; client-go `discovery/aggregated_discovery.go`.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList, APIVersions};
use kube::Client;
use kube::core::discovery::v2::{
    ACCEPT_AGGREGATED_DISCOVERY_V2, APIGroupDiscoveryList, APIResourceDiscovery, GroupVersionKind,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::blocking;
use super::error::Error;
use super::http;
use crate::schema::rest_mapper::{ApiResource, RestMapper};
use crate::schema::{GroupVersion, Gvk, Gvr};

/// The paths of the two discovery documents (the roots): the first for the core group, the second for all other groups.
const ROOTS: [&str; 2] = ["/api", "/apis"];

/// The time for which a group version must be unavailable before it counts as undiscovered. A shorter outage may be a
/// restart of its API server.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The number of concurrent requests if each group version is requested separately.
const CONCURRENCY: usize = 4;

/// Polls the discovery documents, and stores their last responses.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// The last response of each root.
    roots: [Root; 2],
    /// True if the stored responses of both roots were returned to the caller. False before the first discovery, and
    /// after a discovery that read one changed root but failed to read the other root.
    are_reported: bool,
    /// The group versions whose resources cannot be listed, each with the time of the first failure. The time is `None`
    /// if every listing since the first discovery has failed.
    stale_since: BTreeMap<String, Option<Instant>>,
    /// True once both roots have responded.
    has_answered: bool,
    /// The group versions of `stale_since` that were reported to the caller as undiscovered.
    undiscovered: Vec<String>,
}

/// The last response of one root.
#[derive(Debug, Default)]
struct Root {
    etag: Option<String>,
    served: Served,
    /// The group versions that could not be listed, including those whose resources are known from an earlier
    /// discovery.
    stale: Vec<String>,
}

/// The served resources, and the group versions whose resources are unknown, with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Served {
    resources: Vec<ApiResource>,
    incomplete: Vec<(String, String)>,
}

impl Discovery {
    /// Discovers the served resources. Returns `None` if nothing has changed since the last call.
    ///
    /// # Errors
    /// Returns an error if a root cannot be read. The response of the other root is stored.
    pub(crate) async fn refresh(&mut self, client: &Client) -> Result<Option<RestMapper>, Error> {
        for (path, root) in ROOTS.into_iter().zip(&mut self.roots) {
            let accept = ACCEPT_AGGREGATED_DISCOVERY_V2;
            let document = http::get(client, path, accept, root.etag.as_deref()).await?;
            let Some(document) = document else { continue };
            // With many CRDs, the response may be several megabytes large, so it is parsed on a blocking thread.
            let body = document.body;
            let answer = blocking::run(blocking::Kind::Schemas, move || parse(&body)).await;
            let broke_off = || {
                Error::Decode(
                    "the document could not be parsed because of an internal error".to_owned(),
                )
            };
            let mut served = match answer.map_err(|_| broke_off())?? {
                Answer::Aggregated(served) => served,
                Answer::Groups(group_versions) => each(client, group_versions).await,
            };
            let stale = served.incomplete.iter();
            let stale = stale.map(|(gv, _)| gv.clone()).collect();
            served.carry_over(&root.served);
            self.are_reported &= served == root.served;
            *root = Root {
                etag: document.etag,
                served,
                stale,
            };
        }
        self.note_stale(Instant::now());
        Ok((!std::mem::replace(&mut self.are_reported, true)).then(|| self.mapper()))
    }

    /// Returns the number of group versions that could not be listed in the last discovery. Their resources are
    /// unknown, or known from an earlier discovery.
    pub(crate) fn n_stale(&self) -> usize {
        self.stale_since.len()
    }

    /// Updates the group versions that cannot be listed, and those that have been unavailable for [`MAX_PAUSE`] at
    /// `now`.
    fn note_stale(&mut self, now: Instant) {
        let stale = self.roots.iter().flat_map(|root| &root.stale);
        let since = self.has_answered.then_some(now);
        let before = std::mem::take(&mut self.stale_since);
        self.stale_since = stale
            .map(|gv| (gv.clone(), before.get(gv).copied().unwrap_or(since)))
            .collect();
        self.has_answered = true;
        let stale = self.stale_since.iter();
        let lasting = stale.filter(|(_, since)| lasts(**since, now));
        let lasting: Vec<String> = lasting.map(|(gv, _)| gv.clone()).collect();
        if lasting != self.undiscovered {
            self.are_reported = false;
            self.undiscovered = lasting;
        }
    }

    /// Returns true if a discovery at `now` would report another group version as undiscovered.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let mut stale = self.stale_since.iter();
        stale.any(|(gv, since)| lasts(*since, now) && !self.undiscovered.contains(gv))
    }

    /// Returns the served resources, including those that are known only from an earlier discovery.
    fn mapper(&self) -> RestMapper {
        let resources = self
            .roots
            .iter()
            .flat_map(|root| root.served.resources.iter().cloned());
        let mut mapper = RestMapper::new(resources.collect());
        let incomplete = self
            .roots
            .iter()
            .flat_map(|root| root.served.incomplete.iter().cloned());
        mapper.incomplete = incomplete.collect();
        mapper.incomplete.sort();
        mapper.undiscovered.clone_from(&self.undiscovered);
        mapper
    }
}

/// Returns true if a failure that began at `since` has lasted for [`MAX_PAUSE`] at `now`.
fn lasts(since: Option<Instant>, now: Instant) -> bool {
    since.is_none_or(|since| now.saturating_duration_since(since) >= MAX_PAUSE)
}

impl Served {
    /// Adds the resources in `before` of group versions that could be listed before but not now.
    ///
    /// A group version with such resources does not count as incomplete, regardless of the age of its resources. An
    /// outage of an aggregated API server therefore does not change the status of a policy.
    fn carry_over(&mut self, before: &Self) {
        let of = |gv: &str| {
            let gv = GroupVersion::parse(gv);
            move |resource: &&ApiResource| gv.as_ref() == Some(&resource.gvr.group_version())
        };
        for (gv, _) in &self.incomplete {
            if !self.resources.iter().any(|resource| of(gv)(&resource)) {
                self.resources
                    .extend(before.resources.iter().filter(of(gv)).cloned());
            }
        }
        let resources = &self.resources;
        self.incomplete
            .retain(|(gv, _)| !resources.iter().any(|resource| of(gv)(&resource)));
        self.resources.sort();
    }
}

/// The response of a root.
enum Answer {
    /// The resources of all its group versions.
    Aggregated(Served),
    /// The group versions without their resources, which must be requested separately.
    Groups(Vec<GroupVersion>),
}

/// The field of a response that identifies its format.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    kind: String,
}

fn parse(body: &[u8]) -> Result<Answer, Error> {
    let head: Head = decode(body)?;
    match head.kind.as_str() {
        "APIGroupDiscoveryList" => Ok(Answer::Aggregated(aggregated(decode(body)?))),
        "APIGroupList" => {
            let list: APIGroupList = decode(body)?;
            let versions = list.groups.into_iter().flat_map(|group| group.versions);
            let parsed = versions.filter_map(|version| GroupVersion::parse(&version.group_version));
            Ok(Answer::Groups(parsed.collect()))
        }
        "APIVersions" => {
            let list: APIVersions = decode(body)?;
            let versions = list.versions.into_iter();
            Ok(Answer::Groups(
                versions
                    .map(|version| GroupVersion::new("", version))
                    .collect(),
            ))
        }
        other => Err(Error::Decode(format!("discovery returned a `{other}`"))),
    }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Decode(error.to_string()))
}

/// Converts an aggregated discovery response.
fn aggregated(list: APIGroupDiscoveryList) -> Served {
    let mut served = Served::default();
    for group in list.items {
        let name = group
            .metadata
            .and_then(|metadata| metadata.name)
            .unwrap_or_default();
        for version in group.versions {
            let gv = GroupVersion::new(name.clone(), version.version.unwrap_or_default());
            for resource in version.resources {
                add(&mut served.resources, &gv, resource);
            }
            if version.freshness.as_deref() == Some("Stale") {
                let reason = "its API server does not respond";
                served.incomplete.push((gv.to_string(), reason.to_owned()));
            }
        }
    }
    served
}

/// Adds a resource and its subresources.
fn add(resources: &mut Vec<ApiResource>, gv: &GroupVersion, resource: APIResourceDiscovery) {
    let Some(plural) = resource.resource else {
        return;
    };
    let namespaced = resource.scope.as_deref() == Some("Namespaced");
    // A resource that only has subresources has no kind.
    if let Some(gvk) = kind(gv, resource.response_kind) {
        resources.push(ApiResource {
            gvr: Gvr::new(&*gv.group, &*gv.version, &*plural),
            gvk,
            singular: resource.singular_resource.unwrap_or_default(),
            namespaced,
        });
    }
    for subresource in resource.subresources {
        let (Some(name), Some(gvk)) =
            (subresource.subresource, kind(gv, subresource.response_kind))
        else {
            continue;
        };
        resources.push(ApiResource {
            gvr: Gvr::new(&*gv.group, &*gv.version, format!("{plural}/{name}")),
            gvk,
            singular: String::new(),
            namespaced,
        });
    }
}

/// Returns the kind in a discovery response. If `named` has no version, the kind is in the group version `gv`. Returns
/// `None` if `named` has no kind.
fn kind(gv: &GroupVersion, named: Option<GroupVersionKind>) -> Option<Gvk> {
    let named = named?;
    let kind = named.kind.filter(|kind| !kind.is_empty())?;
    match named.version.filter(|version| !version.is_empty()) {
        Some(version) => Some(Gvk::new(named.group.unwrap_or_default(), version, kind)),
        None => Some(Gvk::new(&*gv.group, &*gv.version, kind)),
    }
}

/// Requests the resources of each group version separately.
async fn each(client: &Client, group_versions: Vec<GroupVersion>) -> Served {
    let answers: Vec<_> = futures::stream::iter(group_versions)
        .map(|gv| async move {
            let root = if gv.group.is_empty() { "/api" } else { "/apis" };
            let path = format!("{root}/{gv}");
            let answer = match http::get(client, &path, "application/json", None).await {
                Ok(Some(document)) => decode::<APIResourceList>(&document.body),
                Ok(None) => Err(Error::Status {
                    code: 304,
                    message: String::new(),
                }),
                Err(error) => Err(error),
            };
            (gv, answer)
        })
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    let mut served = Served::default();
    for (gv, answer) in answers {
        match answer {
            Ok(list) => served.resources.extend(legacy(&gv, list)),
            Err(error) => served.incomplete.push((gv.to_string(), error.to_string())),
        }
    }
    served.incomplete.sort();
    served
}

/// Converts the resource list of one group version.
fn legacy(gv: &GroupVersion, list: APIResourceList) -> impl Iterator<Item = ApiResource> {
    list.resources.into_iter().map(move |resource| {
        // A resource without a version has the group and version of the list.
        let gvk = match resource.version.filter(|version| !version.is_empty()) {
            Some(version) => Gvk::new(resource.group.unwrap_or_default(), version, resource.kind),
            None => Gvk::new(&*gv.group, &*gv.version, resource.kind),
        };
        ApiResource {
            gvr: Gvr::new(&*gv.group, &*gv.version, resource.name),
            gvk,
            singular: resource.singular_name,
            namespaced: resource.namespaced,
        }
    })
}

#[cfg(test)]
mod tests;
