//! Metrics: every name and help text, and the one place where they are registered.
//!
//! Labels come from closed enums and the names of policies, never from error texts. What belongs to a
//! policy disappears with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// The content type of what [`Metrics::encode`] gives.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Declares an enum whose variants are label values.
macro_rules! label_values {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The value of the label.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)*
                }
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
                self.as_str().encode(encoder)
            }
        }
    };
}

label_values! {
    /// How a reconciliation ended.
    Outcome {
        /// The status said it all already.
        Unchanged = "unchanged",
        /// The status was written.
        Applied = "applied",
        /// The policy is gone.
        Deleted = "deleted",
        /// It failed and is tried again.
        Failed = "failed",
    }
}

label_values! {
    /// Why something failed.
    ErrorReason {
        /// The API server refused for lack of permission.
        Forbidden = "forbidden",
        /// The credentials were refused.
        Unauthorized = "unauthorized",
        /// The object changed or was replaced in between.
        Conflict = "conflict",
        /// The object is gone.
        NotFound = "not_found",
        /// The API server found the request invalid.
        Invalid = "invalid",
        /// The object would become too large.
        TooLarge = "too_large",
        /// The API server asks to come back later.
        Throttled = "throttled",
        /// The API server failed.
        Server = "server",
        /// The API server could not be reached.
        Connection = "connection",
        /// No answer came in time.
        Timeout = "timeout",
        /// An answer could not be read.
        Decode = "decode",
        /// The check of a policy panicked.
        Panic = "panic",
        /// Anything else.
        Other = "other",
    }
}

label_values! {
    /// What is kept in step with the cluster.
    Source {
        /// The watch of policies.
        Policies = "policies",
        /// The watch of bindings.
        Bindings = "bindings",
        /// The watch of probes, where their kind is served.
        Probes = "probes",
        /// The watches of params, of all kinds together.
        Params = "params",
        /// The watch of CustomResourceDefinitions.
        Crds = "crds",
        /// The watch of API services.
        ApiServices = "apiservices",
        /// The list of served resources.
        Discovery = "discovery",
        /// The index of OpenAPI documents.
        OpenApi = "openapi",
    }
}

