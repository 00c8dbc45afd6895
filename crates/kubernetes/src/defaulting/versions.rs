//! Adapts objects to a Kubernetes version. The table of defaults contains the Go types and defaults of one version
//! only.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::table::Table;
use crate::schema::resolver::{Resolution, SchemaResolver as _};
use crate::schema::{Builtin, DeclKind, DeclType, Gvk};
use crate::version::KubernetesVersion;

/// A default that only some Kubernetes versions set.
struct VersionedDefault {
    group: &'static str,
    kind: &'static str,
    /// The JSON pointer to the object that contains the field. The default is set only if this object exists.
    parent: &'static str,
    field: &'static str,
    value: fn() -> Value,
    /// The JSON pointer to another field, and the value that this field must have. `None` if there is no condition.
    condition: Option<(&'static str, &'static str)>,
}

/// The defaults of 1.37 that the table lacks. The API server sets them because of features that are enabled by default
/// since 1.37.
///
/// Source: kubernetes 1.37 `pkg/features/kube_features.go`, `MaxUnavailableStatefulSet`, `VolumeLimitScaling`;
/// `pkg/apis/apps/v1/defaults.go`, `SetDefaults_StatefulSet`; `pkg/apis/storage/v1/defaults.go`, `SetDefaults_CSIDriver`;
/// k8s.io/api 0.37 `storage/v1/types.go`, `CSINode.Status`.
const DEFAULTS_SINCE_1_37: [VersionedDefault; 3] = [
    VersionedDefault {
        group: "apps",
        kind: "StatefulSet",
        parent: "/spec/updateStrategy/rollingUpdate",
        field: "maxUnavailable",
        value: || Value::from(1),
        condition: Some(("/spec/updateStrategy/type", "RollingUpdate")),
    },
    VersionedDefault {
        group: "storage.k8s.io",
        kind: "CSIDriver",
        parent: "/spec",
        field: "preventPodSchedulingIfMissing",
        value: || Value::Bool(false),
        condition: None,
    },
    VersionedDefault {
        group: "storage.k8s.io",
        kind: "CSINode",
        parent: "",
        field: "status",
        value: || Value::Object(Map::new()),
        condition: None,
    },
];

/// Returns true if [`adapt_to_version`] may change an object for `version`.
#[must_use]
pub fn is_adapted(version: KubernetesVersion) -> bool {
    let behavior = version.behavior();
    newer_table_version(version).is_some()
        || !behavior.omits_zero_times
        || behavior.has_defaults_of_1_37
}

/// Returns the Kubernetes version of the table of defaults if it is newer than `version`.
fn newer_table_version(version: KubernetesVersion) -> Option<KubernetesVersion> {
    static TABLE_VERSION: LazyLock<Option<KubernetesVersion>> =
        LazyLock::new(|| Table::get().ok()?.kubernetes.parse().ok());
    TABLE_VERSION.filter(|newer| version.is_older_than(newer))
}

/// Changes a prepared object of a built-in kind to the object that an API server of `version` would produce.
///
/// Removes the fields that exist in the table's version but not in `version`. An API server of `version` drops these
/// fields when it decodes the object. If either version lacks a schema for the kind, no fields are removed. Before
/// 1.34, also sets missing creation times to null, for example those of Pod templates. Since 1.37, sets the defaults
/// that the table lacks, unless `given`, the object in the request, sets these fields. `object` does not contain such
/// fields, because an API server of the table's version drops them.
pub fn adapt_to_version(
    version: KubernetesVersion,
    gvk: &Gvk,
    object: &mut Value,
    given: Option<&Value>,
) {
    remove_newer_fields(version, gvk, object);
    let behavior = version.behavior();
    if behavior.has_defaults_of_1_37 {
        set_defaults_since_1_37(gvk, object, given);
    }
    if !behavior.omits_zero_times
        && super::has(gvk)
        && let Ok(encoded) = super::round_trip(gvk, object, &behavior)
    {
        *object = encoded;
    }
}

fn set_defaults_since_1_37(gvk: &Gvk, object: &mut Value, given: Option<&Value>) {
    let rows = DEFAULTS_SINCE_1_37.iter();
    let rows = rows.filter(|row| row.group == gvk.group && row.kind == gvk.kind);
    for row in rows {
        let is_met = row.condition.is_none_or(|(pointer, value)| {
            object.pointer(pointer).and_then(Value::as_str) == Some(value)
        });
        let given = given.and_then(|given| given.pointer(row.parent)?.get(row.field));
        let given = given.filter(|given| !given.is_null()).cloned();
        let parent = object.pointer_mut(row.parent);
        if let Some(fields) = parent.and_then(Value::as_object_mut).filter(|_| is_met) {
            let field = fields.entry(row.field);
            field.or_insert_with(|| given.unwrap_or_else(row.value));
        }
    }
}

