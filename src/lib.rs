//! vap-status-controller: a true, complete and alertable status for every
//! ValidatingAdmissionPolicy.
//!
//! The layers, from the engine up. The engine is packages of its own, named here as modules:
//!
//! - [`cel`]: the language, after cel-go.
//! - [`library`]: the CEL libraries and limits of the Kubernetes API server.
//! - [`schema`]: OpenAPI and CRD schemas as CEL types.
//! - [`policy`]: the model of a ValidatingAdmissionPolicy, compiled and type-checked.
//!
//! The rest is here:
//!
//! - [`probe`]: sample requests with what a policy must decide.
//! - [`status`]: findings as conditions and warnings.
//! - [`cluster`]: requests to an API server.
//! - [`controller`], [`server`], [`telemetry`]: the process in the cluster.
//! - [`cli`]: the kubectl plugin.

pub mod cli;
pub mod cluster;
pub mod controller;
pub mod probe;
pub mod server;
pub mod status;
pub mod telemetry;

pub use kubernetes::{
    custom_resource, defaulting, go_json, json_patch, library, merge, schema, validation_rules,
};
pub use {cel, policy};
