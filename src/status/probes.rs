//! Computes the condition `ProbesPassed` of a policy and the status of a probe.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;

use super::condition::{self, ConditionStatus, ConditionType, Reason};
use super::message;
use super::verdict::{Evidence, Verdict};
use crate::probe::api::{CaseOutcome, CaseStatus, PolicyProbeStatus, Target};

/// The maximum length of a message in the status of a case, in bytes. It is short because a probe may have 256 cases.
const MAX_CASE_TEXT: usize = 512;

/// The state of a policy's probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbesState {
    /// The probes have not been read yet.
    Unread,
    /// The controller is not allowed to read probes. Contains a description of the missing permission.
    NotPermitted(String),
    /// The results of all probes of the policy, sorted by name.
    Known(Vec<ProbeFacts>),
}

impl ProbesState {
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::Known(probes) if probes.is_empty())
    }
}

/// The results of the cases of one probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeFacts {
    /// The name of the probe.
    pub name: String,
    /// The number of cases.
    pub n_cases: usize,
    /// The name of each failed case, and the difference from the expected decision.
    pub failed: Vec<(String, String)>,
    /// The name of each pending case, and the reason.
    pub pending: Vec<(String, String)>,
    /// The reason why the probe cannot be parsed, if any. The results of its cases are then unknown.
    pub problem: Option<String>,
    /// True if cases are pending because an input is temporarily unavailable.
    pub is_transient: bool,
}

pub(super) fn verdict(state: &ProbesState) -> Verdict {
    match state {
        ProbesState::Unread => Verdict::new(
            ConditionStatus::Unknown,
            Reason::ProbesPending,
            "the probes have not been read yet",
        )
        .with_evidence(Evidence::Pending),
        ProbesState::NotPermitted(text) => {
            Verdict::new(ConditionStatus::Unknown, Reason::NotPermitted, text.clone())
        }
        ProbesState::Known(probes) => results_verdict(probes),
    }
}

fn results_verdict(probes: &[ProbeFacts]) -> Verdict {
    if probes.is_empty() {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::NoProbes,
            "no PolicyProbe refers to the policy",
        );
    }
    let n_cases: usize = probes.iter().map(|probe| probe.n_cases).sum();
    let all = |select: fn(&ProbeFacts) -> &[(String, String)]| -> Vec<(&str, &str, &str)> {
        let cases = |probe| {
            let each = select(probe).iter();
            each.map(|(case, why)| (probe.name.as_str(), case.as_str(), why.as_str()))
        };
        probes.iter().flat_map(cases).collect()
    };
    let describe = |cases: &[(&str, &str, &str)]| {
        let (rest, first) = match cases {
            [(probe, case, why), rest @ ..] => (rest, format!("{probe}, {case:?}: {why}")),
            [] => return String::new(),
        };
        match rest.len() {
            0 => first,
            n => format!("{first} (and {n} more)"),
        }
    };
    let failed = all(|probe| &probe.failed);
    if !failed.is_empty() {
        return Verdict::new(
            ConditionStatus::False,
            Reason::ProbesFailed,
            format!(
                "{} of {} failed: {}",
                failed.len(),
                message::count(n_cases, "case"),
                describe(&failed)
            ),
        );
    }
    if let Some((probe, problem)) = probes
        .iter()
        .find_map(|probe| Some((probe.name.as_str(), probe.problem.as_deref()?)))
    {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::ProbesPending,
            format!("{probe}: {problem}"),
        )
        .with_evidence(Evidence::Unavailable);
    }
    let pending = all(|probe| &probe.pending);
    if !pending.is_empty() {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::ProbesPending,
            format!(
                "{} of {} could not be evaluated: {}",
                pending.len(),
                message::count(n_cases, "case"),
                describe(&pending)
            ),
        )
        .with_evidence(if probes.iter().any(|probe| probe.is_transient) {
            Evidence::Pending
        } else {
            Evidence::Unavailable
        });
    }
    Verdict::new(
        ConditionStatus::True,
        Reason::ProbesPassed,
        format!(
            "{} of {} passed",
            message::count(n_cases, "case"),
            message::count(probes.len(), "probe")
        ),
    )
}

impl ProbeFacts {
    /// Creates the facts of a probe from the results of its cases.
    #[must_use]
    pub fn new(name: &str, cases: &[CaseStatus]) -> Self {
        let with_outcome = |outcome: CaseOutcome| {
            let cases = cases.iter().filter(|case| case.outcome == outcome);
            cases
                .map(|case| {
                    (
                        case.name.clone(),
                        case.difference.clone().unwrap_or_default(),
                    )
                })
                .collect()
        };
        Self {
            name: name.to_owned(),
            n_cases: cases.len(),
            failed: with_outcome(CaseOutcome::Failed),
            pending: with_outcome(CaseOutcome::Pending),
            problem: None,
            is_transient: false,
        }
    }
}

/// The properties of a probe that determine its status.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSubject<'a> {
    /// The name of the probe.
    pub name: &'a str,
    /// The generation of the probe.
    pub generation: i64,
    /// The name of the policy.
    pub policy_name: &'a str,
    /// The target, if the probe does not test a ValidatingAdmissionPolicy.
    pub target: Option<&'a Target>,
    /// The number of cases.
    pub n_cases: usize,
    /// The current conditions of the probe.
    pub conditions: &'a [Condition],
}

/// Computes the status of a probe. `problem` is the reason why the probe cannot be parsed, if any. `policy_generation`
/// is `None` if the policy does not exist.
#[must_use]
pub fn probe_status(
    probe: &ProbeSubject<'_>,
    cases: &[CaseStatus],
    problem: Option<&str>,
    policy_generation: Option<i64>,
    now: Timestamp,
) -> PolicyProbeStatus {
    let generation = probe.generation;
    let n_passed = cases
        .iter()
        .filter(|case| case.outcome == CaseOutcome::Passed)
        .count();
    let (status, reason, message) = if policy_generation.is_none() && problem.is_none() {
        (
            ConditionStatus::False,
            Reason::PolicyNotFound,
            match probe.target {
                Some(target) => format!("{target} does not exist"),
                None => format!(
                    "ValidatingAdmissionPolicy {} does not exist",
                    probe.policy_name
                ),
            },
        )
    } else {
        let facts = ProbeFacts {
            problem: problem.map(str::to_owned),
            ..ProbeFacts::new(probe.name, cases)
        };
        let verdict = verdict(&ProbesState::Known(vec![facts]));
        (verdict.status, verdict.reason, verdict.message)
    };
    let ready = condition::condition(
        ConditionType::Ready,
        status,
        reason,
        &message,
        generation,
        now,
    );
    let merged = condition::merge(probe.conditions, vec![ready]);
    let cut = |text: &Option<String>| {
        text.as_deref()
            .map(|text| message::cut(text, MAX_CASE_TEXT))
    };
    PolicyProbeStatus {
        observed_generation: Some(generation),
        policy_generation,
        summary: Some(format!("{n_passed}/{}", probe.n_cases)),
        conditions: condition::find(&merged, ConditionType::Ready)
            .cloned()
            .into_iter()
            .collect(),
        cases: cases
            .iter()
            .map(|case| CaseStatus {
                message: cut(&case.message),
                difference: cut(&case.difference),
                ..case.clone()
            })
            .collect(),
    }
}
