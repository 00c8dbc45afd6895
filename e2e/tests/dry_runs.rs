//! Compares `kubectl vap test` with a real API server. For many kinds, probes have the same results as server-side dry
//! runs of their requests.
//!
//! Policies are generated from a seed. Their validations compare fields of an object with values, most of which are
//! correct. The API server sets defaults in the object before it evaluates the validations.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::controller::{control_plane, repository};
use kube::Client;
use parity::random::{Random, from_environment};
use serde_json::{Value, json};
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::cli::time_limit::TimeLimit;
use vap_status_controller::probe::api::CaseOutcome;
use vap_status_controller::schema::Builtin;
use vap_status_controller::version::KubernetesVersion;

use dry_run::{BINDINGS, POLICIES, TIMEOUT, Target, dry_run, expectation, facts, post, target};

#[path = "support/dry_run.rs"]
mod dry_run;

const REQUESTS: usize = 6;

const PER_OBJECT: usize = 2;

const CONDITIONS: u64 = 6;

/// The minimum numbers of comparisons. Without them, the test would pass even if comparisons were dropped.
const LEAST: (usize, usize, usize) = (300, 60, 40);

fn objects() -> Vec<Value> {
    dry_run::documents(&repository().join("e2e/admission/kinds.yaml"))
}

/// A policy and the requests for it.
struct Trial {
    name: String,
    target: Target,
    policy: Value,
    binding: Value,
    requests: Vec<Value>,
}

fn trial(n: usize, target: &Target, object: &Value, made: &Value, random: &mut Random) -> Trial {
    let name = format!("p{n}");
    let mut true_conditions = Vec::new();
    facts(made, "object", &mut true_conditions);
    true_conditions.push("has(object.metadata.uid) && object.metadata.uid != ''".to_owned());
    true_conditions.push(
        "has(object.metadata.creationTimestamp) && !has(object.metadata.selfLink)".to_owned(),
    );
    true_conditions.push("has(object.metadata.managedFields)".to_owned());
    let mut validations =
        vec![json!({"expression": "!object.metadata.name.endsWith('-sync')", "message": "sync"})];
    for _ in 0..CONDITIONS {
        let fact = random.choose(&true_conditions).unwrap();
        // One condition in eight is false.
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
async fn probes_decide_like_dry_runs() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
    let seed = from_environment("VAP_DRY_RUNS_SEED", 42).unwrap();

    let mut trials = Vec::new();
    for (n, object) in objects().iter().enumerate() {
        let target = target(builtin, object);
        let mut named = object.clone();
        named["metadata"] = json!({"name": "a", "labels": {"n": "0"}});
        let answer = dry_run(&client, &target, &named).await;
        assert_eq!(answer.status, 201, "{object}: {answer:?}");
        for k in 0..PER_OBJECT {
            let number = n * PER_OBJECT + k;
            let mut random = Random::for_event(seed, "dry runs", u64::try_from(number).unwrap());
            trials.push(trial(number, &target, object, &answer.body, &mut random));
        }
    }
    for trial in &trials {
        for (path, object) in [(POLICIES, &trial.policy), (BINDINGS, &trial.binding)] {
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
        // The version of the control plane.
        version: Some(KubernetesVersion::DEFAULT),
        paths: vec![file],
        crds: Vec::new(),
        coverage: false,
        mutants: false,
        filter: None,
        durations: false,
        limit: TimeLimit::default(),
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
