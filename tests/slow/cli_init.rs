//! Tests the probes that `kubectl vap test init` generates.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::path::PathBuf;

use vap_status_controller::cli::exit::Exit;
use vap_status_controller::cli::test::{self, Options};

/// Runs `init` for a policy about deployments with `spec`, and for `more` documents.
fn init(spec: &serde_json::Value, more: &str) -> test::init::InitReport {
    let mut policy = serde_json::json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    });
    policy["spec"]["matchConstraints"] = serde_json::json!({"resourceRules": [{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["deployments"],
    }]});
    let options = Options {
        paths: vec![PathBuf::from("-")],
        ..Options::default()
    };
    let input = format!("{policy}\n---\n{more}");
    test::init::run(&options, &mut input.as_bytes()).unwrap()
}

fn init_names(report: &test::init::InitReport) -> Vec<String> {
    let cases = report.probes.iter().flat_map(|probe| {
        let cases = probe["spec"]["cases"].as_array().unwrap();
        cases
            .iter()
            .map(|case| case["name"].as_str().unwrap().to_owned())
    });
    cases.collect()
}

#[test]
fn init_combines_validations_and_finds_boundaries() {
    const CPU: &str = "quantity(object.spec.template.spec.containers[0].resources.limits.cpu)";
    for (expressions, names) in [
        (
            vec![
                "object.metadata.name.matches('^[a-z]+-(dev|prod)$')".to_owned(),
                "object.spec.replicas >= 2 && object.spec.replicas <= 10".to_owned(),
            ],
            vec![
                "allowed",
                "validations[0] denies: failed expression: object.metadata.name.matches('^[a-z]+-(dev|prod)$')",
                "validations[1] denies: failed expression: object.spec.replicas >= 2 && object.spec.replicas <= 10",
                "allowed: object.spec.replicas is 10",
                "validations[1] denies object.spec.replicas 11: failed expression: object.spec.replicas >= 2 && object.spec.replicas <= 10",
            ],
        ),
        (
            vec![
                format!("{CPU}.compareTo(quantity('500m')) <= 0"),
                "object.metadata.name.matches('^1[2-7][.][0-9]+$')".to_owned(),
            ],
            vec![
                "allowed",
                "object.spec.template.spec.containers[0].resources.limits.cpu 501m",
            ],
        ),
    ] {
        let validations: Vec<_> = expressions
            .iter()
            .map(|expression| serde_json::json!({"expression": expression}))
            .collect();
        let report = init(&serde_json::json!({"validations": validations}), "");
        assert_eq!(report.exit(), Exit::Clean, "{:?}", report.diagnostics());
        let all = init_names(&report).join("\n");
        for name in names {
            let name: String = name.chars().take(100).collect();
            assert!(all.contains(&name), "{name}: {all}");
        }
    }
}

#[test]
fn init_uses_params_of_input() {
    let spec = serde_json::json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [{"name": "registries", "expression": "params.data.registries.split(',')"}],
        "validations": [
            {"expression": "object.spec.template.spec.containers.all(c, variables.registries.exists(r, c.image.startsWith(r + '/')))"},
            {"expression": "object.spec.replicas <= int(params.data.max)"},
        ],
    });
    let params = "{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: team}, \
                  data: {registries: 'a.example.com,b.example.com', max: '7'}}\n";
    let other = params.replace("limits", "other").replace("'7'", "'9'");
    let binding = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, \
                   metadata: {name: b}, spec: {policyName: p, validationActions: [Deny], \
                   paramRef: {name: limits, namespace: team, parameterNotFoundAction: Deny}}}\n";
    let report = init(&spec, &format!("{params}---\n{other}---\n{binding}"));
    assert_eq!(report.exit(), Exit::Clean, "{:?}", report.diagnostics());
    let [probe] = &report.probes[..] else {
        panic!("{:?}", report.probes)
    };
    let spec = &probe["spec"];
    assert_eq!(spec["inlineParams"][0]["metadata"]["name"], "limits");
    assert_eq!(spec["inlineBindings"][0]["paramRef"]["namespace"], "team");
    let names = init_names(&report);
    assert!(
        names
            .iter()
            .any(|name| name == "allowed: object.spec.replicas is 7"),
        "{names:?}"
    );
}

#[test]
fn init_gives_reason_for_missing_request() {
    for (expressions, reason) in [
        (
            vec!["object.metadata.name.size() > 500"],
            "generated requests makes the expression true",
        ),
        (
            vec!["object.metadata.name.size() < 500"],
            "generated requests makes the expression false",
        ),
        (
            vec![
                "object.spec.replicas > 2",
                "object.metadata.name.size() > 500",
            ],
            "validations[0]: no allowed request was found: validations[1] is not true for any request",
        ),
        (
            vec!["object.spec.replicas > 2", "nothing > 2"],
            "validations[0]: no request was found: another validation does not compile",
        ),
        (vec!["1 / 0 > object.spec.replicas"], "fails for all of the"),
    ] {
        let validations: Vec<_> = expressions
            .iter()
            .map(|expression| serde_json::json!({"expression": expression}))
            .collect();
        let report = init(&serde_json::json!({"validations": validations}), "");
        let lines = report.diagnostics().join("\n");
        assert!(lines.contains(reason), "{reason}: {lines}");
    }
    let condition = serde_json::json!({
        "matchConditions": [{"name": "never", "expression": "object.metadata.name.size() > 500"}],
        "validations": [{"expression": "object.spec.replicas > 2"}],
    });
    let lines = init(&condition, "").diagnostics().join("\n");
    assert!(
        lines.contains("the match conditions exclude all of the"),
        "{lines}"
    );
}
