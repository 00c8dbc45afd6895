//! Validates the fields that the `scale` subresource uses: the replicas and the label selector.
//!
//! Source: apiextensions-apiserver `pkg/registry/customresource/validator.go` (`ValidateScaleSpec`,
//! `ValidateScaleStatus`); apimachinery `pkg/apis/meta/v1/unstructured/helpers.go` (`NestedInt64`, `NestedString`).

use serde_json::Value as Json;

use super::read::type_text;
use crate::validation_rules::{FieldError, FieldErrorKind};
use cel::value::go_quote;

/// The JSON paths of the `scale` subresource in the CRD.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    spec_replicas: String,
    status_replicas: String,
    selector: Option<String>,
}

impl Scale {
    /// Returns the paths in `version`, an element of `spec.versions`. Returns `None` if the version has no `scale`
    /// subresource.
    pub(super) fn new(version: &Json) -> Option<Self> {
        let scale = version.pointer("/subresources/scale")?;
        let text = |name: &str| scale.get(name).and_then(Json::as_str).map(str::to_owned);
        Some(Self {
            spec_replicas: text("specReplicasPath").unwrap_or_default(),
            status_replicas: text("statusReplicasPath").unwrap_or_default(),
            selector: text("labelSelectorPath"),
        })
    }

    pub(super) fn validate(&self, object: &Json, errors: &mut Vec<FieldError>) {
        replicas(object, &self.spec_replicas, errors);
        replicas(object, &self.status_replicas, errors);
        if let Some(path) = &self.selector {
            match nested(object, path) {
                Ok(None | Some(Json::String(_))) => {}
                Ok(Some(other)) => {
                    let detail = accessor_error(path, other, "string");
                    errors.push(error(path, go_quote(""), detail));
                }
                Err(detail) => errors.push(error(path, go_quote(""), detail)),
            }
        }
    }
}

fn error(path: &str, value: String, detail: String) -> FieldError {
    FieldError {
        kind: FieldErrorKind::Invalid,
        field: path.to_owned(),
        value: Some(value),
        detail,
    }
}

fn replicas(object: &Json, path: &str, errors: &mut Vec<FieldError>) {
    let replicas = match nested(object, path) {
        Ok(None) => return,
        Ok(Some(value)) => value
            .as_i64()
            .ok_or_else(|| accessor_error(path, value, "int64")),
        Err(detail) => Err(detail),
    };
    match replicas {
        Err(detail) => errors.push(error(path, "0".to_owned(), detail)),
        Ok(replicas @ ..=-1) => {
            let detail = "should be a non-negative integer".to_owned();
            errors.push(error(path, replicas.to_string(), detail));
        }
        Ok(0..=0x7fff_ffff) => {}
        Ok(replicas) => {
            let detail = "should be less than or equal to 2147483647".to_owned();
            errors.push(error(path, replicas.to_string(), detail));
        }
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

fn accessor_error(path: &str, value: &Json, expected: &str) -> String {
    let path: Vec<&str> = names(path).collect();
    let path = path.join(".");
    format!(
        ".{path} accessor error: {}, expected {expected}",
        type_text(value)
    )
}

/// Returns the value at `path`. Returns `None` if a field is missing, and an error if a parent is not an object.
fn nested<'a>(object: &'a Json, path: &str) -> Result<Option<&'a Json>, String> {
    let mut value = object;
    let mut way = String::new();
    for name in names(path) {
        way.push('.');
        way.push_str(name);
        match value {
            Json::Null => return Ok(None),
            Json::Object(fields) => match fields.get(name) {
                Some(field) => value = field,
                None => return Ok(None),
            },
            other => {
                let type_ = type_text(other);
                return Err(format!(
                    "{way} accessor error: {type_}, expected map[string]interface{{}}"
                ));
            }
        }
    }
    Ok(Some(value))
}
