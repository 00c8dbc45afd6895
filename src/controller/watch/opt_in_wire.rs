//! Mutating policies, their bindings and webhook configurations as the API server sends them, of any version,
//! parsed as the part that they share with validating policies.
//!
//! `null` and a missing field are the same, as for validating policies.

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingAdmissionPolicyBindingSpec,
    MutatingAdmissionPolicySpec, Mutation, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::controller::subjects::store::Body;
use crate::policy::subject::{Row, SubjectKind};
use crate::policy::{mutations, webhooks};

/// A mutating policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "PolicyObject")]
pub(crate) struct WireMutatingPolicy {
    /// The part that it shares with validating ones.
    pub(crate) shared: ValidatingAdmissionPolicy,
    /// Its mutations.
    pub(crate) mutations: Vec<Mutation>,
    /// Its reinvocationPolicy.
    pub(crate) reinvocation: Option<String>,
}

/// The binding of a mutating policy, read as one of a validating policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "BindingObject")]
pub(crate) struct WireBinding(pub(crate) ValidatingAdmissionPolicyBinding);

// The version of an object is what its path says: `apiVersion` is not read.
#[derive(Deserialize)]
struct PolicyObject {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    #[serde(default)]
    spec: Option<MutatingAdmissionPolicySpec>,
}

#[derive(Deserialize)]
struct BindingObject {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    #[serde(default)]
    spec: Option<MutatingAdmissionPolicyBindingSpec>,
}

impl From<PolicyObject> for WireMutatingPolicy {
    fn from(PolicyObject { metadata, spec }: PolicyObject) -> Self {
        let policy = MutatingAdmissionPolicy {
            metadata: metadata.unwrap_or_default(),
            spec,
        };
        Self {
            shared: mutations::shared_part(&policy),
            mutations: mutations::mutations(&policy).to_vec(),
            reinvocation: policy.spec.and_then(|spec| spec.reinvocation_policy),
        }
    }
}

impl From<BindingObject> for WireBinding {
    fn from(BindingObject { metadata, spec }: BindingObject) -> Self {
        let mut binding = mutations::shared_part_of_binding(&MutatingAdmissionPolicyBinding {
            metadata: metadata.unwrap_or_default(),
            spec,
        });
        binding.spec.validation_actions.clear();
        Self(binding)
    }
}

/// An object that is followed, of whatever kind: what it shares with validating policies, and the rest.
pub(crate) trait WireSubject: Resource<DynamicType = ()> + DeserializeOwned {
    /// The two of them.
    fn parts(self) -> (ValidatingAdmissionPolicy, Body);
}

impl WireSubject for WireMutatingPolicy {
    fn parts(self) -> (ValidatingAdmissionPolicy, Body) {
        let body = Body::Mutating {
            mutations: self.mutations,
            reinvocation: self.reinvocation,
        };
        (self.shared, body)
    }
}

/// A configuration of webhooks, each as a policy of its name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "ConfigurationObject")]
pub(crate) struct WireWebhooks {
    metadata: ObjectMeta,
    webhooks: Vec<ValidatingAdmissionPolicy>,
}

#[derive(Deserialize)]
struct ConfigurationObject {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    #[serde(default)]
    webhooks: Option<Vec<Value>>,
}

impl TryFrom<ConfigurationObject> for WireWebhooks {
    type Error = serde_json::Error;

    fn try_from(object: ConfigurationObject) -> Result<Self, Self::Error> {
        let webhooks = object.webhooks.unwrap_or_default();
        let webhooks = webhooks.iter().map(|webhook| {
            serde_json::from_value::<ValidatingAdmissionPolicy>(webhooks::as_policy(webhook))
        });
        Ok(Self {
            metadata: object.metadata.unwrap_or_default(),
            webhooks: webhooks.collect::<Result<_, serde_json::Error>>()?,
        })
    }
}

impl WireSubject for WireWebhooks {
    fn parts(self) -> (ValidatingAdmissionPolicy, Body) {
        let policy = ValidatingAdmissionPolicy {
            metadata: self.metadata,
            ..ValidatingAdmissionPolicy::default()
        };
        (policy, Body::Webhooks(self.webhooks))
    }
}

const MUTATING: &Row = SubjectKind::MutatingAdmissionPolicy.row();

const VALIDATING_WEBHOOKS: &Row = SubjectKind::ValidatingWebhookConfiguration.row();

// All are in one group, and their version is the one that the cluster serves.
macro_rules! resource {
    ($type:ty, $kind:expr, $plural:expr, $($metadata:tt).+) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = ClusterResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                MUTATING.group.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.$($metadata).+
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.$($metadata).+
            }
        }
    };
}

