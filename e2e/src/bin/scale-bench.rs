//! How the controller behaves with thousands of policies, on a real API server.
//!
//! For each number of policies one control plane is filled and one line of a table printed. The policies are
//! created first, and get bare server-side applies to `/status` of the size that ours have, by a client of this
//! process; what the controller takes for the same number is put beside that, in one run on one machine.
//!
//! `scale-bench` alone takes 100, 1,000 and 10,000 policies, with 2,000 CRDs, 10,000 params and 200 wildcard
//! policies beside the larger two. `scale-bench --policies 1000 --crds 100 --params 1000 --wildcards 20` is quick.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are the output"
)]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, control_plane, grant_params};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Requests in flight, which is also how many statuses the controller writes at once.
const CONCURRENCY: usize = 32;

/// How many CRDs are created at once: the API server takes each into all that it publishes.
const CRDS_AT_ONCE: usize = 8;

/// How many kinds a group of CRDs has.
const KINDS_PER_GROUP: usize = 10;

/// How many policies depend on the CRD that changes.
const N_DEPENDANTS: usize = 100;

/// How many params change, one after the other.
const N_PARAM_EVENTS: usize = 20;

/// How long anything may take.
const TIMEOUT: Duration = Duration::from_secs(900);

/// For how long nothing may be written until the controller is taken to be at rest.
const QUIET: Duration = Duration::from_secs(4);

/// Measures the controller with thousands of policies.
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// How many policies, with a binding each; may be given several times
    #[arg(long)]
    policies: Vec<usize>,
    /// How many CRDs
    #[arg(long)]
    crds: Option<usize>,
    /// How many params (config maps)
    #[arg(long)]
    params: Option<usize>,
    /// How many of the policies match every kind
    #[arg(long)]
    wildcards: Option<usize>,
    /// For how long the controller is watched at rest, in seconds
    #[arg(long, default_value_t = 30)]
    rest: u64,
}

/// What a control plane is filled with.
#[derive(Clone, Copy, Debug)]
struct Size {
    policies: usize,
    crds: usize,
    params: usize,
    wildcards: usize,
}

/// What was measured, in the order of the table.
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
    row.add("of these on every kind", size.wildcards.to_string());
    row.add("CRDs", size.crds.to_string());
    row.add("params", size.params.to_string());
    let control_plane = control_plane().await?;
    grant_params(&control_plane)?;
    let client = control_plane.client().await?;
    fill(&client, size).await?;

    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let bare = bare_patches(&policies, size).await?;
    row.seconds("bare status patches", bare);

    let started = Instant::now();
    let controller = Controller::start(&control_plane, &[]).await?;
    row.seconds("ready after the start", started.elapsed());
    await_condition(&policies, "", size.policies, "Bound", "NoBindings").await?;
    let judged = started.elapsed();
    row.seconds("all have a complete status after the start", judged);
    row.add("  ratio to bare patches", ratio(judged, bare));

    let created = bind_all(&client, size).await?;
    let started = Instant::now();
    await_condition(&policies, "", size.policies, "Bound", "BindingsFound").await?;
    row.seconds("bindings created in", created);
    row.seconds("all Bound after the last binding", started.elapsed());
    row.add(
        "  ratio, creation included, to bare patches",
        ratio(created + started.elapsed(), bare),
    );

    await_rest(&controller).await?;
    row.add("resident memory, at rest and at most", memory(&controller)?);
    at_rest(&controller, rest, &mut row).await?;
    change_crd(&client, &policies, &controller, &mut row).await?;
    change_params(&client, &controller, size, &mut row).await?;
    row.add("resident memory at last, and at most", memory(&controller)?);
    end(controller).await;
    restart(&control_plane, &mut row).await?;
    Ok(row)
}

/// Ends the controller, and prints what it complained of: the figures are to be seen all the same.
async fn end(controller: Controller) {
    if let Err(error) = controller.kill().await {
        println!("the controller complained: {error:#}");
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

fn parsed<T: DeserializeOwned>(value: Value) -> Result<T> {
    Ok(serde_json::from_value(value)?)
}

/// Creates what `make` makes of the numbers below `n`, some at once.
async fn create_all<K>(
    api: &Api<K>,
    n: usize,
    at_once: usize,
    make: impl Fn(usize) -> Value,
) -> Result<Duration>
where
    K: Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let started = Instant::now();
    let make = &make;
    stream::iter(0..n)
        .map(|n| async move {
            api.create(&PostParams::default(), &parsed(make(n))?)
                .await?;
            Ok::<_, anyhow::Error>(())
        })
        .buffer_unordered(at_once)
        .try_collect::<()>()
        .await?;
    Ok(started.elapsed())
}

/// Creates everything but the bindings.
async fn fill(client: &Client, size: Size) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let took = create_all(&crds, size.crds + 1, CRDS_AT_ONCE, |n| crd(n, "integer")).await?;
    eprintln!("  CRDs created in {:.1} s", took.as_secs_f64());
    await_documents(client, size.crds / KINDS_PER_GROUP).await?;
    let params: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    create_all(
        &params,
        size.params,
        CONCURRENCY,
        |n| json!({"metadata": {"name": param_name(n)}, "data": {"max": n.to_string()}}),
    )
    .await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let took = create_all(&policies, size.policies, CONCURRENCY, |n| policy(n, size)).await?;
    eprintln!("  policies created in {:.1} s", took.as_secs_f64());
    Ok(())
}

