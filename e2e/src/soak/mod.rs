//! The soak test: runs a controller with random changes and a faulty network, and compares its conditions with a model.
//!
//! In each round, an administrator makes random changes directly at the API server. The controller connects through a
//! [`FaultProxy`]. After the faults stop, the conditions of all policies must match the prediction of the [`model`].
//! The seed determines changes and faults.

pub mod cluster_state;
mod compare;
pub mod model;
mod objects;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use kube::Client;
use serde_json::json;
use vap_status_controller::policy::subject::SubjectKind;

use self::cluster_state::{Change, ClusterState};
use crate::ControlPlane;
use crate::allowed_failures::AllowedFailure;
use crate::controller::{Controller, control_plane, install_probes};
use crate::fault_proxy::{BlackHoles, Fault, FaultProxy, Schedule};
use crate::statuses::Statuses;
use parity::random::Random;

/// The maximum time from the last fault until the conditions match the model.
const RECOVERED_AFTER: Duration = Duration::from_secs(30);

/// The maximum time until the conditions match the model, if the controller itself must detect dead connections.
const NOTICED_AFTER: Duration = Duration::from_secs(150);

/// The maximum pause between two changes. [`SHORT_PAUSE`] applies before a second change of the same object.
const PAUSE: Duration = Duration::from_millis(150);
const SHORT_PAUSE: Duration = Duration::from_millis(30);

/// The time for which faults continue after the last change of a round.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The time for which a connection in a black hole stays open after the proxy becomes quiet.
const BLACK_HOLE: Duration = Duration::from_secs(5);

/// The maximum number of status writes per affected status.
const WRITES_A_CHANGE: u64 = 2;

/// The maximum growth of resident memory, in KiB and in percent. It is measured from the second quarter of the
/// rounds to the fourth.
const GROWTH: (u64, u64) = (8 * 1024, 25);

/// The minimum number of rounds for measuring growth.
const ROUNDS_OF_GROWTH: usize = 16;

/// Settings of a soak.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seed of the changes and faults.
    pub seed: u64,
    /// The faults of each round. The list is repeated.
    pub rounds: Vec<Vec<Fault>>,
    /// The minimum duration of the soak. Each entry of `rounds` is used at least once.
    pub time: Duration,
    /// The number of changes per round.
    pub n_changes: usize,
    /// True if the CRD of probes is installed.
    pub has_probes: bool,
    /// True if MutatingAdmissionPolicies exist, change and are watched.
    pub watches_mutating: bool,
    /// The aggregated APIs of the cluster.
    pub aggregation: Aggregation,
    /// True if connections in black holes stay open. Only the controller itself can then detect that they are dead.
    pub black_holes_stay: bool,
}

/// The aggregated APIs of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Aggregation {
    /// There are no aggregated APIs.
    #[default]
    Unused,
    /// There is one aggregated API. Its server does not exist.
    Dead,
    /// The API server does not support aggregation.
    Missing,
}

impl Settings {
    /// Creates settings with these rounds. The cluster has probes and mutating policies, and no aggregated APIs.
    #[must_use]
    pub fn new(seed: u64, rounds: Vec<Vec<Fault>>) -> Self {
        Self {
            seed,
            rounds,
            time: Duration::ZERO,
            n_changes: 40,
            has_probes: true,
            watches_mutating: true,
            aggregation: Aggregation::Unused,
            black_holes_stay: false,
        }
    }
}

/// Returns one round without faults, and one round for each fault.
#[must_use]
pub fn one_by_one(faults: &[Fault]) -> Vec<Vec<Fault>> {
    let calm = std::iter::once(Vec::new());
    calm.chain(faults.iter().map(|fault| vec![*fault]))
        .collect()
}

/// Returns one round for each pair of faults.
#[must_use]
pub fn in_pairs(faults: &[Fault]) -> Vec<Vec<Fault>> {
    let pairs = faults.iter().enumerate().flat_map(|(n, one)| {
        let others = faults.iter().skip(n + 1);
        others.map(|other| vec![*one, *other])
    });
    pairs.collect()
}

/// The results of a successful soak.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of rounds.
    pub n_rounds: usize,
    /// The number of changes.
    pub n_changes: usize,
    /// The maximum number of statuses that a change affects, added up over all changes. A status that exists before and
    /// after the change counts twice.
    pub n_affected: u64,
    /// The number of status writes.
    pub n_writes: u64,
    /// The number of injections of each fault.
    pub injected: BTreeMap<Fault, u64>,
    /// The resident memory after each round, in KiB.
    pub resident_kib: Vec<u64>,
    /// The maximum time from the last fault until the conditions matched.
    pub longest: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rounds                       {}", self.n_rounds)?;
        writeln!(f, "changes                      {}", self.n_changes)?;
        writeln!(f, "statuses affected            {}", self.n_affected)?;
        writeln!(f, "statuses written             {}", self.n_writes)?;
        let injected: Vec<String> = self
            .injected
            .iter()
            .map(|(fault, n)| format!("{fault} {n}"))
            .collect();
        writeln!(f, "faults                       {}", injected.join(", "))?;
        writeln!(
            f,
            "longest until as predicted   {:.1} s",
            self.longest.as_secs_f64()
        )?;
        let kib = |kib: Option<&u64>| kib.copied().unwrap_or_default();
        write!(
            f,
            "resident memory              {} KiB after the first round, {} KiB after the last",
            kib(self.resident_kib.first()),
            kib(self.resident_kib.last())
        )
    }
}

