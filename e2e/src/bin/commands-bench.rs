//! Measures time and memory of two commands: `audit` on many objects, and `test` on a large suite. The command `test`
//! is measured with and without mutants.
//!
//! Policies, objects and cases are generated from a seed. `./dev bench` prints the table. There are no thresholds.

#![allow(clippy::print_stdout, reason = "the table is the output")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use e2e::controller::processor_seconds;
use parity::random::Random;
use serde_json::{Value, json};

const INTERVAL: Duration = Duration::from_millis(2);

/// The number of alternating runs with and without mutants. The two durations differ little, so the means of many runs
/// are compared.
const TURNS: usize = 8;

const CASES: usize = 125;

#[derive(Debug, Parser)]
struct Args {
    /// Path of the plugin
    #[arg(long, default_value = "target/release/kubectl-vap")]
    plugin: PathBuf,
    /// Number of objects to audit.
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// Number of cases in the suite.
    #[arg(long, default_value_t = 1_000)]
    cases: usize,
    /// Seed of the objects.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

struct Run {
    report: Value,
    seconds: f64,
    processor: f64,
    peak_mib: f64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    fs::write(path("policies.yaml"), policies())?;
    let mut random = Random::new(args.seed);
    let objects: Vec<Value> = (0..args.objects).map(|n| object(n, &mut random)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(path("objects.json"), serde_json::to_string(&list)?)?;
    let mut documents = String::new();
    for object in &objects {
        // Each object is written as a list of YAML fields, because a document that begins with `{` would be parsed as
        // JSON.
        write!(documents, "---\nkind: Deployment\n")?;
        for (name, value) in object.as_object().into_iter().flatten() {
            if name != "kind" {
                writeln!(documents, "{name}: {value}")?;
            }
        }
    }
    fs::write(path("objects.yaml"), documents)?;
    let bytes = fs::metadata(path("objects.json"))?.len();
    println!(
        "{} objects ({:.1} MiB as JSON), {} policies with {} validations",
        args.objects,
        mib(bytes),
        POLICIES.len(),
        POLICIES
            .iter()
            .map(|(_, validations)| validations.len())
            .sum::<usize>()
    );
    println!(
        "{:34}{:>9}{:>11}{:>22}{:>12}",
        "", "seconds", "processor", "per second and core", "peak memory"
    );
    for file in ["objects.json", "objects.yaml"] {
        let run = run(
            &args.plugin,
            &["audit", "-o", "json", "-f"],
            &[path(file), path("policies.yaml")],
        )?;
        let evaluations = run
            .report
            .pointer("/summary/evaluations")
            .and_then(Value::as_u64);
        let evaluations = evaluations.context("no count of evaluations")?;
        print(&format!("audit {file}"), &run, evaluations, "evaluations");
    }
    let suite = path("suite");
    fs::create_dir(&suite)?;
    fs::write(suite.join("policies.yaml"), policies())?;
    for (n, first) in (0..args.cases).step_by(CASES).enumerate() {
        let last = (first + CASES).min(args.cases);
        let (name, _) = POLICIES.get(n % POLICIES.len()).context("no policy")?;
        let cases: Vec<Value> = (first..last)
            .map(|n| {
                let mut object = object(n, &mut random);
                stored(&mut object, false);
                json!({"name": format!("case {n}"), "request": {"object": object}, "expect": {"applies": true}})
            })
            .collect();
        let probe = json!({
            "apiVersion": "vap-status.dev/v1alpha1",
            "kind": "PolicyProbe",
            "metadata": {"name": format!("probe-{n}")},
            "spec": {"policyName": name, "bindings": "Implied", "cases": cases},
        });
        fs::write(
            suite.join(format!("probe-{n}.json")),
            serde_json::to_string(&probe)?,
        )?;
    }
    suite_and_mutants(&args.plugin, &suite)
}

/// Prints the mean duration of the suite without mutants and with mutants.
fn suite_and_mutants(plugin: &Path, suite: &PathBuf) -> Result<()> {
    let mut plain = Vec::new();
    let mut mutants = Vec::new();
    for _ in 0..TURNS {
        for (flags, runs) in [
            (&["test", "-o", "json"][..], &mut plain),
            (&["test", "--mutants", "-o", "json"], &mut mutants),
        ] {
            let run = run(plugin, flags, std::slice::from_ref(suite))?;
            let summary = run.report.get("summary");
            let count = |field: &str| summary?.get(field)?.as_u64();
            if count("cases").is_none() || count("passed") != count("cases") {
                bail!("a case does not pass: {}", run.report);
            }
            runs.push(run);
        }
    }
    let (plain, mutants) = (mean(plain)?, mean(mutants)?);
    let count = |run: &Run, pointer: &str| run.report.pointer(pointer).and_then(Value::as_u64);
    let cases = count(&plain, "/summary/cases").context("no count of cases")?;
    let evaluations = count(&mutants, "/mutants/evaluations").context("no count of evaluations")?;
    print(&format!("test, {cases} cases"), &plain, cases, "cases");
    print(
        &format!("test --mutants, {cases} cases"),
        &mutants,
        cases + evaluations,
        "cases",
    );
    let of_mutants = Run {
        seconds: mutants.seconds - plain.seconds,
        processor: mutants.processor - plain.processor,
        ..mutants
    };
    print(
        &format!("  of that {evaluations} of mutants"),
        &of_mutants,
        evaluations,
        "cases",
    );
    Ok(())
}

/// Returns the mean duration, the last report, and the maximum of the memory peaks.
fn mean(runs: Vec<Run>) -> Result<Run> {
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let n = runs.len() as f64;
    let total = runs.into_iter().reduce(|sum, run| Run {
        seconds: sum.seconds + run.seconds,
        processor: sum.processor + run.processor,
        peak_mib: sum.peak_mib.max(run.peak_mib),
        ..run
    });
    let total = total.context("no run")?;
    Ok(Run {
        seconds: total.seconds / n,
        processor: total.processor / n,
        ..total
    })
}

fn print(what: &str, run: &Run, n: u64, noun: &str) {
    #[expect(
        clippy::cast_precision_loss,
        reason = "an approximate figure is enough"
    )]
    let rate = n as f64 / run.processor.max(0.001);
    println!(
        "{what:34}{:>9.3}{:>11.3}{:>22}{:>12}",
        run.seconds,
        run.processor,
        format!("{rate:.0} {noun}"),
        format!("{:.0} MiB", run.peak_mib)
    );
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an approximate figure is enough"
)]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

