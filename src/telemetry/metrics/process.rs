//! The metrics `process_*` of the Prometheus client libraries, read from `/proc` at each scrape.
//!
//! Source of the names: <https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>.

use std::fmt;

use procfs::process::{LimitValue, Process};
use procfs::{ProcResult, boot_time_secs, page_size, ticks_per_second};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;

use super::scrape::{gauge, seconds};

/// Encodes the metrics of the current process.
#[derive(Debug)]
pub(super) struct ProcessCollector;

#[derive(Debug)]
struct ProcessState {
    /// The CPU time in user and kernel mode, in seconds.
    cpu_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    /// The start time, in seconds since the epoch.
    start_seconds: f64,
    n_threads: i64,
    n_fds: usize,
    /// The limit of open file descriptors, or `None` without a limit.
    max_fds: Option<u64>,
}

impl ProcessState {
    #[expect(
        clippy::cast_precision_loss,
        reason = "ticks since the boot are below 2^53"
    )]
    fn read() -> ProcResult<Self> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let ticks = ticks_per_second() as f64;
        Ok(Self {
            cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
            resident_bytes: stat.rss.saturating_mul(page_size()),
            virtual_bytes: stat.vsize,
            start_seconds: boot_time_secs()? as f64 + stat.starttime as f64 / ticks,
            n_threads: stat.num_threads,
            n_fds: process.fd_count()?,
            max_fds: match process.limits()?.max_open_files.soft_limit {
                LimitValue::Value(limit) => Some(limit),
                LimitValue::Unlimited => None,
            },
        })
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Without access to `/proc`, the metrics are absent, as in other client libraries.
        let Ok(state) = ProcessState::read() else {
            return Ok(());
        };
        let counter = encoder.encode_descriptor(
            "process_cpu",
            "CPU time in user and kernel mode",
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?;
        ConstCounter::new(state.cpu_seconds).encode(counter)?;
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut gauge = |name, help, n| gauge(&mut encoder, name, help, n);
        let resident = signed(state.resident_bytes);
        gauge("process_resident_memory_bytes", "Resident memory", resident)?;
        let virtual_bytes = signed(state.virtual_bytes);
        gauge(
            "process_virtual_memory_bytes",
            "Virtual memory",
            virtual_bytes,
        )?;
        let n_fds = i64::try_from(state.n_fds).unwrap_or(i64::MAX);
        gauge("process_open_fds", "Open file descriptors", n_fds)?;
        if let Some(limit) = state.max_fds {
            let help = "Maximum number of open file descriptors";
            gauge("process_max_fds", help, signed(limit))?;
        }
        gauge("process_threads", "Threads", state.n_threads)?;
        seconds(
            &mut encoder,
            "process_start_time_seconds",
            "Start time of the process, in seconds since the epoch",
            state.start_seconds,
        )
    }
}
