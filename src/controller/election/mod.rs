//! Leader election: waits for the Lease as a standby, renews it as the leader, and releases it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::error::{Error, within};
use crate::controller::context::Context;
use crate::controller::leadership::Leadership;
use crate::controller::leadership::lease::{Decision, ElectionRecord, Observed, Timing, decide};
use crate::controller::process::supervisor::Heartbeat;
use crate::status::lease::{IN_SYNC_AT, VERSION};
use crate::telemetry::metrics::ErrorReason;

/// The election counts as hung if its last attempt is older than the lease duration plus this time.
///
/// Source: Kubernetes `cmd/kube-controller-manager/app/controllermanager.go`, `NewLeaderHealthzAdaptor`.
const HUNG_AFTER: Duration = Duration::from_secs(20);

/// How long the API server may reject the certificates or credentials of a standby before the standby exits. A
/// restarted process loads them again. (A running process loads replaced files within a minute.)
const REJECTED_LIMIT: Duration = Duration::from_secs(120);

/// The timeout for releasing the Lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// The Lease and the identity of this instance.
#[derive(Clone, Debug)]
pub struct Election {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The name of this instance in the Lease. It must be unique.
    pub identity: String,
    /// The timing of the election.
    pub timing: Timing,
}

pub(crate) struct Elector {
    context: Arc<Context>,
    election: Election,
    leases: Api<Lease>,
    leadership: Leadership,
    heartbeat: Heartbeat,
    /// The Lease as last read or written. A write fails if the Lease has changed since then.
    live: Option<Lease>,
    observed: Option<Observed>,
    /// The last logged holder of the Lease.
    logged_holder: Option<String>,
}

impl Elector {
    /// Creates an elector. It starts as a standby.
    pub(crate) fn new(context: Arc<Context>, election: Election) -> Self {
        let leadership = context.leadership.clone();
        leadership.stand_by(election.timing.write_limit());
        context.metrics.set_leading(false);
        let limit = election.timing.lease_duration + HUNG_AFTER;
        Self {
            leases: Api::namespaced(context.client.clone(), &election.namespace),
            heartbeat: context.supervisor.heartbeat("lease", limit),
            leadership,
            context,
            election,
            live: None,
            observed: None,
            logged_holder: None,
        }
    }

    /// Waits for the Lease as a standby, then leads. Releases the Lease when `released` becomes true.
    ///
    /// # Errors
    /// Returns why the Lease was lost or could not be read. Then the process must exit.
    pub(crate) async fn run(mut self, mut released: watch::Receiver<bool>) -> Result<(), String> {
        // The wait also ends if the sender is dropped. This counts as a request to release the Lease.
        let mut release = std::pin::pin!(async move {
            drop(released.wait_for(|released| *released).await);
        });
        tokio::select! {
            outcome = self.stand_by() => {
                let renewed = match outcome {
                    Ok(renewed) => renewed,
                    Err(reason) => {
                        self.leadership.end();
                        return Err(reason);
                    }
                };
                let lost = tokio::select! {
                    lost = self.lead(renewed) => lost,
                    () = &mut release => {
                        self.release().await;
                        return Ok(());
                    }
                };
                self.leadership.end();
                Err(lost)
            }
            () = &mut release => Ok(()),
        }
    }

    /// Waits until this instance holds the Lease. Returns the start time of the successful attempt.
    ///
    /// # Errors
    /// Returns an error if certificates or credentials are rejected for [`REJECTED_LIMIT`].
    async fn stand_by(&mut self) -> Result<Instant, String> {
        let mut rejected_since = None;
        loop {
            let start = Instant::now();
            match within(self.election.timing.request_limit(), self.attempt()).await {
                Ok(true) => return Ok(start),
                Ok(false) => {
                    rejected_since = None;
                    self.leadership.set_problem(None);
                }
                Err(error) => {
                    self.log_error(&error);
                    if is_rejected(&error) {
                        let since = *rejected_since.get_or_insert(start);
                        self.check_rejected(since.elapsed(), &error)?;
                    }
                }
            }
            self.heartbeat.beat();
            let pause = self.election.timing.look_pause(random());
            tokio::time::sleep(pause).await;
        }
    }

