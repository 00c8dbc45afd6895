//! `ProbesPassed`: whether the policy decides sample requests as it must.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;

use super::condition::{self, ConditionStatus, ConditionType, Reason};
use super::message;
use super::verdict::{Evidence, Verdict};
use crate::probe::api::{CaseOutcome, CaseStatus, PolicyProbeStatus, Target};

/// The greatest length of a text in the status of a case, in bytes: there may be 256 cases.
const MAX_CASE_TEXT: usize = 512;

/// State of a policy's probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbesState {
    /// They were not read yet.
    Unread,
    /// We may not read them; the text says what is missing.
    NotPermitted(String),
    /// These are all, by name.
    Known(Vec<ProbeFacts>),
}

impl ProbesState {
    /// Reports whether there are none.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::Known(probes) if probes.is_empty())
    }
}

/// Results of the cases of one probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeFacts {
    /// The name of the probe.
    pub name: String,
    /// How many cases there are.
    pub n_cases: usize,
    /// The cases that failed, with how they differ from what was expected.
    pub failed: Vec<(String, String)>,
    /// The cases that could not be evaluated, with the reason.
    pub pending: Vec<(String, String)>,
    /// Why the probe itself cannot be read, so that nothing is known of its cases.
    pub problem: Option<String>,
    /// True if waiting alone may let the pending cases be evaluated: something is unavailable now.
    pub is_transient: bool,
}

/// The condition `ProbesPassed`.
pub(super) fn verdict(state: &ProbesState) -> Verdict {
    match state {
        ProbesState::Unread => Verdict::new(
            ConditionStatus::Unknown,
            Reason::ProbesPending,
            "the probes were not read yet",
        )
        .with_evidence(Evidence::Awaited),
        ProbesState::NotPermitted(text) => {
            Verdict::new(ConditionStatus::Unknown, Reason::NotPermitted, text.clone())
        }
        ProbesState::Known(probes) => of_known(probes),
    }
}

/// The condition where the probes are known.
fn of_known(probes: &[ProbeFacts]) -> Verdict {
    if probes.is_empty() {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::NoProbes,
            "no PolicyProbe refers to the policy",
        );
    }
    let n_cases: usize = probes.iter().map(|probe| probe.n_cases).sum();
    let all = |of: fn(&ProbeFacts) -> &[(String, String)]| -> Vec<(&str, &str, &str)> {
        let cases = |probe| {
            let each = of(probe).iter();
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
        .with_evidence(Evidence::Lost);
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
            Evidence::Awaited
        } else {
            Evidence::Lost
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
    /// The facts of a probe whose cases came to `cases`.
    #[must_use]
    pub fn new(name: &str, cases: &[CaseStatus]) -> Self {
        let of = |outcome: CaseOutcome| {
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
            failed: of(CaseOutcome::Failed),
            pending: of(CaseOutcome::Pending),
            problem: None,
            is_transient: false,
        }
    }
}

/// The parts of a probe that its status depends on.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSubject<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its generation.
    pub generation: i64,
    /// The name of its policy.
    pub policy_name: &'a str,
    /// The object that it is about, if it is no ValidatingAdmissionPolicy.
    pub target: Option<&'a Target>,
    /// The number of its cases.
    pub n_cases: usize,
    /// The conditions that it has.
    pub conditions: &'a [Condition],
}

/// The status of a probe whose cases came to `cases` at `now`, or that cannot be read because of `problem`;
/// `policy_generation` is that of its policy, `None` where there is none.
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
                Some(target) => format!("there is no {target}"),
                None => format!(
                    "there is no ValidatingAdmissionPolicy {}",
                    probe.policy_name
                ),
            },
        )
    } else {
        let facts = ProbeFacts {
            problem: problem.map(str::to_owned),
            ..ProbeFacts::new(probe.name, cases)
        };
        let found = verdict(&ProbesState::Known(vec![facts]));
        (found.status, found.reason, found.message)
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
