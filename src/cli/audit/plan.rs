//! Determines the cluster resources that policies match, and lists their objects.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::Item;
use super::report::ResourceReport;
use crate::cli::check::finding::Finding;
use crate::cli::connection::{self, Connected, Connection};
use crate::cli::error::CliError;
use crate::cli::eval::cluster::Pages;
use crate::cli::eval::setup::gap_finding;
use crate::cli::live::{self, Gap};
use crate::cluster::error::Error;
use crate::policy::RequestPolicy;
use crate::policy::matching;
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{Gvr, RestMapper};

/// A resource with the policies that match it.
#[derive(Debug)]
struct ListedResource {
    resource: ApiResource,
    policies: Vec<usize>,
}

/// Lists the objects of a cluster.
pub(in crate::cli) struct Walk<'a> {
    pub(in crate::cli) connection: &'a Connection,
    /// The served resources.
    pub(in crate::cli) mapper: &'a RestMapper,
    /// The policies with their indices.
    pub(in crate::cli) policies: Vec<(usize, &'a RequestPolicy)>,
    /// The number of objects per page.
    pub(in crate::cli) chunk_size: u32,
}

/// A callback that receives objects, and the indices of the policies that match them.
type Each<'a> = &'a mut dyn FnMut(Vec<Item>, &[usize]) -> Result<(), CliError>;

impl Walk<'_> {
    /// Passes all objects that a policy matches to `each`, page by page. Returns the listed resources, and a finding
    /// for each resource that cannot be listed.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be reached, or if `each` fails.
    pub(in crate::cli) fn run(
        &self,
        each: Each<'_>,
    ) -> Result<(Vec<ResourceReport>, Vec<Finding>), CliError> {
        connection::block_on(async {
            let connected = self.connection.connect().await?;
            let mut resources = Vec::new();
            let mut gaps = Vec::new();
            let mut not_stored = Vec::new();
            for listed in plan(self.mapper, &self.policies) {
                let resource = &listed.resource;
                if self.connection.namespace.is_some() && !resource.namespaced {
                    continue;
                }
                let mut objects = 0;
                match self.list(&connected, &listed, &mut objects, each).await? {
                    Ok(()) => {}
                    // The resource cannot be listed, because the API server does not store its objects.
                    Err(Error::Status {
                        code: 404 | 405, ..
                    }) if objects == 0 => {
                        not_stored.push(name(&resource.gvr));
                        continue;
                    }
                    Err(error) => gaps.push(list_error(&resource.gvr, objects, &error)),
                }
                resources.push(ResourceReport {
                    api_version: resource.gvr.group_version().to_string(),
                    resource: resource.gvr.resource.clone(),
                    objects,
                });
            }
            if !not_stored.is_empty() {
                gaps.push(Gap {
                    message: format!("the cluster stores no objects of {}", not_stored.join(", ")),
                    help: "policies match requests for these resources, but an audit cannot evaluate them".to_owned(),
                    is_fatal: false,
                });
            }
            let server = connected.server.as_str();
            let gaps = gaps.into_iter().map(|gap| gap_finding(gap, server));
            Ok((resources, gaps.collect()))
        })
    }

    /// Passes the objects of a resource to `each`, and counts them in `n`.
    async fn list(
        &self,
        connected: &Connected,
        listed: &ListedResource,
        n: &mut u64,
        each: Each<'_>,
    ) -> Result<Result<(), Error>, CliError> {
        let namespace = self.connection.namespace.as_deref();
        let mut pages = Pages::new(connected, &listed.resource, namespace, self.chunk_size);
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(Ok(())),
                Err(error) => return Ok(Err(error)),
            };
            *n += u64::try_from(page.len()).unwrap_or(u64::MAX);
            let resource_name = name(&listed.resource.gvr);
            let items = page.into_iter().map(|value| Item {
                value: value.map_err(|why| format!("invalid object of {resource_name}: {why}")),
                place: None,
                is_file: false,
            });
            each(items.collect(), &listed.policies)?;
        }
    }
}

/// Returns the name of the resource as in kubectl, such as `deployments.apps`.
fn name(gvr: &Gvr) -> String {
    match gvr.group.as_str() {
        "" => gvr.resource.clone(),
        group => format!("{}.{group}", gvr.resource),
    }
}

fn list_error(gvr: &Gvr, n: u64, error: &Error) -> Gap {
    let name = name(gvr);
    let is_forbidden = matches!(
        error,
        Error::Status {
            code: 401 | 403,
            ..
        }
    );
    let help = match (is_forbidden, n) {
        (true, _) => {
            format!("this requires the permission `list` on {name}; these objects are not audited")
        }
        (false, 0) => "these objects are not audited".to_owned(),
        (false, n) => format!("only the first {n} of these objects were audited"),
    };
    Gap {
        message: format!("{name} cannot be listed: {}", live::one_line(error)),
        help,
        is_fatal: true,
    }
}

/// Returns the resources to list, each in one or more versions.
///
/// For each resource, repeatedly selects the version that most of the remaining policies match. Each policy is assigned
/// to only one version, so that it receives no object twice.
fn plan(mapper: &RestMapper, policies: &[(usize, &RequestPolicy)]) -> Vec<ListedResource> {
    type Versions<'a> = BTreeMap<&'a ApiResource, BTreeSet<usize>>;
    let mut by_resource: BTreeMap<(String, String), Versions<'_>> = BTreeMap::new();
    for (index, policy) in policies {
        for matched in matching::resolve(policy, mapper).resources {
            let Some(resource) = mapper.resource(&matched.gvr) else {
                continue;
            };
            if resource.gvr.is_subresource() {
                continue;
            }
            // The core group and `events.k8s.io` serve the same events.
            let group = match (resource.gvr.group.as_str(), resource.gvr.resource.as_str()) {
                ("events.k8s.io", "events") => "",
                (group, _) => group,
            };
            let key = (group.to_owned(), resource.gvr.resource.clone());
            let versions = by_resource.entry(key).or_default();
            versions.entry(resource).or_default().insert(*index);
        }
    }
    let mut listed = Vec::new();
    for mut versions in by_resource.into_values() {
        loop {
            let best = versions.iter().max_by_key(|(resource, policies)| {
                let version = &resource.gvr.version;
                let is_stable = !version.contains("alpha") && !version.contains("beta");
                (policies.len(), is_stable, version.len(), version.clone())
            });
            let Some((resource, policies)) = best.filter(|(_, policies)| !policies.is_empty())
            else {
                break;
            };
            let (resource, policies) = ((*resource).clone(), policies.clone());
            for others in versions.values_mut() {
                others.retain(|index| !policies.contains(index));
            }
            listed.push(ListedResource {
                resource,
                policies: policies.into_iter().collect(),
            });
        }
    }
    listed
}