    /// Handles certificates or credentials that have been rejected for the time `elapsed`. After the renew deadline,
    /// this instance becomes unready, since its watches are rejected too.
    ///
    /// # Errors
    /// Returns an error if `elapsed` exceeds [`REJECTED_LIMIT`].
    fn check_rejected(&self, elapsed: Duration, error: &Error) -> Result<(), String> {
        let text = format!(
            "the Lease {} has been unreadable for {} s: {error}",
            self.lease_name(),
            elapsed.as_secs()
        );
        if elapsed >= REJECTED_LIMIT {
            return Err(text);
        }
        if elapsed >= self.election.timing.renew_deadline {
            self.leadership.set_problem(Some(text));
        }
        Ok(())
    }

    /// Leads as long as the Lease can be renewed. Returns why the Lease was lost.
    async fn lead(&mut self, mut renewed: Instant) -> String {
        let timing = self.election.timing;
        self.renewed(renewed);
        tracing::info!(
            lease = self.lease_name(),
            identity = self.election.identity,
            "acquired the Lease"
        );
        // As a standby, this instance wrote no statuses. So all subjects are queued now.
        self.context.touch_all();
        let mut next = renewed + timing.retry_period;
        loop {
            tokio::time::sleep_until(next).await;
            let start = Instant::now();
            let end = renewed + timing.renew_deadline;
            let limit = timing
                .request_limit()
                .min(end.saturating_duration_since(start));
            let outcome = within(limit, self.attempt()).await;
            self.heartbeat.beat();
            let error = match outcome {
                Ok(true) => {
                    renewed = start;
                    next = start + timing.retry_period;
                    self.renewed(renewed);
                    continue;
                }
                Ok(false) => return format!("the Lease was lost to {}", self.holder()),
                Err(error) => error,
            };
            self.log_error(&error);
            next = Instant::now() + timing.retry_period;
            if next >= end {
                return format!(
                    "renewing the Lease {} has failed for {} s, and the next attempt would exceed the renew \
                     deadline of {} s: {error}",
                    self.lease_name(),
                    renewed.elapsed().as_secs(),
                    timing.renew_deadline.as_secs()
                );
            }
        }
    }

    /// Records that the attempt that started at `start` has acquired or renewed the Lease.
    fn renewed(&self, start: Instant) {
        let timing = &self.election.timing;
        let last_start = start + timing.lease_duration.saturating_sub(timing.write_limit());
        self.leadership.set_problem(None);
        if self.leadership.lead(last_start) {
            self.context.metrics.set_leading(true);
        }
    }

    /// Acquires or renews the Lease if the election rules allow it. Returns true if this instance then holds the Lease.
    async fn attempt(&mut self) -> Result<bool, Error> {
        let is_ours = self.holder() == self.election.identity;
        if is_ours && let Some(live) = self.live.take() {
            match self.decide_and_write(Some(live)).await {
                // Another client has changed or deleted the Lease, so it is read again below.
                Err(error)
                    if matches!(
                        error.reason(),
                        ErrorReason::Conflict | ErrorReason::NotFound
                    ) => {}
                outcome => return outcome,
            }
        }
        let live = self.get().await?;
        match self.decide_and_write(live).await {
            // Another instance wrote the Lease first. The next attempt reads it again.
            Err(error) if error.reason() == ErrorReason::Conflict => Ok(false),
            outcome => outcome,
        }
    }

