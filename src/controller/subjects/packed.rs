//! Compact storage of thousands of objects.
//!
//! A parsed object has space for each possible field, and an allocation for each string. Its JSON takes a third of the
//! memory. Parsing takes some microseconds. This is acceptable, since objects are read rarely, usually before a request
//! to the API server.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::event_source::ObjectState;

/// The metadata that identifies one state of a stored object. The name is not included, since it is the key of the
/// object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    uid: Option<Box<str>>,
    resource_version: Option<Box<str>>,
    generation: Option<i64>,
}

impl Identity {
    pub(crate) fn new(metadata: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(Box::from);
        Self {
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
            generation: metadata.generation,
        }
    }

    pub(crate) fn state(&self) -> ObjectState<'_> {
        ObjectState {
            uid: self.uid.as_deref(),
            resource_version: self.resource_version.as_deref(),
        }
    }

    pub(crate) fn generation(&self) -> Option<i64> {
        self.generation
    }

    pub(crate) fn metadata(&self, name: &str) -> ObjectMeta {
        let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        ObjectMeta {
            name: Some(name.to_owned()),
            uid: text(&self.uid),
            resource_version: text(&self.resource_version),
            generation: self.generation,
            ..ObjectMeta::default()
        }
    }
}

/// A value stored as JSON. Values with equal JSON are equal.
pub(crate) struct Packed<T> {
    json: Box<[u8]>,
    value: PhantomData<fn() -> T>,
}

impl<T> PartialEq for Packed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<T> fmt::Debug for Packed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.json))
    }
}

impl<T> Packed<T> {
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }
}

impl<T: Serialize + DeserializeOwned> Packed<T> {
    #[expect(
        clippy::expect_used,
        reason = "only keys that are not strings could fail, and objects of Kubernetes have none; a panic would be \
                  counted and logged"
    )]
    pub(crate) fn new(value: &T) -> Self {
        let json = serde_json::to_vec(value).expect("Kubernetes objects are valid JSON");
        Self {
            json: json.into_boxed_slice(),
            value: PhantomData,
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "the same type has serialized it; a panic would be counted and logged"
    )]
    pub(crate) fn unpack(&self) -> T {
        serde_json::from_slice(&self.json).expect("packed JSON can be parsed")
    }
}

/// Returns a hash of `json`. It is the same in all processes.
pub(crate) fn hash(json: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(json);
    hasher.finish()
}

/// Returns `namespace/name`, or the name of an object without a namespace.
pub(crate) fn full_name(namespace: Option<&str>, name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    match namespace {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use serde_json::json;

    use super::*;

    #[test]
    fn packed_object_unpacks_to_same_object() {
        let value = json!({
            "metadata": {"name": "a"},
            "spec": {
                "failurePolicy": "Ignore", "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "auditAnnotations": [], "matchConditions": [{"name": "é\u{0}\"\n", "expression": "true"}],
                "matchConstraints": {
                    "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    "objectSelector": {"matchLabels": {"a": ""}},
                    "resourceRules": [{"apiGroups": [""], "apiVersions": ["*"], "resources": []}],
                },
                "validations": [{"expression": "1 < 2", "messageExpression": "''", "reason": "Invalid"}],
                "variables": [{"name": "a", "expression": "[1.5, 1u]"}],
            },
            "status": {
                "observedGeneration": 7, "typeChecking": {"expressionWarnings": [
                    {"fieldRef": "spec.validations[0].expression", "warning": "a\n | .^"}]},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                                "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 7}],
            },
        });
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(value).unwrap();
        assert_eq!(Packed::new(&policy).unpack(), policy);
        assert_eq!(Packed::new(&policy), Packed::new(&policy.clone()));
        let spec = policy.spec.unwrap();
        assert_eq!(Packed::new(&spec).unpack(), spec);
        assert_eq!(Packed::new(&policy.status).unpack(), policy.status);
        assert_eq!(Packed::new(&None::<i64>).unpack(), None);
    }

    #[test]
    fn packed_identity_keeps_uid_version_and_generation() {
        let metadata = ObjectMeta {
            name: Some("a".to_owned()),
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
            generation: Some(3),
            ..ObjectMeta::default()
        };
        let mut described = metadata.clone();
        described.labels = Some([("a".to_owned(), "b".to_owned())].into());
        described.managed_fields = Some(Vec::new());
        assert_eq!(Identity::new(&described).metadata("a"), metadata);
    }
}
