//! Findings as the status of a ValidatingAdmissionPolicy: conditions and expression warnings.
//!
//! Pure functions: facts and a clock reading in, the desired status out. What a condition means, and
//! when it is which, is decided here and nowhere else. Nothing here reads the cluster or a clock.

pub mod bindings;
pub mod compute;
pub mod condition;
pub mod definition;
pub mod exclusion;
pub mod lease;
mod matched;
pub(crate) mod message;
pub mod object;
pub mod out_of_date;
mod params;
pub mod probes;
mod ready;
pub mod stalled;
mod type_checked;
mod verdict;
pub mod warnings;

#[cfg(test)]
mod tests;

pub use compute::{DesiredStatus, Observed, compute};
pub use condition::{ConditionStatus, ConditionType, Reason};
pub(crate) use message::cut;
pub(crate) use verdict::Effect;
