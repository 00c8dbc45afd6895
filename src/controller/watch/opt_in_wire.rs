//! Deserializes mutating policies, their bindings and webhook configurations of any API version.
//!
//! `null` counts as a missing field, as for validating policies.

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingAdmissionPolicyBindingSpec,
    MutatingAdmissionPolicySpec, MutatingWebhook, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::unknown_fields::WithUnknownFields;
use crate::controller::subjects::binding_annotations;
use crate::controller::subjects::subject::Subject;
use crate::policy::subject::{Row, SubjectKind};
use crate::policy::{RequestPolicy, mutations};

/// A received object of an opt-in kind.
pub(crate) trait WireSubject: Resource<DynamicType = ()> + DeserializeOwned {
    fn parts(self) -> (ObjectMeta, Subject);
}

#[derive(Clone, Debug, Deserialize)]
#[serde(from = "PolicyObject")]
pub(crate) struct WireMutatingPolicy {
    policy: MutatingAdmissionPolicy,
    unknown_fields: Vec<String>,
}

/// The binding of a mutating policy, in the form of a validating policy's binding.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "BindingObject")]
pub(crate) struct WireBinding(pub(crate) ValidatingAdmissionPolicyBinding);

// `apiVersion` is not parsed, since the URL path of the watch determines it.
#[derive(Deserialize)]
struct PolicyObject {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    #[serde(default)]
    spec: Option<WithUnknownFields<MutatingAdmissionPolicySpec>>,
}

#[derive(Deserialize)]
struct BindingObject {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    #[serde(default)]
    spec: Option<WithUnknownFields<MutatingAdmissionPolicyBindingSpec>>,
}

impl From<PolicyObject> for WireMutatingPolicy {
    fn from(PolicyObject { metadata, spec }: PolicyObject) -> Self {
        let (spec, unknown_fields) = spec.map(|spec| spec.parts("spec")).unzip();
        Self {
            policy: MutatingAdmissionPolicy {
                metadata: metadata.unwrap_or_default(),
                spec,
            },
            unknown_fields: unknown_fields.unwrap_or_default(),
        }
    }
}

impl WireSubject for WireMutatingPolicy {
    fn parts(self) -> (ObjectMeta, Subject) {
        let Self {
            policy,
            unknown_fields,
        } = self;
        let subject = Subject::MutatingPolicy {
            policy: RequestPolicy {
                unknown_fields,
                ..RequestPolicy::from(&policy)
            },
            mutations: mutations::mutations(&policy).to_vec(),
            reinvocation_policy: policy.spec.and_then(|spec| spec.reinvocation_policy),
        };
        (policy.metadata, subject)
    }
}

impl From<BindingObject> for WireBinding {
    fn from(BindingObject { metadata, spec }: BindingObject) -> Self {
        let (spec, unknown_fields) = spec.map(|spec| spec.parts("spec")).unzip();
        let mut binding = mutations::shared_part_of_binding(&MutatingAdmissionPolicyBinding {
            metadata: metadata.unwrap_or_default(),
            spec,
        });
        binding.spec.validation_actions.clear();
        let unknown_fields = unknown_fields.unwrap_or_default();
        binding_annotations::set_unknown_fields(&mut binding.metadata, &unknown_fields);
        Self(binding)
    }
}

/// A `ValidatingWebhookConfiguration` or `MutatingWebhookConfiguration`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "ConfigurationObject")]
pub(crate) struct WireWebhooks {
    metadata: ObjectMeta,
    webhooks: Vec<RequestPolicy>,
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
            // This type also has all fields of a `ValidatingWebhook`.
            let fields: WithUnknownFields<MutatingWebhook> =
                WithUnknownFields::deserialize(webhook).unwrap_or_default();
            Ok(RequestPolicy {
                unknown_fields: fields.unknown_fields,
                ..RequestPolicy::from_webhook(webhook)?
            })
        });
        Ok(Self {
            metadata: object.metadata.unwrap_or_default(),
            webhooks: webhooks.collect::<Result<_, serde_json::Error>>()?,
        })
    }
}

impl WireSubject for WireWebhooks {
    fn parts(self) -> (ObjectMeta, Subject) {
        (self.metadata, Subject::Webhooks(self.webhooks))
    }
}

const MUTATING: &Row = SubjectKind::MutatingAdmissionPolicy.row();

const VALIDATING_WEBHOOKS: &Row = SubjectKind::ValidatingWebhookConfiguration.row();

