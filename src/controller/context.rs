//! State shared by all tasks of the controller.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client, Resource};
use tokio::sync::watch;

use super::leadership::Leadership;
use crate::controller::cluster::match_cache::MatchCache;
use crate::controller::cluster::schemas::SchemaCache;
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::probes::ProbeRunner;
use crate::controller::process::log_throttle::LogThrottle;
use crate::controller::process::queue::Queue;
use crate::controller::process::readiness::Readiness;
use crate::controller::process::supervisor::Supervisor;
use crate::controller::subjects::admission_cache::AdmissionCache;
use crate::controller::subjects::lanes::Lanes;
use crate::controller::subjects::opt_in::OptIn;
use crate::controller::subjects::params::Params;
use crate::controller::subjects::pending_events::Events;
use crate::controller::subjects::policy_index::{Bindings, Probes};
use crate::controller::subjects::stale_conditions::StaleConditions;
use crate::controller::subjects::store::Store;
use crate::controller::subjects::write_limiter::WriteLimiter;
use crate::policy::analysis::Profile;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::probe::api::PolicyProbe;
use crate::schema::{Gvk, Gvr};
use crate::status::condition::ConditionType;
use crate::status::exclusion::Exclusion;
use crate::telemetry::Metrics;

/// Settings of the controller.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The profile of the type checker.
    pub profile: Profile,
    /// The conditions that make `Ready` False if they are False.
    pub ready_requires: BTreeSet<ConditionType>,
    /// The interval at which discovery is polled. After a change of a CRD, discovery is also polled immediately.
    pub refresh_interval: Duration,
    /// The policies to exclude.
    pub exclusion: Exclusion,
    /// The number of concurrent status writes.
    pub concurrency: usize,
    /// The kinds that are watched in addition to ValidatingAdmissionPolicies.
    pub followed: BTreeSet<SubjectKind>,
    /// How long one watch request lasts. A dead connection is detected a few seconds after this time.
    pub watch_timeout: Duration,
}

/// Progress of startup. No status is computed before all fields are true.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the lists are independent, and can finish in any order"
)]
struct Known {
    snapshot: bool,
    policies: bool,
    /// True if the bindings are listed, or the controller has no permission to read them.
    bindings: bool,
    /// True if the probes are listed, the cluster does not serve them, or the controller has no permission to read
    /// them.
    probes: bool,
}

pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) bindings: Bindings,
    pub(crate) params: Params,
    pub(crate) opt_in: OptIn,
    pub(crate) probes: Probes,
    pub(crate) probe_runner: ProbeRunner,
    pub(crate) admissions: Arc<AdmissionCache>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) schemas: SchemaCache,
    pub(crate) match_cache: Arc<MatchCache>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Readiness,
    pub(crate) stale_conditions: StaleConditions,
    pub(crate) lanes: Lanes,
    pub(crate) log_throttle: LogThrottle,
    pub(crate) write_limiter: WriteLimiter,
    pub(crate) events: Events,
    pub(crate) supervisor: Supervisor,
    pub(crate) leadership: Leadership,
    /// Returns the current time. Tests replace it.
    pub(crate) now: fn() -> Timestamp,
    snapshot: RwLock<Arc<ClusterSnapshot>>,
    known: watch::Sender<Known>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(crate) fn new(client: Client, settings: Settings, metrics: Arc<Metrics>) -> Self {
        let queue: Arc<Queue> = Arc::default();
        let backlog = Arc::clone(&queue);
        metrics.set_queue_gauge(Arc::new(move || backlog.backlog()));
        let store = Store::new(settings.exclusion.clone());
        Self {
            schemas: SchemaCache::new(client.clone(), Arc::clone(&metrics), Arc::clone(&queue)),
            supervisor: Supervisor::new(Arc::clone(&metrics)),
            leadership: Leadership::default(),
            client,
            settings,
            store,
            bindings: Bindings::default(),
            params: Params::default(),
            opt_in: OptIn::default(),
            probes: Probes::default(),
            probe_runner: ProbeRunner::default(),
            admissions: Arc::default(),
            match_cache: Arc::default(),
            queue,
            metrics,
            readiness: Readiness::default(),
            stale_conditions: StaleConditions::default(),
            lanes: Lanes::default(),
            log_throttle: LogThrottle::default(),
            write_limiter: WriteLimiter::default(),
            events: Events::default(),
            now: Timestamp::now,
            snapshot: RwLock::default(),
            known: watch::Sender::default(),
        }
    }

    pub(crate) fn policies(&self) -> Api<ValidatingAdmissionPolicy> {
        Api::all(self.client.clone())
    }

    pub(crate) fn snapshot(&self) -> Arc<ClusterSnapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_snapshot(&self, snapshot: ClusterSnapshot) {
        *self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
        self.known.send_modify(|known| known.snapshot = true);
    }

    /// Returns a receiver that is notified of new snapshots and of completed lists.
    pub(crate) fn changes(&self) -> watch::Receiver<impl Sized + use<>> {
        self.known.subscribe()
    }

    /// Returns true if the cluster serves probes. `None` before the first snapshot.
    pub(crate) fn serves_probes(&self) -> Option<bool> {
        let gvr = Gvr::new(
            PolicyProbe::group(&()),
            PolicyProbe::version(&()),
            PolicyProbe::plural(&()),
        );
        self.has_snapshot()
            .then(|| self.snapshot().mapper.resource(&gvr).is_some())
    }

    pub(crate) fn has_snapshot(&self) -> bool {
        self.known.borrow().snapshot
    }

    /// Sets a field of [`Known`] to true. Notifies receivers only if the field was false. Otherwise a task that sets
    /// the field after each notification would wake itself forever.
    fn note(&self, fact: impl FnOnce(&mut Known) -> &mut bool) {
        self.known
            .send_if_modified(|known| !std::mem::replace(fact(known), true));
    }

    /// Records that all policies are listed.
    pub(crate) fn set_policies_listed(&self) {
        self.note(|known| &mut known.policies);
    }

    /// Records that all bindings are listed, or that the controller has no permission to read them.
    pub(crate) fn set_bindings_listed(&self) {
        self.note(|known| &mut known.bindings);
    }

    /// Records that all probes are listed, or that the controller has no permission to read them.
    pub(crate) fn set_probes_listed(&self) {
        self.note(|known| &mut known.probes);
    }

    pub(crate) fn touch_params(&self, gvk: &Gvk) {
        self.touch(self.store.with_param_kind(gvk));
    }

    /// Queues all subjects of opt-in kinds. Also queues deleted subjects that have a status object, and subjects that
    /// do not exist but have probes.
    pub(crate) fn touch_opt_in(&self) {
        let ids = (self.store.ids().into_iter()).chain(self.probes.policies());
        self.touch(ids.filter(|id| self.opt_in.state(id.kind).is_some()));
        self.touch(self.opt_in.ids());
    }

    /// Queues all subjects. Also queues deleted subjects that have a status object, and subjects that do not exist but
    /// have probes.
    pub(crate) fn touch_all(&self) {
        self.touch(self.opt_in.ids());
        self.touch(self.store.ids());
        self.touch(self.probes.policies());
    }

    pub(crate) fn touch(&self, ids: impl IntoIterator<Item = SubjectId>) {
        for id in ids {
            self.queue.add(&id);
        }
    }

    /// Waits until all initial lists and the first discovery are complete. Every status depends on their results.
    pub(crate) async fn started(&self) {
        let mut initial_lists = self.known.subscribe();
        // The wait cannot fail, since `self` owns the sender.
        drop(
            initial_lists
                .wait_for(|initial_lists| {
                    initial_lists.snapshot
                        && initial_lists.policies
                        && initial_lists.bindings
                        && initial_lists.probes
                })
                .await,
        );
    }
}
