//! Compares `kubectl vap test` with a real API server for requests other than the creation of built-in kinds: UPDATE,
//! DELETE, custom kinds with two versions, and subresources.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::{BTreeMap, BTreeSet};

use e2e::controller::{control_plane, repository};
use e2e::response::Response;
use kube::Client;
use parity::random::{Random, from_environment};
use serde_json::{Value, json};
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::CaseOutcome;
use vap_status_controller::schema::{Builtin, Gvk};
use vap_status_controller::version::KubernetesVersion;

use dry_run::{
    BINDINGS, POLICIES, Target, all_enforced, create, documents, expectation, facts, gvk, post,
    send, served, target, target_of,
};

#[path = "support/dry_run.rs"]
mod dry_run;

const CONDITIONS: u64 = 7;

/// The minimum numbers of requests, policies and kinds. Without them, the test would pass even if requests were
/// dropped.
const LEAST: (usize, usize, usize) = (300, 60, 40);

/// A request of a probe, and the equivalent HTTP request.
struct Trial {
    policy: String,
    verb: &'static str,
    path: String,
    body: Value,
    case: Value,
    kind: String,
    /// True if the request cannot be a dry run and may fail for other reasons. Then only a policy's denial counts as
    /// denied, and any other response counts as allowed.
    may_fail_later: bool,
}

#[derive(Default)]
struct Trials {
    policies: Vec<Value>,
    sent: Vec<Trial>,
    /// The trials that could not be sent, and the reasons.
    skipped: Vec<String>,
}

impl Trials {
    /// Adds a policy for objects with the name `of`. Returns the name of the policy.
    fn policy(&mut self, of: &str, rule: &Value, conditions: &[String], action: &str) -> String {
        let name = format!("q{}", self.policies.len() / 2);
        let validations = conditions.iter().map(|it| json!({"expression": it}));
        self.policies.push(json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [{"name": "mine", "expression": format!("request.name == '{of}'")}],
                "validations": validations.collect::<Vec<_>>(),
            },
        }));
        self.policies.push(json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": [action]},
        }));
        name
    }
}

fn rule(gvk: &Gvk, resource: &str, operation: &str) -> Value {
    json!({"apiGroups": [&*gvk.group], "apiVersions": [&*gvk.version], "operations": [operation],
        "resources": [resource]})
}

fn chosen(known: &[String], random: &mut Random) -> Vec<String> {
    let one = |random: &mut Random| {
        let fact = random.choose(known).unwrap().clone();
        // One condition in eight is false.
        if random.permille(125) {
            format!("!({fact})")
        } else {
            fact
        }
    };
    (0..CONDITIONS).map(|_| one(random)).collect()
}

fn action(random: &mut Random) -> &'static str {
    if random.permille(500) { "Warn" } else { "Deny" }
}

