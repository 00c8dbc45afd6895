//! The rules of the leader election: a Lease determines which of several instances may write. They are the rules of
//! client-go. The functions are pure: they take timed observations of the Lease and return a decision.
//!
//! Clocks of different machines are not compared, and the times in the record are informational. A candidate takes over
//! when it has observed an unchanged record for the record's lease duration.
//!
//! Source: client-go `tools/leaderelection/leaderelection.go`, `LeaderElector.tryAcquireOrRenew`,
//! `LeaderElector.isLeaseValid`, `LeaderElector.release`, `NewLeaderElector`.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// The maximum factor by which jitter extends a wait.
///
/// Source: client-go `tools/leaderelection`, `JitterFactor`.
const JITTER_FACTOR: f64 = 1.2;

/// The maximum time of one status write.
pub(crate) const MAX_WRITE: Duration = Duration::from_secs(5);

/// The maximum time between two reads of the Lease by a standby, without jitter.
///
/// Differs: client-go reads every 1 to 2.2 retry periods. At that rate, a released Lease could stay free for more than
/// four seconds.
const MAX_LOOK: Duration = Duration::from_millis(500);

/// Timing of the leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long other instances wait after the last renewal by the leader before they take over.
    pub lease_duration: Duration,
    /// How long the leader tries to renew the Lease before it stops leading.
    pub renew_deadline: Duration,
    /// The time between two attempts to renew the Lease.
    pub retry_period: Duration,
}

impl Timing {
    /// Checks that a leader that cannot renew the Lease stops before another instance takes over.
    ///
    /// # Errors
    /// Returns an error message with the name of the invalid duration.
    pub fn check(&self) -> Result<(), String> {
        if self.lease_duration.subsec_nanos() != 0 {
            return Err("--lease-duration must be a whole number of seconds".to_owned());
        }
        if self.lease_duration <= self.renew_deadline {
            return Err("--lease-duration must be longer than --renew-deadline".to_owned());
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER_FACTOR) {
            return Err("--renew-deadline must be longer than 1.2 times --retry-period".to_owned());
        }
        Ok(())
    }

    /// Returns how long one status write may take. A write that starts just before the leader stops must end before
    /// another instance may write.
    pub(crate) fn write_limit(&self) -> Duration {
        let reserve = self.lease_duration.saturating_sub(self.renew_deadline);
        reserve.min(MAX_WRITE)
    }

