//! Metrics of policies and probes. They are encoded from stored samples at each scrape, so no series outlives its
//! policy.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::policy::subject::SubjectId;

/// The exported values of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicySample {
    /// The current status and reason of each condition.
    pub conditions: Vec<ConditionSample>,
    /// The failurePolicy: `Fail` or `Ignore`.
    pub failure_policy: &'static str,
    /// The actions of the bindings, formatted by [`actions`].
    pub actions: String,
    /// The number of expressions with warnings.
    pub n_warnings: usize,
    /// The results of the policy's probes.
    pub probes: Vec<ProbeSample>,
}

/// The state of one condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConditionSample {
    /// The condition type, such as `Ready`.
    pub type_: &'static str,
    /// The status: `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The reason, such as `ProbesFailed`.
    pub reason: &'static str,
}

/// The results of one probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProbeSample {
    /// The name of the probe.
    pub probe: String,
    /// The number of cases by outcome.
    pub outcomes: [(&'static str, usize); 3],
}

/// The samples of all policies, and the probes of missing policies.
///
/// A scrape clones the [`Arc`] of the map and releases the lock before encoding. If a sample changes meanwhile, the map
/// of pointers is copied, but not the samples.
#[derive(Debug, Default)]
pub(super) struct PolicySamples(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    samples: Arc<Samples>,
    /// All samples. Policies with equal samples share one entry.
    distinct: HashSet<Arc<PolicySample>>,
    /// Unused samples are removed when `distinct` reaches this number.
    clean_at: usize,
}

const MIN_CLEAN_AT: usize = 256;

impl State {
    fn shared(&mut self, sample: PolicySample) -> Arc<PolicySample> {
        if let Some(known) = self.distinct.get(&sample) {
            return Arc::clone(known);
        }
        if self.distinct.len() >= self.clean_at.max(MIN_CLEAN_AT) {
            self.distinct.retain(|sample| Arc::strong_count(sample) > 1);
            self.clean_at = 2 * self.distinct.len();
        }
        let sample = Arc::new(sample);
        self.distinct.insert(Arc::clone(&sample));
        sample
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    policies: BTreeMap<SubjectId, Arc<PolicySample>>,
    /// For each missing policy, the names of probes that refer to the policy.
    missing: BTreeMap<SubjectId, Arc<[String]>>,
}

impl PolicySamples {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn n_distinct(&self) -> usize {
        self.lock().distinct.len()
    }

    pub(super) fn snapshot(&self) -> Arc<Samples> {
        Arc::clone(&self.lock().samples)
    }

    pub(super) fn set(&self, policy: &SubjectId, sample: PolicySample) {
        let mut state = self.lock();
        let current = state.samples.policies.get(policy);
        let is_known = current.map(|current| **current == sample);
        if is_known == Some(true) && !state.samples.missing.contains_key(policy) {
            return;
        }
        let sample = state.shared(sample);
        let samples = Arc::make_mut(&mut state.samples);
        samples.missing.remove(policy);
        match samples.policies.get_mut(policy) {
            Some(current) => *current = sample,
            None => drop(samples.policies.insert(policy.clone(), sample)),
        }
    }

    /// Removes the sample of a missing policy. Stores `probes`, the names of the probes that refer to the policy.
    pub(super) fn remove(&self, policy: &SubjectId, probes: Vec<String>) {
        let mut state = self.lock();
        let samples = Arc::make_mut(&mut state.samples);
        samples.policies.remove(policy);
        if probes.is_empty() {
            samples.missing.remove(policy);
        } else {
            samples.missing.insert(policy.clone(), probes.into());
        }
    }
}

/// Returns the label `kind`, which all series about a policy have.
fn kind_label(policy: &SubjectId) -> [(&'static str, &'static str); 1] {
    [("kind", policy.kind.as_str())]
}

impl Samples {
    pub(super) fn n_policies(&self) -> usize {
        self.policies.len()
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_conditions(encoder)?;
        self.encode_infos(encoder)?;
        self.encode_probes(encoder)
    }

    fn encode_conditions(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(
            "policy_condition",
            "Current status of each condition of each policy",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in &self.policies {
            for condition in &sample.conditions {
                let labels = [
                    ("policy", &*policy.name),
                    ("condition", condition.type_),
                    ("status", condition.status),
                ];
                ConstGauge::new(1).encode(family.encode_family(&(kind_label(policy), labels))?)?;
            }
        }
        let mut family = encoder.encode_descriptor(
            "policy_condition_reason",
            "Current status and reason of each condition of each policy",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in &self.policies {
            for condition in &sample.conditions {
                let labels = [
                    ("policy", &*policy.name),
                    ("condition", condition.type_),
                    ("status", condition.status),
                    ("reason", condition.reason),
                ];
                ConstGauge::new(1).encode(family.encode_family(&(kind_label(policy), labels))?)?;
            }
        }
        Ok(())
    }

    fn encode_infos(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(
            "policy_info",
            "The failurePolicy of each policy and the validationActions of all its bindings",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in &self.policies {
            let labels = [
                ("policy", &*policy.name),
                ("failure_policy", sample.failure_policy),
                ("actions", sample.actions.as_str()),
            ];
            ConstGauge::new(1).encode(family.encode_family(&(kind_label(policy), labels))?)?;
        }
        let mut family = encoder.encode_descriptor(
            "policy_expression_warnings",
            "Expressions with type warnings, by policy",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in &self.policies {
            let labels = [("policy", &*policy.name)];
            let n_warnings = i64::try_from(sample.n_warnings).unwrap_or(i64::MAX);
            ConstGauge::new(n_warnings)
                .encode(family.encode_family(&(kind_label(policy), labels))?)?;
        }
        Ok(())
    }

    fn encode_probes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(
            "probe_cases",
            "Cases of each probe by outcome",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in &self.policies {
            for probe in &sample.probes {
                for (outcome, n) in probe.outcomes {
                    let labels = [
                        ("policy", &*policy.name),
                        ("probe", probe.probe.as_str()),
                        ("outcome", outcome),
                    ];
                    let n = i64::try_from(n).unwrap_or(i64::MAX);
                    ConstGauge::new(n)
                        .encode(family.encode_family(&(kind_label(policy), labels))?)?;
                }
            }
        }
        let mut family = encoder.encode_descriptor(
            "probe_policy_missing",
            "Probes whose policy does not exist",
            None,
            MetricType::Gauge,
        )?;
        for (policy, probes) in &self.missing {
            for probe in probes.iter() {
                let labels = [("probe", probe.as_str()), ("policy", &*policy.name)];
                ConstGauge::new(1).encode(family.encode_family(&(kind_label(policy), labels))?)?;
            }
        }
        Ok(())
    }
}

/// Returns the value of the label `actions`: the distinct validationActions of all bindings, sorted and
/// comma-separated. Without bindings, the value is empty.
#[must_use]
pub fn actions<'a>(validation_actions: impl IntoIterator<Item = &'a str>) -> String {
    let distinct: std::collections::BTreeSet<&str> = validation_actions.into_iter().collect();
    distinct.into_iter().collect::<Vec<_>>().join(",")
}

/// The value of the label `actions` if the bindings are not known.
pub const ACTIONS_UNKNOWN: &str = "unknown";
