//! Tests findings of `kubectl vap check` about unions. A value of a union has exactly one of several fields, the
//! members.

use crate::runtime_errors::{POD, fails, holds};

const AUTOSCALER: (&str, &str, &str) = ("autoscaling", "v2", "horizontalpodautoscalers");

#[test]
fn read_of_one_union_member_is_reported() {
    for (resource, expression, field) in [
        (
            AUTOSCALER,
            "object.spec.metrics.all(m, m.resource.name == 'cpu')",
            "object.spec.metrics[0].resource",
        ),
        (
            AUTOSCALER,
            "object.spec.metrics.all(m, m.pods.metric.name == 'a')",
            "object.spec.metrics[0].pods",
        ),
        (
            AUTOSCALER,
            "object.spec.metrics.all(m, has(m.resource) || m.external.metric.name == 'a')",
            "object.spec.metrics[0].external",
        ),
        (
            POD,
            "object.spec.containers.all(c, !has(c.livenessProbe) || c.livenessProbe.httpGet.port == 80)",
            "object.spec.containers[0].livenessProbe.httpGet",
        ),
        (
            POD,
            "object.spec.containers.all(c, !has(c.env) || c.env.all(e, !has(e.valueFrom) || \
             e.valueFrom.fieldRef.fieldPath != ''))",
            "object.spec.containers[0].env[0].valueFrom.fieldRef",
        ),
        (
            POD,
            "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.emptyDir.medium))",
            "object.spec.volumes[0].emptyDir",
        ),
        (
            ("networking.k8s.io", "v1", "networkpolicies"),
            "object.spec.?ingress.orValue([]).all(i, i.?from.orValue([]).all(p, p.podSelector == {}))",
            "object.spec.ingress[0].from[0].podSelector",
        ),
        (
            ("networking.k8s.io", "v1", "ingresses"),
            "!has(object.spec.defaultBackend) || object.spec.defaultBackend.service.name != ''",
            "object.spec.defaultBackend.service",
        ),
        (
            ("", "v1", "persistentvolumes"),
            "object.spec.hostPath.path != '/'",
            "object.spec.hostPath",
        ),
    ] {
        fails(
            resource,
            "CREATE",
            expression,
            &[&format!("absent-field {field}")],
        );
    }
}

#[test]
fn union_always_has_a_member() {
    for (resource, expression) in [
        (
            AUTOSCALER,
            "object.spec.metrics.all(m, has(m.resource) || has(m.external) || has(m.pods) || has(m.object) || \
             m.containerResource.name == 'cpu')",
        ),
        (
            AUTOSCALER,
            "object.spec.metrics.all(m, m.type != 'Resource' || m.resource.name == 'cpu')",
        ),
        (
            AUTOSCALER,
            "object.spec.metrics.all(m, m.type != 'External' || m.external.metric.name == 'cpu')",
        ),
        (
            POD,
            "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.emptyDir) || !has(v.hostPath) || \
             v.secret.secretName == '')",
        ),
    ] {
        holds(resource, "CREATE", expression);
    }
}
