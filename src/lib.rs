//! vap-status-controller: a true, complete and alertable status for every
//! ValidatingAdmissionPolicy.
//!
//! The layers, from the language up (`tests/layering.rs` holds the direction):
//!
//! - [`cel`]: the language, after cel-go.
//! - [`library`]: the CEL libraries and limits of the Kubernetes API server.
//! - [`schema`]: OpenAPI and CRD schemas as CEL types.
//! - [`policy`]: the model of a ValidatingAdmissionPolicy, compiled and type-checked.
//! - [`probe`]: sample requests with what a policy must decide.
//! - [`status`]: findings as conditions and warnings.
//! - [`controller`], [`server`], [`telemetry`]: the process in the cluster.
//! - [`cli`]: the kubectl plugin.

pub mod cel;
pub mod cli;
pub mod controller;
pub mod library;
pub mod policy;
pub mod probe;
pub mod schema;
pub mod server;
pub mod status;
pub mod telemetry;
