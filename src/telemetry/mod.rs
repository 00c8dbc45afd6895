//! Telemetry of the process: metrics and logs.
//!
//! Knows names, labels and formats, and nothing of policies, clusters or servers.

pub mod logging;
pub mod metrics;

pub use metrics::Metrics;