/// Adds trials that update or delete an existing object.
async fn changes(
    client: &Client,
    target: &Target,
    object: &Value,
    random: &mut Random,
    out: &mut Trials,
) {
    let name = format!("changed-{}", out.sent.len());
    let mut written = object.clone();
    written["metadata"] = json!({"name": name, "labels": {"n": "0"}});
    create(client, &target.path, &written).await;
    let path = format!("{}/{name}", target.path);
    // The stored object, in the version of the update.
    let stored = send(client, "GET", &path, &Value::Null).await.body;
    let kind = format!("{:?}", target.gvk);

    // `new` is the object as its author wrote it, with a new label. `whole` is the stored object, with a new label and
    // a new annotation.
    let mut new = written.clone();
    new["metadata"]["labels"]["n"] = json!("1");
    let mut whole = stored.clone();
    whole["metadata"]["labels"]["n"] = json!("1");
    whole["metadata"]["annotations"] = json!({"changed": "yes"});
    let dry = format!("{path}?dryRun=All");
    let mut sendable = Vec::new();
    let mut more = new.clone();
    more["metadata"]["annotations"] = json!({"changed": "yes"});
    for (old, object) in [(&written, &new), (&stored, &whole), (&written, &more)] {
        let response = send(client, "PUT", &dry, object).await;
        if response.status < 300 {
            sendable.push((old.clone(), object.clone(), response.body));
        } else {
            out.skipped.push(format!("{kind}: {}", response.message()));
        }
    }
    if let Some((_, _, made)) = sendable.first() {
        let mut true_conditions = Vec::new();
        facts(made, "object", &mut true_conditions);
        facts(&stored, "oldObject", &mut true_conditions);
        true_conditions.push("object.metadata.uid == oldObject.metadata.uid".to_owned());
        true_conditions.push("object.metadata.name == oldObject.metadata.name".to_owned());
        true_conditions.push(
            "object.metadata.creationTimestamp == oldObject.metadata.creationTimestamp".to_owned(),
        );
        true_conditions.push("has(oldObject.metadata.managedFields)".to_owned());
        true_conditions.push("has(object.metadata.resourceVersion)".to_owned());
        true_conditions.push("has(oldObject.metadata.resourceVersion)".to_owned());
        true_conditions.push("request.options.kind == 'UpdateOptions'".to_owned());
        true_conditions.push("request.options.dryRun == ['All'] && request.dryRun".to_owned());
        let conditions = chosen(&true_conditions, random);
        let rule = rule(&target.gvk, &target.resource, "UPDATE");
        let policy = out.policy(&name, &rule, &conditions, action(random));
        for (n, (old, object, _)) in sendable.into_iter().enumerate() {
            out.sent.push(Trial {
                policy: policy.clone(),
                verb: "PUT",
                path: dry.clone(),
                body: object.clone(),
                case: json!({"name": format!("{name} update {n}"), "request": {
                    "operation": "UPDATE", "object": object, "oldObject": old, "dryRun": true}}),
                kind: kind.clone(),
                may_fail_later: false,
            });
        }
    }

    let mut true_conditions = Vec::new();
    facts(&stored, "oldObject", &mut true_conditions);
    true_conditions.push("object == null".to_owned());
    true_conditions.push("request.options.kind == 'DeleteOptions'".to_owned());
    true_conditions.push("request.options.apiVersion == 'meta.k8s.io/v1'".to_owned());
    true_conditions.push("has(request.options.propagationPolicy)".to_owned());
    true_conditions.push("request.options.?propagationPolicy.orValue('') != 'Orphan'".to_owned());
    true_conditions.push("request.options.dryRun == ['All'] && request.dryRun".to_owned());
    let conditions = chosen(&true_conditions, random);
    let rule = rule(&target.gvk, &target.resource, "DELETE");
    let policy = out.policy(&name, &rule, &conditions, action(random));
    let plain = json!({"dryRun": ["All"]});
    let orphan = json!({"dryRun": ["All"], "propagationPolicy": "Orphan"});
    for (old, options) in [(&written, &plain), (&stored, &plain), (&written, &orphan)] {
        let mut sent = options.clone();
        sent["apiVersion"] = json!("v1");
        sent["kind"] = json!("DeleteOptions");
        let n = out.sent.len();
        let mut request = json!({"operation": "DELETE", "oldObject": old, "dryRun": true});
        if options != &plain {
            request["options"] = options.clone();
        }
        out.sent.push(Trial {
            policy: policy.clone(),
            verb: "DELETE",
            path: path.clone(),
            body: sent,
            case: json!({"name": format!("{name} delete {n}"), "request": request}),
            kind: kind.clone(),
            may_fail_later: false,
        });
    }
}

