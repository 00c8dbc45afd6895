//! Reads the data of a cluster for a check: policies, bindings, served APIs, schemas, and the version. Policies and
//! bindings become objects of the input.
//!
//! The engine itself makes no requests. Data that cannot be read are gaps, which the report lists. The types of this module
//! describe the data; the submodules read them.

#[cfg(not(target_family = "wasm"))]
pub(super) mod objects;
#[cfg(not(target_family = "wasm"))]
mod others;
#[cfg(not(target_family = "wasm"))]
mod params;
#[cfg(not(target_family = "wasm"))]
mod plan;
#[cfg(not(target_family = "wasm"))]
mod read;
#[cfg(not(target_family = "wasm"))]
mod schemas;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::input::Input;
use crate::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use crate::schema::{Gvk, RestMapper};
use crate::status::bindings::BindingsState;
use crate::status::compute::{NotServed, ParamsState};
use crate::version::KubernetesVersion;

#[cfg(not(target_family = "wasm"))]
pub(super) use self::plan::{Plan, Selection};
#[cfg(not(target_family = "wasm"))]
pub(super) use self::read::{ListScope, add, add_named, one_line, policies, read};
#[cfg(not(target_family = "wasm"))]
pub(super) use self::schemas::{needed, with_crds};

/// Required data that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// The message, on one line.
    pub(super) message: String,
    /// The consequence or the remedy.
    pub(super) help: String,
    /// True if the gap makes the check incomplete.
    pub(super) is_fatal: bool,
}

/// The number of objects from files in each list of the input. In each list, these precede the objects of the cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileCounts {
    pub(super) policies: usize,
    pub(super) bindings: usize,
    pub(super) mutating_policies: usize,
    pub(super) mutating_bindings: usize,
    pub(super) webhooks: usize,
    pub(super) crds: usize,
}

impl FileCounts {
    pub(super) fn new(input: &Input) -> Self {
        Self {
            policies: input.policies.len(),
            bindings: input.bindings.len(),
            mutating_policies: input.mutating_policies.len(),
            mutating_bindings: input.mutating_bindings.len(),
            webhooks: input.webhooks.len(),
            crds: input.crds.len(),
        }
    }
}

/// Counts all objects as objects of files, for a check without a cluster.
impl Default for FileCounts {
    fn default() -> Self {
        Self {
            policies: usize::MAX,
            bindings: usize::MAX,
            mutating_policies: usize::MAX,
            mutating_bindings: usize::MAX,
            webhooks: usize::MAX,
            crds: usize::MAX,
        }
    }
}

/// Data of a cluster, except for its APIs. The default is for a check without a cluster.
#[derive(Debug, Default)]
pub(super) struct ClusterData {
    /// The address of the API server.
    pub(super) server: Option<String>,
    /// The names of policies to which bindings can refer although the input may not contain them: policies of the
    /// cluster, or of other files in the workspace of an editor.
    pub(super) other_policies: BTreeSet<String>,
    pub(super) file_counts: FileCounts,
    /// True if the input contains all bindings of its policies.
    pub(super) has_bindings: bool,
    /// The names of mutating policies to which bindings can refer although the input may not contain them.
    pub(super) other_mutating: BTreeSet<String>,
    /// True if all mutating policies of the cluster and all bindings of the input's mutating policies were read.
    pub(super) has_mutating_bindings: bool,
    /// The data that could not be read.
    pub(super) gaps: Vec<Gap>,
}

/// The resources that a cluster serves, and the schemas that the input needs.
#[derive(Debug)]
pub(in crate::cli) struct Served {
    /// The cluster's version, such as `1.36`.
    pub(in crate::cli) kubernetes: String,
    /// The supported version closest to the cluster's. `None` if the cluster's version is unknown.
    pub(in crate::cli) version: Option<KubernetesVersion>,
    /// The served resources.
    pub(in crate::cli) mapper: RestMapper,
    /// The bindings and params of the input's policies, by policy name.
    pub(in crate::cli) bound: BTreeMap<String, PolicyBindings>,
    /// The paramKinds that a CRD of the cluster defines, but the API server does not serve, each with the reason.
    pub(in crate::cli) unserved: BTreeMap<Gvk, NotServed>,
    pub(super) schemas: SchemaSet,
    /// The schemas of custom resources as JSON, from the OpenAPI documents.
    pub(super) published: HashMap<Gvk, Value>,
}

impl Served {
    /// Returns the published schema of a custom resource. It equals the schema in the resource's
    /// CustomResourceDefinition.
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

/// The bindings and params of a policy in a cluster.
#[derive(Clone, Debug)]
pub(in crate::cli) struct PolicyBindings {
    pub(in crate::cli) bindings: BindingsState,
    /// The state of the params to which the bindings refer.
    pub(in crate::cli) params: ParamsState,
}
