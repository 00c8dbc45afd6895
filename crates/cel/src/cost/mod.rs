//! The cost model. A cost unit is about 50 ns of work.
//!
//! The overload row that declares a function also defines its [`Costs`]: the estimated cost of a call and the measured
//! cost. [`estimate`](super::estimate) adds up the estimates of an expression, using sizes from a [`SizeEstimator`].
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
pub use path::{Path, PathStep};
pub(crate) use path::{PathId, Paths};
pub use row::{CallCost, CostScope, Costs, ResultOf, RuntimeCost, StaticCost};
pub(super) use size::to_f64;
pub use size::{CostEstimate, SizeEstimate};
