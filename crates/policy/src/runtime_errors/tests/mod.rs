//! Tests of the search for runtime errors and for example requests. The policies are for built-in kinds and for a
//! custom kind `Box`, whose fields have few restrictions.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

mod examples;
mod findings;
mod version_comparison;

use std::sync::LazyLock;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kubernetes::schema::crd::CrdVersion;
use kubernetes::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use kubernetes::schema::rest_mapper::RestMapper;
use kubernetes::schema::{Builtin, Crd, Gvk, Interner};
use kubernetes::version::KubernetesVersion;
use serde_json::{Value as Json, json};

use super::*;
use crate::compile::CompiledPolicy;

/// The resource of the custom kind `Box`.
pub(crate) const BOX: (&str, &str, &str) = ("example.com", "v1", "boxes");

static BUILTIN: LazyLock<&Builtin> =
    LazyLock::new(|| Builtin::load(KubernetesVersion::DEFAULT).unwrap());

/// The built-in kinds and `Box`.
pub(crate) struct Served {
    crd: Crd,
    custom: SchemaSet,
    pub(crate) mapper: RestMapper,
}

impl Served {
    /// Creates kinds in which `spec` is the schema of the field `spec` of a `Box`.
    fn new(spec: &Json) -> Self {
        let crd = Crd::from_value(&json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"], "properties": {"spec": spec},
                }}}],
            },
        }))
        .unwrap();
        let mut custom = SchemaSet::default();
        custom.add_crd(&crd, &mut Interner::default());
        let mut resources = BUILTIN.resources().to_vec();
        resources.extend(crd.resources());
        Self {
            custom,
            mapper: RestMapper::new(resources),
            crd,
        }
    }

    fn version(&self, gvk: &Gvk) -> Option<&CrdVersion> {
        let [version] = &self.crd.versions[..] else {
            panic!("one version");
        };
        (*gvk == Gvk::new("example.com", "v1", "Box")).then_some(version)
    }

    fn context<'a>(&'a self, cache: &'a ObjectCache) -> Context<'a> {
        Context {
            mapper: &self.mapper,
            schemas: self,
            written: self,
            type_findings: &[],
            without_params: None,
            never_has_params: false,
            match_resources: None,
            kinds: None,
            object_cache: cache,
        }
    }
}

impl SchemaResolver for Served {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        match BUILTIN.resolve(gvk) {
            Resolution::NotFound => self.custom.resolve(gvk),
            resolution => resolution,
        }
    }

    fn custom(&self, gvk: &Gvk) -> Option<(&Crd, &CrdVersion)> {
        Some((&self.crd, self.version(gvk)?))
    }
}

impl WrittenSchemas for Served {
    fn written(&self, gvk: &Gvk) -> Option<&Json> {
        self.version(gvk)?.schema.as_deref()
    }

    fn is_builtin_kind(&self, gvk: &Gvk) -> bool {
        BUILTIN.has(gvk)
    }
}

/// Returns the schema of `spec` in most tests. No field is required.
fn plain_spec() -> Json {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {
        "text": text,
        "other": text,
        "note": {"type": "string", "nullable": true},
        "size": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": true},
        "items": {"type": "array", "items": text},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"name": text, "size": {"type": "integer"}}}},
        "tags": {"type": "object", "additionalProperties": text},
        "notes": {"type": "array", "items": {"type": "object", "properties": {"text": {"type": "string", "nullable": true}}}},
    }})
}

pub(crate) static PLAIN: LazyLock<Served> = LazyLock::new(|| Served::new(&plain_spec()));

/// Returns a policy for `operations` on a resource. `spec` contains the other fields.
pub(crate) fn policy(
    (group, version, resource): (&str, &str, &str),
    operations: &[&str],
    spec: &Json,
) -> CompiledPolicy {
    let mut policy = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [{
        "apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": [resource],
    }]}}});
    for (name, value) in spec.as_object().unwrap() {
        policy["spec"][name] = value.clone();
    }
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
    CompiledPolicy::new(policy)
}

pub(crate) fn validation(expression: &str) -> Json {
    json!({"validations": [{"expression": expression}]})
}

/// Returns the cases of a table. A case is a group of lines, and empty lines separate the cases. Lines with `#` are
/// comments.
pub(crate) fn cases(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let groups = table.split("\n\n").map(|group| {
        let lines = group.lines().filter(|line| !line.starts_with('#'));
        lines.collect::<Vec<_>>()
    });
    groups.filter(|lines| !lines.is_empty())
}
