//! Metrics about each policy and probe: written at each scrape, so that nothing is kept twice and
//! nothing outlives its policy.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::policy::subject::{SubjectId, SubjectKind};

/// Sample of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicySample {
    /// Each condition.
    pub conditions: Vec<ConditionSample>,
    /// `Fail` or `Ignore`.
    pub failure_policy: &'static str,
    /// Actions of the bindings, [`actions`].
    pub actions: String,
    /// How many expressions have warnings.
    pub n_warnings: usize,
    /// The probes.
    pub probes: Vec<ProbeSample>,
}

/// Sample of one condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConditionSample {
    /// Its type.
    pub type_: &'static str,
    /// Its status.
    pub status: &'static str,
    /// Its reason.
    pub reason: &'static str,
}

/// Sample of one probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProbeSample {
    /// The name of the probe.
    pub probe: String,
    /// Each outcome with the number of cases that had it.
    pub outcomes: [(&'static str, usize); 3],
}

/// The statuses that a condition can have; each is a series of its own.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The samples of all policies and of what refers to policies that do not exist.
///
/// A scrape takes the [`Arc`] and leaves the lock. Whoever changes a sample while it is written out copies
/// the map, which holds no more than pointers, once.
#[derive(Debug, Default)]
pub(super) struct PolicySamples(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    samples: Arc<Samples>,
    /// Samples that are equal are one: of thousands of policies few different things are said.
    distinct: HashSet<Arc<PolicySample>>,
    /// At how many of them those are looked for that are said of no policy any more.
    clean_at: usize,
}

/// The least number of distinct samples at which it is looked for those of no policy.
const LEAST_DISTINCT: usize = 256;

impl State {
    fn shared(&mut self, sample: PolicySample) -> Arc<PolicySample> {
        if let Some(known) = self.distinct.get(&sample) {
            return Arc::clone(known);
        }
        if self.distinct.len() >= self.clean_at.max(LEAST_DISTINCT) {
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
    /// Probes by the policy that they name and that does not exist.
    missing: BTreeMap<SubjectId, Arc<[String]>>,
}

impl PolicySamples {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many different samples are held.
    #[cfg(test)]
    pub(super) fn n_distinct(&self) -> usize {
        self.lock().distinct.len()
    }

    /// All samples as they are now.
    pub(super) fn snapshot(&self) -> Arc<Samples> {
        Arc::clone(&self.lock().samples)
    }

    pub(super) fn set(&self, policy: &SubjectId, sample: PolicySample) {
        let mut state = self.lock();
        let known = state.samples.policies.get(policy);
        let is_known = known.map(|known| **known == sample);
        if is_known == Some(true) && !state.samples.missing.contains_key(policy) {
            return;
        }
        let sample = state.shared(sample);
        let samples = Arc::make_mut(&mut state.samples);
        samples.missing.remove(policy);
        match samples.policies.get_mut(policy) {
            Some(known) => *known = sample,
            None => drop(samples.policies.insert(policy.clone(), sample)),
        }
    }

    /// Says nothing more about a policy, but that these probes name it and it does not exist.
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

/// Returns the label for the kind, which series of a `ValidatingAdmissionPolicy` do not have.
fn kind_label(policy: &SubjectId) -> Vec<(&'static str, &'static str)> {
    match policy.kind {
        SubjectKind::ValidatingAdmissionPolicy => Vec::new(),
        kind => vec![("kind", kind.as_str())],
    }
}

impl Samples {
    pub(super) fn n_policies(&self) -> usize {
        self.policies.len()
    }

    /// Writes out every series that has a policy in its labels.
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_conditions(encoder)?;
        self.encode_infos(encoder)?;
        self.encode_probes(encoder)
    }

    fn encode_conditions(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(
            "policy_condition",
            "The conditions of each policy: 1 for the status that a condition has, 0 for the others",
            None,
            MetricType::Gauge,
        )?;
        for (policy, sample) in &self.policies {
            for condition in &sample.conditions {
                for status in STATUSES {
                    let labels = [
                        ("policy", &*policy.name),
                        ("condition", condition.type_),
                        ("status", status),
                    ];
                    ConstGauge::new(i64::from(condition.status == status))
                        .encode(family.encode_family(&(kind_label(policy), labels))?)?;
                }
            }
        }
        let mut family = encoder.encode_descriptor(
            "policy_condition_reason",
            "The reason of each condition of each policy, with the status that it has now",
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
            "The failurePolicy of each policy and the validationActions of all of its bindings together",
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
            "Expressions of each policy that have type warnings",
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
            "Cases of each probe by their outcome",
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
            "Probes that name a policy that does not exist",
            None,
            MetricType::Gauge,
        )?;
        for (policy, probes) in &self.missing {
            for probe in probes.iter() {
                let labels = [("probe", probe.as_str()), ("policy", &*policy.name)];
                ConstGauge::new(1).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Formats the actions of bindings as the label `actions`: their validationActions without repetition,
/// in alphabetical order, joined by commas. Empty where nothing is bound.
#[must_use]
pub fn actions<'a>(validation_actions: impl IntoIterator<Item = &'a str>) -> String {
    let distinct: std::collections::BTreeSet<&str> = validation_actions.into_iter().collect();
    distinct.into_iter().collect::<Vec<_>>().join(",")
}

/// The label `actions` where the bindings are not known.
pub const ACTIONS_UNKNOWN: &str = "unknown";
