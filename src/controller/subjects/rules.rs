//! The part of a CustomResourceDefinition that is stored: whether it has validation rules, and a hash of its spec.

use std::hash::{DefaultHasher, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::controller::process::memory;
use crate::validation_rules;

/// The keyword of rules, as it stands in JSON.
pub(crate) const KEYWORD: &str = "\"x-kubernetes-validations\"";

/// The part of a definition that tells whether it is to be judged, and judged anew.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Rules {
    /// True if a version has a rule.
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

/// Reports whether a spec has rules, and not just the word somewhere. Of one that cannot be read they are told to be
/// unknown when it is judged.
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
