//! The accounting of costs.
//!
//! Each step adds its cost when it is done. A call's is by the sizes of its arguments, and only if all of
//! them are found on the stack of steps: those that were never evaluated are not. Steps are found by the id
//! of their expression, from the top, and what is above is dropped with them.
//!
//! Source: cel-go `interpreter/runtimecost.go`.

use crate::cost::factors::SELECT_AND_IDENT_COST;
use crate::value::EvalError;

/// How many steps are kept without an allocation.
const N_INLINE: usize = 48;

/// The ids of the steps that are done and not yet used by the step around them.
#[derive(Debug)]
struct Steps {
    inline: [u32; N_INLINE],
    n_inline: usize,
    more: Vec<u32>,
}

impl Steps {
    #[inline]
    fn push(&mut self, id: u32) {
        match self.inline.get_mut(self.n_inline) {
            Some(slot) => {
                *slot = id;
                self.n_inline = self.n_inline.saturating_add(1);
            }
            None => self.more.push(id),
        }
    }

    fn len(&self) -> usize {
        self.n_inline.saturating_add(self.more.len())
    }

    fn truncate(&mut self, len: usize) {
        self.more.truncate(len.saturating_sub(N_INLINE));
        self.n_inline = self.n_inline.min(len);
    }

    /// The place of the last step `id`.
    fn find(&self, id: u32) -> Option<usize> {
        if let Some(at) = self.more.iter().rposition(|step| *step == id) {
            return Some(at.saturating_add(N_INLINE));
        }
        self.inline
            .get(..self.n_inline)?
            .iter()
            .rposition(|step| *step == id)
    }
}

/// The cost so far.
#[derive(Debug)]
pub(super) struct Tracker {
    cost: u64,
    limit: u64,
    steps: Steps,
}

impl Tracker {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            cost: 0,
            limit,
            steps: Steps {
                inline: [0; N_INLINE],
                n_inline: 0,
                more: Vec::new(),
            },
        }
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Forgets the last step `id` and what was done after it.
    pub(super) fn drop_step(&mut self, id: u32) {
        self.take_step(id);
    }

    /// As [`Tracker::drop_step`]; whether there was such a step.
    #[inline]
    pub(super) fn take_step(&mut self, id: u32) -> bool {
        // Mostly it is the last one.
        if self.steps.more.is_empty()
            && let Some(last) = self.steps.n_inline.checked_sub(1)
            && self.steps.inline.get(last) == Some(&id)
        {
            self.steps.n_inline = last;
            return true;
        }
        match self.steps.find(id) {
            Some(at) => {
                self.steps.truncate(at);
                true
            }
            None => false,
        }
    }

    /// Forgets the steps `ids`, from the last to the first; whether all were there.
    #[inline]
    pub(super) fn take_steps(&mut self, ids: impl DoubleEndedIterator<Item = u32>) -> bool {
        for id in ids.rev() {
            if !self.take_step(id) {
                return false;
            }
        }
        true
    }

    /// Whether `cost` more is beyond the limit.
    pub(super) fn exceeds(&self, cost: u64) -> bool {
        self.cost.wrapping_add(cost) > self.limit
    }

    pub(super) fn add(&mut self, cost: u64) {
        self.cost = self.cost.wrapping_add(cost);
    }

    /// Whether `n_steps` more, that select a field each, stay within the limit.
    #[inline]
    pub(super) fn has_room(&self, n_steps: usize) -> bool {
        let n_steps = u64::try_from(n_steps).unwrap_or(u64::MAX);
        self.cost.saturating_add(n_steps) <= self.limit
    }

    /// As so many times [`Tracker::add_select`].
    #[inline]
    pub(super) fn add_selects(&mut self, n_steps: usize) {
        let n_steps = u64::try_from(n_steps).unwrap_or(u64::MAX);
        self.add(SELECT_AND_IDENT_COST.wrapping_mul(n_steps));
    }

    pub(super) fn add_select(&mut self) {
        self.add(SELECT_AND_IDENT_COST);
    }

    pub(super) fn subtract_select(&mut self) {
        self.cost = self.cost.wrapping_sub(SELECT_AND_IDENT_COST);
    }

    /// Records that the step `id` is done.
    ///
    /// # Errors
    ///
    /// If the limit is exceeded.
    #[inline]
    pub(super) fn done(&mut self, id: u32) -> Result<(), EvalError> {
        self.steps.push(id);
        if self.cost > self.limit {
            return Err(EvalError::cancelled(
                "operation cancelled: actual cost limit exceeded",
            ));
        }
        Ok(())
    }

    /// How many steps are kept.
    pub(super) fn n_steps(&self) -> usize {
        self.steps.len()
    }

    /// Forgets the steps from `from` up to `to`, which are those of an earlier turn of a comprehension.
    ///
    /// Upstream keeps what each turn leaves behind until the end. Only what the last turn left can be
    /// found by the next one, so that the rest is forgotten, or else looking for a step that was not
    /// evaluated would take ever longer.
    pub(super) fn forget(&mut self, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let mut kept = from;
        for at in to..self.steps.len() {
            if let Some(id) = self.steps.get(at) {
                self.steps.set(kept, id);
                kept = kept.saturating_add(1);
            }
        }
        self.steps.truncate(kept);
    }
}

impl Steps {
    fn get(&self, at: usize) -> Option<u32> {
        match at.checked_sub(N_INLINE) {
            Some(rest) => self.more.get(rest).copied(),
            None => self.inline.get(at).copied(),
        }
    }

    fn set(&mut self, at: usize, id: u32) {
        let slot = match at.checked_sub(N_INLINE) {
            Some(rest) => self.more.get_mut(rest),
            None => self.inline.get_mut(at),
        };
        if let Some(slot) = slot {
            *slot = id;
        }
    }
}
