//! Tracks which sources of cluster state (watches and polls) are in sync, for `/readyz`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::telemetry::metrics::Source;

/// Sources that must be in sync before a status is computed. Probes and opt-in kinds are omitted, since not every
/// cluster serves them.
const NEEDED: [Source; 6] = [
    Source::Policies,
    Source::Bindings,
    Source::Crds,
    Source::ApiServices,
    Source::Discovery,
    Source::OpenApi,
];

/// How long the API server must reject reads before the permission for a previously readable source counts as revoked.
/// A starting API server rejects all requests until it has loaded the roles.
const REVOKED_AFTER: Duration = Duration::from_secs(20);

/// How long the API server must reject the first reads of a source before the permission counts as missing. The
/// permission may be granted while the controller starts.
const MISSING_AFTER: Duration = Duration::from_secs(5);

/// Returns how long reads of a source must be rejected before the permission counts as missing or revoked.
pub(crate) const fn certain_after(was_read: bool) -> Duration {
    if was_read {
        REVOKED_AFTER
    } else {
        MISSING_AFTER
    }
}

/// How long the first reads of a source must fail before statuses are computed without the source.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(5);

/// The sync state of all sources. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    states: Arc<Mutex<BTreeMap<Source, State>>>,
    /// The number of recoveries of sources.
    recoveries: watch::Sender<u64>,
}

#[derive(Clone, Debug, Default)]
struct State {
    is_synced: bool,
    /// Rejected reads. Only a cluster administrator can grant the missing permission.
    rejection: Option<Rejection>,
    /// The message of the last failure.
    failure: Option<String>,
    /// The time of the first failure since the last success.
    failing_since: Option<Instant>,
    /// True if the cluster does not serve the source.
    is_not_served: bool,
}

#[derive(Clone, Debug)]
struct Rejection {
    text: String,
    since: Instant,
    is_logged: bool,
}

/// Returns the sources that must be in sync: those in [`NEEDED`], and optional sources that are watched.
fn watched(states: &BTreeMap<Source, State>) -> impl Iterator<Item = Source> {
    let others = states.keys().filter(|source| !NEEDED.contains(source));
    NEEDED.into_iter().chain(others.copied())
}

impl State {
    /// Returns true if the source was read and has not failed since.
    const fn is_in_sync(&self) -> bool {
        self.is_synced && self.rejection.is_none() && self.failure.is_none()
    }

    /// Returns the missing permission if the rejection was already logged, or if reads have been rejected for at least
    /// the time given by [`certain_after`].
    fn lacking(&self) -> Option<&Rejection> {
        let rejection = self.rejection.as_ref()?;
        let is_certain = rejection.since.elapsed() >= certain_after(self.is_synced);
        (rejection.is_logged || is_certain).then_some(rejection)
    }
}

impl Readiness {
    /// Returns the name of each source, and its problem if it has one.
    ///
    /// An unreachable source that was in sync has no problem, since its last state remains usable. A source without
    /// permission has a problem.
    #[must_use]
    pub fn checks(&self) -> Vec<(&'static str, Option<String>)> {
        let states = self.lock();
        watched(&states)
            .map(|source| {
                let state = states.get(&source).cloned().unwrap_or_default();
                let lacking = state.lacking().map(|rejection| rejection.text.clone());
                let problem = lacking.or_else(|| {
                    let text = state.failure.unwrap_or_else(|| "not read yet".to_owned());
                    (!state.is_synced).then_some(text)
                });
                (source.as_str(), problem)
            })
            .collect()
    }

    /// Records that `source` is in sync. Returns true if reads had failed or were rejected before.
    pub(crate) fn synced(&self, source: Source) -> bool {
        let state = State {
            is_synced: true,
            ..State::default()
        };
        let before = self.lock().insert(source, state);
        let is_back =
            before.is_some_and(|before| before.rejection.is_some() || before.failure.is_some());
        if is_back {
            self.recoveries.send_modify(|n| *n = n.wrapping_add(1));
        }
        is_back
    }

    /// Returns a receiver that is notified when a source recovers. Then a retry for another source may succeed, too.
    pub(crate) fn recoveries(&self) -> watch::Receiver<u64> {
        self.recoveries.subscribe()
    }

    /// Records that the cluster does not serve `source`. Returns true if this was not recorded before.
    pub(crate) fn not_served(&self, source: Source) -> bool {
        let state = State {
            is_synced: true,
            is_not_served: true,
            ..State::default()
        };
        let before = self.lock().insert(source, state);
        before.is_none_or(|before| !before.is_not_served)
    }

    /// Removes a source that is no longer watched.
    pub(crate) fn forget(&self, source: Source) {
        self.lock().remove(&source);
    }

