//! When the controller was last in step with the cluster, by what its Lease tells: a status may be old, and
//! nothing in it says so.
//!
//! Takes what was read of the Lease and the present moment, gives what to say. Knows no cluster.

use jiff::Timestamp;
use serde::Serialize;

use super::age;
use crate::status::exclusion::Exclusion;

/// For how long what the controller said of itself counts, in seconds. It says so every few.
const MAX_AGE: i64 = 60;

/// State of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// There is none.
    Missing,
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It is there.
    Lease(LeaseFacts),
}

/// Facts from a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseFacts {
    /// When the controller last said that it was in step.
    pub in_sync_at: Option<Timestamp>,
    /// When a controller last renewed it, or gave it up.
    pub renewed_at: Option<Timestamp>,
    /// True if a controller holds it.
    pub is_held: bool,
    /// For how many seconds it holds after it was renewed.
    pub holds_for: i64,
    /// Which policies the controller leaves alone.
    pub exclusion: Exclusion,
}

impl Seen {
    /// Which policies the controller leaves alone, as far as that is known.
    #[must_use]
    pub fn exclusion(&self) -> Exclusion {
        match self {
            Self::Lease(facts) => facts.exclusion.clone(),
            Self::Missing | Self::Unreadable(_) => Exclusion::default(),
        }
    }
}

impl LeaseFacts {
    /// Why no controller leads, where none does.
    fn no_leader(&self, now: Timestamp) -> Option<String> {
        let ago = |then: Timestamp| age::since(then, now);
        match self.renewed_at {
            Some(renewed) if !self.is_held => Some(format!(
                "the last one gave the Lease up {} ago",
                ago(renewed)
            )),
            Some(renewed) if seconds_since(renewed, now) > self.holds_for => Some(format!(
                "the Lease was last renewed {} ago, and holds for {} s",
                ago(renewed),
                self.holds_for
            )),
            Some(_) => None,
            None => Some("the Lease was never renewed".to_owned()),
        }
    }

    /// Why statuses may not be current, where they may not.
    fn trouble(&self, now: Timestamp) -> Option<String> {
        let in_sync = match self.in_sync_at {
            None => Some("the controller has not been in step yet".to_owned()),
            Some(then) if seconds_since(then, now) > MAX_AGE => Some(format!(
                "the controller was last in step {} ago",
                age::since(then, now)
            )),
            Some(_) => None,
        };
        match (self.no_leader(now), in_sync) {
            (Some(why), Some(in_sync)) => {
                Some(format!("{in_sync}; no controller leads now: {why}"))
            }
            (Some(why), None) => Some(format!("no controller leads now: {why}")),
            (None, Some(in_sync)) => Some(format!(
                "{in_sync}; it is running, and its log says what it waits for"
            )),
            (None, None) => None,
        }
    }
}

fn seconds_since(then: Timestamp, now: Timestamp) -> i64 {
    now.as_second().saturating_sub(then.as_second())
}

/// State of the controller, as its Lease tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReport {
    /// Its Lease, `<namespace>/<name>`.
    pub lease: String,
    /// When it was last in step with the cluster; null where that is not known.
    pub last_in_sync: Option<Timestamp>,
    /// When it last renewed its Lease; null where that is not known.
    pub last_renewed: Option<Timestamp>,
    /// True if statuses are known to be kept current: false where no controller leads, or it has not
    /// been in step for a minute, null where there is no Lease or it cannot be read.
    pub current: Option<bool>,
    /// The same for people, where there is something to say.
    pub note: Option<String>,
    /// True if there is a Lease, as far as that is known.
    #[serde(skip)]
    pub is_lease_there: bool,
}

impl ControllerReport {
    /// The report about a Lease at `now`.
    #[must_use]
    pub fn of(lease: &str, seen: &Seen, now: Timestamp) -> Self {
        let none = LeaseFacts::default();
        let (facts, unknown) = match seen {
            Seen::Lease(facts) => (facts, None),
            Seen::Missing => (
                &none,
                Some(format!(
                    "how current the statuses are is not known: there is no Lease {lease}, which \
                     vap-status-controller keeps where it runs with --leader-elect"
                )),
            ),
            Seen::Unreadable(reason) => (
                &none,
                Some(format!(
                    "whether the statuses are current cannot be told: Lease {lease}: {reason}"
                )),
            ),
        };
        let (current, note) = match unknown {
            Some(note) => (None, Some(note)),
            None => match facts.trouble(now) {
                Some(trouble) => (Some(false), Some(format!("statuses may be old: {trouble}"))),
                None => (Some(true), None),
            },
        };
        Self {
            lease: lease.to_owned(),
            last_in_sync: facts.in_sync_at,
            last_renewed: facts.renewed_at,
            current,
            note,
            is_lease_there: *seen != Seen::Missing,
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
    fn check(seen: &Seen, current: Option<bool>, note: Option<&str>) {
        let report = ControllerReport::of("ns/name", seen, at(0));
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
        }
    }

    fn lease(in_sync: Option<i64>, renewed: Option<i64>) -> Seen {
        Seen::Lease(facts(in_sync, renewed))
    }

    #[test]
    fn what_is_old_is_said_to_be() {
        check(&lease(Some(-3), Some(-3)), Some(true), None);
        check(&lease(Some(-60), Some(-15)), Some(true), None);
        // Clocks differ.
        check(&lease(Some(300), Some(300)), Some(true), None);
        check(
            &lease(Some(-840), Some(-1)),
            Some(false),
            Some(
                "statuses may be old: the controller was last in step 14m ago; it is running, and its \
                 log says what it waits for",
            ),
        );
        check(
            &lease(Some(-61), Some(-61)),
            Some(false),
            Some(
                "statuses may be old: the controller was last in step 61s ago; no controller leads now: the \
                 Lease was last renewed 61s ago, and holds for 15 s",
            ),
        );
    }

    #[test]
    fn a_controller_whose_lease_has_expired_is_not_said_to_run() {
        check(
            &lease(Some(-16), Some(-16)),
            Some(false),
            Some(
                "statuses may be old: no controller leads now: the Lease was last renewed 16s ago, and holds \
                 for 15 s",
            ),
        );
        check(
            &lease(Some(-100), Some(-59)),
            Some(false),
            Some(
                "statuses may be old: the controller was last in step 100s ago; no controller leads now: the \
                 Lease was last renewed 59s ago, and holds for 15 s",
            ),
        );
        let mut released = facts(Some(-5), Some(-4));
        (released.is_held, released.holds_for) = (false, 1);
        check(
            &Seen::Lease(released),
            Some(false),
            Some(
                "statuses may be old: no controller leads now: the last one gave the Lease up 4s ago",
            ),
        );
        check(
            &lease(None, None),
            Some(false),
            Some(
                "statuses may be old: the controller has not been in step yet; no controller leads now: the \
                 Lease was never renewed",
            ),
        );
    }

    #[test]
    fn without_a_lease_nothing_is_claimed() {
        check(
            &Seen::Missing,
            None,
            Some(
                "how current the statuses are is not known: there is no Lease ns/name, which \
                 vap-status-controller keeps where it runs with --leader-elect",
            ),
        );
        check(
            &Seen::Unreadable("forbidden".to_owned()),
            None,
            Some("whether the statuses are current cannot be told: Lease ns/name: forbidden"),
        );
    }
}
