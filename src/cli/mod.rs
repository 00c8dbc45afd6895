//! The kubectl plugin `kubectl vap`: runs one command, writes its output, and returns the exit status.
//!
//! [`input`] reads manifests. Other modules, mainly `live`, read a cluster over a [`connection`].

#[cfg(not(target_family = "wasm"))]
pub mod age;
#[cfg(not(target_family = "wasm"))]
pub mod args;
#[cfg(not(target_family = "wasm"))]
pub mod audit;
pub mod check;
#[cfg(not(target_family = "wasm"))]
pub mod completion;
#[cfg(not(target_family = "wasm"))]
pub mod connection;
#[cfg(not(target_family = "wasm"))]
pub mod controller;
#[cfg(not(target_family = "wasm"))]
pub mod diff;
mod error;
pub mod eval;
pub mod exit;
pub mod explain;
pub mod field_reference;
mod generated_requests;
pub mod in_memory;
pub mod input;
mod live;
#[cfg(not(target_family = "wasm"))]
pub mod lsp;
#[cfg(not(target_family = "wasm"))]
pub mod names;
#[cfg(not(target_family = "wasm"))]
mod opt_in;
mod output;
mod parallel;
#[cfg(not(target_family = "wasm"))]
mod plugin_status;
#[cfg(not(target_family = "wasm"))]
mod probe_check;
#[cfg(not(target_family = "wasm"))]
mod progress;
#[cfg(not(target_family = "wasm"))]
pub mod render;
#[cfg(not(target_family = "wasm"))]
pub mod report;
#[cfg(not(target_family = "wasm"))]
pub mod report_schema;
#[cfg(not(target_family = "wasm"))]
mod run;
#[cfg(not(target_family = "wasm"))]
pub mod status;
pub mod terminal;
pub mod test;
mod text;
pub mod time_limit;
mod unified;
#[cfg(not(target_family = "wasm"))]
pub mod upgrade;
#[cfg(not(target_family = "wasm"))]
mod versions;
#[cfg(not(target_family = "wasm"))]
mod watch;
mod write;
mod yaml_text;

#[cfg(not(target_family = "wasm"))]
pub use run::run;