// All kinds of this macro are in one API group. `version` is not used, since the URL path of the watch determines it.
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
    policy.metadata
);
// `kind` and `plural` are not used, since the URL path of the watch determines them.
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
    use crate::policy::matching;

    fn parsed(value: Value) -> Subject {
        let policy: WireMutatingPolicy = serde_json::from_value(value).unwrap();
        policy.parts().1
    }

    #[test]
    fn mutating_policies_of_all_versions_are_parsed() {
        for version in ["v1", "v1beta1", "v1alpha1"] {
            let subject = parsed(json!({
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
            assert_eq!(subject.mutations().unwrap().len(), 1);
            assert!(!subject.fails_closed());
            let rules = matching::rules(subject.policy().unwrap());
            assert_eq!(
                rules[0].operations.as_ref().unwrap(),
                &["CREATE", "UPDATE", "CONNECT"]
            );
        }
    }

    #[test]
    fn null_field_of_opt_in_policy_is_absent() {
        let empty = Subject::MutatingPolicy {
            policy: RequestPolicy::default(),
            mutations: Vec::new(),
            reinvocation_policy: None,
        };
        for value in [
            json!({}),
            json!({"metadata": null, "spec": null}),
            json!({"spec": {}}),
            json!({"metadata": {"name": null}, "spec": {"mutations": null, "variables": null,
                   "matchConstraints": null, "paramKind": null, "matchConditions": null}}),
        ] {
            assert_eq!(parsed(value), empty);
        }
        let odd = parsed(json!({"spec": {"mutations": [{"patchType": null, "jsonPatch": null}]}}));
        assert_eq!(odd.mutations().unwrap().len(), 1);
        for value in [
            json!({}),
            json!({"metadata": null, "spec": null}),
            json!({"spec": {"policyName": null, "paramRef": null, "matchResources": null}}),
        ] {
            let WireBinding(read) = serde_json::from_value(value).unwrap();
            assert_eq!(read.spec.policy_name, "");
        }
    }

    #[test]
    fn unknown_fields_of_opt_in_kinds_are_listed() {
        let policy = parsed(json!({"spec": {"newer": 1, "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]", "newer": 1}}]}}));
        assert_eq!(
            policy.unknown_fields(),
            ["spec.mutations[0].jsonPatch.newer", "spec.newer"]
        );
        let value = json!({"metadata": {"name": "b"}, "spec": {"policyName": "a", "newer": 1}});
        let WireBinding(read) = serde_json::from_value(value).unwrap();
        assert_eq!(
            binding_annotations::unknown_fields(&read.metadata),
            ["spec.newer"]
        );
        let supported = json!({"name": "a.example.com", "clientConfig": {"url": "https://a"}, "timeoutSeconds": 1,
            "reinvocationPolicy": "Never", "admissionReviewVersions": ["v1"], "sideEffects": "None"});
        let mut newer = supported.clone();
        newer["rules"] = json!([{"operations": ["*"], "newer": 1}]);
        newer["newer"] = json!(1);
        let read: WireWebhooks =
            serde_json::from_value(json!({"webhooks": [supported, newer]})).unwrap();
        assert_eq!(
            read.parts().1.unknown_fields(),
            ["webhooks[1].newer", "webhooks[1].rules[0].newer"]
        );
    }

    #[test]
    fn binding_retains_policy_name() {
        let value = json!({"metadata": {"name": "b"}, "spec": {"policyName": "a"}});
        let WireBinding(read) = serde_json::from_value(value).unwrap();
        assert_eq!(read.spec.policy_name, "a");
        assert_eq!(read.metadata.name.as_deref(), Some("b"));
    }

    #[test]
    fn webhooks_of_configuration_are_parsed() {
        let read = |value| serde_json::from_value::<WireWebhooks>(value);
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}]);
        let configuration = read(json!({"metadata": {"name": "a"}, "webhooks": [
            {"name": "one.example.com", "rules": rules, "failurePolicy": "Ignore", "clientConfig": {"url": "https://a"},
             "matchConditions": [{"name": "c", "expression": "true"}], "sideEffects": "None"},
            {"name": "two.example.com", "rules": null, "matchConditions": null, "namespaceSelector": null},
            {}]}));
        let (metadata, subject) = configuration.unwrap().parts();
        assert_eq!(metadata.name.as_deref(), Some("a"));
        let [one, two, _] = subject.webhooks() else {
            panic!("{subject:?}")
        };
        assert_eq!(two.name.as_deref(), Some("two.example.com"));
        assert_eq!(one.match_conditions.len(), 1);
        assert_eq!(one.failure_policy.as_deref(), Some("Ignore"));
        assert_eq!(matching::rules(one).len(), 1);
        for empty in [json!({}), json!({"metadata": null, "webhooks": null})] {
            assert_eq!(read(empty).unwrap(), WireWebhooks::default());
        }
        // A webhook that cannot be parsed is an error, not a webhook without fields.
        read(json!({"webhooks": [{"rules": 7}]})).unwrap_err();
        read(json!({"webhooks": 7})).unwrap_err();
    }
}
