//! Mutating policies against a real API server: the object after a dry run, or the refusal, and the same by
//! `policy::admission::mutation`.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::BTreeMap;
use std::time::Instant;

use e2e::answer::Answer;
use e2e::controller::control_plane;
use e2e::parity::mutate_requests;
use e2e::random::{Random, from_environment};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use vap_status_controller::policy::admission::mutation::{Kinds as _, KnownKinds, MutationOutcome};
use vap_status_controller::policy::admission::{AdmissionRequest, Object};
use vap_status_controller::schema::{Builtin, Crd, Gvk, Gvr};

use dry_run::{TIMEOUT, Target, create, post, send, served, target_of};

#[path = "support/dry_run.rs"]
mod dry_run;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Of so many requests so many must be compared by their objects, and so many must be refused by policies.
const LEAST: (u64, u64) = (3, 20);

/// Expressions of objects that Deployments are merged with.
const APPLIED: [&str; 16] = [
    "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
    "Object{metadata: Object.metadata{labels: {\"team\": object.metadata.name}}}",
    "Object{metadata: Object.metadata{annotations: {\"a/b\": string(object.spec.replicas)}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: \
     [Object.spec.template.spec.containers{name: \"side\", image: \"side:1\"}]}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: \
     [Object.spec.template.spec.containers{name: \"web\", image: \"mirror/web:1\", env: \
     [Object.spec.template.spec.containers.env{name: \"A\", value: \"changed\"}]}]}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: \
     object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, \
     imagePullPolicy: \"Always\"})}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{initContainers: \
     [Object.spec.template.spec.initContainers{name: \"init\", image: \"init:1\", restartPolicy: \"Always\"}]}}}}",
    // A list that is atomic cannot be set in part.
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{tolerations: \
     [Object.spec.template.spec.tolerations{key: \"k\", operator: \"Exists\"}]}}}}",
    // A struct that is atomic cannot either.
    "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {\"a\": \"b\"}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{nodeSelector: {\"a\": \"b\"}}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{volumes: \
     [Object.spec.template.spec.volumes{name: \"v\", emptyDir: Object.spec.template.spec.volumes.emptyDir{}}]}}}}",
    "Object{spec: Object.spec{strategy: Object.spec.strategy{type: \"Recreate\"}}}",
    "Object{spec: Object.spec{minReadySeconds: 7, paused: !has(object.spec.paused)}}",
    "Object{spec: Object.spec{replcas: 1}}",
    "Object{spec: Object.spec{replicas: \"three\"}}",
    "Object{spec: Object.spec{replicas: object.spec.nothing}}",
];

/// Expressions of patches of Deployments.
const PATCHED: [&str; 12] = [
    "[JSONPatch{op: \"replace\", path: \"/spec/replicas\", value: 5}]",
    "[JSONPatch{op: \"add\", path: \"/metadata/labels\", value: {\"team\": \"a\"}}]",
    "[JSONPatch{op: \"add\", path: \"/metadata/labels/\" + jsonpatch.escapeKey(\"a/b~c\"), value: \"x\"}]",
    "[JSONPatch{op: \"add\", path: \"/spec/template/spec/containers/-\", value: \
     Object.spec.template.spec.containers{name: \"last\", image: \"last:1\"}}]",
    "[JSONPatch{op: \"add\", path: \"/spec/template/spec/containers/0/env\", value: []}, JSONPatch{op: \"add\", path: \
     \"/spec/template/spec/containers/0/env/-\", value: {\"name\": \"B\", \"value\": \"b\"}}]",
    "[JSONPatch{op: \"remove\", path: \"/spec/template/spec/tolerations\"}]",
    "[JSONPatch{op: \"remove\", path: \"/spec/template/spec/containers/7\"}]",
    "[JSONPatch{op: \"test\", path: \"/spec/replicas\", value: 3}, JSONPatch{op: \"replace\", path: \"/spec/replicas\", \
     value: 30}]",
    "[JSONPatch{op: \"copy\", from: \"/metadata/name\", path: \"/spec/template/metadata/labels/of\"}]",
    "[JSONPatch{op: \"move\", from: \"/spec/template/spec/containers/0/image\", path: \
     \"/metadata/annotations\"}]",
    "object.spec.template.spec.?tolerations.orValue([]).map(t, JSONPatch{op: \"add\", path: \
     \"/spec/template/spec/nodeSelector\", value: {\"k\": t.key}})",
    "[JSONPatch{op: \"add\", path: \"/spec/template/spec/unknown\", value: 1}]",
];

/// A request, and the policy that is about it alone.
struct Trial {
    policy: Value,
    bindings: Vec<Value>,
    object: Value,
    gvr: Gvr,
}

/// A request for a custom resource, of those that `parity mutations` makes.
fn custom(seed: u64, n: u64) -> Trial {
    let case = mutate_requests::case(seed, n);
    let mut policy = case["policies"][0]["policy"].clone();
    let mut object = case["object"].clone();
    let name = format!("m{n}");
    object["metadata"]["name"] = json!(name);
    own_alone(&mut policy, &name);
    Trial {
        policy,
        // With more than one it is chance which of them is told of.
        bindings: vec![json!({})],
        object,
        gvr: Gvr::new("example.com", "v1", "boxes"),
    }
}

/// A request for a Deployment.
fn deployment(seed: u64, n: u64) -> Trial {
    let mut random = Random::of(seed, "mutated Deployment", n);
    let name = format!("m{n}");
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "web", "image": "web:1"}]}},
        },
    });
    let pod = "/spec/template/spec";
    let parts = [
        ("/spec", "replicas", json!(3)),
        ("/spec", "paused", json!(true)),
        ("/metadata", "labels", json!({"app": "web"})),
        (
            pod,
            "tolerations",
            json!([{"key": "t", "operator": "Exists"}]),
        ),
        (pod, "nodeSelector", json!({"zone": "a"})),
        (
            pod,
            "volumes",
            json!([{"name": "v", "configMap": {"name": "c"}}]),
        ),
        (
            "/spec/template/spec/containers/0",
            "env",
            json!([{"name": "A", "value": "a"}, {"name": "C", "value": "c"}]),
        ),
    ];
    for (parent, field, value) in parts {
        if random.permille(500) {
            object.pointer_mut(parent).unwrap()[field] = value;
        }
    }
    let count = random.below(2) + 1;
    let mutations: Vec<Value> = (0..count)
        .map(|_| {
            if random.permille(550) {
                let expression = random.choose(&APPLIED);
                json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
            } else {
                json!({"patchType": "JSONPatch", "jsonPatch": {"expression": random.choose(&PATCHED)}})
            }
        })
        .collect();
    let mut policy = json!({"spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["deployments"]}]},
        "failurePolicy": if random.permille(700) { "Fail" } else { "Ignore" },
        "reinvocationPolicy": if random.permille(300) { "IfNeeded" } else { "Never" },
        "mutations": mutations,
    }});
    own_alone(&mut policy, &name);
    Trial {
        policy,
        bindings: vec![json!({})],
        object,
        gvr: Gvr::new("apps", "v1", "deployments"),
    }
}

