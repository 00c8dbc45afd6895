//! Tests validation rules of CustomResourceDefinitions: errors in the rules on creation, and errors in objects.
//!
//! `./dev parity` compares many cases with upstream. This file has at least one case for each kind of result. Most
//! cases come from upstream's tests.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};
use vap_status_controller::validation_rules::{Validator, has_rules, validate_rules};
use vap_status_controller::version::{CompileMode, KubernetesVersion};

fn definition(schema: &Value) -> Value {
    json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
}

/// Returns the schema of an object. `schema` is the schema of its field `spec`.
fn with_spec(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

/// Asserts the errors of a definition. `schema` is the schema of `spec`. Each error is the path below `spec`, and the
/// reason.
#[track_caller]
fn refused(schema: &Value, expect: &[(&str, &str)]) {
    let verdict = validate_rules(
        &definition(&with_spec(schema)),
        KubernetesVersion::DEFAULT,
        CompileMode::New,
    );
    let findings = verdict.errors.iter().map(|finding| {
        let path = finding.error.field.split_once(".properties[spec]");
        let detail = finding.error.detail.lines().next().unwrap();
        (
            path.map_or("", |(_, below)| below).to_owned(),
            detail.to_owned(),
        )
    });
    let findings: Vec<_> = findings.collect();
    let findings: Vec<_> = findings
        .iter()
        .map(|(path, detail)| (path.as_str(), detail.as_str()))
        .collect();
    assert_eq!(findings, expect);
}

/// Asserts the errors and warnings of an update from `before` to `spec`.
#[track_caller]
fn validated(
    schema: &Value,
    spec: &Value,
    before: Option<&Value>,
    errors: &[&str],
    warnings: &[&str],
) {
    let validator = Validator::new(&with_spec(schema), KubernetesVersion::DEFAULT).unwrap();
    let object =
        |spec: &Value| json!({"apiVersion": "example.com/v1", "kind": "Box", "spec": spec});
    let outcome = validator.validate(&object(spec), before.map(object).as_ref());
    let texts = |errors: &[_]| {
        errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<String>>()
    };
    assert_eq!(texts(&outcome.errors), errors);
    assert_eq!(texts(&outcome.warnings), warnings);
}

fn rules(rules: &[&str]) -> Value {
    rules.iter().map(|rule| json!({"rule": rule})).collect()
}

#[test]
fn rule_that_does_not_compile_is_rejected() {
    let schema = |rule: Value| json!({"type": "object", "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": [rule]});
    let rule = ".x-kubernetes-validations[0].rule";
    refused(
        &schema(json!({"rule": "self.sise > 3"})),
        &[(
            rule,
            "compilation failed: ERROR: <input>:1:5: undefined field 'sise'",
        )],
    );
    refused(
        &schema(json!({"rule": "self.size"})),
        &[(rule, "cel expression must evaluate to a bool")],
    );
    refused(
        &schema(json!({"rule": " "})),
        &[(rule, "rule is not specified")],
    );
    refused(
        &schema(json!({"rule": "self.size > 3", "messageExpression": "1"})),
        &[(
            ".x-kubernetes-validations[0].messageExpression",
            "messageExpression must evaluate to a string",
        )],
    );
    refused(
        &schema(json!({"rule": "self.size > 3", "optionalOldSelf": true})),
        &[(
            ".x-kubernetes-validations[0].optionalOldSelf",
            "may not be set if oldSelf is not used in rule",
        )],
    );
    refused(
        &schema(json!({"rule": "self.size > 3", "fieldPath": ".sise", "reason": "Odd"})),
        &[
            (
                ".x-kubernetes-validations[0].reason",
                "supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \"FieldValueInvalid\", \
                 \"FieldValueRequired\"",
            ),
            (
                ".x-kubernetes-validations[0].fieldPath",
                "must be a valid path",
            ),
        ],
    );
    refused(
        &schema(json!({"rule": "self.size > oldSelf.size", "fieldPath": ".size"})),
        &[],
    );
}

#[test]
fn transition_rule_in_uncorrelatable_schema_is_rejected() {
    let list = |of: Value| {
        let mut list = json!({"type": "array", "maxItems": 10, "items": {"type": "object",
            "properties": {"k": {"type": "string", "maxLength": 5}}, "required": ["k"],
            "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}});
        list.as_object_mut()
            .unwrap()
            .extend(of.as_object().unwrap().clone());
        list
    };
    refused(
        &list(json!({})),
        &[(
            ".items.x-kubernetes-validations[0].rule",
            "oldSelf cannot be used on the uncorrelatable portion of the schema within \
             spec.validation.openAPIV3Schema.properties[spec]",
        )],
    );
    let keyed = json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
    refused(&list(keyed), &[]);
}

#[test]
fn estimated_costs_depend_on_limits_in_schema() {
    let schema = |max: Value| {
        json!({"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": max,
            "x-kubernetes-validations": [{"rule": "self.all(a, self.exists_one(b, a == b))"}]})
    };
    refused(&schema(json!(10)), &[]);
    let verdict = validate_rules(
        &definition(&with_spec(&schema(Value::Null))),
        KubernetesVersion::DEFAULT,
        CompileMode::New,
    );
    let details: Vec<_> = verdict
        .errors
        .iter()
        .map(|finding| finding.error.detail.as_str())
        .collect();
    assert!(
        details[0].starts_with("estimated rule cost exceeds budget by factor of more than 100x"),
        "{details:?}"
    );
    assert!(
        details[1].starts_with("contributed to estimated rule cost total"),
        "{details:?}"
    );
    assert_eq!(
        verdict.errors[2].error.field,
        "spec.validation.openAPIV3Schema"
    );
}

#[test]
fn error_path_contains_index_of_version() {
    let schema = |rule: &str| json!({"openAPIV3Schema": with_spec(&json!({"type": "integer", "x-kubernetes-validations": rules(&[rule])}))});
    let crd = json!({"spec": {"versions": [
        {"name": "v1", "schema": schema("self > 1")}, {"name": "v2", "schema": schema("self.x")}]}});
    let verdict = validate_rules(&crd, KubernetesVersion::DEFAULT, CompileMode::New);
    let fields: Vec<_> = verdict
        .errors
        .iter()
        .map(|finding| finding.error.field.as_str())
        .collect();
    assert_eq!(
        fields,
        [
            "spec.versions[1].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
        ]
    );
}

/// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation_test.go`, `TestValidationExpressions`.
#[test]
fn values_have_types_of_schema() {
    let integers = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "x-kubernetes-validations": rules(&["self.a == 1", "self.a / 0 == 1", "[1][self.b] == 1"])});
    validated(
        &integers,
        &json!({"a": 2, "b": 4}),
        None,
        &[
            "spec: Invalid value: failed rule: self.a == 1",
            "spec: Invalid value: \"object\": division by zero evaluating rule: self.a / 0 == 1",
            "spec: Invalid value: \"object\": index out of bounds: 4 evaluating rule: [1][self.b] == 1",
        ],
        &[],
    );
    let formats = json!({"type": "object", "properties": {
            "at": {"type": "string", "format": "date-time"}, "for": {"type": "string", "format": "duration"},
            "bytes": {"type": "string", "format": "byte"}},
        "x-kubernetes-validations": rules(&["self.at.getFullYear() == 2011", "self.__for__ > duration('1h')",
            "self.bytes == b'abc'"])});
    validated(
        &formats,
        &json!({"at": "2011-08-18T19:03:37.01+01:00", "for": "2h", "bytes": "YWJj"}),
        None,
        &[],
        &[],
    );
    let lists = json!({"type": "object", "properties": {
            "s1": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "s2": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}},
        "x-kubernetes-validations": rules(&["self.s1 == self.s2", "self.s1 + self.s2 == self.s1"])});
    validated(
        &lists,
        &json!({"s1": ["a", "b"], "s2": ["b", "a"]}),
        None,
        &[],
        &[],
    );
    let either = json!({"x-kubernetes-int-or-string": true,
        "x-kubernetes-validations": rules(&["type(self) == int ? self < 10 : self == '50%'"])});
    validated(&either, &json!("50%"), None, &[], &[]);
    validated(
        &either,
        &json!(80),
        None,
        &["spec: Invalid value: 80: failed rule: type(self) == int ? self < 10 : self == '50%'"],
        &[],
    );
}

#[test]
fn errors_have_message_and_reason_of_rule() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
    "x-kubernetes-validations": [
        {"rule": "self.a == 'x'", "message": " is wrong ", "fieldPath": ".a", "reason": "FieldValueForbidden"},
        {"rule": "self.a == 'x'", "messageExpression": "'is ' + self.a"},
        {"rule": "self.a == 'x'", "messageExpression": "'two\\nlines'", "message": "fallback"},
        {"rule": "self.a == 'x'", "messageExpression": "''", "reason": "FieldValueRequired"},
        {"rule": "self.a == 'x'", "messageExpression": "string(1 / size(''))", "reason": "FieldValueDuplicate"},
    ]});
    validated(
        &schema,
        &json!({"a": "b"}),
        None,
        &[
            "spec.a: Forbidden: is wrong",
            "spec: Invalid value: is b",
            "spec: Invalid value: fallback",
            "spec: Required value: failed rule: self.a == 'x'",
            "spec: Duplicate value",
        ],
        &[],
    );
}

