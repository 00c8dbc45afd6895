//! Checks that no controller leads, since a leader would write the cleared statuses again.
//!
//! The check polls the Lease until it is renewed or released, or expires. A running leader renews the Lease every few
//! seconds, and a stopped leader has released it. The Lease of a killed leader expires.
//!
//! Like a standby, the check measures the lease duration with its own clock. Times in the Lease are not compared with
//! the local clock, since clocks of machines differ.

use std::io::Write;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::time::Instant;

use super::output::print_line;
use crate::cluster::error::{Error, within};
use crate::controller::leadership::lease::{ElectionRecord, Observed};
use crate::controller::reconcile::clear_status::TIMEOUT;
use crate::telemetry::metrics::ErrorReason;

/// The time between two polls of the Lease.
const PAUSE: Duration = Duration::from_millis(500);

/// The maximum time for which the Lease is polled, even if the lease duration is longer.
const MAX_WATCH: Duration = Duration::from_secs(300);

/// Reads the Lease to determine whether a controller leads.
#[derive(Clone, Debug)]
pub(super) struct Leader {
    leases: Api<Lease>,
    namespace: String,
    name: String,
}

/// The reason why the command clears nothing.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The Lease was renewed during the check, so a controller is running.
    Leads { holder: String },
    /// The Lease has a holder and was not renewed, but has not expired within [`MAX_WATCH`].
    Held { holder: String },
    /// The Lease cannot be read.
    Unknown(Error),
}

impl Leader {
    pub(super) fn new(client: &Client, namespace: String, name: String) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), &namespace),
            namespace,
            name,
        }
    }

    /// Checks that no controller leads. If the Lease has a holder, waits until the Lease expires.
    ///
    /// # Errors
    /// Returns the obstacle if a controller may be leading.
    pub(super) async fn check_no_leader(&self, err: &mut dyn Write) -> Result<(), Obstacle> {
        let start = Instant::now();
        let mut first: Option<Observed> = None;
        loop {
            let Some(record) = self.record().await.map_err(Obstacle::Unknown)? else {
                let name = self.full_name();
                let text =
                    "cannot determine whether a controller without --leader-elect is running";
                print_line(err, format_args!("there is no Lease {name}: {text}"));
                return Ok(());
            };
            if record.holder.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            let holder = record.holder.clone();
            let is_first = first.is_none();
            let seen = Observed::next(first.take(), record, now);
            if !is_first && seen.since == now {
                return Err(Obstacle::Leads { holder });
            }
            if now >= seen.expires() {
                return Ok(());
            }
            if start.elapsed() >= MAX_WATCH {
                return Err(Obstacle::Held { holder });
            }
            if is_first {
                let (name, seconds) = (self.full_name(), seen.record.duration_seconds);
                print_line(
                    err,
                    format_args!(
                        "{holder} holds the Lease {name}: waiting up to {seconds} s to see whether it is renewed"
                    ),
                );
            }
            first = Some(seen);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the current holder of the Lease. `None` if no controller holds it or the Lease cannot be read.
    pub(super) async fn holder(&self) -> Option<String> {
        let record = self.record().await.ok().flatten()?;
        (!record.holder.is_empty()).then_some(record.holder)
    }

    async fn record(&self) -> Result<Option<ElectionRecord>, Error> {
        match within(TIMEOUT, self.leases.get(&self.name)).await {
            Ok(lease) => Ok(Some(
                lease
                    .spec
                    .as_ref()
                    .map(ElectionRecord::from)
                    .unwrap_or_default(),
            )),
            Err(error) if error.reason() == ErrorReason::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns `<namespace>/<name>` of the Lease.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Returns the error message for `obstacle`, with a hint about how to remove it.
    pub(super) fn remedy(&self, obstacle: &Obstacle) -> String {
        let name = self.full_name();
        let stop = format!(
            "stop it first, for example with `kubectl -n {} scale deployment -l app.kubernetes.io/name=vap-status-controller --replicas=0`",
            self.namespace
        );
        match obstacle {
            Obstacle::Leads { holder } => format!(
                "nothing was cleared: the controller {holder} is running, renews the Lease {name} and would write \
                 the statuses again; {stop}, or set --force"
            ),
            Obstacle::Held { holder } => format!(
                "nothing was cleared: {holder} holds the Lease {name} longer than this command waits; {stop}, \
                 then set --force"
            ),
            Obstacle::Unknown(error) => format!(
                "nothing was cleared: cannot determine whether a controller is running, since the Lease {name} \
                 cannot be read: {error}; grant the permission to get leases.coordination.k8s.io in that namespace, \
                 or set --force if none is running"
            ),
        }
    }
}
