//! The stored data of a CustomResourceDefinition: whether it has validation rules, and a hash of its spec.

use std::hash::{DefaultHasher, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::controller::process::memory;
use crate::validation_rules;

/// The schema keyword of validation rules, as a JSON string.
pub(crate) const KEYWORD: &str = "\"x-kubernetes-validations\"";

/// The data that determines whether a CRD must be checked, or checked again.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Rules {
    /// True if a version has a validation rule, or the spec cannot be parsed.
    pub(crate) has_some: bool,
    /// A hash of the spec.
    hash: u64,
}

impl Rules {
    pub(crate) fn new(spec: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(spec.as_bytes());
        Self {
            has_some: spec.contains(KEYWORD) && has_rules(spec),
            hash: hasher.finish(),
        }
    }
}

/// Returns true if a spec has validation rules. A string that contains the keyword does not count.
///
/// Also returns true for a spec that is too large or invalid, so that the check of the CRD reports the problem.
fn has_rules(spec: &str) -> bool {
    if memory::unpacked_bytes(spec) > memory::MAX_TYPED_OBJECT {
        return true;
    }
    let spec = serde_json::from_str::<Value>(spec);
    spec.map_or(true, |spec| {
        let mut definition = serde_json::Map::new();
        definition.insert("spec".to_owned(), spec);
        validation_rules::has_rules(&Value::Object(definition))
    })
}
