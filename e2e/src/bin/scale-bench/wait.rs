//! Waits until the cluster and the controller reach a state.
//!
//! The API server and the measured process share the machine, so polling thousands of policies would distort the
//! measurement. Therefore only a few samples are polled.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use e2e::controller::Controller;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Client;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::metric;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(900);

/// The controller counts as idle after this time without writes.
const QUIET: Duration = Duration::from_secs(4);

/// The number of sample policies that are polled one after another before all policies are read.
pub(crate) const N_SAMPLES: usize = 8;

/// The maximum number of policies that are read one by one. More policies are read with a list request.
const FEW: usize = 200;

/// The interval between polls. It is short compared with the measured durations, and long compared with a poll. A
/// scrape with thousands of policies takes a tenth of a second.
const PAUSE: Duration = Duration::from_millis(250);

/// The type of a condition, and its expected reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected(pub(crate) &'static str, pub(crate) &'static str);

impl Expected {
    fn is_met_by(self, policy: &ValidatingAdmissionPolicy) -> bool {
        let status = policy.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|known| known.type_ == self.0 && known.reason == self.1)
    }
}

/// Waits until all policies in `names` have the expected condition. `labels` must select these policies.
pub(crate) async fn await_condition(
    api: &Api<ValidatingAdmissionPolicy>,
    labels: &str,
    names: Vec<String>,
    expected: Expected,
) -> Result<()> {
    let started = Instant::now();
    let mut lacking = names;
    while !lacking.is_empty() {
        ensure!(
            started.elapsed() < TIMEOUT,
            "{} policies do not get {expected:?}",
            lacking.len()
        );
        let is_few = lacking.len() <= FEW;
        let n_samples = if is_few { lacking.len() } else { N_SAMPLES };
        await_samples(api, &lacking, n_samples, expected).await?;
        if is_few {
            return Ok(());
        }
        let params = ListParams::default().match_any().labels(labels);
        let policies = api.list(&params).await?.items.into_iter();
        let policies = policies.filter(|policy| !expected.is_met_by(policy));
        lacking = policies.filter_map(|policy| policy.metadata.name).collect();
    }
    Ok(())
}

/// Waits until `n_samples` policies have the expected condition. The samples are spread over `names`, and the last
/// policy is polled first. Statuses are written in the order of the list, so the other policies have the condition too.
pub(crate) async fn await_samples(
    api: &Api<ValidatingAdmissionPolicy>,
    names: &[String],
    n_samples: usize,
    expected: Expected,
) -> Result<()> {
    let started = Instant::now();
    let apart = names.len().div_ceil(n_samples).max(1);
    for name in names.iter().rev().step_by(apart) {
        while !expected.is_met_by(&api.get(name).await?) {
            ensure!(
                started.elapsed() < TIMEOUT,
                "{name} does not get {expected:?}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Waits until the controller has written `n_policies` statuses.
pub(crate) async fn await_writes(controller: &Controller, n_policies: usize) -> Result<()> {
    let started = Instant::now();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let wanted = n_policies as f64;
    while metric(controller, "vap_reconciles_total", "outcome=\"applied\"").await? < wanted {
        ensure!(
            started.elapsed() < TIMEOUT,
            "fewer than {n_policies} statuses are written"
        );
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Returns an error if a policy does not have the expected condition.
pub(crate) async fn ensure_met(
    api: &Api<ValidatingAdmissionPolicy>,
    expected: Expected,
) -> Result<()> {
    let policies = api.list(&ListParams::default().match_any()).await?.items;
    let lacking = policies.iter().filter(|it| !expected.is_met_by(it)).count();
    ensure!(lacking == 0, "{lacking} policies lack {expected:?}");
    Ok(())
}

/// Watches the policies that `labels` select. Returns the time at which the last of `n_policies` got the expected
/// condition. For the API server, one watch is cheaper than reading each policy.
pub(crate) async fn watch_condition(
    api: &Api<ValidatingAdmissionPolicy>,
    labels: &str,
    n_policies: usize,
    expected: Expected,
) -> Result<JoinHandle<Result<Instant>>> {
    let params = ListParams::default().labels(labels);
    let listed = api.list_metadata(&params).await?.metadata;
    let since = listed.resource_version.unwrap_or_default();
    let params = WatchParams::default().labels(labels).timeout(290);
    let mut events = api.watch(&params, &since).await?.boxed();
    let last = async move {
        let mut turned = BTreeSet::new();
        while turned.len() < n_policies {
            let event = events.try_next().await?;
            match event.context("the watch ended before all had turned")? {
                WatchEvent::Modified(policy) if expected.is_met_by(&policy) => {
                    turned.extend(policy.metadata.name);
                }
                WatchEvent::Error(status) => bail!("the watch failed: {}", status.message),
                _ => {}
            }
        }
        Ok(Instant::now())
    };
    Ok(tokio::spawn(last))
}

pub(crate) async fn index(client: &Client) -> Result<Value> {
    let request = http::Request::get("/openapi/v3").body(Vec::new())?;
    Ok(client.request(request).await?)
}

/// Waits until the API server publishes the OpenAPI documents of `n_groups` groups.
pub(crate) async fn await_documents(client: &Client, n_groups: usize) -> Result<()> {
    let started = Instant::now();
    loop {
        let index = index(client).await?;
        let paths = index.get("paths").and_then(Value::as_object);
        let paths = paths.context("no paths in the index")?;
        let is_ours = |path: &&String| path.ends_with(".bench.example.com/v1");
        if paths.keys().filter(is_ours).count() >= n_groups {
            eprintln!("  published in {:.1} s", started.elapsed().as_secs_f64());
            return Ok(());
        }
        ensure!(started.elapsed() < TIMEOUT, "the CRDs are not published");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Waits until the controller has been idle for [`QUIET`]: no writes and an empty queue.
pub(crate) async fn await_rest(controller: &Controller) -> Result<()> {
    let started = Instant::now();
    let mut last = (-1.0, Instant::now());
    while last.1.elapsed() < QUIET {
        ensure!(
            started.elapsed() < TIMEOUT,
            "the controller does not become idle"
        );
        let done = metric(controller, "vap_reconciles_total", "").await?;
        if (done - last.0).abs() > 0.5 {
            last = (done, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}
