//! Tests the generated requests of `kubectl vap diff`, and versions with different params.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use crate::cli_commands::{directory, vap};

/// A policy with params, a match condition and a variable.
const LIMITED: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limits}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  matchConditions: [{name: team, expression: \"object.metadata.namespace != 'kube-system'\"}]
  variables: [{name: replicas, expression: 'object.spec.?replicas.orValue(1)'}]
  validations:
  - expression: variables.replicas <= 50
    message: too many replicas
  - expression: params == null || !('name' in params.data) || object.metadata.name == params.data.name
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: limits}
spec:
  policyName: limits
  validationActions: [Deny]
  paramRef: {name: limits, namespace: default, parameterNotFoundAction: Allow}
";

#[test]
fn changes_are_shown_for_generated_requests() {
    /// The replaced text, the new text, the exit status, and parts of the output.
    type DiffCase = (&'static str, &'static str, i32, &'static [&'static str]);
    let cases: [DiffCase; 8] = [
        (
            "<= 50",
            "<= 20",
            1,
            &[
                "spec.validations[0]: true -> false",
                "1 denied now, allowed before",
                "- a generated CREATE of Deployment",
                "object.spec.replicas: ",
            ],
        ),
        (
            "<= 50",
            "< 51",
            0,
            &[
                "spec.validations[0] changed; the decision is the same for every compared request",
                "- variables.replicas <= 50",
                "+ variables.replicas < 51",
                "generated requests: 1 expression changed, but no difference was found in the generated requests",
            ],
        ),
        (
            "kube-system",
            "kube-public",
            1,
            &[
                "match conditions: excluded by `team` -> matched",
                "object.metadata.namespace: \"kube-system\"",
                "match conditions: matched -> excluded by `team`",
            ],
        ),
        (
            "orValue(1)",
            "orValue(1) + 40",
            1,
            &[
                "spec.validations[0]: true -> false",
                "object.spec.replicas: ",
            ],
        ),
        (
            "    message: too many replicas\n",
            "    message: fewer replicas\n",
            1,
            &["message: too many replicas -> fewer replicas"],
        ),
        (
            "|| object.metadata.name == params",
            "|| object.metadata.name != params",
            1,
            &["spec.validations[1]: false -> true", "params.data.name: "],
        ),
        (
            "[CREATE, UPDATE]",
            "[CREATE]",
            1,
            &[
                "match constraints or bindings: matched -> not matched",
                "+ a generated UPDATE of Deployment",
            ],
        ),
        (
            "parameterNotFoundAction: Allow",
            "parameterNotFoundAction: Deny",
            1,
            &[
                "the paramRef of the binding `limits` changed",
                "1 setting changed",
            ],
        ),
    ];
    for (n, (old, new, status, lines)) in cases.into_iter().enumerate() {
        assert!(LIMITED.contains(old), "{old}");
        let folder = directory(
            &format!("generated-{n}"),
            &[
                ("old.yaml", LIMITED),
                ("new.yaml", &LIMITED.replace(old, new)),
            ],
        );
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let paths = [path("old.yaml"), path("new.yaml")];
        let ran = vap(&["diff", &paths[0], &paths[1]], "");
        assert_eq!(ran.status, status, "{new}: {}{}", ran.out, ran.err);
        for line in lines {
            assert!(ran.out.contains(line), "{new}: {line}: {}", ran.out);
        }
        // A changed setting counts as a difference even if there are no requests.
        let is_setting = new == "[CREATE]" || new.starts_with("parameterNotFoundAction");
        let ran = vap(&["diff", &paths[0], &paths[1], "--no-generated"], "");
        let status = if is_setting { 1 } else { 2 };
        assert_eq!(ran.status, status, "{new}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn validations_without_params_are_not_evaluated() {
    let object = serde_json::json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {
            "replicas": 60,
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{"name": "a", "image": "b"}]},
            },
        },
    });
    let params =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: default}\ndata: {}\n";
    let new = LIMITED.replace("paramRef: {name: limits", "paramRef: {name: absent");
    let folder = directory(
        "without-params",
        &[
            ("old.yaml", LIMITED),
            ("new.yaml", &new),
            ("params.yaml", params),
            ("object.yaml", &object.to_string()),
        ],
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let [old, new, params, object] =
        ["old.yaml", "new.yaml", "params.yaml", "object.yaml"].map(path);
    let ran = vap(&["diff", &old, &new, "--with", &params, "-f", &object], "");
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    let lines = [
        "  spec.validations[0]: false -> not evaluated\n    1 allowed now, denied before\n",
        "the paramRef of the binding `limits` changed",
    ];
    for line in lines {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    assert!(!ran.out.contains("spec.validations[1]"), "{}", ran.out);
}

const PARAMS: &str = "\
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: default}
data: {name: web}
";

#[test]
fn changed_bindings_and_params_are_shown_for_generated_requests() {
    let selected = format!(
        "{LIMITED}  matchResources: {{namespaceSelector: {{matchLabels: {{tier: gold}}}}}}\n{PARAMS}"
    );
    let (_, rest) = selected.split_once("---\n").unwrap();
    let (binding, _) = rest.split_once("---\n").unwrap();
    // The replaced text, the new text, and parts of the output.
    let cases: [(&str, &str, &[&str]); 5] = [
        (
            "validationActions: [Deny]",
            "validationActions: [Audit]",
            &[
                "actions of bindings: Deny -> Audit",
                "1 allowed now, denied before",
                "the validationActions of the binding `limits` changed: Deny -> Audit",
            ],
        ),
        (
            "tier: gold",
            "tier: silver",
            &[
                "match constraints or bindings: matched -> not matched",
                "match constraints or bindings: not matched -> matched",
                "1 denied now, 1 allowed now, 1 setting changed",
                "namespaceObject.metadata.labels: {\"kubernetes.io/metadata.name\":\"default\",\"tier\":\"gold\"}",
            ],
        ),
        (
            "data: {name: web}",
            "data: {name: api}",
            &[
                "spec.validations[1]: true -> false",
                "spec.validations[1]: false -> true",
                "the params `default/limits` changed\n",
                "-  name: web",
            ],
        ),
        (
            PARAMS,
            "",
            &["the params `default/limits` changed", "1 setting changed"],
        ),
        (
            binding,
            "",
            &[
                "match constraints or bindings: matched -> no binding",
                "1 allowed now, denied before",
                "the binding `limits` was removed; the new version has no effect, because it has no binding",
            ],
        ),
    ];
    for (n, (old, new, lines)) in cases.into_iter().enumerate() {
        assert!(selected.contains(old), "{old}");
        let changed = selected.replace(old, new);
        let folder = directory(
            &format!("generated-inputs-{n}"),
            &[("old.yaml", &selected), ("new.yaml", &changed)],
        );
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let paths = [path("old.yaml"), path("new.yaml")];
        let ran = vap(&["diff", &paths[0], &paths[1]], "");
        assert_eq!(ran.status, 1, "{new}: {}{}", ran.out, ran.err);
        for line in lines {
            assert!(ran.out.contains(line), "{new}: {line}: {}", ran.out);
        }
    }
}

#[test]
fn inputs_of_changed_expressions_are_shown_first() {
    let new = LIMITED.replace(
        "variables.replicas <= 50",
        "variables.replicas <= 50 || request.userInfo.username == 'ops'",
    );
    let folder = directory(
        "generated-first-inputs",
        &[("old.yaml", LIMITED), ("new.yaml", &new)],
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let ran = vap(&["diff", &path("old.yaml"), &path("new.yaml")], "");
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    let first = "+ a generated CREATE of Deployment\n        request.userInfo.username: \"ops\"\n        object.spec.replicas: 51\n";
    assert!(ran.out.contains(first), "{}", ran.out);
}
