//! A controller that works for a long time on a cluster where everything changes and the network is bad, beside
//! a model that foretells what it must say.
//!
//! In each round an administrator makes changes by random, directly at the API server, while the controller talks
//! to it through a [`FaultProxy`]. Then all is quiet, and every condition of every policy must become what the
//! model foretells from what exists ([`model`]). The seed gives the same changes and faults again.

mod compare;
pub mod model;
mod objects;
pub mod universe;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use kube::Client;
use serde_json::json;
use vap_status_controller::policy::subject::SubjectKind;

use self::universe::{Change, World};
use crate::ControlPlane;
use crate::controller::{Controller, control_plane, install_probes};
use crate::fault_proxy::{BlackHoles, Fault, FaultProxy, Schedule};
use crate::statuses::Statuses;
use crate::trouble::Trouble;
use parity::random::Random;

/// How long after the last fault everything must be as the model foretells.
const RECOVERED_AFTER: Duration = Duration::from_secs(30);

/// The same, where only the client itself can notice that a connection is dead.
const NOTICED_AFTER: Duration = Duration::from_secs(150);

/// The longest pause between two changes, and that before a change that races with the one before it.
const PAUSE: Duration = Duration::from_millis(150);
const SHORT_PAUSE: Duration = Duration::from_millis(30);

/// How long the faults go on behind the last change.
const AFTERMATH: Duration = Duration::from_secs(1);

/// How long a connection in a black hole lives on when all is quiet.
const BLACK_HOLE: Duration = Duration::from_secs(5);

/// How many statuses the controller may write for each that a change concerns.
const WRITES_A_CHANGE: u64 = 2;

/// How much the resident memory may grow, in KiB and in percent, from the second quarter of the rounds to the last.
const GROWTH: (u64, u64) = (8 * 1024, 25);

/// How many rounds it takes to say anything about growth.
const ROUNDS_OF_GROWTH: usize = 16;

/// Settings of a soak.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seed of the changes and of the times of the faults.
    pub seed: u64,
    /// The faults of each round; they begin again behind the last.
    pub rounds: Vec<Vec<Fault>>,
    /// How long to go on when each entry of `rounds` has had its turn.
    pub time: Duration,
    /// How many changes a round has.
    pub n_changes: usize,
    /// True if the kind of probes is installed.
    pub has_probes: bool,
    /// True if MutatingAdmissionPolicies are followed, and change too.
    pub follows: bool,
    /// Which APIs are aggregated.
    pub aggregation: Aggregation,
    /// True if black holes stay as they are, so that only the controller itself can notice.
    pub black_holes_stay: bool,
}

/// Which APIs are aggregated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Aggregation {
    /// None.
    #[default]
    Unused,
    /// One, whose server is not there.
    Dead,
    /// None can be: the API server does not know of aggregation.
    Missing,
}

impl Settings {
    /// Rounds of these faults, on a cluster with probes, policies of both kinds, and no aggregated APIs.
    #[must_use]
    pub fn new(seed: u64, rounds: Vec<Vec<Fault>>) -> Self {
        Self {
            seed,
            rounds,
            time: Duration::ZERO,
            n_changes: 40,
            has_probes: true,
            follows: true,
            aggregation: Aggregation::Unused,
            black_holes_stay: false,
        }
    }
}

/// Rounds of one fault each, and a calm one before them.
#[must_use]
pub fn one_by_one(faults: &[Fault]) -> Vec<Vec<Fault>> {
    let calm = std::iter::once(Vec::new());
    calm.chain(faults.iter().map(|fault| vec![*fault]))
        .collect()
}

/// Rounds of two faults each: every pair.
#[must_use]
pub fn in_pairs(faults: &[Fault]) -> Vec<Vec<Fault>> {
    let pairs = faults.iter().enumerate().flat_map(|(n, one)| {
        let others = faults.iter().skip(n + 1);
        others.map(|other| vec![*one, *other])
    });
    pairs.collect()
}

