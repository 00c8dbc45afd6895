//! Whether the controller knows the cluster: what `/readyz` lists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::telemetry::metrics::Source;

/// What must be in step with the cluster before a verdict is given. Probes are not there in every
/// cluster.
const NEEDED: [Source; 6] = [
    Source::Policies,
    Source::Bindings,
    Source::Crds,
    Source::ApiServices,
    Source::Discovery,
    Source::OpenApi,
];

/// Which sources of facts are in step. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    states: Arc<Mutex<BTreeMap<Source, State>>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    is_synced: bool,
    /// What only a person can mend: a permission that is missing.
    refusal: Option<String>,
    /// Why it did not work the last time.
    failure: Option<String>,
}

impl Readiness {
    /// Each source with what is the matter with it, if anything is.
    ///
    /// A source that was in step once and cannot be reached at the moment is no reason not to be
    /// ready: what it said last still stands. One that refuses us is.
    #[must_use]
    pub fn checks(&self) -> Vec<(&'static str, Option<String>)> {
        let states = self.lock();
        NEEDED
            .into_iter()
            .map(|source| {
                let State {
                    is_synced,
                    refusal,
                    failure,
                } = states.get(&source).cloned().unwrap_or_default();
                let problem = refusal.or_else(|| {
                    let text = failure.unwrap_or_else(|| "not read yet".to_owned());
                    (!is_synced).then_some(text)
                });
                (source.as_str(), problem)
            })
            .collect()
    }

    /// Notes that `source` is in step.
    pub(crate) fn synced(&self, source: Source) {
        self.lock().insert(
            source,
            State {
                is_synced: true,
                ..State::default()
            },
        );
    }

    /// Whether `source` was read and nothing has gone wrong with it since.
    pub(crate) fn is_in_step(&self, source: Source) -> bool {
        self.lock().get(&source).is_some_and(|state| {
            state.is_synced && state.refusal.is_none() && state.failure.is_none()
        })
    }

    /// What permission `source` lacks, if it does.
    pub(crate) fn refusal(&self, source: Source) -> Option<String> {
        self.lock().get(&source)?.refusal.clone()
    }

    /// Notes that `source` cannot be read, for lack of a permission.
    pub(crate) fn refused(&self, source: Source, text: String) {
        self.lock().entry(source).or_default().refusal = Some(text);
    }

    /// Notes that `source` could not be read.
    pub(crate) fn failed(&self, source: Source, text: String) {
        let mut states = self.lock();
        let state = states.entry(source).or_default();
        state.refusal = None;
        state.failure = Some(text);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Source, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(readiness: &Readiness) -> Option<String> {
        let checks = readiness.checks();
        checks
            .into_iter()
            .find(|(name, _)| *name == "crds")
            .and_then(|(_, problem)| problem)
    }

    #[test]
    fn a_pause_does_not_matter_and_a_refusal_does() {
        let readiness = Readiness::default();
        assert_eq!(problem(&readiness).as_deref(), Some("not read yet"));
        readiness.failed(Source::Crds, "connection refused".into());
        assert_eq!(problem(&readiness).as_deref(), Some("connection refused"));
        assert!(!readiness.is_in_step(Source::Crds));
        readiness.synced(Source::Crds);
        assert!(readiness.is_in_step(Source::Crds));
        assert_eq!(problem(&readiness), None);
        readiness.failed(Source::Crds, "connection refused".into());
        assert_eq!(problem(&readiness), None);
        assert!(!readiness.is_in_step(Source::Crds));
        readiness.refused(Source::Crds, "grant list".into());
        assert_eq!(problem(&readiness).as_deref(), Some("grant list"));
        readiness.synced(Source::Crds);
        assert_eq!(problem(&readiness), None);
    }

    #[test]
    fn every_source_is_listed() {
        let readiness = Readiness::default();
        for source in NEEDED {
            readiness.synced(source);
        }
        let names: Vec<&str> = readiness
            .checks()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            names,
            [
                "policies",
                "bindings",
                "crds",
                "apiservices",
                "discovery",
                "openapi"
            ]
        );
        assert!(
            readiness
                .checks()
                .into_iter()
                .all(|(_, problem)| problem.is_none())
        );
        assert_eq!(NEEDED.len() + 1, Source::ALL.len());
    }
}
