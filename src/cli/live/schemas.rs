//! The schemas that policies need of a cluster, from the OpenAPI v3 documents that it publishes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::StreamExt as _;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::Value;

use super::{Bound, CONCURRENCY, Gap, told};
use crate::cel::decls::Version;
use crate::cli::connection::Connected;
use crate::cli::error::CliError;
use crate::cluster::error::Error;
use crate::cluster::http;
use crate::cluster::openapi::OpenApi;
use crate::library::version::{LATEST, OLDEST};
use crate::policy;
use crate::policy::matching;
use crate::schema::openapi::OpenApiDocument;
use crate::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use crate::schema::{Builtin, Crd, GroupVersion, Gvk, Interner, RestMapper};
use crate::status::compute::NotServed;

/// The resources that a cluster serves, and the schemas of those that were asked for.
#[derive(Debug)]
pub(in crate::cli) struct Served {
    /// The cluster's version, `1.36`.
    pub(in crate::cli) kubernetes: String,
    /// The version whose functions its API server has; `None` where that is not known.
    pub(in crate::cli) version: Option<Version>,
    /// The resources.
    pub(in crate::cli) mapper: RestMapper,
    /// How the policies of the input are bound, by name.
    pub(in crate::cli) bound: BTreeMap<String, Bound>,
    /// Why paramKinds that a CRD of the cluster defines are not served.
    pub(in crate::cli) unserved: BTreeMap<Gvk, NotServed>,
    /// The types.
    schemas: SchemaSet,
    /// The schemas of custom resources as they are published.
    published: HashMap<Gvk, Value>,
}

impl Served {
    /// The schema of a custom resource as it is published, which is as it was written.
    ///
    /// Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go`, `BuildOpenAPIV3`.
    pub(in crate::cli) fn published(&self, gvk: &Gvk) -> Option<&Value> {
        self.published.get(gvk)
    }
}

impl SchemaResolver for Served {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        self.schemas.resolve(gvk)
    }
}

