//! Reproduces parts of the Kubernetes API server: its CEL libraries and limits, its schemas as CEL types, and its
//! validation of objects.
//!
//! - [`custom_resource`]: validates custom resources against their CRD, as the API server does.
//! - [`defaulting`]: changes that an API server makes to objects before it evaluates policies.
//! - [`json_patch`] and [`merge`]: apply the patches of mutating policies.
//! - [`library`]: the functions and types that an API server adds to CEL, by version, and its limits.
//! - [`schema`]: OpenAPI v3 and CRD schemas as CEL types.
//! - [`typed_values`]: CEL values with the types that a schema declares, as used in the CEL rules of a CRD.
//! - [`validation_rules`]: validates CRD rules (`x-kubernetes-validations`), and validates objects against the rules.
//! - [`validity`]: validity rules that the schemas of built-in kinds do not contain.
//!
//! ```
//! use std::sync::Arc;
//! use cel::decls::Variable;
//! use cel::{checker, syntax};
//! use kubernetes::library::environment::base_env;
//! use kubernetes::schema::{Gvk, OpenApiDocument};
//! use kubernetes::version::KubernetesVersion;
//!
//! // The CEL type of the kind's objects, built from its schema.
//! let document = br#"{"openapi": "3.0.0", "components": {"schemas": {"Box": {
//!     "type": "object",
//!     "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Box"}],
//!     "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
//! }}}}"#;
//! let gvk = Gvk::new("example.com", "v1", "Box");
//! let document = OpenApiDocument::parse(document).map_err(|error| error.to_string())?;
//! let type_ = document.decl_type(&gvk).map_err(|error| error.to_string())?;
//! let object = Variable::new("object", type_.cel_type(&gvk.type_name()));
//!
//! // An environment with the functions of an API server.
//! let env = base_env(KubernetesVersion::DEFAULT).extend([object]);
//! let text = "isIP(object.metadata.name) || object.spec.sise > 3";
//! let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
//! let (_, found) = checker::check(&ast, text, &env);
//! assert_eq!(found.as_slice()[0].to_string(), "undefined field 'sise'");
//! # Ok::<(), String>(())
//! ```
//!
//! This crate contains no code about policies and makes no requests to clusters.

pub mod custom_resource;
pub mod defaulting;
pub mod go_json;
pub mod go_values;
pub mod json_patch;
pub mod library;
pub mod merge;
pub mod object_meta;
pub mod schema;
pub mod typed_values;
pub mod validation_rules;
pub mod validity;
pub mod version;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
