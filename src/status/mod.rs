//! Computes the status of a policy: conditions and expression warnings.
//!
//! All functions are pure. Their inputs are facts and the current time. Only this module defines the meaning of
//! conditions.

pub mod bindings;
pub mod compute;
pub mod condition;
pub mod definition;
pub mod exclusion;
pub mod lease;
mod matched;
pub(crate) mod message;
pub mod object;
mod params;
pub mod probes;
mod ready;
pub mod staleness;
pub mod stalled;
mod type_checked;
pub mod unknown_fields;
mod verdict;
pub mod warnings;

#[cfg(test)]
mod tests;

pub use compute::{DesiredStatus, Observations, compute};
pub use condition::{ConditionStatus, ConditionType, Reason};
pub(crate) use message::cut;
pub(crate) use verdict::Effect;
