//! Status objects, such as `MutatingAdmissionPolicyStatus` of `vap-status.dev/v1alpha1`. They contain the conditions of
//! objects whose own kind has no suitable status (ADR 31).
//!
//! A status object has the name of the policy that it describes. The policy owns the status object, which has no spec. This module
//! converts between its status and the status of a ValidatingAdmissionPolicy.
//!
//! The kinds of status objects are the [`StatusObjectKind`]s in the table of subjects. Their CRDs are in `crds`.

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

/// A status object, as read from the API server.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct StatusObject {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    /// The status. `None` before the first write.
    #[serde(default)]
    pub status: Option<ObjectStatus>,
    /// [`Resource::meta`] returns this value if `metadata` is absent.
    #[serde(skip)]
    none: ObjectMeta,
}

/// The field `status` of a status object.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectStatus {
    /// The generation of the status object itself. It changes only if the status object is recreated. Tools that wait
    /// for a status compare this field with `metadata.generation`.
    #[serde(default)]
    pub observed_generation: Option<i64>,
    /// The generation of the checked policy.
    #[serde(default)]
    pub policy_generation: Option<i64>,
    /// The warnings, in the format of a ValidatingAdmissionPolicy.
    #[serde(default)]
    pub type_checking: Option<ObjectTypeChecking>,
    /// The conditions of the policy.
    #[serde(default)]
    pub conditions: Option<Vec<Condition>>,
}

/// The field `typeChecking` of a status object. The field is written even if there are no warnings.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTypeChecking {
    /// The warnings, at most one per expression.
    #[serde(default)]
    pub expression_warnings: Option<Vec<ExpressionWarning>>,
}

impl StatusObject {
    /// Converts the status to the status of a ValidatingAdmissionPolicy. Generations in the result are generations of
    /// the policy. Returns `None` if there is no status.
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

    /// Returns true if the object with this UID owns the status object. A recreated policy has the same name but a
    /// different UID.
    #[must_use]
    pub fn is_owned_by(&self, uid: Option<&str>) -> bool {
        let owners = self.meta().owner_references.iter().flatten();
        uid.is_some_and(|uid| owners.into_iter().any(|owner| owner.uid == uid))
    }
}

impl ObjectStatus {
    /// Converts the desired status of a policy. `own` is the generation of the status object.
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
    fn object_status_serialization_round_trips() {
        let desired = desired();
        let written = ObjectStatus::new(&desired, Some(1));
        let json = serde_json::to_value(&written).unwrap();
        // Tools that wait for a status compare these two fields with `metadata.generation`.
        assert_eq!(json["observedGeneration"], 1);
        assert_eq!(json["conditions"][0]["observedGeneration"], 1);
        assert_eq!(json["policyGeneration"], 7);
        let live = stored(1, &written).policy_status();
        assert!(desired.is_satisfied_by(live.as_ref()), "{live:?}");
    }

    #[test]
    fn status_of_another_generation_is_not_current() {
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
    fn owner_of_status_object_is_compared_by_uid() {
        let object = stored(1, &ObjectStatus::default());
        assert!(object.is_owned_by(Some("u")));
        assert!(!object.is_owned_by(Some("v")));
        assert!(!object.is_owned_by(None));
        assert!(!StatusObject::default().is_owned_by(None));
    }

    #[test]
    fn null_fields_of_status_object_are_absent() {
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

    /// The CRDs of status objects are written by hand. Each CRD needs the names of its kind, and a schema for each
    /// written field.
    #[test]
    fn status_crds_have_every_serialized_field() {
        let kinds = SubjectKind::ALL.iter();
        kinds
            .filter_map(|kind| kind.row().status_object.as_ref())
            .for_each(assert_crd_has_every_field);
    }

    fn assert_crd_has_every_field(kind: &StatusObjectKind) {
        let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/crds");
        let path = format!("{crds}/{}.vap-status.dev.yaml", kind.plural);
        let text = std::fs::read_to_string(path).unwrap();
        let crd = goyaml::to_json(&text).unwrap();
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
