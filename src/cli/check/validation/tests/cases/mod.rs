//! Test cases: policies, bindings and webhooks with one invalid field each, and the violations that upstream reports.

#![expect(clippy::too_many_lines, reason = "tables of cases")]

mod mutating;
mod webhooks;

use serde_json::{Value, json};

use super::Subject;

fn rule() -> Value {
    json!({
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments", "deployments/scale"],
        "resourceNames": ["a", "b"], "scope": "Namespaced",
    })
}

fn selector() -> Value {
    json!({
        "matchLabels": {"example.com/a": "b"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "a", "operator": "Exists"}],
    })
}

fn metadata() -> Value {
    json!({
        "name": "sound", "labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a.b/c"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": true},
            {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "v"},
        ],
    })
}

fn match_resources() -> Value {
    json!({
        "resourceRules": [rule()], "excludeResourceRules": [rule()], "matchPolicy": "Exact", "namespaceSelector": selector(),
        "objectSelector": selector(),
    })
}

/// Returns a valid policy with all fields.
fn policy() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": metadata(),
        "spec": {
            "failurePolicy": "Fail", "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConstraints": match_resources(),
            "matchConditions": [{"name": "a", "expression": "true"}, {"name": "b", "expression": "true"}],
            "variables": [{"name": "a", "expression": "1"}],
            "validations": [{"expression": "true", "message": "a", "messageExpression": "'a'", "reason": "Invalid"}],
            "auditAnnotations": [{"key": "a", "valueExpression": "'a'"}, {"key": "b", "valueExpression": "'a'"}],
        },
    })
}

/// Returns a valid binding with all fields.
fn binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata(),
        "spec": {
            "policyName": "a", "paramRef": {"name": "a", "parameterNotFoundAction": "Deny"}, "matchResources": match_resources(),
            "validationActions": ["Deny", "Audit"],
        },
    })
}

/// A case: the field to set, its value, and the violations, each as `rule field`.
type Case = (&'static str, Value, &'static [&'static str]);

fn metadata_cases() -> Vec<Case> {
    let owner = |field: &str, value: Value| {
        let mut owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "w"});
        owner[field] = value;
        json!([owner, {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "u", "controller": true}])
    };
    vec![
        ("metadata", json!(null), &["required metadata.name"]),
        ("metadata.name", json!(""), &["required metadata.name"]),
        (
            "metadata.name",
            json!("My_Policy"),
            &["invalid-name metadata.name"],
        ),
        (
            "metadata.name",
            json!("a".repeat(254)),
            &["invalid-name metadata.name"],
        ),
        ("metadata", json!({"generateName": "a-"}), &[]),
        (
            "metadata",
            json!({"generateName": "A-"}),
            &["invalid-name metadata.generateName"],
        ),
        (
            "metadata",
            json!({"generateName": "a.-"}),
            &["invalid-name metadata.generateName"],
        ),
        ("metadata.generateName", json!("a.-"), &[]),
        ("metadata.namespace", json!("any text"), &[]),
        (
            "metadata.resourceVersion",
            json!("12"),
            &["invalid-value metadata.resourceVersion"],
        ),
        ("metadata.resourceVersion", json!("0"), &[]),
        ("metadata.resourceVersion", json!("+1"), &[]),
        (
            "metadata.labels",
            json!({"a b": "c"}),
            &["invalid-name metadata.labels"],
        ),
        (
            "metadata.labels",
            json!({"a": "b c"}),
            &["invalid-name metadata.labels.a"],
        ),
        ("metadata.labels", json!({"a": null}), &[]),
        (
            "metadata.annotations",
            json!({"a b": "c"}),
            &["invalid-name metadata.annotations"],
        ),
        ("metadata.annotations", json!({"A/b": "c d"}), &[]),
        (
            "metadata.annotations",
            json!({"a": "x".repeat(262_143)}),
            &[],
        ),
        (
            "metadata.annotations",
            json!({"a": "x".repeat(262_144)}),
            &["too-large metadata.annotations"],
        ),
        (
            "metadata.finalizers",
            json!(["a b"]),
            &["invalid-name metadata.finalizers[0]"],
        ),
        (
            "metadata.finalizers",
            json!([null]),
            &["invalid-name metadata.finalizers[0]"],
        ),
        (
            "metadata.finalizers",
            json!(["orphan", "foregroundDeletion"]),
            &["invalid-value metadata.finalizers"],
        ),
        (
            "metadata.ownerReferences",
            owner("name", json!("")),
            &["required metadata.ownerReferences[0].name"],
        ),
        (
            "metadata.ownerReferences",
            owner("apiVersion", json!("a/")),
            &["required metadata.ownerReferences[0].apiVersion"],
        ),
        (
            "metadata.ownerReferences",
            owner("kind", json!("Event")),
            &["invalid-value metadata.ownerReferences[0]"],
        ),
        (
            "metadata.ownerReferences",
            owner("controller", json!(true)),
            &["invalid-value metadata.ownerReferences"],
        ),
    ]
}

