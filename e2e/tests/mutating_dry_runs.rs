//! Compares mutating policies with a real API server. The mutated object or the rejection of a dry run must equal the
//! result of `policy::admission::mutation`.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use e2e::controller::control_plane;
use e2e::response::Response;
use http::Request;
use kube::Client;
use mutation_trials::{Params, Trial, custom, deployment, limits, params, updating, with_params};
use parity::mutate_requests;
use parity::random::from_environment;
use serde_json::{Value, json};
use vap_status_controller::policy::admission::mutation::{Kinds as _, KnownKinds, MutationOutcome};
use vap_status_controller::policy::admission::{AdmissionRequest, Object, Operation, ParamList};
use vap_status_controller::schema::{Builtin, Crd};
use vap_status_controller::version::KubernetesVersion;

use dry_run::{TIMEOUT, create, post, send, served};

#[path = "support/dry_run.rs"]
mod dry_run;

#[path = "support/mutation_trials.rs"]
mod mutation_trials;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The divisors of the minimum numbers. For at least one third of the requests, our mutated object must equal that of
/// the API server. A policy must reject at least one twentieth of the requests.
const LEAST: (u64, u64) = (3, 20);

/// Creates policies and bindings. Waits until the API server evaluates them.
async fn install(client: &Client, trials: &mut [Trial]) {
    for trial in &mut *trials {
        create(client, POLICIES, &trial.policy).await;
        let name = trial.policy["metadata"]["name"].as_str().unwrap();
        trial.binding = binding(name, &trial.binding);
        create(client, BINDINGS, &trial.binding).await;
    }
    // The API server evaluates all policies if it evaluates the last policy of each paramKind.
    for (name, kind) in [
        ("last", Value::Null),
        (
            "last-config",
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        ),
        (
            "last-limit",
            json!({"apiVersion": "example.com/v1", "kind": "Limit"}),
        ),
    ] {
        let mut policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["leases"]}]},
                "reinvocationPolicy": "Never",
                "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
                    format!("Object{{metadata: Object.metadata{{labels: {{\"{name}\": \"yes\"}}}}}}")}}],
            },
        });
        let mut of = json!({});
        if !kind.is_null() {
            policy["spec"]["paramKind"] = kind;
            of["paramRef"] = json!({"name": "limits", "parameterNotFoundAction": "Deny"});
        }
        create(client, POLICIES, &policy).await;
        create(client, BINDINGS, &binding(name, &of)).await;
    }
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "last"}});
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases?dryRun=All";
        let response = post(client, path, &lease).await;
        let labels = &response.body["metadata"]["labels"];
        if labels == &json!({"last": "yes", "last-config": "yes", "last-limit": "yes"}) {
            return;
        }
        assert!(Instant::now() < deadline, "{response:?}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

/// Returns a binding of `policy`. `of` contains the other fields of its spec.
fn binding(policy: &str, of: &Value) -> Value {
    let mut spec = of.clone();
    spec["policyName"] = json!(policy);
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": format!("{policy}-0")},
        "spec": spec,
    })
}

/// Creates the params and the old objects. Returns the stored objects.
async fn prepare(client: &Client, trials: &mut [Trial]) -> Vec<Value> {
    let others = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}});
    create(client, "/api/v1/namespaces", &others).await;
    let mut stored = Vec::new();
    for object in params() {
        let path = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("/api/v1/namespaces/{namespace}/configmaps"),
            None => "/apis/example.com/v1/limits".to_owned(),
        };
        stored.push(create(client, &path, &object).await);
    }
    for trial in trials {
        let target = trial.target();
        if let Some(old) = &mut trial.old {
            *old = create(client, &target.path, old).await;
            // An update of a custom resource requires the resource version.
            if trial.gvr.group != "apps" {
                let version = old["metadata"]["resourceVersion"].clone();
                trial.object["metadata"]["resourceVersion"] = version;
            }
        }
    }
    stored
}

/// Returns the result of our evaluator.
fn own(trial: &Trial, kinds: &KnownKinds, namespace: &Value, params: &[Value]) -> MutationOutcome {
    // An API server sets defaults before it evaluates policies.
    let gvk = Object::new(&trial.object).gvk().clone();
    let object = kinds.completed(&gvk, trial.object.clone()).unwrap();
    let mut request = AdmissionRequest::create(trial.gvr.clone(), Object::new(&object));
    request.dry_run = true;
    if let Some(old) = &trial.old {
        request.operation = Operation::Update;
        request.old_object = Some(Object::new(old));
    }
    let of_kind = |kind: &str| {
        let of_kind = params.iter().filter(|object| object["kind"] == kind);
        of_kind.map(Object::new).collect::<Vec<_>>()
    };
    let params = match trial.params {
        Params::None => Ok(ParamList::default()),
        Params::ConfigMaps => Ok(ParamList::new(true, of_kind("ConfigMap"))),
        Params::Limits => Ok(ParamList::new(false, of_kind("Limit"))),
        Params::Unserved => Err(
            "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nothing'"
                .to_owned(),
        ),
    };
    let policies = [(trial.policy.clone(), vec![trial.binding.clone()])];
    mutate_requests::outcome(&policies, &params, kinds, &request, &object, namespace).unwrap()
}

