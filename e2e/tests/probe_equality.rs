//! Tests that probes have the same results in the cluster and in files.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use e2e::conditions::wait_for;
use e2e::control_plane::ControlPlane;
use e2e::controller::{
    Controller, await_served, control_plane, grant_params, grant_watch, install_probes,
    install_statuses,
};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use vap_status_controller::cli::input::{Input, KindFilter, Object, decode};
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::{CaseOutcome, PolicyProbe, PolicyProbeStatus};
use vap_status_controller::version::KubernetesVersion;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Policies that the API server rejects. Their probes exist only in files, and fail.
const REFUSED: [&str; 2] = ["syntax-error", "wrong-reason"];

/// Files with policies and probes. The probes contain bindings and params.
const FILES: [&str; 3] = [
    "../tests/cli_test/traps.yaml",
    "../config/samples",
    "targets/defaulted.yaml",
];

/// Files with mutating policies, webhooks and CRDs, and with probes of them.
const TARGETS: [&str; 3] = [
    "targets/mutating.yaml",
    "targets/webhooks.yaml",
    "targets/definitions.yaml",
];

/// The values of `--follow`, and the plural names of the status objects.
const FOLLOWED: [(&str, &str); 4] = [
    (
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicystatuses",
    ),
    (
        "validatingwebhookconfigurations",
        "validatingwebhookconfigurationstatuses",
    ),
    (
        "mutatingwebhookconfigurations",
        "mutatingwebhookconfigurationstatuses",
    ),
    (
        "customresourcedefinitions",
        "customresourcedefinitionstatuses",
    ),
];

/// The outcome and the difference of each case, by probe and case.
type Outcomes = BTreeMap<(String, String), (CaseOutcome, Option<String>)>;

fn in_files(paths: &[PathBuf]) -> Outcomes {
    let options = Options {
        paths: paths.to_vec(),
        // The version of the control plane.
        version: Some(KubernetesVersion::DEFAULT),
        ..Options::default()
    };
    let report = test::run(&options, &mut std::io::empty()).unwrap();
    let mut actual = Outcomes::new();
    for probe in &report.probes {
        for case in &probe.cases {
            let key = (probe.name.clone(), case.name.clone());
            actual.insert(key, (case.outcome, case.difference.clone()));
        }
    }
    actual
}

async fn status(probes: &Api<PolicyProbe>, name: &str) -> Option<PolicyProbeStatus> {
    let status = probes.get(name).await.unwrap().status?;
    let mut cases = status.cases.iter();
    let is_settled = cases.all(|case| case.outcome != CaseOutcome::Pending);
    is_settled.then_some(status)
}

fn paths(files: &[&str]) -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    files.iter().map(|file| root.join(file)).collect()
}

