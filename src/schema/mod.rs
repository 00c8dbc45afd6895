//! Schemas: OpenAPI v3 and CRD schemas as CEL types, as the API server makes them.

pub mod gvk;
pub mod resolver;
pub mod rest_mapper;

pub use gvk::{Gvk, Gvr};
