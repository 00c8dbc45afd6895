//! Tests that `kubectl vap diff` finds the effect of changed expressions with generated requests, and that equivalent
//! expressions have no difference.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};

use crate::cli_commands::{directory, vap};

/// The matched resource: its API group, version and name.
type Resource = [&'static str; 3];

const DEPLOYMENTS: Resource = ["apps", "v1", "deployments"];
const PODS: Resource = ["", "v1", "pods"];
const CONFIG_MAPS: Resource = ["", "v1", "configmaps"];
const SERVICES: Resource = ["", "v1", "services"];
const INGRESSES: Resource = ["networking.k8s.io", "v1", "ingresses"];
const CLAIMS: Resource = ["", "v1", "persistentvolumeclaims"];

/// The resource, the old expression and the new expression.
type Change = (Resource, &'static str, &'static str);

/// Changes by which requests are only allowed.
const WEAKER: [Change; 27] = [
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || request.userInfo.username == 'ops:root'",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || request.userInfo.groups.exists(g, g.startsWith('sre:'))",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || object.metadata.?labels['tier'].orValue('') == 'batch'",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || 'example.org/skip' in object.metadata.?annotations.orValue({})",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || namespaceObject.metadata.?labels['env'].orValue('') == 'sandbox'",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || object.metadata.namespace.endsWith('-test')",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || (oldObject != null && object.spec.replicas < oldObject.spec.replicas)",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || (request.userInfo.username == 'bot' && object.metadata.?labels['auto'].orValue('') == 'yes')",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || object.spec.template.spec.?priorityClassName.orValue('') in ['high', 'system']",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || object.metadata.name.matches('^canary-[a-z]+$')",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas < 5",
        "object.spec.replicas < 5 || request.dryRun",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas >= 2",
        "object.spec.replicas >= 2 || object.spec.?paused.orValue(false)",
    ),
    (
        DEPLOYMENTS,
        "object.metadata.name.matches('^app-[0-9]+$')",
        "object.metadata.name.matches('app-[0-9]+$')",
    ),
    (
        DEPLOYMENTS,
        "object.metadata.?labels['zone'].orValue('') == 'eu'",
        "object.metadata.?labels['zone'].orValue('').lowerAscii() == 'eu'",
    ),
    (
        PODS,
        "object.spec.containers.all(c, !c.image.contains('latest'))",
        "object.spec.containers.all(c, !c.image.endsWith('latest'))",
    ),
    (
        PODS,
        "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits))",
        "object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits))",
    ),
    (
        PODS,
        "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))",
        "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath) || v.hostPath.path.startsWith('/var/log'))",
    ),
    (
        PODS,
        "size(object.spec.containers) < 3",
        "size(object.spec.containers) < 4",
    ),
    (
        PODS,
        "object.spec.containers.filter(c, c.?stdin.orValue(false)).size() == 0",
        "object.spec.containers.filter(c, c.?stdin.orValue(false)).size() <= 1",
    ),
    (
        PODS,
        "object.spec.containers.all(c, c.?imagePullPolicy.orValue('') == 'Always')",
        "object.spec.containers.all(c, c.?imagePullPolicy.orValue('') == 'Always' || c.name == 'proxy')",
    ),
    (
        CONFIG_MAPS,
        "size(object.?data['note'].orValue('')) <= 20",
        "size(object.?data['note'].orValue('')) <= 30",
    ),
    (
        INGRESSES,
        "object.spec.?rules.orValue([]).all(r, r.?host.orValue('').endsWith('.corp.example'))",
        "object.spec.?rules.orValue([]).all(r, r.?host.orValue('').endsWith('.corp.example') || r.?host.orValue('') == 'web.test')",
    ),
    (
        CLAIMS,
        "quantity(object.spec.resources.requests.storage).isLessThan(quantity('20Gi'))",
        "quantity(object.spec.resources.requests.storage).isLessThan(quantity('25Gi'))",
    ),
    (
        SERVICES,
        "oldObject == null || object.spec.type == oldObject.spec.type",
        "oldObject == null || object.spec.type == oldObject.spec.type || oldObject.spec.type == 'ClusterIP'",
    ),
    (
        SERVICES,
        "object.spec.ports.all(p, p.port in [80, 443])",
        "object.spec.ports.all(p, p.port in [80, 443, 8443])",
    ),
    (
        CONFIG_MAPS,
        "object.?data.orValue({}).all(k, !k.startsWith('secret'))",
        "object.?data.orValue({}).all(k, !k.startsWith('secret.'))",
    ),
    (
        PODS,
        "!(object.spec.?hostNetwork.orValue(false) || object.spec.?hostPID.orValue(false))",
        "!(object.spec.?hostNetwork.orValue(false) && object.spec.?hostPID.orValue(false))",
    ),
];

