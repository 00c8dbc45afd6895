//! Status objects, such as `MutatingAdmissionPolicyStatus` of `vap-status.dev/v1alpha1`: conditions of objects whose
//! kind has no suitable status (ADR 31).
//!
//! A status object has the name of the policy that it describes, is owned by it, and consists of a status. This module
//! converts between it and the status of a ValidatingAdmissionPolicy.
//!
//! Each kind is a [`StatusObjectKind`] in the table of subjects, and has a CRD in `crds`.

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, TypeChecking, ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource;
use serde::{Deserialize, Serialize};

use super::DesiredStatus;
use crate::policy::subject::StatusObjectKind;

/// An object with the status of a policy.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct StatusObject {
    /// The metadata. The name is that of the policy.
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    /// The status, if it has been written.
    #[serde(default)]
    pub status: Option<ObjectStatus>,
    /// The default for absent metadata, to which [`Resource::meta`] refers.
    #[serde(skip)]
    none: ObjectMeta,
}

/// The status of a status object.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectStatus {
    /// The generation of the status object itself, which wait tools compare with `metadata.generation`. It only changes
    /// if the object is created again.
    #[serde(default)]
    pub observed_generation: Option<i64>,
    /// The generation of the policy that was checked.
    #[serde(default)]
    pub policy_generation: Option<i64>,
    /// The warnings, in the format of ValidatingAdmissionPolicies.
    #[serde(default)]
    pub type_checking: Option<ObjectTypeChecking>,
    /// The conditions.
    #[serde(default)]
    pub conditions: Option<Vec<Condition>>,
}

/// The warnings. An empty list is written too.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTypeChecking {
    /// The warnings.
    #[serde(default)]
    pub expression_warnings: Option<Vec<ExpressionWarning>>,
}

impl StatusObject {
    /// Converts to the status of a ValidatingAdmissionPolicy, in which all generations are those of the policy.
    #[must_use]
    pub fn policy_status(&self) -> Option<ValidatingAdmissionPolicyStatus> {
        let status = self.status.as_ref()?;
        let own = self.meta().generation;
        let of_policy = |observed: Option<i64>| match observed {
            Some(_) if observed == own => status.policy_generation,
            _ => None,
        };
        let conditions = status.conditions.clone().map(|mut conditions| {
            for condition in &mut conditions {
                condition.observed_generation = of_policy(condition.observed_generation);
            }
            conditions
        });
        Some(ValidatingAdmissionPolicyStatus {
            observed_generation: of_policy(status.observed_generation),
            type_checking: status.type_checking.clone().map(|checking| TypeChecking {
                expression_warnings: checking.expression_warnings,
            }),
            conditions,
        })
    }

    /// Returns true if the object with this uid owns the status object. An object of the same name may have another
    /// uid.
    #[must_use]
    pub fn is_owned_by(&self, uid: Option<&str>) -> bool {
        let owners = self.meta().owner_references.iter().flatten();
        uid.is_some_and(|uid| owners.into_iter().any(|owner| owner.uid == uid))
    }
}

impl ObjectStatus {
    /// Creates the status of a status object of the generation `own` from the desired status of its policy.
    #[must_use]
    pub fn new(desired: &DesiredStatus, own: Option<i64>) -> Self {
        let conditions = desired.conditions.iter().map(|condition| Condition {
            observed_generation: own,
            ..condition.clone()
        });
        Self {
            observed_generation: own,
            policy_generation: Some(desired.observed_generation),
            type_checking: Some(ObjectTypeChecking {
                expression_warnings: Some(desired.expression_warnings.clone()),
            }),
            conditions: Some(conditions.collect()),
        }
    }
}

impl Resource for StatusObject {
    type DynamicType = StatusObjectKind;
    type Scope = ClusterResourceScope;

