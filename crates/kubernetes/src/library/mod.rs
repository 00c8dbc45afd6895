//! The CEL of the Kubernetes API server: its libraries, which of them a version has, and its limits.
//!
//! A file a library, each a table of overloads; [`environment`] puts them together, and [`version`] tells which
//! versions have what an expression uses. Nothing here knows of policies or schemas.
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