/// Returns the cases for the rules and selectors below `path`.
fn match_resource_cases(path: &'static str) -> Vec<(String, Value, Vec<String>)> {
    let cases: Vec<Case> = vec![
        (
            "matchPolicy",
            json!("exact"),
            &["invalid-value matchPolicy"],
        ),
        ("matchPolicy", json!(null), &[]),
        (
            "RULE",
            json!(null),
            &[
                "required RULE.operations",
                "required RULE.apiGroups",
                "required RULE.apiVersions",
                "required RULE.resources",
            ],
        ),
        (
            "RULE.resourceNames",
            json!(["a/b"]),
            &["invalid-name RULE.resourceNames[0]"],
        ),
        (
            "RULE.resourceNames",
            json!(["", ""]),
            &["duplicate-value RULE.resourceNames[1]"],
        ),
        (
            "RULE.operations",
            json!(["*", "CREATE"]),
            &["invalid-value RULE.operations"],
        ),
        (
            "RULE.operations",
            json!(["create"]),
            &["invalid-value RULE.operations[0]"],
        ),
        ("RULE.operations", json!(["CREATE", "CREATE"]), &[]),
        (
            "RULE.apiGroups",
            json!(["*", "apps"]),
            &["invalid-value RULE.apiGroups"],
        ),
        ("RULE.apiGroups", json!([""]), &[]),
        (
            "RULE.apiVersions",
            json!(["*", "v1"]),
            &["invalid-value RULE.apiVersions"],
        ),
        (
            "RULE.apiVersions",
            json!([""]),
            &["required RULE.apiVersions[0]"],
        ),
        ("RULE.resources", json!([]), &["required RULE.resources"]),
        (
            "RULE.resources",
            json!([null]),
            &["required RULE.resources[0]"],
        ),
        ("RULE.resources", json!(["*", "pods/exec"]), &[]),
        (
            "RULE.resources",
            json!(["*", "pods"]),
            &["invalid-value RULE.resources"],
        ),
        ("RULE.resources", json!(["pods", "*"]), &[]),
        (
            "RULE.resources",
            json!(["*/*", "pods/exec"]),
            &["invalid-value RULE.resources"],
        ),
        (
            "RULE.resources",
            json!(["pods/*", "pods/exec"]),
            &["invalid-value RULE.resources[1]"],
        ),
        ("RULE.resources", json!(["pods/exec", "pods/*"]), &[]),
        (
            "RULE.resources",
            json!(["*/scale", "pods/scale"]),
            &["invalid-value RULE.resources[1]"],
        ),
        (
            "RULE.scope",
            json!("namespaced"),
            &["invalid-value RULE.scope"],
        ),
        ("RULE.scope", json!(""), &["invalid-value RULE.scope"]),
        (
            "SELECTOR.matchLabels",
            json!({"a b": ""}),
            &["invalid-name SELECTOR.matchLabels"],
        ),
        (
            "SELECTOR.matchExpressions[0].operator",
            json!("in"),
            &["invalid-value SELECTOR.matchExpressions[0].operator"],
        ),
        (
            "SELECTOR.matchExpressions[0].operator",
            json!(null),
            &["required SELECTOR.matchExpressions[0].operator"],
        ),
        (
            "SELECTOR.matchExpressions[0].values",
            json!([]),
            &["required SELECTOR.matchExpressions[0].values"],
        ),
        (
            "SELECTOR.matchExpressions[0].values",
            json!(["a b"]),
            &["invalid-name SELECTOR.matchExpressions[0].values[0]"],
        ),
        (
            "SELECTOR.matchExpressions[1].values",
            json!(["a"]),
            &["invalid-value SELECTOR.matchExpressions[1].values"],
        ),
        (
            "SELECTOR.matchExpressions[0].key",
            json!(""),
            &["required SELECTOR.matchExpressions[0].key"],
        ),
        (
            "SELECTOR.matchExpressions[0].key",
            json!("a b"),
            &["invalid-name SELECTOR.matchExpressions[0].key"],
        ),
    ];
    let mut all = Vec::new();
    for (field, value, violations) in cases {
        for (rule, selector) in [
            ("resourceRules[0]", "namespaceSelector"),
            ("excludeResourceRules[0]", "objectSelector"),
        ] {
            let named = |text: &str| text.replace("RULE", rule).replace("SELECTOR", selector);
            let violations = violations.iter().map(|violation| {
                let violation = named(violation);
                let (rule, field) = violation.split_once(' ').unwrap();
                format!("{rule} {path}.{field}")
            });
            all.push((
                format!("{path}.{}", named(field)),
                value.clone(),
                violations.collect(),
            ));
        }
    }
    all
}

