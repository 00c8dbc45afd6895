//! The controller: the only place that talks to the cluster.
//!
//! Watches and looks (`watch`, `refresh`) tell which policies a change touches (`mapper`).
//! Each of these is observed (`observe`), its status computed ([`crate::status`], pure) and
//! applied if it says something else than the one that is there (`apply`).

mod admissions;
mod apply;
pub mod args;
mod backoff;
pub mod blocking;
mod bound;
mod by_policy;
mod check;
pub mod clear;
mod client;
mod complaints;
mod context;
mod crds;
mod discovery;
pub mod error;
mod events;
pub mod exclude;
mod http;
mod list_watch;
mod mapper;
mod observe;
mod openapi;
mod origin;
mod pace;
mod params;
mod probe;
mod probing;
mod queue;
mod readiness;
mod reconcile;
mod refresh;
mod schemas;
mod settle;
pub mod startup;
mod store;
mod supervisor;
mod unreadable;
mod upkeep;
mod watch;
mod world;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub use self::apply::FIELD_MANAGER;
use self::context::Context;
pub use self::context::Settings;
pub use self::readiness::Readiness;
use self::refresh::Refresher;
pub use self::supervisor::Supervisor;
use crate::telemetry::Metrics;

/// A controller that is ready to run.
#[derive(Debug)]
pub struct Controller {
    context: Arc<Context>,
}

impl Controller {
    /// A controller that talks through `client`.
    #[must_use]
    pub fn new(client: Client, settings: Settings, metrics: Arc<Metrics>) -> Self {
        Self {
            context: Arc::new(Context::new(client, settings, metrics)),
        }
    }

    /// Whether it knows the cluster.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.context.readiness.clone()
    }

    /// Whether its tasks make progress.
    #[must_use]
    pub fn supervisor(&self) -> Supervisor {
        self.context.supervisor.clone()
    }

    /// Runs until `stop`, and then ends the writes that were begun.
    ///
    /// # Errors
    /// Why it cannot go on: a task that must not end did, or panicked. The process is to end at once.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), String> {
        let (signals, received) = mpsc::unbounded_channel();
        let context = self.context;
        let supervisor = context.supervisor.clone();
        let mut tasks = Tasks::new(&supervisor);
        tasks.spawn("watch-policies", watch::policies(Arc::clone(&context)));
        tasks.spawn("watch-bindings", watch::bindings(Arc::clone(&context)));
        tasks.spawn("watch-probes", watch::probes(Arc::clone(&context)));
        let crds = watch::crds(Arc::clone(&context), signals.clone());
        tasks.spawn("watch-crds", crds);
        let api_services = watch::api_services(Arc::clone(&context), signals);
        tasks.spawn("watch-apiservices", api_services);
        tasks.spawn("upkeep", upkeep::upkeep(Arc::clone(&context)));
        tasks.spawn("events", events::send(Arc::clone(&context)));
        let refresher = Refresher::new(Arc::clone(&context));
        tasks.spawn("refresher", refresher.run(received));
        // The watches end with the set.
        let work = supervisor.contained("workers", reconcile::work(context, stop));
        unless_lost(&supervisor, work).await
    }
}

/// Waits for the end of `work`, or until a task is lost.
async fn unless_lost(
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

/// The tasks that run as long as the controller does.
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
    async fn a_task_that_is_lost_ends_the_run_with_its_reason() {
        let supervisor = Supervisor::new(Arc::new(Metrics::new()));
        let mut tasks = Tasks::new(&supervisor);
        tasks.spawn("watch-crds", async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            panic!("null");
        });
        let forever = supervisor.contained("workers", std::future::pending());
        assert_eq!(
            unless_lost(&supervisor, forever).await,
            Err("the task watch-crds panicked: null".to_owned())
        );
    }

    #[tokio::test]
    async fn workers_that_panic_end_the_run() {
        let supervisor = Supervisor::new(Arc::new(Metrics::new()));
        let work = supervisor.contained("workers", async { panic!("hostile") });
        assert_eq!(
            unless_lost(&supervisor, work).await,
            Err("the task workers panicked: hostile".to_owned())
        );
        let supervisor = Supervisor::new(Arc::new(Metrics::new()));
        let work = supervisor.contained("workers", async {});
        assert_eq!(unless_lost(&supervisor, work).await, Ok(()));
    }
}
