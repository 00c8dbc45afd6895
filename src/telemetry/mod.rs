//! Telemetry of the process: metrics and logs.

pub mod logging;
pub mod metrics;

pub use metrics::Metrics;