fn policy_cases() -> Vec<Case> {
    let many = |n: usize, name: &str, subject: &str| {
        let items = (0..n).map(|n| json!({name: format!("n{n}"), subject: "'a' == 'a'"}));
        Value::Array(items.collect())
    };
    vec![
        (
            "spec",
            json!(null),
            &[
                "required spec.matchConstraints",
                "required spec.validations",
            ],
        ),
        (
            "spec.failurePolicy",
            json!("ignore"),
            &["invalid-value spec.failurePolicy"],
        ),
        (
            "spec.failurePolicy",
            json!(""),
            &["invalid-value spec.failurePolicy"],
        ),
        ("spec.failurePolicy", json!(null), &[]),
        (
            "spec.paramKind",
            json!({}),
            &[
                "required spec.paramKind.apiVersion",
                "required spec.paramKind.kind",
            ],
        ),
        (
            "spec.paramKind.apiVersion",
            json!("example.com"),
            &["invalid-name spec.paramKind.apiVersion"],
        ),
        (
            "spec.paramKind.kind",
            json!("Config Map"),
            &["invalid-name spec.paramKind.kind"],
        ),
        (
            "spec.matchConstraints",
            json!({}),
            &["required spec.matchConstraints.resourceRules"],
        ),
        ("spec.matchConditions", many(64, "name", "expression"), &[]),
        (
            "spec.matchConditions",
            many(65, "name", "expression"),
            &["too-large spec.matchConditions"],
        ),
        (
            "spec.matchConditions[1].name",
            json!("a"),
            &["duplicate-value spec.matchConditions[1].name"],
        ),
        (
            "spec.matchConditions[1].name",
            json!(""),
            &["required spec.matchConditions[1].name"],
        ),
        (
            "spec.matchConditions[1].name",
            json!("a b"),
            &["invalid-name spec.matchConditions[1].name"],
        ),
        (
            "spec.matchConditions[1].name",
            json!("example.com/B_c"),
            &[],
        ),
        (
            "spec.variables[0].name",
            json!(" "),
            &["required spec.variables[0].name"],
        ),
        (
            "spec.variables[0].name",
            json!("a-b"),
            &["invalid-name spec.variables[0].name"],
        ),
        (
            "spec.variables[0].expression",
            json!(" \n"),
            &["required spec.variables[0].expression"],
        ),
        (
            "spec.validations[0].messageExpression",
            json!(" "),
            &["invalid-value spec.validations[0].messageExpression"],
        ),
        ("spec.validations[0].messageExpression", json!(""), &[]),
        (
            "spec.validations[0].message",
            json!("\n"),
            &["invalid-value spec.validations[0].message"],
        ),
        (
            "spec.validations[0].message",
            json!("a\rb"),
            &["invalid-value spec.validations[0].message"],
        ),
        ("spec.validations[0].message", json!(" a\n"), &[]),
        (
            "spec.validations[0].reason",
            json!("Unauthorized"),
            &["invalid-value spec.validations[0].reason"],
        ),
        (
            "spec.auditAnnotations",
            many(20, "key", "valueExpression"),
            &[],
        ),
        (
            "spec.auditAnnotations",
            many(21, "key", "valueExpression"),
            &["too-large spec.auditAnnotations"],
        ),
        (
            "spec.auditAnnotations[1].key",
            json!("a"),
            &["duplicate-value spec.auditAnnotations[1].key"],
        ),
        (
            "spec.auditAnnotations[1].key",
            json!(""),
            &["required spec.auditAnnotations[1].key"],
        ),
        (
            "spec.auditAnnotations[1].key",
            json!("a/b"),
            &["invalid-name spec.auditAnnotations[1].key"],
        ),
        (
            "spec.auditAnnotations[1].valueExpression",
            json!(format!(" {} ", "x".repeat(5120))),
            &[],
        ),
        (
            "spec.auditAnnotations[1].valueExpression",
            json!("x".repeat(5121)),
            &["too-large spec.auditAnnotations[1].valueExpression"],
        ),
    ]
}

