//! Tests hints for wrong input: the probably intended word, and the reason why a policy is not evaluated.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use crate::cli_commands::{deployment, directory, vap};

const POLICY: &str = "docs/examples/replica-limit.yaml";

#[track_caller]
fn check_output(arguments: &[&str], texts: &[&str]) {
    let ran = vap(arguments, "");
    let all = format!("{}{}", ran.out, ran.err);
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in texts {
        assert!(all.contains(text), "no {text:?} in: {all}");
    }
}

/// Returns a probe for the policy `replica-limit`. Its spec has the fields `spec`.
fn probe(spec: &str) -> String {
    format!(
        "apiVersion: vap-status.dev/v1alpha1\nkind: PolicyProbe\nmetadata: {{name: a}}\nspec:\n{spec}"
    )
}

const CASE: &str = "\n  cases:\n  - name: a\n    request: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}\n    expect: {decision: Allow}\n";

#[test]
fn misspelled_probe_fields_are_reported() {
    let table = [
        (
            format!("  polcyName: replica-limit{CASE}"),
            "spec.polcyName: unknown field, did you mean `policyName`?",
        ),
        (
            format!(
                "  policyName: replica-limit{}",
                CASE.replace("expect", "expct")
            ),
            "spec.cases[0].expct: unknown field, did you mean `expect`?",
        ),
        (
            format!(
                "  policyName: replica-limit{}",
                CASE.replace("object:", "objectForm:")
            ),
            "unknown field, did you mean `objectFrom`?",
        ),
        (
            format!(
                "  policyName: replica-limit{}",
                CASE.replace("Allow", "Alow")
            ),
            "did you mean `Allow`?",
        ),
        (
            format!("  target: {{kind: CustomResourceDefinitions, name: a}}{CASE}"),
            "did you mean `CustomResourceDefinition`?",
        ),
        (
            format!("  target: {{kind: ValidatingAdmissionPolcy, name: a}}{CASE}"),
            "use `policyName` for a ValidatingAdmissionPolicy",
        ),
        (
            format!("  target: {{kind: MutatingAdmissionPolicy, name: a}}\n  policyName: a{CASE}"),
            "is allowed for ValidatingAdmissionPolicies, not together with a target",
        ),
        (
            format!("  bindings: Implied{CASE}"),
            "exactly one of `policyName` (for a ValidatingAdmissionPolicy) and `target` (for other kinds) is required",
        ),
    ];
    for (n, (spec, text)) in table.iter().enumerate() {
        let folder = directory(&format!("hints_probe_{n}"), &[("probe.yaml", &probe(spec))]);
        let folder = folder.to_str().unwrap();
        check_output(&["test", POLICY, folder], &[text]);
        check_output(
            &["check", POLICY, folder],
            &[
                text,
                "error[invalid-probe]",
                "1 policy and 1 probe in 2 files",
            ],
        );
    }
}

#[test]
fn unknown_policy_of_probe_is_reported_by_check() {
    for (name, policy, texts) in [
        (
            "known",
            "replica-limit",
            ["1 probe in 2 files", ": 1 warning, 1 note"],
        ),
        (
            "misspelled",
            "replica-limits",
            [
                "warning[unknown-policy]: the policy `replica-limits` is not in the input",
                "did you mean `replica-limit`?",
            ],
        ),
        (
            "other",
            "database",
            [
                "note[unknown-policy]: the policy `database` is not in the input",
                "add the file that contains it",
            ],
        ),
    ] {
        let probe = probe(&format!("  policyName: {policy}{CASE}"));
        let name = format!("hints_unknown_policy_{name}");
        let folder = directory(&name, &[("probe.yaml", &probe)]);
        check_output(&["check", POLICY, folder.to_str().unwrap()], &texts);
    }
}

#[test]
fn invalid_case_does_not_prevent_other_cases() {
    let case = |name: &str, request: &str, expect: &str| {
        format!("  - {{name: {name}, request: {request}, expect: {expect}}}\n")
    };
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
    let allowed = "{applies: false}";
    let created = format!("{{object: {object}}}");
    let cases = [
        case("created", &created, allowed),
        case(
            "updated",
            &format!("{{object: {object}, oldObject: {object}}}"),
            allowed,
        ),
        case("deleted", &format!("{{oldObject: {object}}}"), allowed),
        case("empty", "{}", allowed),
        case("misspelled", &created, "{decision: Alow}"),
        case("unread", "{objectFrom: {file: none.yaml}}", allowed),
        case("last", &created, "{decision: Deny}"),
    ];
    let spec = format!("  policyName: replica-limit\n  cases:\n{}", cases.concat());
    let folder = directory("hints_cases", &[("probe.yaml", &probe(&spec))]);
    check_output(
        &["test", POLICY, folder.to_str().unwrap(), "-v"],
        &[
            "spec.cases[3].request: a request requires at least one of `resource`",
            "spec.cases[4].expect.decision: is `Alow`",
            "spec.cases[5].request.objectFrom.file: ",
            "ok created",
            "ok updated",
            "ok deleted",
            "FAILED last",
            "4 cases of 1 probe in 2 files",
        ],
    );
}

