//! Polls discovery and the OpenAPI index, and updates the snapshot of the cluster.
//!
//! One task owns the CRDs, discovery and the index. It polls the API server at an interval, and immediately when a CRD
//! or an `APIService` changes. After a change, it polls until discovery, index and CRDs are consistent
//! ([`crate::controller::cluster::discovery_lag`]). A new snapshot queues the affected policies.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use crate::cluster::discovery::Discovery;
use crate::cluster::error::Error;
use crate::cluster::openapi::{Index, OpenApi};
use crate::cluster::version::{self, ServerVersions};
use crate::controller::cluster::crds::{Crd, Crds};
use crate::controller::cluster::discovery_lag::{DiscoveryLag, LIMIT, Pinned, Progress};
use crate::controller::cluster::snapshot::{Change, ClusterSnapshot};
use crate::controller::cluster::unknown_kinds::unknown_kinds;
use crate::controller::context::Context;
use crate::controller::process::supervisor::REFRESH_LIMIT;
use crate::policy::subject::SubjectId;
use crate::schema::GroupVersion;
use crate::schema::rest_mapper::RestMapper;
use crate::telemetry::metrics::{ErrorReason, Source};
use crate::version::{ClusterVersion, KubernetesVersion, VersionInfo};

/// The bounds of the minimum time between two polls. This time grows with the duration of the last poll.
const STEPS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// The maximum time between two successful polls while a change is expected. It is short, so that the change is
/// detected soon.
const EXPECTED: Duration = Duration::from_millis(200);

/// The minimum wait after a poll with changes, as a multiple of the duration of the poll. While many CRDs change, each
/// poll may read megabytes. After a poll without changes, the factor is 1, since its responses are small.
const PACE: u32 = 4;

/// The interval at which unused schemas are dropped.
const CLEANING: Duration = Duration::from_secs(60);

/// The interval at which the task searches for conditions and group versions that have been outdated for a long time.
const LASTING: Duration = Duration::from_secs(5);

/// The maximum backoff after failures.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// A change that may be followed by changes of discovery and of the OpenAPI index.
#[derive(Debug)]
pub(crate) enum RefreshTrigger {
    /// The CRDs were listed again.
    CrdsListed {
        crds: Crds,
        /// The names of CRDs that cannot be parsed. Their stored state remains.
        kept: BTreeSet<String>,
    },
    /// A CRD was created or changed to this state.
    CrdApplied(String, Crd),
    /// A CRD was deleted.
    CrdDeleted(String),
    /// An aggregated API was added, changed or removed.
    ApiServiceChanged(GroupVersion),
}

#[derive(Debug)]
pub(crate) struct Refresher {
    context: Arc<Context>,
    discovery: Discovery,
    openapi: OpenApi,
    versions: ServerVersions,
    /// The version for which policies are compiled. `None` before the first response.
    version: Option<ClusterVersion>,
    lag: DiscoveryLag,
    crds: Crds,
    are_crds_listed: bool,
    mapper: Option<Arc<RestMapper>>,
    /// The served resources for admission that the controller does not know.
    unknown_kinds: BTreeSet<String>,
    index: Option<Arc<Index>>,
    is_published: bool,
    /// The time of the first complete poll. A poll is complete if no request of it failed, and if all CRDs were listed
    /// before it ended.
    complete_since: Option<Instant>,
    has_failed: bool,
    step: Duration,
    due: Instant,
    last: Instant,
    /// The minimum time between the last poll and the next poll.
    rest: Duration,
    clock: DiscoveryClock,
    cleaned: Instant,
}

/// A clock that runs only while polls succeed. A failed poll does not show whether an expected change has appeared.
#[derive(Debug)]
struct DiscoveryClock {
    time: Instant,
    read_at: Instant,
}

impl DiscoveryClock {
    fn new(now: Instant) -> Self {
        Self {
            time: now,
            read_at: now,
        }
    }

    /// Returns the time of this clock at `now`. If `is_lost`, the time since the previous call does not count.
    fn at(&mut self, now: Instant, is_lost: bool) -> Instant {
        let elapsed = now.saturating_duration_since(self.read_at);
        self.read_at = now;
        if !is_lost {
            self.time += elapsed;
        }
        self.time
    }
}

