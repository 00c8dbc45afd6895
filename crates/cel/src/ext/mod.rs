//! Extensions of the language that come with cel-go: those that the API server enables.
//!
//! A table of overloads for each version of a library that adds some. The macros of the libraries are
//! expanded in [`super::syntax`].
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
