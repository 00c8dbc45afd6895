//! Reads the schemas that policies need from the OpenAPI v3 documents of a cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::StreamExt as _;
use serde_json::Value;

use super::read::CONCURRENCY;
use super::{Gap, Served, one_line};
use crate::cli::connection::{Connected, Requested};
use crate::cli::error::CliError;
use crate::cluster::error::Error;
use crate::cluster::http;
use crate::cluster::openapi::OpenApi;
use crate::cluster::version;
use crate::policy;
use crate::policy::RequestPolicy;
use crate::policy::matching;
use crate::schema::openapi::OpenApiDocument;
use crate::schema::resolver::SchemaSet;
use crate::schema::{Builtin, Crd, GroupVersion, Gvk, Interner, RestMapper};
use crate::version::KubernetesVersion;

/// Reads the version of the cluster, the index of schemas, and the documents that `policies` need.
///
/// # Errors
/// Returns an error if the cluster does not respond, or if the built-in schemas cannot be read.
pub(super) async fn read<'a>(
    connected: &Connected,
    policies: impl Iterator<Item = &'a RequestPolicy> + Clone,
    mapper: RestMapper,
    crds: impl Iterator<Item = &'a Crd>,
    gaps: &mut Vec<Gap>,
) -> Result<Served, CliError> {
    let (kubernetes, version) = version(connected, gaps).await?;
    let builtin = Builtin::load(version.unwrap_or(KubernetesVersion::NEWEST))?;
    let mut all = with_crds(&mapper, crds);
    all.incomplete.clone_from(&mapper.incomplete);
    let needed = needed(policies, &all);
    let mut served = Served {
        kubernetes,
        version,
        mapper,
        bound: BTreeMap::new(),
        unserved: BTreeMap::new(),
        schemas: SchemaSet::default(),
        published: HashMap::new(),
    };
    let index = connected
        .within(OpenApi::default().refresh(&connected.client))
        .await;
    let index = match index {
        Ok(index) => index.unwrap_or_default(),
        Err(error) => {
            let reason = one_line(&error);
            for group_version in needed {
                served.schemas.add_unavailable(group_version, &*reason);
            }
            gaps.push(Gap {
                message: format!("the schema index /openapi/v3 cannot be read: {reason}"),
                help: "no types are checked".to_owned(),
                is_fatal: true,
            });
            return Ok(served);
        }
    };
    let documents: Vec<_> = needed
        .into_iter()
        .filter_map(|group_version| index.get_key_value(&group_version))
        .collect();
    let requests = documents
        .into_iter()
        .map(|(group_version, address)| async move {
            (group_version, document(connected, address).await)
        });
    let requests: Vec<_> = requests.collect();
    let mut responses = futures::stream::iter(requests).buffered(CONCURRENCY);
    let mut interner = Interner::default();
    while let Some((group_version, response)) = responses.next().await {
        let parsed = response.and_then(|document| {
            let parsed = OpenApiDocument::parse(&document.body);
            Ok((
                parsed.map_err(|error| Error::Decode(error.to_string()))?,
                document,
            ))
        });
        match parsed {
            Ok((parsed, document)) => {
                let own = Some(group_version);
                served.schemas.add_document(own, &parsed, &mut interner);
                if parsed.kinds().any(|gvk| !builtin.has(gvk)) {
                    publish(&document.body, builtin, &mut served.published);
                }
            }
            Err(error) => {
                let reason = one_line(&error);
                served
                    .schemas
                    .add_unavailable(group_version.clone(), &*reason);
                gaps.push(Gap {
                    message: format!("the schemas of {group_version} cannot be read: {reason}"),
                    help: "its types are not checked".to_owned(),
                    is_fatal: true,
                });
            }
        }
    }
    Ok(served)
}

/// Returns the resources of `crds` and of the cluster. The resources of `crds` take precedence.
pub(in crate::cli) fn with_crds<'a>(
    mapper: &RestMapper,
    crds: impl Iterator<Item = &'a Crd>,
) -> RestMapper {
    let mut resources: Vec<_> = crds.flat_map(Crd::resources).collect();
    resources.extend(mapper.resources.iter().cloned());
    RestMapper::new(resources)
}

