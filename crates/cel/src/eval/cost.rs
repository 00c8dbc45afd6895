//! The accounting of costs.
//!
//! Each step adds its cost when it is done. A call's is by the sizes of its arguments, and only if all of
//! them are found on the stack of steps: those that were never evaluated are not. Steps are found by the id
//! of their expression, from the top, and what is above is dropped with them.
//!
//! Source: cel-go `interpreter/runtimecost.go`.

use crate::value::{EvalError, Value, Work};

/// How the cost of a call is computed of its arguments and its result.
///
/// `None` falls back to the language's own rule. An error ends the evaluation, as a panic of upstream's does. Arguments that
/// failed are values of the kind [`Value::Error`]. What goes through values counts them as work.
pub type CallCost = fn(&[Value], &Result<Value, EvalError>, &Work) -> CostResult;

/// The language's own rule for the cost of a call, by its arguments.
type PlainCost = fn(&[Value]) -> u64;

/// What a [`CallCost`] gives.
pub type CostResult = Result<Option<u64>, EvalError>;

/// The cost of a step that selects a field or reads a variable.
///
/// Source: cel-go `common/cost.go`, `SelectAndIdentCost`.
const SELECT_COST: u64 = 1;

/// Source: cel-go `common/cost.go`, `ListCreateBaseCost`.
pub(super) const LIST_COST: u64 = 10;

/// Source: cel-go `common/cost.go`, `MapCreateBaseCost`.
pub(super) const MAP_COST: u64 = 30;

/// Source: cel-go `common/cost.go`, `StructCreateBaseCost`.
pub(super) const MESSAGE_COST: u64 = 40;

/// The cost of going through a text or list of the size `size` once: a tenth of it, rounded up.
///
/// Source: cel-go `common/cost.go`, `StringTraversalCostFactor`.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "as upstream, the product is computed as a double"
)]
pub fn string_traversal_cost(size: u64) -> u64 {
    round_up(size as f64 * 0.1)
}

/// The least whole number that is not less than `number`, which is not negative.
///
/// `f64::ceil` is a call into the library of the system.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is cut off is looked at"
)]
#[inline]
fn round_up(number: f64) -> u64 {
    let whole = number as u64;
    if (whole as f64) < number {
        whole.saturating_add(1)
    } else {
        whole
    }
}

/// The cost of a pattern of the size `size`.
///
/// Source: cel-go `common/cost.go`, `RegexStringLengthCostFactor`.
#[expect(
    clippy::cast_precision_loss,
    reason = "as upstream, the product is computed as a double"
)]
fn pattern_cost(size: u64) -> u64 {
    round_up(size as f64 * 0.25)
}

/// A cost.
///
/// # Errors
///
/// None.
pub fn units(cost: u64) -> CostResult {
    Ok(Some(cost))
}

fn size_of(args: &[Value], n: usize) -> u64 {
    args.get(n).map_or(1, Value::cost_size)
}

fn traversal(args: &[Value]) -> u64 {
    string_traversal_cost(size_of(args, 0))
}

fn second_size(args: &[Value]) -> u64 {
    size_of(args, 1)
}

/// The cost of going through the lesser of two arguments.
fn least(args: &[Value]) -> u64 {
    string_traversal_cost(size_of(args, 0).min(size_of(args, 1)))
}

fn sum(args: &[Value]) -> u64 {
    string_traversal_cost(size_of(args, 0).wrapping_add(size_of(args, 1)))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as upstream, the product is computed as a double"
)]
fn matching(args: &[Value]) -> u64 {
    let text = round_up((1.0 + size_of(args, 0) as f64) * 0.1);
    text.wrapping_mul(pattern_cost(size_of(args, 1)))
}

fn containing(args: &[Value]) -> u64 {
    let text = string_traversal_cost(size_of(args, 0));
    text.wrapping_mul(string_traversal_cost(size_of(args, 1)))
}

fn one(_: &[Value]) -> u64 {
    1
}

/// The language's own rule for the cost of a call of `overload`.
///
/// Source: cel-go `interpreter/runtimecost.go`, `CostTracker.costCall`.
pub(super) fn plain_call_cost(overload: &str) -> PlainCost {
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => traversal,
        "in_list" => second_size,
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "equals"
        | "not_equals" => least,
        "add_string" | "add_bytes" => sum,
        "matches_string" => matching,
        "contains_string" => containing,
        _ => one,
    }
}

/// All that is needed to compute the cost of a call.
#[derive(Clone, Copy)]
pub(super) struct Costing {
    /// The rule of the environment, if it has one; it may leave the cost to that of the language.
    pub(super) own: Option<CallCost>,
    /// The rule of the language.
    pub(super) plain: PlainCost,
}

impl Costing {
    /// The cost of a call.
    ///
    /// # Errors
    ///
    /// Where upstream's accounting panics.
    pub(super) fn cost(
        &self,
        args: &[Value],
        result: &Result<Value, EvalError>,
        work: &Work,
    ) -> Result<u64, EvalError> {
        if let Some(cost) = self.own
            && let Some(cost) = cost(args, result, work)?
        {
            return Ok(cost);
        }
        Ok((self.plain)(args))
    }
}

impl std::fmt::Debug for Costing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Costing")
    }
}

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
        self.add(SELECT_COST.wrapping_mul(n_steps));
    }

    pub(super) fn add_select(&mut self) {
        self.add(SELECT_COST);
    }

    pub(super) fn subtract_select(&mut self) {
        self.cost = self.cost.wrapping_sub(SELECT_COST);
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
