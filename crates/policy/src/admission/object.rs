//! An object of a request, read once: what matching asks for is at hand, and expressions share the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use cel::value::{Map, Value};
use kubernetes::schema::{GroupVersion, Gvk};

/// Labels: keys and values.
pub type Labels = BTreeMap<String, String>;

/// The groups of which an API server has typed informers.
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

/// An object: of a request, or params. Copies share it.
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
    /// Reads an object.
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

    /// The object as expressions see it.
    pub(super) fn value(&self) -> &Value {
        &self.0.value
    }

    /// The object as one of the kind `gvk`: its apiVersion and kind are replaced, and the rest is shared.
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

    /// The object as expressions of a mutating policy see it as params: those of Kubernetes' own kinds have no apiVersion and
    /// no kind. For validating policies the API server puts them back (`validating/dispatcher.go`, `wrappedParam`).
    ///
    /// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_source.go` (`ensureParamsForPolicyLocked`),
    /// which takes the typed informer where there is one; `k8s.io/apimachinery` `pkg/runtime/helper.go`
    /// (`WithoutVersionDecoder`), by which typed objects lose their kind.
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

    /// The kind that the object says it has.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.0.gvk
    }

    /// The name; may be empty before creation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The beginning of the name where the API server makes it; may be empty.
    #[must_use]
    pub fn generate_name(&self) -> &str {
        &self.0.generate_name
    }

    /// The namespace; empty for what has none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.0.labels
    }

    /// The namespace and name, `default/limits`, or the name alone.
    #[must_use]
    pub fn namespaced_name(&self) -> String {
        if self.namespace().is_empty() {
            self.name().to_owned()
        } else {
            format!("{}/{}", self.namespace(), self.name())
        }
    }
}

/// The labels out of `metadata.labels`; none at all where one of them is no text.
///
/// Source: apimachinery `pkg/apis/meta/v1/unstructured/unstructured.go`, `GetLabels`.
fn labels(labels: &Json) -> Labels {
    let labels = labels.as_object().into_iter().flatten();
    let texts = labels.map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    texts.collect::<Option<_>>().unwrap_or_default()
}

/// Returns the kind that an object has by its fields.
#[must_use]
pub fn kind_of(object: &Json) -> Gvk {
    let text = |field| object.get(field).and_then(Json::as_str).unwrap_or_default();
    let (group, version) = GroupVersion::split(text("apiVersion"));
    Gvk::new(group, version, text("kind"))
}