/// Adds trials with custom kinds: defaults on creation, and conversion to the version in a rule.
async fn custom(client: &Client, random: &mut Random, out: &mut Trials) {
    let specs = [
        json!({}),
        json!({"spec": {"replicas": 5, "note": null, "open": {"a": {"b": 1}}}}),
        json!({"spec": {"mode": "slow", "ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]},
            "status": {"phase": "no", "replicas": 3}}),
    ];
    for (n, spec) in specs.iter().enumerate() {
        for (version, matched) in [("v1", "v1"), ("v2", "v2"), ("v1", "v2"), ("v2", "v1")] {
            let sent = Gvk::new("example.com", version, "Widget");
            let target = target_of(sent.clone(), "widgets", true);
            let mut object = spec.clone();
            object["apiVersion"] = json!(sent.api_version());
            object["kind"] = json!("Widget");
            let name = format!("changed-w{n}-{version}{matched}");
            object["metadata"] = json!({"name": name, "labels": {"n": "0"}});
            let path = format!("{}?dryRun=All", target.path);
            let mut created = post(client, &path, &object).await.body;
            let matched = Gvk::new("example.com", matched, "Widget");
            created["apiVersion"] = json!(matched.api_version());
            let mut true_conditions = Vec::new();
            facts(&created, "object", &mut true_conditions);
            true_conditions.push("object.apiVersion == 'example.com/v1'".to_owned());
            true_conditions.push(
                "request.kind.version == 'v1' && request.resource.version == 'v1'".to_owned(),
            );
            true_conditions.push("request.requestKind.version == 'v1'".to_owned());
            let conditions = chosen(&true_conditions, random);
            let rule = rule(&matched, "widgets", "CREATE");
            let policy = out.policy(&name, &rule, &conditions, action(random));
            out.sent.push(Trial {
                policy,
                verb: "POST",
                path,
                case: json!({"name": object["metadata"]["name"],
                    "request": {"object": object, "dryRun": true}}),
                body: object,
                kind: format!("{sent:?}"),
                may_fail_later: false,
            });
        }
    }
    for version in ["v1", "v2"] {
        let gvk = Gvk::new("example.com", version, "Widget");
        let target = target_of(gvk.clone(), "widgets", true);
        for spec in &specs {
            let mut object = spec.clone();
            object["apiVersion"] = json!(gvk.api_version());
            object["kind"] = json!("Widget");
            changes(client, &target, &object, random, out).await;
        }
    }
    let gvk = Gvk::new("example.com", "v1", "Gadget");
    let gadget = json!({"apiVersion": "example.com/v1", "kind": "Gadget"});
    let target = target_of(gvk, "gadgets", false);
    changes(client, &target, &gadget, random, out).await;
}

/// Returns conditions on the object of a subresource. Some are true, and some are false. The API server truncates long
/// warnings, so there are few conditions.
fn conditions_on_fields(fields: &[&str]) -> Vec<String> {
    let of_object = fields.iter().map(|field| format!("object.{field}"));
    let mut all: Vec<String> = of_object.collect();
    for question in [
        "oldObject == null",
        "request.options == null",
        "request.kind.kind == 'Scale' && request.kind.group == 'autoscaling'",
        "request.subResource == 'scale'",
        "request.namespace == 'default'",
    ] {
        all.push(question.to_owned());
    }
    all
}

/// Adds trials with requests for subresources. The policies warn instead of denying, so that the API server evaluates
/// all conditions and reports each one that is false.
async fn subresources(client: &Client, out: &mut Trials) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "changed-pod"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    create(client, "/api/v1/namespaces/default/pods", &pod).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "changed-account"}});
    create(
        client,
        "/api/v1/namespaces/default/serviceaccounts",
        &account,
    )
    .await;
    let template = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut scaled = Vec::new();
    for (api_version, kind, resource, selector) in [
        (
            "apps/v1",
            "Deployment",
            "deployments",
            json!({"matchLabels": {"a": "b"}}),
        ),
        (
            "apps/v1",
            "StatefulSet",
            "statefulsets",
            json!({"matchLabels": {"a": "b"}}),
        ),
        (
            "apps/v1",
            "ReplicaSet",
            "replicasets",
            json!({"matchLabels": {"a": "b"}}),
        ),
        (
            "v1",
            "ReplicationController",
            "replicationcontrollers",
            json!({"a": "b"}),
        ),
    ] {
        let name = format!("changed-{resource}");
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name},
            "spec": {"replicas": 2, "serviceName": "s", "selector": selector, "template": template}});
        let target = target_of(gvk(&object), resource, true);
        create(client, &target.path, &object).await;
        scaled.push((target, name));
    }
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "changed-widget"},
        "spec": {"replicas": 2}});
    let target = target_of(gvk(&widget), "widgets", true);
    create(client, &target.path, &widget).await;
    scaled.push((target, "changed-widget".to_owned()));

    let of_scale = conditions_on_fields(&[
        "spec.replicas == 2",
        "spec.replicas == 5",
        "metadata.name.startsWith('changed')",
        "status.replicas == 0",
        "status.selector == 'a=b'",
        "kind == 'Scale'",
        "apiVersion == 'autoscaling/v1'",
        "metadata.resourceVersion == '7'",
        "metadata.?uid.orValue('') == ''",
        "metadata.?managedFields.hasValue()",
        "metadata.?labels.hasValue()",
        "metadata.?creationTimestamp.hasValue()",
    ]);
    for (target, name) in scaled {
        let (group, version) = (&*target.gvk.group, &*target.gvk.version);
        let resource = json!({"group": group, "version": version, "resource": target.resource});
        let rule = rule(&target.gvk, &format!("{}/scale", target.resource), "UPDATE");
        let policy = out.policy(&name, &rule, &of_scale, "Warn");
        let path = format!("{}/{name}/scale", target.path);
        let stored = send(client, "GET", &path, &Value::Null).await.body;
        let new = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name},
            "spec": {"replicas": 5}});
        let mut whole = stored.clone();
        whole["spec"]["replicas"] = json!(5);
        for (n, object) in [&new, &whole].into_iter().enumerate() {
            out.sent.push(Trial {
                policy: policy.clone(),
                verb: "PUT",
                path: format!("{path}?dryRun=All"),
                body: object.clone(),
                case: json!({"name": format!("{name} {n}"), "request": {"operation": "UPDATE",
                    "resource": resource, "subResource": "scale", "object": object, "oldObject": stored,
                    "dryRun": true}}),
                kind: format!("{:?} scale", target.gvk),
                may_fail_later: false,
            });
        }
    }

    let pods = Gvk::new("", "v1", "Pod");
    let of_pods = json!({"group": "", "version": "v1", "resource": "pods"});
    let policy = out.policy(
        "changed-pod",
        &rule(&pods, "pods/eviction", "CREATE"),
        &conditions_on_fields(&[
            "kind == 'Eviction'",
            "apiVersion == 'policy/v1'",
            "metadata.name == 'changed-pod'",
            "deleteOptions.gracePeriodSeconds == 5",
            "deleteOptions.kind == 'DeleteOptions'",
            "deleteOptions.dryRun == ['All']",
            "metadata.?uid.hasValue()",
            "metadata.?managedFields.hasValue()",
            "metadata.?creationTimestamp.hasValue()",
        ]),
        "Warn",
    );
    let metadata = json!({"name": "changed-pod", "namespace": "default"});
    for (n, eviction) in [
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}),
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata,
            "deleteOptions": {"gracePeriodSeconds": 5}}),
    ]
    .into_iter()
    .enumerate()
    {
        out.sent.push(Trial {
            policy: policy.clone(),
            verb: "POST",
            path: "/api/v1/namespaces/default/pods/changed-pod/eviction?dryRun=All".to_owned(),
            case: json!({"name": format!("eviction {n}"), "request": {"resource": of_pods, "subResource": "eviction",
                "object": eviction, "dryRun": true}}),
            body: eviction,
            kind: "eviction".to_owned(),
            may_fail_later: false,
        });
    }

    let accounts = Gvk::new("", "v1", "ServiceAccount");
    let policy = out.policy(
        "changed-account",
        &rule(&accounts, "serviceaccounts/token", "CREATE"),
        &conditions_on_fields(&[
            "kind == 'TokenRequest'",
            "spec.expirationSeconds == 3600",
            "spec.expirationSeconds == 700",
            "metadata.name == 'changed-account'",
            "spec.audiences == ['a']",
            "spec.audiences == null",
            "spec.boundObjectRef == null",
            "status.token == ''",
            "status.expirationTimestamp == null",
            "metadata.?uid.hasValue()",
            "metadata.?managedFields.hasValue()",
            "metadata.?generation.hasValue()",
        ]),
        "Warn",
    );
    let of_accounts = json!({"group": "", "version": "v1", "resource": "serviceaccounts"});
    for (n, spec) in [
        json!({"audiences": ["a"]}),
        json!({"audiences": ["a"], "expirationSeconds": 700}),
    ]
    .into_iter()
    .enumerate()
    {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "metadata": {"name": "changed-account", "namespace": "default"}, "spec": spec});
        out.sent.push(Trial {
            policy: policy.clone(),
            verb: "POST",
            path: "/api/v1/namespaces/default/serviceaccounts/changed-account/token?dryRun=All".to_owned(),
            case: json!({"name": format!("token {n}"), "request": {"resource": of_accounts, "subResource": "token",
                "object": request, "dryRun": true}}),
            body: request,
            kind: "token".to_owned(),
            may_fail_later: false,
        });
    }

    for (n, (subresource, kind, query, object)) in [
        (
            "exec",
            "PodExecOptions",
            "command=ls&command=-l&container=c",
            json!({"command": ["ls", "-l"], "container": "c"}),
        ),
        (
            "exec",
            "PodExecOptions",
            "command=sh&stdin=true&tty=true",
            json!({"command": ["sh"], "stdin": true, "tty": true}),
        ),
        (
            "attach",
            "PodAttachOptions",
            "container=c",
            json!({"container": "c"}),
        ),
        (
            "portforward",
            "PodPortForwardOptions",
            "ports=80",
            json!({"ports": [80]}),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("changed-pod-{n}");
        let mut pod = pod.clone();
        pod["metadata"]["name"] = json!(name);
        create(client, "/api/v1/namespaces/default/pods", &pod).await;
        let policy = out.policy(
            &name,
            &rule(&pods, &format!("pods/{subresource}"), "CONNECT"),
            &conditions_on_fields(&[
                "kind.startsWith('Pod')",
                "apiVersion == 'v1'",
                "stdin == true",
                "stdout == true",
                "stderr == true",
                "tty == true",
                "command == ['ls', '-l']",
                "container == 'c'",
                "ports == [80]",
                "metadata != null",
            ]),
            "Warn",
        );
        let mut object = object;
        object["apiVersion"] = json!("v1");
        object["kind"] = json!(kind);
        out.sent.push(Trial {
            policy,
            verb: "POST",
            path: format!("/api/v1/namespaces/default/pods/{name}/{subresource}?{query}"),
            body: Value::Null,
            case: json!({"name": format!("{subresource} {query}"), "request": {"operation": "CONNECT",
                "resource": of_pods, "subResource": subresource, "name": name, "namespace": "default",
                "object": object}}),
            kind: subresource.to_owned(),
            may_fail_later: true,
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_decide_like_dry_runs_of_changes() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
    let seed = from_environment("VAP_DRY_RUNS_SEED", 42).unwrap();
    let admission = repository().join("e2e/admission");
    for crd in documents(&admission.join("widgets.yaml")) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        create(&client, path, &crd).await;
    }
    for path in ["v1/widgets", "v2/widgets", "v1/gadgets"] {
        served(&client, &format!("/apis/example.com/{path}")).await;
    }

    let mut all = Trials::default();
    for (n, object) in documents(&admission.join("kinds.yaml")).iter().enumerate() {
        // The API server may change the status of a FlowSchema at any time.
        if object["kind"] == "FlowSchema" {
            continue;
        }
        let mut random = Random::for_event(seed, "changes", u64::try_from(n).unwrap());
        let target = target(builtin, object);
        changes(&client, &target, object, &mut random, &mut all).await;
    }
    let mut random = Random::for_event(seed, "changes of custom kinds", 0);
    custom(&client, &mut random, &mut all).await;
    subresources(&client, &mut all).await;

    for object in &all.policies {
        let path = if object["kind"] == "ValidatingAdmissionPolicy" {
            POLICIES
        } else {
            BINDINGS
        };
        create(&client, path, object).await;
    }
    all_enforced(&client, "last-of-changes").await;

    let mut cases: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let (mut n_denied, mut n_warned, mut n_sent) = (0, 0, 0);
    for trial in &all.sent {
        let mut response: Response = send(&client, trial.verb, &trial.path, &trial.body).await;
        if trial.may_fail_later && !response.is_decided() {
            response.status = 200;
        }
        assert!(response.is_decided(), "{}: {response:?}", trial.path);
        let mut case = trial.case.clone();
        case["expect"] = expectation(&response, &trial.policy);
        n_sent += 1;
        n_denied += usize::from(case["expect"]["decision"] == "Deny");
        n_warned += usize::from(case["expect"]["warnings"] != json!([]));
        cases.entry(&trial.policy).or_default().push(case);
    }
    let mut documents = all.policies.clone();
    for (policy, cases) in &cases {
        documents.push(json!({
            "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": policy},
            "spec": {"policyName": policy, "cases": cases},
        }));
    }
    let file = control_plane.directory().join("probes.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
    std::fs::write(&file, list.to_string()).unwrap();
    if let Some(kept) = std::env::var_os("VAP_DRY_RUNS_KEEP") {
        std::fs::copy(&file, kept).unwrap();
    }
    let options = Options {
        paths: vec![file],
        crds: vec![admission.join("widgets.yaml")],
        // The version of the control plane.
        version: Some(KubernetesVersion::DEFAULT),
        ..Options::default()
    };
    let report = test::run(&options, &mut std::io::empty()).unwrap();

    let mut differences = Vec::new();
    let mut pending = Vec::new();
    for case in report.probes.iter().flat_map(|probe| &probe.cases) {
        let line = format!("{}: {:?}", case.name, case.difference);
        match case.outcome {
            CaseOutcome::Passed => {}
            CaseOutcome::Pending => pending.push(line),
            CaseOutcome::Failed => differences.push(line),
        }
    }
    let kinds: BTreeSet<&str> = all.sent.iter().map(|trial| trial.kind.as_str()).collect();
    println!(
        "{n_sent} requests over {} policies and {} kinds, {n_denied} denied, {n_warned} warned of, {} pending, \
         {} decided otherwise; {} not sent, since the API server refuses them",
        all.policies.len() / 2,
        kinds.len(),
        pending.len(),
        differences.len(),
        all.skipped.len()
    );
    for line in all.skipped.iter().chain(&pending) {
        println!("{line}");
    }
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(n_sent >= LEAST.0 && all.policies.len() / 2 >= LEAST.1 && kinds.len() >= LEAST.2);
    assert!(n_denied > 60 && n_warned > 60);
}
