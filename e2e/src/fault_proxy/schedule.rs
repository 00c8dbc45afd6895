//! How often which fault is injected.

use std::time::Duration;

use super::Fault;

/// Which faults come, and how often.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Seed from which the faults of all requests follow.
    pub seed: u64,
    /// The faults, each as likely as the others among those that can be done.
    pub faults: Vec<Fault>,
    /// How many of a thousand requests meet one.
    pub requests_permille: u64,
    /// How many of a thousand events of watches meet one.
    pub events_permille: u64,
    /// Fate of black holes.
    pub black_holes: BlackHoles,
}

/// Fate of a connection in a black hole once the proxy is quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlackHoles {
    /// It is cut some time later, as by a network that is whole again and knows nothing of the connection.
    EndAfter(Duration),
    /// It stays as it is: only the client itself can notice.
    Stay,
}

impl Schedule {
    /// These faults, one for each tenth request and each tenth event; black holes end after five seconds of
    /// quiet.
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

    /// Returns the same with other frequencies, in a thousand requests and in a thousand events.
    #[must_use]
    pub fn permille(mut self, requests: u64, events: u64) -> Self {
        self.requests_permille = requests;
        self.events_permille = events;
        self
    }

    /// Returns the same with other black holes.
    #[must_use]
    pub fn black_holes(mut self, black_holes: BlackHoles) -> Self {
        self.black_holes = black_holes;
        self
    }
}