/// Runs a soak.
///
/// # Errors
/// Returns an error if the controller deviates from the model, writes too often, grows, or has unexplained failures.
/// The error contains the history and the end of the log.
pub async fn run(settings: &Settings) -> Result<Report> {
    let mut soak = Soak::start(settings).await?;
    let started = Instant::now();
    let mut rounds = settings.rounds.iter().cycle();
    while soak.report.n_rounds < settings.rounds.len() || started.elapsed() < settings.time {
        let faults = rounds.next().context("no rounds")?;
        let n = soak.report.n_rounds;
        if let Err(error) = soak.round(faults).await {
            let log = soak.controller.log().unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            // The error below contains the end of the log.
            soak.controller.drop_unchecked();
            bail!(
                "seed {}, round {n} with the faults {faults:?}: {error:#}\nthe end of the log:\n{}",
                settings.seed,
                tail.join("\n")
            );
        }
    }
    soak.finish().await
}

struct Soak<'a> {
    settings: &'a Settings,
    // The fields are dropped in this order: the controller must end before the servers.
    controller: Controller,
    proxy: FaultProxy,
    client: Client,
    _control_plane: ControlPlane,
    state: ClusterState,
    random: Random,
    report: Report,
}

impl<'a> Soak<'a> {
    async fn start(settings: &'a Settings) -> Result<Self> {
        let control_plane = control_plane().await?;
        let client = control_plane.client().await?;
        grant_all_params(&control_plane)?;
        if settings.has_probes {
            install_probes(&client).await?;
        }
        if settings.watches_mutating {
            Statuses::install(&control_plane, SubjectKind::MutatingAdmissionPolicy).await?;
        }
        let proxy = FaultProxy::start(&control_plane).await?;
        match settings.aggregation {
            Aggregation::Unused => {}
            Aggregation::Dead => objects::register_a_dead_api(&client).await?,
            Aggregation::Missing => proxy.withhold("/apis/apiregistration.k8s.io"),
        }
        // Discovery is polled frequently, so that faults also affect the polls.
        let args = [
            "--refresh-interval=1s",
            "--follow=mutatingadmissionpolicies",
        ];
        let args = args.get(..if settings.watches_mutating { 2 } else { 1 });
        let args = args.unwrap_or_default();
        let controller =
            Controller::start_with_kubeconfig(&control_plane, proxy.kubeconfig(), args).await?;
        // The controller sees many changes of a policy within a minute, as if a second controller wrote its status.
        controller.allow([AllowedFailure::warning(
            "does a second vap-status-controller write it",
        )]);
        // Kinds are added and removed while the controller watches them. A kind may be missing, its storage may be
        // initializing, or the index may still list its schemas.
        controller
            .allow(["not_found", "throttled"].map(|reason| AllowedFailure::sync("params", reason)));
        controller.allow([AllowedFailure::warning("cannot get schemas")]);
        Ok(Self {
            settings,
            controller,
            proxy,
            client,
            _control_plane: control_plane,
            state: ClusterState::default(),
            random: Random::new(settings.seed),
            report: Report::default(),
        })
    }

    /// Makes changes under faults. Then waits without faults until all conditions match.
    async fn round(&mut self, faults: &[Fault]) -> Result<()> {
        let n = u64::try_from(self.report.n_rounds)?;
        self.report.n_rounds += 1;
        if !faults.is_empty() {
            self.controller.allow(explained_failures(faults));
            let holes = if self.settings.black_holes_stay {
                BlackHoles::Stay
            } else {
                BlackHoles::EndAfter(BLACK_HOLE)
            };
            let schedule = Schedule::new(self.settings.seed.wrapping_add(n), faults)
                .permille(250, 250)
                .black_holes(holes);
            self.proxy.disturb(schedule);
        }
        let mut changes = Vec::new();
        let mut n_affected = 0;
        let n_written = self.controller.total("vap_status_writes_total").await?;
        let mut second = None;
        while changes.len() < self.settings.n_changes {
            let (change, pause) = match second.take() {
                Some(change) => (change, SHORT_PAUSE),
                None => (
                    self.state.change(
                        self.settings.has_probes,
                        self.settings.watches_mutating,
                        &mut self.random,
                    ),
                    PAUSE,
                ),
            };
            let pause = self.random.duration(pause);
            tokio::time::sleep(pause).await;
            n_affected += self.state.n_affected(change);
            self.state.apply(change);
            n_affected += self.state.n_affected(change);
            changes.push(change);
            objects::make(&self.client, change).await?;
            second = self.state.second(change, &mut self.random);
        }
        if !faults.is_empty() {
            tokio::time::sleep(AFTERMATH).await;
        }
        self.report.n_changes += changes.len();
        self.proxy.quiet();
        let quiet = Instant::now();
        for touched in self.proxy.take_unreadable() {
            objects::touch(&self.client, &touched.path, n).await?;
        }
        let patience = if self.settings.black_holes_stay {
            NOTICED_AFTER
        } else {
            RECOVERED_AFTER
        };
        let differences = compare::await_agreement(
            &self.client,
            &self.controller,
            &self.state,
            self.settings.watches_mutating,
            patience,
        )
        .await;
        differences.with_context(|| listed(&changes))?;
        self.report.longest = self.report.longest.max(quiet.elapsed());
        let n_writes = self.controller.total("vap_status_writes_total").await? - n_written;
        self.report.n_affected += n_affected;
        self.report.n_writes += n_writes;
        // Without faults, only changes cause writes. With faults, the controller may also write conditions and revert
        // them.
        if faults.is_empty() {
            ensure!(
                n_writes <= WRITES_A_CHANGE * n_affected,
                "{n_writes} status writes, but the changes affect only {n_affected} statuses: {}",
                listed(&changes)
            );
        }
        self.report
            .resident_kib
            .push(self.controller.resident_kib()?);
        Ok(())
    }

