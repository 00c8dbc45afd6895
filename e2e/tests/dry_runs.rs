//! `kubectl vap test` against a real API server: what server-side dry runs of requests over many kinds get is what
//! probes with the same requests find.
//!
//! Policies are made from a seed: they read what the API server has made of an object, and ask for just that,
//! or for something else.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::answer::Answer;
use e2e::controller::{control_plane, repository};
use e2e::random::{Random, from_environment};
use http::Request;
use kube::Client;
use serde::Deserialize as _;
use serde_json::{Value, json};
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::CaseOutcome;
use vap_status_controller::schema::{Builtin, Gvk};

const TIMEOUT: Duration = Duration::from_secs(90);

/// Requests for each policy.
const REQUESTS: usize = 6;

/// Policies for each object.
const POLICIES: usize = 2;

/// Conditions of each policy.
const CONDITIONS: u64 = 6;

/// The least that must be compared, so that none gets lost unnoticed.
const LEAST: (usize, usize, usize) = (300, 60, 40);

/// Fields that an API server makes up, or takes from its configuration.
const MADE: [&str; 16] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "managedFields",
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "nodePort",
    "healthCheckNodePort",
    "lastPhaseTransitionTime",
    "batch.kubernetes.io/controller-uid",
    "controller-uid",
    "time",
    "name",
    "batch.kubernetes.io/job-name",
];

fn objects() -> Vec<Value> {
    let text = std::fs::read_to_string(repository().join("e2e/admission/kinds.yaml")).unwrap();
    serde_norway::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).unwrap())
        .collect()
}

/// A kind's objects: where they are sent to.
#[derive(Clone, Debug)]
struct Target {
    gvk: Gvk,
    resource: String,
    path: String,
}

fn target(builtin: &Builtin, object: &Value) -> Target {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = Gvk::new(group, version, object["kind"].as_str().unwrap());
    let served = builtin
        .resources()
        .iter()
        .find(|served| served.gvk == gvk && !served.gvr.is_subresource())
        .unwrap_or_else(|| panic!("{gvk:?}"));
    let root = if group.is_empty() { "api" } else { "apis" };
    let namespace = if served.namespaced {
        "/namespaces/default"
    } else {
        ""
    };
    Target {
        resource: String::from(&*served.gvr.resource),
        path: format!("/{root}/{api_version}{namespace}/{}", served.gvr.resource),
        gvk,
    }
}

async fn post(client: &Client, path: &str, object: &Value) -> Answer {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(kube::client::Body::from(object.to_string().into_bytes()))
        .unwrap();
    Answer::to(client, request).await.unwrap()
}

async fn dry_run(client: &Client, target: &Target, object: &Value) -> Answer {
    post(client, &format!("{}?dryRun=All", target.path), object).await
}

/// The places in an object with what is there, as an expression and a literal.
fn facts(value: &Value, expression: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if !fields.keys().any(|name| MADE.contains(&name.as_str())) {
                out.push(format!("size({expression}) == {}", fields.len()));
            }
            for (name, value) in fields {
                if !MADE.contains(&name.as_str()) {
                    facts(value, &format!("{expression}[{}]", json!(name)), out);
                }
            }
        }
        Value::Array(items) => {
            out.push(format!("size({expression}) == {}", items.len()));
            for (n, item) in items.iter().enumerate() {
                facts(item, &format!("{expression}[{n}]"), out);
            }
        }
        Value::Number(number) if number.is_f64() => {}
        scalar => out.push(format!("{expression} == {scalar}")),
    }
}

/// A policy, with the requests that are made for it.
struct Trial {
    name: String,
    target: Target,
    policy: Value,
    binding: Value,
    requests: Vec<Value>,
}

fn trial(n: usize, target: &Target, object: &Value, made: &Value, random: &mut Random) -> Trial {
    let name = format!("p{n}");
    let mut known = Vec::new();
    facts(made, "object", &mut known);
    known.push("has(object.metadata.uid) && object.metadata.uid != ''".to_owned());
    known.push(
        "has(object.metadata.creationTimestamp) && !has(object.metadata.selfLink)".to_owned(),
    );
    known.push("has(object.metadata.managedFields)".to_owned());
    let mut validations =
        vec![json!({"expression": "!object.metadata.name.endsWith('-sync')", "message": "sync"})];
    for _ in 0..CONDITIONS {
        let fact = random.choose(&known).unwrap();
        // One in eight asks for what is not so.
        let expression = if random.permille(125) {
            format!("!({fact})")
        } else {
            fact.clone()
        };
        validations.push(json!({"expression": expression}));
    }
    validations.push(json!({"expression": "object.metadata.labels.n != '3'", "message": "three"}));
    let actions = if random.permille(300) {
        json!(["Warn"])
    } else {
        json!(["Deny"])
    };
    let requests = (0..REQUESTS).map(|n| {
        let mut object = object.clone();
        object["metadata"]["name"] = json!(format!("{name}-{n}"));
        object["metadata"]["labels"]["n"] = json!(n.to_string());
        object
    });
    Trial {
        policy: json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [&*target.gvk.group], "apiVersions": [&*target.gvk.version],
                    "operations": ["CREATE"], "resources": [target.resource]}]},
                "matchConditions": [{"name": "mine",
                    "expression": format!("object.metadata.name.startsWith('{name}-')")}],
                "validations": validations,
            },
        }),
        binding: json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": actions},
        }),
        requests: requests.collect(),
        target: target.clone(),
        name,
    }
}

