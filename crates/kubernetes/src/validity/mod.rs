//! Validity of objects of built-in kinds beyond their OpenAPI schemas.
//!
//! Before validating admission, the API server sets defaults, validates an object, and compares it with the stored one.
//! An object that matches its schema may therefore never reach a policy. The tables in this module were derived by hand
//! from the sources that they name:
//!
//! - fields that every admitted object has ([`is_guaranteed`], [`minimal_fields`]);
//! - values of enumerations ([`enum_values`]) and valid samples of formatted strings ([`sample_text`]);
//! - unions and fields that depend on each other ([`complete`], [`add_implied_constraints`]);
//! - fields that an update cannot change ([`preserve_immutable`]);
//! - single invalid values ([`fails_validation`]).
//!
//! A [`FieldPath`] identifies a value in a request. [`InputConstraints`] constrain the values of a request to generate.

mod constraints;
mod dependent_fields;
mod enumerations;
mod guaranteed_fields;
mod immutable_fields;
mod invalid_values;
mod path;
mod unions;

use serde_json::Value as Json;

pub use constraints::{Constraint, InputConstraints, ValueConstraints};
pub use dependent_fields::add_implied_constraints;
pub use enumerations::enum_values;
pub use guaranteed_fields::{
    is_guaranteed, is_never_empty, is_never_null, is_omitted_if_false, is_system_metadata,
    minimal_fields,
};
pub use immutable_fields::preserve_immutable;
pub use invalid_values::{fails_validation, has_unique_names, sample_text};
pub use path::{FieldPath, Root, Segment, is_identifier};

/// Adds the fields that validation requires to the object of `kind` at `root`, without violating `constraints`. Returns
/// `None` if no valid object has the same combination of present and absent fields.
pub fn complete(
    kind: &str,
    root: Root,
    constraints: &InputConstraints,
    object: &mut Json,
) -> Option<()> {
    unions::complete(kind, root, constraints, object)?;
    dependent_fields::complete(kind, object)
}
