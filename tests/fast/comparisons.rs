//! Tests findings of `kubectl vap check`: comparisons whose result is constant according to the schemas, and names that
//! are similar to a kind or resource.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::json;

use crate::manifest;
use crate::runtime_errors::{DEPLOYMENT, POD, policy};

const SERVICE: (&str, &str, &str) = ("", "v1", "services");

const POLICIES: (&str, &str, &str) = ("networking.k8s.io", "v1", "networkpolicies");

const REQUESTS: (&str, &str, &str) = ("certificates.k8s.io", "v1", "certificatesigningrequests");

/// Returns the findings of the tested rules for `manifest`. Each item is the severity, and the message with the help.
fn findings(manifest: &str) -> Vec<(String, String)> {
    let actual = manifest::findings(manifest, &[]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    actual
        .iter()
        .filter(|finding| {
            let rule = finding["rule"].as_str().unwrap_or_default();
            matches!(
                rule,
                "impossible-value" | "constant-condition" | "wrong-default"
            )
        })
        .map(|finding| {
            let (message, help) = (text(&finding["message"]), text(&finding["help"]));
            (text(&finding["severity"]), format!("{message}; {help}"))
        })
        .collect()
}

fn validation_findings(resource: (&str, &str, &str), expression: &str) -> Vec<(String, String)> {
    let spec = format!("  validations:\n  - expression: {}\n", json!(expression));
    findings(&policy(resource, "CREATE", &spec))
}

#[track_caller]
fn warns(resource: (&str, &str, &str), expression: &str, parts: &[&str]) {
    let findings = validation_findings(resource, expression);
    let [(severity, text)] = &findings[..] else {
        panic!("{expression}: {findings:#?}")
    };
    assert_eq!(severity, "warning", "{expression}");
    for part in parts {
        assert!(text.contains(part), "{expression}: {text}");
    }
}

#[track_caller]
fn is_silent(resource: (&str, &str, &str), expression: &str) {
    let findings = validation_findings(resource, expression);
    assert_eq!(findings, [], "{expression}");
}

#[test]
fn conditions_that_contradict_defaults_of_absent_fields_are_reported() {
    const ROOT: &str = "c.securityContext.readOnlyRootFilesystem";
    for (expression, path, counts) in [
        (
            format!(
                "object.spec.containers.all(c, !has(c.securityContext) || !has({ROOT}) || {ROOT})"
            ),
            "`object.spec.containers[0].securityContext.readOnlyRootFilesystem`",
            "although the absent field counts as `false`, not as `true`",
        ),
        (
            "!has(object.spec.hostUsers) || object.spec.hostUsers != true".to_owned(),
            "`object.spec.hostUsers`",
            "although the absent field counts as `true`, not as `false`",
        ),
        (
            "object.metadata.name == 'a' && (!object.spec.automountServiceAccountToken || \
             !has(object.spec.automountServiceAccountToken))"
                .to_owned(),
            "`object.spec.automountServiceAccountToken`",
            "although the absent field usually counts as `true`, not as `false`",
        ),
    ] {
        warns(POD, &expression, &[path, counts, "write `has(...) &&`"]);
    }
    for expression in [
        // An absent field has the default value, for which the expression is true.
        "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
        "!has(object.spec.hostUsers) || object.spec.hostUsers",
        // A container without the field may inherit the value from the Pod.
        "object.spec.containers.all(c, !has(c.securityContext.runAsNonRoot) || c.securityContext.runAsNonRoot)",
        // The operands read different fields.
        "!has(object.spec.hostPID) || object.spec.hostUsers == false",
        // The validation denies requests without the field.
        "!(!has(object.spec.hostUsers) || object.spec.hostUsers == false)",
        "object.spec.containers.exists(c, !has(c.securityContext) || c.securityContext.readOnlyRootFilesystem)",
    ] {
        is_silent(POD, expression);
    }
}

#[test]
fn impossible_enumeration_values_are_reported() {
    warns(
        SERVICE,
        "object.spec.type == 'Loadbalancer'",
        &[
            "`object.spec.type` is one of ClusterIP, ExternalName, LoadBalancer, NodePort, so this is always false",
            "did you mean `LoadBalancer`?",
        ],
    );
    warns(
        POD,
        "object.spec.containers.all(c, c.imagePullPolicy != 'always')",
        &["is always true", "did you mean `Always`?"],
    );
    warns(
        DEPLOYMENT,
        "object.spec.template.spec.dnsPolicy == 'clusterFirst'",
        &["did you mean `ClusterFirst`?"],
    );
    warns(
        POD,
        "object.spec.restartPolicy in ['Never', 'OnFailur']",
        &["so `OnFailur` never matches", "did you mean `OnFailure`?"],
    );
    warns(
        POLICIES,
        "'ingress' in object.spec.policyTypes",
        &[
            "an element of `object.spec.policyTypes` is one of Egress, Ingress, so this is always false",
            "did you mean `Ingress`?",
        ],
    );
    warns(
        POLICIES,
        "object.spec.policyTypes.exists(t, t == 'ingress')",
        &["did you mean `Ingress`?"],
    );
    warns(
        DEPLOYMENT,
        "object.spec.strategy.type != 'Rolling'",
        &["is one of Recreate, RollingUpdate, so this is always true"],
    );
    is_silent(POLICIES, "'Ingress' in object.spec.policyTypes");
    warns(
        REQUESTS,
        "object.spec.usages.all(u, u in ['client_auth', 'digital signature'])",
        &[
            "so `client_auth` never matches",
            "did you mean `client auth`?",
        ],
    );
    is_silent(REQUESTS, "'client auth' in object.spec.usages");
    let spec = "  variables:\n  - {name: p, expression: 'object.spec.?restartPolicy.orValue(\"\")'}\n  validations:\n  - \
                expression: variables.p == 'never'\n";
    let findings = findings(&policy(POD, "CREATE", spec));
    assert!(
        findings[0].1.contains("did you mean `Never`?"),
        "{findings:#?}"
    );
}

#[test]
fn comparisons_of_integers_with_fractions_are_reported() {
    const SCALERS: (&str, &str, &str) = ("autoscaling", "v2", "horizontalpodautoscalers");
    warns(
        SCALERS,
        "object.spec.?metrics.orValue([]).all(m, !has(m.resource) || \
         m.resource.target.?averageUtilization.orValue(0) <= 0.8)",
        &["is an integer", "for a percentage, write `80`"],
    );
    warns(
        DEPLOYMENT,
        "0.5 < object.spec.replicas",
        &["compare with an integer"],
    );
    warns(
        DEPLOYMENT,
        "object.spec.replicas == 2.5",
        &["always false", "compare with `2` or `3`"],
    );
    let findings = validation_findings(DEPLOYMENT, "object.spec.replicas < 1.5");
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].0, "note");
    is_silent(DEPLOYMENT, "object.spec.replicas == 2.0");
    is_silent(DEPLOYMENT, "object.spec.replicas < 1");
}

