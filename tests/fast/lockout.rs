//! Tests findings of `kubectl vap check` about policies that deny requests of the cluster's own components.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use crate::manifest;

/// Returns a policy with the spec fields `spec`, and a binding of the policy.
fn bound(group: &str, resource: &str, spec: &str, binding: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
         matchConstraints:\n    resourceRules:\n    - apiGroups: ['{group}']\n      apiVersions: ['*']\n      operations: \
         [CREATE, UPDATE]\n      resources: ['{resource}']\n{spec}---\napiVersion: admissionregistration.k8s.io/v1\nkind: \
         ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\nspec:\n  policyName: p\n{binding}"
    )
}

const DENY: &str = "  validationActions: [Deny]\n";
const ASKS_FOR_LABEL: &str =
    "  validations:\n  - expression: \"'team' in object.metadata.?labels.orValue({})\"\n";

/// Returns the severity and message of each finding about a lock-out.
fn lockouts(manifest: &str) -> Vec<(String, String)> {
    let actual = manifest::findings(manifest, &[]);
    assert!(
        actual.iter().all(|finding| finding["severity"] != "error"),
        "{actual:#?}"
    );
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    actual
        .into_iter()
        .filter(|finding| finding["rule"] == "lockout")
        .map(|finding| (text(&finding["severity"]), text(&finding["message"])))
        .collect()
}

#[test]
fn lockout_policy_for_all_resources_is_reported() {
    for (group, resource, named) in [
        ("*", "*/*", "UPDATE of leases in kube-node-lease"),
        ("*", "*", "UPDATE of leases in kube-node-lease"),
        ("", "*", "CREATE of nodes"),
        ("", "nodes/status", "UPDATE of nodes/status"),
        ("coordination.k8s.io", "leases", "UPDATE of leases"),
        ("", "events", "CREATE of events"),
        (
            "",
            "serviceaccounts/token",
            "CREATE of serviceaccounts/token",
        ),
        (
            "discovery.k8s.io",
            "endpointslices",
            "UPDATE of endpointslices",
        ),
    ] {
        let findings = lockouts(&bound(group, resource, ASKS_FOR_LABEL, DENY));
        let [(severity, message)] = &findings[..] else {
            panic!("{group} {resource}: {findings:#?}")
        };
        assert_eq!(severity, "warning", "{message}");
        assert!(message.contains(named), "{message}");
        assert!(message.contains(", binding `b`)"), "{message}");
    }
    // A request is also denied if an expression fails for the request.
    let fails = "  validations:\n  - expression: object.metadata.annotations['a'] == 'b'\n";
    assert_eq!(lockouts(&bound("*", "*", fails, DENY)).len(), 1);
}

#[test]
fn policy_that_denies_system_pods_has_only_a_note() {
    let privileged = "  validations:\n  - expression: object.spec.containers.all(c, \
                      !c.?securityContext.?privileged.orValue(false))\n";
    let findings = lockouts(&bound("", "pods", privileged, DENY));
    assert_eq!(findings[0].0, "note", "{findings:#?}");
    assert!(
        findings[0].1.contains("CREATE of pods in kube-system"),
        "{findings:#?}"
    );
}

#[test]
fn policy_that_denies_root_certificates_has_only_a_note() {
    let findings = lockouts(&bound("", "configmaps", ASKS_FOR_LABEL, DENY));
    assert_eq!(findings[0].0, "note", "{findings:#?}");
    let named = "CREATE of the ConfigMap kube-root-ca.crt";
    assert!(findings[0].1.contains(named), "{findings:#?}");
    let excluded = "  validations:\n  - expression: object.metadata.name == 'kube-root-ca.crt' || 'team' in \
                    object.metadata.?labels.orValue({})\n";
    assert_eq!(lockouts(&bound("", "configmaps", excluded, DENY)), []);
}