/// Makes a policy one of that name, about the object of that name alone: the others are on the same server.
fn own_alone(policy: &mut Value, name: &str) {
    policy["apiVersion"] = json!("admissionregistration.k8s.io/v1");
    policy["kind"] = json!("MutatingAdmissionPolicy");
    policy["metadata"] = json!({"name": name});
    let mut conditions =
        vec![json!({"name": "mine", "expression": format!("request.name == '{name}'")})];
    if let Some(more) = policy["spec"]["matchConditions"].as_array() {
        // An error of a condition counts where no other is false, so that each asks for the name first.
        conditions.extend(more.iter().map(|condition| {
            let expression = condition["expression"].as_str().unwrap();
            let expression = format!("request.name == '{name}' && ({expression})");
            json!({"name": condition["name"], "expression": expression})
        }));
    }
    policy["spec"]["matchConditions"] = json!(conditions);
}

/// Creates the policies and bindings, and waits until the API server asks them.
async fn install(client: &Client, trials: &mut [Trial]) {
    for trial in &mut *trials {
        create(client, POLICIES, &trial.policy).await;
        let name = trial.policy["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        for (n, binding) in trial.bindings.iter_mut().enumerate() {
            *binding = json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingAdmissionPolicyBinding",
                "metadata": {"name": format!("{name}-{n}")},
                "spec": {"policyName": name},
            });
            create(client, BINDINGS, binding).await;
        }
    }
    let last = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "last"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["leases"]}]},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
                "Object{metadata: Object.metadata{labels: {\"mutated\": \"yes\"}}}"}}],
        },
    });
    create(client, POLICIES, &last).await;
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "last"}, "spec": {"policyName": "last"},
    });
    create(client, BINDINGS, &binding).await;
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "last"}});
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases?dryRun=All";
        let answer = post(client, path, &lease).await;
        if answer.body["metadata"]["labels"]["mutated"] == "yes" {
            return;
        }
        assert!(Instant::now() < deadline, "{answer:?}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

/// The outcome here.
fn own(trial: &Trial, kinds: &KnownKinds, namespace: &Value) -> MutationOutcome {
    // Defaults come before policies.
    let gvk = Object::new(&trial.object).gvk().clone();
    let object = kinds.completed(&gvk, trial.object.clone()).unwrap();
    let mut request = AdmissionRequest::create(trial.gvr.clone(), Object::new(&object));
    request.dry_run = true;
    let policies = [(trial.policy.clone(), trial.bindings.clone())];
    mutate_requests::outcome(&policies, kinds, &request, &object, namespace).unwrap()
}

/// The parts of an object that mutations change.
fn parts(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"spec": object["spec"], "labels": metadata["labels"], "annotations": metadata["annotations"]})
}

