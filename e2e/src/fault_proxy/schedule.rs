//! The schedule of faults: which faults are injected, and how often.

use std::time::Duration;

use super::Fault;

/// The faults to inject and their frequency.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The seed of the faults.
    pub seed: u64,
    /// The faults. Each applicable one is equally probable.
    pub faults: Vec<Fault>,
    /// Permille of requests with a fault.
    pub requests_permille: u64,
    /// Permille of watch events with a fault.
    pub events_permille: u64,
    /// Handling of connections in black holes.
    pub black_holes: BlackHoles,
}

/// Handling of a connection in a black hole once the proxy is quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlackHoles {
    /// The connection is cut after this duration, as by a recovered network that has lost the connection's state.
    EndAfter(Duration),
    /// The connection stays open, so only the client can detect that it is dead.
    Stay,
}

impl Schedule {
    /// Creates a schedule that injects one of `faults` into one in ten requests and events. A black hole ends five
    /// seconds after the proxy becomes quiet.
    #[must_use]
    pub fn new(seed: u64, faults: &[Fault]) -> Self {
        Self {
            seed,
            faults: faults.to_vec(),
            requests_permille: 100,
            events_permille: 100,
            black_holes: BlackHoles::EndAfter(Duration::from_secs(5)),
        }
    }

    /// Returns the schedule with other frequencies, in permille of requests and of events.
    #[must_use]
    pub fn permille(mut self, requests: u64, events: u64) -> Self {
        self.requests_permille = requests;
        self.events_permille = events;
        self
    }

    /// Returns the schedule with another handling of black holes.
    #[must_use]
    pub fn black_holes(mut self, black_holes: BlackHoles) -> Self {
        self.black_holes = black_holes;
        self
    }
}
