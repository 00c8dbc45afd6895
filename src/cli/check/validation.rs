//! Refusals by the API server of a policy or binding for other reasons than its expressions and its shape:
//! missing values that are required, and values that exclude each other.
//!
//! Selectors and the syntax of names are left to the API server.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`
//! (`validateValidatingAdmissionPolicySpec`, `validateMatchResources`, `validateRule`,
//! `validateResources`, `validateMatchConditions`, `validateVariable`, `validateValidation`,
//! `validateAuditAnnotation`, `validateParamKind`, `validateParamRef`, `validateValidationActions`).

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    AuditAnnotation, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};

use super::finding::{Finding, Severity};
use super::policy::finding;
use crate::cli::input::Object;
use crate::library::limits::{
    MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH, MAX_AUDIT_ANNOTATIONS, MAX_MATCH_CONDITIONS,
};
use crate::policy::rule::Rule;
use crate::schema::escape;

/// Collects what is refused.
struct Refused<'a, T> {
    object: &'a Object<T>,
    findings: Vec<Finding>,
}

impl<T> Refused<'_, T> {
    fn required(&mut self, field_ref: &str, message: &str) {
        let message = match message {
            "" => format!("`{field_ref}` is required"),
            message => message.to_owned(),
        };
        self.add(Rule::Required, field_ref, &message);
    }

    fn invalid(&mut self, field_ref: &str, message: &str) {
        self.add(Rule::InvalidValue, field_ref, message);
    }

    fn add(&mut self, rule: Rule, field_ref: &str, message: &str) {
        let place = self.object.place_of_field(field_ref);
        let mut found = finding(self.object, Severity::Error, rule, message, place);
        found.field_ref = Some(field_ref.to_owned());
        found.help = Some("the API server refuses it".to_owned());
        self.findings.push(found);
    }
}

/// The faults for which the API server refuses a policy.
#[must_use]
pub fn policy(policy: &Object<ValidatingAdmissionPolicy>) -> Vec<Finding> {
    let mut refused = Refused {
        object: policy,
        findings: Vec::new(),
    };
    let is_blank = |text: Option<&String>| text.is_none_or(|text| text.trim().is_empty());
    if is_blank(policy.value.metadata.name.as_ref()) {
        refused.required("metadata.name", "");
    }
    let Some(spec) = &policy.value.spec else {
        return refused.findings;
    };
    if let Some(kind) = &spec.param_kind {
        if is_blank(kind.api_version.as_ref()) {
            refused.required("spec.paramKind.apiVersion", "");
        }
        if is_blank(kind.kind.as_ref()) {
            refused.required("spec.paramKind.kind", "");
        }
    }
    match &spec.match_constraints {
        None => refused.required("spec.matchConstraints", ""),
        Some(constraints) => {
            let rules = constraints.resource_rules.as_deref().unwrap_or_default();
            if rules.is_empty() {
                refused.required("spec.matchConstraints.resourceRules", "");
            }
            match_resources(&mut refused, constraints, "spec.matchConstraints");
        }
    }

    let conditions = spec.match_conditions.as_deref().unwrap_or_default();
    if conditions.len() > MAX_MATCH_CONDITIONS {
        let message = format!("more than {MAX_MATCH_CONDITIONS} match conditions");
        refused.invalid("spec.matchConditions", &message);
    }
    let mut names = BTreeSet::new();
    for (n, condition) in conditions.iter().enumerate() {
        let field_ref = format!("spec.matchConditions[{n}].name");
        if condition.name.is_empty() {
            refused.required(&field_ref, "");
        } else if !names.insert(&condition.name) {
            let message = format!("two match conditions are named `{}`", condition.name);
            refused.invalid(&field_ref, &message);
        }
    }
    for (n, variable) in spec.variables.iter().flatten().enumerate() {
        let field_ref = format!("spec.variables[{n}].name");
        if variable.name.trim().is_empty() {
            refused.required(&field_ref, "");
        } else if !is_identifier(&variable.name) {
            let message = format!("`{}` is no identifier of CEL", variable.name);
            refused.invalid(&field_ref, &message);
        }
        if variable.expression.trim().is_empty() {
            refused.required(&format!("spec.variables[{n}].expression"), "");
        }
    }

    let validations = spec.validations.as_deref().unwrap_or_default();
    let annotations = spec.audit_annotations.as_deref().unwrap_or_default();
    if validations.is_empty() && annotations.is_empty() {
        refused.required(
            "spec.validations",
            "validations or auditAnnotations must contain at least one item",
        );
    }
    for (n, validation) in validations.iter().enumerate() {
        let blank = |text: &Option<String>| {
            text.as_ref()
                .is_some_and(|text| !text.is_empty() && text.trim().is_empty())
        };
        if blank(&validation.message_expression) {
            let field_ref = format!("spec.validations[{n}].messageExpression");
            refused.invalid(&field_ref, "the messageExpression is blank");
        }
        let field_ref = format!("spec.validations[{n}].message");
        let message = validation.message.as_deref().unwrap_or_default().trim();
        if blank(&validation.message) {
            refused.invalid(&field_ref, "the message is blank");
        } else if message.contains(['\n', '\r']) {
            refused.invalid(&field_ref, "the message must not contain line breaks");
        }
    }
    audit_annotations(&mut refused, annotations);
    refused.findings
}

