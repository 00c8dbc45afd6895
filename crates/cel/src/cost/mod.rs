//! What evaluating a checked expression may cost: from the least to the most, in cost units.
//!
//! A unit is about 50 ns of work. Takes a [`CheckedAst`](super::checker::CheckedAst) and a
//! [`SizeEstimator`], which knows the sizes of variables; gives a [`CostEstimate`]. The [`Costs`] of a
//! function are in the row that declares it, also what its calls cost when they are evaluated. An estimate never fails, and takes time in proportion to the tree.
//!
//! Source: cel-go `checker/cost.go`.

#![warn(clippy::arithmetic_side_effects)]

mod estimate;
pub mod factors;
mod facts;
pub mod measure;
mod node;
mod path;
mod row;
mod size;

pub use estimate::{CostOptions, estimate};
pub use node::{AstNode, Call, CallEstimate, SizeEstimator, UnknownSizes, size_of};
pub use path::{Path, PathStep};
pub use row::{CallCost, CostScope, Costs, ResultOf, RuntimeCost, StaticCost};
pub(super) use size::to_f64;
pub use size::{CostEstimate, SizeEstimate};

#[cfg(test)]
mod tests;
