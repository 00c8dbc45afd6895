//! Compact storage of thousands of objects.
//!
//! A parsed object has room for every possible field, and an allocation for each string. As JSON it takes a third
//! of the memory. Parsing takes some microseconds, which is little, as an object is read seldom and mostly before a
//! request.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::event_source::ObjectState;

/// Identity of an object and of one state of it; of the metadata nothing else is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    name: Option<Box<str>>,
    uid: Option<Box<str>>,
    resource_version: Option<Box<str>>,
    generation: Option<i64>,
}

impl Identity {
    /// That of the object with this metadata.
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(Box::from);
        Self {
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
            generation: metadata.generation,
        }
    }

    /// The state of the object.
    pub(crate) fn state(&self) -> ObjectState<'_> {
        ObjectState {
            uid: self.uid.as_deref(),
            resource_version: self.resource_version.as_deref(),
        }
    }

    /// The generation of the object.
    pub(crate) fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// Metadata that has this and nothing else.
    pub(crate) fn metadata(&self) -> ObjectMeta {
        let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        ObjectMeta {
            name: text(&self.name),
            uid: text(&self.uid),
            resource_version: text(&self.resource_version),
            generation: self.generation,
            ..ObjectMeta::default()
        }
    }
}

/// A value as text. Values of one text are equal.
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
    /// The value as JSON.
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }
}

impl<T: Serialize + DeserializeOwned> Packed<T> {
    /// Packs a value.
    #[expect(
        clippy::expect_used,
        reason = "objects of Kubernetes have texts for keys, which is all that could go wrong; where it \
                  does, that is a panic that is counted and told"
    )]
    pub(crate) fn new(value: &T) -> Self {
        let json = serde_json::to_vec(value).expect("it can be written as JSON");
        Self {
            json: json.into_boxed_slice(),
            value: PhantomData,
        }
    }

    /// The value again.
    #[expect(
        clippy::expect_used,
        reason = "it was written by the same type; where it cannot be read all the same, that is a panic \
                  that is counted and told"
    )]
    pub(crate) fn unpack(&self) -> T {
        serde_json::from_slice(&self.json).expect("what was packed can be read")
    }
}

/// Returns a hash of a text, the same on each run.
pub(crate) fn hash(json: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(json);
    hasher.finish()
}

/// The name of an object, with its namespace before it where it has one.
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
    fn what_is_packed_is_the_same_unpacked() {
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
    fn of_the_metadata_the_identity_is_kept() {
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
        assert_eq!(Identity::of(&described).metadata(), metadata);
    }
}