label_values! {
    /// How a look into a cache ended.
    Lookup {
        /// It was there.
        Hit = "hit",
        /// It was fetched.
        Fetched = "fetched",
        /// It could not be had.
        Failed = "failed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    reason: ErrorReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceErrorLabels {
    source: Source,
    reason: ErrorReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    task: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LookupLabels {
    result: Lookup,
}

type Seconds = Gauge<f64, AtomicU64>;
type Count = Gauge<i64, AtomicI64>;

/// The upper bounds of durations, in seconds: from a look at the cache to a write that waits.
const DURATION_BUCKETS: [f64; 11] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0,
];

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    policies: std::sync::Arc<PolicySamples>,
    reconcile_duration: Histogram,
    check_duration: Histogram,
    reconciles: Family<OutcomeLabels, Counter>,
    reconcile_errors: Family<ErrorLabels, Counter>,
    status_writes: Counter,
    check_panics: Counter,
    panics: Family<TaskLabels, Counter>,
    compilations: Counter,
    queue_length: Count,
    schema_lookups: Family<LookupLabels, Counter>,
    schema_documents: Count,
    stale_groups: Count,
    last_sync: Family<SourceLabels, Seconds>,
    sync_errors: Family<SourceErrorLabels, Counter>,
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
        let policies = std::sync::Arc::new(PolicySamples::default());
        registry.register_collector(Box::new(std::sync::Arc::clone(&policies)));
        let metrics = Self {
            policies,
            reconcile_duration: Histogram::new(DURATION_BUCKETS),
            check_duration: Histogram::new(DURATION_BUCKETS),
            reconciles: Family::default(),
            reconcile_errors: Family::default(),
            status_writes: Counter::default(),
            check_panics: Counter::default(),
            panics: Family::default(),
            compilations: Counter::default(),
            queue_length: Count::default(),
            schema_lookups: Family::default(),
            schema_documents: Count::default(),
            stale_groups: Count::default(),
            last_sync: Family::default(),
            sync_errors: Family::default(),
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
            "panics",
            "Tasks of the process that panicked, which ends it",
            metrics.panics.clone(),
        );
        registry.register(
            "policy_compilations",
            "Times that a policy was parsed and compiled",
            metrics.compilations.clone(),
        );
        registry.register(
            "queue_length",
            "Policies that wait for a reconciliation",
            metrics.queue_length.clone(),
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
        // A series that begins with its first error cannot be alerted on by its increase.
        for reason in ErrorReason::ALL {
            drop(
                metrics
                    .reconcile_errors
                    .get_or_create(&ErrorLabels { reason: *reason }),
            );
        }
        for outcome in Outcome::ALL {
            drop(
                metrics
                    .reconciles
                    .get_or_create(&OutcomeLabels { outcome: *outcome }),
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
    pub fn set_policy(&self, policy: &str, sample: PolicySample) {
        self.policies.lock().insert(policy.to_owned(), sample);
    }

    /// Says nothing more about a policy.
    pub fn remove_policy(&self, policy: &str) {
        self.policies.lock().remove(policy);
    }

    /// Counts a reconciliation that took `seconds`.
    pub fn reconciled(&self, outcome: Outcome, seconds: f64) {
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

    /// Counts a request whose head of an answer, or whose failure, came after `seconds`.
    pub fn requested(&self, _verb: &'static str, _code: Option<u16>, _seconds: f64) {}

    /// Counts a panic of `task`.
    pub fn panicked(&self, task: &'static str) {
        self.panics.get_or_create(&TaskLabels { task }).inc();
    }

    /// Counts a policy that was parsed and compiled.
    pub fn policy_compiled(&self) {
        self.compilations.inc();
    }

    /// Sets how many policies wait.
    pub fn set_queue_length(&self, length: usize) {
        self.queue_length
            .set(i64::try_from(length).unwrap_or(i64::MAX));
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
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.last_sync
            .get_or_create(&SourceLabels { source })
            .set(since_epoch.as_secs_f64());
    }

    /// Counts a failure to follow `source`.
    pub fn sync_failed(&self, source: Source, reason: ErrorReason) {
        self.sync_errors
            .get_or_create(&SourceErrorLabels { source, reason })
            .inc();
    }
}

/// What is said about one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySample {
    /// Each condition with its status.
    pub conditions: Vec<(&'static str, &'static str)>,
    /// How many expressions have warnings.
    pub n_warnings: usize,
    /// The probes.
    pub probes: Vec<ProbeSample>,
}

/// What is said about one probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSample {
    /// The name of the probe.
    pub probe: String,
    /// Each outcome with the number of cases that had it.
    pub outcomes: [(&'static str, usize); 3],
}

/// The statuses that a condition can have; each is a series of its own.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The samples of all policies, written out at each scrape, so that nothing is kept twice and
/// nothing outlives its policy.
#[derive(Debug, Default)]
struct PolicySamples(Mutex<BTreeMap<String, PolicySample>>);

impl PolicySamples {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, PolicySample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for PolicySamples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let samples = self.lock();
        let mut family = encoder.encode_descriptor(
            "policy_condition",
            "The conditions of each policy: 1 for the status that a condition has, 0 for the others",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in samples.iter() {
            for (condition, current) in &sample.conditions {
                for status in STATUSES {
                    let labels = [
                        ("policy", policy.as_str()),
                        ("condition", condition),
                        ("status", status),
                    ];
                    ConstGauge::new(i64::from(*current == status))
                        .encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let mut family = encoder.encode_descriptor(
            "policy_expression_warnings",
            "Expressions of each policy that have type warnings",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in samples.iter() {
            let labels = [("policy", policy.as_str())];
            let n_warnings = i64::try_from(sample.n_warnings).unwrap_or(i64::MAX);
            ConstGauge::new(n_warnings).encode(family.encode_family(&labels)?)?;
        }
        let mut family = encoder.encode_descriptor(
            "probe_cases",
            "Cases of each probe by their outcome",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in samples.iter() {
            for probe in &sample.probes {
                for (outcome, n) in probe.outcomes {
                    let labels = [
                        ("policy", policy.as_str()),
                        ("probe", probe.probe.as_str()),
                        ("outcome", outcome),
                    ];
                    let n = i64::try_from(n).unwrap_or(i64::MAX);
                    ConstGauge::new(n).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let encoder = encoder.encode_descriptor(
            "policies",
            "Policies whose status is known",
            None,
            MetricType::Gauge,
        )?;
        let n_policies = i64::try_from(samples.len()).unwrap_or(i64::MAX);
        ConstGauge::new(n_policies).encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(metrics: &Metrics, prefix: &str) -> Vec<String> {
        let text = metrics.encode().unwrap();
        text.lines()
            .filter(|line| line.starts_with(prefix))
            .map(str::to_owned)
            .collect()
    }

    fn sample() -> PolicySample {
        PolicySample {
            conditions: vec![("Ready", "False")],
            n_warnings: 2,
            probes: vec![ProbeSample {
                probe: "p".to_owned(),
                outcomes: [("Passed", 1), ("Failed", 2), ("Pending", 0)],
            }],
        }
    }

    #[test]
    fn a_policy_has_its_series_while_it_exists() {
        let metrics = Metrics::new();
        metrics.set_policy("a", sample());
        metrics.set_policy("b\"\\\n", sample());
        assert_eq!(
            lines(&metrics, "vap_policy_condition{policy=\"a\""),
            [
                "vap_policy_condition{policy=\"a\",condition=\"Ready\",status=\"True\"} 0",
                "vap_policy_condition{policy=\"a\",condition=\"Ready\",status=\"False\"} 1",
                "vap_policy_condition{policy=\"a\",condition=\"Ready\",status=\"Unknown\"} 0",
            ]
        );
        assert_eq!(
            lines(&metrics, "vap_policy_expression_warnings{"),
            [
                "vap_policy_expression_warnings{policy=\"a\"} 2",
                "vap_policy_expression_warnings{policy=\"b\\\"\\\\\\n\"} 2",
            ]
        );
        assert_eq!(
            lines(&metrics, "vap_probe_cases{policy=\"a\""),
            [
                "vap_probe_cases{policy=\"a\",probe=\"p\",outcome=\"Passed\"} 1",
                "vap_probe_cases{policy=\"a\",probe=\"p\",outcome=\"Failed\"} 2",
                "vap_probe_cases{policy=\"a\",probe=\"p\",outcome=\"Pending\"} 0",
            ]
        );
        metrics.remove_policy("a");
        assert_eq!(
            lines(&metrics, "vap_policy_condition{policy=\"a\""),
            Vec::<String>::new()
        );
        assert_eq!(lines(&metrics, "vap_policies "), ["vap_policies 1"]);
    }

    #[test]
    fn counters_count() {
        let metrics = Metrics::new();
        metrics.reconciled(Outcome::Applied, 0.001);
        metrics.reconcile_failed(ErrorReason::Timeout);
        metrics.status_written();
        metrics.check_panicked();
        metrics.schema_lookup(Lookup::Fetched);
        metrics.sync_failed(Source::Crds, ErrorReason::Forbidden);
        metrics.synced(Source::Discovery);
        for line in [
            "vap_reconciles_total{outcome=\"applied\"} 1",
            "vap_reconciles_total{outcome=\"failed\"} 0",
            "vap_reconcile_errors_total{reason=\"timeout\"} 1",
            "vap_status_writes_total 1",
            "vap_check_panics_total 1",
            "vap_schema_cache_lookups_total{result=\"fetched\"} 1",
            "vap_sync_errors_total{source=\"crds\",reason=\"forbidden\"} 1",
            "vap_reconcile_duration_seconds_count 1",
        ] {
            assert_eq!(lines(&metrics, line), [line]);
        }
        assert_eq!(
            lines(
                &metrics,
                "vap_last_sync_timestamp_seconds{source=\"discovery\"}"
            )
            .len(),
            1
        );
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            lines(&metrics, "vap_build_info"),
            [format!("vap_build_info{{version=\"{version}\"}} 1")]
        );
    }

    #[test]
    fn the_text_is_openmetrics() {
        let text = Metrics::new().encode().unwrap();
        assert!(text.ends_with("# EOF\n"));
        for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
            assert!(line.starts_with("# TYPE vap_"), "{line}");
        }
    }
}