    async fn get(&self) -> Result<Option<Lease>, Error> {
        match self
            .leases
            .get(&self.election.name)
            .await
            .map_err(Error::from)
        {
            Ok(lease) => Ok(Some(lease)),
            Err(error) if error.reason() == ErrorReason::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn decide_and_write(&mut self, live: Option<Lease>) -> Result<bool, Error> {
        let now = Instant::now();
        let wall = (self.context.now)();
        self.observe(live.as_ref(), now);
        let Election {
            identity, timing, ..
        } = &self.election;
        let decision = decide(identity, timing, self.observed.as_ref(), now, wall);
        let Decision::Write(record) = decision else {
            self.live = live;
            self.log_holder();
            return Ok(false);
        };
        let exists = live.is_some();
        let mut lease = live.unwrap_or_else(|| self.new_lease());
        record.write_to(lease.spec.get_or_insert_default());
        let mut annotations = lease.metadata.annotations.take().unwrap_or_default();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        annotations.insert(VERSION.to_owned(), version);
        self.context.settings.exclusion.annotate(&mut annotations);
        if self.context.readiness.is_all_in_sync() {
            let wall = wall.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            annotations.insert(IN_SYNC_AT.to_owned(), wall);
        }
        lease.metadata.annotations = Some(annotations);
        self.write(&lease, exists).await?;
        Ok(true)
    }

    /// Writes the Lease. Fails with a conflict if the Lease has changed since it was read.
    async fn write(&mut self, lease: &Lease, exists: bool) -> Result<(), Error> {
        let params = PostParams::default();
        let written = if exists {
            self.leases
                .replace(&self.election.name, &params, lease)
                .await?
        } else {
            self.leases.create(&params, lease).await?
        };
        self.observe(Some(&written), Instant::now());
        self.live = Some(written);
        Ok(())
    }

    fn observe(&mut self, live: Option<&Lease>, now: Instant) {
        let before = self.observed.take();
        self.observed = live.map(|lease| {
            let record = lease
                .spec
                .as_ref()
                .map(ElectionRecord::from)
                .unwrap_or_default();
            Observed::next(before, record, now)
        });
    }

    fn new_lease(&self) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.election.name.clone()),
                namespace: Some(self.election.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        }
    }

    /// Releases the Lease, if this instance holds it.
    async fn release(&mut self) {
        self.context.metrics.set_leading(false);
        match within(RELEASE_TIMEOUT, self.try_release()).await {
            Ok(true) => tracing::info!(lease = self.lease_name(), "released the Lease"),
            Ok(false) => {}
            Err(error) => tracing::warn!(
                lease = self.lease_name(),
                %error,
                "cannot release the Lease; another instance acquires the Lease when it expires"
            ),
        }
    }

    async fn try_release(&mut self) -> Result<bool, Error> {
        loop {
            // The Lease is read again, since an attempt that timed out may have written it.
            let Some(mut lease) = self.get().await? else {
                return Ok(false);
            };
            let spec = lease.spec.get_or_insert_default();
            let record = ElectionRecord::from(&*spec);
            if record.holder != self.election.identity {
                return Ok(false);
            }
            record.released((self.context.now)()).write_to(spec);
            match self.write(&lease, true).await {
                Err(error) if error.reason() == ErrorReason::Conflict => {}
                outcome => return outcome.map(|()| true),
            }
        }
    }

    /// Returns the last observed holder of the Lease. Empty if there is no Lease or holder.
    fn holder(&self) -> &str {
        let record = self.observed.as_ref().map(|observed| &observed.record);
        record.map_or("", |record| record.holder.as_str())
    }

    fn lease_name(&self) -> String {
        format!("{}/{}", self.election.namespace, self.election.name)
    }

    fn log_holder(&mut self) {
        let holder = self.holder().to_owned();
        if self.logged_holder.as_deref() != Some(&holder) {
            tracing::info!(lease = self.lease_name(), holder, "waiting for the Lease");
            self.logged_holder = Some(holder);
        }
    }

    /// Logs an error about the Lease once per minute, with a hint.
    fn log_error(&self, error: &Error) {
        let Election {
            namespace, name, ..
        } = &self.election;
        if error.reason() == ErrorReason::Forbidden {
            let text = format!(
                "cannot read or write the Lease {name} ({error}): grant `get` and `update` on this Lease, and \
                 `create` on `leases` (coordination.k8s.io), in the Role vap-status-controller-lease of the namespace \
                 {namespace}"
            );
            if self.context.log_throttle.is_due("lease forbidden") {
                tracing::error!("{text}; until then this instance cannot lead");
            }
            self.leadership.set_problem(Some(text));
        } else if self.context.log_throttle.is_due("lease") {
            let hint = if error.reason() == ErrorReason::NotFound {
                "; check --lease-namespace"
            } else {
                ""
            };
            tracing::warn!(
                lease = self.lease_name(),
                %error,
                "cannot read or write the Lease, retrying{hint}"
            );
        }
    }
}

/// Returns true if the API server rejects the certificates or credentials. A new process loads them again and may
/// succeed.
fn is_rejected(error: &Error) -> bool {
    error.is_certificate_error() || error.reason() == ErrorReason::Unauthorized
}

/// Returns a number from 0 to 1 for jitter. It need not be cryptographically random.
fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let bits = RandomState::new().build_hasher().finish();
    f64::from(u16::try_from(bits & 0xffff).unwrap_or_default()) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests;
