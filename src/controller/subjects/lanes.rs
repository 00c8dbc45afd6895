//! Lanes are the queues of checks. Each lane has its own threads and time limits, so that slow checks do not delay
//! other policies.
//!
//! A policy is first checked in [`Lane::Quick`]. If its check takes longer than 200 ms while other policies wait, the
//! check is interrupted and moves to [`Lane::Deferred`]. After two seconds, the check moves to [`Lane::Slow`]. A check
//! that exceeds the limit of the slow lane ends as `DeadlineExceeded`. It is repeated when the policy or its inputs
//! change, or after an hour.
//!
//! The status of the policy reports the exceeded deadline. So the policy starts in the slow lane after a restart of the
//! controller.

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The time after which a check in the quick lane is interrupted if other policies wait.
    pub(crate) turn: Duration,
    /// The time limit of the quick lane and of the deferred lane.
    pub(crate) quick: Duration,
    /// The time limit of the slow lane.
    pub(crate) slow: Duration,
    /// How long an interrupted check may take to end before its thread counts as stuck.
    pub(crate) grace: Duration,
}

impl Limits {
    /// The limits outside of tests.
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
            // On a busy machine, even simple checks may be slow in test builds.
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

/// The time after which a check that exceeded its deadline is repeated without a change.
const RETRY_INTERVAL: Duration = Duration::from_secs(3600);

/// The queues of deferred and slow checks, and the lane of each policy that is not in the quick lane.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    pub(crate) limits: Limits,
    pub(crate) deferred: Queue,
    pub(crate) slow: Queue,
    policies: Mutex<BTreeMap<SubjectId, Note>>,
}

/// The recorded lane of a policy.
#[derive(Clone, Debug)]
struct Note {
    generation: Generation,
    lane: Lane,
    /// The time at which the check exceeded the deadline of the slow lane, if it did.
    exceeded_at: Option<Instant>,
    /// True if the thread of the check is stuck. Then the check is repeated only if the policy or its inputs change.
    is_stuck: bool,
    /// True if the check must be repeated without a change.
    is_due: bool,
}

impl Lanes {
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

    /// Returns the recorded lane for the generation of `entry`. `None` if there is none.
    pub(crate) fn note_lane(&self, entry: &Entry) -> Option<Lane> {
        let policies = self.lock();
        let note = policies.get(&entry.id)?;
        (note.generation == entry.generation()).then_some(note.lane)
    }

    /// Queues the policy `id` in `lane`. Does nothing for the quick lane, which is the main queue.
    pub(crate) fn add(&self, id: &SubjectId, lane: Lane) {
        match lane {
            Lane::Quick => {}
            Lane::Deferred => self.deferred.add(id),
            Lane::Slow => self.slow.add(id),
        }
    }

    /// Records `lane` for this `generation` of the policy `id`, and queues the policy in this lane.
    pub(crate) fn defer(&self, id: &SubjectId, generation: Generation, lane: Lane) {
        let note = Note::new(generation, lane);
        self.lock().insert(id.clone(), note);
        self.add(id, lane);
    }

    /// Records that the check of the policy `id` completed within the time `took`. After a quick check, the policy
    /// returns to the quick lane.
    pub(crate) fn finished(&self, id: &SubjectId, took: Duration) {
        if took <= self.limits.turn {
            self.forget(id);
        } else if let Some(note) = self.lock().get_mut(id) {
            note.exceeded_at = None;
        }
    }

    /// Records that the check of this `generation` exceeded the deadline of the slow lane.
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

    /// Queues the policies whose checks exceeded the deadline at least [`RETRY_INTERVAL`] before `now`.
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

    /// Returns true if the check of the policy must be repeated without a change. Resets this flag.
    pub(crate) fn take_due(&self, id: &SubjectId) -> bool {
        let mut policies = self.lock();
        let note = policies.get_mut(id);
        note.is_some_and(|note| std::mem::take(&mut note.is_due))
    }

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

/// Returns true if the status of `entry` reports an exceeded deadline for its current generation.
fn has_exceeded_deadline(entry: &Entry) -> bool {
    let generation = entry.identity.generation();
    let status = entry.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|condition| {
        condition.reason == Reason::DeadlineExceeded.as_str()
            && condition.observed_generation == generation
    })
}
