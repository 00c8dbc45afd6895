//! Objects of requests. An object is converted once: to the fields that matching needs, and to a shared CEL value.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use cel::value::{Map, Value};
use kubernetes::schema::{GroupVersion, Gvk};

/// Labels: keys and values.
pub type Labels = BTreeMap<String, String>;

/// The API groups for which client-go has typed informers.
///
/// Source: `k8s.io/client-go` `informers/generic.go` (`ForResource`).
const TYPED_GROUPS: [&str; 20] = [
    "",
    "admissionregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// An object of a request, or a params object. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Object(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    value: Value,
    gvk: Gvk,
    name: String,
    generate_name: String,
    namespace: String,
    labels: Labels,
}

impl Object {
    /// Converts the JSON of an object.
    #[must_use]
    pub fn new(object: &Json) -> Self {
        let metadata = |field| {
            object
                .get("metadata")
                .and_then(|metadata| metadata.get(field))
        };
        let text = |field| {
            metadata(field)
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self(Arc::new(Inner {
            value: Value::from(object),
            gvk: kind_of(object),
            name: text("name"),
            generate_name: text("generateName"),
            namespace: text("namespace"),
            labels: metadata("labels").map(labels).unwrap_or_default(),
        }))
    }

    /// Returns the value that expressions read.
    pub(super) fn value(&self) -> &Value {
        &self.0.value
    }

    /// Returns the value with the apiVersion and kind of `gvk`. The other fields are shared.
    pub(super) fn value_as(&self, gvk: &Gvk) -> Value {
        if self.gvk() == gvk {
            return self.value().clone();
        }
        let fields = self.value().as_map().and_then(Map::as_fields);
        let mut fields = fields.unwrap_or_default().to_vec();
        fields.push(("apiVersion".into(), Value::string(gvk.api_version())));
        fields.push(("kind".into(), Value::from(&*gvk.kind)));
        Value::Map(Map::from_fields(fields))
    }

    /// Returns the value of `params` for a mutating policy. There, params of built-in kinds lack apiVersion and kind.
    /// For validating policies, the API server restores these fields (`validating/dispatcher.go`, `wrappedParam`).
    ///
    /// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_source.go`
    /// (`ensureParamsForPolicyLocked`), which uses the typed informer if there is one; `k8s.io/apimachinery`
    /// `pkg/runtime/helper.go` (`WithoutVersionDecoder`), which removes the kind of typed objects.
    pub(super) fn value_as_mutating_params(&self) -> Value {
        if !TYPED_GROUPS.contains(&&*self.gvk().group) {
            return self.value().clone();
        }
        let fields = self.value().as_map().and_then(Map::as_fields);
        let fields = fields.unwrap_or_default().iter();
        let is_kept = |name: &str| name != "apiVersion" && name != "kind";
        let kept = fields.filter(|(name, _)| is_kept(name)).cloned();
        Value::Map(Map::from_fields(kept.collect()))
    }

    /// Returns the kind in the object's fields `apiVersion` and `kind`.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.0.gvk
    }

    /// Returns the name. Empty if the API server has yet to generate it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns `generateName`, the prefix of a generated name. Empty if there is none.
    #[must_use]
    pub fn generate_name(&self) -> &str {
        &self.0.generate_name
    }

    /// Returns the namespace. Empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// Returns the labels.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.0.labels
    }

    /// Returns the namespace and the name, such as `default/limits`. For a cluster-scoped object, returns only the
    /// name.
    #[must_use]
    pub fn namespaced_name(&self) -> String {
        if self.namespace().is_empty() {
            self.name().to_owned()
        } else {
            format!("{}/{}", self.namespace(), self.name())
        }
    }
}

/// Returns the labels in `metadata.labels`. The result is empty if one of the values is not a string.
///
/// Source: apimachinery `pkg/apis/meta/v1/unstructured/unstructured.go`, `GetLabels`.
fn labels(labels: &Json) -> Labels {
    let labels = labels.as_object().into_iter().flatten();
    let texts = labels.map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    texts.collect::<Option<_>>().unwrap_or_default()
}

/// Returns the kind in the fields `apiVersion` and `kind` of an object.
#[must_use]
pub fn kind_of(object: &Json) -> Gvk {
    let text = |field| object.get(field).and_then(Json::as_str).unwrap_or_default();
    let (group, version) = GroupVersion::split(text("apiVersion"));
    Gvk::new(group, version, text("kind"))
}
