//! Metrics: every name and help text, and the one place where they are registered.
//!
//! Labels come from closed enums and the names of policies, never from error texts. What belongs to a
//! policy disappears with it.

mod labels;
mod policies;
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
    ErrorLabels, KindLabels, LookupLabels, OutcomeLabels, RequestLabels, SkippedLabels,
    SourceErrorLabels, SourceLabels, TaskLabels, VerbLabels,
};
pub use policies::{ACTIONS_UNKNOWN, ConditionSample, PolicySample, ProbeSample, actions};
pub use scrape::QueueProbe;
use scrape::{Scraped, seconds_since_epoch};

use crate::policy::subject::SubjectId;

/// The content type of what [`Metrics::encode`] gives.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Seconds = Gauge<f64, AtomicU64>;
type Count = Gauge<i64, AtomicI64>;

/// The upper bounds of durations, in seconds: from a look at the cache to a write that waits.
const DURATION_BUCKETS: [f64; 11] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0,
];

/// The upper bounds of the durations of requests, in seconds.
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
    /// Registers all metrics.
    #[must_use]
    #[expect(
        clippy::too_many_lines,
        reason = "a list of names and help texts reads best in one piece"
    )]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("vap");
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
            "The version that runs",
            Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]),
        );
        registry.register(
            "reconcile_duration_seconds",
            "Time from the start of a reconciliation to its end, a write of the status included",
            metrics.reconcile_duration.clone(),
        );
        registry.register(
            "check_duration_seconds",
            "Time to compile or to type-check a policy",
            metrics.check_duration.clone(),
        );
        registry.register(
            "reconciles",
            "Reconciliations by how they ended",
            metrics.reconciles.clone(),
        );
        registry.register(
            "reconcile_errors",
            "Failed reconciliations by reason",
            metrics.reconcile_errors.clone(),
        );
        registry.register(
            "skipped_writes",
            "Reconciliations that wrote no status, by reason",
            metrics.skipped_writes.clone(),
        );
        registry.register(
            "status_writes",
            "Statuses written to the API server",
            metrics.status_writes.clone(),
        );
        registry.register(
            "check_panics",
            "Checks of a policy that broke off on an internal error",
            metrics.check_panics.clone(),
        );
        registry.register(
            "check_deadline_exceeded",
            "Checks of a policy that were ended because they took too long",
            metrics.deadlines_exceeded.clone(),
        );
        registry.register(
            "check_threads_stuck",
            "Threads with a check that did not end although it was told to",
            metrics.stuck_threads.clone(),
        );
        registry.register(
            "policy_compilations",
            "Times that a policy was parsed and compiled",
            metrics.compilations.clone(),
        );
        registry.register(
            "events_dropped",
            "Events that were not published: too many at a time, or not taken by the API server",
            metrics.events_dropped.clone(),
        );
        registry.register(
            "probe_status_write_errors",
            "Statuses of probes that could not be written, by reason; each is tried again",
            metrics.probe_write_errors.clone(),
        );
        registry.register(
            "schema_cache_lookups",
            "Looks into the schema cache by result",
            metrics.schema_lookups.clone(),
        );
        registry.register(
            "schema_cache_documents",
            "Group versions whose schemas are in the cache",
            metrics.schema_documents.clone(),
        );
        registry.register(
            "discovery_stale_groups",
            "Group versions whose resources the API server could not list",
            metrics.stale_groups.clone(),
        );
        registry.register(
            "last_sync_timestamp_seconds",
            "When a source of facts was last known to be up to date",
            metrics.last_sync.clone(),
        );
        registry.register(
            "sync_errors",
            "Failures to follow a source of facts, by reason",
            metrics.sync_errors.clone(),
        );
        registry.register(
            "unreadable_objects",
            "Objects of a source that exist and cannot be read",
            metrics.unreadable.clone(),
        );
        registry.register(
            "requests",
            "Requests to the API server by the HTTP status of the answer, or error where there was none",
            metrics.requests.clone(),
        );
        registry.register(
            "request_duration_seconds",
            "Time from a request to the API server to the head of its answer",
            metrics.request_duration.clone(),
        );
        registry.register(
            "panics",
            "Tasks that broke off on an internal error, which ends the process",
            metrics.panics.clone(),
        );
        registry.register(
            "kind_watched",
            "1 for each kind besides ValidatingAdmissionPolicy that is to be followed and is, 0 where the cluster does \
             not serve it or has not the CRD of its conditions",
            metrics.followed.clone(),
        );
        // A series that begins with its first error cannot be alerted on by its increase.
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
            registry,
            ..metrics
        }
    }

    /// All metrics as `OpenMetrics` text.
    ///
    /// # Errors
    /// Only where a metric cannot be written as text, which is an error of ours.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// Sets what is said about a policy.
    pub fn set_policy(&self, policy: &SubjectId, sample: PolicySample) {
        self.scraped.policies.set(policy, sample);
    }

    /// Says nothing more about a policy, of which there is no trace either.
    pub fn remove_policy(&self, policy: &SubjectId) {
        self.scraped.policies.remove(policy, Vec::new());
    }

    /// Says nothing more about a policy, but that `probes` name it and it does not exist.
    pub fn set_missing_policy(&self, policy: &SubjectId, probes: Vec<String>) {
        self.scraped.policies.remove(policy, probes);
    }

    /// Sets whether this instance leads, as it does at first. While it does not, no series with a policy or a
    /// probe in its labels is exported; what is set is kept for when it does.
    pub fn set_leading(&self, is_leading: bool) {
        self.scraped.set_leading(is_leading);
    }

    /// Sets whether all that is needed is in step with the cluster, and where it is, that it was so now.
    pub fn set_in_sync(&self, is_in_sync: bool) {
        self.scraped.set_in_sync(is_in_sync);
    }

    /// Has the queue's length and the age of its oldest item told at each scrape.
    pub fn set_queue_gauge(&self, probe: QueueProbe) {
        self.scraped.set_queue_gauge(probe);
    }

    /// Counts a reconciliation that took `seconds`.
    pub fn reconciled(&self, outcome: ReconcileOutcome, seconds: f64) {
        self.reconcile_duration.observe(seconds);
        self.reconciles
            .get_or_create(&OutcomeLabels { outcome })
            .inc();
    }

    /// Counts a failed reconciliation by its reason.
    pub fn reconcile_failed(&self, reason: ErrorReason) {
        self.reconcile_errors
            .get_or_create(&ErrorLabels { reason })
            .inc();
    }

    /// Counts a reconciliation that wrote nothing, by the reason.
    pub fn write_skipped(&self, reason: Skipped) {
        self.skipped_writes
            .get_or_create(&SkippedLabels { reason })
            .inc();
    }

    /// Counts a write of a status.
    pub fn status_written(&self) {
        self.status_writes.inc();
    }

    /// Counts the time that a check took.
    pub fn checked(&self, seconds: f64) {
        self.check_duration.observe(seconds);
    }

    /// Counts a check that panicked.
    pub fn check_panicked(&self) {
        self.check_panics.inc();
    }

    /// Counts a check that was ended because it took too long.
    pub fn check_deadline_exceeded(&self) {
        self.deadlines_exceeded.inc();
    }

    /// Sets how many threads have a check that does not end.
    pub fn set_stuck_check_threads(&self, n: usize) {
        self.stuck_threads.set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Counts a policy that was parsed and compiled.
    pub fn policy_compiled(&self) {
        self.compilations.inc();
    }

    /// Counts an event that was not published.
    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    /// Counts a status of a probe that could not be written.
    pub fn probe_write_failed(&self, reason: ErrorReason) {
        self.probe_write_errors
            .get_or_create(&ErrorLabels { reason })
            .inc();
    }

    /// Counts a look into the schema cache.
    pub fn schema_lookup(&self, result: Lookup) {
        self.schema_lookups
            .get_or_create(&LookupLabels { result })
            .inc();
    }

    /// Sets how many group versions are in the schema cache.
    pub fn set_schema_documents(&self, n: usize) {
        self.schema_documents
            .set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Sets how many group versions could not be listed.
    pub fn set_stale_groups(&self, n: usize) {
        self.stale_groups.set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Notes that `source` is up to date now.
    pub fn synced(&self, source: Source) {
        self.last_sync
            .get_or_create(&SourceLabels { source })
            .set(seconds_since_epoch());
    }

    /// Notes that `source` is not followed any more.
    pub fn forget_source(&self, source: Source) {
        let labels = SourceLabels { source };
        self.last_sync.remove(&labels);
        self.unreadable.remove(&labels);
    }

    /// Sets whether a kind that is to be followed is.
    pub fn set_followed(&self, kind: &'static str, is_followed: bool) {
        self.followed
            .get_or_create(&KindLabels { kind })
            .set(i64::from(is_followed));
    }

    /// Counts a failure to follow `source`.
    pub fn sync_failed(&self, source: Source, reason: ErrorReason) {
        self.sync_errors
            .get_or_create(&SourceErrorLabels { source, reason })
            .inc();
    }

    /// Sets how many objects of `source` exist and cannot be read.
    pub fn set_unreadable(&self, source: Source, n: usize) {
        self.unreadable
            .get_or_create(&SourceLabels { source })
            .set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Counts a request whose head of an answer, or whose failure, came after `seconds`.
    pub fn requested(&self, verb: Verb, code: Code, seconds: f64) {
        self.requests
            .get_or_create(&RequestLabels { verb, code })
            .inc();
        self.request_duration
            .get_or_create(&VerbLabels { verb })
            .observe(seconds);
    }

    /// Begins the count of panics of `task` at 0: a series that begins with its first panic cannot be alerted
    /// on by its increase.
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
