//! The controller: it watches a cluster, computes statuses, and writes them.
//!
//! - **Observed.** `watch` watches policies, bindings, probes, params and CRDs, and polls discovery. It updates the
//!   state of the cluster (`cluster`) and of the subjects (`subjects`), and queues the subjects that a change affects
//!   (`process::queue`).
//! - **Computed.** `reconcile` takes a subject from the queue, collects its facts including the result of its check,
//!   and computes its status with the pure function [`crate::status::compute()`]. `probe_runner` has its own queue and
//!   evaluates the probes of policies. `probes` stores their results.
//! - **Applied.** `reconcile` writes the status if it has changed, and publishes an Event for each transition. Only the
//!   leader writes: `leadership` issues a permit for each write, and `election` acquires and renews the Lease.
//!
//! The tasks share their state in a `Context`. `process`, `cluster`, `subjects`, `probes` and `leadership` hold state
//! and do not import `context`. The other modules are tasks that use it. [`clear`] is a separate command.

pub mod args;
pub mod clear;
mod cluster;
mod context;
mod election;
#[doc(hidden)]
pub mod fuzzing;
mod leadership;
mod probe_runner;
mod probes;
mod process;
mod reconcile;
mod subjects;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::Client;
use tokio::sync::mpsc;
use tokio::sync::watch as signal;
use tokio::task::JoinSet;

use self::context::Context;
pub use self::context::Settings;
pub use self::election::Election;
use self::election::Elector;
pub use self::leadership::lease::Timing;
pub use self::process::readiness::Readiness;
pub use self::process::startup;
pub use self::process::supervisor::Supervisor;
pub use self::subjects::managed_fields::FIELD_MANAGER;
use self::watch::refresh::Refresher;
use crate::cluster::blocking;
use crate::telemetry::Metrics;

/// A controller that has not started yet.
#[derive(Debug)]
pub struct Controller {
    context: Arc<Context>,
    election: Option<Election>,
}

impl Controller {
    /// Creates a controller that uses `client`.
    #[must_use]
    pub fn new(client: Client, settings: Settings, metrics: Arc<Metrics>) -> Self {
        Self {
            context: Arc::new(Context::new(client, settings, metrics)),
            election: None,
        }
    }

    /// Sets the leader election. Without an election, the controller always writes.
    #[must_use]
    pub fn elected(mut self, election: Option<Election>) -> Self {
        self.election = election;
        self
    }

    /// Returns a function that runs the readiness checks: whether the cluster state is known, and whether this instance
    /// can become the leader. Each result is the name of the check, and the problem if the check failed.
    pub fn readiness(&self) -> impl Fn() -> Vec<(&'static str, Option<String>)> + use<> {
        let readiness = self.context.readiness.clone();
        let leadership = self
            .election
            .is_some()
            .then(|| self.context.leadership.clone());
        move || {
            let leadership = leadership.iter();
            let lease = leadership.map(|leadership| ("lease", leadership.problem()));
            readiness.checks().into_iter().chain(lease).collect()
        }
    }

    /// Returns a function that updates the metrics that are computed at each scrape.
    pub fn measure(&self) -> impl Fn() + use<> {
        let context = Arc::clone(&self.context);
        move || {
            let is_in_sync = context.readiness.is_all_in_sync();
            context.metrics.set_in_sync(is_in_sync);
            context.metrics.set_stuck_check_threads(blocking::n_stuck());
        }
    }

    /// Returns the supervisor, which checks that the tasks make progress.
    #[must_use]
    pub fn supervisor(&self) -> Supervisor {
        self.context.supervisor.clone()
    }