#[test]
fn quoted_integers_compared_with_builtin_int_or_string_are_reported() {
    for (expression, always) in [
        (
            "object.spec.ports.all(p, p.targetPort != '80')",
            "so this is always true",
        ),
        (
            "object.spec.ports.all(p, p.targetPort in ['80', 'http'])",
            "so `80` never matches",
        ),
    ] {
        warns(SERVICE, expression, &[always, "write `80` without quotes"]);
    }
    for expression in [
        "object.spec.ports.all(p, p.targetPort != 'http' && p.targetPort != 80)",
        "object.spec.ports.all(p, string(p.targetPort) != '80')",
    ] {
        is_silent(SERVICE, expression);
    }
}

#[test]
fn possible_values_are_not_reported() {
    for expression in [
        "object.spec.restartPolicy == 'Never'",
        "object.spec.restartPolicy in ['Never', 'Always']",
        "object.spec.restartPolicy.lowerAscii() == 'never'",
        "object.spec.?hostname.orValue('none') == 'none'",
        "object.spec.restartPolicy == ''",
        "object.metadata.name == 'always'",
    ] {
        is_silent(POD, expression);
    }
    // The value is valid for another matched kind, so the comparison is not constant.
    let spec = "  validations:\n  - expression: object.spec.type == 'Loadbalancer'\n";
    let text = policy(SERVICE, "CREATE", spec)
        .replace("['services']", "['*']")
        .replace("['']", "['*']");
    assert_eq!(findings(&text), []);
}