resource!(
    WireMutatingPolicy,
    MUTATING.kind,
    MUTATING.plural,
    shared.metadata
);
// The paths are those of what is followed: this names a configuration of either sort.
resource!(
    WireWebhooks,
    VALIDATING_WEBHOOKS.kind,
    VALIDATING_WEBHOOKS.plural,
    metadata
);
resource!(
    WireBinding,
    "MutatingAdmissionPolicyBinding",
    MUTATING.bindings.unwrap_or_default(),
    0.metadata
);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> WireMutatingPolicy {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_policy_of_any_version_is_read() {
        for version in ["v1", "v1beta1", "v1alpha1"] {
            let read = read(json!({
                "apiVersion": format!("admissionregistration.k8s.io/{version}"),
                "kind": "MutatingAdmissionPolicy",
                "metadata": {"name": "a", "uid": "u", "generation": 2, "resourceVersion": "7"},
                "spec": {
                    "failurePolicy": "Ignore", "reinvocationPolicy": "Never",
                    "matchConstraints": {"resourceRules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]},
                    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}],
                },
            }));
            assert_eq!(read.mutations.len(), 1);
            let spec = read.shared.spec.unwrap();
            assert_eq!(spec.failure_policy.as_deref(), Some("Ignore"));
            let rules = spec.match_constraints.unwrap().resource_rules.unwrap();
            assert_eq!(
                rules[0].operations.as_ref().unwrap(),
                &["CREATE", "UPDATE", "CONNECT"]
            );
        }
    }

    #[test]
    fn null_is_read_as_absence() {
        for value in [
            json!({}),
            json!({"metadata": null, "spec": null}),
            json!({"spec": {}}),
            json!({"metadata": {"name": null}, "spec": {"mutations": null, "variables": null,
                   "matchConstraints": null, "paramKind": null, "matchConditions": null}}),
        ] {
            assert_eq!(read(value), WireMutatingPolicy::default());
        }
        let odd = read(json!({"spec": {"mutations": [{"patchType": null, "jsonPatch": null}]}}));
        assert_eq!(odd.mutations.len(), 1);
        for value in [
            json!({}),
            json!({"metadata": null, "spec": null}),
            json!({"spec": {"policyName": null, "paramRef": null, "matchResources": null}}),
        ] {
            let WireBinding(read) = serde_json::from_value(value).unwrap();
            assert_eq!(read.spec.policy_name, "");
        }
    }

    impl Default for WireMutatingPolicy {
        fn default() -> Self {
            read(json!({"spec": {}}))
        }
    }

    impl PartialEq for WireMutatingPolicy {
        fn eq(&self, other: &Self) -> bool {
            let spec = |of: &Self| of.shared.spec.clone().unwrap_or_default();
            spec(self) == spec(other) && self.mutations == other.mutations
        }
    }

    #[test]
    fn binding_policy_name_is_as_received() {
        let value = json!({"metadata": {"name": "b"}, "spec": {"policyName": "a"}});
        let WireBinding(read) = serde_json::from_value(value).unwrap();
        assert_eq!(read.spec.policy_name, "a");
        assert_eq!(read.metadata.name.as_deref(), Some("b"));
    }

    #[test]
    fn a_configuration_is_its_webhooks() {
        let read = |value| serde_json::from_value::<WireWebhooks>(value);
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]);
        let found = read(json!({"metadata": {"name": "a"}, "webhooks": [
            {"name": "one.example.com", "rules": rules, "failurePolicy": "Ignore", "clientConfig": {"url": "https://a"},
             "matchConditions": [{"name": "c", "expression": "true"}], "sideEffects": "None"},
            {"name": "two.example.com", "rules": null, "matchConditions": null, "namespaceSelector": null},
            {}]}));
        let (policy, body) = found.unwrap().parts();
        assert_eq!(policy.metadata.name.as_deref(), Some("a"));
        let [one, two, _] = body.webhooks() else {
            panic!("{body:?}")
        };
        assert_eq!(two.metadata.name.as_deref(), Some("two.example.com"));
        let spec = one.spec.as_ref().unwrap();
        assert_eq!(spec.match_conditions.as_ref().unwrap().len(), 1);
        assert_eq!(spec.failure_policy.as_deref(), Some("Ignore"));
        let constraints = spec.match_constraints.as_ref().unwrap();
        assert_eq!(constraints.resource_rules.as_ref().unwrap().len(), 1);
        for nothing in [json!({}), json!({"metadata": null, "webhooks": null})] {
            assert_eq!(read(nothing).unwrap(), WireWebhooks::default());
        }
        // One that cannot be read is told of; it is not taken for one that says nothing.
        read(json!({"webhooks": [{"rules": 7}]})).unwrap_err();
        read(json!({"webhooks": 7})).unwrap_err();
    }
}
