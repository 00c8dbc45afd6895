//! Requests to an API server: the client, discovery, OpenAPI documents, and errors.
//!
//! The controller and the plugin use this module, which does not depend on policies.

pub(crate) mod address;
pub mod blocking;
pub(crate) mod client;
pub(crate) mod config;
pub(crate) mod discovery;
pub(crate) mod duration;
pub mod error;
pub(crate) mod http;
pub(crate) mod openapi;
pub(crate) mod version;

#[cfg(test)]
pub(crate) mod testing;
