//! Witnesses of mutations that cannot be applied, as cases of the oracle's `mutate admit`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::documents;

/// The definitions of custom resources that policies are about.
#[derive(Debug, Default)]
pub(super) struct Definitions(Vec<Value>);

impl Definitions {
    pub(super) fn load(paths: &[PathBuf]) -> Result<Self> {
        let documents = documents::load_documents(paths)?.into_iter();
        let values = documents.filter_map(|document| document.value.ok());
        let is_definition = |value: &Value| value["kind"] == "CustomResourceDefinition";
        Ok(Self(values.filter(is_definition).collect()))
    }

    fn of(&self, group: &Value, kind: &Value) -> Option<&Value> {
        let mut all = self.0.iter();
        all.find(|it| it["spec"]["group"] == *group && it["spec"]["names"]["kind"] == *kind)
    }
}

/// The witness for `policy`, a MutatingAdmissionPolicy, as a case: it is bound, with the params of the witness, and its
/// errors are answers.
pub(super) fn case(policy: &Value, witness: &Value, definitions: &Definitions) -> Result<Value> {
    let request = &witness["request"];
    let params = &witness["params"];
    let mut binding = json!({"metadata": {"name": "witness"}, "spec": {"policyName": policy["metadata"]["name"]}});
    if !params.is_null() {
        let metadata = &params["metadata"];
        let mut reference = json!({"name": metadata["name"], "parameterNotFoundAction": "Deny"});
        if !metadata["namespace"].is_null() {
            reference["namespace"] = metadata["namespace"].clone();
        }
        binding["spec"]["paramRef"] = reference;
    }
    let mut case = json!({
        "group": request["resource"]["group"], "version": request["resource"]["version"],
        "resource": request["resource"]["resource"], "subresource": request["subResource"],
        "operation": request["operation"], "object": request["object"],
        "policies": [{"policy": defaulted(policy)?, "bindings": [binding]}],
    });
    let given = [
        ("old", &request["oldObject"]),
        ("userInfo", &request["userInfo"]),
        ("namespace", &witness["namespaceObject"]),
    ];
    for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
        case[name] = value.clone();
    }
    if !params.is_null() {
        case["policies"][0]["params"] = json!([params]);
    }
    let kind = &request["kind"];
    if let Some(definition) = definitions.of(&kind["group"], &kind["kind"]) {
        case["crd"] = definition.clone();
    }
    Ok(case)
}

/// The policy with the defaults that the oracle does not set; an error refuses the request whatever it says.
fn defaulted(policy: &Value) -> Result<Value> {
    let mut policy = policy.clone();
    let spec = policy.get_mut("spec").context("a policy without spec")?;
    spec["failurePolicy"] = json!("Fail");
    if spec["reinvocationPolicy"].is_null() {
        spec["reinvocationPolicy"] = json!("Never");
    }
    let constraints = &mut spec["matchConstraints"];
    constraints["matchPolicy"] = json!("Exact");
    for selector in ["namespaceSelector", "objectSelector"] {
        if constraints[selector].is_null() {
            constraints[selector] = json!({});
        }
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in constraints[rules].as_array_mut().into_iter().flatten() {
            if rule["scope"].is_null() {
                rule["scope"] = json!("*");
            }
        }
    }
    Ok(policy)
}

/// The answer with the texts of its errors read: they are JSON.
pub(super) fn answer(mut answer: Value) -> Value {
    for error in answer["errors"].as_array_mut().into_iter().flatten() {
        let read = error
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        if let Some(read) = read {
            *error = read;
        }
    }
    answer
}
