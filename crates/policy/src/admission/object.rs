//! Objects of requests. An object is converted once: to the fields that matching needs, and to a shared CEL value.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use cel::value::{List, Map, Value};
use kubernetes::go_values;
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
    /// The object as a Go value, created on first use. `None` if the object is unstructured.
    go_value: OnceLock<Option<Value>>,
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
            go_value: OnceLock::new(),
            gvk: kind_of(object),
            name: text("name"),
            generate_name: text("generateName"),
            namespace: text("namespace"),
            labels: metadata("labels").map(labels).unwrap_or_default(),
        }))
    }

    /// Converts the JSON of an object that the API server does not decode into a Go type, even if its kind is built in.
    #[must_use]
    pub fn unstructured(object: &Json) -> Self {
        let object = Self::new(object);
        // The cell is empty, so this always succeeds.
        let _ = object.0.go_value.set(None);
        object
    }

    /// Returns the unstructured value.
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

    /// Returns the object as a Go value of the kind `gvk` if `go` is true, and unstructured otherwise.
    pub(super) fn seen_as(&self, gvk: &Gvk, go: bool) -> Value {
        if go {
            self.go_value_as(gvk)
        } else {
            self.value_as(gvk)
        }
    }

    /// Returns the object as a value of the Go type of `gvk`. If the kind has no Go type, returns the unstructured value.
    fn go_value_as(&self, gvk: &Gvk) -> Value {
        let go_value = || go_values::object(self.gvk(), self.value());
        match self.0.go_value.get_or_init(go_value) {
            Some(value) if self.gvk() == gvk => value.clone(),
            Some(_) => {
                let value = self.value_as(gvk);
                go_values::object(gvk, &value).unwrap_or(value)
            }
            None => self.value_as(gvk),
        }
    }

    /// Returns the value of `params` for a validating policy.
    ///
    /// If `is_reencoded` is true, upstream encodes params without a Go type as JSON and decodes them again, which turns
    /// whole doubles into integers.
    ///
    /// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/dispatcher.go` (`wrappedParam`, which converts
    /// params of built-in kinds to unstructured objects in all versions).
    pub(super) fn value_as_params(&self, is_reencoded: bool) -> Value {
        if is_reencoded && !TYPED_GROUPS.contains(&&*self.gvk().group) {
            return reencoded(self.value());
        }
        self.value().clone()
    }

    /// Returns the value of `params` for a mutating policy. In a mutating policy, params of built-in kinds lack
    /// apiVersion and kind. For validating policies, the API server restores these fields (`validating/dispatcher.go`,
    /// `wrappedParam`).
    ///
    /// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/policy_source.go`
    /// (`ensureParamsForPolicyLocked`), which uses the typed informer if there is one; `k8s.io/apimachinery`
    /// `pkg/runtime/helper.go` (`WithoutVersionDecoder`), which removes the kind of typed objects.
    ///
    /// If `go` is true, params of built-in kinds are Go values.
    pub(super) fn value_as_mutating_params(&self, go: bool) -> Value {
        if !TYPED_GROUPS.contains(&&*self.gvk().group) {
            return self.value_as_params(go);
        }
        let fields = self.value().as_map().and_then(Map::as_fields);
        let fields = fields.unwrap_or_default().iter();
        let is_kept = |name: &str| name != "apiVersion" && name != "kind";
        let kept = fields.filter(|(name, _)| is_kept(name)).cloned();
        let value = Value::Map(Map::from_fields(kept.collect()));
        if go {
            go_values::object(self.gvk(), &value).unwrap_or(value)
        } else {
            value
        }
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

/// Returns `value` after it was encoded as JSON and decoded again.
///
/// Source: sigs.k8s.io/structured-merge-diff `value/reflectcache.go`, `TypeReflectCacheEntry.ToUnstructured`; Go
/// `encoding/json/encode.go`, `floatEncoder`; apimachinery `pkg/util/json/json.go`, `ConvertInterfaceNumbers`.
fn reencoded(value: &Value) -> Value {
    match value {
        Value::Double(number) if number.fract() == 0.0 && number.abs() < 1e21 => {
            let whole = format!("{number:.0}").parse().ok();
            whole.map_or_else(|| value.clone(), Value::Int)
        }
        Value::List(list) => Value::List(List::from_json(
            list.iter().map(|element| reencoded(&element)).collect(),
        )),
        Value::Map(map) => {
            let fields = map.as_fields().unwrap_or_default().iter();
            let fields = fields.map(|(name, value)| (Arc::clone(name), reencoded(value)));
            Value::Map(Map::from_fields(fields.collect()))
        }
        other => other.clone(),
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
