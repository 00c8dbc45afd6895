//! Converts OpenAPI v3 and CRD schemas to CEL types like the API server.

pub mod builtin;
pub mod connect_options;
mod convert;
pub mod crd;
pub mod decl_type;
pub mod error;
pub mod escape;
pub mod evaluated;
pub mod extensions;
pub mod gvk;
pub mod intern;
pub mod max_size;
pub mod offline;
pub mod openapi;
mod raw;
mod read;
pub(crate) mod refs;
pub mod resolver;
pub mod rest_mapper;
pub(crate) mod rule_type;
mod scalars;
pub mod sizes;
pub(crate) mod structural;

pub use builtin::Builtin;
pub use crd::Crd;
pub use decl_type::{DeclField, DeclKind, DeclType};
pub use error::SchemaError;
pub use gvk::{GroupVersion, Gvk, Gvr};
pub use intern::Interner;
pub use max_size::{DeclaredSizes, ObjectShape};
pub use openapi::OpenApiDocument;
pub use rest_mapper::RestMapper;

#[cfg(test)]
mod tests;