/// A message without the object at its end, which has fields there that the API server makes up.
fn without_object(message: &str) -> &str {
    const BEFORE: &str = "Object 'Kind' is missing in '";
    message.split_inclusive(BEFORE).next().unwrap_or(message)
}

/// The answer to the dry run of a creation; nothing where the API server panics, which ends the connection.
async fn answer(client: &Client, target: &Target, object: &Value) -> Option<Answer> {
    let request = Request::post(format!("{}?dryRun=All", target.path))
        .header("content-type", "application/json")
        .body(kube::client::Body::from(object.to_string().into_bytes()));
    match Answer::to(client, request.unwrap()).await {
        Ok(answer) => Some(answer),
        Err(error) => {
            let text = format!("{error:#}");
            assert!(text.contains("connection closed before message"), "{text}");
            None
        }
    }
}

/// How the answer of the API server differs from the outcome here; a word for how it went where it does not.
fn difference(answer: Option<&Answer>, outcome: &MutationOutcome) -> Result<&'static str, String> {
    let Some(answer) = answer else {
        return match &outcome.denial {
            Some(status) if status.code == 500 => Ok("a panic of the API server"),
            other => Err(format!("the API server panics; here: {other:?}")),
        };
    };
    if !outcome.unknown.is_empty() {
        return Ok("not known here");
    }
    if let Some(status) = &outcome.denial {
        let found = json!([status.code, status.reason, without_object(&status.message)]);
        let message = without_object(answer.message());
        let expected = json!([answer.status, answer.body["reason"], message]);
        return if found == expected {
            Ok("refused by a policy")
        } else {
            Err(format!("refused here: {found}\n  there: {expected}"))
        };
    }
    if answer.status >= 300 {
        // What a mutation leaves is validated afterwards.
        return if answer.message().contains("denied request") {
            Err(format!("refused there alone: {}", answer.message()))
        } else {
            Ok("refused afterwards")
        };
    }
    let found = parts(outcome.object.as_ref().unwrap());
    let expected = parts(&answer.body);
    if found == expected {
        Ok("equal objects")
    } else {
        Err(format!("here:  {found}\n  there: {expected}"))
    }
}

/// The same objects and refusals as those of an API server. `VAP_MUTATIONS_SEED` and `VAP_MUTATIONS` set the seed and
/// how many requests of each sort are made.
#[tokio::test(flavor = "multi_thread")]
async fn mutations_are_those_of_the_api_server() {
    let seed = from_environment("VAP_MUTATIONS_SEED", 1).unwrap();
    let count = from_environment("VAP_MUTATIONS", 150).unwrap();
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let definition = mutate_requests::case(seed, 0)["crd"].clone();
    create(&client, CRDS, &definition).await;
    let boxes = target_of(Gvk::new("example.com", "v1", "Box"), "boxes", true);
    let deployments = target_of(Gvk::new("apps", "v1", "Deployment"), "deployments", true);
    served(&client, &boxes.path).await;

    let mut trials: Vec<Trial> = (0..count).map(|n| custom(seed, n)).collect();
    trials.extend((count..2 * count).map(|n| deployment(seed, n)));
    install(&client, &mut trials).await;
    let namespace = send(&client, "GET", "/api/v1/namespaces/default", &Value::Null).await;

    let kinds = KnownKinds::new(
        Builtin::load().unwrap(),
        vec![Crd::from_value(&definition).unwrap()],
    );
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut differences = Vec::new();
    for trial in &trials {
        let target = if trial.gvr.group == "apps" {
            &deployments
        } else {
            &boxes
        };
        let answer = answer(&client, target, &trial.object).await;
        let outcome = own(trial, &kinds, &namespace.body);
        match difference(answer.as_ref(), &outcome) {
            Ok(how) => *counts.entry(how).or_default() += 1,
            Err(difference) => differences.push(format!(
                "{} of {}:\n  {difference}",
                trial.object, trial.policy["spec"]
            )),
        }
    }
    println!(
        "{} requests through mutating policies, seed {seed}: {counts:?}, {} different",
        trials.len(),
        differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let of = |how| counts.get(how).copied().unwrap_or_default();
    assert!(of("equal objects") >= 2 * count / LEAST.0, "{counts:?}");
    assert!(
        of("refused by a policy") >= 2 * count / LEAST.1,
        "{counts:?}"
    );
}