#[test]
fn boolean_yaml_keys_are_reported() {
    let case = CASE.replace("metadata: {name: a}", "metadata: {name: a, y: b}");
    let spec = format!("  policyName: replica-limit\n  bindings: Implied{case}");
    let written = fs_policy().replace("  matchConstraints", "  on: a\n  matchConstraints");
    assert!(written.contains("on: a"));
    let files = [("probe.yaml", probe(&spec)), ("policy.yaml", written)];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let folder = directory("hints_booleans", &files);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    check_output(
        &["test", POLICY, &file("probe.yaml")],
        &["metadata.true: unknown field; kubectl parses the key `y` as the boolean true"],
    );
    check_output(
        &["check", &file("policy.yaml")],
        &[
            "kubectl parses the key `on` as the boolean true",
            "quote it, as in 'on'",
        ],
    );
}

fn fs_policy() -> String {
    std::fs::read_to_string(POLICY).unwrap()
}

#[test]
fn probe_of_missing_policy_is_reported() {
    let object = deployment("web", 9).to_string();
    let misspelt = fs_policy().replace("[deployments]", "[deployment]");
    assert_ne!(misspelt, fs_policy());
    let binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
                   metadata: {name: b}\nspec: {policyName: replica-limit, validationActions: [Deny]}\n";
    let files = [
        ("policy.yaml", misspelt.as_str()),
        ("binding.yaml", binding),
        ("web.json", &object),
    ];
    let folder = directory("hints_eval", &files);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    check_output(
        &["eval", &file("policy.yaml"), "--object", &file("web.json")],
        &["no served resource matches", "did you mean `deployments`?"],
    );
    check_output(
        &["eval", &file("binding.yaml"), "--object", &file("web.json")],
        &[
            "the policy `replica-limit` is not in the input",
            "a binding has no effect without its policy",
        ],
    );
}

#[test]
fn reason_for_unmatched_bindings_is_shown() {
    let binding = |name: &str, resources: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
             metadata: {{name: {name}}}\nspec: {{policyName: replica-limit, validationActions: [Deny], \
             matchResources: {{{resources}}}}}\n"
        )
    };
    let of_team = binding("of-team", "namespaceSelector: {matchLabels: {team: a}}");
    let of_pods = binding(
        "of-pods",
        "resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: ['*']}]",
    );
    let object = deployment("web", 9).to_string();
    let case = format!(
        "  policyName: replica-limit\n  cases:\n  - name: a\n    request: {{object: {object}}}\n    \
         expect: {{applies: true}}\n"
    );
    // Removes the binding in the example file, so that only the bindings above exist.
    let policy = fs_policy();
    let policy = policy.split("---").next().unwrap().to_owned();
    let files = [
        ("policy.yaml", policy),
        ("bindings.yaml", format!("{of_team}---\n{of_pods}")),
        ("web.json", object),
        ("probe.yaml", probe(&case)),
    ];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let folder = directory("hints_bindings", &files);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let why = "no binding matches the request (\"of-pods\": no rule matches the resource; \
               \"of-team\": its namespaceSelector does not select the namespace)";
    let (policy, bindings) = (file("policy.yaml"), file("bindings.yaml"));
    check_output(
        &["eval", &policy, &bindings, "--object", &file("web.json")],
        &[why],
    );
    check_output(&["test", &policy, &bindings, &file("probe.yaml")], &[why]);
}

/// Objects may have the metadata and status from `kubectl get -o yaml`. Policies are evaluated for them, although an
/// API server would not accept them on creation.
#[test]
fn stored_objects_are_evaluated() {
    let mut object = deployment("web", 200);
    object["metadata"]["resourceVersion"] = "12".into();
    let folder = directory("hints_version", &[("web.json", &object.to_string())]);
    let file = folder.join("web.json");
    let file = file.to_str().unwrap();
    check_output(&["eval", POLICY, "--object", file], &["DENIED"]);
}

#[test]
fn missing_policy_is_an_error() {
    let object = deployment("web", 2).to_string();
    let folder = directory("hints_audit", &[("web.json", &object)]);
    let file = folder.join("web.json");
    let ran = vap(
        &[
            "audit",
            "missing.yaml",
            file.to_str().unwrap(),
            "-o",
            "json",
        ],
        "",
    );
    let summary = &ran.json()["summary"];
    assert_eq!(
        (&summary["objects"], &summary["unread"]),
        (&1.into(), &0.into()),
        "{summary}"
    );
    assert_ne!(ran.status, 0);
}

#[test]
fn rejected_new_version_is_reported() {
    let broken = fs_policy().replace(
        "expression: object.spec.replicas",
        "expression: (object.spec.replicas",
    );
    assert_ne!(broken, fs_policy());
    let object = deployment("web", 90).to_string();
    let folder = directory(
        "hints_diff",
        &[("new.yaml", &broken), ("web.json", &object)],
    );
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    check_output(
        &[
            "diff",
            POLICY,
            &file("new.yaml"),
            "--with",
            &file("web.json"),
        ],
        &["the policy: matched -> the API server rejects the policy: Syntax error"],
    );
}