#[test]
fn impossible_enumeration_values_of_custom_resources_are_reported() {
    let crd = manifest::crd(&json!({"mode": {"type": "string", "enum": ["fast", "slow"]}}));
    for (value, meant) in [
        ("fastt", "did you mean `fast`?"),
        ("other", "always false"),
        ("slow", ""),
    ] {
        let spec = format!("  validations:\n  - expression: object.spec.mode == '{value}'\n");
        let findings = findings(&format!(
            "{}---\n{crd}\n",
            policy(("ex.io", "v1", "lims"), "CREATE", &spec)
        ));
        assert_eq!(findings.is_empty(), meant.is_empty(), "{findings:#?}");
        assert!(
            findings.iter().all(|finding| finding.1.contains(meant)),
            "{findings:#?}"
        );
    }
}

#[test]
fn string_data_reads_from_secrets_are_reported() {
    const SECRET: (&str, &str, &str) = ("", "v1", "secrets");
    warns(
        SECRET,
        "!object.?stringData[?'password'].hasValue()",
        &["`stringData` of a Secret is never present", "read `data`"],
    );
    warns(SECRET, "!has(object.stringData)", &["is never present"]);
    is_silent(SECRET, "!has(object.data)");
    is_silent(POD, "!has(object.metadata.labels.stringData)");
    let spec = "  validations:\n  - expression: \"!('password' in object.stringData)\"\n";
    let all = manifest::findings(&policy(SECRET, "CREATE", spec), &[]);
    let mut all = all.iter();
    let absent = all.find(|finding| finding["rule"] == "absent-field");
    let absent = absent.unwrap();
    let help = absent["help"].as_str().unwrap_or_default();
    assert!(
        help.starts_with("the API server moves the entries of `stringData`"),
        "{help}"
    );
    assert_eq!(absent["suggestions"], json!(null), "{absent:#?}");
}

#[test]
fn reads_of_namespace_object_for_namespaces_are_reported() {
    const NAMESPACE: (&str, &str, &str) = ("", "v1", "namespaces");
    warns(
        NAMESPACE,
        "namespaceObject == null || 'a' in namespaceObject.metadata.labels",
        &["always null", "read `object`, which is the Namespace"],
    );
    for (operation, test, meant) in [
        ("CREATE", "", "read `object`, which is the Namespace"),
        (
            "DELETE",
            "",
            "read `oldObject`, which is the deleted Namespace",
        ),
        (
            "DELETE",
            "namespaceObject != null && ",
            "read `oldObject`, which is the deleted Namespace",
        ),
    ] {
        let spec = format!(
            "  validations:\n  - expression: \"{test}'a' in namespaceObject.metadata.labels\"\n"
        );
        let all = manifest::findings(&policy(NAMESPACE, operation, &spec), &[]);
        let help = all[0]["help"].as_str().unwrap_or_default();
        assert!(help.contains(meant), "{operation}: {all:#?}");
        assert_eq!(all[0]["suggestions"], json!(null), "{all:#?}");
    }
}

#[test]
fn null_comparison_of_required_value_is_reported() {
    let findings = validation_findings(DEPLOYMENT, "object.spec.replicas != null");
    assert_eq!(
        findings,
        [(
            "note".to_owned(),
            "`object.spec.replicas` is never null, so this is always true; remove the comparison"
                .to_owned()
        )]
    );
    let findings = validation_findings(
        DEPLOYMENT,
        "object.spec.template.spec.containers.all(c, c.image == null)",
    );
    assert!(
        findings[0]
            .1
            .contains("is never null, so this is always false"),
        "{findings:#?}"
    );
    // The API server encodes an empty list of rules as null.
    let role = ("rbac.authorization.k8s.io", "v1", "clusterroles");
    is_silent(
        role,
        "object.rules == null || object.rules.all(r, r.verbs != null)",
    );
    for expression in [
        "object.metadata.?labels.orValue(null) != null",
        "object != null",
        "object.spec.template.metadata.creationTimestamp == null",
        "object.spec.paused == null",
    ] {
        is_silent(DEPLOYMENT, expression);
    }
}

#[test]
fn similar_kind_names_are_suggested() {
    warns(
        DEPLOYMENT,
        "request.kind.kind == 'Deploymnet'",
        &["did you mean `Deployment`?"],
    );
    warns(
        DEPLOYMENT,
        "request.resource.resource != 'deploymnets'",
        &["did you mean `deployments`?"],
    );
    // `EndpointSlice` is similar to the matched kind, but is a kind itself.
    is_silent(
        ("", "v1", "endpoints"),
        "object.kind != 'Endpoints' && object.kind != 'EndpointSlice'",
    );
    is_silent(DEPLOYMENT, "object.kind == 'Pod'");
}
