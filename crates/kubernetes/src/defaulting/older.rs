//! Adapts objects to an older Kubernetes version. The table has the Go types of one version.

use std::sync::LazyLock;

use serde_json::Value;

use super::table::Table;
use crate::schema::resolver::{Resolution, SchemaResolver as _};
use crate::schema::{Builtin, DeclKind, DeclType, Gvk};
use crate::version::KubernetesVersion;

/// Returns true if [`adapt_to_older`] may change an object for `version`.
#[must_use]
pub fn is_adapted(version: KubernetesVersion) -> bool {
    newer_table_version(version).is_some() || !version.behavior().omits_zero_times
}

/// Returns the version of the table if it is newer than `version`.
fn newer_table_version(version: KubernetesVersion) -> Option<KubernetesVersion> {
    static TABLE_VERSION: LazyLock<Option<KubernetesVersion>> =
        LazyLock::new(|| Table::get().ok()?.kubernetes.parse().ok());
    TABLE_VERSION.filter(|newer| version.is_older_than(newer))
}

/// Changes a prepared object of a built-in kind to the form that an API server of `version` would produce.
///
/// Removes the fields that `version` does not have, but that the version of the table has. An API server drops these
/// fields when it decodes the object. Kinds without a schema in both versions keep them. Before 1.34, also sets missing
/// creation times to null, for example those of Pod templates.
pub fn adapt_to_older(version: KubernetesVersion, gvk: &Gvk, object: &mut Value) {
    remove_newer_fields(version, gvk, object);
    let behavior = version.behavior();
    if !behavior.omits_zero_times
        && super::has(gvk)
        && let Ok(encoded) = super::round_trip(gvk, object, &behavior)
    {
        *object = encoded;
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

    /// Asserts the fields of a Pod in the versions before and since `first`.
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