/// Source: `validateAuditAnnotation`.
fn audit_annotations(
    refused: &mut Refused<'_, ValidatingAdmissionPolicy>,
    annotations: &[AuditAnnotation],
) {
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let message = format!("more than {MAX_AUDIT_ANNOTATIONS} audit annotations");
        refused.invalid("spec.auditAnnotations", &message);
    }
    let mut keys = BTreeSet::new();
    for (n, annotation) in annotations.iter().enumerate() {
        let field_ref = format!("spec.auditAnnotations[{n}].key");
        if annotation.key.is_empty() {
            refused.required(&field_ref, "");
        } else if !keys.insert(&annotation.key) {
            let message = format!("two audit annotations have the key `{}`", annotation.key);
            refused.invalid(&field_ref, &message);
        }
        let length = annotation.value_expression.trim().len();
        if length > MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH {
            let field_ref = format!("spec.auditAnnotations[{n}].valueExpression");
            let message = format!(
                "longer than {MAX_AUDIT_ANNOTATION_VALUE_EXPRESSION_LENGTH} bytes: {length}"
            );
            refused.invalid(&field_ref, &message);
        }
    }
}

/// The faults for which the API server refuses a binding.
#[must_use]
pub fn binding(binding: &Object<ValidatingAdmissionPolicyBinding>) -> Vec<Finding> {
    let mut refused = Refused {
        object: binding,
        findings: Vec::new(),
    };
    let metadata = &binding.value.metadata;
    if metadata.name.as_ref().is_none_or(String::is_empty) {
        refused.required("metadata.name", "");
    }
    let spec = &binding.value.spec;
    if spec.policy_name.is_empty() {
        refused.required("spec.policyName", "");
    }
    if let Some(resources) = &spec.match_resources {
        match_resources(&mut refused, resources, "spec.matchResources");
    }
    if let Some(param_ref) = &spec.param_ref {
        let has_name = param_ref.name.as_ref().is_some_and(|name| !name.is_empty());
        match (has_name, param_ref.selector.is_some()) {
            (true, true) => refused.invalid(
                "spec.paramRef.name",
                "`name` and `selector` exclude each other",
            ),
            (false, false) => refused.required(
                "spec.paramRef",
                "one of `name` and `selector` must be specified",
            ),
            (true, false) | (false, true) => {}
        }
        let action = param_ref.parameter_not_found_action.as_ref();
        if action.is_none_or(String::is_empty) {
            refused.required("spec.paramRef.parameterNotFoundAction", "");
        }
    }
    let actions = spec.validation_actions.as_slice();
    let distinct: BTreeSet<&str> = actions.iter().map(String::as_str).collect();
    if distinct.is_empty() {
        refused.required("spec.validationActions", "");
    }
    if distinct.len() < actions.len() {
        refused.invalid("spec.validationActions", "an action is given twice");
    }
    if distinct.contains("Deny") && distinct.contains("Warn") {
        refused.invalid(
            "spec.validationActions",
            "must not contain both Deny and Warn",
        );
    }
    refused.findings
}

fn match_resources<T>(refused: &mut Refused<'_, T>, resources: &MatchResources, path: &str) {
    for (name, rules) in [
        ("resourceRules", &resources.resource_rules),
        ("excludeResourceRules", &resources.exclude_resource_rules),
    ] {
        for (n, of) in rules.iter().flatten().enumerate() {
            rule(refused, of, &format!("{path}.{name}[{n}]"));
        }
    }
}

fn rule<T>(refused: &mut Refused<'_, T>, rule: &NamedRuleWithOperations, path: &str) {
    for (name, values) in [
        ("apiGroups", &rule.api_groups),
        ("apiVersions", &rule.api_versions),
        ("operations", &rule.operations),
    ] {
        let field_ref = format!("{path}.{name}");
        let values = values.as_deref().unwrap_or_default();
        if values.is_empty() {
            refused.required(&field_ref, "");
        }
        if values.len() > 1 && values.iter().any(|value| value == "*") {
            let message = format!("if `*` is present, `{name}` must not have other items");
            refused.invalid(&field_ref, &message);
        }
        // The core group is the empty one; nothing else may be empty.
        if name != "apiGroups" && values.iter().any(String::is_empty) {
            refused.required(&field_ref, &format!("an item of `{name}` is empty"));
        }
    }
    resources(refused, rule, path);
}