/// Report of a soak that found nothing wrong.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many rounds there were.
    pub n_rounds: usize,
    /// How many changes.
    pub n_changes: usize,
    /// How many statuses these concerned, each change counted.
    pub n_concerned: u64,
    /// How many statuses were written.
    pub n_writes: u64,
    /// How often each fault was injected.
    pub injected: BTreeMap<Fault, u64>,
    /// The resident memory after each round, in KiB.
    pub resident_kib: Vec<u64>,
    /// The longest time from the last fault until all was as foretold.
    pub longest: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rounds                       {}", self.n_rounds)?;
        writeln!(f, "changes                      {}", self.n_changes)?;
        writeln!(f, "statuses these concerned     {}", self.n_concerned)?;
        writeln!(f, "statuses written             {}", self.n_writes)?;
        let injected: Vec<String> = self
            .injected
            .iter()
            .map(|(fault, n)| format!("{fault} {n}"))
            .collect();
        writeln!(f, "faults                       {}", injected.join(", "))?;
        writeln!(
            f,
            "longest until as foretold    {:.1} s",
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
/// Returns an error if the controller says other than the model, writes too often, grows, or is in trouble that no fault
/// explains; then with what happened and the end of its log.
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
            // What is wrong is said here; the check of the log would only say it less clearly.
            soak.controller.give_up();
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
    // Dropped in this order: the controller before what it talks to.
    controller: Controller,
    proxy: FaultProxy,
    client: Client,
    _control_plane: ControlPlane,
    world: World,
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
        if settings.follows {
            Statuses::install(&control_plane, SubjectKind::MutatingAdmissionPolicy).await?;
        }
        let proxy = FaultProxy::start(&control_plane).await?;
        match settings.aggregation {
            Aggregation::Unused => {}
            Aggregation::Dead => objects::register_a_dead_api(&client).await?,
            Aggregation::Missing => proxy.withhold("/apis/apiregistration.k8s.io"),
        }
        // It asks often, so that requests meet faults too.
        let args = [
            "--refresh-interval=1s",
            "--follow=mutatingadmissionpolicies",
        ];
        let args = args.get(..if settings.follows { 2 } else { 1 });
        let args = args.unwrap_or_default();
        let controller = Controller::start_by(&control_plane, proxy.kubeconfig(), args).await?;
        // So many changes of one policy in a minute are for the controller what another writer does.
        controller.announce([Trouble::warning(
            "does a second vap-status-controller write it",
        )]);
        // Kinds come and go while they are watched: such a kind is not found, its storage is being set up, or the
        // index still names its schemas.
        controller
            .announce(["not_found", "throttled"].map(|reason| Trouble::sync("params", reason)));
        controller.announce([Trouble::warning("cannot get schemas")]);
        Ok(Self {
            settings,
            controller,
            proxy,
            client,
            _control_plane: control_plane,
            world: World::default(),
            random: Random::new(settings.seed),
            report: Report::default(),
        })
    }

    /// Changes under faults, and then quiet until all is as foretold.
    async fn round(&mut self, faults: &[Fault]) -> Result<()> {
        let n = u64::try_from(self.report.n_rounds)?;
        self.report.n_rounds += 1;
        if !faults.is_empty() {
            self.controller.announce(trouble_of(faults));
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
        let mut n_concerned = 0;
        let n_written = self.controller.total("vap_status_writes_total").await?;
        let mut second = None;
        while changes.len() < self.settings.n_changes {
            let (change, pause) = match second.take() {
                Some(change) => (change, SHORT_PAUSE),
                None => (
                    self.world.change(
                        self.settings.has_probes,
                        self.settings.follows,
                        &mut self.random,
                    ),
                    PAUSE,
                ),
            };
            let pause = self.random.duration(pause);
            tokio::time::sleep(pause).await;
            n_concerned += self.world.n_concerned(change);
            self.world.apply(change);
            n_concerned += self.world.n_concerned(change);
            changes.push(change);
            objects::make(&self.client, change).await?;
            second = self.world.second(change, &mut self.random);
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
        let found = compare::agreed(
            &self.client,
            &self.controller,
            &self.world,
            self.settings.follows,
            patience,
        )
        .await;
        found.with_context(|| listed(&changes))?;
        self.report.longest = self.report.longest.max(quiet.elapsed());
        let n_writes = self.controller.total("vap_status_writes_total").await? - n_written;
        self.report.n_concerned += n_concerned;
        self.report.n_writes += n_writes;
        // What a fault makes the controller say, and take back, no change has asked for.
        if faults.is_empty() {
            ensure!(
                n_writes <= WRITES_A_CHANGE * n_concerned,
                "{n_writes} writes, where these concern {n_concerned} statuses: {}",
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
            // Of many at once one round does not do each.
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

/// Changes, one a line.
fn listed(changes: &[Change]) -> String {
    let lines = changes.iter().map(|change| format!("\n  {change:?}"));
    format!("the changes were{}\n", lines.collect::<String>())
}

/// Returns the mean of the second quarter and of the last; `None` where there are too few for that.
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

/// Returns the trouble that faults explain: failed watches, lists and writes, and what is logged of them. No fault explains
/// a panic, nor an object that is still unreadable when all are readable.
fn trouble_of(faults: &[Fault]) -> Vec<Trouble> {
    let mut troubles = vec![
        Trouble::metric("vap_sync_errors_total", &[]),
        Trouble::metric("vap_reconcile_errors_total", &[]),
        Trouble::warning("cannot "),
        Trouble::warning("does not respond"),
    ];
    if faults.contains(&Fault::Forbidden) || faults.contains(&Fault::Unauthorized) {
        troubles.extend(["grant ", "cannot "].map(Trouble::error));
    }
    troubles
}

/// Grants the controller's user to read all kinds of params.
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
    fn growth_compares_means() {
        assert_eq!(growth(&[1; 15]), None);
        let samples: Vec<u64> = (0..16).collect();
        // Of 4, 5, 6, 7, and of 12, 13, 14, 15, rounded down.
        assert_eq!(growth(&samples), Some((5, 13)));
    }

    #[test]
    fn rounds_have_one_fault_or_two() {
        assert_eq!(one_by_one(&[Fault::Cut]), [vec![], vec![Fault::Cut]]);
        let n = Fault::ALL.len();
        assert_eq!(in_pairs(Fault::ALL).len(), n * (n - 1) / 2);
    }
}
