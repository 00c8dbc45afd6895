//! Simple policies with one rule and one expression.

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec, Validation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Returns a policy that evaluates `expression` on CREATE and UPDATE of a resource. The arguments contain the group and
/// the plural name of the resource. The version is `v1`.
#[must_use]
pub fn policy(
    name: &str,
    (group, resource): (&str, &str),
    expression: &str,
) -> ValidatingAdmissionPolicy {
    let rule = NamedRuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec!["v1".to_owned()]),
        operations: Some(vec!["CREATE".to_owned(), "UPDATE".to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        ..NamedRuleWithOperations::default()
    };
    ValidatingAdmissionPolicy {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(ValidatingAdmissionPolicySpec {
            match_constraints: Some(MatchResources {
                resource_rules: Some(vec![rule]),
                ..MatchResources::default()
            }),
            validations: Some(vec![Validation {
                expression: expression.to_owned(),
                ..Validation::default()
            }]),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    }
}
