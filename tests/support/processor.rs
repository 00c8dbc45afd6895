//! Processor time of a test, by which one that never ends is told from one that others keep waiting.

use std::time::Duration;

/// The processor time of the current thread since a beginning.
pub(crate) struct Timer(Duration);

impl Timer {
    pub(crate) fn begin() -> Self {
        Self(time())
    }

    pub(crate) fn used(&self) -> Duration {
        time().saturating_sub(self.0)
    }
}

/// The time that the current thread was on a processor.
///
/// Source: Linux, `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`: the first number, nanoseconds.
#[cfg(target_os = "linux")]
fn time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = text.split(' ').next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}

/// The time since the first call, where the system does not tell more.
#[cfg(not(target_os = "linux"))]
fn time() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}
