//! Test cases: mutating policies and their bindings with one invalid field each.

use serde_json::{Value, json};

use super::{Case, binding, policy};

/// Returns a valid mutating policy with all fields.
pub(super) fn mutating_policy() -> Value {
    let mut policy = policy();
    policy["kind"] = json!("MutatingAdmissionPolicy");
    if let Some(spec) = policy["spec"].as_object_mut() {
        spec.retain(|name, _| !["validations", "auditAnnotations"].contains(&name.as_str()));
        spec.insert("reinvocationPolicy".to_owned(), json!("Never"));
        let mutations = json!([
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{}]"}},
        ]);
        spec.insert("mutations".to_owned(), mutations);
    }
    policy
}

/// Returns a valid binding of a mutating policy with all fields.
pub(super) fn mutating_binding() -> Value {
    let mut binding = binding();
    binding["kind"] = json!("MutatingAdmissionPolicyBinding");
    if let Some(spec) = binding["spec"].as_object_mut() {
        spec.remove("validationActions");
    }
    binding
}

pub(super) fn mutation_cases() -> Vec<Case> {
    vec![
        (
            "spec.matchConstraints",
            json!(null),
            &["required spec.matchConstraints"],
        ),
        (
            "spec.matchConstraints.resourceRules[0].operations",
            json!(["DELETE"]),
            &["invalid-value spec.matchConstraints.resourceRules[0].operations[0]"],
        ),
        ("spec.mutations", json!(null), &["required spec.mutations"]),
        ("spec.mutations", json!([]), &["required spec.mutations"]),
        (
            "spec.mutations",
            json!([null]),
            &["required spec.mutations[0].patchType"],
        ),
        (
            "spec.mutations[0].patchType",
            json!("Merge"),
            &["invalid-value spec.mutations[0].patchType"],
        ),
        (
            "spec.mutations[0].patchType",
            json!("JSONPatch"),
            &[
                "required spec.mutations[0].jsonPatch",
                "invalid-value spec.mutations[0].applyConfiguration",
            ],
        ),
        (
            "spec.mutations[1].jsonPatch",
            json!(null),
            &["required spec.mutations[1].jsonPatch"],
        ),
        (
            "spec.mutations[0].jsonPatch",
            json!({}),
            &["invalid-value spec.mutations[0].jsonPatch"],
        ),
        (
            "spec.reinvocationPolicy",
            json!(""),
            &["required spec.reinvocationPolicy"],
        ),
        (
            "spec.reinvocationPolicy",
            json!("Always"),
            &["invalid-value spec.reinvocationPolicy"],
        ),
    ]
}

pub(super) fn mutating_binding_cases() -> Vec<Case> {
    vec![(
        "spec.matchResources.resourceRules[0].operations",
        json!(["CREATE", "DELETE"]),
        &["invalid-value spec.matchResources.resourceRules[0].operations[1]"],
    )]
}

/// Returns the cases of validating policies and bindings that also apply to mutating policies and bindings.
pub(super) fn shared(cases: Vec<Case>) -> Vec<Case> {
    const OWN: [&str; 3] = ["validations", "auditAnnotations", "validationActions"];
    let is_own = |(field, value, violations): &Case| {
        let texts = [
            &field.to_string(),
            &value.to_string(),
            &violations.join(" "),
        ];
        let mentions = |name: &&str| texts.iter().any(|text| text.contains(name));
        OWN.iter().any(mentions) || *field == "spec"
    };
    cases.into_iter().filter(|case| !is_own(case)).collect()
}
