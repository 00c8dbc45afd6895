//! Tracks conditions that cannot currently be recomputed.
//!
//! If the API server is unavailable for a short time, conditions do not change (ADR 1). The previous conditions are
//! retained. If they are retained for longer, their messages get a note ([`crate::status::staleness`]). The note
//! depends only on the elapsed time, so no watch event triggers it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::cluster::discovery::MAX_PAUSE;
use crate::policy::subject::SubjectId;

/// The policies with retained conditions, each with the time since which they have been retained.
#[derive(Debug, Default)]
pub(crate) struct StaleConditions {
    policies: Mutex<HashMap<SubjectId, Retained>>,
}

#[derive(Clone, Copy, Debug)]
struct Retained {
    since: Instant,
    /// True if the note was already due at the last reconciliation.
    was_due: bool,
}

impl StaleConditions {
    /// Records whether a condition of the policy is retained (`is_kept`). Returns true if conditions have been retained
    /// for at least [`MAX_PAUSE`], so that their messages must have the note.
    pub(crate) fn is_stale(&self, policy: &SubjectId, is_kept: bool, now: Instant) -> bool {
        let mut policies = self.lock();
        if !is_kept {
            policies.remove(policy);
            return false;
        }
        let kept = policies.entry(policy.clone()).or_insert(Retained {
            since: now,
            was_due: false,
        });
        kept.was_due = now.saturating_duration_since(kept.since) >= MAX_PAUSE;
        kept.was_due
    }

    pub(crate) fn forget(&self, policy: &SubjectId) {
        self.lock().remove(policy);
    }

    /// Returns the policies whose note has become due since their last reconciliation.
    pub(crate) fn due(&self, now: Instant) -> Vec<SubjectId> {
        let policies = self.lock();
        let is_due = |kept: &Retained| {
            !kept.was_due && now.saturating_duration_since(kept.since) >= MAX_PAUSE
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
    fn staleness_note_is_due_after_sixty_seconds() {
        let kept = StaleConditions::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(!kept.is_stale(&id("a"), true, start));
        assert!(!kept.is_stale(&id("a"), true, after(59)));
        assert_eq!(kept.due(after(59)), []);
        assert_eq!(kept.due(after(60)), [id("a")]);
        assert!(kept.is_stale(&id("a"), true, after(61)));
        assert_eq!(kept.due(after(90)), []);
        // The conditions are recomputed and later retained again.
        assert!(!kept.is_stale(&id("a"), false, after(91)));
        assert!(!kept.is_stale(&id("a"), true, after(92)));
        assert_eq!(kept.due(after(150)), []);
        assert_eq!(kept.due(after(152)), [id("a")]);
        kept.forget(&id("a"));
        assert_eq!(kept.due(after(200)), []);
    }
}
