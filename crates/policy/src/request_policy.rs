//! The parts of a policy or webhook that determine its effect on requests, in a common type.
//!
//! A [`RequestPolicy`] is created from a ValidatingAdmissionPolicy, from a MutatingAdmissionPolicy without its
//! mutations, or from one webhook of a configuration. Field paths are always those of a policy.
//! [`webhooks::field_of_webhook`] converts them for webhooks.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating/plugin.go` (`NewPlugin`),
//! `pkg/admission/plugin/webhook/accessors.go` (`WebhookAccessor`).
//!
//! [`webhooks::field_of_webhook`]: crate::webhooks::field_of_webhook

use k8s_openapi::api::admissionregistration::v1::{
    AuditAnnotation, MatchCondition, MatchResources, MutatingAdmissionPolicy,
    NamedRuleWithOperations, ParamKind, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
    Validation, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubernetes::schema::{GroupVersion, Gvk};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parts of a policy or webhook that determine its effect on requests.
///
/// An absent list is an empty list. Only the controller's own storage uses the serialized form.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestPolicy {
    /// The name of the policy or webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The kind of the params. `None` for webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param_kind: Option<ParamKind>,
    /// The rules and selectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_constraints: Option<MatchResources>,
    /// The match conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// The variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// The validations of a ValidatingAdmissionPolicy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<Validation>,
    /// The audit annotations of a ValidatingAdmissionPolicy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audit_annotations: Vec<AuditAnnotation>,
    /// The effect of an error. `Fail` (the default) denies the request, `Ignore` does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
    /// The paths of fields that this type and the types of `k8s-openapi` do not have, such as
    /// `spec.matchConstraints.new`. For a webhook, they begin with the field of the webhook, such as `new`. Only an API
    /// server that is newer than the supported versions returns such fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_fields: Vec<String>,
}

impl RequestPolicy {
    /// Creates a policy that consists of match constraints, for example those of a binding.
    #[must_use]
    pub fn with_constraints(constraints: MatchResources) -> Self {
        Self {
            match_constraints: Some(constraints),
            ..Self::default()
        }
    }

    /// Creates a policy from its name and spec.
    #[must_use]
    pub fn new(name: Option<String>, spec: ValidatingAdmissionPolicySpec) -> Self {
        Self {
            name,
            param_kind: spec.param_kind,
            match_constraints: spec.match_constraints,
            match_conditions: spec.match_conditions.unwrap_or_default(),
            variables: spec.variables.unwrap_or_default(),
            validations: spec.validations.unwrap_or_default(),
            audit_annotations: spec.audit_annotations.unwrap_or_default(),
            failure_policy: spec.failure_policy,
            unknown_fields: Vec::new(),
        }
    }

    /// Creates a policy from the rules, selectors and match conditions of a webhook.
    ///
    /// # Errors
    /// Returns an error if one of these fields has the wrong type.
    pub fn from_webhook(webhook: &Value) -> Result<Self, serde_json::Error> {
        let webhook = match webhook {
            Value::Object(_) => Webhook::deserialize(webhook)?,
            _ => Webhook::default(),
        };
        Ok(Self {
            name: webhook.name,
            match_constraints: Some(MatchResources {
                resource_rules: webhook.rules,
                match_policy: webhook.match_policy,
                namespace_selector: webhook.namespace_selector,
                object_selector: webhook.object_selector,
                ..MatchResources::default()
            }),
            match_conditions: webhook.match_conditions.unwrap_or_default(),
            failure_policy: webhook.failure_policy,
            ..Self::default()
        })
    }
}

impl RequestPolicy {
    /// Replaces the expression in the field `field_ref`, such as `spec.validations[0].expression`. Returns `None` if the
    /// policy has no such expression.
    pub fn set_expression(&mut self, field_ref: &str, text: String) -> Option<()> {
        let (list, rest) = field_ref.strip_prefix("spec.")?.split_once('[')?;
        let (index, field) = rest.split_once("].")?;
        let index: usize = index.parse().ok()?;
        let expression = match (list, field) {
            ("matchConditions", "expression") => {
                &mut self.match_conditions.get_mut(index)?.expression
            }
            ("variables", "expression") => &mut self.variables.get_mut(index)?.expression,
            ("validations", "expression") => &mut self.validations.get_mut(index)?.expression,
            ("validations", "messageExpression") => self
                .validations
                .get_mut(index)?
                .message_expression
                .as_mut()?,
            ("auditAnnotations", "valueExpression") => {
                &mut self.audit_annotations.get_mut(index)?.value_expression
            }
            _ => return None,
        };
        *expression = text;
        Some(())
    }
}

impl From<ValidatingAdmissionPolicy> for RequestPolicy {
    fn from(policy: ValidatingAdmissionPolicy) -> Self {
        Self::new(policy.metadata.name, policy.spec.unwrap_or_default())
    }
}

impl From<&ValidatingAdmissionPolicy> for RequestPolicy {
    fn from(policy: &ValidatingAdmissionPolicy) -> Self {
        let spec = policy.spec.clone().unwrap_or_default();
        Self::new(policy.metadata.name.clone(), spec)
    }
}