/// Returns the parts of an object that mutations may change.
fn parts(object: &Value) -> Value {
    let metadata = &object["metadata"];
    // The API server does not store empty maps.
    let part = |name: &str| Some(&metadata[name]).filter(|part| *part != &json!({}));
    json!({"spec": object["spec"], "labels": part("labels"), "annotations": part("annotations")})
}

/// Removes the object from the end of a message, because it contains generated fields.
fn without_object(message: &str) -> &str {
    const BEFORE: &str = "Object 'Kind' is missing in '";
    message.split_inclusive(BEFORE).next().unwrap_or(message)
}

/// Returns the response to a dry run. Returns `None` if the API server panics and closes the connection.
async fn response(client: &Client, trial: &Trial) -> Option<Response> {
    let path = trial.target().path;
    let request = match &trial.old {
        None => Request::post(format!("{path}?dryRun=All")),
        Some(old) => {
            let name = old["metadata"]["name"].as_str().unwrap();
            Request::put(format!("{path}/{name}?dryRun=All"))
        }
    };
    let body = kube::client::Body::from(trial.object.to_string().into_bytes());
    let request = request
        .header("content-type", "application/json")
        .body(body);
    match Response::send(client, request.unwrap()).await {
        Ok(response) => Some(response),
        Err(error) => {
            let text = format!("{error:#}");
            assert!(text.contains("connection closed before message"), "{text}");
            None
        }
    }
}

/// Compares the API server's response with our result. Returns the kind of the result, or an error with the difference.
fn difference(
    response: Option<&Response>,
    outcome: &MutationOutcome,
) -> Result<&'static str, String> {
    let Some(response) = response else {
        return match &outcome.denial {
            Some(status) if status.code == 500 => Ok("a panic of the API server"),
            other => Err(format!("the API server panics; here: {other:?}")),
        };
    };
    if !outcome.unknown.is_empty() {
        return Ok("not supported here");
    }
    if let Some(status) = &outcome.denial {
        let actual = json!([status.code, status.reason, without_object(&status.message)]);
        let message = without_object(response.message());
        let expected = json!([response.status, response.body["reason"], message]);
        return if actual == expected {
            Ok("rejected by a policy")
        } else {
            Err(format!("rejected here: {actual}\n  there: {expected}"))
        };
    }
    if response.status >= 300 {
        // After the policies, the API server validates the mutated object. Our result does not include this step.
        return if response.message().contains("denied request") {
            Err(format!("rejected only there: {}", response.message()))
        } else {
            Ok("refused afterwards")
        };
    }
    let actual = parts(outcome.object.as_ref().unwrap());
    let expected = parts(&response.body);
    if actual == expected {
        Ok("equal objects")
    } else {
        Err(format!("here:  {actual}\n  there: {expected}"))
    }
}

/// Our mutated objects and rejections equal those of the API server. `VAP_MUTATIONS_SEED` sets the seed, and
/// `VAP_MUTATIONS` the number of requests per kind.
#[tokio::test(flavor = "multi_thread")]
async fn mutations_equal_those_of_the_api_server() {
    let seed = from_environment("VAP_MUTATIONS_SEED", 1).unwrap();
    let count = from_environment("VAP_MUTATIONS", 100).unwrap();
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let definition = mutate_requests::case(seed, 0)["crd"].clone();
    create(&client, CRDS, &definition).await;
    create(&client, CRDS, &limits()).await;
    served(&client, "/apis/example.com/v1/namespaces/default/boxes").await;
    served(&client, "/apis/example.com/v1/limits").await;

    let mut trials: Vec<Trial> = (0..count).map(|n| custom(seed, n)).collect();
    trials.extend((count..2 * count).map(|n| deployment(seed, n)));
    trials.extend((2 * count..3 * count).map(|n| with_params(seed, n)));
    trials.extend((3 * count..4 * count).map(|n| updating(seed, n)));
    let params = prepare(&client, &mut trials).await;
    install(&client, &mut trials).await;
    let namespace = send(&client, "GET", "/api/v1/namespaces/default", &Value::Null).await;

    let kinds = KnownKinds::new(
        Builtin::load(KubernetesVersion::DEFAULT).unwrap(),
        vec![Crd::from_value(&definition).unwrap()],
    );
    let mut counts: BTreeMap<(&'static str, &'static str), u64> = BTreeMap::new();
    let mut differences = Vec::new();
    for trial in &trials {
        let response = response(&client, trial).await;
        let outcome = own(trial, &kinds, &namespace.body, &params);
        match difference(response.as_ref(), &outcome) {
            Ok(how) => *counts.entry((trial.sort(), how)).or_default() += 1,
            Err(difference) => differences.push(format!(
                "{} before {:?} of {} by {}:\n  {difference}",
                trial.object, trial.old, trial.policy["spec"], trial.binding["spec"]
            )),
        }
    }
    println!(
        "{} requests through mutating policies, seed {seed}: {counts:?}, {} different",
        trials.len(),
        differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    for sort in trials.iter().map(Trial::sort).collect::<BTreeSet<_>>() {
        let of = |how| counts.get(&(sort, how)).copied().unwrap_or_default();
        assert!(of("equal objects") >= count / LEAST.0, "{counts:?}");
        assert!(of("rejected by a policy") >= count / LEAST.1, "{counts:?}");
    }
}
