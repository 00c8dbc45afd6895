//! Tracks conditions that cannot currently be recomputed.
//!
//! A short outage of the API server changes no condition (ADR 1). A longer one is reported by a note
//! ([`crate::status::staleness`]), and only the time shows when it is due.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::cluster::discovery::MAX_PAUSE;
use crate::policy::subject::SubjectId;

/// The policies with retained conditions.
#[derive(Debug, Default)]
pub(crate) struct StaleConditions {
    policies: Mutex<HashMap<SubjectId, Retained>>,
}

#[derive(Clone, Copy, Debug)]
struct Retained {
    since: Instant,
    /// True once the note about it is due.
    is_told: bool,
}

impl StaleConditions {
    /// Records at `now` whether a condition of the policy is retained. Returns true if one has been for longer than an
    /// outage takes.
    pub(crate) fn is_stale(&self, policy: &SubjectId, is_kept: bool, now: Instant) -> bool {
        let mut policies = self.lock();
        if !is_kept {
            policies.remove(policy);
            return false;
        }
        let kept = policies.entry(policy.clone()).or_insert(Retained {
            since: now,
            is_told: false,
        });
        kept.is_told = now.saturating_duration_since(kept.since) >= MAX_PAUSE;
        kept.is_told
    }

    /// Removes a policy that is not reconciled any more.
    pub(crate) fn forget(&self, policy: &SubjectId) {
        self.lock().remove(policy);
    }

    /// Returns the policies whose notes became due at `now`.
    pub(crate) fn due(&self, now: Instant) -> Vec<SubjectId> {
        let policies = self.lock();
        let is_due = |kept: &Retained| {
            !kept.is_told && now.saturating_duration_since(kept.since) >= MAX_PAUSE
        };
        let due = policies.iter().filter(|(_, kept)| is_due(kept));
        due.map(|(policy, _)| policy.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SubjectId, Retained>> {
        self.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::controller::tests::id;

    #[test]
    fn what_is_kept_is_told_once_it_lasts() {
        let kept = StaleConditions::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(!kept.is_stale(&id("a"), true, start));
        assert!(!kept.is_stale(&id("a"), true, after(59)));
        assert_eq!(kept.due(after(59)), []);
        assert_eq!(kept.due(after(60)), [id("a")]);
        assert!(kept.is_stale(&id("a"), true, after(61)));
        assert_eq!(kept.due(after(90)), []);
        // It is over, and begins again.
        assert!(!kept.is_stale(&id("a"), false, after(91)));
        assert!(!kept.is_stale(&id("a"), true, after(92)));
        assert_eq!(kept.due(after(150)), []);
        assert_eq!(kept.due(after(152)), [id("a")]);
        kept.forget(&id("a"));
        assert_eq!(kept.due(after(200)), []);
    }
}
