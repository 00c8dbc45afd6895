//! Policy probes: sample requests with expected decisions of a policy.
//!
//! A `PolicyProbe` is an object in the cluster or a document in a file. The controller evaluates probes in the cluster
//! continuously. `kubectl vap test` evaluates probes in files, with the semantics of the controller.

mod allocated;
pub mod api;
mod contradiction;
pub mod crd;
pub mod custom_resource;
mod decision;
mod difference;
pub mod mutation;
pub(crate) mod prepare;
pub mod run;
pub mod sample;
pub mod self_test;
pub mod target;
pub(crate) mod unknown_defaults;
pub mod validation;
mod webhook;
pub use difference::{explain, failing_annotations, outline, unbound};
