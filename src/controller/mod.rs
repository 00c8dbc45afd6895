//! The controller: the only place that talks to the cluster.
//!
//! Watches and looks (`watch`, `refresh`) tell which policies a change touches (`mapper`).
//! Each of these is observed (`observe`), its status computed ([`crate::status`], pure) and
//! applied if it says something else than the one that is there (`apply`).

mod admissions;
mod apply;
pub mod args;
mod backoff;
mod bound;
mod by_policy;
mod check;
mod complaints;
mod context;
mod crds;
mod discovery;
pub mod error;
mod events;
mod http;
mod list_watch;
mod mapper;
mod observe;
mod openapi;
mod origin;
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

    /// Runs until `stop`, and then ends the writes that were begun.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (signals, received) = mpsc::unbounded_channel();
        let context = self.context;
        let mut tasks = JoinSet::new();
        tasks.spawn(watch::policies(Arc::clone(&context)));
        tasks.spawn(watch::bindings(Arc::clone(&context)));
        tasks.spawn(watch::probes(Arc::clone(&context)));
        tasks.spawn(watch::crds(Arc::clone(&context), signals.clone()));
        tasks.spawn(watch::api_services(Arc::clone(&context), signals));
        tasks.spawn(upkeep::upkeep(Arc::clone(&context)));
        tasks.spawn(Refresher::new(Arc::clone(&context)).run(received));
        reconcile::work(context, stop).await;
        // The watches end with the set.
        drop(tasks);
    }
}
