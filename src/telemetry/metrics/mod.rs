//! Defines the metrics of the controller: names, help strings and registration.
//!
//! Label values are enum variants or names of policies and probes, never error messages. The series of a policy are
//! removed together with the policy.

mod labels;
mod policies;
#[cfg(target_os = "linux")]
mod process;
mod scrape;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub use labels::{Code, ErrorReason, Lookup, ReconcileOutcome, Skipped, Source, Verb};
use labels::{
    ErrorLabels, KindLabels, KubernetesLabels, LookupLabels, OutcomeLabels, RequestLabels,
    SkippedLabels, SourceErrorLabels, SourceLabels, TaskLabels, VerbLabels,
};
pub use policies::{ACTIONS_UNKNOWN, ConditionSample, PolicySample, ProbeSample, actions};
pub use scrape::QueueProbe;
use scrape::{Scraped, seconds_since_epoch};

use crate::policy::subject::SubjectId;
use crate::version::KubernetesVersion;

/// The content type of the output of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Seconds = Gauge<f64, AtomicU64>;
type Count = Gauge<i64, AtomicI64>;

/// Upper bounds of duration buckets, in seconds. The range covers a cache lookup and a delayed write.
const DURATION_BUCKETS: [f64; 11] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0,
];

const REQUEST_BUCKETS: [f64; 11] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0,
];

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    scraped: Arc<Scraped>,
    reconcile_duration: Histogram,
    check_duration: Histogram,
    reconciles: Family<OutcomeLabels, Counter>,
    reconcile_errors: Family<ErrorLabels, Counter>,
    skipped_writes: Family<SkippedLabels, Counter>,
    status_writes: Counter,
    check_panics: Counter,
    deadlines_exceeded: Counter,
    stuck_threads: Count,
    compilations: Counter,
    events_dropped: Counter,
    probe_write_errors: Family<ErrorLabels, Counter>,
    schema_lookups: Family<LookupLabels, Counter>,
    schema_documents: Count,
    stale_groups: Count,
    kubernetes_version: Family<KubernetesLabels, Count>,
    last_sync: Family<SourceLabels, Seconds>,
    sync_errors: Family<SourceErrorLabels, Counter>,
    unreadable: Family<SourceLabels, Count>,
    requests: Family<RequestLabels, Counter>,
    request_duration: Family<VerbLabels, Histogram>,
    panics: Family<TaskLabels, Counter>,
    followed: Family<KindLabels, Count>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates and registers all metrics.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a flat list of names and help texts")]
    pub fn new() -> Self {
        let mut root = Registry::default();
        #[cfg(target_os = "linux")]
        root.register_collector(Box::new(process::ProcessCollector));
        let registry = root.sub_registry_with_prefix("vap");
        let scraped = Arc::new(Scraped::default());
        registry.register_collector(Box::new(Arc::clone(&scraped)));
        let metrics = Self {
            scraped,
            reconcile_duration: Histogram::new(DURATION_BUCKETS),
            check_duration: Histogram::new(DURATION_BUCKETS),
            reconciles: Family::default(),
            reconcile_errors: Family::default(),
            skipped_writes: Family::default(),
            status_writes: Counter::default(),
            check_panics: Counter::default(),
            deadlines_exceeded: Counter::default(),
            stuck_threads: Count::default(),
            compilations: Counter::default(),
            events_dropped: Counter::default(),
            probe_write_errors: Family::default(),
            schema_lookups: Family::default(),
            schema_documents: Count::default(),
            stale_groups: Count::default(),
            kubernetes_version: Family::default(),
            last_sync: Family::default(),
            sync_errors: Family::default(),
            unreadable: Family::default(),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(request_histogram),
            panics: Family::default(),
            followed: Family::default(),
            registry: Registry::default(),
        };
        registry.register(
            "build",
            "Version of the controller",
            Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register(
            "reconcile_duration_seconds",
            "Duration of reconciliations, including the status write",
            metrics.reconcile_duration.clone(),
        );
        registry.register(
            "check_duration_seconds",
            "Time to compile or type-check a policy",
            metrics.check_duration.clone(),
        );
        registry.register(
            "reconciles",
            "Reconciliations by outcome",
            metrics.reconciles.clone(),
        );
        registry.register(
            "reconcile_errors",
            "Failed reconciliations by reason",
            metrics.reconcile_errors.clone(),
        );
        registry.register(
            "skipped_writes",
            "Reconciliations without a status write, by reason",
            metrics.skipped_writes.clone(),
        );
        registry.register(
            "status_writes",
            "Statuses written to the API server",
            metrics.status_writes.clone(),
        );
        registry.register(
            "check_panics",
            "Policy checks that panicked",
            metrics.check_panics.clone(),
        );
        registry.register(
            "check_deadline_exceeded",
            "Policy checks that exceeded the time limit",
            metrics.deadlines_exceeded.clone(),
        );
        registry.register(
            "check_threads_stuck",
            "Threads with a check that did not end after it was canceled",
            metrics.stuck_threads.clone(),
        );
        registry.register(
            "policy_compilations",
            "Compilations of policies",
            metrics.compilations.clone(),
        );
        registry.register(
            "events_dropped",
            "Events that were not published: rate-limited, or rejected by the API server",
            metrics.events_dropped.clone(),
        );
        registry.register(
            "probe_status_write_errors",
            "Failed writes of probe statuses, by reason; each is retried",
            metrics.probe_write_errors.clone(),
        );
        registry.register(
            "schema_cache_lookups",
            "Schema cache lookups by result",
            metrics.schema_lookups.clone(),
        );
        registry.register(
            "schema_cache_documents",
            "Group versions with cached schemas",
            metrics.schema_documents.clone(),
        );
        registry.register(
            "discovery_stale_groups",
            "Group versions whose resources the API server failed to list",
            metrics.stale_groups.clone(),
        );
        registry.register(
            "kubernetes_version",
            "1 for the version of the API server for which policies are compiled",
            metrics.kubernetes_version.clone(),
        );
        registry.register(
            "last_sync_timestamp_seconds",
            "Time of the last progress of each source, in seconds since the epoch",
            metrics.last_sync.clone(),
        );
        registry.register(
            "sync_errors",
            "Failed lists, watches and discovery requests, by source and reason",
            metrics.sync_errors.clone(),
        );
        registry.register(
            "unreadable_objects",
            "Existing objects of a source that cannot be parsed",
            metrics.unreadable.clone(),
        );
        registry.register(
            "requests",
            "Requests to the API server by HTTP status; code is error if there was no response",
            metrics.requests.clone(),
        );
        registry.register(
            "request_duration_seconds",
            "Time from a request to the API server to its response headers",
            metrics.request_duration.clone(),
        );
        registry.register(
            "panics",
            "Task panics, each of which ends the process",
            metrics.panics.clone(),
        );
        registry.register(
            "kind_watched",
            "1 if the controller watches a kind of --follow, 0 if the cluster does not serve the kind or lacks the CRD for \
             its conditions",
            metrics.followed.clone(),
        );
        // The counters start at 0. If a counter first appeared with an error, alerts would not see an increase.
        for reason in ErrorReason::ALL {
            drop(
                metrics
                    .reconcile_errors
                    .get_or_create(&ErrorLabels { reason: *reason }),
            );
        }
        for outcome in ReconcileOutcome::ALL {
            drop(
                metrics
                    .reconciles
                    .get_or_create(&OutcomeLabels { outcome: *outcome }),
            );
        }
        for reason in Skipped::ALL {
            drop(
                metrics
                    .skipped_writes
                    .get_or_create(&SkippedLabels { reason: *reason }),
            );
        }
        for result in Lookup::ALL {
            drop(
                metrics
                    .schema_lookups
                    .get_or_create(&LookupLabels { result: *result }),
            );
        }
        Self {
            registry: root,
            ..metrics
        }
    }

    /// Returns all metrics in the `OpenMetrics` text format.
    ///
    /// # Errors
    /// Returns an error if a metric cannot be encoded, which is a bug.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// Sets the exported values of a policy.
    pub fn set_policy(&self, policy: &SubjectId, sample: PolicySample) {
        self.scraped.policies.set(policy, sample);
    }

    /// Removes the series of a deleted policy to which no probe refers.
    pub fn remove_policy(&self, policy: &SubjectId) {
        self.scraped.policies.remove(policy, Vec::new());
    }

    /// Removes the series of a missing policy. Exports `probes`, the names of the probes that refer to the policy.
    pub fn set_missing_policy(&self, policy: &SubjectId, probes: Vec<String>) {
        self.scraped.policies.remove(policy, probes);
    }

    /// Sets whether this instance is the leader. The initial value is true. A standby exports no series of policies and
    /// probes. It stores the values in case it becomes the leader.
    pub fn set_leading(&self, is_leading: bool) {
        self.scraped.set_leading(is_leading);
    }

    /// Sets whether all required sources are in sync with the cluster. If true, also records the current time.
    pub fn set_in_sync(&self, is_in_sync: bool) {
        self.scraped.set_in_sync(is_in_sync);
    }

    /// Sets the function that measures the queue at each scrape.
    pub fn set_queue_gauge(&self, probe: QueueProbe) {
        self.scraped.set_queue_gauge(probe);
    }

    /// Counts a reconciliation with its outcome and duration.
    pub fn reconciled(&self, outcome: ReconcileOutcome, seconds: f64) {
        self.reconcile_duration.observe(seconds);
        self.reconciles
            .get_or_create(&OutcomeLabels { outcome })
            .inc();
    }

    /// Counts a failed reconciliation.
    pub fn reconcile_failed(&self, reason: ErrorReason) {
        self.reconcile_errors
            .get_or_create(&ErrorLabels { reason })
            .inc();
    }

    /// Counts a reconciliation without a status write.
    pub fn write_skipped(&self, reason: Skipped) {
        self.skipped_writes
            .get_or_create(&SkippedLabels { reason })
            .inc();
    }

    /// Counts a status write.
    pub fn status_written(&self) {
        self.status_writes.inc();
    }

    /// Records the duration of a check, in seconds.
    pub fn checked(&self, seconds: f64) {
        self.check_duration.observe(seconds);
    }

    /// Counts a check that panicked.
    pub fn check_panicked(&self) {
        self.check_panics.inc();
    }

    /// Counts a check that exceeded the time limit.
    pub fn check_deadline_exceeded(&self) {
        self.deadlines_exceeded.inc();
    }

    /// Sets the number of threads that still run abandoned checks.
    pub fn set_stuck_check_threads(&self, n: usize) {
        self.stuck_threads.set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Counts a compilation of a policy.
    pub fn policy_compiled(&self) {
        self.compilations.inc();
    }

    /// Counts an event that was dropped before publication.
    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    /// Counts a failed write of a probe status.
    pub fn probe_write_failed(&self, reason: ErrorReason) {
        self.probe_write_errors
            .get_or_create(&ErrorLabels { reason })
            .inc();
    }

    /// Counts a schema cache lookup.
    pub fn schema_lookup(&self, result: Lookup) {
        self.schema_lookups
            .get_or_create(&LookupLabels { result })
            .inc();
    }

    /// Sets the number of group versions with cached schemas.
    pub fn set_schema_documents(&self, n: usize) {
        self.schema_documents
            .set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Sets the number of group versions whose resources the API server failed to list.
    pub fn set_stale_groups(&self, n: usize) {
        self.stale_groups.set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Sets the version of the API server for which policies are compiled.
    pub fn set_kubernetes_version(&self, version: KubernetesVersion) {
        self.kubernetes_version.clear();
        let labels = KubernetesLabels {
            version: version.to_string(),
        };
        self.kubernetes_version.get_or_create(&labels).set(1);
    }

    /// Records that `source` is in sync with the cluster at the current time.
    pub fn synced(&self, source: Source) {
        self.last_sync
            .get_or_create(&SourceLabels { source })
            .set(seconds_since_epoch());
    }

    /// Removes the series of a source that is no longer watched.
    pub fn forget_source(&self, source: Source) {
        let labels = SourceLabels { source };
        self.last_sync.remove(&labels);
        self.unreadable.remove(&labels);
    }

    /// Sets whether the controller watches objects of `kind`, which is opt-in.
    pub fn set_followed(&self, kind: &'static str, is_followed: bool) {
        self.followed
            .get_or_create(&KindLabels { kind })
            .set(i64::from(is_followed));
    }

    /// Counts a failed list, watch or discovery request of `source`.
    pub fn sync_failed(&self, source: Source, reason: ErrorReason) {
        self.sync_errors
            .get_or_create(&SourceErrorLabels { source, reason })
            .inc();
    }

    /// Sets the number of objects of `source` that cannot be parsed.
    pub fn set_unreadable(&self, source: Source, n: usize) {
        self.unreadable
            .get_or_create(&SourceLabels { source })
            .set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Counts a request. `seconds` is the time until the response headers or the failure.
    pub fn requested(&self, verb: Verb, code: Code, seconds: f64) {
        self.requests
            .get_or_create(&RequestLabels { verb, code })
            .inc();
        self.request_duration
            .get_or_create(&VerbLabels { verb })
            .observe(seconds);
    }

    /// Creates the panic counter of `task` with the value 0. If the counter first appeared with a panic, alerts would
    /// not see an increase.
    pub fn supervised(&self, task: &'static str) {
        drop(self.panics.get_or_create(&TaskLabels { task }));
    }

    /// Counts a panic of `task`.
    pub fn panicked(&self, task: &'static str) {
        self.panics.get_or_create(&TaskLabels { task }).inc();
    }
}

fn request_histogram() -> Histogram {
    Histogram::new(REQUEST_BUCKETS)
}
