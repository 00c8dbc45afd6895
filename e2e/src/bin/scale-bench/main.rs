//! Measures the controller with thousands of policies on a real API server.
//!
//! For each number of policies, the benchmark fills a control plane and prints one column of a table:
//!
//! - A client in this process sends bare server-side applies to `/status` of the policies. The statuses are as large as
//!   those of the controller.
//! - The policies are recreated. The controller's time for the same number of statuses is compared with the client's
//!   time.
//! - CPU times are also printed, because on a busy machine only CPU times are comparable.
//!
//! The default is 100, 1,000 and 10,000 policies. For the larger two numbers, there are 2,000 CRDs, 10,000 params and
//! 200 wildcard policies. A quick run: `scale-bench --policies 1000 --crds 100 --params 1000 --wildcards 20`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are the output"
)]

mod content;
mod usage;
mod wait;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use e2e::allowed_failures::AllowedFailure;
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, control_plane, grant_params};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use self::content::{
    CONCURRENCY, Role, Size, bind_all, crd, create_policies, delete_policies, fill, group, name,
    param_name,
};
use self::usage::Usage;
use self::wait::{
    Expected, N_SAMPLES, TIMEOUT, await_condition, await_rest, await_samples, await_writes,
    ensure_met, index,
};

/// The number of params that change one after another.
const N_PARAM_EVENTS: usize = 20;

/// Measure the controller with thousands of policies.
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// Number of policies, each with a binding; may be repeated
    #[arg(long)]
    policies: Vec<usize>,
    /// Number of CRDs
    #[arg(long)]
    crds: Option<usize>,
    /// Number of params (config maps)
    #[arg(long)]
    params: Option<usize>,
    /// Number of policies that match every kind
    #[arg(long)]
    wildcards: Option<usize>,
    /// Seconds for which the idle controller is measured
    #[arg(long, default_value_t = 30)]
    rest: u64,
}

