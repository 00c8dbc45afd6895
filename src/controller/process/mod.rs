//! The process and its tasks: startup, supervision, readiness, the work queue, and the limits of memory and logs.

pub(crate) mod backoff;
pub(crate) mod log_throttle;
pub(crate) mod memory;
pub(crate) mod queue;
pub(crate) mod readiness;
pub mod startup;
pub(crate) mod supervisor;
pub(crate) mod token_bucket;
