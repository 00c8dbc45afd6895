//! Validity rules for objects of built-in kinds. The OpenAPI schemas of these kinds do not contain the rules.
//!
//! Before validating admission, the API server sets defaults, validates the object, and compares it with the stored
//! object. Some objects that match their schema are therefore rejected before policies see them. The tables in this
//! module were written by hand, based on the sources in their comments:
//!
//! - fields of every admitted object ([`is_guaranteed`], [`minimal_fields`]);
//! - values of enumerations ([`enum_values`]), and valid samples of formatted strings ([`sample_text`]);
//! - unions and dependent fields ([`complete`], [`add_implied_constraints`]);
//! - fields that an update cannot change ([`preserve_immutable`], [`may_update`]);
//! - invalid values ([`fails_validation`]);
//! - values that Kubernetes components use for absent fields ([`effective_default`]).
//!
//! A [`FieldPath`] identifies a value in a request. [`InputConstraints`] constrain the values of a generated request.

mod constraints;
mod dependent_fields;
mod effective_defaults;
mod enumerations;
mod guaranteed_fields;
mod immutable_fields;
mod invalid_values;
mod path;
mod unions;

use serde_json::Value as Json;

pub use constraints::{Constraint, InputConstraints, ValueConstraints};
pub use dependent_fields::{add_implied_constraints, fails_creation};
pub use effective_defaults::{EffectiveDefault, effective_default};
pub use enumerations::enum_values;
pub use guaranteed_fields::{
    is_guaranteed, is_never_empty, is_never_null, is_omitted_if_false, is_system_metadata,
    minimal_fields,
};
pub use immutable_fields::{may_update, preserve_immutable};
pub use invalid_values::{fails_validation, has_unique_names, sample_text};
pub use path::{FieldPath, Root, Segment, is_identifier};
pub use unions::is_union_member;

/// Adds required fields to the object of `kind` at `root`, without violating `constraints`. Returns `None` if no valid
/// object has this combination of present and absent fields.
pub fn complete(
    kind: &str,
    root: Root,
    constraints: &InputConstraints,
    object: &mut Json,
) -> Option<()> {
    unions::complete(kind, root, constraints, object)?;
    dependent_fields::complete(kind, object)
}
