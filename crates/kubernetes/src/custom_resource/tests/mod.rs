mod metadata;
mod objects;
mod values;

use serde_json::{Value as Json, json};

use super::Validator;
use crate::version::KubernetesVersion;

fn definition(properties: &Json) -> Json {
    json!({"spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"kind": "Disk", "plural": "disks"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}],
    }})
}

fn object(fields: &Json) -> Json {
    let mut object =
        json!({"apiVersion": "example.com/v1", "kind": "Disk", "metadata": {"name": "a"}});
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

#[track_caller]
fn check_in(definition: &Json, fields: &Json, expected: &[&str]) {
    let validator = Validator::new(definition, "v1", KubernetesVersion::DEFAULT).unwrap();
    let verdict = validator.validate(&object(fields), None, "").unwrap();
    let errors: Vec<String> = verdict.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{fields}");
}

/// Asserts the errors of an object with the field `a`, which has the schema `schema` and the value `value`.
#[track_caller]
fn check(schema: &Json, value: &Json, expected: &[&str]) {
    check_in(
        &definition(&json!({"a": schema})),
        &json!({"a": value}),
        expected,
    );
}
