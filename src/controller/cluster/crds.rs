//! Compact storage of CustomResourceDefinitions, since a cluster may contain many large ones.
//!
//! The controller stores the kind that a CRD defines, whether the CRD is established, and its generation. Schemas are
//! read from the OpenAPI documents instead.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};

use crate::schema::{GroupVersion, Gvr};

/// Deserializes `null` as the default value: an API server sends `null` for empty lists.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The fields of a CustomResourceDefinition that the controller needs. All other fields, mainly the schemas, are
/// skipped during deserialization.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CustomResourceDefinition {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) spec: Spec,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status: Option<Status>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Spec {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) group: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) names: Names,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) versions: Vec<Version>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Names {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) kind: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) plural: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Version {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) served: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Status {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) conditions: Vec<StatusCondition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct StatusCondition {
    /// `Established`, `NamesAccepted`, …
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    pub(crate) type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) message: String,
}

impl Resource for CustomResourceDefinition {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "CustomResourceDefinition".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "apiextensions.k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "customresourcedefinitions".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The stored data of a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crd {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    /// The versions with `served: true` in the spec. While the CRD is not established, the API server serves none of
    /// them.
    pub(crate) served: Vec<String>,
    pub(crate) is_established: bool,
    /// The API server's message about why the CRD is not established, if any.
    pub(crate) problem: Option<String>,
    /// The uid and the generation. If either changes, the schema may have changed.
    pub(crate) revision: (String, i64),
}

impl Crd {
    /// Returns the resource in each version that the API server serves. Empty if the CRD is not established.
    pub(crate) fn resources(&self) -> impl Iterator<Item = Gvr> {
        let served = if self.is_established {
            self.served.as_slice()
        } else {
            &[]
        };
        served
            .iter()
            .map(|version| Gvr::new(&*self.group, &**version, &*self.plural))
    }

    /// Returns the group versions in which the API server serves the resource. Empty if the CRD is not established.
    pub(crate) fn group_versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.resources().map(|gvr| gvr.group_version())
    }

    /// Returns true if `self` and `other` differ at most in their schemas.
    #[must_use]
    pub(crate) fn is_served_as(&self, other: &Self) -> bool {
        let Self {
            group,
            kind,
            plural,
            served,
            is_established,
            problem,
            revision: _,
        } = self;
        *group == other.group
            && *kind == other.kind
            && *plural == other.plural
            && *served == other.served
            && *is_established == other.is_established
            && *problem == other.problem
    }
}

impl From<CustomResourceDefinition> for Crd {
    fn from(crd: CustomResourceDefinition) -> Self {
        let conditions = crd
            .status
            .map(|status| status.conditions)
            .unwrap_or_default();
        let find = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
        let is_true = |condition: &StatusCondition| condition.status == "True";
        let is_established = find("Established").is_some_and(is_true);
        let problem = ["NamesAccepted", "Established"]
            .into_iter()
            .filter_map(find)
            .find(|condition| !is_true(condition) && !condition.message.is_empty())
            .filter(|_| !is_established)
            .map(|condition| condition.message.clone());
        Self {
            group: crd.spec.group,
            kind: crd.spec.names.kind,
            plural: crd.spec.names.plural,
            served: crd
                .spec
                .versions
                .into_iter()
                .filter(|version| version.served)
                .map(|version| version.name)
                .collect(),
            is_established,
            problem,
            revision: (
                crd.metadata.uid.unwrap_or_default(),
                crd.metadata.generation.unwrap_or_default(),
            ),
        }
    }
}

/// All CRDs, by name.
pub(crate) type Crds = BTreeMap<String, Crd>;

