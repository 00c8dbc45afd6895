//! Search engines for patterns. The first search for a pattern builds its engine.

use std::ops::Range;
use std::sync::Mutex;

use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::{Input, meta};

use super::budget::{self, Reservation};
use super::hir;
use super::limits::Limits;
use super::machine::{Machine, Scratch};
use super::size::{self, Size};
use super::tree::Regex;

/// Maximum bytes of an automaton of `regex-automata` in one direction. Building a larger automaton fails in less
/// than a millisecond, after allocating this number of bytes.
const MAX_AUTOMATON_BYTES: usize = 320 << 10;

/// Maximum bytes of the cached states of an automaton in one direction.
const MAX_STATES_BYTES: usize = 384 << 10;

/// Maximum length of a pattern for the engines of `regex-automata`, in bytes.
const MAX_AUTOMATON_PATTERN: usize = 10_000;

/// Maximum product of the number of automaton states and the length of the input for searches by `regex-automata`.
/// In the worst case, a search visits each state at each byte. It cannot be interrupted, so the limit keeps it
/// below one second.
const MAX_AUTOMATON_STEPS: usize = 100_000_000;

/// Maximum number of instructions of an engine built for one search of an analysis.
pub const MAX_TRIAL_INSTRUCTIONS: usize = 4_096;

/// Number of concurrent searches that retain their memory.
const N_SLOTS: usize = 4;

/// A search engine for a pattern.
#[derive(Debug)]
pub(super) struct Engine {
    kind: Kind,
    size: Size,
    /// Memory of searches, one slot per concurrent search.
    slots: [Mutex<Slot>; N_SLOTS],
    reservation: Reservation,
}

#[derive(Debug)]
enum Kind {
    Automata(meta::Regex),
    Machine(Machine),
}

/// Memory of a search, and its reserved size.
#[derive(Debug, Default)]
struct Slot {
    memory: Option<Memory>,
    reserved: usize,
}

#[derive(Debug)]
enum Memory {
    Automata(Box<meta::Cache>),
    Machine(Scratch),
}

impl Memory {
    fn memory_usage(&self) -> usize {
        let allocated = match self {
            Self::Automata(cache) => cache.memory_usage() + size_of::<meta::Cache>(),
            Self::Machine(scratch) => scratch.memory_usage(),
        };
        allocated + size_of::<Self>()
    }
}

/// A newly built engine.
pub(super) enum Built {
    /// An engine that may be retained, and the size of the engine in bytes.
    New(Engine, usize),
    /// An engine for one search, whose memory is already charged to the limits of the search.
    Transient(Engine),
}

impl Engine {
    /// Builds an engine for `regex`. The memory of an engine that is too large to be retained is charged to
    /// `limits`.
    ///
    /// # Errors
    ///
    /// Returns the error of `limits` if they are exceeded or the search is interrupted.
    pub(super) fn build<L: Limits>(
        (pattern, regex): (&str, &Regex),
        limits: &L,
    ) -> Result<Built, L::Error> {
        let size = size::estimate(regex);
        let automata = automata(pattern, regex, &size);
        if automata.is_none() && size.machine_bytes() > budget::MAX_CACHE_BYTES {
            let engine = Self::transient_machine(regex, size, limits)?;
            return Ok(Built::Transient(engine));
        }
        let kind = match automata {
            Some(automata) => Kind::Automata(automata),
            None => Kind::Machine(Machine::new(regex)),
        };
        budget::count_built();
        let mut engine = Self::new(kind, size, Reservation::transient());
        limits.work(engine.build_steps())?;
        let slot = Slot::new(engine.new_memory());
        let n_bytes = engine
            .memory_usage()
            .saturating_add(slot.reserved)
            .saturating_add(pattern.len());
        let [first, ..] = &mut engine.slots;
        *first = Mutex::new(slot);
        Ok(Built::New(engine, n_bytes))
    }

    /// Sets the reservation of the engine's bytes.
    pub(super) fn reserved(mut self, reservation: Reservation) -> Self {
        self.reservation = reservation;
        self
    }

    /// Builds a machine for one search. `None` if the pattern is too large.
    pub(super) fn for_trial(regex: &Regex) -> Option<Self> {
        let size = size::estimate(regex);
        let fits = size.n_instructions <= MAX_TRIAL_INSTRUCTIONS
            && size.machine_bytes() <= budget::MAX_CACHE_BYTES;
        let machine = || Kind::Machine(Machine::new(regex));
        fits.then(|| Self::new(machine(), size, Reservation::transient()))
    }

    /// Builds a machine for one search.
    ///
    /// # Errors
    ///
    /// Returns the error of `limits` if they are exceeded or the search is interrupted.
    pub(super) fn transient_machine<L: Limits>(
        regex: &Regex,
        size: Size,
        limits: &L,
    ) -> Result<Self, L::Error> {
        limits.allocate(size.machine_bytes())?;
        limits.work(size.n_instructions)?;
        budget::count_built();
        let kind = Kind::Machine(Machine::new(regex));
        Ok(Self::new(kind, size, Reservation::transient()))
    }

    fn new(kind: Kind, size: Size, reservation: Reservation) -> Self {
        Self {
            kind,
            size,
            slots: Default::default(),
            reservation,
        }
    }