    /// Runs until `stop` completes, then finishes the writes in progress and releases the Lease.
    ///
    /// # Errors
    /// Returns the reason if the controller cannot continue: a task ended unexpectedly or panicked, or the Lease was
    /// lost. The process must then exit immediately, without finishing the writes in progress.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), String> {
        let (signals, received) = mpsc::unbounded_channel();
        let context = self.context;
        let supervisor = context.supervisor.clone();
        // Creating the elector makes this instance a standby. This must happen before any task can write.
        let elector = self
            .election
            .map(|election| Elector::new(Arc::clone(&context), election));
        let (release, released) = signal::channel(false);
        let mut elected = tokio::spawn(elect(elector, supervisor.clone(), released));
        let mut tasks = Tasks::new(&supervisor);
        tasks.spawn("watch-policies", watch::policies(Arc::clone(&context)));
        tasks.spawn("watch-bindings", watch::bindings(Arc::clone(&context)));
        tasks.spawn("watch-probes", watch::probes(Arc::clone(&context)));
        let crds = watch::crds(Arc::clone(&context), signals.clone());
        tasks.spawn("watch-crds", crds);
        let api_services = watch::api_services(Arc::clone(&context), signals);
        tasks.spawn("watch-apiservices", api_services);
        tasks.spawn(
            "periodic-resync",
            reconcile::periodic_resync::run(Arc::clone(&context)),
        );
        tasks.spawn("events", reconcile::events::send(Arc::clone(&context)));
        tasks.spawn("probes", probe_runner::work(Arc::clone(&context)));
        tasks.spawn(
            "slow-checks",
            reconcile::slow_checks::work(Arc::clone(&context)),
        );
        for kind in &context.settings.followed {
            if let Some(state) = context.opt_in.state(*kind) {
                tasks.spawn(
                    state.task(),
                    watch::opt_in::run(Arc::clone(&context), *kind),
                );
            }
        }
        let refresher = Refresher::new(Arc::clone(&context));
        tasks.spawn("refresher", refresher.run(received));
        let leadership = context.leadership.clone();
        let work = reconcile::work(Arc::clone(&context), stop);
        let work = supervisor.contained("workers", work);
        let writing = async {
            until_task_exit(&supervisor, work).await?;
            let n_unfinished = context.probe_runner.n_unfinished();
            if n_unfinished > 0 {
                tracing::info!(
                    policies = n_unfinished,
                    "stopping before all probes are evaluated; the next leader evaluates them again"
                );
            }
            reconcile::events::end(&context).await;
            leadership.close().await;
            Ok::<(), String>(())
        };
        tokio::select! {
            biased;
            outcome = &mut elected => return outcome.map_err(|error| error.to_string())?,
            outcome = writing => outcome?,
        }
        release.send_replace(true);
        // When this function returns, it drops `tasks`, which ends the watches.
        elected.await.map_err(|error| error.to_string())?
    }
}

/// Runs the leader election until `released` becomes true. If `elector` is `None`, only waits.
async fn elect(
    elector: Option<Elector>,
    supervisor: Supervisor,
    mut released: signal::Receiver<bool>,
) -> Result<(), String> {
    let Some(elector) = elector else {
        // An error means that the sender was dropped because the process ends.
        drop(released.wait_for(|released| *released).await);
        return Ok(());
    };
    let run = Box::pin(elector.run(released));
    match supervisor.contained("lease", run).await {
        Some(outcome) => outcome,
        None => Err(supervisor.lost().await.to_string()),
    }
}

/// Waits until `work` completes or a task exits. Returns an error if a task exits.
async fn until_task_exit(
    supervisor: &Supervisor,
    work: impl Future<Output = Option<()>>,
) -> Result<(), String> {
    tokio::select! {
        biased;
        lost = supervisor.lost() => Err(lost.to_string()),
        outcome = work => match outcome {
            Some(()) => Ok(()),
            None => Err(supervisor.lost().await.to_string()),
        },
    }
}

/// The tasks that run until the controller stops.
struct Tasks<'a> {
    supervisor: &'a Supervisor,
    tasks: JoinSet<()>,
}

impl<'a> Tasks<'a> {
    fn new(supervisor: &'a Supervisor) -> Self {
        Self {
            supervisor,
            tasks: JoinSet::new(),
        }
    }

    fn spawn(&mut self, task: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let supervisor = self.supervisor.clone();
        self.tasks
            .spawn(async move { supervisor.supervised(task, work).await });
    }
}

#[cfg(test)]
mod supervision {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn panic_of_task_is_returned_as_exit() {
        let supervisor = Supervisor::new(Arc::new(Metrics::new()));
        let mut tasks = Tasks::new(&supervisor);
        tasks.spawn("watch-crds", async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            panic!("null");
        });
        let forever = supervisor.contained("workers", std::future::pending());
        assert_eq!(
            until_task_exit(&supervisor, forever).await,
            Err("the task watch-crds panicked: null".to_owned())
        );
    }

    #[tokio::test]
    async fn panic_of_workers_is_returned_as_exit() {
        let supervisor = Supervisor::new(Arc::new(Metrics::new()));
        let work = supervisor.contained("workers", async { panic!("hostile") });
        assert_eq!(
            until_task_exit(&supervisor, work).await,
            Err("the task workers panicked: hostile".to_owned())
        );
        let supervisor = Supervisor::new(Arc::new(Metrics::new()));
        let work = supervisor.contained("workers", async {});
        assert_eq!(until_task_exit(&supervisor, work).await, Ok(()));
    }
}
