//! Tests of validations that require what their message denies.

use super::super::claims;

fn is_found(expression: &str, message: &str) -> bool {
    let (ast, _) = cel::syntax::parse(expression);
    claims::contradiction(&ast.unwrap(), message).is_some()
}

#[test]
fn required_values_that_the_message_denies_are_found() {
    for (expression, message) in [
        (
            "object.spec.containers.exists(c, c.?securityContext.?privileged.orValue(false) == true)",
            "Privileged containers are not allowed.",
        ),
        (
            "object.spec.?volumes.orValue([]).exists(v, has(v.hostPath))",
            "hostPath volumes are not allowed",
        ),
        (
            "object.spec.containers.exists(c, c.image.endsWith(':latest'))",
            "the tag latest is not allowed",
        ),
        (
            "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.privileged) && c.securityContext.privileged)",
            "containers must not use privileged mode",
        ),
        (
            "object.spec.?hostNetwork.orValue(false) == true",
            "hostNetwork must be false",
        ),
        (
            "object.spec.containers.all(c, has(c.a) && has(c.a.allowEscalation) && c.a.allowEscalation == true)",
            "securityContext.allowEscalation must be set to false",
        ),
        ("!object.spec.automount", "automount must be true"),
        (
            "object.roleRef.name != 'cluster-admin' && object.roleRef.kind == 'ClusterRole'",
            "the ClusterRole cluster-admin must not be bound",
        ),
        (
            "object.rules != null && object.rules.exists(r, 'secrets' in r.?resources.orValue([]))",
            "roles must not read secrets",
        ),
        (
            "'ALL' in object.spec.capabilities",
            "capabilities must not include ALL",
        ),
    ] {
        assert!(is_found(expression, message), "{expression}: {message}");
    }
}

#[test]
fn denied_values_have_no_finding() {
    for (expression, message) in [
        (
            "has(object.spec.privileged) && object.spec.privileged == false",
            "privileged containers are not allowed",
        ),
        (
            "has(object.spec.tls) && object.spec.tls.size() > 0",
            "tls must not be empty",
        ),
        (
            "object.spec.containers.exists(c, has(c.livenessProbe))",
            "pods without livenessProbe are not allowed",
        ),
        (
            "object.spec.?hostNetwork.orValue(false) == false",
            "hostNetwork must be false",
        ),
        (
            "object.spec.a == true && object.spec.b == false",
            "b must be false",
        ),
        (
            "object.roleRef.name != 'admin' && object.roleRef.kind == 'ClusterRole'",
            "bind a ClusterRole other than admin; Roles are not allowed",
        ),
        (
            "object.spec.procMount == 'Default'",
            "Changing the proc mount from the default is not allowed.",
        ),
        (
            "object.rules.exists(r, 'secrets' in r.resources)",
            "roles without secrets are not allowed",
        ),
        (
            "object.spec.containers.all(c, 'ALL' in c.securityContext.capabilities.drop)",
            "Containers must not use capabilities: drop ALL",
        ),
        (
            "has(object.metadata.labels) && 'team' in object.metadata.labels",
            "Pods must not grant access by default and need label team",
        ),
        (
            "has(object.metadata.annotations) && 'approved' in object.metadata.annotations",
            "Pods must not access secrets before they are approved",
        ),
        (
            "has(object.spec.imagePullSecrets) && object.spec.imagePullSecrets.exists(s, s.name == 'regcred')",
            "Pods must not use public images; use regcred",
        ),
        (
            "has(object.spec.nodeSelector) && 'gpu' in object.spec.nodeSelector",
            "GPU Pods must not use CPU nodes: set nodeSelector gpu",
        ),
        (
            "!object.rules.exists(r, 'secrets' in r.resources)",
            "roles must not read secrets",
        ),
        (
            "!object.spec.volumes.exists(v, has(v.hostPath))",
            "hostPath volumes are not allowed",
        ),
    ] {
        assert!(!is_found(expression, message), "{expression}: {message}");
    }
}
