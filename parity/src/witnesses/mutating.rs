//! Converts witnesses of failing mutations to cases of the oracle's `mutate admit`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::documents;

/// The CustomResourceDefinitions of the resources that the policies match.
#[derive(Debug, Default)]
pub(super) struct Definitions(Vec<Value>);

impl Definitions {
    pub(super) fn load(paths: &[PathBuf]) -> Result<Self> {
        let documents = documents::load_documents(paths)?.into_iter();
        let values = documents.filter_map(|document| document.value.ok());
        let is_definition = |value: &Value| value_at(value, "/kind") == "CustomResourceDefinition";
        Ok(Self(values.filter(is_definition).collect()))
    }

    fn find(&self, group: &Value, kind: &Value) -> Option<&Value> {
        let mut all = self.0.iter();
        all.find(|it| {
            value_at(it, "/spec/group") == group && value_at(it, "/spec/names/kind") == kind
        })
    }
}

/// Returns the value at a JSON pointer. Returns null if the value is missing.
fn value_at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Converts a witness for the mutating policy `policy` to a case. The case binds the policy with the witness's params,
/// and expects errors.
pub(super) fn case(policy: &Value, witness: &Value, definitions: &Definitions) -> Result<Value> {
    let of = |name: &str| value_at(witness, &format!("/request/{name}"));
    let params = value_at(witness, "/params");
    let mut bound = non_null([("policyName", value_at(policy, "/metadata/name"))]);
    let mut all = Vec::new();
    if !params.is_null() {
        let mut reference = non_null([
            ("name", value_at(params, "/metadata/name")),
            ("namespace", value_at(params, "/metadata/namespace")),
        ]);
        reference.insert("parameterNotFoundAction".to_owned(), json!("Deny"));
        bound.insert("paramRef".to_owned(), reference.into());
        all.push(params);
    }
    let binding = json!({"metadata": {"name": "witness"}, "spec": bound});
    let mut case = non_null([
        ("group", of("resource/group")),
        ("version", of("resource/version")),
        ("resource", of("resource/resource")),
        ("subresource", of("subResource")),
        ("operation", of("operation")),
        ("object", of("object")),
        ("old", of("oldObject")),
        ("userInfo", of("userInfo")),
        ("namespace", value_at(witness, "/namespaceObject")),
    ]);
    let policies = json!([{"policy": defaulted(policy)?, "bindings": [binding], "params": all}]);
    case.insert("policies".to_owned(), policies);
    if let Some(definition) = definitions.find(of("kind/group"), of("kind/kind")) {
        case.insert("crd".to_owned(), definition.clone());
    }
    Ok(case.into())
}

fn non_null<'a>(fields: impl IntoIterator<Item = (&'static str, &'a Value)>) -> Map<String, Value> {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    fields
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

/// Returns the policy with the defaults that the oracle does not set. failurePolicy becomes Fail, so that an error
/// rejects the request.
fn defaulted(policy: &Value) -> Result<Value> {
    let mut policy = policy.clone();
    let spec = policy.get_mut("spec").and_then(Value::as_object_mut);
    let spec = spec.context("a policy without spec")?;
    spec.insert("failurePolicy".to_owned(), json!("Fail"));
    default(spec, "reinvocationPolicy", &json!("Never"));
    let constraints = spec
        .get_mut("matchConstraints")
        .and_then(Value::as_object_mut);
    let constraints = constraints.context("a policy without matchConstraints")?;
    constraints.insert("matchPolicy".to_owned(), json!("Exact"));
    default(constraints, "namespaceSelector", &json!({}));
    default(constraints, "objectSelector", &json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        let rules = constraints.get_mut(rules).and_then(Value::as_array_mut);
        let rules = rules.into_iter().flatten();
        for rule in rules.filter_map(Value::as_object_mut) {
            default(rule, "scope", &json!("*"));
        }
    }
    Ok(policy)
}

fn default(fields: &mut Map<String, Value>, name: &str, value: &Value) {
    let field = fields.entry(name).or_insert(Value::Null);
    if field.is_null() {
        *field = value.clone();
    }
}

/// Decodes the errors in the oracle's result. Each error is a string that contains JSON.
pub(super) fn answer(mut answer: Value) -> Value {
    let errors = answer.get_mut("errors").and_then(Value::as_array_mut);
    for error in errors.into_iter().flatten() {
        let read = error
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        if let Some(read) = read {
            *error = read;
        }
    }
    answer
}