/// Converts a mutating policy without its mutations. The operation `*` in a rule is replaced by the operations for
/// which the API server calls mutating policies.
impl From<&MutatingAdmissionPolicy> for RequestPolicy {
    fn from(policy: &MutatingAdmissionPolicy) -> Self {
        let name = policy.metadata.name.clone();
        let spec = policy.spec.clone().unwrap_or_default();
        let mut match_constraints = spec.match_constraints;
        let constraints = match_constraints.iter_mut();
        let rules = constraints.flat_map(|constraints| constraints.resource_rules.iter_mut());
        rules.flatten().for_each(expand_operations);
        Self {
            name,
            param_kind: spec.param_kind,
            match_constraints,
            match_conditions: spec.match_conditions.unwrap_or_default(),
            variables: spec.variables.unwrap_or_default(),
            failure_policy: spec.failure_policy,
            ..Self::default()
        }
    }
}

impl From<&Self> for RequestPolicy {
    fn from(policy: &Self) -> Self {
        policy.clone()
    }
}

/// The operations for which the API server calls mutating policies.
const MUTATING_OPERATIONS: [&str; 3] = ["CREATE", "UPDATE", "CONNECT"];

fn expand_operations(rule: &mut NamedRuleWithOperations) {
    if let Some(operations) = &mut rule.operations
        && operations.iter().any(|operation| operation == "*")
    {
        *operations = MUTATING_OPERATIONS.map(str::to_owned).to_vec();
    }
}

/// The fields of a webhook that [`RequestPolicy`] also has. A null field counts as absent.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Webhook {
    name: Option<String>,
    rules: Option<Vec<NamedRuleWithOperations>>,
    match_policy: Option<String>,
    namespace_selector: Option<LabelSelector>,
    object_selector: Option<LabelSelector>,
    match_conditions: Option<Vec<MatchCondition>>,
    failure_policy: Option<String>,
}

/// Returns the kind of the policy's params. `None` if there is no paramKind, or if its apiVersion cannot be parsed.
///
/// Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go`, `TypeChecker.paramsGVK`.
#[must_use]
pub fn param_kind(policy: &RequestPolicy) -> Option<Gvk> {
    let param_kind = policy.param_kind.as_ref()?;
    let api_version = param_kind.api_version.as_deref().unwrap_or_default();
    let kind = param_kind.kind.clone().unwrap_or_default();
    let (group, version) = GroupVersion::split_valid(api_version)?;
    Some(Gvk::new(group, version, kind))
}

/// Returns the declared paramKind, for lookups and messages. An apiVersion that cannot be parsed becomes the version of
/// the result. Lookups of such a version fail.
#[must_use]
pub fn declared_param_kind(policy: &RequestPolicy) -> Option<Gvk> {
    let declared = policy.param_kind.as_ref()?;
    Some(param_kind(policy).unwrap_or_else(|| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Gvk::new("", text(&declared.api_version), text(&declared.kind))
    }))
}

/// Returns true if errors deny the request: failurePolicy is `Fail` or absent.
#[must_use]
pub fn fails_closed(policy: &RequestPolicy) -> bool {
    policy.failure_policy.as_deref() != Some("Ignore")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wildcard_operation_of_mutating_policy_is_expanded() {
        let rule = |operations: &[&str]| json!({"resources": ["pods"], "operations": operations});
        let policy: MutatingAdmissionPolicy = serde_json::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {
                "failurePolicy": "Ignore",
                "matchConstraints": {"resourceRules": [rule(&["*"]), rule(&["DELETE"])]},
                "variables": [{"name": "v", "expression": "1"}],
            },
        }))
        .unwrap();
        let converted = RequestPolicy::from(&policy);
        let expected: ValidatingAdmissionPolicy = serde_json::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {
                "failurePolicy": "Ignore",
                "matchConstraints":
                    {"resourceRules": [rule(&MUTATING_OPERATIONS), rule(&["DELETE"])]},
                "variables": [{"name": "v", "expression": "1"}],
            },
        }))
        .unwrap();
        assert_eq!(converted, RequestPolicy::from(expected));
        assert!(!fails_closed(&converted));
    }

    #[test]
    fn null_and_unused_fields_of_webhook_are_ignored() {
        let webhook = json!({
            "name": "a", "rules": [], "failurePolicy": null, "clientConfig": {},
            "matchConditions": [{"name": "c", "expression": "true"}],
        });
        let policy = RequestPolicy::from_webhook(&webhook).unwrap();
        assert_eq!(policy.name.as_deref(), Some("a"));
        assert_eq!(policy.match_conditions.len(), 1);
        assert_eq!(policy.failure_policy, None);
        let constraints = policy.match_constraints.unwrap();
        assert_eq!(constraints.resource_rules, Some(Vec::new()));
        let empty = RequestPolicy::from_webhook(&json!({})).unwrap();
        assert_eq!(empty.match_constraints, Some(MatchResources::default()));
        assert_eq!(RequestPolicy::from_webhook(&json!(7)).unwrap(), empty);
        RequestPolicy::from_webhook(&json!({"rules": 7})).unwrap_err();
    }

    #[test]
    fn request_policy_serialization_round_trips() {
        let policy = ValidatingAdmissionPolicy {
            spec: Some(ValidatingAdmissionPolicySpec {
                validations: Some(vec![Validation::default()]),
                ..ValidatingAdmissionPolicySpec::default()
            }),
            ..ValidatingAdmissionPolicy::default()
        };
        let policy = RequestPolicy::from(policy);
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(json, r#"{"validations":[{"expression":""}]}"#);
        let parsed: RequestPolicy = serde_json::from_str(&json).unwrap();
        assert_eq!(parsed, policy);
    }
}