fn remove_newer_fields(version: KubernetesVersion, gvk: &Gvk, object: &mut Value) {
    let Some(newer) = newer_table_version(version) else {
        return;
    };
    let type_of = |version| match Builtin::load(version).ok()?.resolve(gvk) {
        Resolution::Found(type_) => Some(type_),
        Resolution::NotFound | Resolution::Unavailable(_) => None,
    };
    if let (Some(older), Some(newer)) = (type_of(version), type_of(newer)) {
        remove(&older, &newer, object);
    }
}

fn remove(older: &DeclType, newer: &DeclType, value: &mut Value) {
    match (&older.kind, &newer.kind, value) {
        (DeclKind::List(older), DeclKind::List(newer), Value::Array(items)) => {
            for item in items {
                remove(older, newer, item);
            }
        }
        (DeclKind::Map(older), DeclKind::Map(newer), Value::Object(entries)) => {
            for entry in entries.values_mut() {
                remove(older, newer, entry);
            }
        }
        (DeclKind::Object(_), DeclKind::Object(_), Value::Object(fields)) => {
            fields.retain(|name, value| {
                let Some(newer) = newer.property(name) else {
                    return true;
                };
                let Some(older) = older.property(name) else {
                    return false;
                };
                remove(&older.type_, &newer.type_, value);
                true
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Asserts that versions older than 1.`first` change `pod` to `before`, and that the other versions do not change
    /// it.
    #[track_caller]
    fn check(first: u16, pod: &Value, before: &Value) {
        let gvk = Gvk::new("", "v1", "Pod");
        for version in KubernetesVersion::supported() {
            let mut actual = pod.clone();
            remove_newer_fields(version, &gvk, &mut actual);
            let expected = if version.is_older_than(&KubernetesVersion::new(first)) {
                before
            } else {
                pod
            };
            assert_eq!(actual, *expected, "{version}");
        }
    }

    /// The expected defaults are in the output of `./dev defaults-of 1.37.2`.
    #[test]
    fn defaults_since_1_37_are_set() {
        let set = |type_: &str| json!({"spec": {"updateStrategy": {"type": type_, "rollingUpdate": {"partition": 0}}}});
        let mut rolling = set("RollingUpdate");
        rolling["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = json!(1);
        let driver = json!({"spec": {"attachRequired": true}});
        let defaulted =
            json!({"spec": {"attachRequired": true, "preventPodSchedulingIfMissing": false}});
        let given =
            json!({"spec": {"attachRequired": true, "preventPodSchedulingIfMissing": true}});
        let node = json!({"spec": {"drivers": []}});
        let with_status = json!({"spec": {"drivers": []}, "status": {}});
        for (group, kind, before, since) in [
            ("apps", "StatefulSet", set("RollingUpdate"), &rolling),
            ("apps", "StatefulSet", set("OnDelete"), &set("OnDelete")),
            ("apps", "StatefulSet", json!({}), &json!({})),
            ("storage.k8s.io", "CSIDriver", driver.clone(), &defaulted),
            ("storage.k8s.io", "CSIDriver", given.clone(), &given),
            ("storage.k8s.io", "CSINode", node, &with_status),
            ("example.com", "CSIDriver", driver.clone(), &driver),
        ] {
            for (minor, expected) in [(36, &before), (37, since)] {
                let version = KubernetesVersion::new(minor);
                let mut object = before.clone();
                adapt_to_version(version, &Gvk::new(group, "v1", kind), &mut object, None);
                assert_eq!(object, *expected, "{kind} {version}");
            }
        }
    }

    /// `object` lacks `maxUnavailable`, because API servers of 1.36 drop it.
    #[test]
    fn given_field_replaces_default_since_1_37() {
        let given =
            json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "25%"}}}});
        let mut object = json!({"spec": {"updateStrategy":
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}});
        let gvk = Gvk::new("apps", "v1", "StatefulSet");
        let version = KubernetesVersion::new(37);
        adapt_to_version(version, &gvk, &mut object, Some(&given));
        let max = object.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
        assert_eq!(max, Some(&json!("25%")));
    }

    #[test]
    fn fields_of_newer_versions_are_removed() {
        check(
            34,
            &json!({"spec": {"hostname": "a", "hostnameOverride": "b"}, "unknown": 1}),
            &json!({"spec": {"hostname": "a"}, "unknown": 1}),
        );
        check(
            31,
            &json!({"spec": {"volumes": [{"name": "a", "image": {"reference": "b"}}]}}),
            &json!({"spec": {"volumes": [{"name": "a"}]}}),
        );
        check(
            36,
            &json!({"spec": {"schedulingGroup": {}}, "metadata": {"labels": {"hostnameOverride": "c"}}}),
            &json!({"spec": {}, "metadata": {"labels": {"hostnameOverride": "c"}}}),
        );
    }
}