    /// Returns true if the engine is the built-in machine.
    pub(super) fn is_machine(&self) -> bool {
        matches!(self.kind, Kind::Machine(_))
    }

    /// Returns true if the built-in machine must search the input, because `regex-automata` may take too long for it.
    pub(super) fn takes_long(&self, text: &str) -> bool {
        !self.is_machine() && text.len().saturating_mul(self.size.n_states) > MAX_AUTOMATON_STEPS
    }

    /// Returns the bytes of the engine, excluding the memory of searches.
    fn memory_usage(&self) -> usize {
        let allocated = match &self.kind {
            Kind::Automata(regex) => regex.memory_usage(),
            Kind::Machine(machine) => machine.memory_usage(),
        };
        allocated + size_of::<Self>()
    }

    /// Returns the number of work steps that building the engine took.
    fn build_steps(&self) -> usize {
        match &self.kind {
            Kind::Automata(_) => self.size.n_states.saturating_mul(16),
            Kind::Machine(machine) => machine.len(),
        }
    }

    fn new_memory(&self) -> Memory {
        match &self.kind {
            Kind::Automata(regex) => Memory::Automata(Box::new(regex.create_cache())),
            Kind::Machine(_) => Memory::Machine(Scratch::default()),
        }
    }

    /// Calls `search` with memory for one search. The memory is retained for later searches if the memory limits
    /// allow it.
    pub(super) fn search<T>(&self, search: impl FnOnce(&mut Search<'_>) -> T) -> T {
        let call = |memory: &mut Memory| {
            search(&mut Search {
                engine: self,
                memory,
            })
        };
        // Allocates new memory if all slots are in use, so that a search never waits for another.
        let mut free = self.slots.iter().find_map(|slot| slot.try_lock().ok());
        let Some(slot) = free.as_deref_mut() else {
            return call(&mut self.new_memory());
        };
        let memory = slot.memory.get_or_insert_with(|| self.new_memory());
        let result = call(memory);
        let n_bytes = memory.memory_usage();
        if n_bytes > slot.reserved {
            if self.reservation.grow(n_bytes - slot.reserved) {
                slot.reserved = n_bytes;
            } else {
                self.reservation.shrink(slot.reserved);
                *slot = Slot::default();
            }
        }
        result
    }
}

impl Slot {
    fn new(memory: Memory) -> Self {
        Self {
            reserved: memory.memory_usage(),
            memory: Some(memory),
        }
    }
}

/// Builds the automata of `regex`. `None` if they would be too large.
fn automata(pattern: &str, regex: &Regex, size: &Size) -> Option<meta::Regex> {
    if pattern.len() > MAX_AUTOMATON_PATTERN || size.automaton_bytes() > MAX_AUTOMATON_BYTES {
        return None;
    }
    let hir = hir::translate(regex)?;
    let config = meta::Config::new()
        .which_captures(WhichCaptures::Implicit)
        .nfa_size_limit(Some(MAX_AUTOMATON_BYTES))
        .onepass_size_limit(Some(MAX_AUTOMATON_BYTES))
        .hybrid_cache_capacity(MAX_STATES_BYTES);
    let mut builder = meta::Builder::new();
    builder.configure(config).build_from_hir(&hir).ok()
}

/// An engine with memory for a search.
pub(super) struct Search<'a> {
    engine: &'a Engine,
    memory: &'a mut Memory,
}

impl Search<'_> {
    /// Returns true if a substring of the input matches.
    ///
    /// # Errors
    ///
    /// Returns the error of `limits` if they are exceeded or the search is interrupted.
    pub(super) fn is_match<L: Limits>(&mut self, text: &str, limits: &L) -> Result<bool, L::Error> {
        match (&self.engine.kind, &mut *self.memory) {
            (Kind::Automata(regex), Memory::Automata(cache)) => {
                limits.work(text.len())?;
                let input = Input::new(text).earliest(true);
                Ok(regex.search_half_with(cache, &input).is_some())
            }
            (Kind::Machine(machine), Memory::Machine(scratch)) => {
                let first_match = machine.find((text, 0, true), scratch, limits)?;
                Ok(first_match.is_some())
            }
            _ => Ok(false),
        }
    }

    /// Returns the first match at or after `start`. Assertions such as `^` and `\b` see the preceding input.
    ///
    /// # Errors
    ///
    /// Returns the error of `limits` if they are exceeded or the search is interrupted.
    pub(super) fn find_at<L: Limits>(
        &mut self,
        text: &str,
        start: usize,
        limits: &L,
    ) -> Result<Option<Range<usize>>, L::Error> {
        match (&self.engine.kind, &mut *self.memory) {
            (Kind::Automata(regex), Memory::Automata(cache)) => {
                // Counts the whole remaining input: a search may read it even if the preferred match is short.
                limits.work(text.len().saturating_sub(start))?;
                let input = Input::new(text).range(start..);
                Ok(regex.search_with(cache, &input).map(|found| found.range()))
            }
            (Kind::Machine(machine), Memory::Machine(scratch)) => {
                machine.find((text, start, false), scratch, limits)
            }
            _ => Ok(None),
        }
    }
}