fn run(plugin: &Path, flags: &[&str], paths: &[PathBuf]) -> Result<Run> {
    let output = tempfile::NamedTempFile::new()?;
    let start = Instant::now();
    let mut child = Command::new(plugin)
        .args(flags)
        .args(paths)
        .stdin(Stdio::null())
        .stdout(output.reopen()?)
        .spawn()
        .with_context(|| format!("cannot start {}", plugin.display()))?;
    let (mut peak_kib, mut processor) = (0, 0.0);
    let status = loop {
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok());
        peak_kib = peak.unwrap_or(peak_kib).max(peak_kib);
        if let Ok(seconds) = processor_seconds(child.id()) {
            processor = seconds;
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(INTERVAL);
    };
    let seconds = start.elapsed().as_secs_f64();
    if status.code().is_none_or(|code| code > 1) {
        bail!(
            "{flags:?} ends with {status}: {}",
            fs::read_to_string(output.path())?
                .chars()
                .take(2_000)
                .collect::<String>()
        );
    }
    Ok(Run {
        report: serde_json::from_str(&fs::read_to_string(output.path())?)?,
        seconds,
        processor,
        peak_mib: mib(peak_kib * 1024),
    })
}

const POLICIES: [(&str, &[&str]); 5] = [
    (
        "replicas",
        &["object.spec.replicas <= 50", "object.spec.replicas >= 1"],
    ),
    (
        "images",
        &[
            "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
            "object.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))",
        ],
    ),
    (
        "labels",
        &[
            "has(object.metadata.labels) && 'team' in object.metadata.labels",
            "object.metadata.name.matches('^[a-z][a-z0-9-]*$')",
        ],
    ),
    (
        "limits",
        &[
            "object.spec.template.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && \
             quantity(c.resources.limits['memory']).isLessThan(quantity('2Gi')))",
        ],
    ),
    (
        "security",
        &[
            "object.spec.template.spec.containers.all(c, !has(c.securityContext) || \
             !has(c.securityContext.privileged) || !c.securityContext.privileged)",
            "!has(object.spec.template.spec.hostNetwork) || !object.spec.template.spec.hostNetwork",
        ],
    ),
];

fn policies() -> String {
    let policy = |(name, validations): &(&str, &[&str])| {
        let validations: Vec<Value> = validations
            .iter()
            .map(|it| json!({"expression": it}))
            .collect();
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["deployments"],
                }]},
                "validations": validations,
            },
        });
        format!("---\n{policy}\n")
    };
    POLICIES.iter().map(policy).collect()
}

/// Returns a stored Deployment. One in fifty violates a policy.
fn object(n: usize, random: &mut Random) -> Value {
    let registry = if random.permille(20) {
        "docker.io"
    } else {
        "registry.example.com"
    };
    let team = format!("team-{}", random.below(20));
    let name = format!("app-{n}");
    let container = |name: &str, random: &mut Random| {
        json!({
            "name": name,
            "image": format!("{registry}/{team}/{name}:{}.{}", random.below(5), random.below(40)),
            "imagePullPolicy": "IfNotPresent",
            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
            "env": [{"name": "TEAM", "value": team}, {"name": "LEVEL", "value": "info"}],
            "resources": {
                "limits": {"cpu": "500m", "memory": format!("{}Mi", 64 + random.below(512))},
                "requests": {"cpu": "100m", "memory": "64Mi"},
            },
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        })
    };
    let containers = vec![container("web", random), container("sidecar", random)];
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": format!("namespace-{}", random.below(100)),
            "labels": {"app": name, "team": team},
            "annotations": {"deployment.kubernetes.io/revision": "3"},
        },
        "spec": {
            "replicas": 1 + random.below(50),
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, "team": team}},
                "spec": {
                    "containers": containers,
                    "dnsPolicy": "ClusterFirst",
                    "restartPolicy": "Always",
                    "schedulerName": "default-scheduler",
                    "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                },
            },
        },
    });
    stored(&mut object, true);
    object
}

/// Sets the fields that the API server sets in stored objects. Removes them if `is_stored` is false.
fn stored(object: &mut Value, is_stored: bool) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if is_stored {
        metadata.insert(
            "uid".to_owned(),
            json!("00000000-0000-4000-8000-000000000000"),
        );
        metadata.insert(
            "creationTimestamp".to_owned(),
            json!("2026-01-01T00:00:00Z"),
        );
    } else {
        metadata.remove("uid");
        metadata.remove("creationTimestamp");
    }
}
