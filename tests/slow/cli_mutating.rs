//! Tests `kubectl vap eval`, `audit` and `diff` with mutating policies.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};

use crate::cli_commands::{deployment, directory, vap};

/// Returns a mutating and a validating policy. The mutating policy limits the replicas to `replicas`, and sets the
/// label `label`. The validating policy requires the label `team` and at most 5 replicas.
fn mutating(replicas: i64, label: &str) -> String {
    let rules = json!({"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}]});
    let object = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "limit"}, "spec": spec});
    let patch = format!(
        "object.spec.replicas > {replicas} ? [JSONPatch{{op: 'replace', path: '/spec/replicas', value: {replicas}}}] : []"
    );
    let applied = format!(
        "Object{{metadata: Object.metadata{{labels: {{'{label}': object.metadata.namespace}}}}}}"
    );
    let documents = [
        object(
            "MutatingAdmissionPolicy",
            json!({"matchConstraints": rules, "reinvocationPolicy": "Never", "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}},
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": applied}},
            ]}),
        ),
        object(
            "MutatingAdmissionPolicyBinding",
            json!({"policyName": "limit"}),
        ),
        object(
            "ValidatingAdmissionPolicy",
            json!({"matchConstraints": rules, "validations": [
                {"expression": "object.spec.replicas <= 5 && 'team' in object.metadata.labels"}]}),
        ),
    ];
    documents
        .map(|document| format!("---\n{document}\n"))
        .concat()
}