    /// Returns true if `source` was read and has not failed since.
    #[cfg(test)]
    pub(crate) fn is_in_sync(&self, source: Source) -> bool {
        self.lock().get(&source).is_some_and(State::is_in_sync)
    }

    /// Returns true if all sources on which statuses depend are currently in sync with the cluster.
    #[must_use]
    pub fn is_all_in_sync(&self) -> bool {
        let states = self.lock();
        watched(&states).all(|source| states.get(&source).is_some_and(State::is_in_sync))
    }

    /// Returns the message about the missing permission of `source`. `None` if reads have not been rejected for as long
    /// as [`certain_after`] requires.
    pub(crate) fn rejection(&self, source: Source) -> Option<String> {
        let states = self.lock();
        Some(states.get(&source)?.lacking()?.text.clone())
    }

    /// Records that the API server rejected a read of `source` for lack of a permission.
    ///
    /// Returns true if the caller should log the missing permission. This is the case once, when reads have been
    /// rejected for as long as [`certain_after`] requires.
    pub(crate) fn refused(&self, source: Source, text: String) -> bool {
        let mut states = self.lock();
        let state = states.entry(source).or_default();
        let (since, is_logged) = match &state.rejection {
            Some(rejection) => (rejection.since, rejection.is_logged),
            None => (Instant::now(), false),
        };
        if !state.is_synced {
            state.failure = Some(text.clone());
        }
        state.rejection = Some(Rejection {
            text,
            since,
            is_logged,
        });
        let is_news = !is_logged && state.lacking().is_some();
        if let Some(rejection) = state.rejection.as_mut() {
            rejection.is_logged |= is_news;
        }
        is_news
    }

    /// Records that `source` could not be read. A missing permission that was logged remains recorded.
    ///
    /// Returns true if statuses should be computed without `source`, because it was never read and has failed for too
    /// long.
    pub(crate) fn failed(&self, source: Source, text: String) -> bool {
        let mut states = self.lock();
        let state = states.entry(source).or_default();
        state.rejection.take_if(|rejection| !rejection.is_logged);
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
    fn readiness_has_no_problem_during_outage_after_sync() {
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
    async fn rejection_counts_as_missing_permission_after_five_seconds() {
        let readiness = Readiness::default();
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        assert_eq!(problem(&readiness).as_deref(), Some("grant list"));
        assert_eq!(readiness.rejection(Source::Crds), None);
        tokio::time::advance(MISSING_AFTER).await;
        assert!(readiness.refused(Source::Crds, "grant list".into()));
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        assert!(readiness.rejection(Source::Crds).is_some());
        assert!(readiness.synced(Source::Crds));
        assert!(!readiness.synced(Source::Crds));
        assert_eq!(problem(&readiness), None);
    }

    #[tokio::test(start_paused = true)]
    async fn rejection_after_sync_counts_as_revoked_permission_only_if_it_lasts() {
        let readiness = Readiness::default();
        readiness.synced(Source::Crds);
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        assert!(!readiness.is_in_sync(Source::Crds));
        tokio::time::advance(REVOKED_AFTER / 2).await;
        assert_eq!(problem(&readiness), None);
        // The API server becomes unreachable and then recovers, so the time starts again.
        readiness.failed(Source::Crds, "connection refused".into());
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        tokio::time::advance(REVOKED_AFTER / 2).await;
        assert!(!readiness.refused(Source::Crds, "grant list".into()));
        assert_eq!(problem(&readiness), None);
        tokio::time::advance(REVOKED_AFTER / 2).await;
        assert!(readiness.refused(Source::Crds, "grant list".into()));
        assert_eq!(problem(&readiness).as_deref(), Some("grant list"));
        // A connection failure does not mean that the permission was granted.
        readiness.failed(Source::Crds, "connection refused".into());
        assert_eq!(problem(&readiness).as_deref(), Some("grant list"));
        readiness.synced(Source::Crds);
        assert_eq!(problem(&readiness), None);
    }

    #[tokio::test(start_paused = true)]
    async fn optional_source_is_checked_for_readiness_only_while_watched() {
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
    fn readiness_notifies_when_failed_source_recovers() {
        let readiness = Readiness::default();
        let recoveries = readiness.recoveries();
        readiness.synced(Source::Crds);
        assert!(!recoveries.has_changed().unwrap());
        readiness.failed(Source::Crds, "connection refused".into());
        readiness.synced(Source::Crds);
        assert!(recoveries.has_changed().unwrap());
    }

    #[test]
    fn list_of_readiness_checks_has_every_needed_source() {
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
        // The 10 other sources are probes, params and opt-in kinds, which not every cluster serves.
        assert_eq!(NEEDED.len() + 10, Source::ALL.len());
    }
}