/// Changes by which requests are only denied.
const STRICTER: [Change; 8] = [
    (
        PODS,
        "object.spec.containers.all(c, !c.?stdin.orValue(false))",
        "(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, !c.?stdin.orValue(false))",
    ),
    (
        PODS,
        "object.spec.containers.exists(c, c.?tty.orValue(false))",
        "object.spec.containers.exists_one(c, c.?tty.orValue(false))",
    ),
    (
        PODS,
        "!object.spec.?hostPID.orValue(false)",
        "!object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)",
    ),
    (
        SERVICES,
        "object.spec.ports.all(p, p.port != 22)",
        "object.spec.ports.all(p, p.port != 22 && p.port != 23)",
    ),
    (
        DEPLOYMENTS,
        "request.userInfo.username != 'guest'",
        "!request.userInfo.username.startsWith('guest')",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas <= 9 || request.operation == 'UPDATE'",
        "object.spec.replicas <= 9",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas <= 9",
        "object.spec.replicas <= 9 && (object.spec.replicas != 4 || has(object.metadata.labels))",
    ),
    (
        CONFIG_MAPS,
        "!has(object.data) || !('mode' in object.data) || object.data.mode in ['on', 'off']",
        "has(object.data) && 'mode' in object.data && object.data.mode in ['on', 'off']",
    ),
];

/// Changes by which some requests are allowed and others are denied.
const BOTH: [Change; 3] = [
    (
        DEPLOYMENTS,
        "request.operation == 'UPDATE' ? object.spec.replicas <= 4 : object.spec.replicas <= 2",
        "request.operation == 'UPDATE' ? object.spec.replicas <= 2 : object.spec.replicas <= 4",
    ),
    (
        PODS,
        "object.spec.containers.all(c, c.image.startsWith('one.example/'))",
        "object.spec.containers.all(c, c.image.startsWith('two.example/'))",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas <= (object.metadata.namespace == 'live' ? 9 : 3)",
        "object.spec.replicas <= (object.metadata.namespace == 'main' ? 9 : 3)",
    ),
];

/// Equivalent expressions.
const EQUIVALENT: [Change; 10] = [
    (
        DEPLOYMENTS,
        "object.spec.replicas <= 5",
        "object.spec.replicas < 6",
    ),
    (
        DEPLOYMENTS,
        "object.spec.replicas <= 5 || request.userInfo.username == 'root'",
        "request.userInfo.username == 'root' || 5 >= object.spec.replicas",
    ),
    (
        PODS,
        "object.spec.containers.all(c, c.image.startsWith('one.example/'))",
        "!object.spec.containers.exists(c, !c.image.startsWith('one.example/'))",
    ),
    (
        DEPLOYMENTS,
        "object.metadata.?labels['tier'].orValue('') in ['a', 'b']",
        "object.metadata.?labels['tier'].orValue('') == 'a' || object.metadata.?labels['tier'].orValue('') == 'b'",
    ),
    (
        PODS,
        "has(object.spec.priorityClassName) && object.spec.priorityClassName == 'high'",
        "object.spec.?priorityClassName.orValue('') == 'high'",
    ),
    (
        PODS,
        "!(object.spec.?hostNetwork.orValue(false) || object.spec.?hostPID.orValue(false))",
        "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false)",
    ),
    (
        PODS,
        "object.spec.containers.all(c, c.name != 'a') && object.spec.containers.all(c, c.name != 'b')",
        "object.spec.containers.all(c, c.name != 'a' && c.name != 'b')",
    ),
    (
        DEPLOYMENTS,
        "request.operation == 'UPDATE' ? object.spec.replicas <= 4 : object.spec.replicas <= 2",
        "(request.operation == 'UPDATE' && object.spec.replicas <= 4) || object.spec.replicas <= 2",
    ),
    (
        DEPLOYMENTS,
        "object.metadata.name.matches('^app-')",
        "object.metadata.name.startsWith('app-')",
    ),
    (
        SERVICES,
        "object.spec.ports.exists(p, p.port == 80)",
        "object.spec.ports.filter(p, p.port == 80).size() > 0",
    ),
];

fn policy(name: &str, [group, version, resource]: Resource, expressions: &[&str]) -> Value {
    let validations = expressions.iter().map(|it| json!({"expression": it}));
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": [version],
                "operations": ["CREATE", "UPDATE"], "resources": [resource],
            }]},
            "validations": validations.collect::<Vec<_>>(),
        },
    })
}

