//! The cost model. A cost unit is about 50 ns of work.
//!
//! Each overload row defines its [`Costs`]: the estimated and the measured cost of a call.
//! [`estimate`](super::estimate) adds up the estimates of an expression. A [`SizeEstimator`] supplies the sizes of
//! variables.
//!
//! Source: cel-go `checker/cost.go`.

#![warn(clippy::arithmetic_side_effects)]

pub mod factors;
pub mod measure;
mod node;
mod path;
mod row;
mod size;

pub use node::{AstNode, Call, CallEstimate, SizeEstimator, UnknownSizes, size_of};
pub(crate) use path::{NO_PATHS, PathId, Paths};
pub use path::{Path, PathStep};
pub use row::{CallCost, CostScope, Costs, ResultOf, RuntimeCost, StaticCost};
pub(super) use size::to_f64;
pub use size::{CostEstimate, SizeEstimate};
