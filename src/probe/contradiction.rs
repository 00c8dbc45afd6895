//! Detects requests that API servers reject because their fields contradict each other.
//!
//! Source: `k8s.io/apiserver` `pkg/registry/rest/meta.go` (`EnsureObjectNamespaceMatchesRequestNamespace`).
//!
//! A `resourceVersion` in the object of a CREATE is not a contradiction. The storage rejects it after policies are
//! evaluated (`pkg/registry/generic/registry/store.go`, `Create`).

use serde_json::Value;

use super::api::Request;
use super::validation::Violation;
use crate::policy::admission::Object;

#[must_use]
pub(super) fn contradictions(request: &Request) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(object) = &request.object else {
        return violations;
    };
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let own = text("/metadata/namespace").filter(|own| !own.is_empty());
    if let (Some(own), Some(namespace)) = (own, &request.namespace)
        && own != namespace
    {
        violations.push(Violation {
            field_ref: "request.object.metadata.namespace".to_owned(),
            message: format!(
                "the namespace of the request is `{namespace}`, but that of the object is `{own}`"
            ),
        });
    }
    if let Some(before) = &request.old_object {
        let (before, after) = (Object::new(before), Object::new(object));
        let (before, after) = (before.gvk(), after.gvk());
        let is_other = (&before.group, &before.kind) != (&after.group, &after.kind);
        if is_other && !before.kind.is_empty() && !after.kind.is_empty() {
            violations.push(Violation {
                field_ref: "request.oldObject.kind".to_owned(),
                message: format!(
                    "the object before the update is {} {}, but the new object is {} {}",
                    before.api_version(),
                    before.kind,
                    after.api_version(),
                    after.kind
                ),
            });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(request: &Value) -> Vec<String> {
        let request: Request = serde_json::from_value(request.clone()).unwrap();
        let violations = contradictions(&request).into_iter();
        violations.map(|violation| violation.field_ref).collect()
    }

    #[test]
    fn contradictory_namespaces_and_kinds_of_a_case_are_found() {
        let object = |api_version: &str, kind: &str, namespace: Option<&str>| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": namespace}});
        let pod = object("v1", "Pod", Some("a"));
        let namespace = ["request.object.metadata.namespace"];
        let kind = ["request.oldObject.kind"];
        assert_eq!(found(&json!({"namespace": "b", "object": pod})), namespace);
        assert_eq!(found(&json!({"namespace": "a", "object": pod})), [""; 0]);
        assert_eq!(found(&json!({"object": pod})), [""; 0]);
        let without = object("v1", "Pod", None);
        assert_eq!(
            found(&json!({"namespace": "b", "object": without})),
            [""; 0]
        );
        let other = object("v1", "ConfigMap", None);
        assert_eq!(found(&json!({"object": pod, "oldObject": other})), kind);
        let same = object("v1beta1", "Pod", None);
        assert_eq!(
            found(&json!({"object": object("v1", "Pod", None), "oldObject": same})),
            [""; 0]
        );
        let other_group = object("g.io/v1", "Pod", None);
        assert_eq!(
            found(&json!({"object": pod, "oldObject": other_group})),
            kind
        );
        assert_eq!(found(&json!({"oldObject": other})), [""; 0]);
    }
}
