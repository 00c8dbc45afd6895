//! Tests `kubectl vap check` for manifests as they occur in repositories: kustomize patches and prefixes, templates,
//! and paths that are passed twice.

use serde_json::Value;

use crate::manifest;

/// Returns the severity, the rule and the help of each finding. Omits the findings about objects that are not checked.
fn findings(manifest: &str) -> Vec<String> {
    let text = |finding: &Value, name: &str| {
        let text = finding.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let findings = manifest::findings(manifest, &[]);
    let findings = findings.iter();
    let findings = findings.filter(|finding| text(finding, "rule") != "skipped-object");
    findings
        .map(|finding| {
            let parts = ["severity", "rule", "help"].map(|name| text(finding, name));
            parts.join(" ")
        })
        .collect()
}

fn policy(name: &str, operations: &str, expression: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
         matchConstraints:\n    resourceRules:\n    - {{apiGroups: [apps], apiVersions: [v1], operations: [{operations}], \
         resources: [deployments]}}\n  validations:\n  - expression: |\n      {expression}\n---\n"
    )
}

fn binding(policy: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\nspec: \
         {{policyName: {policy}, validationActions: [Deny]}}\n---\n"
    )
}

#[test]
fn prefix_of_kustomization_is_part_of_policy_name() {
    let manifest = |kustomization: &str, name: &str| {
        let policy = policy("limits", "CREATE", "object.metadata.name != 'x'");
        format!(
            "{policy}{}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n{kustomization}\n",
            binding(name)
        )
    };
    let unknown = |kustomization: &str, name: &str| {
        let lines = findings(&manifest(kustomization, name));
        lines.iter().any(|it| it.contains("unknown-policy"))
    };
    assert!(!unknown("namePrefix: team-", "team-limits"));
    assert!(!unknown(
        "namePrefix: team-\nnameSuffix: -v1",
        "team-limits-v1"
    ));
    assert!(!unknown("namePrefix: team-", "limits"));
    assert!(unknown("namePrefix: team-", "other-limits"));
    assert!(unknown("resources: []", "team-limits"));
}

#[test]
fn webhook_configuration_without_required_fields_is_patch() {
    let configuration = |fields: &str| {
        findings(&format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {{name: a}}\n\
             webhooks:\n- {{name: a.example.com, objectSelector: {{matchLabels: {{a: b}}}}{fields}}}\n"
        ))
    };
    assert_eq!(
        configuration(""),
        ["note invalid-object check the output of `kubectl kustomize` instead"]
    );
    let partial = configuration(", sideEffects: None");
    assert!(
        partial.iter().all(|it| it.starts_with("error required")),
        "{partial:#?}"
    );
    assert!(!partial.is_empty());
}

#[test]
fn template_in_label_is_not_corrected() {
    let policy = policy("limits", "CREATE", "object.metadata.name != 'x'");
    let labeled = policy.replace(
        "metadata: {name: limits}",
        "metadata: {name: limits, labels: {a: '{{ .Release.Service }}'}}",
    );
    let lines = findings(&labeled);
    assert!(
        matches!(&lines[..], [only] if only.starts_with("error invalid-name this looks like a template")),
        "{lines:#?}"
    );
}

#[test]
fn unrelated_policy_of_file_is_not_suggested() {
    let help = |name: &str| {
        let policy = policy(
            "require-resource-limits",
            "CREATE",
            "object.metadata.name != 'x'",
        );
        let lines = findings(&format!("{policy}{}", binding(name)));
        let mut lines = lines.into_iter();
        lines
            .find(|it| it.contains("unknown-policy"))
            .unwrap_or_default()
    };
    assert!(!help("require-standard-labels").contains("did you mean"));
    assert!(help("require-limits").contains("did you mean `require-resource-limits`?"));
}

#[test]
fn hints_fit_expressions_about_old_objects() {
    let containers = "object.spec.template.spec.containers.all(c, \
                      oldObject.spec.template.spec.containers.exists(o, o.name == c.name && o.image == c.image))";
    let ignored = findings(&policy("a", "UPDATE", containers));
    assert!(
        !ignored.iter().any(|it| it.contains("ignored-containers")),
        "{ignored:#?}"
    );

    let deletions = "request.operation != 'DELETE' || object.metadata.name != 'a'";
    let lines = findings(&policy("a", "CREATE, DELETE", deletions));
    let expected =
        "warning absent-object write `(object == null ? oldObject : object)` instead of `object`";
    assert!(
        lines.iter().any(|it| it.starts_with(expected)),
        "{lines:#?}"
    );
}

#[test]
fn hints_correct_presence_test_of_old_self_and_addition_of_maps() {
    let help = |expression: &str| findings(&policy("a", "CREATE, UPDATE", expression)).join("\n");
    assert!(help("has(oldSelf)").contains("write `oldObject != null`"));
    let sum = help("(object.metadata.labels + {'a': 'b'}).size() > 1");
    assert!(sum.contains("`+` does not merge maps"), "{sum}");
}

#[test]
fn params_without_similar_name_have_a_note() {
    let finding = |params: &str| {
        let policy = policy(
            "limits",
            "CREATE",
            "object.metadata.name != params.data.name",
        );
        let policy = policy.replace(
            "spec:\n",
            "spec:\n  paramKind: {apiVersion: v1, kind: ConfigMap}\n",
        );
        let reference = "paramRef: {name: limits, namespace: a, parameterNotFoundAction: Deny}";
        let binding = binding("limits").replace(
            "policyName: limits",
            &format!("policyName: limits, {reference}"),
        );
        let params = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {params}, namespace: a}}\n"
        );
        let lines = findings(&format!("{policy}{binding}{params}"));
        let mut lines = lines.into_iter();
        lines
            .find(|it| it.contains("params-not-found"))
            .unwrap_or_default()
    };
    assert_eq!(finding("limits"), "");
    assert!(finding("limitz").starts_with("warning params-not-found did you mean `limitz`?"));
    assert!(
        finding("other").starts_with("note params-not-found with parameterNotFoundAction Deny")
    );
}

#[test]
fn delete_operation_in_mutating_policy_causes_no_absent_object_finding() {
    let manifest = policy("a", "CREATE, DELETE", "object.metadata.name != 'a'")
        .replace("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
        .replace(
            "  validations:\n  - expression: |\n",
            "  reinvocationPolicy: Never\n  matchConditions:\n  - {name: a, expression: \"object.metadata.name != 'a'\"}\n  \
             mutations:\n  - patchType: JSONPatch\n    jsonPatch:\n      expression: |\n        []\n#",
        );
    let lines = findings(&manifest);
    let rejected = "error invalid-value the API server rejects the object; continuing without it";
    assert!(lines.iter().any(|it| it == rejected), "{lines:#?}");
    assert!(
        !lines.iter().any(|it| it.contains("absent-object")),
        "{lines:#?}"
    );
}

#[test]
fn absent_field_findings_remain_if_binding_matches_no_request() {
    let policy = policy("a", "CREATE", "object.metadata.labels.size() > 0");
    for resources in [
        "resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [daemonsets]}]",
        "resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployment]}]",
        "objectSelector: {matchExpressions: [{key: a, operator: DoesNotExist, values: [b]}]}",
        "namespaceSelector: {matchLabels: {a: '{{ team }}'}}",
    ] {
        let binding = binding("a").replacen(
            "validationActions",
            &format!("matchResources: {{{resources}}}, validationActions"),
            1,
        );
        let lines = findings(&format!("{policy}{binding}"));
        let is_absent = |line: &String| line.contains("absent-field");
        assert!(lines.iter().any(is_absent), "{resources}: {lines:#?}");
    }
}