/// Returns the CRD that defines a kind, with its name. If several CRDs define the kind, prefers an established CRD.
pub(crate) fn defining<'a>(
    crds: &'a Crds,
    group: &str,
    kind: &str,
) -> Option<(&'a String, &'a Crd)> {
    crds.iter()
        .filter(|(_, crd)| crd.group == group && crd.kind == kind)
        .max_by_key(|(_, crd)| crd.is_established)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns an established CRD with the versions `served`.
    pub(crate) fn crd(group: &str, kind: &str, served: &[&str]) -> Crd {
        Crd {
            group: group.into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
            served: served.iter().map(|version| (*version).to_owned()).collect(),
            is_established: true,
            problem: None,
            revision: ("uid".into(), 1),
        }
    }

    fn read(value: serde_json::Value) -> Crd {
        serde_json::from_value::<CustomResourceDefinition>(value)
            .unwrap()
            .into()
    }

    #[test]
    fn crd_is_read_without_its_schema() {
        let read = read(serde_json::json!({
            "metadata": {"name": "widgets.example.com", "uid": "u", "generation": 4},
            "spec": {
                "group": "example.com",
                "names": {"kind": "Widget", "plural": "widgets", "listKind": "WidgetList"},
                "scope": "Namespaced",
                "versions": [
                    {"name": "v1", "served": true, "storage": true,
                     "schema": {"openAPIV3Schema": {"type": ["odd", 7], "properties": null}}},
                    {"name": "v0", "served": false, "storage": false},
                ],
            },
            "status": {"conditions": [
                {"type": "NamesAccepted", "status": "True", "message": "no conflicts found"},
                {"type": "Established", "status": "True", "message": "the initial names…"},
            ]},
        }));
        assert_eq!(
            read,
            Crd {
                revision: ("u".into(), 4),
                ..crd("example.com", "Widget", &["v1"])
            }
        );
        let resources: Vec<Gvr> = read.resources().collect();
        assert_eq!(resources, [Gvr::new("example.com", "v1", "widgets")]);
    }

    #[test]
    fn crd_that_is_not_established_has_problem() {
        let read = read(serde_json::json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Widget", "plural": "widgets"},
                     "versions": [{"name": "v1", "served": true}]},
            "status": {"conditions": [
                {"type": "Established", "status": "False", "message": "not all names are accepted"},
                {"type": "NamesAccepted", "status": "False", "message": "\"Widget\" is taken"},
            ]},
        }));
        assert!(!read.is_established);
        assert_eq!(read.problem.as_deref(), Some("\"Widget\" is taken"));
        assert_eq!(read.resources().count(), 0);
    }

    #[test]
    fn crd_without_status_is_not_established() {
        let read = read(serde_json::json!({"metadata": {"name": "a.b"}, "spec": {"group": "b"}}));
        assert!(!read.is_established);
        assert_eq!(read.problem, None);
    }

    #[test]
    fn null_fields_of_crd_become_defaults() {
        // The first watch event of a new CRD contains this status.
        let created = read(serde_json::json!({
            "metadata": {"name": "widgets.example.com", "uid": "u", "generation": 1},
            "spec": {"group": "example.com", "names": {"kind": "Widget", "plural": "widgets"},
                     "versions": [{"name": "v1", "served": true}]},
            "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""},
                       "storedVersions": null},
        }));
        assert_eq!(
            created,
            Crd {
                is_established: false,
                revision: ("u".into(), 1),
                ..crd("example.com", "Widget", &["v1"])
            }
        );
        let nothing = read(serde_json::json!({
            "metadata": null, "spec": {"group": null, "names": null, "versions": null}, "status": null,
        }));
        assert_eq!(nothing.resources().count(), 0);
        let nothing = read(serde_json::json!({
            "spec": {"versions": [{"name": null, "served": null}]},
            "status": {"conditions": [{"type": null, "status": null, "message": null}]},
        }));
        assert!(!nothing.is_established);
    }

    #[test]
    fn established_crd_takes_precedence_over_crds_of_same_kind() {
        let mut crds = Crds::new();
        let mut taken = crd("example.com", "Widget", &["v1"]);
        taken.is_established = false;
        crds.insert("awidgets.example.com".into(), taken.clone());
        crds.insert(
            "widgets.example.com".into(),
            crd("example.com", "Widget", &["v1"]),
        );
        crds.insert("zwidgets.example.com".into(), taken);
        let name = defining(&crds, "example.com", "Widget").map(|(name, _)| name.as_str());
        assert_eq!(name, Some("widgets.example.com"));
        assert_eq!(defining(&crds, "example.com", "Gadget"), None);
    }
}