/// Reads the version, the index, and the documents of what `policies` match.
///
/// # Errors
/// If the cluster does not answer, or the built-in data are broken.
pub(super) async fn read<'a>(
    connected: &Connected,
    policies: impl Iterator<Item = &'a ValidatingAdmissionPolicy> + Clone,
    mapper: RestMapper,
    crds: impl Iterator<Item = &'a Crd>,
    gaps: &mut Vec<Gap>,
) -> Result<Served, CliError> {
    let builtin = Builtin::load()?;
    let (kubernetes, version) = version(connected, gaps).await?;
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
            let reason = told(&error);
            for group_version in needed {
                served.schemas.add_unavailable(group_version, &*reason);
            }
            gaps.push(Gap {
                message: format!("the index of schemas, /openapi/v3, cannot be read: {reason}"),
                help: "no types are checked".to_owned(),
                is_fatal: true,
            });
            return Ok(served);
        }
    };
    let wanted: Vec<_> = needed
        .into_iter()
        .filter_map(|group_version| index.get_key_value(&group_version))
        .collect();
    let asked = wanted
        .into_iter()
        .map(|(group_version, address)| async move {
            (group_version, document(connected, address).await)
        });
    let asked: Vec<_> = asked.collect();
    let mut answers = futures::stream::iter(asked).buffered(CONCURRENCY);
    let mut interner = Interner::default();
    while let Some((group_version, answer)) = answers.next().await {
        let parsed = answer.and_then(|document| {
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
                    publish(&document.body, &builtin, &mut served.published);
                }
            }
            Err(error) => {
                let reason = told(&error);
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

/// The resources of the cluster, those of `crds` in the place of its own.
pub(in crate::cli) fn with_crds<'a>(
    mapper: &RestMapper,
    crds: impl Iterator<Item = &'a Crd>,
) -> RestMapper {
    let mut resources: Vec<_> = crds.flat_map(Crd::resources).collect();
    resources.extend(mapper.resources.iter().cloned());
    RestMapper::new(resources)
}

/// The document at `address`, or where it is now: its address has a hash of its content.
async fn document(connected: &Connected, address: &str) -> Result<http::Document, Error> {
    let get = async |address: &str| {
        let read = http::get(&connected.client, address, "application/json", None);
        let read = connected.within(read).await?;
        let gone = || Error::Status {
            code: 304,
            message: String::new(),
        };
        read.ok_or_else(gone)
    };
    match get(address).await {
        Err(Error::Status {
            code: 301 | 302 | 307 | 308,
            ..
        }) => get(address.split('?').next().unwrap_or(address)).await,
        read => read,
    }
}

/// The version of the cluster as it is shown, and that of the functions that its API server has.
async fn version(
    connected: &Connected,
    gaps: &mut Vec<Gap>,
) -> Result<(String, Option<Version>), CliError> {
    let info = connected.within(connected.client.apiserver_version()).await;
    let info = match info {
        Ok(info) => info,
        Err(error @ Error::Client(kube::Error::Api(_))) => {
            gaps.push(Gap {
                message: format!(
                    "the version of the cluster cannot be read: {}",
                    told(&error)
                ),
                help: format!("expressions are checked for {LATEST}"),
                is_fatal: true,
            });
            return Ok((LATEST.to_string(), None));
        }
        Err(error) => return Err(connected.explain(&error, None)),
    };
    // Some vendors write `30+`.
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit());
        text.get(..end.unwrap_or(text.len()))?.parse::<u16>().ok()
    };
    let (Some(major), Some(minor)) = (number(&info.major), number(&info.minor)) else {
        gaps.push(Gap {
            message: format!(
                "the version of the cluster, `{}`, is not known",
                info.git_version
            ),
            help: format!("expressions are checked for {LATEST}"),
            is_fatal: false,
        });
        return Ok((info.git_version, None));
    };
    let version = Version::new(major, minor);
    if !(OLDEST..=LATEST).contains(&version) {
        gaps.push(Gap {
            message: format!(
                "the cluster is Kubernetes {version}, and known are {OLDEST} to {LATEST}"
            ),
            help: format!(
                "expressions are checked for {}",
                version.clamp(OLDEST, LATEST)
            ),
            is_fatal: false,
        });
    }
    Ok((version.to_string(), Some(version.clamp(OLDEST, LATEST))))
}

/// The group versions whose documents have the schemas of what the policies match.
fn needed<'a>(
    policies: impl Iterator<Item = &'a ValidatingAdmissionPolicy>,
    mapper: &RestMapper,
) -> BTreeSet<GroupVersion> {
    let mut needed = BTreeSet::new();
    for policy in policies {
        let kinds = matching::kinds(policy, mapper);
        // The kind of a subresource is described where the resource is: `Scale` in `apps/v1`.
        let matched = matching::resolve(policy, mapper).resources.into_iter();
        let matched = matched.filter(|resource| kinds.binary_search(&resource.gvk).is_ok());
        needed.extend(matched.map(|resource| resource.gvr.group_version()));
        needed.extend(kinds.iter().map(Gvk::group_version));
        needed.extend(policy::declared_param_kind(policy).map(|gvk| gvk.group_version()));
    }
    needed
}

/// Adds the schemas of a document that are not Kubernetes' own, as they are published.
fn publish(body: &[u8], builtin: &Builtin, published: &mut HashMap<Gvk, Value>) {
    let Ok(mut document) = serde_json::from_slice::<Value>(body) else {
        // The types of the document were read, so that this cannot be.
        return;
    };
    let schemas = document.pointer_mut("/components/schemas");
    for schema in schemas.and_then(Value::as_object_mut).into_iter().flatten() {
        let kinds = schema.1.get("x-kubernetes-group-version-kind");
        let [kind] = kinds
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice)
        else {
            // Kinds that many groups have, such as DeleteOptions.
            continue;
        };
        let text = |key| kind.get(key).and_then(Value::as_str).unwrap_or_default();
        let gvk = Gvk::new(text("group"), text("version"), text("kind"));
        if !builtin.has(&gvk) {
            published.insert(gvk, schema.1.take());
        }
    }
}
