//! Engines, which search for a pattern. The first search builds them.

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

/// Bytes that an automaton of `regex-automata` may use in one direction. Building a larger one fails after that much
/// memory, in less than a millisecond.
const MAX_AUTOMATON_BYTES: usize = 320 << 10;

/// Bytes that a search may use to remember states of an automaton, in one direction.
const MAX_STATES_BYTES: usize = 384 << 10;

/// The length of the longest pattern that is tried on the engines of `regex-automata`, in bytes.
const MAX_AUTOMATON_PATTERN: usize = 10_000;

/// The greatest product of the states of an automaton and the length of a text that is searched by `regex-automata`,
/// which cannot be interrupted and in the worst case visits each state at each byte: less than a second.
const MAX_AUTOMATON_STEPS: usize = 100_000_000;

/// The greatest number of instructions of an engine that is built for one search of an analysis.
pub const MAX_TRIAL_INSTRUCTIONS: usize = 4_096;

/// Searches by several threads that keep their memory.
const N_SLOTS: usize = 4;

/// An engine for a pattern.
#[derive(Debug)]
pub(super) struct Engine {
    kind: Kind,
    size: Size,
    /// Memory of searches, for one thread each.
    slots: [Mutex<Slot>; N_SLOTS],
    reservation: Reservation,
}

#[derive(Debug)]
enum Kind {
    Automata(meta::Regex),
    Machine(Machine),
}

/// Memory of a search, and how much of it is reserved.
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

/// An engine that was built.
pub(super) enum Built {
    /// One that may be kept, and its bytes.
    New(Engine, usize),
    /// One for one search, whose bytes are counted.
    Transient(Engine),
}

impl Engine {
    /// Builds an engine for `regex`. One that is too large to be kept is counted by `limits`.
    ///
    /// # Errors
    ///
    /// The error of `limits`.
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

    /// The engine with `reservation`, which is for its bytes.
    pub(super) fn reserved(mut self, reservation: Reservation) -> Self {
        self.reservation = reservation;
        self
    }

    /// Builds a machine for one search, of a pattern that is not large; `None` if it is.
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
    /// The error of `limits`.
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

    /// Returns true if the engine is a machine of our own.
    pub(super) fn is_machine(&self) -> bool {
        matches!(self.kind, Kind::Machine(_))
    }

    /// Returns true if a search of `text` has to be left to a machine of our own, as it might take long.
    pub(super) fn takes_long(&self, text: &str) -> bool {
        !self.is_machine() && text.len().saturating_mul(self.size.n_states) > MAX_AUTOMATON_STEPS
    }

    /// The bytes of the engine without the memory of searches.
    fn memory_usage(&self) -> usize {
        let allocated = match &self.kind {
            Kind::Automata(regex) => regex.memory_usage(),
            Kind::Machine(machine) => machine.memory_usage(),
        };
        allocated + size_of::<Self>()
    }

    /// Steps of work that building has taken.
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

    /// Calls `search` with memory for a search, which is kept for later ones as far as the bounds allow.
    pub(super) fn search<T>(&self, search: impl FnOnce(&mut Search<'_>) -> T) -> T {
        let call = |memory: &mut Memory| {
            search(&mut Search {
                engine: self,
                memory,
            })
        };
        // No slot is waited for.
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

/// Builds the automata of `regex`, or `None` where they would be too large.
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

/// An engine, and memory for a search.
pub(super) struct Search<'a> {
    engine: &'a Engine,
    memory: &'a mut Memory,
}

impl Search<'_> {
    /// Returns true if some part of `text` matches.
    ///
    /// # Errors
    ///
    /// The error of `limits`.
    pub(super) fn is_match<L: Limits>(&mut self, text: &str, limits: &L) -> Result<bool, L::Error> {
        match (&self.engine.kind, &mut *self.memory) {
            (Kind::Automata(regex), Memory::Automata(cache)) => {
                limits.work(text.len())?;
                let input = Input::new(text).earliest(true);
                Ok(regex.search_half_with(cache, &input).is_some())
            }
            (Kind::Machine(machine), Memory::Machine(scratch)) => {
                let found = machine.find((text, 0, true), scratch, limits)?;
                Ok(found.is_some())
            }
            _ => Ok(false),
        }
    }

    /// The first match at or after `start`; the text before it is still seen by `^` and `\b`.
    ///
    /// # Errors
    ///
    /// The error of `limits`.
    pub(super) fn find_at<L: Limits>(
        &mut self,
        text: &str,
        start: usize,
        limits: &L,
    ) -> Result<Option<Range<usize>>, L::Error> {
        match (&self.engine.kind, &mut *self.memory) {
            (Kind::Automata(regex), Memory::Automata(cache)) => {
                // A search may read the whole text although the match that it prefers is short.
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