/// The measured values, in the order of the table.
#[derive(Debug, Default)]
struct Row(Vec<(&'static str, String)>);

impl Row {
    fn add(&mut self, what: &'static str, value: String) {
        eprintln!("  {what}: {value}");
        self.0.push((what, value));
    }

    fn seconds(&mut self, what: &'static str, duration: Duration) {
        self.add(what, format!("{:.2} s", duration.as_secs_f64()));
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let numbers = match arguments.policies.as_slice() {
        [] => vec![100, 1_000, 10_000],
        given => given.to_vec(),
    };
    let mut rows = Vec::new();
    for policies in numbers {
        let size = Size {
            policies,
            crds: arguments
                .crds
                .unwrap_or(if policies < 1_000 { 20 } else { 2_000 }),
            params: arguments.params.unwrap_or(policies),
            wildcards: arguments.wildcards.unwrap_or((policies / 20).min(200)),
        };
        rows.push(measure(size, Duration::from_secs(arguments.rest)).await?);
    }
    print_table(&rows);
    Ok(())
}

fn print_table(rows: &[Row]) {
    let Some(first) = rows.first() else { return };
    for (n, (what, _)) in first.0.iter().enumerate() {
        let values = rows.iter().filter_map(|row| row.0.get(n));
        let values: Vec<String> = values.map(|(_, value)| format!("{value:>16}")).collect();
        println!("{what:<58}{}", values.join(""));
    }
}

async fn measure(size: Size, rest: Duration) -> Result<Row> {
    eprintln!("{size:?}");
    let mut row = Row::default();
    row.add("policies with a binding each", size.policies.to_string());
    row.add("policies that match every kind", size.wildcards.to_string());
    row.add("CRDs", size.crds.to_string());
    row.add("params", size.params.to_string());
    let control_plane = control_plane().await?;
    grant_params(&control_plane)?;
    let client = control_plane.client().await?;
    fill(&client, size).await?;

    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    // These policies are deleted afterwards. If they remained, the managed fields of a second writer would make them
    // larger and slow down the controller's writes.
    create_policies(&client, size).await?;
    let usage = Usage::measure(&control_plane, None)?;
    let bare = bare_patches(&policies, size).await?;
    row.seconds("bare status patches", bare);
    let bare_processor = usage.add_to(&mut row, &control_plane, None)?;
    delete_policies(&client, size).await?;
    create_policies(&client, size).await?;

    let usage = Usage::measure(&control_plane, None)?;
    let started = Instant::now();
    let controller = Controller::start(&control_plane, &[]).await?;
    controller.allow([events_dropped()]);
    row.seconds("ready after the start", started.elapsed());
    let names: Vec<String> = (0..size.policies).map(name).collect();
    let unbound = Expected("Bound", "NoBindings");
    await_samples(&policies, &names, N_SAMPLES, unbound).await?;
    await_writes(&controller, size.policies).await?;
    let judged = started.elapsed();
    row.seconds("all statuses complete after the start", judged);
    row.add("  ratio to bare patches", ratio(judged, bare));
    let processor = usage.add_to(&mut row, &control_plane, Some(&controller))?;
    row.add(
        "  ratio to the CPU time of bare patches",
        format!("{:.2}", processor / bare_processor),
    );
    row.add("  requests, writes", requests(&controller).await?);
    // This check is not part of the measured time, because listing all policies takes a second.
    ensure_met(&policies, unbound).await?;

    let created = bind_all(&client, size).await?;
    let started = Instant::now();
    let bound = Expected("Bound", "BindingsFound");
    await_condition(&policies, "", names, bound).await?;
    row.seconds("bindings created in", created);
    row.seconds(
        "all policies Bound after the last binding",
        started.elapsed(),
    );
    row.add(
        "  ratio, including creation, to bare patches",
        ratio(created + started.elapsed(), bare),
    );
    row.add("  requests, writes", requests(&controller).await?);

    await_rest(&controller).await?;
    row.add("resident memory, idle and peak", memory(&controller)?);
    at_rest(&controller, rest, &mut row).await?;
    change_crd(&client, &policies, &controller, &mut row).await?;
    change_params(&client, &controller, size, &mut row).await?;
    row.add("resident memory, at the end and peak", memory(&controller)?);
    end(controller).await;
    restart(&control_plane, &mut row).await?;
    Ok(row)
}

/// Allows the warning about dropped events. Thousands of conditions change at once, and events are rate-limited.
fn events_dropped() -> AllowedFailure {
    AllowedFailure::warning("conditions change faster than events are sent")
}

/// Stops the controller. Prints its warnings and errors without failing, so that the results are still printed.
async fn end(controller: Controller) {
    if let Err(error) = controller.kill().await {
        println!("{error:#}");
    }
}

fn ratio(a: Duration, b: Duration) -> String {
    format!("{:.2}", a.as_secs_f64() / b.as_secs_f64())
}

fn memory(controller: &Controller) -> Result<String> {
    let mib = |kib: u64| kib / 1024;
    Ok(format!(
        "{}/{} MiB",
        mib(controller.resident_kib()?),
        mib(controller.peak_kib()?)
    ))
}

/// Writes statuses as large as those of the controller.
async fn bare_patches(api: &Api<ValidatingAdmissionPolicy>, size: Size) -> Result<Duration> {
    let started = Instant::now();
    stream::iter(0..size.policies)
        .map(|n| async move {
            let conditions: Vec<Value> = (0..7)
                .map(|n| {
                    json!({"type": format!("Bench{n}"), "status": "True", "reason": "ResourcesServed",
                           "message": "the rules match two resources, and no more than two",
                           "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"})
                })
                .collect();
            let status = json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "status": {"observedGeneration": 1, "typeChecking": {}, "conditions": conditions},
            });
            let params = PatchParams::apply("bench").force();
            api.patch_status(&name(n), &params, &Patch::Apply(status)).await?;
            Ok::<_, anyhow::Error>(())
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<()>()
        .await?;
    Ok(started.elapsed())
}

/// Returns the sum of the samples of metric `name` whose labels contain `label`.
async fn metric(controller: &Controller, name: &str, label: &str) -> Result<f64> {
    let (_, text) = controller.get("/metrics").await?;
    let samples = text.lines().filter(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
    });
    let values = samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(values.sum())
}

/// Formats the numbers of requests by verb, reconciliations by outcome, and status writes, since the start.
async fn requests(controller: &Controller) -> Result<String> {
    let samples = controller.samples().await?;
    let total = |name: &str, label: &str, value: &str| {
        let of = samples
            .iter()
            .filter(|sample| sample.name == name && sample.label(label) == Some(value));
        of.map(|sample| sample.value).sum::<f64>()
    };
    let mut parts = Vec::new();
    for verb in ["get", "list", "watch", "patch", "create"] {
        parts.push(format!(
            "{verb} {}",
            total("vap_requests_total", "verb", verb)
        ));
    }
    for outcome in ["applied", "unchanged", "conflict", "failed"] {
        parts.push(format!(
            "{outcome} {}",
            total("vap_reconciles_total", "outcome", outcome)
        ));
    }
    Ok(parts.join(", "))
}

/// Returns the number of requests since the start. Excludes events, because they are rate-limited separately.
async fn requests_but_events(controller: &Controller) -> Result<f64> {
    let all = metric(controller, "vap_requests_total", "").await?;
    Ok(all - metric(controller, "vap_requests_total", "create").await?)
}

async fn at_rest(controller: &Controller, time: Duration, row: &mut Row) -> Result<()> {
    let requests = requests_but_events(controller).await?;
    // This pause keeps the CPU time of the previous scrape out of the measurement. A scrape uses more CPU time than an
    // idle controller.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let processor = controller.processor_seconds()?;
    tokio::time::sleep(time).await;
    let processor = controller.processor_seconds()? - processor;
    let requests = requests_but_events(controller).await? - requests;
    let seconds = time.as_secs_f64();
    row.add(
        "CPU time while idle",
        format!("{:.2}%", 100.0 * processor / seconds),
    );
    row.add(
        "requests while idle, without events",
        format!("{:.1} per minute", 60.0 * requests / (seconds + 1.0)),
    );
    Ok(())
}

/// The interval between polls of the API server's OpenAPI index. A poll takes milliseconds, because the index is large.
const INDEX_PAUSE: Duration = Duration::from_millis(50);

/// Changes the type of a CRD's field. All policies that depend on the CRD then get a warning.
async fn change_crd(
    client: &Client,
    policies: &Api<ValidatingAdmissionPolicy>,
    controller: &Controller,
    row: &mut Row,
) -> Result<()> {
    let labels = "role=dependant";
    let dependants = policies
        .list_metadata(&ListParams::default().labels(labels))
        .await?
        .items;
    let n_dependants = dependants.len();
    let path = format!("apis/{}/v1", group(0));
    let address = |index: Value| {
        index
            .pointer("/paths")
            .and_then(|paths| paths.get(&path))
            .cloned()
    };
    let before = address(index(client).await?);
    let warned = Expected("TypeChecked", "ExpressionWarnings");
    let turned = wait::watch_condition(policies, labels, n_dependants, warned).await?;
    let processor = controller.processor_seconds()?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let started = Instant::now();
    let patch = crd(0, "string");
    let spec = json!({"spec": patch.get("spec")});
    let crd_name = format!("thing0s.{}", group(0));
    crds.patch(&crd_name, &PatchParams::default(), &Patch::Merge(spec))
        .await?;
    while address(index(client).await?) == before {
        ensure!(
            started.elapsed() < TIMEOUT,
            "the API server does not publish the changed CRD"
        );
        tokio::time::sleep(INDEX_PAUSE).await;
    }
    let published = started.elapsed();
    let last = turned.await??.saturating_duration_since(started);
    row.add(
        "policies that depend on the changed CRD",
        n_dependants.to_string(),
    );
    row.seconds("CRD changed: published by the API server after", published);
    row.seconds("  last dependent policy updated after", last);
    row.seconds(
        "  measured from the publication",
        last.saturating_sub(published),
    );
    await_rest(controller).await?;
    let processor = controller.processor_seconds()? - processor;
    row.add("  CPU time of the change", format!("{processor:.2} s"));
    Ok(())
}

/// Changes params one after another. One policy refers to each param.
async fn change_params(
    client: &Client,
    controller: &Controller,
    size: Size,
    row: &mut Row,
) -> Result<()> {
    let numbers = (0..size.policies).filter(|n| Role::new(*n, size) == Role::WithParams);
    let numbers: Vec<usize> = numbers.take(N_PARAM_EVENTS).collect();
    let n_events = numbers.len().max(1);
    let params: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let reconciles = metric(controller, "vap_reconciles_total", "").await?;
    let processor = controller.processor_seconds()?;
    for n in numbers {
        let patch = json!({"data": {"max": "7"}, "metadata": {"labels": {"changed": "yes"}}});
        let name = param_name(n % size.params.max(1));
        params
            .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let processor = controller.processor_seconds()? - processor;
    let reconciles = metric(controller, "vap_reconciles_total", "").await? - reconciles;
    #[expect(clippy::cast_precision_loss, reason = "the number is small")]
    let n_events = n_events as f64;
    row.add(
        "one param event: reconciles",
        format!("{:.1}", reconciles / n_events),
    );
    row.add(
        "  CPU time",
        format!("{:.1} ms", 1000.0 * processor / n_events),
    );
    Ok(())
}

/// Restarts the controller. It has nothing to write, since all statuses are up to date.
async fn restart(control_plane: &ControlPlane, row: &mut Row) -> Result<()> {
    let started = Instant::now();
    let controller = Controller::start(control_plane, &[]).await?;
    let ready = started.elapsed();
    await_rest(&controller).await?;
    let writes = metric(&controller, "vap_status_writes_total", "").await?;
    let judged = metric(&controller, "vap_policies", "").await?;
    row.seconds("restart: ready after", ready);
    row.add("  statuses written", format!("{writes}"));
    row.add("  policies reconciled", format!("{judged}"));
    row.add(
        "  CPU time",
        format!("{:.2} s", controller.processor_seconds()?),
    );
    row.add("  resident memory, idle and peak", memory(&controller)?);
    end(controller).await;
    Ok(())
}
