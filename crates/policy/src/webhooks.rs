//! Webhooks as policies: a webhook asks about its match conditions what a policy asks about its own, with the same
//! variables but without params, the same limits and the same treatment of failures. So each is read as a policy that
//! has its rules, selectors and match conditions and nothing else.
//!
//! Knows neither files nor clusters.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`, `validateMatchConditions`;
//! `k8s.io/apiserver` `pkg/admission/plugin/webhook/accessors.go`, `GetCompiledMatcher`.

use serde_json::{Map, Value, json};

/// The fields of a policy's constraints that a webhook has, each with the name that it has there.
pub const CONSTRAINTS: [(&str, &str); 4] = [
    ("resourceRules", "rules"),
    ("matchPolicy", "matchPolicy"),
    ("namespaceSelector", "namespaceSelector"),
    ("objectSelector", "objectSelector"),
];

/// The other fields of a policy that a webhook has.
pub const SPEC: [&str; 2] = ["failurePolicy", "matchConditions"];

/// A webhook as the API server has it, as a policy of its name.
#[must_use]
pub fn as_policy(webhook: &Value) -> Value {
    let own = |name: &str| webhook.get(name).filter(|value| !value.is_null()).cloned();
    let constraints = CONSTRAINTS.iter();
    let constraints: Map<String, Value> = constraints
        .filter_map(|(name, theirs)| Some(((*name).to_owned(), own(theirs)?)))
        .collect();
    let spec = SPEC.iter();
    let mut spec: Map<String, Value> = spec
        .filter_map(|name| Some(((*name).to_owned(), own(name)?)))
        .collect();
    spec.insert("matchConstraints".to_owned(), Value::Object(constraints));
    json!({"metadata": {"name": own("name")}, "spec": spec})
}

/// The field of the webhook `n` that a field of its policy stands for.
#[must_use]
pub fn of_field(n: usize, field_ref: &str) -> String {
    let Some(field) = field_ref.strip_prefix("spec.") else {
        return field_ref.to_owned();
    };
    let field = match field.strip_prefix("matchConstraints") {
        None => field.to_owned(),
        Some("") => "rules".to_owned(),
        Some(constraint) => {
            let constraint = constraint.trim_start_matches('.');
            let renamed = CONSTRAINTS.iter().find_map(|(name, theirs)| {
                let rest = constraint.strip_prefix(name)?;
                Some(format!("{theirs}{rest}"))
            });
            renamed.unwrap_or_else(|| constraint.to_owned())
        }
    };
    format!("webhooks[{n}].{field}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_webhook() {
        let table = [
            (
                "spec.matchConditions[1].expression",
                "webhooks[2].matchConditions[1].expression",
            ),
            (
                "spec.matchConstraints.resourceRules[0]",
                "webhooks[2].rules[0]",
            ),
            (
                "spec.matchConstraints.objectSelector",
                "webhooks[2].objectSelector",
            ),
            ("spec.matchConstraints", "webhooks[2].rules"),
            ("metadata.name", "metadata.name"),
        ];
        for (field, wanted) in table {
            assert_eq!(of_field(2, field), wanted);
        }
    }

    #[test]
    fn malformed_webhook_becomes_policy_of_its_valid_fields() {
        let policy = as_policy(&json!({"name": "a", "rules": [], "failurePolicy": null,
            "matchConditions": [{"name": "c", "expression": "true"}], "clientConfig": {}}));
        assert_eq!(
            policy,
            json!({"metadata": {"name": "a"}, "spec": {
                "matchConditions": [{"name": "c", "expression": "true"}],
                "matchConstraints": {"resourceRules": []}}})
        );
        assert_eq!(
            as_policy(&json!(7)),
            json!({"metadata": {"name": null}, "spec": {"matchConstraints": {}}})
        );
    }
}
