//! Discovers the resources that the API server serves.
//!
//! Aggregated discovery consists of two documents with entity tags, so polling is cheap. An API server without
//! aggregated discovery returns only a list of groups. The resources of each group version are then requested
//! separately, and a failed request does not affect the other group versions.
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

/// The paths of the two discovery documents ("roots"): the core group, and all other groups.
const ROOTS: [&str; 2] = ["/api", "/apis"];

/// The time after which an unavailable group version counts as undiscovered. A shorter outage may be a restart of the
/// aggregated API server.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The maximum number of concurrent requests for group versions.
const CONCURRENCY: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Discovery {
    roots: [Root; 2],
    /// False if `refresh` has stored a change but not returned it yet. This is the case if one root changed and the
    /// other root could not be read.
    are_reported: bool,
    /// The group versions whose resources cannot be listed, with the time of the first failure. The time is `None` if
    /// listing has failed in all discoveries, including the first.
    stale_since: BTreeMap<String, Option<Instant>>,
    /// True after both roots have responded once.
    has_answered: bool,
    /// The group versions of `stale_since` that `refresh` has returned as undiscovered.
    undiscovered: Vec<String>,
}

#[derive(Debug, Default)]
struct Root {
    etag: Option<String>,
    served: Served,
    /// The group versions that could not be listed. An earlier discovery may have returned their resources.
    stale: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Served {
    resources: Vec<ApiResource>,
    incomplete: Vec<(String, String)>,
}

impl Discovery {
    /// Discovers the served resources. Returns `None` if they have not changed since the last call.
    ///
    /// # Errors
    /// Returns an error if a root cannot be read. A response of the other root is still stored.
    pub(crate) async fn refresh(&mut self, client: &Client) -> Result<Option<RestMapper>, Error> {
        for (path, root) in ROOTS.into_iter().zip(&mut self.roots) {
            let accept = ACCEPT_AGGREGATED_DISCOVERY_V2;
            let document = http::get(client, path, accept, root.etag.as_deref()).await?;
            let Some(document) = document else { continue };
            // With many CRDs, the response has several megabytes, so it is parsed on a blocking thread.
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

    /// Returns the number of group versions that could not be listed in the last discovery. An earlier discovery may
    /// have returned their resources.
    pub(crate) fn n_stale(&self) -> usize {
        self.stale_since.len()
    }

    /// Updates `stale_since` and `undiscovered` after a discovery at `now`.
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

    /// Returns true if a discovery at `now` would return an additional undiscovered group version.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let mut stale = self.stale_since.iter();
        stale.any(|(gv, since)| lasts(*since, now) && !self.undiscovered.contains(gv))
    }

    /// Returns the served resources. Resources of unavailable group versions come from an earlier discovery.
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

/// Returns true if a failure that began at `since` has lasted for at least [`MAX_PAUSE`] at `now`.
fn lasts(since: Option<Instant>, now: Instant) -> bool {
    since.is_none_or(|since| now.saturating_duration_since(since) >= MAX_PAUSE)
}

impl Served {
    /// Copies resources from `before` for the group versions that cannot be listed now.
    ///
    /// A group version with copied resources does not count as incomplete, however old the resources are. An outage of
    /// an aggregated API server therefore does not change the status of a policy.
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

enum Answer {
    /// The resources of all group versions.
    Aggregated(Served),
    /// The group versions only. Their resources must be requested separately.
    Groups(Vec<GroupVersion>),
}

/// The part of a discovery response that identifies its format.
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

fn add(resources: &mut Vec<ApiResource>, gv: &GroupVersion, resource: APIResourceDiscovery) {
    let Some(plural) = resource.resource else {
        return;
    };
    let namespaced = resource.scope.as_deref() == Some("Namespaced");
    // A resource that has only subresources has no kind.
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

/// Returns the kind in a discovery response, if any. The default group version is `gv`.
fn kind(gv: &GroupVersion, named: Option<GroupVersionKind>) -> Option<Gvk> {
    let named = named?;
    let kind = named.kind.filter(|kind| !kind.is_empty())?;
    match named.version.filter(|version| !version.is_empty()) {
        Some(version) => Some(Gvk::new(named.group.unwrap_or_default(), version, kind)),
        None => Some(Gvk::new(&*gv.group, &*gv.version, kind)),
    }
}

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

fn legacy(gv: &GroupVersion, list: APIResourceList) -> impl Iterator<Item = ApiResource> {
    list.resources.into_iter().map(move |resource| {
        // The default group and version are those of the list.
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
