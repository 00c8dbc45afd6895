//! Measures the CPU time of a test. Unlike elapsed time, it excludes the time of other processes.

use std::time::Duration;

/// A running measurement. The field is the CPU time at its start.
pub(crate) struct Timer(Duration);

impl Timer {
    pub(crate) fn begin() -> Self {
        Self(time())
    }

    pub(crate) fn used(&self) -> Duration {
        time().saturating_sub(self.0)
    }
}

/// Returns the CPU time of the current thread.
///
/// Source: Linux, `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`: the first number, nanoseconds.
#[cfg(target_os = "linux")]
fn time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = text.split(' ').next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}

/// Returns the elapsed time since the first call, because the operating system reports no CPU time.
#[cfg(not(target_os = "linux"))]
fn time() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}
