//! Parses objects, and lists their fields that the parsed type does not have.
//!
//! An API server drops fields that it does not know. So it returns an unknown field only if it is newer than the types of
//! `k8s-openapi`.

use serde::{Deserialize, Deserializer};
use serde_ignored::Path;

use crate::status;

/// The maximum number of listed fields of one object.
const MAX_FIELDS: usize = 8;

/// The maximum length of a listed path in bytes. Longer paths are truncated.
const MAX_PATH: usize = 256;

/// A parsed value, and the paths of its unknown fields, such as `matchConstraints.resourceRules[0].new`.
#[derive(Clone, Debug, Default)]
pub(super) struct WithUnknownFields<T> {
    pub(super) value: T,
    pub(super) unknown_fields: Vec<String>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WithUnknownFields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut unknown_fields = Vec::new();
        let value = serde_ignored::deserialize(deserializer, |path| {
            if unknown_fields.len() < MAX_FIELDS {
                unknown_fields.push(field_path(&path));
            }
        })?;
        Ok(Self {
            value,
            unknown_fields,
        })
    }
}

impl<T> WithUnknownFields<T> {
    /// Returns the value, and the paths of its unknown fields after `prefix`.
    pub(super) fn parts(self, prefix: &str) -> (T, Vec<String>) {
        let paths = self.unknown_fields.into_iter();
        let paths = paths.map(|path| format!("{prefix}.{path}"));
        (self.value, paths.collect())
    }
}

fn field_path(path: &Path<'_>) -> String {
    let text = match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", field_path(parent)),
        Path::Map { parent, key } => match field_path(parent) {
            parent if parent.is_empty() => key.clone(),
            parent => format!("{parent}.{key}"),
        },
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => field_path(parent),
    };
    status::cut(&text, MAX_PATH)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicySpec;
    use serde_json::{Value, json};

    use super::*;

    fn unknown(spec: Value) -> Vec<String> {
        let parsed: WithUnknownFields<ValidatingAdmissionPolicySpec> =
            serde_json::from_value(spec).unwrap();
        parsed.parts("spec").1
    }

    #[test]
    fn unknown_fields_have_paths() {
        let spec = json!({
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [{"apiGroups": [""], "resources": ["pods"]}, {"newer": {"a": 1}}],
                "namespaceSelector": {"matchLabels": {"newer": "a"}},
            },
            "validations": [{"expression": "true", "newer": [1]}],
            "newer": {"deep": true},
        });
        assert_eq!(
            unknown(spec),
            [
                "spec.matchConstraints.resourceRules[1].newer",
                "spec.newer",
                "spec.validations[0].newer"
            ]
        );
    }

    #[test]
    fn unknown_fields_are_limited() {
        let spec: Value = (0..100)
            .map(|n| (format!("{n}{}", "ä".repeat(1000)), json!(null)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let fields = unknown(spec);
        assert_eq!(fields.len(), MAX_FIELDS);
        assert!(fields.iter().all(|path| path.len() <= MAX_PATH + 5));
    }
}