/// Waits until these probes in the cluster have the results in `expected`. Returns the number of cases.
async fn equal(probes: &Api<PolicyProbe>, names: &[String], expected: &Outcomes) -> usize {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut differences = Vec::new();
        let mut n_cases = 0;
        for name in names {
            let Some(status) = status(probes, name).await else {
                differences.push(format!("{name}: not evaluated"));
                continue;
            };
            for case in status.cases {
                n_cases += 1;
                let key = (name.clone(), case.name.clone());
                let actual = (case.outcome, case.difference);
                if expected.get(&key) != Some(&actual) {
                    let file = expected.get(&key);
                    differences.push(format!("{key:?}: {actual:?}, in files {file:?}"));
                }
            }
        }
        if differences.is_empty() {
            println!("{n_cases} cases of {} probes are equal", names.len());
            return n_cases;
        }
        assert!(Instant::now() < deadline, "{}", differences.join("\n"));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Creates the objects without changes. Returns their names.
async fn create_all<T>(api: &Api<DynamicObject>, objects: &[Object<T>]) -> Vec<String> {
    let mut names = Vec::new();
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object.document.node.to_json()).unwrap();
        names.push(object.metadata.name.clone().unwrap());
        let deadline = Instant::now() + TIMEOUT;
        // The API server might not serve a new CRD yet.
        while let Err(error) = api.create(&PostParams::default(), &object).await {
            assert!(Instant::now() < deadline, "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_have_the_same_results_in_cluster_and_files() {
    let control_plane = control_plane().await.unwrap();
    grant_params(&control_plane).unwrap();
    let client = control_plane.client().await.unwrap();
    install_probes(&client).await.unwrap();
    let paths = paths(&FILES);
    let input = Input::load(&paths, KindFilter::All, &mut std::io::empty());
    let create = PostParams::default();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let probes: Api<PolicyProbe> = Api::all(client.clone());
    for crd in &input.crds {
        let crd = crd.document.node.to_json();
        let crd = serde_json::from_value(crd).unwrap();
        crds.create(&create, &crd).await.unwrap();
    }
    for policy in &input.policies {
        if !REFUSED.contains(&policy.name().unwrap()) {
            let policy = decode::policy(policy.document.node.to_json()).unwrap();
            policies.create(&create, &policy).await.unwrap();
        }
    }
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let mut names = Vec::new();
    for probe in &input.probes {
        let probe: PolicyProbe = serde_json::from_value(probe.value.clone()).unwrap();
        if !REFUSED.contains(&&*probe.spec.policy_name) {
            probes.create(&create, &probe).await.unwrap();
            names.push(probe.metadata.name.clone().unwrap());
        }
    }
    let expected = in_files(&paths);
    let n_cases = equal(&probes, &names, &expected).await;
    assert!(n_cases > 20);
    controller.finish().await.unwrap();
}

fn api(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(group, "v1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk))
}

const ADMISSION: &str = "admissionregistration.k8s.io";

fn statuses(client: &Client, plural: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(
        "vap-status.dev",
        "v1alpha1",
        "MutatingAdmissionPolicyStatus",
    );
    Api::all_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(&gvk, plural),
    )
}

/// Installs the permissions and CRDs for watching targets. Creates the targets of `input`.
async fn create_targets(control_plane: &ControlPlane, client: &Client, input: &Input) {
    for (resource, plural) in FOLLOWED {
        grant_watch(control_plane, resource).unwrap();
        install_statuses(control_plane, plural).unwrap();
    }
    let crds = api(client, "apiextensions.k8s.io", "CustomResourceDefinition");
    create_all(&crds, &input.crds).await;
    let policies = api(client, ADMISSION, "MutatingAdmissionPolicy");
    for policy in &input.mutating_policies {
        create_all(&policies, std::slice::from_ref(&policy.shared)).await;
    }
    let bindings = api(client, ADMISSION, "MutatingAdmissionPolicyBinding");
    create_all(&bindings, &input.mutating_bindings).await;
    for (_, plural) in FOLLOWED {
        let resource = format!("vap-status.dev/v1alpha1/{plural}");
        await_served(client, &resource).await.unwrap();
    }
    for configuration in &input.webhooks {
        let kind = configuration.value["kind"].as_str().unwrap();
        let configurations = api(client, ADMISSION, kind);
        create_all(&configurations, std::slice::from_ref(configuration)).await;
    }
}

/// Probes of targets have the same results in the cluster and in files. If a target changes, its probes are evaluated
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_of_targets_have_the_same_results_in_cluster_and_files() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    install_probes(&client).await.unwrap();
    let paths = paths(&TARGETS);
    let input = Input::load(&paths, KindFilter::All, &mut std::io::empty());
    create_targets(&control_plane, &client, &input).await;
    let policies = api(&client, ADMISSION, "MutatingAdmissionPolicy");
    let statuses = statuses(&client, "mutatingadmissionpolicystatuses");
    let controller = Controller::start(
        &control_plane,
        &[&format!(
            "--follow={}",
            FOLLOWED.map(|(resource, _)| resource).join(",")
        )],
    )
    .await
    .unwrap();
    let probes: Api<PolicyProbe> = Api::all(client.clone());
    let gvk = GroupVersionKind::gvk("vap-status.dev", "v1alpha1", "PolicyProbe");
    let raw: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    let names = create_all(&raw, &input.probes).await;
    let expected = in_files(&paths);
    let n_cases = equal(&probes, &names, &expected).await;
    assert!(n_cases > 26);

    // The policy has the condition `ProbesPassed`.
    let status = async || {
        let object = statuses.get_opt("lids").await.unwrap();
        Ok(object.map_or(Value::Null, |object| object.data["status"].clone()))
    };
    wait_for(
        "lids",
        "ProbesPassed",
        "False/ProbesFailed",
        TIMEOUT,
        status,
    )
    .await
    .unwrap();

    // If the policy or the target changes, the probe is evaluated again.
    let patch = json!({"spec": {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {
        "expression": "[JSONPatch{op: 'add', path: '/spec/lid', value: {'color': 'blue'}}]"}}]}});
    policies
        .patch("lids", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let outcome = async |name: &str, wanted: [CaseOutcome; 2]| {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let status = probes.get(name).await.unwrap().status.unwrap_or_default();
            let outcomes: Vec<CaseOutcome> = status.cases.iter().map(|case| case.outcome).collect();
            if outcomes == wanted {
                return;
            }
            assert!(Instant::now() < deadline, "{status:#?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    outcome("lids", [CaseOutcome::Failed, CaseOutcome::Passed]).await;
    let patch = json!({"spec": {"target": {"name": "none"}}});
    let patch = Patch::Merge(&patch);
    probes
        .patch("lids", &PatchParams::default(), &patch)
        .await
        .unwrap();
    outcome("lids", [CaseOutcome::Pending, CaseOutcome::Pending]).await;
    let ready = probes.get("lids").await.unwrap().status.unwrap().conditions[0].clone();
    assert_eq!(
        (&*ready.reason, &*ready.message),
        (
            "PolicyNotFound",
            "MutatingAdmissionPolicy none does not exist"
        )
    );
    let patch = json!({"spec": {"target": {"name": "lids"}}});
    let patch = Patch::Merge(&patch);
    probes
        .patch("lids", &PatchParams::default(), &patch)
        .await
        .unwrap();
    outcome("lids", [CaseOutcome::Failed, CaseOutcome::Passed]).await;
    outcome("labels", [CaseOutcome::Passed, CaseOutcome::Passed]).await;
    controller.finish().await.unwrap();

    // Without the flag, the probes are pending, and their messages contain the required action.
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    outcome("lids", [CaseOutcome::Pending, CaseOutcome::Pending]).await;
    let ready = probes.get("lids").await.unwrap().status.unwrap().conditions[0].clone();
    assert_eq!(ready.reason, "ProbesPending");
    assert!(
        ready
            .message
            .contains("start the controller with `--follow mutatingadmissionpolicies`"),
        "{}",
        ready.message
    );
    outcome("labels", [CaseOutcome::Pending, CaseOutcome::Pending]).await;
    let ready = probes.get("labels").await.unwrap().status.unwrap();
    let ready = ready.conditions[0].message.clone();
    let remedy = "start the controller with `--follow customresourcedefinitions`";
    assert!(ready.contains(remedy), "{ready}");
    controller.finish().await.unwrap();
}