#[test]
fn namespace_outside_the_input_is_reported() {
    let policy = serde_json::json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "a"},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"env": "prod"}},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
                }],
            },
            "validations": [{"expression": "false"}],
        },
    });
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"},
    });
    let namespace =
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {env: prod}}\n";
    let with_namespace = format!("{policy}\n---\n{namespace}");
    for (name, text, status, is_reported) in [
        ("without", policy.to_string(), 0, true),
        ("with", with_namespace, 1, false),
    ] {
        let folder = directory(&format!("namespace-{name}"), &[("policy.yaml", &text)]);
        let path = folder.join("policy.yaml");
        let ran = vap(
            &["eval", path.to_str().unwrap(), "-f", "-"],
            &object.to_string(),
        );
        assert_eq!(ran.status, status, "{name}: {}{}", ran.out, ran.err);
        let warning = "the Namespace `shop` is not in the input";
        assert_eq!(
            ran.out.contains(warning),
            is_reported,
            "{name}: {}",
            ran.out
        );
    }
}

/// Returns a policy for Pods and Deployments, with a binding. The spec of the policy has `fields`.
fn bound_policy(name: &str, fields: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
         matchConstraints:\n    resourceRules:\n    - {{apiGroups: ['', apps], apiVersions: [v1], operations: [CREATE], \
         resources: [pods, deployments]}}\n{fields}\n---\napiVersion: admissionregistration.k8s.io/v1\n\
         kind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\nspec: {{policyName: secret-guard, \
         validationActions: [Deny]}}\n"
    )
}

#[test]
fn hints_do_not_repeat_mistakes() {
    const ANY: &str = "  validations: [{expression: object.metadata.name != 'a'}]";
    let validation =
        |expression: &str| format!("  validations:\n  - expression: |-\n      {expression}");
    // The policy, a part of the output, and a string that the output must not contain.
    let table = [
        (
            bound_policy("secret_guard", ANY),
            "did you mean `secret-guard`? the API server rejects",
            "unknown-policy",
        ),
        (
            bound_policy(
                "secret-guard",
                &validation("object.metadata.labels['version'] > '9' && true"),
            ),
            "compare quantities",
            "&& object.metadata.labels['version'] > '9'",
        ),
        (
            bound_policy(
                "secret-guard",
                &validation("object.kind != 'DEPLOYMENT' ? object.spec.hostPID == true : true"),
            ),
            "the rules also match Deployment, which lacks the field: the test misspells the kind as `DEPLOYMENT`",
            "test `object.kind` first",
        ),
        (
            bound_policy(
                "secret-guard",
                &validation("object.kind != 'Deployment' && object.spec.replicas > 1"),
            ),
            "the rules also match Pod, which lacks the field: test `object.kind` first",
            "misspells",
        ),
    ];
    for (n, (text, hint, wrong)) in table.iter().enumerate() {
        let folder = directory(&format!("hints_mistakes_{n}"), &[("policy.yaml", text)]);
        let ran = vap(&["check", folder.to_str().unwrap()], "");
        let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(hint), "no {hint:?} in: {words}");
        assert!(!words.contains(wrong), "{wrong:?} in: {words}");
    }
}

#[test]
fn names_of_other_engines_have_hints() {
    let table = [
        (
            "    excludeResourceRules:\n    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], names: [x]}",
            "did you mean `resourceNames`?",
        ),
        ("  failurePolicy: Enforce", "did you mean `Fail`?"),
        (
            "  validationFailureAction: Enforce",
            "write `validationActions: [Deny]` or `[Audit]` in the binding",
        ),
        ("  background: false", "remove it: policies check requests"),
        (
            "  validations:\n  - pattern: object.metadata.name != 'b'",
            "did you mean `expression`?",
        ),
        (
            "  auditAnnotations:\n  - {key: a, expression: request.userInfo.username}",
            "did you mean `valueExpression`?",
        ),
        (
            "  validations:\n  - expression: input.review.userInfo.username != 'b'",
            "write `request` for `input.review`",
        ),
        (
            "  validations:\n  - expression: object.metadata.name.substring(0, 3) == 'abc'",
            "test the length of the string first, as in `size(a) >= 3 && ...`",
        ),
        (
            "  validations:\n  - expression: object.spec.tolerations.map(t, t.key + 'a').size() > 1",
            "write `t.?key.orValue(...)` with the value to use for an absent field",
        ),
        (
            "  validations:\n  - expression: \"!object.metadata.name.contains(':latest') || object.metadata.name.contains(':')\"",
            "did you mean `&&`?",
        ),
        (
            "  validations:\n  - expression: timestamp('2026-01-31') < timestamp('2026-02-01T00:00:00Z')",
            "a timestamp has a time and a zone: write `'2026-01-31T00:00:00Z'`",
        ),
    ];
    for (n, (fields, hint)) in table.iter().enumerate() {
        let text = bound_policy("secret-guard", fields).replace("[pods, deployments]", "[pods]");
        let folder = directory(&format!("hints_names_{n}"), &[("policy.yaml", &text)]);
        check_output(&["check", folder.to_str().unwrap()], &[hint]);
    }
}