/// Compares the policies of each pair. The result is the output of `-o json`.
fn report(name: &str, pairs: &[[Value; 2]]) -> Value {
    let file = |side: usize| {
        let documents = pairs.iter().map(|pair| pair[side].to_string());
        documents.collect::<Vec<_>>().join("\n---\n")
    };
    let folder = directory(name, &[("old.yaml", &file(0)), ("new.yaml", &file(1))]);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    vap(
        &["diff", &path("old.yaml"), &path("new.yaml"), "-o", "json"],
        "",
    )
    .json()
}

/// Returns the number of denied and of allowed requests for a policy.
fn counts(report: &Value, name: &str) -> [u64; 2] {
    let groups = report["groups"].as_array().unwrap().iter();
    let groups = groups.filter(|group| group["policy"] == name);
    groups.fold([0, 0], |[denied, allowed], group| {
        let count = |field: &str| group[field].as_u64().unwrap();
        [denied + count("denied"), allowed + count("allowed")]
    })
}

#[test]
fn effects_of_changes_are_found() {
    let all = [
        (&WEAKER[..], [false, true]),
        (&STRICTER[..], [true, false]),
        (&BOTH[..], [true, true]),
        (&EQUIVALENT[..], [false, false]),
    ];
    let changes = all
        .into_iter()
        .flat_map(|(changes, expected)| changes.iter().map(move |it| (it, expected)));
    let changes: Vec<_> = changes.collect();
    let pairs = changes
        .iter()
        .enumerate()
        .map(|(n, ((resource, old, new), _))| {
            [old, new].map(|it| policy(&format!("p{n}"), *resource, &[it]))
        });
    let report = report("diff-changes", &pairs.collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for (n, ((_, old, new), expected)) in changes.iter().enumerate() {
        let [denied, allowed] = counts(&report, &format!("p{n}"));
        let is_found = [denied > 0, allowed > 0];
        if is_found != *expected {
            wrong.push(format!(
                "{old} -> {new}: denied {denied}, allowed {allowed}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The sample requests satisfy the validations that did not change.
#[test]
fn generated_requests_satisfy_unchanged_validations() {
    const OTHERS: [&str; 4] = [
        "object.spec.containers.all(c, c.image.startsWith('one.example/'))",
        "object.metadata.?labels['team'].orValue('') in ['a', 'b']",
        "has(object.spec.priorityClassName) && object.spec.priorityClassName != 'low'",
        "request.userInfo.username != 'example'",
    ];
    let changes = [
        (
            "size(object.spec.containers) <= 2",
            "size(object.spec.containers) <= 3",
        ),
        (
            "object.spec.containers.all(c, !c.?stdin.orValue(false))",
            "object.spec.containers.all(c, !c.?stdin.orValue(false) || c.name == 'shell')",
        ),
        ("!object.spec.?hostPID.orValue(false)", "true"),
        (
            "object.metadata.?annotations['size'].orValue('s') in ['s', 'm']",
            "object.metadata.?annotations['size'].orValue('s') in ['s', 'm', 'l']",
        ),
        (
            "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))",
            "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath) || v.hostPath.path == '/dev/fuse')",
        ),
        (
            "oldObject == null || object.metadata.labels == oldObject.metadata.labels",
            "true",
        ),
    ];
    let pairs = changes.iter().enumerate().map(|(n, (old, new))| {
        [old, new].map(|it| {
            let expressions: Vec<&str> = OTHERS.iter().chain([it]).copied().collect();
            policy(&format!("p{n}"), PODS, &expressions)
        })
    });
    let report = report("diff-alone", &pairs.collect::<Vec<_>>());
    for (n, (old, new)) in changes.iter().enumerate() {
        let [denied, allowed] = counts(&report, &format!("p{n}"));
        assert!(
            denied == 0 && allowed > 0,
            "{old} -> {new}: {denied} {allowed}"
        );
    }
}

#[test]
fn exceptions_for_deletions_are_found() {
    let old = "oldObject.metadata.name != 'zebra'";
    let exceptions = [
        "'cleaners' in request.userInfo.groups",
        "oldObject.metadata.?labels['done'].orValue('') == 'yes'",
        "request.namespace == 'scratch'",
    ];
    let pairs = exceptions.iter().enumerate().map(|(n, exception)| {
        [old.to_owned(), format!("{old} || {exception}")].map(|it| {
            let mut policy = policy(&format!("p{n}"), DEPLOYMENTS, &[&it]);
            policy["spec"]["matchConstraints"]["resourceRules"][0]["operations"] =
                json!(["DELETE"]);
            policy
        })
    });
    let report = report("diff-deletions", &pairs.collect::<Vec<_>>());
    for (n, exception) in exceptions.iter().enumerate() {
        let [denied, allowed] = counts(&report, &format!("p{n}"));
        assert_eq!([denied > 0, allowed > 0], [false, true], "{exception}");
    }
}
