//! Telemetry of the process: metrics and logs.
//!
//! Metrics and logs do not depend on policies, clusters or servers.

pub mod logging;
pub mod metrics;

pub use metrics::Metrics;
