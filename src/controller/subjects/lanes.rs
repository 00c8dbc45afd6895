//! Lanes of checks: policies that take long are checked where they do not delay others.
//!
//! A policy is first checked in the quick lane. After a moment it yields to policies that wait
//! ([`Lane::Deferred`]), and in any case after two seconds ([`Lane::Slow`]). A check that exceeds the limit of the
//! slow lane ends as `DeadlineExceeded`, and is repeated once the policy or its inputs change, or after an hour.
//! The status records this over a restart, which therefore does not begin with the slow policies.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::check_result::Lane;
use super::generation::Generation;
use super::store::Entry;
use crate::cluster::blocking::TimeLimit;
use crate::controller::process::queue::Queue;
use crate::policy::subject::SubjectId;
use crate::status::condition::Reason;

/// Time limits of the lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The time after which a check in the quick lane yields to others.
    pub(crate) turn: Duration,
    /// The limit of the quick lane, and of the one for deferred checks.
    pub(crate) quick: Duration,
    /// The limit of the slow lane.
    pub(crate) slow: Duration,
    /// The time that an interrupted check may take to end.
    pub(crate) grace: Duration,
}

impl Limits {
    /// The limits of the controller.
    pub(crate) const STANDARD: Self = Self {
        turn: Duration::from_millis(200),
        quick: Duration::from_secs(2),
        slow: Duration::from_secs(30),
        grace: Duration::from_secs(5),
    };
}

impl Default for Limits {
    fn default() -> Self {
        if cfg!(test) {
            // Test builds on a busy machine are slow for valid policies too.
            Self {
                turn: Duration::from_secs(20),
                quick: Duration::from_secs(60),
                ..Self::STANDARD
            }
        } else {
            Self::STANDARD
        }
    }
}

/// The time after which a check that exceeded its deadline is repeated although nothing has changed.
const RETRY_INTERVAL: Duration = Duration::from_secs(3600);

/// The queues of the lanes except the quick one, and the policies in them.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) limits: Limits,
    pub(crate) deferred: Queue,
    pub(crate) slow: Queue,
    policies: Mutex<BTreeMap<SubjectId, Note>>,
}

/// The lane of a policy.
#[derive(Clone, Debug)]
struct Note {
    generation: Generation,
    lane: Lane,
    /// The time at which its check exceeded the deadline.
    exceeded_at: Option<Instant>,
    /// True if a thread hangs in its check, so that it is not repeated without a change.
    is_stuck: bool,
    /// True if the check is to be repeated although nothing has changed.
    is_due: bool,
}

impl Lanes {
    /// Returns the lane for the check of `entry`.
    pub(crate) fn lane(&self, entry: &Entry) -> Lane {
        let mut policies = self.lock();
        let Some(note) = policies.get(&entry.id) else {
            if has_exceeded_deadline(entry) {
                let note = Note::new(entry.generation(), Lane::Slow);
                policies.insert(entry.id.clone(), note);
                return Lane::Slow;
            }
            return Lane::Quick;
        };
        if note.generation == entry.generation() {
            note.lane
        } else {
            policies.remove(&entry.id);
            Lane::Quick
        }
    }

    /// Returns the recorded lane for this generation of `entry`.
    pub(crate) fn note_lane(&self, entry: &Entry) -> Option<Lane> {
        let policies = self.lock();
        let note = policies.get(&entry.id)?;
        (note.generation == entry.generation()).then_some(note.lane)
    }

    /// Queues the policy `id` for a check in `lane`, which was recorded for it.
    pub(crate) fn add(&self, id: &SubjectId, lane: Lane) {
        match lane {
            Lane::Quick => {}
            Lane::Deferred => self.deferred.add(id),
            Lane::Slow => self.slow.add(id),
        }
    }

    /// Records `lane` for this generation of the policy `id`.
    pub(crate) fn defer(&self, id: &SubjectId, generation: Generation, lane: Lane) {
        let note = Note::new(generation, lane);
        self.lock().insert(id.clone(), note);
        self.add(id, lane);
    }

    /// Records the duration of the check of this generation. The next check of a quick policy is in the quick lane.
    pub(crate) fn finished(&self, id: &SubjectId, took: Duration) {
        if took <= self.limits.turn {
            self.forget(id);
        } else if let Some(note) = self.lock().get_mut(id) {
            note.exceeded_at = None;
        }
    }

    /// Records that the check of this generation exceeded its deadline.
    pub(crate) fn exceeded(&self, id: &SubjectId, generation: Generation, is_stuck: bool) {
        let note = Note {
            exceeded_at: Some(Instant::now()),
            is_stuck,
            ..Note::new(generation, Lane::Slow)
        };
        self.lock().insert(id.clone(), note);
    }

    /// Removes a policy that is no longer checked.
    pub(crate) fn forget(&self, id: &SubjectId) {
        self.lock().remove(id);
    }

    /// Permits a repetition of checks that exceeded their deadline long before `now`.
    pub(crate) fn retry(&self, now: Instant) {
        for (id, note) in &mut *self.lock() {
            let is_due = note.exceeded_at.is_some_and(|exceeded_at| {
                now.saturating_duration_since(exceeded_at) >= RETRY_INTERVAL
            });
            if is_due && !note.is_stuck {
                note.exceeded_at = None;
                note.is_due = true;
                self.add(id, note.lane);
            }
        }
    }

    /// Returns true if the check of the policy is to be repeated although nothing has changed, once.
    pub(crate) fn take_due(&self, id: &SubjectId) -> bool {
        let mut policies = self.lock();
        let note = policies.get_mut(id);
        note.is_some_and(|note| std::mem::take(&mut note.is_due))
    }

    /// Returns the time limit of a check in `lane`.
    pub(crate) fn limit(&self, lane: Lane) -> TimeLimit {
        let Limits {
            turn,
            quick,
            slow,
            grace,
        } = self.limits;
        let (turn, deadline) = match lane {
            Lane::Quick => (turn, quick),
            Lane::Deferred => (quick, quick),
            Lane::Slow => (slow, slow),
        };
        TimeLimit {
            turn,
            deadline,
            grace,
        }
    }

    /// Returns the number of policies that wait for the slow lane.
    #[cfg(test)]
    pub(crate) fn n_slow(&self) -> usize {
        self.slow.len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SubjectId, Note>> {
        self.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Note {
    fn new(generation: Generation, lane: Lane) -> Self {
        Self {
            generation,
            lane,
            exceeded_at: None,
            is_stuck: false,
            is_due: false,
        }
    }
}

/// Returns true if the status of `entry` reports an exceeded deadline for this generation.
fn has_exceeded_deadline(entry: &Entry) -> bool {
    let generation = entry.identity.generation();
    let status = entry.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|condition| {
        condition.reason == Reason::DeadlineExceeded.as_str()
            && condition.observed_generation == generation
    })
}
