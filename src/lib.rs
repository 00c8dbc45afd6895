//! A controller that reports in the status of each ValidatingAdmissionPolicy whether the policy works, and a kubectl
//! plugin.
//!
//! The engine consists of separate packages:
//!
//! - [`cel`]: the CEL language, compatible with cel-go.
//! - [`library`]: the CEL libraries and limits of the Kubernetes API server.
//! - [`schema`]: OpenAPI and CRD schemas as CEL types.
//! - [`policy`]: the model of a ValidatingAdmissionPolicy, with its compiler and type checker.
//!
//! This package consists of these modules:
//!
//! - [`probe`]: sample requests with the expected decisions of a policy.
//! - [`status`]: conversion of findings to conditions and warnings.
//! - [`cluster`]: requests to an API server.
//! - [`controller`], [`server`], [`telemetry`]: the controller process in the cluster.
//! - [`cli`]: the kubectl plugin.
//!
//! For `wasm32-unknown-unknown`, the package contains only [`probe`], [`status`], and the parts of [`cli`] that check and
//! evaluate texts in memory.

// Without the modules for commands and clusters, many items are unused.
#![cfg_attr(
    target_family = "wasm",
    allow(
        dead_code,
        unused_imports,
        reason = "only a part of the package is compiled"
    )
)]

pub mod cli;
#[cfg(not(target_family = "wasm"))]
pub mod cluster;
#[cfg(not(target_family = "wasm"))]
pub mod controller;
pub mod probe;
#[cfg(not(target_family = "wasm"))]
pub mod server;
pub mod status;
#[cfg(not(target_family = "wasm"))]
pub mod telemetry;

pub use kubernetes::{
    custom_resource, defaulting, go_json, json_patch, library, merge, schema, validation_rules,
    version,
};
pub use {cel, policy};
