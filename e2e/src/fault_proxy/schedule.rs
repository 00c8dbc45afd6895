//! Selects the faults and their frequencies.

use std::time::Duration;

use super::Fault;

/// The faults to inject, and their frequencies.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The seed of the faults.
    pub seed: u64,
    /// The faults. All applicable faults have the same probability.
    pub faults: Vec<Fault>,
    /// The number of faults per 1,000 requests.
    pub requests_permille: u64,
    /// The number of faults per 1,000 watch events.
    pub events_permille: u64,
    /// Determines when connections in black holes end.
    pub black_holes: BlackHoles,
}

/// Determines when connections in black holes end after the proxy becomes quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlackHoles {
    /// The connection is cut after this time. This simulates a network that lost the connection's state in an outage.
    EndAfter(Duration),
    /// The connection stays open. Only the client can detect that it is dead.
    Stay,
}

impl Schedule {
    /// Creates a schedule with a fault in one of ten requests and events. A connection in a black hole is cut five
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

    /// Sets the numbers of faults per 1,000 requests and per 1,000 watch events.
    #[must_use]
    pub fn permille(mut self, requests: u64, events: u64) -> Self {
        self.requests_permille = requests;
        self.events_permille = events;
        self
    }

    /// Determines when connections in black holes end.
    #[must_use]
    pub fn black_holes(mut self, black_holes: BlackHoles) -> Self {
        self.black_holes = black_holes;
        self
    }
}
