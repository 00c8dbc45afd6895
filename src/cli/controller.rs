//! When the controller was last in step with the cluster, by what its Lease tells: a status may be old, and
//! nothing in it says so.
//!
//! Takes what was read of the Lease and the present moment, gives what to say. Knows no cluster.

use jiff::Timestamp;
use serde::Serialize;

use super::age;

/// The annotation of the Lease in which the controller says that it is in step.
pub(crate) const IN_STEP_AT: &str = "vap-status.dev/in-step-at";

/// For how long what the controller said of itself counts, in seconds. It says so every few.
const MAX_AGE: i64 = 60;

/// What is known of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// There is none.
    Missing,
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It is there.
    Lease {
        /// When the controller last said that it was in step.
        in_step_at: Option<Timestamp>,
        /// When a controller last renewed it.
        renewed_at: Option<Timestamp>,
    },
}

/// What the Lease tells of the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReport {
    /// Its Lease, `<namespace>/<name>`.
    pub lease: String,
    /// When it was last in step with the cluster; null where that is not known.
    pub last_in_step: Option<Timestamp>,
    /// When it last renewed its Lease; null where that is not known.
    pub last_renewed: Option<Timestamp>,
    /// Whether statuses are known to be kept current: false where the controller has not been in step for a
    /// minute, null where the Lease cannot be read.
    pub current: Option<bool>,
    /// The same for people, where there is something to say.
    pub note: Option<String>,
}

impl ControllerReport {
    /// The report about a Lease at `now`.
    #[must_use]
    pub fn of(lease: &str, seen: &Seen, now: Timestamp) -> Self {
        let is_old = |then: Timestamp| now.as_second().saturating_sub(then.as_second()) > MAX_AGE;
        let ago = |then: Timestamp| age::since(then, now);
        let (last_in_step, last_renewed) = match seen {
            Seen::Lease {
                in_step_at,
                renewed_at,
            } => (*in_step_at, *renewed_at),
            Seen::Missing | Seen::Unreadable(_) => (None, None),
        };
        let is_seen = match last_renewed {
            Some(renewed) if is_old(renewed) => {
                format!("; it was last seen {} ago: is it running?", ago(renewed))
            }
            Some(_) => "; it is running, and its log says what it waits for".to_owned(),
            None => String::new(),
        };
        let (current, note) = match seen {
            Seen::Missing => (
                Some(false),
                Some(format!(
                    "statuses may be old: there is no Lease {lease}, by which vap-status-controller tells \
                     that it is running; --controller-namespace and --lease-name name another"
                )),
            ),
            Seen::Unreadable(reason) => (
                None,
                Some(format!(
                    "whether the statuses are current cannot be told: Lease {lease}: {reason}"
                )),
            ),
            Seen::Lease { .. } => match last_in_step {
                None => (
                    Some(false),
                    Some(format!(
                        "statuses may be old: the controller has not been in step yet{is_seen}"
                    )),
                ),
                Some(then) if is_old(then) => (
                    Some(false),
                    Some(format!(
                        "statuses may be old: the controller was last in step {} ago{is_seen}",
                        ago(then)
                    )),
                ),
                Some(_) => (Some(true), None),
            },
        };
        Self {
            lease: lease.to_owned(),
            last_in_step,
            last_renewed,
            current,
            note,
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

    fn lease(in_step: Option<i64>, renewed: Option<i64>) -> Seen {
        Seen::Lease {
            in_step_at: in_step.map(at),
            renewed_at: renewed.map(at),
        }
    }

    #[test]
    fn what_is_old_is_said_to_be() {
        check(&lease(Some(-3), Some(-3)), Some(true), None);
        check(&lease(Some(-60), None), Some(true), None);
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
                "statuses may be old: the controller was last in step 61s ago; it was last seen 61s \
                 ago: is it running?",
            ),
        );
        check(
            &lease(None, None),
            Some(false),
            Some("statuses may be old: the controller has not been in step yet"),
        );
        check(
            &Seen::Missing,
            Some(false),
            Some(
                "statuses may be old: there is no Lease ns/name, by which vap-status-controller tells \
                 that it is running; --controller-namespace and --lease-name name another",
            ),
        );
        check(
            &Seen::Unreadable("forbidden".to_owned()),
            None,
            Some("whether the statuses are current cannot be told: Lease ns/name: forbidden"),
        );
    }
}