impl Refresher {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let now = Instant::now();
        Self {
            context,
            discovery: Discovery::default(),
            openapi: OpenApi::default(),
            versions: ServerVersions::default(),
            version: None,
            lag: DiscoveryLag::default(),
            crds: Crds::new(),
            are_crds_listed: false,
            mapper: None,
            unknown_kinds: BTreeSet::new(),
            index: None,
            is_published: false,
            complete_since: None,
            has_failed: false,
            step: STEPS.0,
            due: now,
            last: now,
            rest: STEPS.0,
            clock: DiscoveryClock::new(now),
            cleaned: now,
        }
    }

    /// Polls and handles triggers. Returns when the sender of `signals` is dropped.
    pub(crate) async fn run(mut self, mut signals: UnboundedReceiver<RefreshTrigger>) {
        let mut recoveries = self.context.readiness.recoveries();
        let limit = REFRESH_LIMIT.max(5 * self.context.settings.refresh_interval);
        let heartbeat = self.context.supervisor.heartbeat("refresher", limit);
        let mut lasting = tokio::time::interval(LASTING);
        loop {
            heartbeat.beat();
            tokio::select! {
                signal = signals.recv() => {
                    let Some(signal) = signal else { return };
                    self.note(signal);
                    while let Ok(signal) = signals.try_recv() {
                        self.note(signal);
                    }
                }
                () = tokio::time::sleep_until(self.due) => self.refresh().await,
                _ = lasting.tick() => self.note_lasting(),
                Ok(()) = recoveries.changed(), if self.has_failed => {
                    self.due = self.due.min(Instant::now().max(self.last + STEPS.1));
                    self.context.schemas.flush_backoff(None);
                }
            }
        }
    }

    /// Records a trigger. If something has changed, schedules a poll.
    fn note(&mut self, signal: RefreshTrigger) {
        let now = Instant::now();
        let time = self.clock.at(now, self.has_failed);
        let none = Index::new();
        let index = self.index.as_deref().unwrap_or(&none);
        let is_news = match signal {
            RefreshTrigger::CrdsListed {
                crds: mut listed,
                kept,
            } => {
                let retained = |name: String| Some((self.crds.get(&name)?.clone(), name));
                let retained: Vec<_> = kept.into_iter().filter_map(retained).collect();
                listed.extend(retained.into_iter().map(|(crd, name)| (name, crd)));
                // The time of these changes is unknown, so the index may already reflect them. With the empty index
                // `none`, each document counts as changed as soon as it exists.
                for name in self.crds.keys().chain(listed.keys()) {
                    let (old, new) = (self.crds.get(name), listed.get(name));
                    if old != new {
                        self.lag.note(name, (old, new), &none, time);
                    }
                }
                let is_news = !self.are_crds_listed || self.crds != listed;
                self.crds = listed;
                self.are_crds_listed = true;
                is_news
            }
            RefreshTrigger::CrdApplied(name, crd) => {
                let old = self.crds.get(&name);
                let is_news = old != Some(&crd);
                if is_news {
                    self.lag.note(&name, (old, Some(&crd)), index, time);
                    self.crds.insert(name, crd);
                }
                is_news
            }
            RefreshTrigger::CrdDeleted(name) => {
                let old = self.crds.remove(&name);
                self.lag.note(&name, (old.as_ref(), None), index, time);
                old.is_some()
            }
            RefreshTrigger::ApiServiceChanged(gv) => {
                self.context.schemas.flush_backoff(Some(&gv));
                self.lag.note_possible(gv, index, time);
                true
            }
        };
        if is_news {
            self.step = STEPS.0;
            self.due = self.due.min(now.max(self.last + self.rest));
        }
    }

    /// Polls discovery and the index, and publishes a new snapshot if they have changed. Schedules the next poll.
    async fn refresh(&mut self) {
        let start = Instant::now();
        self.clock.at(start, self.has_failed);
        let client = &self.context.client;
        let (version, resources, index) = tokio::join!(
            version::read(client),
            self.discovery.refresh(client),
            self.openapi.refresh(client)
        );
        let mut has_failed = false;
        let mut is_news = false;
        match version {
            Ok(info) => is_news |= self.note_version(&info),
            Err(error) => {
                self.log_failure(Source::Discovery, "the version (/version)", &error);
                has_failed = true;
            }
        }
        match resources {
            Ok(mapper) => {
                if !has_failed {
                    self.in_sync(Source::Discovery);
                }
                let n_stale = self.discovery.n_stale();
                self.context.metrics.set_stale_groups(n_stale);
                if let Some(mapper) = mapper {
                    is_news = true;
                    self.note_unknown_kinds(&mapper);
                    self.mapper = Some(Arc::new(mapper));
                }
            }
            Err(error) => {
                self.log_failure(Source::Discovery, "discovery (/api, /apis)", &error);
                has_failed = true;
            }
        }
        match index {
            Ok(index) => {
                self.in_sync(Source::OpenApi);
                if let Some(index) = index {
                    is_news = true;
                    let before = self.index.replace(Arc::new(index));
                    self.note_documents(before.as_deref());
                }
            }
            Err(error) => {
                self.log_failure(
                    Source::OpenApi,
                    "the index of schemas (/openapi/v3)",
                    &error,
                );
                has_failed = true;
            }
        }
        if self.has_failed && !has_failed {
            self.step = STEPS.0;
        }
        self.has_failed = has_failed;
        self.last = Instant::now();
        let took = self.last - start;
        tracing::debug!(
            seconds = took.as_secs_f64(),
            is_news,
            has_failed,
            "refreshed discovery"
        );
        let time = self.clock.at(self.last, has_failed);
        // A failed poll does not show whether the expected changes have appeared.
        let progress = if has_failed {
            Progress::Inconsistent
        } else {
            self.progress(time)
        };
        for gv in self.lag.expected() {
            self.context.schemas.flush_backoff(Some(gv));
        }
        let pace = if is_news { PACE } else { 1 };
        self.rest = STEPS.0.max(pace * took).min(STEPS.1);
        self.due = self.last + self.pause(has_failed, progress).max(self.rest);
        self.clean().await;
    }

    /// Records the version that an API server reports. Returns true if the version for which policies are compiled changes.
    fn note_version(&mut self, info: &VersionInfo) -> bool {
        let reported = KubernetesVersion::from_info(info);
        let supported = reported.unwrap_or_default().at_least_oldest();
        let version = self.versions.note(supported, Instant::now());
        let is_news = self.version != Some(version);
        if is_news && (reported != Some(supported) || supported.is_too_new()) {
            tracing::warn!(
                reported = info.git_version,
                compiled_for = %supported.nearest_supported(),
                "the version of the API server is not supported"
            );
        }
        if is_news {
            self.context.metrics.set_kubernetes_version(version.version);
            self.version = Some(version);
        }
        is_news
    }

    /// Logs the served resources for admission that the controller does not know, if they have changed.
    fn note_unknown_kinds(&mut self, mapper: &RestMapper) {
        let unknown = unknown_kinds(mapper);
        if unknown != self.unknown_kinds && !unknown.is_empty() {
            let resources = unknown.iter().cloned().collect::<Vec<_>>().join(", ");
            tracing::warn!(
                resources,
                "the API server serves admission resources that this version does not support; their objects are not \
                 checked; upgrade vap-status-controller"
            );
        }
        self.unknown_kinds = unknown;
    }

    /// Queues the policies whose conditions have been outdated for longer than a short outage. Schedules an immediate
    /// poll if the discovery of a group version has failed for some time.
    fn note_lasting(&mut self) {
        let now = Instant::now();
        self.context.touch(self.context.stale_conditions.due(now));
        if self.discovery.is_due(now) {
            self.due = self.due.min(now);
        }
    }

    /// Immediately retries failed documents that are new in the index, or whose URL differs from the one in `before`.
    /// Without this retry, a document that was removed and added again would wait for the end of its backoff.
    fn note_documents(&self, before: Option<&Index>) {
        let index = self.index.iter().flat_map(|index| index.iter());
        for (gv, address) in index {
            if before.and_then(|before| before.get(gv)) != Some(address) {
                self.context.schemas.flush_backoff(Some(gv));
            }
        }
    }

    /// Drops unused schemas, at most once per [`CLEANING`].
    async fn clean(&mut self) {
        if !self.is_published || self.cleaned.elapsed() < CLEANING {
            return;
        }
        self.cleaned = Instant::now();
        let Context { schemas, store, .. } = &*self.context;
        let exists = |policy: &SubjectId| store.has(policy);
        if schemas.retain(&store.needed_schemas(), exists) {
            schemas.purge().await;
        }
    }

    /// Compares the last poll with the CRDs. Publishes a snapshot in which parts that contradict the CRDs keep their
    /// previous state.
    fn progress(&mut self, now: Instant) -> Progress {
        let (Some(mapper), Some(index)) = (self.mapper.clone(), self.index.clone()) else {
            return Progress::Inconsistent;
        };
        if !self.are_crds_listed || self.version.is_none() {
            return Progress::Inconsistent;
        }
        let snapshot = self.context.snapshot();
        let (progress, held) = self
            .lag
            .progress(&self.crds, &mapper, &index, &snapshot, now);
        if self.is_published {
            self.publish(mapper, index, &held);
        } else {
            // Before the first snapshot, contradicting parts have no previous state. So the first snapshot is published
            // when it is consistent, or after [`LIMIT`].
            let since = *self.complete_since.get_or_insert(now);
            if progress != Progress::Inconsistent || now >= since + LIMIT {
                self.publish(mapper, index, &Pinned::default());
            }
        }
        progress
    }

    fn pause(&mut self, has_failed: bool, progress: Progress) -> Duration {
        if !has_failed && progress == Progress::Converged {
            self.step = STEPS.0;
            return self.context.settings.refresh_interval;
        }
        let pause = self.step;
        let longest = if has_failed { MAX_PAUSE } else { EXPECTED };
        self.step = (self.step * 2).min(longest);
        pause
    }

    /// Publishes a new snapshot, and queues the affected policies. The parts in `held` keep their previous state.
    fn publish(&mut self, mapper: Arc<RestMapper>, index: Arc<Index>, held: &Pinned) {
        let context = &self.context;
        let old = context.snapshot();
        let mapper = match held.mapper(&old.mapper, &mapper) {
            Some(mapper) => Arc::new(mapper),
            None => mapper,
        };
        let index = match held.index(&old.index, &index) {
            Some(index) => Arc::new(index),
            None => index,
        };
        let version = self.version.unwrap_or_default();
        let is_same_version = old.server == version;
        let is_same = old.mapper == mapper && is_same_version;
        let revision = if is_same {
            old.revision
        } else {
            old.revision + 1
        };
        let crds = held.crds(&old.crds, &self.crds);
        let new = ClusterSnapshot {
            server: version,
            mapper: same_or(&old.mapper, mapper),
            revision,
            index: same_or(&old.index, index),
            crds: same_or(&old.crds, Arc::new(crds)),
        };
        if self.is_published {
            let change = Change::between(&old, &new);
            if change.is_empty() && is_same_version {
                return;
            }
            context.set_snapshot(new);
            if !is_same {
                context.match_cache.clear();
            }
            if !is_same_version {
                tracing::info!(from = %old.server.version, to = %version.version, "the version of the API server changed");
                context.touch(context.store.ids());
                return;
            }
            let touched = context.store.touched_by(&change, context.settings.profile);
            tracing::debug!(
                ?change,
                policies = touched.len(),
                "served resources changed"
            );
            for (n_documents, id) in touched {
                context.queue.add_of(&id, n_documents);
            }
        } else {
            self.is_published = true;
            context.set_snapshot(new);
            context.touch(context.store.ids());
        }
    }

    fn in_sync(&self, source: Source) {
        self.context.readiness.synced(source);
        self.context.metrics.synced(source);
        self.context.log_throttle.watch_recovered(source);
    }

    fn log_failure(&self, source: Source, what: &str, error: &Error) {
        let Context {
            readiness,
            metrics,
            log_throttle,
            ..
        } = &*self.context;
        let reason = error.reason();
        metrics.sync_failed(source, reason);
        let text = format!("cannot read {what}: {error}");
        if reason == ErrorReason::Forbidden {
            let text =
                format!("{text}; bind the ClusterRole system:discovery to the service account");
            readiness.refused(source, text.clone());
            if readiness.rejection(source).is_some() {
                log_throttle.watch_forbidden(source, &text);
            }
        } else {
            log_throttle.watch_failed(source, reason, &text);
            readiness.failed(source, text);
        }
    }
}

/// Returns `known` if it is equal to `new`. This way, equal values share memory.
fn same_or<T: PartialEq>(known: &Arc<T>, new: Arc<T>) -> Arc<T> {
    if **known == *new {
        Arc::clone(known)
    } else {
        new
    }
}

#[cfg(test)]
mod tests;