#[test]
fn error_of_unchanged_value_is_a_warning() {
    let schema = json!({"type": "object", "properties": {
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                "x-kubernetes-validations": rules(&["self.v < 5", "self.v >= oldSelf.v"])}}}});
    validated(
        &schema,
        &json!({"list": [{"k": "b", "v": 7}, {"k": "a", "v": 1}, {"k": "c", "v": 9}]}),
        Some(&json!({"list": [{"k": "a", "v": 2}, {"k": "b", "v": 7}]})),
        &[
            "spec.list[1]: Invalid value: failed rule: self.v >= oldSelf.v",
            "spec.list[2]: Invalid value: failed rule: self.v < 5",
        ],
        &["spec.list[0]: Invalid value: failed rule: self.v < 5"],
    );
}

#[test]
fn optional_old_self_is_set_on_creation() {
    let schema = json!({"type": "integer", "x-kubernetes-validations": [
        {"rule": "oldSelf.hasValue() ? oldSelf.value() < self : self == 1", "optionalOldSelf": true}]});
    validated(&schema, &json!(1), None, &[], &[]);
    let failed = "failed rule: oldSelf.hasValue() ? oldSelf.value() < self : self == 1";
    validated(
        &schema,
        &json!(2),
        None,
        &[&format!("spec: Invalid value: 2: {failed}")],
        &[],
    );
    validated(&schema, &json!(3), Some(&json!(2)), &[], &[]);
    validated(
        &schema,
        &json!(2),
        Some(&json!(2)),
        &[&format!("spec: Invalid value: 2: {failed}")],
        &[],
    );
}

