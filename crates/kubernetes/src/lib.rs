//! What the Kubernetes API server adds to CEL: its libraries and limits, and its schemas as types.
//!
//! - [`library`]: the functions and types that an API server has beside CEL's own, by version, and its limits.
//! - [`schema`]: OpenAPI v3 and CRD schemas as CEL types.
//!
//! Nothing here knows of policies, requests or clusters.

pub mod library;
pub mod schema;
