//! Readiness: whether the controller knows the cluster, as `/readyz` lists it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::telemetry::metrics::Source;

/// Sources that must be in sync with the cluster before a verdict is given. Probes, and kinds that are followed
/// besides, are not there in every cluster.
const NEEDED: [Source; 6] = [
    Source::Policies,
    Source::Bindings,
    Source::Crds,
    Source::ApiServices,
    Source::Discovery,
    Source::OpenApi,
];

/// How long an API server must have refused us a source that it gave us before, until we take the right
/// for revoked: one that starts refuses everybody until it has read the roles.
const REVOKED_AFTER: Duration = Duration::from_secs(20);

/// The same for a source that it never gave us: we may have been started together.
const MISSING_AFTER: Duration = Duration::from_secs(5);

/// How long a source must have been refused until the right is certain to be missing.
pub(crate) const fn certain_after(was_read: bool) -> Duration {
    if was_read {
        REVOKED_AFTER
    } else {
        MISSING_AFTER
    }
}

/// How long a source that was never read must have failed until what can be said without it is said.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(5);

/// Which sources of facts are in step. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    states: Arc<Mutex<BTreeMap<Source, State>>>,
    /// How many times a source was found to work again.
    recoveries: watch::Sender<u64>,
}

#[derive(Clone, Debug, Default)]
struct State {
    is_synced: bool,
    /// Problem that only a person can fix: a missing permission.
    refusal: Option<Refusal>,
    /// Why it did not work the last time.
    failure: Option<String>,
    /// Since when it has not worked.
    failing_since: Option<Instant>,
    /// True if the cluster does not serve it.
    is_not_served: bool,
}

#[derive(Clone, Debug)]
struct Refusal {
    text: String,
    since: Instant,
    /// True if it was logged that the refusal persists.
    is_told: bool,
}

/// The sources that are to be in step: the needed ones, and of the others those that are watched, since the cluster
/// serves them. What is served no longer is forgotten.
fn watched(states: &BTreeMap<Source, State>) -> impl Iterator<Item = Source> {
    let others = states.keys().filter(|source| !NEEDED.contains(source));
    NEEDED.into_iter().chain(others.copied())
}

impl State {
    /// Reports whether it was read and has not failed since.
    const fn is_in_sync(&self) -> bool {
        self.is_synced && self.refusal.is_none() && self.failure.is_none()
    }

    /// The permission that is missing, once that is certain.
    fn lacking(&self) -> Option<&Refusal> {
        let refusal = self.refusal.as_ref()?;
        let is_certain = refusal.since.elapsed() >= certain_after(self.is_synced);
        (refusal.is_told || is_certain).then_some(refusal)
    }
}

impl Readiness {
    /// Each source with what is the matter with it, if anything is.
    ///
    /// A source that was in step once and cannot be reached at the moment is no reason not to be
    /// ready: what it said last still stands. One that keeps refusing us is.
    #[must_use]
    pub fn checks(&self) -> Vec<(&'static str, Option<String>)> {
        let states = self.lock();
        watched(&states)
            .map(|source| {
                let state = states.get(&source).cloned().unwrap_or_default();
                let lacking = state.lacking().map(|refusal| refusal.text.clone());
                let problem = lacking.or_else(|| {
                    let text = state.failure.unwrap_or_else(|| "not read yet".to_owned());
                    (!state.is_synced).then_some(text)
                });
                (source.as_str(), problem)
            })
            .collect()
    }

    /// Notes that `source` is in step; whether it failed or was refused before.
    pub(crate) fn synced(&self, source: Source) -> bool {
        let state = State {
            is_synced: true,
            ..State::default()
        };
        let before = self.lock().insert(source, state);
        let is_back =
            before.is_some_and(|before| before.refusal.is_some() || before.failure.is_some());
        if is_back {
            self.recoveries.send_modify(|n| *n = n.wrapping_add(1));
        }
        is_back
    }

    /// Tells when a source works again that did not: others may, too.
    pub(crate) fn recoveries(&self) -> watch::Receiver<u64> {
        self.recoveries.subscribe()
    }

    /// Notes that the cluster does not serve `source`, which is then in step with nothing; whether that is news.
    pub(crate) fn not_served(&self, source: Source) -> bool {
        let state = State {
            is_synced: true,
            is_not_served: true,
            ..State::default()
        };
        let before = self.lock().insert(source, state);
        before.is_none_or(|before| !before.is_not_served)
    }

    /// Forgets a source that does not exist any more.
    pub(crate) fn forget(&self, source: Source) {
        self.lock().remove(&source);
    }

    /// Reports whether `source` was read and has not failed since.
    #[cfg(test)]
    pub(crate) fn is_in_sync(&self, source: Source) -> bool {
        self.lock().get(&source).is_some_and(State::is_in_sync)
    }

    /// Reports whether all sources that a verdict depends on are in sync with the cluster now.
    #[must_use]
    pub fn is_all_in_sync(&self) -> bool {
        let states = self.lock();
        watched(&states).all(|source| states.get(&source).is_some_and(State::is_in_sync))
    }

    /// Returns the permission that `source` lacks, if it is certain that it does.
    pub(crate) fn refusal(&self, source: Source) -> Option<String> {
        let states = self.lock();
        Some(states.get(&source)?.lacking()?.text.clone())
    }

