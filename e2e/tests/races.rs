//! Changes policies immediately after their creation. The controller misses no change, and no metrics of deleted
//! policies remain.
//!
//! `VAP_RACES_SEED` and `VAP_RACES_MAX_DELAY_MS` set the delays.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its seed"
)]

use std::time::{Duration, Instant};

use e2e::control_plane::STATUS_CONTROLLER;
use e2e::controller::{Controller, control_plane};
use e2e::policies;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use parity::random::{Random, from_environment};
use serde_json::json;

const N_PATCHED: usize = 1_500;
const N_DELETED: usize = 1_000;

/// The number of policies that change concurrently. It is small, so that the second change arrives while the controller
/// writes.
const CONCURRENCY: usize = 8;

/// The timeout from the last change until all statuses are as expected.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The controller counts as idle after this time without writes.
const QUIET: Duration = Duration::from_secs(3);

/// Returns the delay before the second change for each policy.
fn delays(n: usize) -> Vec<Duration> {
    let seed = from_environment("VAP_RACES_SEED", 1).unwrap();
    let most = from_environment("VAP_RACES_MAX_DELAY_MS", 60).unwrap();
    println!("VAP_RACES_SEED={seed} VAP_RACES_MAX_DELAY_MS={most}");
    let mut random = Random::new(seed);
    let most = Duration::from_millis(most);
    (0..n).map(|_| random.duration(most)).collect()
}

fn name(n: usize) -> String {
    format!("race-{n}")
}

fn policy(n: usize) -> ValidatingAdmissionPolicy {
    let deployments = ("apps", "deployments");
    policies::policy(&name(n), deployments, "object.spec.replicas <= 5")
}

/// Creates one policy per delay, and applies `change` to it after the delay.
async fn race<F: Future<Output = ()>>(
    api: &Api<ValidatingAdmissionPolicy>,
    delays: Vec<Duration>,
    change: impl Fn(String) -> F,
) {
    let change = &change;
    stream::iter(delays.into_iter().enumerate())
        .for_each_concurrent(CONCURRENCY, |(n, delay)| async move {
            api.create(&PostParams::default(), &policy(n))
                .await
                .unwrap();
            tokio::time::sleep(delay).await;
            change(name(n)).await;
        })
        .await;
}

async fn await_idle(controller: &Controller) {
    let started = Instant::now();
    let mut last = (
        controller.total("vap_status_writes_total").await.unwrap(),
        started,
    );
    while last.1.elapsed() < QUIET {
        assert!(
            started.elapsed() < TIMEOUT,
            "the controller does not become idle"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = controller.total("vap_status_writes_total").await.unwrap();
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
}

async fn patched(with_kcm: bool) {
    let mut control_plane = control_plane().await.unwrap();
    if with_kcm {
        control_plane.start_kcm(&[STATUS_CONTROLLER]).await.unwrap();
    }
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let api: Api<ValidatingAdmissionPolicy> = Api::all(control_plane.client().await.unwrap());
    race(&api, delays(N_PATCHED), async |name| {
        let spec = json!({"validations": [{"expression": "object.spec.replicas <= 6"}]});
        let patch = Patch::Merge(json!({"spec": spec}));
        api.patch(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    })
    .await;
    await_idle(&controller).await;
    let policies = api.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(policies.len(), N_PATCHED);
    let is_stale = |policy: &ValidatingAdmissionPolicy| {
        let status = policy.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions
            .iter()
            .find(|condition| condition.type_ == "Ready");
        status.observed_generation != policy.metadata.generation
            || ready.is_none_or(|ready| {
                ready.observed_generation != policy.metadata.generation || ready.status != "True"
            })
    };
    let stale: Vec<_> = policies
        .into_iter()
        .filter(is_stale)
        .filter_map(|policy| policy.metadata.name)
        .collect();
    println!(
        "{N_PATCHED} policies patched, {} of them stale",
        stale.len()
    );
    assert!(stale.is_empty(), "{} are stale: {stale:?}", stale.len());
    let n_writes = controller.total("vap_status_writes_total").await.unwrap();
    println!("{n_writes} writes");
    // Each policy changes twice, and a change causes at most two writes.
    assert!(
        n_writes <= 4 * u64::try_from(N_PATCHED).unwrap(),
        "{n_writes} writes"
    );
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_patched_after_creation_is_checked_again() {
    patched(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_patched_after_creation_with_kcm_is_checked_again() {
    patched(true).await;
}

async fn deleted(with_kcm: bool) {
    let mut control_plane = control_plane().await.unwrap();
    if with_kcm {
        control_plane.start_kcm(&[STATUS_CONTROLLER]).await.unwrap();
    }
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let api: Api<ValidatingAdmissionPolicy> = Api::all(control_plane.client().await.unwrap());
    race(&api, delays(N_DELETED), async |name| {
        api.delete(&name, &DeleteParams::default()).await.unwrap();
    })
    .await;
    await_idle(&controller).await;
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items, []);
    let samples = controller.samples().await.unwrap();
    let mut left: Vec<_> = samples
        .iter()
        .filter_map(|sample| sample.label("policy"))
        .collect();
    left.sort_unstable();
    left.dedup();
    println!("{N_DELETED} policies deleted, {} of them left", left.len());
    assert!(left.is_empty(), "{} are left: {left:?}", left.len());
    assert_eq!(controller.total("vap_policies").await.unwrap(), 0);
    // If no status was ever written, the assertion above would prove nothing.
    let written = controller.total("vap_status_writes_total").await.unwrap();
    assert!(written > 0, "no policy lived long enough");
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_deleted_after_creation_leaves_no_state() {
    deleted(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_deleted_after_creation_with_kcm_leaves_no_state() {
    deleted(true).await;
}
