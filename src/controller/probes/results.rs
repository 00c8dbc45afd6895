//! Stores the results of a policy's probes in compact form.

use std::sync::Arc;

use crate::controller::process::memory;
use crate::controller::subjects::generation::Generation;
use crate::controller::subjects::packed::Packed;
use crate::controller::subjects::probe::Probe;
use crate::probe::api::CaseStatus;
use crate::probe::run;
use crate::status::message;
use crate::status::probes::{ProbeFacts, ProbesState};
use crate::telemetry::metrics::ProbeSample;

#[derive(Clone, Debug, Default)]
pub(crate) struct Probed {
    pub(crate) probes: Arc<[ProbeResult]>,
    /// True if an input is temporarily unavailable, so a retry may succeed.
    pub(crate) is_transient: bool,
}

/// The results of one probe's cases, stored as JSON.
#[derive(Debug)]
pub(crate) struct ProbeResult {
    pub(crate) name: Box<str>,
    pub(crate) generation: Generation,
    pub(crate) problem: Option<String>,
    pub(crate) cases: Packed<Vec<CaseStatus>>,
}

impl ProbeResult {
    pub(crate) fn new(probe: &Probe, cases: &Vec<CaseStatus>) -> Self {
        Self {
            name: name_of(probe).into(),
            generation: Generation::from_probe(probe),
            problem: probe.problem.clone(),
            cases: Packed::new(cases),
        }
    }

    pub(crate) fn cases(&self) -> Vec<CaseStatus> {
        self.cases.unpack()
    }
}

/// Truncates the strings of a case.
fn shorten(case: &mut CaseStatus) {
    let texts = [&mut case.message, &mut case.difference];
    for text in texts.into_iter().flatten() {
        *text = message::cut(text, memory::MAX_SHORT_TEXT);
    }
}

impl Probed {
    pub(crate) fn new(
        probes: &[Arc<Probe>],
        cases: &[Vec<CaseStatus>],
        is_transient: bool,
    ) -> Self {
        let results = probes.iter().zip(cases);
        Self {
            probes: results
                .map(|(probe, cases)| ProbeResult::new(probe, cases))
                .collect(),
            is_transient,
        }
    }

    /// Returns results in which all cases are pending. The reason is the problem of their probe, or else `why`.
    pub(crate) fn pending(probes: &[Arc<Probe>], why: &str, is_transient: bool) -> Self {
        let cases = |probe: &Arc<Probe>| {
            let why = probe.problem.as_deref().unwrap_or(why);
            let names = probe.spec.case_names().into_iter();
            names.map(|name| run::pending_status(name, why)).collect()
        };
        let cases: Vec<Vec<CaseStatus>> = probes.iter().map(cases).collect();
        Self::new(probes, &cases, is_transient)
    }

    /// Returns the size of the stored results, in bytes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.probes
            .iter()
            .map(|result| result.cases.json().len())
            .sum()
    }

    /// Returns a copy with truncated strings.
    pub(crate) fn shortened(&self) -> Self {
        let shortened = |result: &ProbeResult| {
            let mut cases = result.cases();
            cases.iter_mut().for_each(shorten);
            ProbeResult {
                name: result.name.clone(),
                generation: result.generation.clone(),
                problem: result.problem.clone(),
                cases: Packed::new(&cases),
            }
        };
        Self {
            probes: self.probes.iter().map(shortened).collect(),
            is_transient: self.is_transient,
        }
    }

    /// Returns the state of the probes, as the status of the policy reports it.
    pub(crate) fn state(&self) -> ProbesState {
        let facts = |result: &ProbeResult| ProbeFacts {
            problem: result.problem.clone(),
            is_transient: self.is_transient,
            ..ProbeFacts::new(&result.name, &result.cases())
        };
        ProbesState::Known(self.probes.iter().map(facts).collect())
    }

    /// Returns the number of cases of each probe by outcome, for metrics.
    pub(crate) fn samples(&self) -> Vec<ProbeSample> {
        let sample = |result: &ProbeResult| {
            let cases = result.cases();
            ProbeSample {
                probe: result.name.to_string(),
                outcomes: crate::probe::api::CaseOutcome::ALL.map(|outcome| {
                    let n = cases.iter().filter(|case| case.outcome == outcome).count();
                    (outcome.as_str(), n)
                }),
            }
        };
        self.probes.iter().map(sample).collect()
    }
}

pub(crate) fn name_of(probe: &Probe) -> &str {
    probe.metadata.name.as_deref().unwrap_or_default()
}
