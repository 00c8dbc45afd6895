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

/// Changes that only allow more requests.
const WEAKER: [Change; 29] = [
    (
        DEPLOYMENTS,
        "object.metadata.name.matches('^(dev|test)-') && request.userInfo.username == 'ops'",
        "object.metadata.name.matches('^(dev|test)-') && request.userInfo.username in ['ops', 'root']",
    ),
    (
        DEPLOYMENTS,
        "object.metadata.name.matches('^team-*') && request.userInfo.username == 'ops'",
        "object.metadata.name.matches('^team-*') && request.userInfo.username in ['ops', 'root']",
    ),
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

/// Changes that only deny more requests.
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

/// Changes that allow some requests that were denied, and deny others that were allowed.
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

/// Compares the policies of each pair. Returns the output of `-o json`.
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

/// Returns the number of requests that become denied, and of those that become allowed, for a policy.
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

/// A case: the documents of both versions, whether some requests become denied, and whether some become allowed.
type Case = ([Vec<Value>; 2], [bool; 2]);

/// Compares the documents of each case separately.
fn check_cases(name: &str, cases: &[Case]) {
    let mut wrong = Vec::new();
    for (n, (documents, expected)) in cases.iter().enumerate() {
        let text = |side: &Vec<Value>| {
            let documents = side.iter().map(Value::to_string);
            documents.collect::<Vec<_>>().join("\n---\n")
        };
        let [old, new] = documents.each_ref().map(text);
        let folder = directory(
            &format!("{name}-{n}"),
            &[("old.yaml", &old), ("new.yaml", &new)],
        );
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let args = ["diff", &path("old.yaml"), &path("new.yaml"), "-o", "json"];
        let report = vap(&args, "").json();
        let [denied, allowed] = counts(&report, "p0");
        if [denied > 0, allowed > 0] != *expected || report["notGenerated"] != json!([]) {
            wrong.push(format!("{old}\n->\n{new}\n{denied} {allowed}\n{report:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn case(resource: Resource, expressions: [&str; 2], expected: [bool; 2]) -> Case {
    let documents = expressions.map(|it| vec![policy("p0", resource, &[it])]);
    (documents, expected)
}

const DENIED: [bool; 2] = [true, false];
const ALLOWED: [bool; 2] = [false, true];
const BOTH_WAYS: [bool; 2] = [true, true];
const NEITHER: [bool; 2] = [false, false];

const BUDGETS: Resource = ["policy", "v1", "poddisruptionbudgets"];

#[test]
fn strings_that_contain_numbers_are_tried() {
    let unavailable = |rest: &str| format!("!has(object.spec.maxUnavailable) || {rest}");
    let age = "int(object.metadata.annotations['age'])";
    let check = |resource: Resource, [old, new]: [String; 2], expected| {
        case(resource, [&old, &new], expected)
    };
    check_cases(
        "diff-number-texts",
        &[
            check(
                BUDGETS,
                [
                    "has(object.spec.maxUnavailable)".to_owned(),
                    "type(object.spec.maxUnavailable) == int".to_owned(),
                ],
                DENIED,
            ),
            check(
                BUDGETS,
                [
                    unavailable("type(object.spec.maxUnavailable) == int"),
                    unavailable("string(object.spec.maxUnavailable) != '40%'"),
                ],
                ALLOWED,
            ),
            check(
                DEPLOYMENTS,
                [format!("{age} <= 5"), format!("{age} <= 10")],
                ALLOWED,
            ),
            check(
                CONFIG_MAPS,
                [
                    "duration(object.data['wait']).getSeconds() < 20".to_owned(),
                    "duration(object.data['wait']).getSeconds() < 40".to_owned(),
                ],
                ALLOWED,
            ),
            check(
                DEPLOYMENTS,
                [
                    "double(object.metadata.?annotations['part'].orValue('0')) < 0.25".to_owned(),
                    "double(object.metadata.?annotations['part'].orValue('0')) < 0.5".to_owned(),
                ],
                ALLOWED,
            ),
            check(
                DEPLOYMENTS,
                [
                    format!("{age} <= object.spec.replicas"),
                    format!("{age} < object.spec.replicas"),
                ],
                DENIED,
            ),
        ],
    );
}

#[test]
fn values_that_match_formats_and_patterns_are_tried() {
    check_cases(
        "diff-formats",
        &[
            case(
                DEPLOYMENTS,
                [
                    "object.metadata.?labels['tier'].orValue('').matches('^(x|y)$')",
                    "object.metadata.?labels['tier'].orValue('').matches('^(x|y|z)$')",
                ],
                ALLOWED,
            ),
            case(
                INGRESSES,
                [
                    "object.spec.rules.all(r, r.host.matches('^.*[.]corp[.]test$'))",
                    "object.spec.rules.all(r, r.host.matches('^[^.]*[.]corp[.]test$'))",
                ],
                DENIED,
            ),
            case(
                INGRESSES,
                [
                    "object.spec.rules.all(r, has(r.host))",
                    "object.spec.rules.all(r, has(r.host) && !r.host.startsWith('*'))",
                ],
                DENIED,
            ),
            case(
                SERVICES,
                [
                    "object.spec.?loadBalancerSourceRanges.orValue([]).all(r, cidr('10.0.0.0/8').containsCIDR(r))",
                    "object.spec.?loadBalancerSourceRanges.orValue([]).all(r, cidr('10.9.0.0/16').containsCIDR(r))",
                ],
                DENIED,
            ),
            case(
                PODS,
                [
                    "object.spec.?tolerations.orValue([]).all(t, t.?key.orValue('') != 'gpu')",
                    "object.spec.?tolerations.orValue([]).all(t, t.?key.orValue('') != 'gpu' || t.?effect.orValue('') == 'NoSchedule')",
                ],
                ALLOWED,
            ),
            case(
                PODS,
                [
                    "object.spec.containers.map(c, c.?ports.orValue([]).size()).sum() <= 2",
                    "object.spec.containers.map(c, c.?ports.orValue([]).size()).sum() <= 3",
                ],
                ALLOWED,
            ),
            case(
                ["autoscaling", "v2", "horizontalpodautoscalers"],
                [
                    "object.spec.maxReplicas <= 8",
                    "object.spec.maxReplicas <= 8 && object.spec.?minReplicas.orValue(1) <= object.spec.maxReplicas",
                ],
                NEITHER,
            ),
        ],
    );
}

#[test]
fn results_of_authorization_checks_are_assumed() {
    let check = "authorizer.group('apps').resource('deployments').check";
    let old = format!("object.spec.replicas <= 5 || {check}('grow').allowed()");
    let changes = [
        ("object.spec.replicas <= 5".to_owned(), old.clone(), ALLOWED),
        (
            format!("{check}('grow').allowed()"),
            format!("{check}('shrink').allowed()"),
            BOTH_WAYS,
        ),
        (
            format!("{check}('grow').allowed()"),
            "authorizer.group('apps').resource('deployments').subresource('scale').check('grow').allowed()"
                .to_owned(),
            BOTH_WAYS,
        ),
        (
            format!("{check}('grow').allowed() && object.spec.replicas <= 5"),
            format!("{check}('grow').allowed() && object.spec.replicas <= 10"),
            ALLOWED,
        ),
        (
            old,
            format!("{check}('grow').allowed() || object.spec.replicas < 6"),
            NEITHER,
        ),
    ];
    let cases = changes
        .iter()
        .map(|(old, new, expected)| case(DEPLOYMENTS, [old, new], *expected));
    check_cases("diff-authorizer", &cases.collect::<Vec<_>>());

    let (old, new, _) = &changes[0];
    let report = report(
        "diff-assumed",
        &[[old, new].map(|it| policy("p0", DEPLOYMENTS, &[it]))],
    );
    let groups = report["groups"].as_array().unwrap().iter();
    let mut allowed = groups.filter(|it| it["allowed"] != 0);
    let subject = &allowed.next().unwrap()["subjects"][0];
    assert_eq!(
        subject["request"]["authorizer"],
        json!([{"decision": "Allow", "group": "apps", "resource": "deployments", "verb": "grow"}])
    );
    assert_eq!(
        subject["inputs"][0],
        json!({
            "path": "authorizer.group('apps').resource('deployments').check('grow')",
            "value": "allowed",
        })
    );
}

#[test]
fn changed_selectors_are_found() {
    let labels = |key: &str, value: &str| json!({"matchLabels": {key: value}});
    let set = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "env", "operator": operator, "values": values}]});
    let unset =
        |operator: &str| json!({"matchExpressions": [{"key": "env", "operator": operator}]});
    let changes = [
        (json!({}), labels("env", "live"), ALLOWED),
        (labels("env", "live"), json!({}), DENIED),
        (labels("env", "live"), labels("env", "test"), BOTH_WAYS),
        (labels("env", "live"), labels("stage", "live"), BOTH_WAYS),
        (set("In", &["a"]), set("In", &["a", "b"]), DENIED),
        (set("In", &["a", "b"]), set("In", &["a"]), ALLOWED),
        (set("NotIn", &["a"]), set("NotIn", &["a", "b"]), ALLOWED),
        (set("NotIn", &["a", "b"]), set("NotIn", &["a"]), DENIED),
        (unset("Exists"), unset("DoesNotExist"), BOTH_WAYS),
        (unset("DoesNotExist"), json!({}), DENIED),
        (labels("env", "live"), set("In", &["live"]), NEITHER),
    ];
    let mut cases = Vec::new();
    for field in ["namespaceSelector", "objectSelector"] {
        for (old, new, expected) in &changes {
            let base = policy("p0", DEPLOYMENTS, &["object.spec.replicas <= 5"]);
            let of_policy = [old, new].map(|selector| {
                let mut policy = base.clone();
                policy["spec"]["matchConstraints"][field] = selector.clone();
                vec![policy]
            });
            cases.push((of_policy, *expected));
            let of_binding = [old, new].map(|selector| {
                let binding = json!({
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": "ValidatingAdmissionPolicyBinding",
                    "metadata": {"name": "b"},
                    "spec": {
                        "policyName": "p0",
                        "validationActions": ["Deny"],
                        "matchResources": {field: selector},
                    },
                });
                vec![base.clone(), binding]
            });
            cases.push((of_binding, *expected));
        }
    }
    check_cases("diff-selectors", &cases);
}

/// If the schemas of a version do not permit an object, the version has no decision about it.
#[test]
fn objects_are_valid_in_both_versions() {
    let definition = |mode: &Value, rules: &Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "limits.shop.test"},
            "spec": {
                "group": "shop.test",
                "scope": "Namespaced",
                "names": {"plural": "limits", "singular": "limit", "kind": "Limit"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["mode", "max"],
                            "properties": {"mode": mode, "max": {"type": "integer"}},
                            "x-kubernetes-validations": rules,
                        },
                    }}},
                }],
            },
        })
    };
    let free = definition(&json!({"type": "string"}), &json!([]));
    let limited = definition(
        &json!({"type": "string", "enum": ["a", "b"]}),
        &json!([{"rule": "self.max > 3"}]),
    );
    let limits: Resource = ["shop.test", "v1", "limits"];
    let documents = |definitions: [&Value; 2], expressions: [&str; 2]| {
        let [old, new] = expressions.map(|it| policy("p0", limits, &[it]));
        [
            vec![definitions[0].clone(), old],
            vec![definitions[1].clone(), new],
        ]
    };
    check_cases(
        "diff-schemas",
        &[
            (
                documents(
                    [&free, &limited],
                    ["object.spec.max <= 10", "object.spec.max <= 12"],
                ),
                ALLOWED,
            ),
            (
                documents(
                    [&free, &limited],
                    ["object.spec.mode == 'a'", "object.spec.mode in ['a']"],
                ),
                NEITHER,
            ),
            (
                documents(
                    [&limited, &limited],
                    ["object.spec.max > 2", "object.spec.max > 1"],
                ),
                NEITHER,
            ),
        ],
    );
}