#[test]
fn validation_that_is_always_false_is_reported() {
    let is_false = ["this is false for every request that the rules match"];
    let message = |(_, message): &(String, String)| message.clone();
    for (expression, binding, expected) in [
        ("request.operation == 'DELETE'", DENY, &is_false[..]),
        (
            "request.operation == 'DELETE' && has(object.metadata.labels)",
            DENY,
            &is_false,
        ),
        (
            "request.operation == 'DELETE'",
            "  validationActions: [Warn]\n",
            &[],
        ),
        ("request.operation == 'CREATE'", DENY, &[]),
        // A policy that denies all requests does so on purpose, so there is no finding.
        ("false", DENY, &[]),
    ] {
        let spec = format!("  validations:\n  - expression: \"{expression}\"\n");
        let findings = lockouts(&bound("apps", "deployments", &spec, binding));
        let messages: Vec<String> = findings.iter().map(message).collect();
        assert_eq!(messages, expected, "{expression}");
    }
    // The help of the finding about the misspelled kind states the effect.
    let spec = "  validations:\n  - expression: object.kind == 'deployment'\n";
    let actual = manifest::findings(&bound("apps", "deployments", spec, DENY), &[]);
    let misspelled = actual
        .iter()
        .find(|it| it["rule"] == "impossible-value")
        .unwrap();
    let help = misspelled["help"].as_str().unwrap();
    assert!(
        help.ends_with("the binding `b` denies every request that the rules match"),
        "{help}"
    );
}

#[test]
fn lockout_policy_that_excludes_system_users_is_not_reported() {
    let with = |conditions: &str| format!("  matchConditions:\n{conditions}{ASKS_FOR_LABEL}");
    for spec in [
        with("  - {name: m, expression: \"!request.userInfo.username.startsWith('system:')\"}\n"),
        with(
            "  - {name: m, expression: \"!('system:nodes' in request.userInfo.groups)\"}\n  - {name: m1, expression: \
             \"!request.userInfo.username.startsWith('system:kube-')\"}\n  - {name: m2, expression: \
             \"!('system:serviceaccounts:kube-system' in request.userInfo.groups)\"}\n",
        ),
        with("  - {name: m, expression: \"!(request.resource.resource in ['leases', 'nodes', 'events', 'endpointslices', 'pods', 'serviceaccounts', 'configmaps'])\"}\n"),
        "  validations:\n  - expression: request.userInfo.username.startsWith('system:') || 'team' in \
         object.metadata.?labels.orValue({})\n"
            .to_owned(),
        "  failurePolicy: Ignore\n  validations:\n  - expression: object.metadata.annotations['a'] == 'b'\n".to_owned(),
    ] {
        assert_eq!(lockouts(&bound("*", "*/*", &spec, DENY)), [], "{spec}");
    }
    // If the binding's namespace selector excludes the system namespaces, there is no finding.
    let selector = "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: \
                    [kube-system, kube-node-lease]}]}\n";
    let of_binding = format!("{DENY}  matchResources:\n    {selector}");
    assert_eq!(
        lockouts(&bound(
            "coordination.k8s.io",
            "leases",
            ASKS_FOR_LABEL,
            &of_binding
        )),
        []
    );
    // A namespace selector does not exclude nodes, because nodes have no namespace.
    assert_eq!(
        lockouts(&bound("*", "*", ASKS_FOR_LABEL, &of_binding)).len(),
        1
    );
    for binding in [
        "  validationActions: [Warn]\n",
        "  validationActions: [Audit]\n",
        "  validationActions: [Deny]\n  matchResources: {objectSelector: {matchLabels: {a: b}}}\n",
    ] {
        assert_eq!(
            lockouts(&bound("*", "*", ASKS_FOR_LABEL, binding)),
            [],
            "{binding}"
        );
    }
    let unbound = bound("*", "*", ASKS_FOR_LABEL, DENY);
    let unbound = unbound.split("---").next().unwrap();
    assert_eq!(lockouts(unbound), []);
}

#[test]
fn policies_for_user_workloads_are_not_reported() {
    for (group, resource) in [("apps", "deployments"), ("", "secrets"), ("batch", "*")] {
        assert_eq!(lockouts(&bound(group, resource, ASKS_FOR_LABEL, DENY)), []);
    }
    let images = "  validations:\n  - expression: object.spec.containers.all(c, !c.image.endsWith(':latest'))\n";
    assert_eq!(lockouts(&bound("", "pods", images, DENY)), []);
    // The authorizer's decision is unknown, so there is no finding.
    let asks = "  validations:\n  - expression: authorizer.group('').resource('nodes').check('get').allowed()\n";
    assert_eq!(lockouts(&bound("*", "*", asks, DENY)), []);
}