fn param_name(n: usize) -> String {
    format!("param-{n}")
}

fn name(n: usize) -> String {
    format!("bench-{n}.example.com")
}

fn group(n: usize) -> String {
    format!("g{}.bench.example.com", n / KINDS_PER_GROUP)
}

/// The CRD of that number; `type_` is that of the field that the dependants of the first read.
fn crd(n: usize, type_: &str) -> Value {
    let (group, plural, kind) = (group(n), format!("thing{n}s"), format!("Thing{n}"));
    let text = json!({"type": "string", "description": "A text of this very CRD."});
    let fields = (0..20).map(|field| (format!("field{field}"), text.clone()));
    let mut fields: serde_json::Map<String, Value> = fields.collect();
    fields.insert("size".to_owned(), json!({"type": type_}));
    json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": format!("thing{n}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": fields}},
            }}}],
        },
    })
}

/// What a policy is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Wildcard,
    /// Reads the CRD that changes.
    Dependant,
    WithParams,
    Plain,
}

impl Role {
    fn of(n: usize, size: Size) -> Self {
        let apart = (size.policies / N_DEPENDANTS).max(1);
        if n < size.wildcards {
            Self::Wildcard
        } else if n % apart == apart / 2 {
            Self::Dependant
        } else if size.params > 0 && n % 10 == 3 {
            Self::WithParams
        } else {
            Self::Plain
        }
    }
}

fn policy(n: usize, size: Size) -> Value {
    let role = Role::of(n, size);
    let (first_group, apps, all) = (group(0), "apps".to_owned(), "*".to_owned());
    let (group, version, resources, own) = match role {
        Role::Wildcard => (
            all,
            "*",
            vec!["*/*"],
            format!("object.metadata.name != 'x{n}'"),
        ),
        Role::Dependant => (
            first_group,
            "v1",
            vec!["thing0s"],
            format!("object.spec.size <= {n}"),
        ),
        Role::WithParams => (
            apps,
            "v1",
            vec!["deployments"],
            "object.spec.replicas <= int(params.data.max)".to_owned(),
        ),
        Role::Plain => (
            apps,
            "v1",
            vec!["deployments", "statefulsets"],
            format!("object.spec.replicas <= {n}"),
        ),
    };
    let param_kind =
        (role == Role::WithParams).then(|| json!({"apiVersion": "v1", "kind": "ConfigMap"}));
    let role = format!("{role:?}").to_lowercase();
    json!({
        "metadata": {"name": name(n), "labels": {"role": role}},
        "spec": {
            "paramKind": param_kind,
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"],
                "resources": resources,
            }]},
            "validations": [
                {"expression": own},
                {"expression": "!has(object.metadata.labels) || object.metadata.labels.all(key, key.size() < 100)"},
                {"expression": "has(object.metadata.labels) && 'team' in object.metadata.labels"},
            ],
        },
    })
}

/// Binds all policies; how long that took.
async fn bind_all(client: &Client, size: Size) -> Result<Duration> {
    let api: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    create_all(&api, size.policies, CONCURRENCY, |n| {
        let with_params = Role::of(n, size) == Role::WithParams;
        let reference = json!({"name": param_name(n % size.params.max(1)), "namespace": "default",
                               "parameterNotFoundAction": "Deny"});
        json!({
            "metadata": {"name": name(n)},
            // Nothing is to be denied here.
            "spec": {"policyName": name(n), "validationActions": ["Audit"],
                     "matchResources": {"namespaceSelector": {"matchLabels": {"no-such": "label"}}},
                     "paramRef": with_params.then_some(reference)},
        })
    })
    .await
}

/// Writes statuses as large as those of the controller, and takes the time.
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

/// How many of the policies have the condition with the reason.
async fn n_with(
    api: &Api<ValidatingAdmissionPolicy>,
    labels: &str,
    condition: &str,
    reason: &str,
) -> Result<usize> {
    let params = ListParams::default().match_any().labels(labels);
    let policies = api.list(&params).await?;
    let has = |policy: &&ValidatingAdmissionPolicy| {
        let status = policy.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|known| known.type_ == condition && known.reason == reason)
    };
    Ok(policies.items.iter().filter(has).count())
}

/// Waits until `n` policies have the condition with the reason. Looks half of the time at most: a list of
/// thousands takes the API server time as well.
async fn await_condition(
    api: &Api<ValidatingAdmissionPolicy>,
    labels: &str,
    n: usize,
    condition: &str,
    reason: &str,
) -> Result<()> {
    let started = Instant::now();
    loop {
        let look = Instant::now();
        let found = n_with(api, labels, condition, reason).await?;
        if found >= n {
            return Ok(());
        }
        ensure!(
            started.elapsed() < TIMEOUT,
            "{found} of {n} policies have {condition} {reason}"
        );
        tokio::time::sleep(look.elapsed().max(Duration::from_millis(20))).await;
    }
}

