//! Deserializes policies from the API server without fields that are not needed.
//!
//! Managed fields are half of the JSON of a policy with a status. They are part of each event and of each response to a
//! write. Parsing them would take longer than parsing the rest. At startup, the controller receives thousands of
//! policies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
    ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use serde::Deserialize;

use super::unknown_fields::WithUnknownFields;
use crate::controller::subjects::binding_annotations;
use crate::policy::RequestPolicy;

/// A policy whose metadata has only the name, uid, versions, labels and field managers.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Received")]
pub(crate) struct WirePolicy {
    pub(crate) policy: ValidatingAdmissionPolicy,
    unknown_fields: Vec<String>,
}

impl WirePolicy {
    /// Returns the metadata, the content and the status.
    pub(crate) fn parts(
        self,
    ) -> (
        ObjectMeta,
        RequestPolicy,
        Option<ValidatingAdmissionPolicyStatus>,
    ) {
        let ValidatingAdmissionPolicy {
            metadata,
            spec,
            status,
        } = self.policy;
        let policy = RequestPolicy {
            unknown_fields: self.unknown_fields,
            ..RequestPolicy::new(metadata.name.clone(), spec.unwrap_or_default())
        };
        (metadata, policy, status)
    }
}

#[derive(Deserialize)]
struct Received {
    #[serde(default)]
    metadata: Option<Metadata>,
    #[serde(default)]
    spec: Option<WithUnknownFields<ValidatingAdmissionPolicySpec>>,
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
        let spec = received.spec.map(|spec| spec.parts("spec"));
        let (spec, unknown_fields) = spec.unzip();
        let policy = ValidatingAdmissionPolicy {
            metadata: ObjectMeta {
                name: metadata.name,
                uid: metadata.uid,
                generation: metadata.generation,
                resource_version: metadata.resource_version,
                labels: metadata.labels,
                managed_fields: managers,
                ..ObjectMeta::default()
            },
            spec,
            status: received.status,
        };
        Self {
            policy,
            unknown_fields: unknown_fields.unwrap_or_default(),
        }
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
        &self.policy.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.policy.metadata
    }
}

/// A binding whose unknown fields are listed in its metadata ([`binding_annotations::unknown_fields`]).
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "ReceivedBinding")]
pub(crate) struct WireValidatingBinding(pub(crate) ValidatingAdmissionPolicyBinding);

#[derive(Deserialize)]
struct ReceivedBinding {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    #[serde(default)]
    spec: Option<WithUnknownFields<ValidatingAdmissionPolicyBindingSpec>>,
}

impl From<ReceivedBinding> for WireValidatingBinding {
    fn from(ReceivedBinding { metadata, spec }: ReceivedBinding) -> Self {
        let mut metadata = metadata.unwrap_or_default();
        let (spec, unknown_fields) = spec.unwrap_or_default().parts("spec");
        binding_annotations::set_unknown_fields(&mut metadata, &unknown_fields);
        Self(ValidatingAdmissionPolicyBinding { metadata, spec })
    }
}

impl Resource for WireValidatingBinding {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        ValidatingAdmissionPolicyBinding::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        ValidatingAdmissionPolicyBinding::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        ValidatingAdmissionPolicyBinding::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        ValidatingAdmissionPolicyBinding::plural(&())
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
    use crate::controller::subjects::event_source::EventSource;
    use crate::controller::subjects::managed_fields::owns_status;
    use crate::controller::subjects::policy_index::Bindings;
    use crate::controller::watch::binding_state;
    use crate::policy::subject::SubjectId;

    fn read(value: Value) -> ValidatingAdmissionPolicy {
        serde_json::from_value::<WirePolicy>(value).unwrap().policy
    }

    #[test]
    fn received_policy_has_needed_metadata_spec_and_status() {
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
    fn received_policy_has_unknown_fields_of_spec() {
        let policy = |spec| -> RequestPolicy {
            let value = json!({"metadata": {"name": "a"}, "newer": 1, "spec": spec});
            serde_json::from_value::<WirePolicy>(value)
                .unwrap()
                .parts()
                .1
        };
        let newer = policy(json!({"newer": 1, "variables": [{"name": "v", "newer": true}]}));
        assert_eq!(
            newer.unknown_fields,
            ["spec.newer", "spec.variables[0].newer"]
        );
        let same: RequestPolicy = serde_json::from_value(json!({
            "name": "a", "variables": [{"name": "v", "expression": ""}],
        }))
        .unwrap();
        assert_eq!(policy(json!({"variables": [{"name": "v"}]})), same);
    }

    #[test]
    fn unknown_spec_fields_of_received_binding_are_in_the_index() {
        let put = |spec: Value| {
            let value = json!({"metadata": {"name": "b", "uid": "u", "resourceVersion": "1"}, "spec": spec});
            let WireValidatingBinding(binding) = serde_json::from_value(value).unwrap();
            let bindings = Bindings::default();
            bindings.put(binding, EventSource::Watched);
            bindings.retain(&["b".to_owned()].into());
            let id = SubjectId::policy("p");
            let stored = bindings.for_policy(&id).unwrap();
            binding_state::unknown_fields(&stored)
        };
        let supported =
            json!({"policyName": "p", "validationActions": ["Deny"], "paramRef": {"name": "a"}});
        assert_eq!(put(supported), []);
        let newer = json!({"policyName": "p", "paramRef": {"name": "a", "newer": 1}, "newer": {}});
        let fields = ["spec.newer", "spec.paramRef.newer"].map(str::to_owned);
        assert_eq!(put(newer), [("b".to_owned(), fields.to_vec())]);
    }

    #[test]
    fn null_field_of_received_policy_is_absent() {
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