fn resources<T>(refused: &mut Refused<'_, T>, rule: &NamedRuleWithOperations, path: &str) {
    let field_ref = format!("{path}.resources");
    let names = rule.resources.as_deref().unwrap_or_default();
    if names.is_empty() {
        refused.required(&field_ref, "");
    }
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if names.len() > 1 && has("*/*") {
        let message = "if `*/*` is present, `resources` must not have other items";
        refused.invalid(&field_ref, message);
    }
    // Upstream looks at the last resource without a subresource.
    let last = names
        .iter()
        .rfind(|name| !name.is_empty() && !name.contains('/'));
    if has("*") && last.is_some_and(|last| last != "*") {
        let message = "if `*` is present, `resources` must not have other resources without \
                       subresources";
        refused.invalid(&field_ref, message);
    }
    let mut all_of_resource = BTreeSet::new();
    let mut of_all_resources = BTreeSet::new();
    for (n, name) in names.iter().enumerate() {
        let item = format!("{field_ref}[{n}]");
        if name.is_empty() {
            refused.required(&item, "");
        }
        let Some((resource, subresource)) = name.split_once('/') else {
            continue;
        };
        if all_of_resource.contains(resource) {
            let message = format!("`{resource}/*`, which is present, comprises `{name}`");
            refused.invalid(&item, &message);
        }
        if of_all_resources.contains(subresource) {
            let message = format!("`*/{subresource}`, which is present, comprises `{name}`");
            refused.invalid(&item, &message);
        }
        if subresource == "*" {
            all_of_resource.insert(resource);
        }
        if resource == "*" {
            of_all_resources.insert(subresource);
        }
    }
}

/// Reports whether a variable may have the name.
///
/// Source: `validation.go`, `isCELIdentifier`.
fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    chars.next().is_some_and(is_first)
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !escape::is_reserved(name)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cli::input::{Input, Wanted};

    /// Checks what is refused of a policy with these parts, as field references.
    #[track_caller]
    fn check(rule: &str, rest: &str, expect: &[&str]) {
        let text = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: \
             {{name: a}}\nspec:\n  matchConstraints: {{resourceRules: [{{{rule}}}]}}\n{rest}"
        );
        let paths = [PathBuf::from("-")];
        let input = Input::load(&paths, Wanted::Policies, &mut text.as_bytes());
        let [only] = &input.policies[..] else {
            panic!("{:?}", input.problems)
        };
        let found = policy(only);
        let found: Vec<_> = found
            .iter()
            .filter_map(|it| it.field_ref.as_deref())
            .collect();
        assert_eq!(found, expect, "{text}");
    }

    const RULE: &str =
        "apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]";
    const VALIDATIONS: &str = "  validations: [{expression: 'true'}]\n";

    #[test]
    fn what_is_required_must_be_there() {
        check(RULE, VALIDATIONS, &[]);
        check(
            RULE,
            "  auditAnnotations: [{key: a, valueExpression: \"'x'\"}]\n",
            &[],
        );
        check(RULE, "", &["spec.validations"]);
        let path = |name: &str| format!("spec.matchConstraints.resourceRules[0].{name}");
        let all = ["apiGroups", "apiVersions", "operations", "resources"].map(path);
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        check("", VALIDATIONS, &all);
    }

    /// Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`,
    /// `validateAuditAnnotation`.
    #[test]
    fn value_expressions_have_a_greatest_length() {
        let with = |length: usize, expect: &[&str]| {
            let expression = format!("'{}'", "x".repeat(length - 2));
            let rest =
                format!("  auditAnnotations: [{{key: a, valueExpression: \" {expression} \"}}]\n");
            check(RULE, &rest, expect);
        };
        with(5 * 1024, &[]);
        with(5 * 1024 + 1, &["spec.auditAnnotations[0].valueExpression"]);
    }

    #[test]
    fn wildcards_exclude_others() {
        let with = |resources: &str, expect: &[&str]| {
            let rule = RULE.replace("[pods]", resources);
            check(&rule, VALIDATIONS, expect);
        };
        let path = "spec.matchConstraints.resourceRules[0].resources";
        with("['*', 'pods/exec']", &[]);
        with("['*', pods]", &[path]);
        with("['*/*', pods/exec]", &[path]);
        with("['pods/*', pods/exec]", &[&format!("{path}[1]")]);
        with("[pods/exec, 'pods/*']", &[]);
        with("['*/scale', pods/scale]", &[&format!("{path}[1]")]);
        check(
            &RULE.replace("['']", "['', '*']"),
            VALIDATIONS,
            &["spec.matchConstraints.resourceRules[0].apiGroups"],
        );
    }

    #[test]
    fn names_are_identifiers_and_unique() {
        let rest = format!(
            "{VALIDATIONS}  variables: [{{name: a-b, expression: '1'}}, {{name: in, expression: '1'}}, \
             {{name: ok, expression: ' '}}]\n  matchConditions: [{{name: a, expression: 'true'}}, \
             {{name: a, expression: 'true'}}]\n"
        );
        check(
            RULE,
            &rest,
            &[
                "spec.matchConditions[1].name",
                "spec.variables[0].name",
                "spec.variables[1].name",
                "spec.variables[2].expression",
            ],
        );
        check(
            RULE,
            "  validations: [{expression: 'true', message: \"a\\nb\"}, {expression: 'true', message: ' '}]\n",
            &["spec.validations[0].message", "spec.validations[1].message"],
        );
    }
}