    async fn finish(mut self) -> Result<Report> {
        self.report.injected = self.proxy.injected();
        self.controller.finish().await?;
        let report = self.report;
        for faults in &self.settings.rounds {
            // In a round with more than two faults, at least one must have been injected.
            let was_injected = |fault: &Fault| report.injected.contains_key(fault);
            let is_tested = match faults.len() {
                0..=2 => faults.iter().all(was_injected),
                _ => faults.iter().any(was_injected),
            };
            ensure!(
                is_tested,
                "not all of {faults:?} were injected: nothing was tested\n{report}"
            );
        }
        if let Some((before, after)) = growth(&report.resident_kib) {
            let (kib, percent) = GROWTH;
            ensure!(
                after <= before + kib.max(before * percent / 100),
                "resident memory grows, from {before} KiB to {after} KiB: {:?}",
                report.resident_kib
            );
        }
        Ok(report)
    }
}

fn listed(changes: &[Change]) -> String {
    let lines = changes.iter().map(|change| format!("\n  {change:?}"));
    format!("the changes were{}\n", lines.collect::<String>())
}

/// Returns the averages of the second and the fourth quarter of `samples`. Returns `None` if there are too few samples.
fn growth(samples: &[u64]) -> Option<(u64, u64)> {
    if samples.len() < ROUNDS_OF_GROWTH {
        return None;
    }
    let quarter = samples.len() / 4;
    let mean = |samples: &[u64]| {
        let n = u64::try_from(samples.len()).unwrap_or(u64::MAX);
        samples.iter().sum::<u64>().checked_div(n)
    };
    let second = samples.get(quarter..2 * quarter)?;
    let last = samples.get(samples.len() - quarter..)?;
    mean(second).zip(mean(last))
}

/// Returns failures that faults explain: failed watches, lists and writes, and their log messages. Faults do not
/// explain panics, or objects that stay unreadable after they are repaired.
fn explained_failures(faults: &[Fault]) -> Vec<AllowedFailure> {
    let mut failures = vec![
        AllowedFailure::metric("vap_sync_errors_total", &[]),
        AllowedFailure::metric("vap_reconcile_errors_total", &[]),
        AllowedFailure::warning("cannot "),
        AllowedFailure::warning("does not respond"),
    ];
    if faults.contains(&Fault::Forbidden) || faults.contains(&Fault::Unauthorized) {
        failures.extend(["grant ", "cannot "].map(AllowedFailure::error));
    }
    failures
}

fn grant_all_params(control_plane: &ControlPlane) -> Result<()> {
    let rules = [("", "configmaps"), ("params.soak.example.com", "limits")].map(
        |(group, resource)| {
            json!({"apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"]})
        },
    );
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "params-of-the-soak"}, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "params-of-the-soak"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "params-of-the-soak"},
        "subjects": [{"kind": "ServiceAccount", "name": "vap-status-controller",
                      "namespace": "vap-status-system"}],
    });
    for object in [role, binding] {
        let path = control_plane.directory().join("params-of-the-soak.json");
        std::fs::write(&path, object.to_string())?;
        let outcome = control_plane
            .kubectl()?
            .args(["create", "-f"])
            .arg(&path)
            .output()?;
        ensure!(
            outcome.status.success(),
            "{}",
            String::from_utf8_lossy(&outcome.stderr)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_compares_averages_of_second_and_last_quarter() {
        assert_eq!(growth(&[1; 15]), None);
        let samples: Vec<u64> = (0..16).collect();
        // The averages of 4 to 7 and of 12 to 15, rounded down.
        assert_eq!(growth(&samples), Some((5, 13)));
    }

    #[test]
    fn rounds_contain_each_fault_or_each_pair_of_faults() {
        assert_eq!(one_by_one(&[Fault::Cut]), [vec![], vec![Fault::Cut]]);
        let n = Fault::ALL.len();
        assert_eq!(in_pairs(Fault::ALL).len(), n * (n - 1) / 2);
    }
}
