//! Requests to an API server: the client, documents, discovery, the index of schemas, and the classes of what
//! fails.
//!
//! The controller and the plugin ask clusters by it. It knows no policies.

pub(crate) mod address;
pub mod blocking;
pub(crate) mod client;
pub(crate) mod config;
pub(crate) mod discovery;
pub(crate) mod duration;
pub mod error;
pub(crate) mod http;
pub(crate) mod openapi;

#[cfg(test)]
pub(crate) mod testing;