/// The schema does not apply to an object in an optional: a timestamp in such an object stays a string.
#[test]
fn optional_old_self_object_has_no_schema() {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}},
        "x-kubernetes-validations": [
            {"rule": "oldSelf.orValue(self) == self", "optionalOldSelf": true}]});
    let at = json!({"at": "2024-02-29T10:11:12Z"});
    let failed = "spec: Invalid value: failed rule: oldSelf.orValue(self) == self";
    validated(&schema, &at, Some(&at), &[failed], &[]);
    validated(&schema, &at, None, &[], &[]);
}

#[test]
fn rule_that_exceeds_cost_limit_ends_validation() {
    let schema = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rules(&[
        "self.all(a, self.all(b, a == a && b == b))", "self.size() < 1"])});
    let numbers: Value = (0..1_000).collect();
    validated(
        &schema,
        &numbers,
        None,
        &[
            "spec: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation \
           rules will be run due to call cost exceeds limit for rule: self.all(a, self.all(b, a == a && b == b))",
        ],
        &[],
    );
}

/// Comparing the items of a large set in pairs would take quadratic time.
#[test]
fn large_sets_are_compared_fast() {
    let schema = json!({"type": "object", "properties": {
            "a": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
            "b": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}},
        "x-kubernetes-validations": rules(&["self.a == self.b"])});
    let up: Value = (0..100_000).collect();
    let down: Value = (0..100_000).rev().collect();
    let begin = std::time::Instant::now();
    validated(&schema, &json!({"a": up, "b": down}), None, &[], &[]);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

/// Schemas and objects up to the depth limit of the JSON parser are validated. Deeper ones are errors.
#[test]
fn too_deep_schemas_and_objects_are_errors() {
    let mut schema = json!({"type": "integer", "x-kubernetes-validations": rules(&["self > 0"])});
    let mut value = json!(0);
    for _ in 0..62 {
        schema = json!({"type": "object", "properties": {"a": schema}});
        value = json!({"a": value});
    }
    let validator = Validator::new(&schema, KubernetesVersion::DEFAULT).unwrap();
    assert_eq!(validator.validate(&value, Some(&value)).warnings.len(), 1);
    assert_eq!(validator.validate(&value, None).errors.len(), 1);
    for _ in 0..70 {
        schema = json!({"type": "object", "properties": {"a": schema}});
        value = json!({"a": value});
    }
    assert!(Validator::new(&schema, KubernetesVersion::DEFAULT).is_err());
    assert!(
        validate_rules(
            &definition(&schema),
            KubernetesVersion::DEFAULT,
            CompileMode::New
        )
        .is_partial
    );
    assert_eq!(validator.validate(&value, None).errors.len(), 1);
}

#[test]
fn rules_are_found_anywhere_in_schema() {
    let rules = json!([{"rule": "true"}]);
    let with = json!({"type": "object", "x-kubernetes-validations": rules});
    for schema in [
        with.clone(),
        with_spec(&with),
        with_spec(&json!({"type": "array", "items": with})),
        with_spec(&json!({"type": "object", "additionalProperties": with})),
        with_spec(&json!({"type": "object", "anyOf": [{"type": "object"}, with]})),
    ] {
        assert!(has_rules(&definition(&schema)), "{schema}");
    }
    // Only an unserved version contains the rule. The rule must be detected nevertheless.
    let versions = json!([{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
        {"name": "v0", "served": false, "schema": {"openAPIV3Schema": with}}]);
    assert!(has_rules(&json!({"spec": {"versions": versions}})));
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "x-kubernetes-validations": []}),
        json!({"type": "object", "x-kubernetes-validations": null}),
        // The first schema declares a field with the keyword's name. The second contains a default value with the
        // keyword as a key.
        json!({"type": "object", "properties": {"x-kubernetes-validations": {"type": "array"}}}),
        json!({"type": "object", "default": {"x-kubernetes-validations": rules}}),
        json!(7),
        json!(null),
    ] {
        assert!(!has_rules(&definition(&schema)), "{schema}");
    }
    assert!(!has_rules(&json!({"spec": null})));
}