/// Reads the document at `address`. An address contains a hash of the content. If the hash is outdated, the API server
/// redirects to the current document.
async fn document(connected: &Connected, address: &str) -> Result<http::Document, Error> {
    let get = async |address: &str| {
        let read = http::get(&connected.client, address, "application/json", None);
        let read = connected.within(read).await?;
        let not_modified = || Error::Status {
            code: 304,
            message: String::new(),
        };
        read.ok_or_else(not_modified)
    };
    match get(address).await {
        Err(Error::Status {
            code: 301 | 302 | 307 | 308,
            ..
        }) => get(address.split('?').next().unwrap_or(address)).await,
        read => read,
    }
}

/// Reads the version of the cluster. Returns the version as a string, and the closest supported version.
async fn version(
    connected: &Connected,
    gaps: &mut Vec<Gap>,
) -> Result<(String, Option<KubernetesVersion>), CliError> {
    let info = connected.within(version::read(&connected.client)).await;
    let info = match info {
        Ok(info) => info,
        Err(error @ (Error::Status { .. } | Error::Decode(_))) => {
            gaps.push(Gap {
                message: format!(
                    "the version of the cluster cannot be read: {}",
                    one_line(&error)
                ),
                help: format!("expressions are checked for {}", KubernetesVersion::NEWEST),
                is_fatal: true,
            });
            return Ok((KubernetesVersion::NEWEST.to_string(), None));
        }
        Err(error) => return Err(connected.explain(&error, Requested::Document)),
    };
    let Some(version) = KubernetesVersion::from_info(&info) else {
        gaps.push(Gap {
            message: format!(
                "the version of the cluster cannot be parsed: `{}`",
                info.git_version
            ),
            help: format!("expressions are checked for {}", KubernetesVersion::NEWEST),
            is_fatal: false,
        });
        return Ok((info.git_version, None));
    };
    if !version.is_supported() {
        gaps.push(Gap {
            message: format!(
                "the cluster runs Kubernetes {version}, but only {} to {} are supported",
                KubernetesVersion::OLDEST,
                KubernetesVersion::NEWEST
            ),
            help: format!(
                "expressions are checked for {}",
                version.nearest_supported()
            ),
            is_fatal: false,
        });
    }
    Ok((
        version.platform().to_string(),
        Some(version.at_least_oldest()),
    ))
}

/// Returns the group versions whose documents contain the schemas that the policies need.
pub(in crate::cli) fn needed<'a>(
    policies: impl Iterator<Item = &'a RequestPolicy>,
    mapper: &RestMapper,
) -> BTreeSet<GroupVersion> {
    let mut needed = BTreeSet::new();
    for policy in policies {
        let kinds = matching::kinds(policy, mapper);
        // The document of the parent resource also contains the kind of a subresource: `apps/v1` contains `Scale`.
        let matched = matching::resolve(policy, mapper).resources.into_iter();
        let matched = matched.filter(|resource| kinds.binary_search(&resource.gvk).is_ok());
        needed.extend(matched.map(|resource| resource.gvr.group_version()));
        needed.extend(kinds.iter().map(Gvk::group_version));
        needed.extend(policy::declared_param_kind(policy).map(|gvk| gvk.group_version()));
    }
    needed
}

/// Adds the schemas of a document to `published`, except the schemas of built-in kinds.
fn publish(body: &[u8], builtin: &Builtin, published: &mut HashMap<Gvk, Value>) {
    let Ok(mut document) = serde_json::from_slice::<Value>(body) else {
        // Unreachable, since the document was parsed before.
        return;
    };
    let schemas = document.pointer_mut("/components/schemas");
    for schema in schemas.and_then(Value::as_object_mut).into_iter().flatten() {
        let kinds = schema.1.get("x-kubernetes-group-version-kind");
        let [kind] = kinds
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice)
        else {
            // A schema of several kinds, such as DeleteOptions of all groups, is skipped.
            continue;
        };
        let text = |key| kind.get(key).and_then(Value::as_str).unwrap_or_default();
        let gvk = Gvk::new(text("group"), text("version"), text("kind"));
        if !builtin.has(&gvk) {
            published.insert(gvk, schema.1.take());
        }
    }
}
