//! What evaluating a checked expression may cost: from the least to the most, in cost units.
//!
//! A unit is about 50 ns of work. Takes a [`CheckedAst`](super::checker::CheckedAst) and a
//! [`CostEstimator`], which knows the sizes of variables and the costs of the functions that a platform
//! adds; gives a [`CostEstimate`]. An estimate never fails, and takes time in proportion to the tree.
//!
//! Source: cel-go `checker/cost.go`.

#![warn(clippy::arithmetic_side_effects)]

mod estimate;
mod extensions;
pub mod factors;
mod facts;
mod node;
mod path;
mod size;
mod standard;

pub use estimate::{CostOptions, estimate};
pub use node::{AstNode, Call, CallEstimate, CostEstimator, SizeEstimator, UnknownSizes, size_of};
pub use path::{Path, PathStep};
pub use size::{CostEstimate, SizeEstimate};

#[cfg(test)]
mod tests;
