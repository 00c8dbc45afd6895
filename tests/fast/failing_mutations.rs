//! Tests findings of `kubectl vap check` about mutations that cannot be applied. A finding must have upstream's
//! message, and its location must be in the expression. Valid mutations must have no findings.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};

use crate::manifest;

/// The resource that the policy's rule matches, and the policy's operations and match condition.
struct Asked {
    rule: (&'static str, &'static str, &'static str),
    operation: &'static str,
    condition: &'static str,
}

const POD: Asked = created("", "v1", "pods");
const DEPLOYMENT: Asked = created("apps", "v1", "deployments");

const fn created(group: &'static str, version: &'static str, resource: &'static str) -> Asked {
    Asked {
        rule: (group, version, resource),
        operation: "CREATE",
        condition: "true",
    }
}

/// Returns a mutating policy for a resource and an operation. `spec` contains the other fields of the policy's spec.
fn policy(
    (group, version, resource): (&str, &str, &str),
    operation: &str,
    mut spec: Value,
) -> Value {
    spec["reinvocationPolicy"] = json!("Never");
    spec["matchConstraints"] = json!({"resourceRules": [{
        "apiGroups": [group], "apiVersions": [version], "operations": [operation], "resources": [resource]
    }]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    })
}

fn findings(asked: &Asked, mutation: &Value) -> Vec<Value> {
    findings_of("failing-mutation", asked, mutation)
}

fn findings_of(rule: &str, asked: &Asked, mutation: &Value) -> Vec<Value> {
    let condition = json!({"name": "c", "expression": asked.condition});
    let spec = json!({"matchConditions": [condition], "mutations": [mutation]});
    let policy = policy(asked.rule, asked.operation, spec);
    let actual = manifest::findings(&policy.to_string(), &[]).into_iter();
    actual.filter(|finding| finding["rule"] == rule).collect()
}

fn applied(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patched(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// Asserts that the mutation has one finding. It must be a warning with a sample request, and its message must contain
/// `words`.
#[track_caller]
fn fails(asked: &Asked, mutation: &Value, words: &str) {
    let findings = findings(asked, mutation);
    assert_eq!(findings.len(), 1, "{mutation}: {findings:#?}");
    assert_eq!(findings[0]["severity"], "warning", "{mutation}");
    let message = findings[0]["message"].as_str().unwrap();
    assert!(message.contains(words), "{mutation}: {message}");
    assert!(findings[0]["witness"]["request"].is_object(), "{mutation}");
}

#[track_caller]
fn holds(asked: &Asked, mutation: &Value) {
    let findings = findings(asked, mutation);
    assert!(findings.is_empty(), "{mutation}: {findings:#?}");
}

#[test]
fn mutations_of_atomic_lists_are_reported() {
    let atomic = "may not mutate atomic arrays, maps or structs: ";
    let tolerations =
        r#"Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "a"}]}}"#;
    fails(
        &POD,
        &applied(tolerations),
        &format!("{atomic}.spec.tolerations"),
    );
    let secrets = r#"Object{imagePullSecrets: [Object.imagePullSecrets{name: "y"}]}"#;
    let accounts = created("", "v1", "serviceaccounts");
    fails(
        &accounts,
        &applied(secrets),
        &format!("{atomic}.imagePullSecrets"),
    );
    let selector = r#"Object{spec: Object.spec{selector: {"x": "y"}}}"#;
    fails(&created("", "v1", "services"), &applied(selector), atomic);
    // This list has `x-kubernetes-list-type: map`, so it can be merged.
    let containers =
        r#"Object{spec: Object.spec{containers: [Object.spec.containers{name: "a", image: "b"}]}}"#;
    holds(&POD, &applied(containers));
}

/// Source: `k8s.io/apiserver` `pkg/endpoints/handlers/create.go` (mutating admission precedes `BeforeCreate`, which
/// generates the name).
#[test]
fn reads_of_names_that_are_not_generated_yet_are_reported() {
    let labels =
        |name: &str| format!("Object{{metadata: Object.metadata{{labels: {{'n': {name}}}}}}}");
    let by_pod_name = Asked {
        condition: "object.metadata.name != 'a'",
        ..POD
    };
    let updated = Asked {
        operation: "UPDATE",
        ..POD
    };
    let or_prefix = "object.metadata.?name.orValue(object.metadata.?generateName.orValue(''))";
    let guarded = "has(object.metadata.name) ? object.metadata.name : 'x'";
    for (asked, mutation, field) in [
        (
            &POD,
            applied(&labels("object.metadata.name")),
            Some("object.metadata.name"),
        ),
        (&POD, applied(&labels("request.name")), Some("request.name")),
        (
            &DEPLOYMENT,
            patched(
                "[JSONPatch{op: 'add', path: '/spec/paused', value: object.metadata.name == 'a'}]",
            ),
            Some("object.metadata.name"),
        ),
        (
            &by_pod_name,
            applied(&labels("'x'")),
            Some("object.metadata.name"),
        ),
        (&updated, applied(&labels("object.metadata.name")), None),
        (&POD, applied(&labels(or_prefix)), None),
        (&POD, applied(&labels(guarded)), None),
    ] {
        let findings = findings_of("absent-field", asked, &mutation);
        let Some(field) = field else {
            assert!(findings.is_empty(), "{mutation}: {findings:#?}");
            continue;
        };
        assert_eq!(findings.len(), 1, "{mutation}: {findings:#?}");
        let message = findings[0]["message"].as_str().unwrap();
        let start = format!("`{field}` may be absent: CREATE of a ");
        assert!(message.starts_with(&start), "{message}");
        assert!(
            message.contains("generateName in place of a name"),
            "{message}"
        );
        let metadata = &findings[0]["witness"]["request"]["object"]["metadata"];
        assert_eq!(metadata["generateName"], "example-", "{metadata}");
        assert!(metadata["name"].is_null(), "{metadata}");
        assert!(findings[0]["fix"].is_null(), "{:#}", findings[0]);
    }
}

/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`validateContainers`, `supportedPullPolicies`).
#[test]
fn misspelled_enumeration_values_are_reported() {
    let pull = |policy: &str| {
        applied(&format!(
            "Object{{spec: Object.spec{{containers: object.spec.containers.map(c, \
             Object.spec.containers{{name: c.name, imagePullPolicy: '{policy}'}})}}}}"
        ))
    };
    let misspelled = findings_of("impossible-value", &POD, &pull("always"));
    assert_eq!(misspelled.len(), 1, "{misspelled:#?}");
    assert_eq!(misspelled[0]["severity"], "warning");
    let help = misspelled[0]["help"].as_str().unwrap();
    assert!(help.starts_with("did you mean `Always`?"), "{help}");
    assert!(findings_of("impossible-value", &POD, &pull("Always")).is_empty());
}

#[test]
fn mistyped_apply_configuration_is_reported() {
    let text = "expected string, got &value.valueUnstructured{Value:1}";
    let name = "Object{metadata: Object.metadata{name: 1}}";
    fails(&POD, &applied(name), text);
    let labels = r#"Object{metadata: Object.metadata{labels: {"x": 1}}}"#;
    fails(&POD, &applied(labels), text);
    let fraction = "Object{spec: Object.spec{replicas: 2.5}}";
    fails(
        &DEPLOYMENT,
        &applied(fraction),
        "cannot convert float64 to int32",
    );
    holds(
        &DEPLOYMENT,
        &applied("Object{spec: Object.spec{replicas: 5.0}}"),
    );
}

#[test]
fn apply_configuration_for_kind_without_schema_is_reported() {
    let scale = Asked {
        operation: "UPDATE",
        ..created("apps", "v1", "deployments/scale")
    };
    let replicas = "Object{spec: Object.spec{replicas: 2}}";
    let words = "no corresponding type for autoscaling/v1, Kind=Scale";
    fails(&scale, &applied(replicas), words);
    let patch = r#"[JSONPatch{op: "replace", path: "/spec/replicas", value: 2}]"#;
    let guarded = format!("has(object.spec.replicas) ? {patch} : []");
    holds(&scale, &patched(&guarded));
}

#[test]
fn inapplicable_patches_are_reported() {
    for (patch, words) in [
        (
            r#"op: "ad", path: "/spec/replicas", value: 1"#,
            "JSON Patch",
        ),
        (
            r#"op: "replace", path: "/spec/replcas", value: 1"#,
            "unknown field \"spec.replcas\"",
        ),
        (
            r#"op: "add", path: "/spec/replicas", value: "3""#,
            "cannot unmarshal string",
        ),
        (
            r#"op: "add", path: "/metadata/annotations/a/b", value: "3""#,
            "missing",
        ),
        (
            r#"op: "add", path: "/metadata/labels/x", value: "3""#,
            "/metadata/labels/x",
        ),
    ] {
        fails(
            &DEPLOYMENT,
            &patched(&format!("[JSONPatch{{{patch}}}]")),
            words,
        );
    }
    let guarded = r#"has(object.metadata.labels) ? [JSONPatch{op: "add", path: "/metadata/labels/x", value: "3"}]
        : [JSONPatch{op: "add", path: "/metadata/labels", value: {"x": "3"}}]"#;
    holds(&DEPLOYMENT, &patched(guarded));
}

#[test]
fn witness_satisfies_conditions_of_branch() {
    let asked = Asked {
        condition: "has(object.metadata.labels) && 'team' in object.metadata.labels",
        ..POD
    };
    let add = r#"[JSONPatch{op: "add", path: "/metadata/labels/x", value: "3"}]"#;
    holds(&asked, &patched(add));
    let branch = r#"has(object.spec.nodeName) ? Object{spec: Object.spec{nodeSelector: {"a": "b"}}} : Object{}"#;
    let findings = findings(&asked, &applied(branch));
    assert_eq!(findings.len(), 1, "{findings:#?}");
    let object = &findings[0]["witness"]["request"]["object"];
    assert!(object["metadata"]["labels"]["team"].is_string(), "{object}");
    assert!(object["spec"]["nodeName"].is_string(), "{object}");
}

/// Returns the message and the help of each finding for a policy with these mutations.
fn messages_of(rule: &str, mutations: &[Value]) -> Vec<String> {
    let policy = policy(DEPLOYMENT.rule, "CREATE", json!({"mutations": mutations}));
    let actual = manifest::findings(&policy.to_string(), &[]).into_iter();
    let actual = actual.filter(|finding| finding["rule"] == rule);
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    actual
        .map(|finding| format!("{}; {}", text(&finding, "message"), text(&finding, "help")))
        .collect()
}

/// Asserts that each message contains the string in `words` with the same index.
#[track_caller]
fn contain(messages: &[String], words: &[&str]) {
    assert_eq!(messages.len(), words.len(), "{messages:#?}");
    for (message, words) in messages.iter().zip(words) {
        assert!(message.contains(words), "{words}: {messages:#?}");
    }
}

#[test]
fn literals_of_patches_are_checked() {
    for (operation, words) in [
        (
            r#"op: "add", path: "spec/paused", value: true"#,
            "the path `spec/paused` does not start with `/`: CREATE of a Deployment fails",
        ),
        (
            r#"op: "add", path: "spec.paused", value: true"#,
            "write `/spec/paused`",
        ),
        (
            r#"op: "set", path: "/spec/paused", value: true"#,
            "`set` is not an operation of a JSON patch: CREATE of a Deployment fails",
        ),
        (
            r#"op: "replac", path: "/spec/replicas", value: 2"#,
            "did you mean `replace`?",
        ),
        (
            r#"op: "move", path: "/spec/paused""#,
            "the operation `move` has no `from`",
        ),
        (
            r#"op: "add", path: "/spec/replica", value: 3"#,
            "did you mean `replicas`?",
        ),
        (
            r#"op: "add", path: "/spec/priorityClassName", value: "low""#,
            "did you mean `/spec/template/spec/priorityClassName`?",
        ),
        (
            r#"op: "add", path: "/spec/jobTemplate/spec/template/spec/priorityClassName", value: "low""#,
            "did you mean `/spec/template/spec/priorityClassName`?",
        ),
        (
            r#"op: "add", path: "/spec/replicas", value: "3""#,
            "`/spec/replicas` is an integer, but the value is a string",
        ),
        (
            r#"op: "add", path: "/spec/template/spec/containers", value: {"name": "x"}"#,
            "append an item with the path `/spec/template/spec/containers/-`",
        ),
        (
            r#"op: "add", path: "/spec/template/spec/containers/-", value: {"image": "x"}"#,
            "lacks `name`, so the API server rejects the object",
        ),
    ] {
        let mutation = patched(&format!("[JSONPatch{{{operation}}}]"));
        contain(&messages_of("failing-mutation", &[mutation]), &[words]);
    }
    // The path is also checked with the escaped key. The map that contains the key may be absent.
    let unescaped = r#"[JSONPatch{op: "add", path: "/metadata/labels/a.b/c", value: "x"}]"#;
    contain(
        &messages_of("failing-mutation", &[patched(unescaped)]),
        &[
            "CREATE of a Deployment without metadata.labels fails",
            "in a key, `~1` stands for `/`: write `/metadata/labels/a.b~1c`",
        ],
    );
    for operation in [
        r#"op: "add", path: "/spec/template/spec/containers/-", value: {"name": "x", "image": "y"}"#,
        r#"op: "add", path: "/metadata/labels", value: {"a.b/c": "x"}"#,
        r#"op: "test", path: "/spec/nothing", value: null"#,
        r#"op: "add", path: "/spec/template/spec/terminationGracePeriodSeconds", value: 5"#,
    ] {
        let mutation = patched(&format!("[JSONPatch{{{operation}}}]"));
        contain(&messages_of("failing-mutation", &[mutation]), &[]);
    }
}

#[test]
fn list_items_without_key_are_reported() {
    let item = |fields: &str| {
        applied(&format!(
            "Object{{spec: Object.spec{{template: Object.spec.template{{spec: Object.spec.template.spec{{containers: \
             [Object.spec.template.spec.containers{{{fields}}}]}}}}}}}}"
        ))
    };
    let messages = messages_of("failing-mutation", &[item(r#"image: "x""#)]);
    contain(
        &messages,
        &["the item of `spec.template.spec.containers` lacks `name`"],
    );
    contain(
        &messages_of("failing-mutation", &[item(r#"name: "x", image: "y""#)]),
        &[],
    );
}

#[test]
fn failures_are_reported_for_each_mutation_and_operation() {
    let mutations = [
        patched(
            r#"[JSONPatch{op: "set", path: "/spec/paused", value: true}, JSONPatch{op: "add", path: "/spec/replica", value: 1}]"#,
        ),
        applied("Object{spec: Object.spec{replicas: 1 +}}"),
        patched(r#"[JSONPatch{op: "remove", path: "/metadata/labels/a"}]"#),
    ];
    let messages = messages_of("failing-mutation", &mutations);
    contain(&messages, &["`set`", "`replica`", "doc is missing path"]);
}

#[test]
fn reads_of_absent_values_in_mutations_are_reported() {
    let labelled = |value: &str| {
        applied(&format!(
            "Object{{metadata: Object.metadata{{labels: {{'a': {value}}}}}}}"
        ))
    };
    let node = "object.spec.template.spec.nodeName";
    let messages = messages_of("absent-field", &[labelled(node)]);
    contain(
        &messages,
        &["`object.spec.template.spec.nodeName` may be absent: CREATE of a Deployment"],
    );
    let guarded = format!("has({node}) ? {node} : 'x'");
    contain(&messages_of("absent-field", &[labelled(&guarded)]), &[]);
    // The first mutation adds the label that the second mutation reads.
    let added = [labelled("'x'"), labelled("object.metadata.labels['a']")];
    contain(&messages_of("absent-field", &added), &[]);
    let swapped = [labelled("object.metadata.labels['a']"), labelled("'x'")];
    contain(
        &messages_of("absent-field", &swapped),
        &["`object.metadata.labels` may be absent"],
    );
}

#[test]
fn failure_after_failing_mutation_is_hidden() {
    let policy = |first: &str| {
        let spec = json!({
            "variables": [{"name": "v", "expression": first}],
            "mutations": [
                patched(r#"[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": variables.v}}]"#),
                patched(r#"[JSONPatch{op: "remove", path: "/spec/nodeSelector/arch"}]"#),
            ]
        });
        policy(POD.rule, "CREATE", spec)
    };
    for (first, hidden) in [("'b'", Value::Null), ("undeclared", json!(true))] {
        let findings = manifest::findings(&policy(first).to_string(), &[]);
        let mut findings = findings.iter();
        let failing = findings.find(|finding| finding["rule"] == "failing-mutation");
        assert_eq!(failing.unwrap()["hidden"], hidden, "{first}");
    }
}

#[test]
fn message_shows_absent_part_that_makes_mutation_fail() {
    for (path, value, expected) in [
        (
            "/spec/template/spec/containers/0/volumeMounts/-",
            "{'name': 'a', 'mountPath': '/b'}",
            "the mutation may fail: CREATE of a Deployment without spec.template.spec.containers[0].volumeMounts fails",
        ),
        (
            "/metadata/annotations/a.b~1c",
            "'x'",
            "the mutation may fail: CREATE of a Deployment without metadata.annotations fails",
        ),
        // No object has this path.
        (
            "/metadata/annotations/a/b",
            "'x'",
            "the mutation cannot be applied: CREATE of a Deployment fails",
        ),
    ] {
        let mutation = patched(&format!(
            "[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]"
        ));
        fails(&DEPLOYMENT, &mutation, expected);
        let help = findings(&DEPLOYMENT, &mutation)[0]["help"].clone();
        let mentions_escapes = help.as_str().unwrap().contains("escape `/` as `~1`");
        assert_eq!(mentions_escapes, expected.contains("cannot"), "{path}");
    }
}
