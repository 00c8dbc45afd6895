//! Maps the fields of policies to the fields of webhooks.
//!
//! An API server evaluates the match conditions of a webhook like those of a policy. The variables are the same except
//! for `params`. The limits and the effects of failures are the same too.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`, `validateMatchConditions`;
//! `k8s.io/apiserver` `pkg/admission/plugin/webhook/accessors.go`, `GetCompiledMatcher`.

/// The fields of `matchConstraints` that webhooks also have: the name in a policy and the name in a webhook.
pub const CONSTRAINTS: [(&str, &str); 4] = [
    ("resourceRules", "rules"),
    ("matchPolicy", "matchPolicy"),
    ("namespaceSelector", "namespaceSelector"),
    ("objectSelector", "objectSelector"),
];

/// The other fields of a policy's spec that webhooks also have. The names are the same.
pub const SPEC: [&str; 2] = ["failurePolicy", "matchConditions"];

/// Converts the path `field_ref` in a policy to the path in a webhook configuration. `n` is the index of the webhook.
#[must_use]
pub fn field_of_webhook(n: usize, field_ref: &str) -> String {
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
    fn policy_field_is_renamed_to_field_of_webhook() {
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
        for (field, expected) in table {
            assert_eq!(field_of_webhook(2, field), expected);
        }
    }
}
