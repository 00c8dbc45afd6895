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

/// Maximum bytes of a forward or reverse automaton of `regex-automata`. If an automaton would be larger, building it
/// fails within a millisecond, after allocating this number of bytes.
const MAX_AUTOMATON_BYTES: usize = 320 << 10;

/// Maximum bytes of the states that a forward or reverse automaton caches.
const MAX_STATES_BYTES: usize = 384 << 10;

/// Maximum length of a pattern for `regex-automata`, in bytes.
const MAX_AUTOMATON_PATTERN: usize = 10_000;

/// Maximum product of the number of automaton states and the length of the input, for searches by `regex-automata`. In
/// the worst case, a search visits each state at each byte. Such a search cannot be interrupted. This limit keeps its
/// time below one second.
const MAX_AUTOMATON_STEPS: usize = 100_000_000;

/// Maximum number of instructions of an engine that is built for one search of an analysis.
pub const MAX_TRIAL_INSTRUCTIONS: usize = 4_096;

/// Number of concurrent searches whose memory the engine keeps for later searches.
const N_SLOTS: usize = 4;

#[derive(Debug)]
pub(super) struct Engine {
    kind: Kind,
    size: Size,
    /// Memory of concurrent searches, one slot for each.
    slots: [Mutex<Slot>; N_SLOTS],
    reservation: Reservation,
}

#[derive(Debug)]
enum Kind {
    Automata(meta::Regex),
    Machine(Machine),
}

/// Memory of one search, and its reserved size.
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
    /// An engine that may be retained, and its size in bytes.
    New(Engine, usize),
    /// An engine for one search. The limits of the search already include the engine's memory.
    Transient(Engine),
}

impl Engine {
    /// Builds an engine for `regex`. If the engine is too large to be retained, `limits` counts its memory.
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

    pub(super) fn reserved(mut self, reservation: Reservation) -> Self {
        self.reservation = reservation;
        self
    }

    /// Builds a machine for one search. Returns `None` if the pattern is too large.
    pub(super) fn for_trial(regex: &Regex) -> Option<Self> {
        let size = size::estimate(regex);
        let fits = size.n_instructions <= MAX_TRIAL_INSTRUCTIONS
            && size.machine_bytes() <= budget::MAX_CACHE_BYTES;
        let machine = || Kind::Machine(Machine::new(regex));
        fits.then(|| Self::new(machine(), size, Reservation::transient()))
    }

    /// Builds a machine for one search. `limits` counts its memory.
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

    pub(super) fn is_machine(&self) -> bool {
        matches!(self.kind, Kind::Machine(_))
    }

    /// Returns true if a search by `regex-automata` may take too long. In this case, the built-in machine must search
    /// `text`.
    pub(super) fn exceeds_automaton_limit(&self, text: &str) -> bool {
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

    /// Returns the number of work steps for building the engine.
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

    /// Calls `search` with memory for one search. Retains the memory for later searches if the limits allow it.
    pub(super) fn search<T>(&self, search: impl FnOnce(&mut Search<'_>) -> T) -> T {
        let call = |memory: &mut Memory| {
            search(&mut Search {
                engine: self,
                memory,
            })
        };
        // If all slots are in use, allocates new memory, so that a search never waits for another.
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

/// Builds the automata of `regex`. Returns `None` if they would be too large.
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

/// An engine and memory for a search.
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

    /// Returns the first match at or after `start`. Assertions such as `^` and `\b` also see the input before `start`.
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
                // Counts the whole remaining input, because a search may read all of it even for a short match.
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
