//! What all tasks of the controller share.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use tokio::sync::watch;

use super::complaints::Complaints;
use super::queue::Queue;
use super::readiness::Readiness;
use super::schemas::SchemaCache;
use super::store::Store;
use super::world::World;
use crate::policy::typecheck::Profile;
use crate::status::condition::ConditionType;
use crate::telemetry::Metrics;

/// How the controller is to work.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which answers the type checker gives.
    pub profile: Profile,
    /// The conditions that count for `Ready`.
    pub ready_requires: BTreeSet<ConditionType>,
    /// How often the API server is asked what it serves, besides whenever a CRD changes.
    pub refresh_interval: Duration,
    /// How many statuses are written at once.
    pub concurrency: usize,
}

/// What all tasks share.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) queue: Queue,
    pub(crate) schemas: SchemaCache,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Readiness,
    pub(crate) complaints: Complaints,
    /// The clock; a test sets its own.
    pub(crate) now: fn() -> Timestamp,
    world: RwLock<Arc<World>>,
    /// Whether there is a first picture of the world, and all policies are known.
    is_started: watch::Sender<(bool, bool)>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Context {
    /// A context that knows nothing yet.
    pub(crate) fn new(client: Client, settings: Settings, metrics: Arc<Metrics>) -> Self {
        Self {
            schemas: SchemaCache::new(client.clone(), Arc::clone(&metrics)),
            client,
            settings,
            store: Store::default(),
            queue: Queue::default(),
            metrics,
            readiness: Readiness::default(),
            complaints: Complaints::default(),
            now: Timestamp::now,
            world: RwLock::default(),
            is_started: watch::Sender::new((false, false)),
        }
    }

    /// The policies of the cluster.
    pub(crate) fn policies(&self) -> Api<ValidatingAdmissionPolicy> {
        Api::all(self.client.clone())
    }

    /// The latest picture of the world.
    pub(crate) fn world(&self) -> Arc<World> {
        Arc::clone(&self.world.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a new picture in the place of the latest.
    pub(crate) fn set_world(&self, world: World) {
        *self.world.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(world);
        self.is_started
            .send_modify(|(has_world, _)| *has_world = true);
    }

    /// Notes that all policies are known.
    pub(crate) fn set_policies_listed(&self) {
        self.is_started
            .send_modify(|(_, has_policies)| *has_policies = true);
    }

    /// Waits until a verdict can be given: before, it would be one about half of the facts.
    pub(crate) async fn started(&self) {
        let mut is_started = self.is_started.subscribe();
        // The sender lives as long as `self`.
        drop(
            is_started
                .wait_for(|(world, policies)| *world && *policies)
                .await,
        );
    }
}
