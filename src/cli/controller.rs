//! Determines whether the statuses in the cluster are current.
//!
//! A status does not show that it is outdated. The controller's Lease contains the time when the controller was last in
//! sync. The functions take the Lease and the current time, and send no requests.

use jiff::Timestamp;
use serde::Serialize;

use super::age;
use crate::status::exclusion::Exclusion;

/// The maximum age of the last sync, in seconds. After this time, statuses count as outdated. The controller reports a
/// sync every few seconds.
const MAX_AGE: i64 = 60;

/// The result of reading the controller's Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// The Lease does not exist.
    Missing,
    /// The Lease cannot be read, for this reason.
    Unreadable(String),
    /// The content of the Lease.
    Lease(LeaseFacts),
}

/// The content of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseFacts {
    /// The time when the controller last reported that it was in sync.
    pub in_sync_at: Option<Timestamp>,
    /// The time when a controller last renewed or released the Lease.
    pub renewed_at: Option<Timestamp>,
    /// True if a controller holds the Lease.
    pub is_held: bool,
    /// The duration of the Lease in seconds.
    pub holds_for: i64,
    /// The policies that the controller excludes.
    pub exclusion: Exclusion,
    /// The version of the controller. `None` for a controller that does not write it.
    pub version: Option<String>,
}

impl LeaseState {
    /// Returns the policies that the controller excludes. If the Lease cannot be read, no policy is excluded.
    #[must_use]
    pub fn exclusion(&self) -> Exclusion {
        match self {
            Self::Lease(facts) => facts.exclusion.clone(),
            Self::Missing | Self::Unreadable(_) => Exclusion::default(),
        }
    }
}

impl LeaseFacts {
    /// Returns the reason why no controller is the leader, or `None` if a controller is.
    fn no_leader(&self, now: Timestamp) -> Option<String> {
        let ago = |then: Timestamp| age::since(then, now);
        match self.renewed_at {
            Some(renewed) if !self.is_held => Some(format!(
                "the last leader released the Lease {} ago",
                ago(renewed)
            )),
            Some(renewed) if seconds_since(renewed, now) > self.holds_for => Some(format!(
                "the Lease was last renewed {} ago, and its duration is {} s",
                ago(renewed),
                self.holds_for
            )),
            Some(_) => None,
            None => Some("the Lease was never renewed".to_owned()),
        }
    }

    /// Returns the reason why statuses may be outdated, or `None` if they are current.
    fn staleness(&self, now: Timestamp) -> Option<String> {
        let sync_problem = match self.in_sync_at {
            None => Some("the controller has never been in sync".to_owned()),
            Some(then) if seconds_since(then, now) > MAX_AGE => Some(format!(
                "the controller was last in sync {} ago",
                age::since(then, now)
            )),
            Some(_) => None,
        };
        match (self.no_leader(now), sync_problem) {
            (Some(why), Some(sync_problem)) => {
                Some(format!("{sync_problem}; there is no leader, because {why}"))
            }
            (Some(why), None) => Some(format!("there is no leader, because {why}")),
            (None, Some(sync_problem)) => Some(format!(
                "{sync_problem}; it is running, see its log for the reason"
            )),
            (None, None) => None,
        }
    }
}

fn seconds_since(then: Timestamp, now: Timestamp) -> i64 {
    now.as_second().saturating_sub(then.as_second())
}

/// The state of the controller according to its Lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReport {
    /// The Lease, `<namespace>/<name>`.
    pub lease: String,
    /// The time when the controller was last in sync with the cluster; null if unknown.
    pub last_in_sync: Option<Timestamp>,
    /// The time when the Lease was last renewed; null if unknown.
    pub last_renewed: Option<Timestamp>,
    /// True if statuses are kept current. False if no controller leads, or if the controller has not been in sync for a
    /// minute. Null if the Lease does not exist or cannot be read.
    pub current: Option<bool>,
    /// A message, if the statuses are or may be outdated.
    pub note: Option<String>,
    /// False if the Lease does not exist.
    #[serde(skip)]
    pub is_lease_there: bool,
}

