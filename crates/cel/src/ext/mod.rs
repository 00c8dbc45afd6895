//! The cel-go extension libraries that the API server enables.
//!
//! Each library has one table of overloads for each version that adds overloads. [`super::syntax`] expands the macros
//! of the libraries.
//!
//! Source: cel-go `ext`, `cel/library.go`.

pub mod costs;
mod go_sort;
mod hashing;
pub mod lists;
pub mod optional;
pub mod sets;
pub mod strings;
pub mod two_var;
