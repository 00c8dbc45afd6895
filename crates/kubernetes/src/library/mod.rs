//! The CEL libraries that the Kubernetes API server adds, and its limits on evaluation.
//!
//! Each library is a module with a table of overloads. [`environment`] combines the libraries. [`too_new`] finds the
//! functions that an older version lacks.
//!
//! Source: k8s.io/apiserver `pkg/cel/library`, `pkg/cel/environment/base.go`.

mod args;
pub mod authz;
pub mod cidr;
mod costs;
pub mod environment;
pub mod estimate;
pub mod format;
pub mod ip;
pub mod json_patch;
pub mod limits;
pub mod lists;
pub mod mutation;
pub mod net;
pub mod quantity;
pub mod regex;
pub mod runtime;
pub mod semver;
pub mod strings;
#[cfg(test)]
mod tests;
pub mod too_new;
pub mod types;
pub mod url;