/// The expectation of a probe that follows from an answer.
fn expectation(answer: &Answer, policy: &str) -> Value {
    let ours = format!("ValidatingAdmissionPolicy '{policy}'");
    // The API server warns of other things too.
    let warnings: Vec<&String> = answer
        .warnings
        .iter()
        .filter(|text| text.contains(&ours))
        .collect();
    if answer.status < 300 {
        return json!({"decision": "Allow", "warnings": warnings});
    }
    let (_, cause) = answer
        .message()
        .split_once("denied request: ")
        .unwrap_or_else(|| panic!("{policy}: {answer:?}"));
    let cause = cause.to_owned();
    json!({"decision": "Deny", "message": cause, "reason": answer.body["reason"], "warnings": warnings})
}

/// Waits until the API server asks a policy.
async fn enforced(client: &Client, trial: &Trial) {
    let deadline = Instant::now() + TIMEOUT;
    let mut object = trial.requests[0].clone();
    object["metadata"]["name"] = json!(format!("{}-sync", trial.name));
    loop {
        let answer = dry_run(client, &trial.target, &object).await;
        let is_asked = answer.message().contains("denied request: sync")
            || answer.warnings.iter().any(|text| text.contains(": sync"));
        if is_asked {
            return;
        }
        assert!(Instant::now() < deadline, "{}: {answer:?}", trial.name);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_find_what_dry_runs_get() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let builtin = Builtin::load().unwrap();
    let seed = from_environment("VAP_DRY_RUNS_SEED", 42).unwrap();
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

    let mut trials = Vec::new();
    for (n, object) in objects().iter().enumerate() {
        let target = target(&builtin, object);
        let mut named = object.clone();
        named["metadata"] = json!({"name": "a", "labels": {"n": "0"}});
        let answer = dry_run(&client, &target, &named).await;
        assert_eq!(answer.status, 201, "{object}: {answer:?}");
        for k in 0..POLICIES {
            let number = n * POLICIES + k;
            let mut random = Random::of(seed, "dry runs", u64::try_from(number).unwrap());
            trials.push(trial(number, &target, object, &answer.body, &mut random));
        }
    }
    for trial in &trials {
        for (path, object) in [(policies, &trial.policy), (bindings, &trial.binding)] {
            let answer = post(&client, path, object).await;
            assert_eq!(answer.status, 201, "{object}: {answer:?}");
        }
    }
    let mut documents = Vec::new();
    let (mut n_requests, mut n_denied, mut n_warned) = (0, 0, 0);
    for trial in &trials {
        enforced(&client, trial).await;
        let mut cases = Vec::new();
        for request in &trial.requests {
            let answer = dry_run(&client, &trial.target, request).await;
            let expect = expectation(&answer, &trial.name);
            n_requests += 1;
            n_denied += usize::from(expect["decision"] == "Deny");
            n_warned += usize::from(expect["warnings"] != json!([]));
            cases.push(json!({
                "name": request["metadata"]["name"],
                "request": {"object": request, "dryRun": true},
                "expect": expect,
            }));
        }
        documents.push(trial.policy.clone());
        documents.push(trial.binding.clone());
        documents.push(json!({
            "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe",
            "metadata": {"name": trial.name},
            "spec": {"policyName": trial.name, "cases": cases},
        }));
    }
    let file = control_plane.directory().join("probes.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
    std::fs::write(&file, list.to_string()).unwrap();
    let options = Options {
        paths: vec![file],
        crds: Vec::new(),
        coverage: false,
        mutants: false,
    };
    let report = test::run(&options, &mut std::io::empty()).unwrap();

    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for trial in &trials {
        *kinds.entry(format!("{:?}", trial.target.gvk)).or_default() += 1;
    }
    let mut differences = Vec::new();
    let mut n_pending = 0;
    for case in report.probes.iter().flat_map(|probe| &probe.cases) {
        match case.outcome {
            CaseOutcome::Passed => {}
            CaseOutcome::Pending => {
                n_pending += 1;
                differences.push(format!("{}: pending: {:?}", case.name, case.difference));
            }
            CaseOutcome::Failed => {
                differences.push(format!("{}: {:?}", case.name, case.difference));
            }
        }
    }
    println!(
        "{n_requests} requests over {} policies and {} kinds, {n_denied} denied, {n_warned} warned of, \
         {n_pending} pending, {} decided otherwise",
        trials.len(),
        kinds.len(),
        differences.len() - n_pending
    );
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(n_requests >= LEAST.0 && trials.len() >= LEAST.1 && kinds.len() >= LEAST.2);
    assert!(n_denied > 60 && n_warned > 20);
}
