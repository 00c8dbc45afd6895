//! How long the controller takes to give many policies their status, beside bare status patches.
//!
//! In one run on one control plane: first N policies get a bare server-side apply to `/status` each, by a
//! client of this process; then, with the controller running, N policies are created at once and the time
//! is taken until all have a status. Prints both with their ratios, and the controller's resident memory.
//! Bare patches are sent 32 at once and, by another field manager, one after the other. Creating takes
//! longer than patching at once, and the controller works meanwhile, so that several ratios are of use.

#![allow(clippy::print_stdout, reason = "the figures are the output")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, grant_rights, service_account};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

/// Requests in flight, of bare patches and of creations alike.
const CONCURRENCY: usize = 32;

/// How long all policies may take to get their status.
const TIMEOUT: Duration = Duration::from_secs(300);

#[tokio::main]
async fn main() -> Result<()> {
    let n_policies = match std::env::args().nth(1) {
        Some(n) => n
            .parse()
            .context("usage: status-bench [NUMBER OF POLICIES]")?,
        None => 500,
    };
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .start()
        .await?;
    grant_rights(&control_plane)?;
    let api: Api<ValidatingAdmissionPolicy> = Api::all(control_plane.client().await?);

    let started = Instant::now();
    create(&api, n_policies).await?;
    let bare_created = started.elapsed();
    let bare = bare_patches(&api, n_policies, "bench", CONCURRENCY).await?;
    let in_turn = bare_patches(&api, n_policies, "bench-in-turn", 1).await?;
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    while !api
        .list_metadata(&ListParams::default())
        .await?
        .items
        .is_empty()
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    let controller = Controller::start(&control_plane, &[]).await?;
    let idle_kib = controller.resident_kib()?;
    let started = Instant::now();
    create(&api, n_policies).await?;
    let created = started.elapsed();
    while n_with_status(&api).await? < n_policies {
        ensure!(
            started.elapsed() < TIMEOUT,
            "not all policies have a status"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let all = started.elapsed();
    let resident_kib = controller.resident_kib()?;
    let seconds = |duration: Duration| duration.as_secs_f64();
    let after_last = all.saturating_sub(created);
    println!("policies                             {n_policies}");
    println!(
        "without the controller: created      {:.2} s",
        seconds(bare_created)
    );
    println!(
        "bare status patches                  {:.2} s",
        seconds(bare)
    );
    println!(
        "bare status patches, in turn         {:.2} s",
        seconds(in_turn)
    );
    println!(
        "with the controller: created         {:.2} s",
        seconds(created)
    );
    println!(
        "all have their status                {:.2} s after the first creation",
        seconds(all)
    );
    println!(
        "                                     {:.2} s after the last",
        seconds(after_last)
    );
    println!(
        "ratio, in all, to patches in turn    {:.2}",
        seconds(all) / seconds(in_turn)
    );
    println!(
        "ratio, after the last, to patches    {:.2}",
        seconds(after_last) / seconds(bare)
    );
    println!(
        "ratio, in all, to creation + patches {:.2}",
        seconds(all) / (seconds(bare_created) + seconds(bare))
    );
    println!(
        "resident memory of the controller    {:.1} MiB idle, {:.1} MiB with them",
        mib(idle_kib),
        mib(resident_kib)
    );
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "memory in KiB is far below 2^52"
)]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn policy(n: usize) -> Result<ValidatingAdmissionPolicy> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("bench-{n}.example.com")},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["deployments", "statefulsets"],
            }]},
            "validations": [
                {"expression": format!("object.spec.replicas <= {n}")},
                {"expression": "object.spec.template.spec.containers.all(c, c.image.startsWith('example.com/'))"},
                {"expression": "has(object.metadata.labels) && 'team' in object.metadata.labels"},
            ],
        },
    }))?)
}

async fn create(api: &Api<ValidatingAdmissionPolicy>, n_policies: usize) -> Result<()> {
    stream::iter(0..n_policies)
        .map(|n| async move {
            Ok::<_, anyhow::Error>(api.create(&PostParams::default(), &policy(n)?).await?)
        })
        .buffer_unordered(CONCURRENCY)
        .try_for_each(|_| async { Ok(()) })
        .await
}

async fn bare_patches(
    api: &Api<ValidatingAdmissionPolicy>,
    n_policies: usize,
    field_manager: &str,
    concurrency: usize,
) -> Result<Duration> {
    let started = Instant::now();
    stream::iter(0..n_policies)
        .map(|n| async move {
            let status = json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "status": {"observedGeneration": 1, "typeChecking": {}},
            });
            let params = PatchParams::apply(field_manager).force();
            api.patch_status(
                &format!("bench-{n}.example.com"),
                &params,
                &Patch::Apply(status),
            )
            .await
        })
        .buffer_unordered(concurrency)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(started.elapsed())
}

async fn n_with_status(api: &Api<ValidatingAdmissionPolicy>) -> Result<usize> {
    let policies = api.list(&ListParams::default().match_any()).await?;
    let observed = policies.items.iter().filter(|policy| {
        policy
            .status
            .as_ref()
            .and_then(|status| status.observed_generation)
            .is_some()
    });
    Ok(observed.count())
}