    fn kind(kind: &StatusObjectKind) -> Cow<'_, str> {
        kind.kind.into()
    }

    fn group(_: &StatusObjectKind) -> Cow<'_, str> {
        "vap-status.dev".into()
    }

    fn version(_: &StatusObjectKind) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural(kind: &StatusObjectKind) -> Cow<'_, str> {
        kind.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        self.metadata.as_ref().unwrap_or(&self.none)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.metadata.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::policy::subject::SubjectKind;
    use crate::status::condition::{ConditionStatus, ConditionType, Reason, condition};

    fn desired() -> DesiredStatus {
        let ready = condition(
            ConditionType::Ready,
            ConditionStatus::True,
            Reason::Ready,
            "fine",
            7,
            Timestamp::UNIX_EPOCH,
        );
        DesiredStatus {
            observed_generation: 7,
            expression_warnings: vec![ExpressionWarning {
                field_ref: "spec.mutations[0].jsonPatch.expression".to_owned(),
                warning: "no".to_owned(),
            }],
            n_type_warnings: 1,
            conditions: vec![ready],
            has_retained: false,
        }
    }

    fn stored(generation: i64, status: &ObjectStatus) -> StatusObject {
        let metadata = json!({"name": "a", "generation": generation, "ownerReferences": [
            {"apiVersion": "v1", "kind": "X", "name": "a", "uid": "u"}]});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    #[test]
    fn object_status_round_trips() {
        let desired = desired();
        let written = ObjectStatus::new(&desired, Some(1));
        let json = serde_json::to_value(&written).unwrap();
        // Wait tools compare these two with the generation of the status object.
        assert_eq!(json["observedGeneration"], 1);
        assert_eq!(json["conditions"][0]["observedGeneration"], 1);
        assert_eq!(json["policyGeneration"], 7);
        let live = stored(1, &written).policy_status();
        assert!(desired.is_satisfied_by(live.as_ref()), "{live:?}");
    }

    #[test]
    fn policy_status_other_generation_does_not_satisfy() {
        let desired = desired();
        let written = ObjectStatus::new(&desired, Some(1));
        let live = stored(2, &written).policy_status();
        assert!(!desired.is_satisfied_by(live.as_ref()));
        let next_generation = DesiredStatus {
            observed_generation: 8,
            ..desired.clone()
        };
        let live = stored(1, &ObjectStatus::new(&next_generation, Some(1))).policy_status();
        assert!(!desired.is_satisfied_by(live.as_ref()));
    }

    #[test]
    fn is_owned_by_compares_uid() {
        let object = stored(1, &ObjectStatus::default());
        assert!(object.is_owned_by(Some("u")));
        assert!(!object.is_owned_by(Some("v")));
        assert!(!object.is_owned_by(None));
        assert!(!StatusObject::default().is_owned_by(None));
    }

    #[test]
    fn null_fields_are_absent() {
        for value in [
            json!({}),
            json!({"metadata": null, "status": null}),
            json!({"metadata": {"name": null, "ownerReferences": null}, "status": {}}),
            json!({"status": {"conditions": null, "typeChecking": null, "observedGeneration": null,
                              "policyGeneration": null}}),
            json!({"status": {"typeChecking": {"expressionWarnings": null}}}),
        ] {
            let object: StatusObject = serde_json::from_value(value).unwrap();
            let live = object.policy_status();
            assert!(!desired().is_satisfied_by(live.as_ref()));
        }
    }

    /// The CRDs are written by hand. Each must have the names of its kind and a schema for each written field.
    #[test]
    fn crds_have_every_field() {
        let kinds = SubjectKind::ALL.iter();
        kinds
            .filter_map(|kind| kind.row().status_object.as_ref())
            .for_each(assert_crd_has_every_field);
    }

    fn assert_crd_has_every_field(kind: &StatusObjectKind) {
        let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/crds");
        let path = format!("{crds}/{}.vap-status.dev.yaml", kind.plural);
        let text = std::fs::read_to_string(path).unwrap();
        let crd: Value = serde_norway::from_str(&text).unwrap();
        let spec = &crd["spec"];
        assert_eq!(spec["group"], *StatusObject::group(kind));
        assert_eq!(spec["names"]["kind"], *StatusObject::kind(kind));
        assert_eq!(spec["names"]["plural"], *StatusObject::plural(kind));
        let version = &spec["versions"][0];
        assert_eq!(version["name"], *StatusObject::version(kind));
        assert!(version["subresources"]["status"].is_object());
        let schema = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
        let written = serde_json::to_value(ObjectStatus::new(&desired(), Some(1))).unwrap();
        assert_has_fields(schema, &written, "status");
    }

    #[track_caller]
    fn assert_has_fields(schema: &Value, value: &Value, path: &str) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = format!("{path}.{name}");
                    let field_schema = &schema["properties"][name];
                    assert!(field_schema.is_object(), "{path} is not in the CRD");
                    assert_has_fields(field_schema, value, &path);
                }
            }
            Value::Array(items) => {
                for item in items {
                    assert_has_fields(&schema["items"], item, path);
                }
            }
            _ => assert!(schema["type"].is_string(), "{path}"),
        }
    }
}
