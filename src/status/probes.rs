//! `ProbesPassed`: whether the policy decides sample requests as it must.

use super::compute::{Lacks, Verdict};
use super::condition::{ConditionStatus, Reason};
use super::message;

/// What is known of a policy's probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbesState {
    /// They were not read yet.
    Unread,
    /// We may not read them; the text says what is missing.
    NotPermitted(String),
    /// These are all, by name.
    Known(Vec<ProbeFacts>),
}

/// What the cases of one probe came to.
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
}

/// The condition `ProbesPassed`.
pub(super) fn verdict(state: &ProbesState) -> Verdict {
    let verdict = |status, reason, message: String, lacks| Verdict {
        status,
        reason,
        message,
        lacks,
    };
    let probes = match state {
        ProbesState::Unread => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::ProbesPending,
                "the probes were not read yet".to_owned(),
                Lacks::Evidence,
            );
        }
        ProbesState::NotPermitted(text) => {
            return verdict(
                ConditionStatus::Unknown,
                Reason::NotPermitted,
                text.clone(),
                Lacks::Nothing,
            );
        }
        ProbesState::Known(probes) => probes,
    };
    if probes.is_empty() {
        return verdict(
            ConditionStatus::Unknown,
            Reason::NoProbes,
            "no PolicyProbe refers to the policy".to_owned(),
            Lacks::Nothing,
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
        return verdict(
            ConditionStatus::False,
            Reason::ProbesFailed,
            format!(
                "{} of {} failed: {}",
                failed.len(),
                message::count(n_cases, "case"),
                describe(&failed)
            ),
            Lacks::Nothing,
        );
    }
    let pending = all(|probe| &probe.pending);
    if !pending.is_empty() {
        return verdict(
            ConditionStatus::Unknown,
            Reason::ProbesPending,
            format!(
                "{} of {} could not be evaluated: {}",
                pending.len(),
                message::count(n_cases, "case"),
                describe(&pending)
            ),
            Lacks::Evidence,
        );
    }
    verdict(
        ConditionStatus::True,
        Reason::ProbesPassed,
        format!(
            "{} of {} passed",
            message::count(n_cases, "case"),
            message::count(probes.len(), "probe")
        ),
        Lacks::Nothing,
    )
}
