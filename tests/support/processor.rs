//! Measures the processor time of a test, which, unlike elapsed time, does not include waiting for other processes.

use std::time::Duration;

/// The processor time of the current thread at the start of a measurement.
pub(crate) struct Timer(Duration);

impl Timer {
    pub(crate) fn begin() -> Self {
        Self(time())
    }

    pub(crate) fn used(&self) -> Duration {
        time().saturating_sub(self.0)
    }
}

/// Returns the processor time of the current thread.
///
/// Source: Linux, `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`: the first number, nanoseconds.
#[cfg(target_os = "linux")]
fn time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = text.split(' ').next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}

/// Returns the time since the first call. Used if the operating system does not report processor time.
#[cfg(not(target_os = "linux"))]
fn time() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}