#[test]
fn eval_mutates_before_validation() {
    let folder = directory("eval-mutating", &[("p.yaml", &mutating(5, "team"))]);
    let policies = folder.join("p.yaml");
    let arguments = [
        "eval",
        policies.to_str().unwrap(),
        "--object",
        "-",
        "-o",
        "json",
    ];
    let ran = vap(&arguments, &deployment("web", 9).to_string());
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let report = ran.json();
    assert_eq!(report["decision"], "Allow");
    let [of_mutating, validating] = [&report["policies"][0], &report["policies"][1]];
    assert_eq!(of_mutating["kind"], "MutatingAdmissionPolicy");
    assert_eq!(of_mutating["verdict"], "Mutated");
    let results: Vec<&Value> = of_mutating["mutations"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(results[0]["result"], "changed");
    assert_eq!(
        of_mutating["mutated"]["patch"],
        json!([
            {"op": "add", "path": "/metadata/labels", "value": {"team": "shop"}},
            {"op": "replace", "path": "/spec/replicas", "value": 5},
        ])
    );
    assert_eq!(validating["verdict"], "Allowed");
    assert_eq!(report["mutated"]["object"]["spec"]["replicas"], 5);
    let summary = &report["summary"];
    assert_eq!(
        (&summary["mutated"], &summary["allowed"]),
        (&json!(1), &json!(1))
    );

    // The mutating policy cannot be evaluated, so the decision is unknown.
    let broken = mutating(5, "team").replace("'team': object", "'team': objet");
    let folder = directory("eval-mutating-broken", &[("p.yaml", &broken)]);
    let policies = folder.join("p.yaml");
    let arguments = [
        "eval",
        policies.to_str().unwrap(),
        "--object",
        "-",
        "-o",
        "json",
    ];
    let ran = vap(&arguments, &deployment("web", 3).to_string());
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    let report = ran.json();
    assert_eq!(report["policies"][0]["verdict"], "Refused");
    let why = report["notMutated"].as_str().unwrap();
    assert!(why.contains("mutating policy limit"), "{why}");
}

/// If two mutating policies overwrite the same field, the API server may apply them in either order.
#[test]
fn eval_tries_both_orders_of_mutating_policies() {
    let one = mutating(5, "team");
    let other = mutating(4, "team").replace("\"limit\"", "\"other\"");
    let text = one + &other;
    let folder = directory("eval-orders", &[("p.yaml", &text)]);
    let policies = folder.join("p.yaml");
    let arguments = [
        "eval",
        policies.to_str().unwrap(),
        "--object",
        "-",
        "-o",
        "json",
    ];
    let ran = vap(&arguments, &deployment("web", 9).to_string());
    // The result is the same in both orders: 4 is the smaller of the two limits.
    assert_eq!(ran.json()["mutated"]["object"]["spec"]["replicas"], 4);
    let text = text.replace("value: 4", "value: 6");
    let folder = directory("eval-orders-differ", &[("p.yaml", &text)]);
    let policies = folder.join("p.yaml");
    let arguments = [
        "eval",
        policies.to_str().unwrap(),
        "--object",
        "-",
        "-o",
        "json",
    ];
    let report = vap(&arguments, &deployment("web", 9).to_string()).json();
    let why = report["notMutated"].as_str().unwrap_or_default();
    assert!(why.contains("order of policies"), "{report}");
}

#[test]
fn audit_shows_mutations() {
    let folder = directory("audit-mutating", &[("p.yaml", &mutating(50, "team"))]);
    let policies = folder.join("p.yaml");
    let objects = "docs/examples/manifests.yaml";
    let policies = policies.to_str().unwrap();
    let ran = vap(&["audit", policies, "-f", objects, "-o", "json"], "");
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    let report = ran.json();
    assert_eq!(report["summary"]["changed"], 3, "{report}");
    let of_mutating = &report["policies"][1];
    assert_eq!(of_mutating["kind"], "MutatingAdmissionPolicy");
    assert_eq!(
        (&of_mutating["matched"], &of_mutating["changed"]),
        (&json!(3), &json!(3))
    );
    let results = report["objects"].as_array().unwrap().iter();
    let results: Vec<&Value> = results
        .flat_map(|it| it["results"].as_array().unwrap())
        .collect();
    let of_web = results
        .iter()
        .find(|it| it["patch"][1]["path"] == "/spec/replicas");
    let of_web = of_web.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(of_web["policy"], "MutatingAdmissionPolicy/limit");
    let change = of_web["change"].as_str().unwrap();
    assert!(
        change.contains("\n-  replicas: 60\n+  replicas: 50\n"),
        "{change}"
    );
    let text = vap(&["audit", policies, "-f", objects], "").out;
    assert!(
        text.contains("3 objects matched: 3 would change, 0 denied"),
        "{text}"
    );
    assert!(text.contains("\n    +    team: shop\n"), "{text}");
}

#[test]
fn diff_shows_changed_mutations() {
    let [old, new] = [mutating(50, "team"), mutating(40, "team")];
    let folder = directory("diff-mutating", &[("old.yaml", &old), ("new.yaml", &new)]);
    let [old, new] = ["old.yaml", "new.yaml"].map(|name| folder.join(name));
    let [old, new] = [old.to_str().unwrap(), new.to_str().unwrap()];
    let objects = "docs/examples/manifests.yaml";
    let same = vap(&["diff", old, old, "-f", objects, "-o", "json"], "");
    assert_eq!(same.status, 0, "{}{}", same.out, same.err);
    let ran = vap(&["diff", old, new, "-f", objects, "-o", "json"], "");
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    let report = ran.json();
    let group = &report["groups"][0];
    assert_eq!(group["policy"], "MutatingAdmissionPolicy/limit");
    let cause = &group["cause"];
    let cause = if cause.is_null() {
        &group["causes"][0]
    } else {
        cause
    };
    assert_eq!(cause["kind"], "Mutation", "{report}");
    assert_eq!(
        cause["new"], "+labels:, +team: shop, -replicas: 60, +replicas: 40",
        "{report}"
    );
}

/// Returns the report of `eval` for an object of a subresource and a policy with one mutation.
fn subresource_report(resource: &str, object: &Value, mutation: &Value) -> Value {
    let (resource, subresource) = resource.split_once('/').unwrap();
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"], "resources": ["*/*"]}]},
        "mutations": [mutation]}});
    let folder = directory(
        &format!("eval-{subresource}-{}", mutation["patchType"]),
        &[("p.yaml", &policy.to_string())],
    );
    let policies = folder.join("p.yaml");
    let arguments = [
        "eval",
        policies.to_str().unwrap(),
        "--object",
        "-",
        "-o",
        "json",
        "--resource",
        resource,
        "--subresource",
        subresource,
    ];
    vap(&arguments, &object.to_string()).json()
}

#[test]
fn subresource_objects_can_be_patched_but_not_applied() {
    let patch = |path: &str, value: &str| {
        let patch = format!("[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]");
        json!({"patchType": "JSONPatch", "jsonPatch": {"expression": patch}})
    };
    let apply = json!({"patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": "Object{metadata: Object.metadata{name: 'a'}}"}});
    let object = |api_version: &str, kind: &str, spec: &Value| {
        json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
    };
    let scale = object("autoscaling/v1", "Scale", &json!({"replicas": 9}));
    let token = object("authentication.k8s.io/v1", "TokenRequest", &json!({}));
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": "web", "namespace": "shop"}});
    for (resource, object, path, value, expected) in [
        ("deployments/scale", &scale, "/spec/replicas", "2", json!(2)),
        (
            "serviceaccounts/token",
            &token,
            "/spec/audiences",
            "['a']",
            json!(["a"]),
        ),
        (
            "pods.v1/eviction",
            &eviction,
            "/deleteOptions",
            "{'gracePeriodSeconds': 5}",
            json!({"gracePeriodSeconds": 5}),
        ),
    ] {
        let report = subresource_report(resource, object, &patch(path, value));
        assert_eq!(report["decision"], "Allow", "{report:#}");
        let mutated = &report["mutated"]["object"];
        assert_eq!(mutated.pointer(path), Some(&expected), "{report:#}");
        let report = subresource_report(resource, object, &apply);
        assert_eq!(report["decision"], "Deny", "{report:#}");
        let why = report["policies"][0]["why"].as_str().unwrap();
        let kind = object["kind"].as_str().unwrap();
        let text = format!(
            "no corresponding type for {}, Kind={kind}",
            object["apiVersion"].as_str().unwrap()
        );
        assert!(why.contains(&text), "{why}");
    }
}

#[test]
fn resource_names_match_kubectl() {
    let run = |resource: &str| {
        let folder = directory("eval-resource", &[("p.yaml", &mutating(5, "team"))]);
        let policies = folder.join("p.yaml");
        let arguments = [
            "eval",
            policies.to_str().unwrap(),
            "--object",
            "-",
            "--resource",
            resource,
        ];
        vap(&arguments, &deployment("web", 9).to_string())
    };
    for resource in ["deployments", "deployments.apps", "deployments.v1.apps"] {
        let ran = run(resource);
        assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("apps/v1 deployments"), "{}", ran.out);
    }
    for (resource, why) in [
        ("deployment", "no resource `deployment` is served"),
        ("deployments.v2.apps", "is served"),
        ("events", "add the group"),
    ] {
        let ran = run(resource);
        assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
}
