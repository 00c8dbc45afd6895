//! Tracks the cost of an evaluation.
//!
//! A step is the evaluation of one expression. The id of the expression identifies the step. When a step completes,
//! its cost is added, and its id is pushed on a stack.
//!
//! A call searches the stack for the steps of its arguments, from the top. Each search removes the step and all steps
//! above it. If all arguments have steps, the call is charged by the sizes of the arguments. If a step is missing, that
//! argument was not evaluated, and the call is free.
//!
//! Source: cel-go `interpreter/runtimecost.go`.

use crate::cost::factors::SELECT_AND_IDENT_COST;
use crate::value::EvalError;

/// Number of steps stored without an allocation.
const N_INLINE: usize = 48;

/// Stack of the ids of completed steps.
#[derive(Clone, Debug)]
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

    /// Returns the index of the last step with the id `id`. `None` if there is none.
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

/// Tracks the cost of an evaluation against its limit.
#[derive(Clone, Debug)]
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

    /// Removes the last step with the id `id`, if any, and all steps after it.
    pub(super) fn drop_step(&mut self, id: u32) {
        self.take_step(id);
    }

    /// Removes the last step with the id `id` and all steps after it. Returns false if there is no such step.
    #[inline]
    pub(super) fn take_step(&mut self, id: u32) -> bool {
        // In most cases, `id` is the last step.
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

    /// Removes the steps with the given ids, like [`Tracker::take_step`], starting with the last id. Stops and
    /// returns false if a step is absent.
    #[inline]
    pub(super) fn take_steps(&mut self, ids: impl DoubleEndedIterator<Item = u32>) -> bool {
        for id in ids.rev() {
            if !self.take_step(id) {
                return false;
            }
        }
        true
    }

    /// Returns true if adding `cost` exceeds the limit.
    pub(super) fn exceeds(&self, cost: u64) -> bool {
        self.cost.wrapping_add(cost) > self.limit
    }

    pub(super) fn add(&mut self, cost: u64) {
        self.cost = self.cost.wrapping_add(cost);
    }

    /// Returns true if `n_steps` more field selections stay within the limit.
    #[inline]
    pub(super) fn has_room(&self, n_steps: usize) -> bool {
        let n_steps = u64::try_from(n_steps).unwrap_or(u64::MAX);
        self.cost.saturating_add(n_steps) <= self.limit
    }

    /// Adds the cost of `n_steps` selections, like [`Tracker::add_select`].
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

    /// Records the completion of the step with the id `id`.
    ///
    /// # Errors
    ///
    /// Returns an error if the limit is exceeded.
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

    pub(super) fn n_steps(&self) -> usize {
        self.steps.len()
    }

    /// Removes the steps with indices in `from..to`, which an earlier iteration of a comprehension left on the stack.
    ///
    /// Upstream keeps the leftover steps of all iterations. An iteration can find only the steps of the iteration
    /// before it. Removing older ones therefore does not change the cost, and it shortens the search for an absent
    /// step.
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