#[test]
fn params_of_custom_kind_that_block_cluster_start_have_only_a_note() {
    let kind = "  paramKind: {apiVersion: example.com/v1, kind: Limit}\n  validations:\n  - expression: 'true'\n";
    let binding =
        "  validationActions: [Deny]\n  paramRef: {name: a, parameterNotFoundAction: Allow}\n";
    let findings = lockouts(&bound("*", "*", kind, binding));
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].0, "note");
    assert_eq!(lockouts(&bound("apps", "*", kind, binding)), []);
    let ignored = format!("  failurePolicy: Ignore\n{kind}");
    assert_eq!(lockouts(&bound("*", "*", &ignored, binding)), []);
    // The data of a ConfigMap are unknown, so there is no finding.
    let config = kind
        .replace("example.com/v1, kind: Limit", "v1, kind: ConfigMap")
        .replace("'true'", "has(params.data)");
    let binding = binding.replace("name: a", "name: a, namespace: default");
    assert_eq!(lockouts(&bound("*", "*", &config, &binding)), []);
}

#[test]
fn policies_that_deny_deletions_by_system_components_are_reported() {
    // In a DELETE request, `object` is null.
    let deleted = |resource: &str, spec: &str| {
        let group = if resource == "replicasets" {
            "apps"
        } else {
            "*"
        };
        bound(group, resource, spec, DENY).replace("[CREATE, UPDATE]", "[DELETE]")
    };
    let reads_object = "  validations:\n  - expression: \"!has(object.metadata.finalizers)\"\n";
    let findings = lockouts(&deleted("pods", reads_object));
    let [(severity, message)] = &findings[..] else {
        panic!("{findings:#?}")
    };
    assert_eq!(severity, "warning");
    assert!(
        message.contains("DELETE of pods by its kubelet"),
        "{message}"
    );
    let findings = lockouts(&deleted("replicasets", reads_object));
    assert_eq!(findings[0].0, "note", "{findings:#?}");
    assert!(
        findings[0].1.contains("generic-garbage-collector"),
        "{findings:#?}"
    );
    // There is no finding if a policy denies only deletions of labeled objects.
    let protected = "  validations:\n  - expression: \"!('protected' in oldObject.metadata.?labels.orValue({}))\"\n";
    for resource in ["pods", "replicasets", "*"] {
        assert_eq!(lockouts(&deleted(resource, protected)), [], "{resource}");
    }
    let guarded = "  matchConditions:\n  - {name: m, expression: \"!request.userInfo.username.startsWith('system:')\"}\n";
    let guarded = format!("{guarded}{reads_object}");
    assert_eq!(lockouts(&deleted("pods", &guarded)), []);
}

#[test]
fn missing_params_in_system_namespaces_are_reported() {
    let kind =
        "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:\n  - expression: 'true'\n";
    let with = |resource: &str, reference: &str| {
        let binding = format!("{DENY}  paramRef: {reference}\n");
        lockouts(&bound("*", resource, kind, &binding))
    };
    let deny = "{name: a, parameterNotFoundAction: Deny}";
    // The params may exist in the system namespaces, so the finding is only a note.
    let findings = with("leases", deny);
    let [(severity, message)] = &findings[..] else {
        panic!("{findings:#?}")
    };
    assert_eq!(severity, "note");
    assert!(
        message.contains("UPDATE of leases in kube-node-lease"),
        "{message}"
    );
    assert!(message.contains("no params found"), "{message}");
    // Requests for cluster-scoped objects have no namespace, so they have no params.
    let findings = with("*", deny);
    assert_eq!(findings[0].0, "warning", "{findings:#?}");
    assert!(findings[0].1.contains("CREATE of nodes"), "{findings:#?}");
    for reference in [
        "{name: a, parameterNotFoundAction: Allow}",
        "{name: a, namespace: default, parameterNotFoundAction: Deny}",
        "{name: kube-root-ca.crt, parameterNotFoundAction: Deny}",
        "{selector: {}, parameterNotFoundAction: Deny}",
        "{selector: {matchExpressions: [{key: a, operator: DoesNotExist}]}, parameterNotFoundAction: Deny}",
    ] {
        assert_eq!(with("leases", reference), [], "{reference}");
    }
    let selected = "{selector: {matchLabels: {a: b}}, parameterNotFoundAction: Deny}";
    assert_eq!(with("leases", selected).len(), 1);
}
