//! Probes in the cluster and in files: the same documents come to the same results.

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

use e2e::controller::{Controller, control_plane, grant_params, install_probes};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use vap_status_controller::cli::input::{Input, Wanted};
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::{CaseOutcome, PolicyProbe, PolicyProbeStatus};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Policies that no API server takes: their probes fail in files alone.
const REFUSED: [&str; 2] = ["syntax-error", "wrong-reason"];

/// Files with policies and probes of them that bring their bindings and params.
const FILES: [&str; 2] = ["../tests/cli_test/traps.yaml", "../config/samples"];

/// The outcome of a case, and how it differs from what was expected.
type Outcomes = BTreeMap<(String, String), (CaseOutcome, Option<String>)>;

fn in_files(paths: &[PathBuf]) -> Outcomes {
    let options = Options {
        paths: paths.to_vec(),
        ..Options::default()
    };
    let report = test::run(&options, &mut std::io::empty()).unwrap();
    let mut found = Outcomes::new();
    for probe in &report.probes {
        for case in &probe.cases {
            let key = (probe.name.clone(), case.name.clone());
            found.insert(key, (case.outcome, case.difference.clone()));
        }
    }
    found
}

async fn status(probes: &Api<PolicyProbe>, name: &str) -> Option<PolicyProbeStatus> {
    let status = probes.get(name).await.unwrap().status?;
    let mut cases = status.cases.iter();
    let is_settled = cases.all(|case| case.outcome != CaseOutcome::Pending);
    is_settled.then_some(status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_come_to_the_same_in_files() {
    let control_plane = control_plane().await.unwrap();
    grant_params(&control_plane).unwrap();
    let client = control_plane.client().await.unwrap();
    install_probes(&client).await.unwrap();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let paths: Vec<PathBuf> = FILES.iter().map(|file| root.join(file)).collect();
    let input = Input::load(&paths, Wanted::All, &mut std::io::empty());
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
            policies.create(&create, &policy.value).await.unwrap();
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
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut differences = Vec::new();
        let mut n_cases = 0;
        for name in &names {
            let Some(status) = status(&probes, name).await else {
                differences.push(format!("{name}: not evaluated"));
                continue;
            };
            for case in status.cases {
                n_cases += 1;
                let key = (name.clone(), case.name.clone());
                let found = (case.outcome, case.difference);
                if expected.get(&key) != Some(&found) {
                    let file = expected.get(&key);
                    differences.push(format!("{key:?}: {found:?}, in files {file:?}"));
                }
            }
        }
        if differences.is_empty() {
            println!("{n_cases} cases of {} probes are equal", names.len());
            assert!(n_cases > 20);
            break;
        }
        assert!(Instant::now() < deadline, "{}", differences.join("\n"));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    controller.finish().await.unwrap();
}