/// The text of the API server's index of documents.
async fn index(client: &Client) -> Result<Value> {
    let request = http::Request::get("/openapi/v3").body(Vec::new())?;
    Ok(client.request(request).await?)
}

/// Waits until the API server publishes the documents of so many groups.
async fn await_documents(client: &Client, n_groups: usize) -> Result<()> {
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

/// The sum of the samples of a metric whose labels contain `label`.
async fn metric(controller: &Controller, name: &str, label: &str) -> Result<f64> {
    let (_, text) = controller.get("/metrics").await?;
    let samples = text.lines().filter(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
    });
    let values = samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(values.sum())
}

/// Waits until nothing is written and nothing waits for a while.
async fn await_rest(controller: &Controller) -> Result<()> {
    let started = Instant::now();
    let mut last = (-1.0, Instant::now());
    while last.1.elapsed() < QUIET {
        ensure!(started.elapsed() < TIMEOUT, "it does not come to rest");
        let done = metric(controller, "vap_reconciles_total", "").await?;
        if (done - last.0).abs() > 0.5 {
            last = (done, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

async fn at_rest(controller: &Controller, time: Duration, row: &mut Row) -> Result<()> {
    let requests = metric(controller, "vap_requests_total", "").await?;
    // The scrape costs more than anything else at rest.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let processor = controller.processor_seconds()?;
    tokio::time::sleep(time).await;
    let processor = controller.processor_seconds()? - processor;
    let requests = metric(controller, "vap_requests_total", "").await? - requests;
    let seconds = time.as_secs_f64();
    row.add(
        "processor at rest",
        format!("{:.2} %", 100.0 * processor / seconds),
    );
    row.add(
        "requests at rest",
        format!("{:.1} a minute", 60.0 * requests / (seconds + 1.0)),
    );
    Ok(())
}

/// Changes the type of a field of a CRD, so that all its dependants get a warning.
async fn change_crd(
    client: &Client,
    policies: &Api<ValidatingAdmissionPolicy>,
    controller: &Controller,
    row: &mut Row,
) -> Result<()> {
    let labels = "role=dependant";
    let n_dependants = policies
        .list_metadata(&ListParams::default().labels(labels))
        .await?
        .items
        .len();
    let path = format!("apis/{}/v1", group(0));
    let address = |index: Value| {
        index
            .pointer("/paths")
            .and_then(|paths| paths.get(&path))
            .cloned()
    };
    let before = address(index(client).await?);
    let processor = controller.processor_seconds()?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let started = Instant::now();
    let patch = crd(0, "string");
    let spec = json!({"spec": patch.get("spec")});
    let crd_name = format!("thing0s.{}", group(0));
    crds.patch(&crd_name, &PatchParams::default(), &Patch::Merge(spec))
        .await?;
    while address(index(client).await?) == before {
        ensure!(started.elapsed() < TIMEOUT, "the change is not published");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let published = started.elapsed();
    await_condition(
        policies,
        labels,
        n_dependants,
        "TypeChecked",
        "ExpressionWarnings",
    )
    .await?;
    let last = started.elapsed();
    row.add(
        "dependants of the CRD that changes",
        n_dependants.to_string(),
    );
    row.seconds("CRD changed: published by the API server after", published);
    row.seconds("  last dependant has turned after", last);
    row.seconds(
        "  that is, after the publishing",
        last.saturating_sub(published),
    );
    await_rest(controller).await?;
    let processor = controller.processor_seconds()? - processor;
    row.add("  processor time of all that", format!("{processor:.2} s"));
    Ok(())
}

/// Changes params that one policy each names.
async fn change_params(
    client: &Client,
    controller: &Controller,
    size: Size,
    row: &mut Row,
) -> Result<()> {
    let numbers = (0..size.policies).filter(|n| Role::of(*n, size) == Role::WithParams);
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
    #[expect(clippy::cast_precision_loss, reason = "it is a small number")]
    let n_events = n_events as f64;
    row.add(
        "one param event: reconciles",
        format!("{:.1}", reconciles / n_events),
    );
    row.add(
        "  processor time",
        format!("{:.1} ms", 1000.0 * processor / n_events),
    );
    Ok(())
}

/// Starts the controller anew beside statuses that are as they should be.
async fn restart(control_plane: &ControlPlane, row: &mut Row) -> Result<()> {
    let started = Instant::now();
    let controller = Controller::start(control_plane, &[]).await?;
    let ready = started.elapsed();
    await_rest(&controller).await?;
    let writes = metric(&controller, "vap_status_writes_total", "").await?;
    let judged = metric(&controller, "vap_policies", "").await?;
    row.seconds("restart: ready after", ready);
    row.add("  statuses written", format!("{writes}"));
    row.add("  policies judged", format!("{judged}"));
    row.add(
        "  processor time",
        format!("{:.2} s", controller.processor_seconds()?),
    );
    row.add(
        "  resident memory, at rest and at most",
        memory(&controller)?,
    );
    end(controller).await;
    Ok(())
}