fn binding_cases() -> Vec<Case> {
    vec![
        (
            "spec",
            json!(null),
            &[
                "required spec.policyName",
                "required spec.validationActions",
            ],
        ),
        ("spec.policyName", json!(""), &["required spec.policyName"]),
        (
            "spec.policyName",
            json!("My_Policy"),
            &["invalid-name spec.policyName"],
        ),
        (
            "spec.paramRef",
            json!({}),
            &[
                "required spec.paramRef",
                "required spec.paramRef.parameterNotFoundAction",
            ],
        ),
        (
            "spec.paramRef.selector",
            json!({}),
            &["invalid-value spec.paramRef.name"],
        ),
        (
            "spec.paramRef.name",
            json!("a/b"),
            &["invalid-name spec.paramRef.name"],
        ),
        (
            "spec.paramRef.parameterNotFoundAction",
            json!("allow"),
            &["invalid-value spec.paramRef.parameterNotFoundAction"],
        ),
        (
            "spec.paramRef",
            json!({"selector": {"matchLabels": {"a b": "c"}, "matchExpressions": [
            {"key": "a b", "operator": "In", "values": ["a b"]}, {"key": "", "operator": "in"}, {"key": "a"}, {"key": "a", "operator": "In"},
        ]}, "parameterNotFoundAction": "Deny"}),
            &[
                "invalid-name spec.paramRef.selector.matchLabels",
                "required spec.paramRef.selector.matchExpressions[2].operator",
                "invalid-value spec.paramRef.selector.matchExpressions[1].operator",
                "required spec.paramRef.selector.matchExpressions[3].values",
                "required spec.paramRef.selector.matchExpressions[1].key",
                "invalid-name spec.paramRef.selector.matchExpressions[0].key",
                "invalid-name spec.paramRef.selector.matchExpressions[0].values[0]",
            ],
        ),
        (
            "spec.validationActions",
            json!([]),
            &["required spec.validationActions"],
        ),
        (
            "spec.validationActions",
            json!(["deny"]),
            &["invalid-value spec.validationActions[0]"],
        ),
        (
            "spec.validationActions",
            json!([null]),
            &["invalid-value spec.validationActions[0]"],
        ),
        (
            "spec.validationActions",
            json!(["Deny", "Deny"]),
            &["duplicate-value spec.validationActions[1]"],
        ),
        (
            "spec.validationActions",
            json!(["Deny", "Warn"]),
            &["invalid-value spec.validationActions"],
        ),
    ]
}

/// Returns a copy of an object in which a field is set.
fn set(object: &Value, field: &str, value: &Value) -> Value {
    let mut changed = object.clone();
    let mut at = &mut changed;
    for part in field.split(['.', '[']) {
        at = match part.strip_suffix(']') {
            Some(n) => &mut at[n.parse::<usize>().unwrap()],
            None => &mut at[part],
        };
    }
    *at = value.clone();
    changed
}

/// Returns all cases, each as the kind, the object, and the violations in it.
pub(super) fn cases() -> Vec<(Subject, Value, Vec<String>)> {
    let texts = |violations: &[&str]| {
        violations
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let mut cases = Vec::new();
    for (subject, sound, of_kind, path) in [
        (
            Subject::Policy,
            policy(),
            policy_cases(),
            Some("spec.matchConstraints"),
        ),
        (
            Subject::Binding,
            binding(),
            binding_cases(),
            Some("spec.matchResources"),
        ),
        (
            Subject::MutatingPolicy,
            mutating::mutating_policy(),
            [mutating::shared(policy_cases()), mutating::mutation_cases()].concat(),
            Some("spec.matchConstraints"),
        ),
        (
            Subject::MutatingBinding,
            mutating::mutating_binding(),
            [
                mutating::shared(binding_cases()),
                mutating::mutating_binding_cases(),
            ]
            .concat(),
            Some("spec.matchResources"),
        ),
        (
            Subject::Webhooks,
            webhooks::webhooks(),
            webhooks::webhook_cases(),
            None,
        ),
    ] {
        cases.push((subject, sound.clone(), Vec::new()));
        for (field, value, violations) in metadata_cases().into_iter().chain(of_kind) {
            cases.push((subject, set(&sound, field, &value), texts(violations)));
        }
        for (field, value, violations) in path.map(match_resource_cases).into_iter().flatten() {
            cases.push((subject, set(&sound, &field, &value), violations));
        }
    }
    cases
}
