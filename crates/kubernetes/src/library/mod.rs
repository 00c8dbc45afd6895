//! The CEL libraries of the Kubernetes API server, their availability by version, and limits.
//!
//! Each library is a file with a table of overloads. [`environment`] combines them, and [`version`] determines the
//! versions that support an expression. Policies and schemas are out of scope.
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
pub mod types;
pub mod url;
pub mod version;
