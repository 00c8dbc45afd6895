//! Check for a leading controller, which would write again what is cleared.
//!
//! The check follows the rule of a standby: it watches the Lease for as long as the Lease holds, as only the local
//! clock shows when it was renewed. A leader renews it every few seconds, a controller that was stopped has
//! released it, and a Lease of a killed controller expires.

use std::io::Write;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::time::Instant;

use super::output::say;
use crate::cluster::error::{Error, within};
use crate::controller::leadership::lease::{ElectionRecord, Observed};
use crate::controller::reconcile::clear_status::TIMEOUT;
use crate::telemetry::metrics::ErrorReason;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest time for which a Lease is watched, whatever it says of how long it holds.
const MAX_WATCH: Duration = Duration::from_secs(300);

/// The Lease of the controller.
#[derive(Clone, Debug)]
pub(super) struct Leader {
    leases: Api<Lease>,
    namespace: String,
    name: String,
}

/// Why nothing is cleared.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// A controller leads.
    Leads { holder: String },
    /// The Lease is held, and may be held for longer than anybody waits.
    Held { holder: String },
    /// It cannot be told.
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

    /// Makes sure that no controller leads.
    ///
    /// # Errors
    /// The reason why that is not sure.
    pub(super) async fn is_gone(&self, err: &mut dyn Write) -> Result<(), Obstacle> {
        let start = Instant::now();
        let mut first: Option<Observed> = None;
        loop {
            let Some(record) = self.record().await.map_err(Obstacle::Unknown)? else {
                let name = self.full_name();
                let text = "it cannot be told whether a controller without --leader-elect runs";
                say(err, format_args!("there is no Lease {name}: {text}"));
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
                say(
                    err,
                    format_args!(
                        "{holder} holds the Lease {name}: seeing for up to {seconds} s whether it is renewed"
                    ),
                );
            }
            first = Some(seen);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Who holds the Lease now, if anybody does and it can be told.
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

    /// `<namespace>/<name>`.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Returns the remedy for an obstacle.
    pub(super) fn remedy(&self, obstacle: &Obstacle) -> String {
        let name = self.full_name();
        let stop = format!(
            "stop it first, as by `kubectl -n {} scale deployment -l app.kubernetes.io/name=vap-status-controller --replicas=0`",
            self.namespace
        );
        match obstacle {
            Obstacle::Leads { holder } => format!(
                "nothing was cleared: a controller runs, {holder}, which renews the Lease {name} and would write \
                 everything again; {stop}, or give --force"
            ),
            Obstacle::Held { holder } => format!(
                "nothing was cleared: {holder} holds the Lease {name} for longer than is waited here; {stop}, \
                 then give --force"
            ),
            Obstacle::Unknown(error) => format!(
                "nothing was cleared: whether a controller runs cannot be told, as the Lease {name} cannot be \
                 read: {error}; it takes the permission to get leases.coordination.k8s.io in that namespace, or \
                 --force where none runs"
            ),
        }
    }
}
