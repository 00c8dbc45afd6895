//! Compact storage of CustomResourceDefinitions, as they are many and large.
//!
//! The controller stores the kinds that a CRD defines, whether it is established, and changes of its spec. It reads
//! schemas from the OpenAPI documents instead.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};

use crate::schema::{GroupVersion, Gvr};

/// Reads `null` as what stands where nothing is written: an API server sends it for lists that are empty.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The parts of a CustomResourceDefinition that are read. Everything else, the schemas above all, is
/// skipped while reading.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CustomResourceDefinition {
    /// Its metadata.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) metadata: ObjectMeta,
    /// Definition of the resource.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) spec: Spec,
    /// Status written by the API server.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status: Option<Status>,
}

/// Definition of the resource in a CRD.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Spec {
    /// The group.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) group: String,
    /// The names.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) names: Names,
    /// The versions.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) versions: Vec<Version>,
}

/// The names of a CRD.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Names {
    /// The kind.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) kind: String,
    /// The resource.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) plural: String,
}

/// A version of a CRD.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Version {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) name: String,
    /// True if it is served.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) served: bool,
}

/// Status of a CRD, written by the API server.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Status {
    /// Its conditions.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) conditions: Vec<StatusCondition>,
}

/// A condition of a CRD.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct StatusCondition {
    /// `Established`, `NamesAccepted`, …
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    pub(crate) type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status: String,
    /// A text for people.
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

/// The parts of a CRD that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crd {
    /// The group.
    pub(crate) group: String,
    /// The kind.
    pub(crate) kind: String,
    /// The resource.
    pub(crate) plural: String,
    /// The versions that are to be served.
    pub(crate) served: Vec<String>,
    /// True if it is established, so that the API server serves it.
    pub(crate) is_established: bool,
    /// The API server's reason why it is not established, if any.
    pub(crate) problem: Option<String>,
    /// The uid and the generation: another pair is another schema, perhaps.
    pub(crate) revision: (String, i64),
}

impl Crd {
    /// The resources that the API server serves for it.
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

    /// The group versions that it is served in.
    pub(crate) fn group_versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.resources().map(|gvr| gvr.group_version())
    }

    /// Returns true if `other` serves the same resources, whatever its schema.
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

/// The CRD that defines a kind, with its name; an established one first.
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

    /// An established CRD that serves these versions.
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
    fn reads_what_matters_and_skips_the_schema() {
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
    fn says_why_it_is_not_established() {
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
    fn null_is_read_as_absence() {
        // A CRD has this status in the event of its creation.
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
    fn established_crd_takes_precedence() {
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
