//! Measures the controller's time for writing the statuses of many policies, compared with bare status patches.
//!
//! First, a client in this process sends bare server-side applies to `/status` of N policies: concurrently, and then
//! one after another as a second field manager. Next, the controller runs while N policies are created. The time until
//! all policies have a status is measured.
//!
//! The output contains the durations of client and controller, several ratios, and the controller's memory. One ratio
//! is not enough: the creation of policies takes longer than concurrent patches, and the controller already works while
//! policies are created.
//!
//! `status-bench N --wildcards FOLDER` measures memory and time for expensive policies: it installs the CRDs in the
//! folder and creates N policies that match every kind (`*/*`), with many expressions. Each policy is checked against
//! hundreds of schemas.

#![allow(clippy::print_stdout, reason = "the figures are the output")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, control_plane};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

const CONCURRENCY: usize = 32;

const TIMEOUT: Duration = Duration::from_secs(300);

#[tokio::main]
async fn main() -> Result<()> {
    let usage = "usage: status-bench [NUMBER OF POLICIES] [--wildcards FOLDER OF CRDS]";
    let mut arguments = std::env::args().skip(1);
    let n_policies = match arguments.next() {
        Some(n) => n.parse().context(usage)?,
        None => 500,
    };
    let crds: Option<PathBuf> = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--wildcards"), Some(folder)) => Some(folder.into()),
        (None, _) => None,
        _ => bail!(usage),
    };
    let control_plane = control_plane().await?;
    let api: Api<ValidatingAdmissionPolicy> = Api::all(control_plane.client().await?);
    if let Some(crds) = crds {
        return wildcards(&control_plane, &api, n_policies, &crds).await;
    }

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
        "bare status patches, sequential      {:.2} s",
        seconds(in_turn)
    );
    println!(
        "with the controller: created         {:.2} s",
        seconds(created)
    );
    println!(
        "all statuses written                 {:.2} s after the first creation",
        seconds(all)
    );
    println!(
        "                                     {:.2} s after the last creation",
        seconds(after_last)
    );
    println!(
        "ratio, total, to sequential patches  {:.2}",
        seconds(all) / seconds(in_turn)
    );
    println!(
        "ratio, after creation, to patches    {:.2}",
        seconds(after_last) / seconds(bare)
    );
    println!(
        "ratio, total, to creation + patches  {:.2}",
        seconds(all) / (seconds(bare_created) + seconds(bare))
    );
    println!(
        "resident memory of the controller    {:.1} MiB idle, {:.1} MiB with all policies",
        mib(idle_kib),
        mib(resident_kib)
    );
    controller.finish().await
}

/// The sampling interval of the memory, and the time without writes after which all statuses count as written.
const INTERVAL_AND_QUIET: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(5));

async fn wildcards(
    control_plane: &ControlPlane,
    api: &Api<ValidatingAdmissionPolicy>,
    n_policies: usize,
    crds: &Path,
) -> Result<()> {
    let mut install = control_plane.kubectl()?;
    install.args(["apply", "--server-side", "--force-conflicts", "-R", "-f"]);
    // A failure of kubectl is ignored, because the folder may contain several versions of the same CRD.
    let outcome = install.arg(crds).output()?;
    let log = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let n_crds = log
        .lines()
        .filter(|line| line.ends_with("serverside-applied"))
        .count();
    tokio::time::sleep(INTERVAL_AND_QUIET.1).await;
    stream::iter(0..n_policies)
        .map(|n| async move {
            Ok::<_, anyhow::Error>(api.create(&PostParams::default(), &wildcard(n)?).await?)
        })
        .buffer_unordered(CONCURRENCY)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    let started = Instant::now();
    let controller = Controller::start(control_plane, &[]).await?;
    let mut peak_kib = 0;
    while n_with_status(api).await? < n_policies {
        ensure!(
            started.elapsed() < TIMEOUT,
            "not all policies have a status"
        );
        peak_kib = peak_kib.max(controller.resident_kib()?);
        tokio::time::sleep(INTERVAL_AND_QUIET.0).await;
    }
    let all = started.elapsed();
    tokio::time::sleep(INTERVAL_AND_QUIET.1).await;
    let rest_kib = controller.resident_kib()?;
    println!("CRDs                                 {n_crds}");
    println!("policies with `*/*`                  {n_policies}");
    println!(
        "all statuses written                 {:.2} s after the controller's start",
        all.as_secs_f64()
    );
    println!(
        "CPU time of the controller           {:.2} s",
        controller.processor_seconds()?
    );
    println!(
        "resident memory of the controller    {:.1} MiB peak, {:.1} MiB idle",
        mib(peak_kib.max(controller.peak_kib()?)),
        mib(rest_kib)
    );
    if let Some(first) = api
        .list(&ListParams::default().limit(1))
        .await?
        .items
        .first()
    {
        let conditions = first
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref());
        for condition in conditions.into_iter().flatten() {
            println!(
                "  {} {} {}: {}",
                condition.type_, condition.status, condition.reason, condition.message
            );
        }
    }
    controller.finish().await
}

/// Returns a policy that matches every kind, with 27 expressions.
fn wildcard(n: usize) -> Result<ValidatingAdmissionPolicy> {
    let validations: Vec<_> = (0..12)
        .map(|k| {
            let expression = match k % 4 {
                0 => format!("!has(object.metadata.labels) || object.metadata.labels.size() < {}", 20 + k + n),
                1 => format!("object.metadata.name.matches('^[a-z0-9.-]{{1,{}}}$')", 100 + k),
                2 => format!("variables.owner == 'team-{n}-{k}' || !has(object.spec)"),
                _ => format!("!has(object.metadata.annotations) || object.metadata.annotations.all(key, !key.startsWith('x{k}.'))"),
            };
            json!({"expression": expression, "messageExpression": format!("object.metadata.name + ' is no {k}'")})
        })
        .collect();
    Ok(serde_json::from_value(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("wildcard-{n}.example.com")},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"],
            }]},
            "matchConditions": [
                {"name": "not-deleted", "expression": "object != null"},
                {"name": "not-system", "expression": "!request.userInfo.username.startsWith('system:')"},
            ],
            "variables": [{
                "name": "owner",
                "expression": "has(object.metadata.labels) && 'owner' in object.metadata.labels ? object.metadata.labels.owner : ''",
            }],
            "validations": validations,
        },
    }))?)
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
