//! The language: source, syntax, types, declarations, environment, type checker and values of CEL.
//!
//! The structure, the pass order and the names are cel-go's, which the API server runs (v0.26 under
//! `k8s.io/apiserver` v0.36.3), so that every answer can be compared with its answer. This module
//! deliberately knows nothing of Kubernetes, JSON objects, clocks or I/O.

pub mod ast;
pub mod ast_validators;
pub mod base64;
pub mod checker;
pub mod cost;
pub mod decls;
pub mod diagnostic;
pub mod env;
pub mod estimate;
pub mod eval;
pub mod ext;
pub mod go_text;
pub mod message;
mod names;
pub mod number_format;
pub mod source;
pub mod stack;
pub mod stdlib;
pub mod syntax;
pub mod temporal;
pub mod types;
pub mod validators;
pub mod value;
mod zone;
