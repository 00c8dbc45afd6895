//! Deserializes policies from the API server without fields that are not needed.
//!
//! Managed fields are half of the JSON of a policy with a status. They are part of each event and of each response to a
//! write. Parsing them would take longer than parsing the rest. At startup, the controller receives thousands of
//! policies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec, ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use serde::Deserialize;

/// A policy whose metadata has only the name, uid, versions, labels and field managers.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Received")]
pub(crate) struct WirePolicy(pub(crate) ValidatingAdmissionPolicy);

#[derive(Deserialize)]
struct Received {
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default)]
    spec: Option<ValidatingAdmissionPolicySpec>,
    #[serde(default)]
    status: Option<ValidatingAdmissionPolicyStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    uid: Option<String>,
    generation: Option<i64>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    managed_fields: Option<Vec<Manager>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Manager {
    manager: Option<String>,
    subresource: Option<String>,
}

impl From<Received> for WirePolicy {
    fn from(received: Received) -> Self {
        let metadata = received.metadata.unwrap_or_default();
        let managers = metadata.managed_fields.map(|managers| {
            let managers = managers.into_iter();
            let entry = |manager: Manager| ManagedFieldsEntry {
                manager: manager.manager,
                subresource: manager.subresource,
                ..ManagedFieldsEntry::default()
            };
            managers.map(entry).collect()
        });
        Self(ValidatingAdmissionPolicy {
            metadata: ObjectMeta {
                name: metadata.name,
                uid: metadata.uid,
                generation: metadata.generation,
                resource_version: metadata.resource_version,
                labels: metadata.labels,
                managed_fields: managers,
                ..ObjectMeta::default()
            },
            spec: received.spec,
            status: received.status,
        })
    }
}

impl Resource for WirePolicy {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        ValidatingAdmissionPolicy::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        ValidatingAdmissionPolicy::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        ValidatingAdmissionPolicy::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        ValidatingAdmissionPolicy::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::subjects::managed_fields::owns_status;

    fn read(value: Value) -> ValidatingAdmissionPolicy {
        serde_json::from_value::<WirePolicy>(value).unwrap().0
    }

    #[test]
    fn wire_policy_has_needed_metadata_spec_and_status() {
        let value = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {
                "name": "a", "uid": "u", "generation": 2, "resourceVersion": "7", "labels": {"a": "b"},
                "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"c": "d"},
                "managedFields": [
                    {"manager": "vap-status-controller", "operation": "Apply", "subresource": "status",
                     "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                     "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}}}}}},
                    {"manager": "kubectl", "fieldsV1": {}},
                ],
            },
            "spec": {"failurePolicy": "Fail", "validations": [{"expression": "true"}]},
            "status": {"observedGeneration": 2, "typeChecking": {}},
        });
        let policy = read(value.clone());
        let whole: ValidatingAdmissionPolicy = serde_json::from_value(value).unwrap();
        assert_eq!((&policy.spec, &policy.status), (&whole.spec, &whole.status));
        let (metadata, all) = (&policy.metadata, &whole.metadata);
        assert_eq!(
            (&metadata.name, &metadata.uid, &metadata.resource_version),
            (&all.name, &all.uid, &all.resource_version)
        );
        assert_eq!(
            (metadata.generation, &metadata.labels),
            (Some(2), &all.labels)
        );
        assert!(owns_status(metadata));
    }

    #[test]
    fn wire_policy_null_field_is_absent() {
        let nothing = ValidatingAdmissionPolicy::default();
        for value in [
            json!({}),
            json!({"metadata": null, "spec": null, "status": null}),
            json!({"metadata": {"name": null, "generation": null, "labels": null, "managedFields": null}}),
        ] {
            assert_eq!(read(value), nothing);
        }
        let unnamed = json!({"metadata": {"managedFields": [{"manager": null}]}});
        assert!(!owns_status(&read(unnamed).metadata));
    }
}
