//! Metrics that are computed at each scrape. If a task set them instead, they would become stale when the task hangs.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::policies::PolicySamples;

/// A function that returns the number of queued items, and the age of the oldest item in seconds.
pub type QueueProbe = Arc<dyn Fn() -> (usize, f64) + Send + Sync>;

pub(super) struct Scraped {
    pub(super) policies: PolicySamples,
    is_leading: AtomicBool,
    is_in_sync: AtomicBool,
    /// The time of the last sync: seconds since the epoch, as the bits of an `f64`. 0 before the first sync.
    last_in_sync: AtomicU64,
    queue: Mutex<Option<QueueProbe>>,
}

impl fmt::Debug for Scraped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scraped")
            .field("policies", &self.policies)
            .field("is_leading", &self.is_leading)
            .field("is_in_sync", &self.is_in_sync)
            .finish_non_exhaustive()
    }
}

impl Default for Scraped {
    fn default() -> Self {
        Self {
            policies: PolicySamples::default(),
            is_leading: AtomicBool::new(true),
            is_in_sync: AtomicBool::new(false),
            last_in_sync: AtomicU64::new(0),
            queue: Mutex::new(None),
        }
    }
}

impl Scraped {
    pub(super) fn set_leading(&self, is_leading: bool) {
        self.is_leading.store(is_leading, Ordering::Relaxed);
    }

    pub(super) fn set_in_sync(&self, is_in_sync: bool) {
        self.is_in_sync.store(is_in_sync, Ordering::Relaxed);
        if is_in_sync {
            self.last_in_sync
                .store(seconds_since_epoch().to_bits(), Ordering::Relaxed);
        }
    }

    pub(super) fn set_queue_gauge(&self, probe: QueueProbe) {
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = Some(probe);
    }

    /// Returns the length of the queue and the age of its oldest item in seconds. `None` if no function is set.
    fn queue(&self) -> Option<(usize, f64)> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let probe = queue.clone()?;
        drop(queue);
        Some(probe())
    }
}

impl Collector for Scraped {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let is_leading = self.is_leading.load(Ordering::Relaxed);
        let samples = self.policies.snapshot();
        if is_leading {
            samples.encode(&mut encoder)?;
        }
        let n_policies = i64::try_from(samples.n_policies()).unwrap_or(i64::MAX);
        gauge(
            &mut encoder,
            "policies",
            "Policies with a known status",
            n_policies,
        )?;
        gauge(
            &mut encoder,
            "leader",
            "1 if this instance is the leader, 0 if it is a standby",
            i64::from(is_leading),
        )?;
        gauge(
            &mut encoder,
            "in_sync",
            "1 if all required sources are in sync with the cluster",
            i64::from(self.is_in_sync.load(Ordering::Relaxed)),
        )?;
        let last_in_sync = f64::from_bits(self.last_in_sync.load(Ordering::Relaxed));
        // Before the first sync, the series is omitted. A value of 0 would mean a sync in 1970.
        if last_in_sync > 0.0 {
            seconds(
                &mut encoder,
                "last_in_sync_timestamp_seconds",
                "Time at which all required sources were last in sync, in seconds since the epoch",
                last_in_sync,
            )?;
        }
        if let Some((length, oldest)) = self.queue() {
            gauge(
                &mut encoder,
                "queue_length",
                "Policies queued for reconciliation",
                i64::try_from(length).unwrap_or(i64::MAX),
            )?;
            seconds(
                &mut encoder,
                "queue_oldest_seconds",
                "Age of the oldest queued policy",
                oldest,
            )?;
        }
        Ok(())
    }
}

pub(super) fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: i64,
) -> fmt::Result {
    let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(value).encode(encoder)
}

pub(super) fn seconds(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: f64,
) -> fmt::Result {
    let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(value).encode(encoder)
}

pub(super) fn seconds_since_epoch() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