    /// Returns the timeout of one attempt to renew the Lease. Two attempts fit into the renew deadline.
    ///
    /// Source: client-go `tools/leaderelection/resourcelock/interface.go`, `NewFromKubeconfig`.
    pub(crate) fn request_limit(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// Returns the time between two reads of the Lease by a standby. `random` is from 0 to 1.
    pub(crate) fn look_pause(&self, random: f64) -> Duration {
        let pause = self.retry_period.min(MAX_LOOK);
        pause.mul_f64(1.0 + random.clamp(0.0, 1.0) * (JITTER_FACTOR - 1.0))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ElectionRecord {
    /// The identity of the holder. Empty if the Lease is released.
    pub(crate) holder: String,
    pub(crate) duration_seconds: i32,
    pub(crate) acquire_time: Option<Timestamp>,
    pub(crate) renew_time: Option<Timestamp>,
    /// How often the holder has changed.
    pub(crate) transitions: i32,
}

impl From<&LeaseSpec> for ElectionRecord {
    fn from(spec: &LeaseSpec) -> Self {
        Self {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquire_time: spec.acquire_time.as_ref().map(|time| time.0),
            renew_time: spec.renew_time.as_ref().map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

impl ElectionRecord {
    /// Writes the record into `spec`. Keeps other fields of `spec`.
    pub(crate) fn write_to(&self, spec: &mut LeaseSpec) {
        spec.holder_identity = Some(self.holder.clone());
        spec.lease_duration_seconds = Some(self.duration_seconds);
        spec.acquire_time = self.acquire_time.map(MicroTime);
        spec.renew_time = self.renew_time.map(MicroTime);
        spec.lease_transitions = Some(self.transitions);
    }

    /// Returns the record that the holder writes when it releases the Lease.
    pub(crate) fn released(&self, wall: Timestamp) -> Self {
        Self {
            holder: String::new(),
            duration_seconds: 1,
            acquire_time: Some(wall),
            renew_time: Some(wall),
            transitions: self.transitions,
        }
    }
}

/// A record, and the time at which this content was first observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) record: ElectionRecord,
    pub(crate) since: Instant,
}

impl Observed {
    /// Returns the observation of `record` at `now`. If `before` is also an observation of `record`, returns `before`.
    pub(crate) fn next(before: Option<Self>, record: ElectionRecord, now: Instant) -> Self {
        match before {
            Some(before) if before.record == record => before,
            _ => Self { record, since: now },
        }
    }

    /// Returns the time at which another instance may take over if the record does not change.
    pub(crate) fn expires(&self) -> Instant {
        let seconds = u64::try_from(self.record.duration_seconds).unwrap_or(0);
        self.since + Duration::from_secs(seconds)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Another instance holds the Lease.
    Wait,
    /// Write this record, unless the Lease has changed.
    Write(ElectionRecord),
}

/// Returns the decision of the instance `identity`. `observed` is `None` if the Lease does not exist. Comparisons use
/// the monotonic time `now`. The wall-clock time `wall` is only written into the record.
pub(crate) fn decide(
    identity: &str,
    timing: &Timing,
    observed: Option<&Observed>,
    now: Instant,
    wall: Timestamp,
) -> Decision {
    let seconds = timing.lease_duration.as_secs();
    let mut record = ElectionRecord {
        holder: identity.to_owned(),
        duration_seconds: i32::try_from(seconds).unwrap_or(i32::MAX),
        acquire_time: Some(wall),
        renew_time: Some(wall),
        transitions: 0,
    };
    let Some(observed) = observed else {
        return Decision::Write(record);
    };
    let old = &observed.record;
    if old.holder == identity {
        record.acquire_time = old.acquire_time;
        record.transitions = old.transitions;
        return Decision::Write(record);
    }
    if !old.holder.is_empty() && now < observed.expires() {
        return Decision::Wait;
    }
    record.transitions = old.transitions.saturating_add(1);
    Decision::Write(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    fn wall(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn record(holder: &str) -> ElectionRecord {
        ElectionRecord {
            holder: holder.to_owned(),
            duration_seconds: 15,
            acquire_time: Some(wall(100)),
            renew_time: Some(wall(110)),
            transitions: 3,
        }
    }

    /// Returns the decision of the instance `a` if the record `seen` has been unchanged for `age`. The wall clock shows
    /// 200.
    fn decide_after(seen: Option<ElectionRecord>, age: Duration) -> Decision {
        let since = Instant::now();
        let observed = seen.map(|record| Observed { record, since });
        decide("a", &TIMING, observed.as_ref(), since + age, wall(200))
    }

    #[track_caller]
    fn written(decision: Decision) -> (String, i64, i64, i32) {
        let Decision::Write(record) = decision else {
            panic!("{decision:?}");
        };
        assert_eq!(record.duration_seconds, 15);
        let seconds = |time: Option<Timestamp>| time.unwrap().as_second();
        (
            record.holder,
            seconds(record.acquire_time),
            seconds(record.renew_time),
            record.transitions,
        )
    }

    #[test]
    fn missing_lease_is_created() {
        let decision = decide_after(None, Duration::ZERO);
        assert_eq!(written(decision), ("a".to_owned(), 200, 200, 0));
    }

    #[test]
    fn own_lease_is_renewed() {
        for age in [0, 14, 16, 1000] {
            let decision = decide_after(Some(record("a")), Duration::from_secs(age));
            assert_eq!(written(decision), ("a".to_owned(), 100, 200, 3));
        }
    }

    #[test]
    fn expired_lease_is_taken_over() {
        let just_before = Duration::from_secs(15) - Duration::from_nanos(1);
        assert_eq!(decide_after(Some(record("b")), just_before), Decision::Wait);
        let decision = decide_after(Some(record("b")), Duration::from_secs(15));
        assert_eq!(written(decision), ("a".to_owned(), 200, 200, 4));
    }

    #[test]
    fn lease_expires_after_duration_of_its_record() {
        let seen = ElectionRecord {
            duration_seconds: 60,
            ..record("b")
        };
        let decision = decide_after(Some(seen.clone()), Duration::from_secs(59));
        assert_eq!(decision, Decision::Wait);
        let decision = decide_after(Some(seen), Duration::from_secs(60));
        assert_eq!(written(decision).3, 4);
    }

    #[test]
    fn clock_of_lease_holder_is_ignored() {
        for renewed in [-1_000_000, 0, 1_000_000] {
            let seen = ElectionRecord {
                renew_time: Some(wall(200 + renewed)),
                ..record("b")
            };
            assert_eq!(
                decide_after(Some(seen.clone()), Duration::from_secs(14)),
                Decision::Wait
            );
            let decision = decide_after(Some(seen), Duration::from_secs(15));
            assert_eq!(written(decision).0, "a");
        }
    }

    #[test]
    fn released_lease_is_taken_over_immediately() {
        let released = record("b").released(wall(150));
        assert_eq!(
            (released.holder.as_str(), released.duration_seconds),
            ("", 1)
        );
        let decision = decide_after(Some(released), Duration::ZERO);
        assert_eq!(written(decision), ("a".to_owned(), 200, 200, 4));
    }

    #[test]
    fn observed_lease_is_new_only_if_record_changes() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let first = Observed::next(None, record("b"), start);
        let same = Observed::next(Some(first.clone()), record("b"), after(9));
        assert_eq!(same, first);
        let renewed = ElectionRecord {
            renew_time: Some(wall(112)),
            ..record("b")
        };
        let renewed = Observed::next(Some(same), renewed, after(10));
        assert_eq!(renewed.since, after(10));
        assert_eq!(
            decide("a", &TIMING, Some(&renewed), after(24), wall(0)),
            Decision::Wait
        );
    }

    #[test]
    fn lease_with_invalid_duration_is_taken_over() {
        let empty = ElectionRecord::from(&LeaseSpec::default());
        assert_eq!(empty, ElectionRecord::default());
        assert_eq!(written(decide_after(Some(empty), Duration::ZERO)).3, 1);
        let negative = ElectionRecord {
            duration_seconds: -5,
            transitions: i32::MAX,
            ..record("b")
        };
        let decision = decide_after(Some(negative), Duration::ZERO);
        assert_eq!(written(decision).3, i32::MAX);
    }

    #[test]
    fn written_election_record_keeps_other_fields_of_lease() {
        let mut spec = LeaseSpec {
            strategy: Some("x".to_owned()),
            ..LeaseSpec::default()
        };
        record("a").write_to(&mut spec);
        assert_eq!(ElectionRecord::from(&spec), record("a"));
        assert_eq!(spec.strategy.as_deref(), Some("x"));
    }

    #[test]
    fn timing_that_allows_two_leaders_is_rejected() {
        let timing = |lease, renew, retry| Timing {
            lease_duration: Duration::from_millis(lease),
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
        };
        assert_eq!(TIMING.check(), Ok(()));
        assert_eq!(timing(3000, 2000, 500).check(), Ok(()));
        for (timing, text) in [
            (
                timing(10_000, 10_000, 2000),
                "--lease-duration must be longer",
            ),
            (
                timing(15_000, 2400, 2000),
                "--renew-deadline must be longer",
            ),
            (timing(15_500, 10_000, 2000), "whole number of seconds"),
        ] {
            let error = timing.check().unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn time_limit_of_writes_ends_before_takeover() {
        for (lease, renew) in [(15, 10), (3, 2), (60, 10), (137, 107)] {
            let timing = Timing {
                lease_duration: Duration::from_secs(lease),
                renew_deadline: Duration::from_secs(renew),
                ..TIMING
            };
            assert!(timing.renew_deadline + timing.write_limit() <= timing.lease_duration);
            assert!(timing.write_limit() <= MAX_WRITE && !timing.write_limit().is_zero());
        }
        assert_eq!(TIMING.write_limit(), MAX_WRITE);
    }

    #[test]
    fn pause_between_lease_reads_is_bounded_and_has_jitter() {
        assert_eq!(TIMING.look_pause(0.0), Duration::from_millis(500));
        assert_eq!(TIMING.look_pause(1.0), Duration::from_millis(600));
        let short = Timing {
            retry_period: Duration::from_millis(200),
            ..TIMING
        };
        assert_eq!(short.look_pause(0.0), Duration::from_millis(200));
    }
}