    /// Notes that `source` cannot be read, for lack of a permission; whether that has just become certain.
    pub(crate) fn refused(&self, source: Source, text: String) -> bool {
        let mut states = self.lock();
        let state = states.entry(source).or_default();
        let (since, is_told) = match &state.refusal {
            Some(refusal) => (refusal.since, refusal.is_told),
            None => (Instant::now(), false),
        };
        if !state.is_synced {
            state.failure = Some(text.clone());
        }
        state.refusal = Some(Refusal {
            text,
            since,
            is_told,
        });
        let is_news = !is_told && state.lacking().is_some();
        if let Some(refusal) = state.refusal.as_mut() {
            refusal.is_told |= is_news;
        }
        is_news
    }

    /// Notes that `source` could not be read; whether it never was and has not worked for so long that
    /// nothing should wait for it. A permission that is certain to be missing still is.
    pub(crate) fn failed(&self, source: Source, text: String) -> bool {
        let mut states = self.lock();
        let state = states.entry(source).or_default();
        state.refusal.take_if(|refusal| !refusal.is_told);
        state.failure = Some(text);
        let since = *state.failing_since.get_or_insert_with(Instant::now);
        !state.is_synced && since.elapsed() >= GIVEN_UP_AFTER
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
    fn a_pause_does_not_matter() {
        let readiness = Readiness::default();
        assert_eq!(problem(&readiness).as_deref(), Some("not read yet"));
        readiness.failed(Source::Crds, "connection refused".into());
        assert_eq!(problem(&readiness).as_deref(), Some("connection refused"));
        assert!(!readiness.is_in_sync(Source::Crds));
        readiness.synced(Source::Crds);
        assert!(readiness.is_in_sync(Source::Crds));
        assert_eq!(problem(&readiness), None);
        readiness.failed(Source::Crds, "connection refused".into());
        assert_eq!(problem(&readiness), None);
        assert!(!readiness.is_in_sync(Source::Crds));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_from_the_start_counts_soon() {
        let readiness = Readiness::default();
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        assert_eq!(problem(&readiness).as_deref(), Some("grant list"));
        assert_eq!(readiness.refusal(Source::Crds), None);
        tokio::time::advance(MISSING_AFTER).await;
        assert!(readiness.refused(Source::Crds, "grant list".into()));
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        assert!(readiness.refusal(Source::Crds).is_some());
        assert!(readiness.synced(Source::Crds));
        assert!(!readiness.synced(Source::Crds));
        assert_eq!(problem(&readiness), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_starts_revokes_nothing() {
        let readiness = Readiness::default();
        readiness.synced(Source::Crds);
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        assert!(!readiness.is_in_sync(Source::Crds));
        tokio::time::advance(REVOKED_AFTER / 2).await;
        assert_eq!(problem(&readiness), None);
        // It goes away and comes back: the time begins anew.
        readiness.failed(Source::Crds, "connection refused".into());
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        tokio::time::advance(REVOKED_AFTER / 2).await;
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        assert_eq!(problem(&readiness), None);
        tokio::time::advance(REVOKED_AFTER / 2).await;
        assert!(readiness.refused(Source::Crds, "grant list".into()));
        assert_eq!(problem(&readiness).as_deref(), Some("grant list"));
        // A pause of the connection gives no right back.
        readiness.failed(Source::Crds, "connection refused".into());
        assert_eq!(problem(&readiness).as_deref(), Some("grant list"));
        readiness.synced(Source::Crds);
        assert_eq!(problem(&readiness), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_watched_besides_counts_for_as_long_as_it_is() {
        let readiness = Readiness::default();
        for source in NEEDED {
            readiness.synced(source);
        }
        assert!(readiness.is_all_in_sync());
        for source in [
            Source::Probes,
            Source::MutatingPolicies,
            Source::MutatingBindings,
            Source::ValidatingWebhooks,
            Source::PolicyStatuses,
        ] {
            let problem = || {
                let mut checks = readiness.checks().into_iter();
                let check = checks.find(|(name, _)| *name == source.as_str());
                check.map(|(_, problem)| problem)
            };
            assert_eq!(problem(), None);
            readiness.synced(source);
            assert_eq!(problem(), Some(None));
            assert!(readiness.is_all_in_sync());
            readiness.refused(source, "grant list".into());
            assert!(!readiness.is_all_in_sync());
            assert_eq!(problem(), Some(None));
            tokio::time::advance(REVOKED_AFTER).await;
            assert_eq!(problem(), Some(Some("grant list".into())));
            readiness.forget(source);
            assert_eq!(problem(), None);
            assert!(readiness.is_all_in_sync());
        }
    }

    #[test]
    fn what_works_again_is_told_to_the_others() {
        let readiness = Readiness::default();
        let recoveries = readiness.recoveries();
        readiness.synced(Source::Crds);
        assert!(!recoveries.has_changed().unwrap());
        readiness.failed(Source::Crds, "connection refused".into());
        readiness.synced(Source::Crds);
        assert!(recoveries.has_changed().unwrap());
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
        // Probes and params are not there in every cluster, nor is what is followed besides.
        assert_eq!(NEEDED.len() + 10, Source::ALL.len());
    }
}
