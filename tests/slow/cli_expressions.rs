//! Tests `kubectl vap eval --expression`: values, errors with their locations, and the inputs of expressions.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};

use crate::cli_commands::{Ran, deployment, directory, vap};

const OBJECT: &str = "docs/examples/web.yaml";

fn eval(expressions: &[&str], extra: &[&str]) -> Ran {
    let flags = expressions.iter().flat_map(|it| ["--expression", it]);
    let words: Vec<&str> = ["eval", "-f", OBJECT].into_iter().chain(flags).collect();
    vap(&[&words[..], extra].concat(), "")
}

#[test]
fn expressions_have_values_of_any_type() {
    let expressions = [
        ("object.spec.replicas * 2", "120"),
        ("object.metadata.name", "\"web\""),
        ("request.operation == 'CREATE'", "true"),
        (
            "object.spec.template.spec.containers.map(c, c.name)",
            "[\"web\"]",
        ),
        ("namespaceObject.metadata.name", "\"shop\""),
        ("oldObject", "null"),
        // A default that the API server sets.
        ("object.spec.strategy.type", "\"RollingUpdate\""),
    ];
    let given: Vec<&str> = expressions
        .iter()
        .map(|(expression, _)| *expression)
        .collect();
    let ran = eval(&given, &["-o", "json"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let report = ran.json();
    assert_eq!(report["kind"], "ExpressionReport");
    for (n, (expression, value)) in expressions.into_iter().enumerate() {
        let eval = &report["expressions"][n];
        assert_eq!(eval["expression"], expression);
        assert_eq!(eval["values"], json!([value]), "{eval:#}");
        assert_eq!(eval["findings"], json!([]), "{eval:#}");
    }
    let text = eval(&["object.spec.replicas * 2"], &[]);
    assert_eq!(
        text.out,
        "CREATE apps/v1 deployments shop/web by system:anonymous\n\nobject.spec.replicas * 2\n  = 120\n"
    );
}

/// Long values are not truncated.
#[test]
fn value_of_whole_object_is_complete() {
    let ran = eval(&["object"], &["-o", "json"]);
    let report = ran.json();
    let value = report["expressions"][0]["values"][0].as_str().unwrap();
    assert!(value.len() > 300 && !value.contains('…'), "{value}");
}

#[test]
fn undefined_field_has_warning_and_location_of_failure() {
    let ran = eval(&["object.spec.replica + 1"], &["-o", "json"]);
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    let eval = &ran.json()["expressions"][0];
    assert_eq!(eval["error"]["message"], "no such key: replica");
    let column = (&eval["error"]["line"], &eval["error"]["column"]);
    assert_eq!(column, (&1.into(), &12.into()));
    assert_eq!(eval["findings"][0]["rule"], "undefined-field");
    assert_eq!(eval["findings"][0]["help"], "did you mean `replicas`?");
    let location = &eval["findings"][0];
    assert_eq!(location["file"], "--expression");
    assert_eq!(
        (&location["line"], &location["column"]),
        (&1.into(), &12.into())
    );

    let ran = eval_lines();
    assert!(
        ran.out.contains(" --> --expression:2:14\n") && ran.out.contains("no such key: replica"),
        "{}",
        ran.out
    );
}

fn eval_lines() -> Ran {
    eval(&["true &&\n  object.spec.replica == 1"], &[])
}

#[test]
fn expression_that_does_not_compile_is_usage_error() {
    let ran = eval(&["object.spec.replicas +", "1 + 1"], &[]);
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("error[syntax]"), "{}", ran.out);
    assert!(ran.out.contains("--> --expression:1:"), "{}", ran.out);
    // The valid expression is evaluated nevertheless.
    assert!(ran.out.contains("1 + 1\n  = 2\n"), "{}", ran.out);
    for wrong in ["", " ", "nothing"] {
        assert_eq!(eval(&[wrong], &[]).status, 2, "{wrong}");
    }
}

#[test]
fn expression_has_variables_and_params_of_policy() {
    let ran = eval(
        &["variables.containers.size()"],
        &["config/samples/sound.yaml", "-v"],
    );
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("\n  = 1\n"), "{}", ran.out);
    assert!(ran.out.contains("variables.containers = ["), "{}", ran.out);
    let files = ["tests/cli_test/files"];
    let many = eval(&["variables.containers.size()"], &files);
    assert_eq!(many.status, 2, "several policies: {}", many.out);

    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "limits"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["deployments"]}]},
            "validations": [{"expression": "string(object.spec.replicas) < params.data.max"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "limits"},
        "spec": {"policyName": "limits", "validationActions": ["Deny"], "paramRef":
            {"name": "limits", "namespace": "shop", "parameterNotFoundAction": "Deny"}},
    });
    let params = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "limits", "namespace": "shop"}, "data": {"max": "5"}});
    let objects: Vec<String> = [policy, binding, params]
        .iter()
        .map(Value::to_string)
        .collect();
    let folder = directory(
        "expression-params",
        &[("all.yaml", &objects.join("\n---\n"))],
    );
    let ran = eval(&["params.data.max"], &[folder.to_str().unwrap()]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("  = \"5\"\n"), "{}", ran.out);
}

#[test]
fn object_of_custom_kind_needs_its_definition() {
    let mut object = deployment("web", 1);
    object["apiVersion"] = "example.com/v1".into();
    object["kind"] = "Widget".into();
    let words = ["eval", "-f", "-", "--expression", "object.metadata.name"];
    let ran = vap(&words, &object.to_string());
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("--crds"), "{}", ran.err);
}

#[test]
fn unknown_variables_are_explained() {
    const POLICY: &str = "docs/examples/replica-limit.yaml";
    let with_variables = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: v}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  variables:
  - {name: replicas, expression: object.spec.replicas}
  - {name: names, expression: 'object.spec.template.spec.containers.map(c, c.name)'}
  validations:
  - expression: variables.replicas < 50 && variables.names.size() > 0
    messageExpression: string(variables.replicas) + ' replicas'
";
    let folder = directory("unknown-variables", &[("v.yaml", with_variables)]);
    let file = folder.join("v.yaml");
    let file = file.to_str().unwrap();
    for (policies, help) in [
        (
            &[][..],
            "the input has no ValidatingAdmissionPolicy, so there are no variables",
        ),
        (&[POLICY], "the policy `replica-limit` has no variables"),
        (&[file], "the variables are names, replicas"),
        (
            &[POLICY, file],
            "the input has 2 policies, so no variables are available; pass only the policy with the variables",
        ),
    ] {
        let ran = eval(&["variables.nothing"], policies);
        assert!(
            ran.out.contains(&format!("help: {help}\n")),
            "{help}: {}",
            ran.out
        );
    }
    // The validation and its message evaluate the variable `replicas`.
    let ran = vap(&["eval", file, "-f", OBJECT, "-v"], "");
    let lines = ran.out.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .skip_while(|line| !line.starts_with("evaluated spec.variables[0].expression"))
        .take(2)
        .collect();
    assert!(
        lines[0].ends_with(", 2 times with the same values"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("object.spec.replicas = 60 (cost"),
        "{lines:?}"
    );
}