impl ControllerReport {
    /// Creates the report on a Lease at the time `now`.
    #[must_use]
    pub fn new(lease: &str, state: &LeaseState, now: Timestamp) -> Self {
        let none = LeaseFacts::default();
        let (facts, unknown) = match state {
            LeaseState::Lease(facts) => (facts, None),
            LeaseState::Missing => (
                &none,
                Some(format!(
                    "cannot determine whether the statuses are current: there is no Lease {lease}, which \
                     vap-status-controller creates if it runs with --leader-elect"
                )),
            ),
            LeaseState::Unreadable(reason) => (
                &none,
                Some(format!(
                    "cannot determine whether the statuses are current: Lease {lease}: {reason}"
                )),
            ),
        };
        let (current, note) = match unknown {
            Some(note) => (None, Some(note)),
            None => match facts.staleness(now) {
                Some(staleness) => (
                    Some(false),
                    Some(format!("statuses may be outdated: {staleness}")),
                ),
                None => (Some(true), None),
            },
        };
        Self {
            lease: lease.to_owned(),
            last_in_sync: facts.in_sync_at,
            last_renewed: facts.renewed_at,
            current,
            note,
            is_lease_there: *state != LeaseState::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[track_caller]
    fn check(state: &LeaseState, current: Option<bool>, note: Option<&str>) {
        let report = ControllerReport::new("ns/name", state, at(0));
        assert_eq!(report.current, current);
        assert_eq!(report.note.as_deref(), note);
    }

    fn facts(in_sync: Option<i64>, renewed: Option<i64>) -> LeaseFacts {
        LeaseFacts {
            in_sync_at: in_sync.map(at),
            renewed_at: renewed.map(at),
            is_held: true,
            holds_for: 15,
            exclusion: Exclusion::default(),
            version: None,
        }
    }

    fn lease(in_sync: Option<i64>, renewed: Option<i64>) -> LeaseState {
        LeaseState::Lease(facts(in_sync, renewed))
    }

    #[test]
    fn lease_with_old_sync_time_adds_note() {
        check(&lease(Some(-3), Some(-3)), Some(true), None);
        check(&lease(Some(-60), Some(-15)), Some(true), None);
        // A time in the future counts as current, because clocks differ.
        check(&lease(Some(300), Some(300)), Some(true), None);
        check(
            &lease(Some(-840), Some(-1)),
            Some(false),
            Some(
                "statuses may be outdated: the controller was last in sync 14m ago; it is running, see \
                 its log for the reason",
            ),
        );
        check(
            &lease(Some(-61), Some(-61)),
            Some(false),
            Some(
                "statuses may be outdated: the controller was last in sync 61s ago; there is no leader, because the \
                 Lease was last renewed 61s ago, and its duration is 15 s",
            ),
        );
    }

    #[test]
    fn expired_lease_adds_note() {
        check(
            &lease(Some(-16), Some(-16)),
            Some(false),
            Some(
                "statuses may be outdated: there is no leader, because the Lease was last renewed 16s ago, and its \
                 duration is 15 s",
            ),
        );
        check(
            &lease(Some(-100), Some(-59)),
            Some(false),
            Some(
                "statuses may be outdated: the controller was last in sync 100s ago; there is no leader, because the \
                 Lease was last renewed 59s ago, and its duration is 15 s",
            ),
        );
        let mut released = facts(Some(-5), Some(-4));
        (released.is_held, released.holds_for) = (false, 1);
        check(
            &LeaseState::Lease(released),
            Some(false),
            Some(
                "statuses may be outdated: there is no leader, because the last leader released the Lease 4s ago",
            ),
        );
        check(
            &lease(None, None),
            Some(false),
            Some(
                "statuses may be outdated: the controller has never been in sync; there is no leader, because the \
                 Lease was never renewed",
            ),
        );
    }

    #[test]
    fn sync_state_without_lease_is_unknown() {
        check(
            &LeaseState::Missing,
            None,
            Some(
                "cannot determine whether the statuses are current: there is no Lease ns/name, which \
                 vap-status-controller creates if it runs with --leader-elect",
            ),
        );
        check(
            &LeaseState::Unreadable("forbidden".to_owned()),
            None,
            Some("cannot determine whether the statuses are current: Lease ns/name: forbidden"),
        );
    }
}
