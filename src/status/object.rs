//! `MutatingAdmissionPolicyStatus` and the like, `vap-status.dev/v1alpha1`: conditions of what has no status of its own
//! (ADR 31).
//!
//! An object has the name of the policy that it is about, is owned by it, and has nothing but a status. Here is how that
//! is made of the status that a ValidatingAdmissionPolicy would have, and the other way around. Knows no cluster.
//!
//! A kind is a [`StatusObjectKind`] in the table of subjects, and has a CRD in `crds`.

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

/// An object that says of a policy what the policy has no room for.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct StatusObject {
    /// Its metadata; the name is that of the policy.
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    /// The status, if it was written already.
    #[serde(default)]
    pub status: Option<ObjectStatus>,
    /// In the place of metadata that are absent.
    #[serde(skip)]
    none: ObjectMeta,
}

/// The status of the policy, as its object holds it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectStatus {
    /// The generation of this object, which wait-tools compare with its own: nothing changes it but its creation.
    #[serde(default)]
    pub observed_generation: Option<i64>,
    /// The generation of the policy that all of this is about.
    #[serde(default)]
    pub policy_generation: Option<i64>,
    /// The warnings, in the form of those of ValidatingAdmissionPolicies.
    #[serde(default)]
    pub type_checking: Option<ObjectTypeChecking>,
    /// The conditions.
    #[serde(default)]
    pub conditions: Option<Vec<Condition>>,
}

/// The warnings. The list is there even if it is empty.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTypeChecking {
    /// The warnings.
    #[serde(default)]
    pub expression_warnings: Option<Vec<ExpressionWarning>>,
}

impl StatusObject {
    /// The status of the policy as it would be if the policy had one: all generations are those of the policy.
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

    /// Reports whether it is about the object of that uid, and not about another of the same name.
    #[must_use]
    pub fn is_owned_by(&self, uid: Option<&str>) -> bool {
        let owners = self.meta().owner_references.iter().flatten();
        uid.is_some_and(|uid| owners.into_iter().any(|owner| owner.uid == uid))
    }
}

impl ObjectStatus {
    /// The status of the object of generation `own` that says `desired` of its policy.
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

    fn kind(of: &StatusObjectKind) -> Cow<'_, str> {
        of.kind.into()
    }

    fn group(_: &StatusObjectKind) -> Cow<'_, str> {
        "vap-status.dev".into()
    }

    fn version(_: &StatusObjectKind) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural(of: &StatusObjectKind) -> Cow<'_, str> {
        of.plural.into()
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
            is_kept: false,
        }
    }

    fn stored(generation: i64, status: &ObjectStatus) -> StatusObject {
        let metadata = json!({"name": "a", "generation": generation, "ownerReferences": [
            {"apiVersion": "v1", "kind": "X", "name": "a", "uid": "u"}]});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    #[test]
    fn what_was_written_is_what_was_desired() {
        let desired = desired();
        let written = ObjectStatus::new(&desired, Some(1));
        let json = serde_json::to_value(&written).unwrap();
        // Tools that wait compare these two with the generation of the object that they wait for.
        assert_eq!(json["observedGeneration"], 1);
        assert_eq!(json["conditions"][0]["observedGeneration"], 1);
        assert_eq!(json["policyGeneration"], 7);
        let live = stored(1, &written).policy_status();
        assert!(desired.is_met_by(live.as_ref()), "{live:?}");
    }

    #[test]
    fn what_is_about_something_else_does_not_meet_it() {
        let desired = desired();
        let written = ObjectStatus::new(&desired, Some(1));
        let live = stored(2, &written).policy_status();
        assert!(!desired.is_met_by(live.as_ref()));
        let of_another = DesiredStatus {
            observed_generation: 8,
            ..desired.clone()
        };
        let live = stored(1, &ObjectStatus::new(&of_another, Some(1))).policy_status();
        assert!(!desired.is_met_by(live.as_ref()));
    }

    #[test]
    fn the_owner_is_told_by_its_uid() {
        let object = stored(1, &ObjectStatus::default());
        assert!(object.is_owned_by(Some("u")));
        assert!(!object.is_owned_by(Some("v")));
        assert!(!object.is_owned_by(None));
        assert!(!StatusObject::default().is_owned_by(None));
    }

    #[test]
    fn null_is_read_as_absence() {
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
            assert!(!desired().is_met_by(live.as_ref()));
        }
    }

    /// The CRDs are written by hand: each must be of its kind, and keep each field that is written.
    #[test]
    fn the_crds_have_every_field() {
        let kinds = SubjectKind::ALL.iter();
        kinds
            .filter_map(|kind| kind.row().status_object.as_ref())
            .for_each(the_crd_has_every_field);
    }

    fn the_crd_has_every_field(of: &StatusObjectKind) {
        let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/crds");
        let path = format!("{crds}/{}.vap-status.dev.yaml", of.plural);
        let text = std::fs::read_to_string(path).unwrap();
        let crd: Value = serde_norway::from_str(&text).unwrap();
        let spec = &crd["spec"];
        assert_eq!(spec["group"], *StatusObject::group(of));
        assert_eq!(spec["names"]["kind"], *StatusObject::kind(of));
        assert_eq!(spec["names"]["plural"], *StatusObject::plural(of));
        let version = &spec["versions"][0];
        assert_eq!(version["name"], *StatusObject::version(of));
        assert!(version["subresources"]["status"].is_object());
        let schema = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
        let written = serde_json::to_value(ObjectStatus::new(&desired(), Some(1))).unwrap();
        has(schema, &written, "status");
    }

    #[track_caller]
    fn has(schema: &Value, value: &Value, place: &str) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let place = format!("{place}.{name}");
                    let of_field = &schema["properties"][name];
                    assert!(of_field.is_object(), "{place} is not in the CRD");
                    has(of_field, value, &place);
                }
            }
            Value::Array(items) => {
                for item in items {
                    has(&schema["items"], item, place);
                }
            }
            _ => assert!(schema["type"].is_string(), "{place}"),
        }
    }
}
