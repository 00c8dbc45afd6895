//! Tests of errors in rules, and of objects that violate rules.

use serde_json::{Value as Json, json};

use crate::schema::SchemaError;
use crate::schema::crd::MAX_JSON_DEPTH;
use crate::validation_rules::{
    DefinitionCause, PathStep, ValidateError, Validator, has_rules, validate, validate_rules,
};
use crate::version::{CompileMode, KubernetesVersion};

fn definition(schemas: &[Json]) -> Json {
    let versions = schemas.iter().enumerate().map(
        |(n, schema)| json!({"name": format!("v{}", n + 1), "schema": {"openAPIV3Schema": schema}}),
    );
    json!({"spec": {"versions": versions.collect::<Vec<_>>()}})
}

fn with_rules(rules: &Json) -> Json {
    json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 9}},
        "x-kubernetes-validations": rules,
    })
}

/// Asserts the errors of a rule with the fields `rule`. The default expression is `self.a > 0`.
#[track_caller]
fn check_rule(rule: &Json, expected: &[&str]) {
    let mut whole = json!({"rule": "self.a > 0"});
    for (name, value) in rule.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let verdict = validate_rules(
        &definition(&[with_rules(&json!([whole]))]),
        KubernetesVersion::DEFAULT,
        CompileMode::New,
    );
    let prefix = "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].";
    let errors = verdict.errors.iter().map(|error| error.error.to_string());
    let errors: Vec<String> = errors
        .map(|error| error.strip_prefix(prefix).unwrap().to_owned())
        .collect();
    assert_eq!(errors, expected, "{rule}");
    assert_eq!(verdict.is_partial, !expected.is_empty(), "{rule}");
}

#[test]
fn rule_with_invalid_fields_has_errors() {
    check_rule(&json!({}), &[]);
    check_rule(
        &json!({"rule": " "}),
        &["rule: Required value: rule is not specified"],
    );
    check_rule(&json!({"message": "positive"}), &[]);
    check_rule(&json!({"message": " positive\n"}), &[]);
    check_rule(
        &json!({"message": " "}),
        &["message: Invalid value: \" \": must be non-empty if specified"],
    );
    for line_break in ["\n", "\r"] {
        let value = serde_json::to_string(&format!("a{line_break}b")).unwrap();
        check_rule(
            &json!({"message": format!("a{line_break}b")}),
            &[&format!(
                "message: Invalid value: {value}: must not contain line breaks"
            )],
        );
        check_rule(
            &json!({"rule": format!("self.a >{line_break} 0")}),
            &["message: Required value: message must be specified if rule contains line breaks"],
        );
        check_rule(
            &json!({"rule": format!("self.a >{line_break} 0"), "message": "x"}),
            &[],
        );
        check_rule(&json!({"rule": format!("self.a > 0{line_break}")}), &[]);
    }
    check_rule(&json!({"messageExpression": "'a'"}), &[]);
    check_rule(
        &json!({"messageExpression": " "}),
        &["messageExpression: Required value: messageExpression must be non-empty if specified"],
    );
    for reason in [
        "FieldValueDuplicate",
        "FieldValueForbidden",
        "FieldValueInvalid",
        "FieldValueRequired",
    ] {
        check_rule(&json!({"reason": reason}), &[]);
    }
    check_rule(
        &json!({"reason": "InternalError"}),
        &[
            "reason: Unsupported value: \"InternalError\": supported values: \"FieldValueDuplicate\", \
           \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
        ],
    );
    check_rule(&json!({"fieldPath": ".a"}), &[]);
    check_rule(
        &json!({"fieldPath": ".c"}),
        &["fieldPath: Invalid value: \".c\": must be a valid path"],
    );
    check_rule(
        &json!({"fieldPath": " "}),
        &[
            "fieldPath: Invalid value: \" \": must be non-empty if specified",
            "fieldPath: Invalid value: \" \": must be a valid path",
        ],
    );
    check_rule(
        &json!({"fieldPath": ".a\n"}),
        &[
            "fieldPath: Invalid value: \".a\\n\": must not contain line breaks",
            "fieldPath: Invalid value: \".a\\n\": must be a valid path",
        ],
    );
}

/// Asserts the field and the start of the detail for each expression error of a rule.
#[track_caller]
fn check_expressions(rule: &Json, expected: &[(&str, &str)]) {
    let verdict = validate_rules(
        &definition(&[with_rules(&json!([rule]))]),
        KubernetesVersion::DEFAULT,
        CompileMode::New,
    );
    let prefix = "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].";
    assert_eq!(verdict.errors.len(), expected.len(), "{verdict:?}");
    for (error, (field, detail)) in verdict.errors.iter().zip(expected) {
        assert_eq!(
            error.error.field.strip_prefix(prefix),
            Some(*field),
            "{rule}"
        );
        assert!(error.error.detail.starts_with(detail), "{}", error.error);
        assert_eq!(
            error.expression().is_some(),
            *field != "optionalOldSelf",
            "{rule}"
        );
    }
    assert!(!verdict.is_partial);
}

#[test]
fn rule_with_invalid_expression_has_error() {
    check_expressions(
        &json!({"rule": "self.a == oldSelf.a", "optionalOldSelf": false}),
        &[],
    );
    check_expressions(
        &json!({"rule": "oldSelf.hasValue()", "optionalOldSelf": true}),
        &[],
    );
    check_expressions(
        &json!({"rule": "self.a > 0", "optionalOldSelf": true}),
        &[(
            "optionalOldSelf",
            "may not be set if oldSelf is not used in rule",
        )],
    );
    check_expressions(
        &json!({"rule": "self.a"}),
        &[("rule", "cel expression must evaluate to a bool")],
    );
    check_expressions(
        &json!({"rule": "self.a > 0", "messageExpression": "self.a"}),
        &[(
            "messageExpression",
            "messageExpression must evaluate to a string",
        )],
    );
    check_expressions(
        &json!({"rule": "self.a > 0", "messageExpression": "self.c"}),
        &[(
            "messageExpression",
            "messageExpression compilation failed: ERROR: <input>:1:5",
        )],
    );
    check_expressions(
        &json!({"rule": "self.a >", "messageExpression": "self.c"}),
        &[(
            "rule",
            "compilation failed: ERROR: <input>:1:9: Syntax error",
        )],
    );
    // Even if the message expression is invalid, the use of `oldSelf` is checked.
    check_expressions(
        &json!({"rule": "self.a > 0", "messageExpression": "self.c", "optionalOldSelf": true}),
        &[
            ("messageExpression", "messageExpression compilation failed"),
            ("optionalOldSelf", "may not"),
        ],
    );
}

#[test]
fn rule_error_shows_all_fields_of_rule() {
    let rule = json!({"rule": "self.c", "message": "m", "messageExpression": "'e'",
        "reason": "FieldValueInvalid", "fieldPath": ".a", "optionalOldSelf": true});
    let values = |rule: Json| {
        let verdict = validate_rules(
            &definition(&[with_rules(&json!([rule]))]),
            KubernetesVersion::DEFAULT,
            CompileMode::New,
        );
        verdict.errors[0].error.value.clone().unwrap()
    };
    assert_eq!(
        values(rule),
        "{\"Rule\":\"self.c\",\"Message\":\"m\",\"MessageExpression\":\"'e'\",\"Reason\":\"FieldValueInvalid\",\
         \"FieldPath\":\".a\",\"OptionalOldSelf\":true}"
    );
    assert_eq!(
        values(json!({"rule": "self.c"})),
        "{\"Rule\":\"self.c\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\
         \"OptionalOldSelf\":null}"
    );
}

#[test]
fn error_path_contains_version_if_version_schemas_differ() {
    let field = |name: &str| PathStep::Field(name.to_owned());
    let check = |schemas: &[Json], expected: &str, version: usize| {
        let errors = validate_rules(
            &definition(schemas),
            KubernetesVersion::DEFAULT,
            CompileMode::New,
        )
        .errors;
        assert_eq!(errors.len(), 1);
        let below = ".openAPIV3Schema.x-kubernetes-validations[0].rule";
        assert_eq!(errors[0].error.field, format!("{expected}{below}"));
        let steps = [
            field("spec"),
            field("versions"),
            PathStep::Index(version),
            field("schema"),
            field("openAPIV3Schema"),
            field("x-kubernetes-validations"),
            PathStep::Index(0),
            field("rule"),
        ];
        assert_eq!(errors[0].place, steps);
    };
    let wrong = with_rules(&json!([{"rule": "self.c"}]));
    let right = with_rules(&json!([{"rule": "self.a > 0"}]));
    check(std::slice::from_ref(&wrong), "spec.validation", 0);
    check(&[wrong.clone(), wrong.clone()], "spec.validation", 0);
    check(
        &[wrong.clone(), right.clone()],
        "spec.versions[0].schema",
        0,
    );
    check(&[right, wrong], "spec.versions[1].schema", 1);
}

#[test]
fn rule_cost_is_multiplied_by_cardinality() {
    let cost = |schema: Json| {
        let verdict = validate_rules(
            &definition(&[schema]),
            KubernetesVersion::DEFAULT,
            CompileMode::New,
        );
        assert!(verdict.errors.is_empty(), "{:?}", verdict.errors);
        verdict.costs
    };
    let rules = json!([{"rule": "self > 0", "messageExpression": "'a'"}]);
    let number = json!({"type": "integer", "x-kubernetes-validations": rules});
    let single = cost(json!({"type": "object", "properties": {"a": number}}));
    let list = json!({"type": "array", "maxItems": 7, "items": number});
    let many = cost(json!({"type": "object", "properties": {"a": list}}));
    assert_eq!([single.len(), many.len()], [2, 2]);
    assert!(single[0].max_cost > 0 && single[0].is_compiled);
    assert_eq!(many[0].max_cost, 7 * single[0].max_cost);
    assert_eq!(
        single[0].field,
        "spec.validation.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule"
    );
    assert_eq!(
        many[1].field,
        "spec.validation.openAPIV3Schema.properties[a].items.x-kubernetes-validations[0].messageExpression"
    );
    let wrong = validate_rules(
        &definition(&[with_rules(&json!([{"rule": "self.c"}]))]),
        KubernetesVersion::DEFAULT,
        CompileMode::New,
    );
    assert_eq!(
        (wrong.costs[0].max_cost, wrong.costs[0].is_compiled),
        (0, false)
    );
}

#[test]
fn rule_over_cost_limit_has_errors_for_rule_and_total() {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": {"type": "array", "items": text}});
    let rule = "self.all(x, x.all(y, self.all(z, z.all(w, w == y))))";
    let mut schema = texts;
    schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
    let schema = json!({"type": "object", "properties": {"a": schema}});
    let errors = validate_rules(
        &definition(&[schema]),
        KubernetesVersion::DEFAULT,
        CompileMode::New,
    )
    .errors;
    let root = "spec.validation.openAPIV3Schema";
    let rule = format!("{root}.properties[a].x-kubernetes-validations[0].rule");
    let fields: Vec<&str> = errors
        .iter()
        .map(|error| error.error.field.as_str())
        .collect();
    assert_eq!(fields, [rule.as_str(), rule.as_str(), root]);
    assert!(
        errors
            .iter()
            .all(|error| matches!(error.cause, DefinitionCause::CostLimit))
    );
    let starts = [
        "estimated rule cost exceeds budget by factor of more than 100x",
        "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
        "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of \
         more than 100x",
    ];
    for (error, start) in errors.iter().zip(starts) {
        assert!(error.error.detail.starts_with(start), "{}", error.error);
    }
}

#[test]
fn nested_rules_are_found() {
    let ruled = json!({"type": "object", "x-kubernetes-validations": [{"rule": "true"}]});
    let plain = json!({"type": "object", "x-kubernetes-validations": []});
    let within = |inner: &Json| {
        [
            inner.clone(),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": inner}}),
            json!({"type": "object", "additionalProperties": inner}),
            json!({"type": "object", "additionalProperties": {"type": "array", "items": inner}}),
            json!({"type": "object", "allOf": [{}, inner]}),
            json!({"type": "object", "anyOf": [inner]}),
            json!({"type": "object", "oneOf": [inner]}),
            json!({"type": "object", "not": inner}),
        ]
    };
    for schema in within(&ruled) {
        assert!(
            has_rules(&definition(&[json!({}), schema.clone()])),
            "{schema}"
        );
    }
    for schema in within(&plain) {
        assert!(
            !has_rules(&definition(std::slice::from_ref(&schema))),
            "{schema}"
        );
    }
    assert!(!has_rules(&json!({"spec": {}})));
    for schema in within(&ruled).into_iter().take(4) {
        assert!(
            Validator::new(&schema, KubernetesVersion::DEFAULT)
                .unwrap()
                .has_rules(),
            "{schema}"
        );
    }
    for schema in within(&plain) {
        assert!(
            !Validator::new(&schema, KubernetesVersion::DEFAULT)
                .unwrap()
                .has_rules(),
            "{schema}"
        );
    }
}

#[test]
fn object_is_validated_with_schema_of_its_version() {
    let schema = |bound: u32| with_rules(&json!([{"rule": format!("self.a > {bound}")}]));
    let crd = definition(&[schema(1), schema(5)]);
    let n_errors = |version: &str| {
        let object = json!({"apiVersion": format!("example.com/{version}"), "a": 3});
        validate(&crd, &object, None, KubernetesVersion::DEFAULT).map(|errors| errors.len())
    };
    assert_eq!(n_errors("v1"), Ok(0));
    assert_eq!(n_errors("v2"), Ok(1));
    assert_eq!(n_errors("v3"), Err(ValidateError::NoVersion("v3".into())));
    let error = n_errors("v3").unwrap_err().to_string();
    assert_eq!(
        error,
        "the CustomResourceDefinition has no schema for version `v3`"
    );
}

/// Asserts the error of an object that violates `rule`. The object has the field `a`, with the schema `schema` and the
/// value `value`.
#[track_caller]
fn check_error(schema: &Json, rule: &Json, value: &Json, expected: &str) {
    let mut schema = schema.clone();
    schema["x-kubernetes-validations"] = json!([rule]);
    let schema = json!({"type": "object", "properties": {"a": schema}});
    let result = Validator::new(&schema, KubernetesVersion::DEFAULT)
        .unwrap()
        .validate(&json!({"a": value}), None);
    let errors: Vec<String> = result.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, [expected], "{rule}");
}

#[test]
fn violation_shows_scalars_but_not_objects() {
    let is_false = json!({"rule": "false"});
    let check = |type_: &str, value: Json, shown: &str| {
        let expected = format!("a: Invalid value: {shown}: failed rule: false");
        check_error(&json!({"type": type_}), &is_false, &value, &expected);
    };
    check("boolean", json!(true), "true");
    check("integer", json!(-5), "-5");
    check("number", json!(1.5), "1.5");
    check("string", json!("x\"y"), "\"x\\\"y\"");
    let list = json!({"type": "array", "items": {"type": "string"}});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    check_error(
        &list,
        &is_false,
        &json!(["x"]),
        "a: Invalid value: failed rule: false",
    );
    check_error(
        &map,
        &is_false,
        &json!({"x": "y"}),
        "a: Invalid value: failed rule: false",
    );
}

#[test]
fn reason_of_violated_rule_determines_error() {
    let check = |reason: &str, expected: &str| {
        let rule = json!({"rule": "self > 5", "message": " too small ", "reason": reason});
        check_error(&json!({"type": "integer"}), &rule, &json!(3), expected);
    };
    check("FieldValueInvalid", "a: Invalid value: 3: too small");
    check("FieldValueRequired", "a: Required value: too small");
    check("FieldValueForbidden", "a: Forbidden: too small");
    check("FieldValueDuplicate", "a: Duplicate value: 3");
}

#[test]
fn field_path_of_rule_is_appended_to_path_of_violation() {
    let schema = json!({"type": "object", "properties": {"b": {"type": "object",
        "additionalProperties": {"type": "string"}}}});
    let check = |path: &str, expected: &str| {
        let rule = json!({"rule": "false", "message": "m", "fieldPath": path});
        check_error(&schema, &rule, &json!({"b": {}}), expected);
    };
    check("", "a: Invalid value: m");
    check(".b", "a.b: Invalid value: m");
    check(".b['x.y']", "a.b[x.y]: Invalid value: m");
}

#[test]
fn unusable_message_expression_falls_back_to_message() {
    let schema = json!({"type": "string"});
    let check = |expression: &str, message: &str, expected: &str| {
        let rule = json!({"rule": "false", "messageExpression": expression, "message": message});
        let expected = format!("a: Invalid value: \"x\": {expected}");
        check_error(&schema, &rule, &json!("x"), &expected);
    };
    check("' it is ' + self + ' '", "m", "it is x");
    check("' '", "m", "m");
    check("''", "", "failed rule: false");
    check("'a\\nb'", "m", "m");
    check("'a\\n'", "m", "a");
    check("string(1 / (size(self) - 1))", "m", "m");
    // A message may have at most 5 KiB.
    let text = |n: usize| "y".repeat(n);
    let list = |n: usize| format!("'{}'", text(n));
    check(&list(5120), "m", &text(5120));
    check(&list(5121), "m", "m");
}

#[test]
fn rule_that_fails_to_evaluate_has_error_with_type_of_value() {
    let check = |rule: &str, expected: &str| {
        let rule = json!({"rule": rule});
        check_error(&json!({"type": "integer"}), &rule, &json!(0), expected);
    };
    check(
        "1 / self > 0",
        "a: Invalid value: \"integer\": division by zero evaluating rule: 1 / self > 0",
    );
    check(
        "dyn(self).startsWith('a')",
        "a: Invalid value: \"integer\": 'no such overload': call arguments did not match a supported operator, \
         function or macro signature for rule: dyn(self).startsWith('a')",
    );
    let long = "[1,2,3,4,5,6,7,8,9,10]";
    let rule = format!(
        "{long}.all(a, {long}.all(b, {long}.all(c, {long}.all(d, {long}.all(e, {long}.all(f, self == 0))))))"
    );
    check(
        &rule,
        &format!(
            "a: Invalid value: \"integer\": 'operation cancelled: actual cost limit exceeded': no further validation \
             rules will be run due to call cost exceeds limit for rule: {rule}"
        ),
    );
}

#[test]
fn transition_rule_is_skipped_without_old_value() {
    let schema = |rule: Json| json!({"type": "object", "properties": {"a": {"type": "integer", "x-kubernetes-validations": [rule]}}});
    let check = |rule: Json, before: Option<Json>, expected: usize| {
        let validator = Validator::new(&schema(rule.clone()), KubernetesVersion::DEFAULT).unwrap();
        let result = validator.validate(&json!({"a": 3}), before.as_ref());
        assert_eq!(result.errors.len(), expected, "{rule} {before:?}");
        assert!(result.is_complete);
    };
    let is_same = || json!({"rule": "self == oldSelf"});
    check(is_same(), None, 0);
    check(is_same(), Some(json!({})), 0);
    check(is_same(), Some(json!({"a": null})), 0);
    check(is_same(), Some(json!({"a": 3})), 0);
    check(is_same(), Some(json!({"a": 4})), 1);
    let has_old = || json!({"rule": "oldSelf.hasValue()", "optionalOldSelf": true});
    check(has_old(), None, 1);
    check(has_old(), Some(json!({})), 1);
    check(has_old(), Some(json!({"a": 4})), 0);
    let optional = || json!({"rule": "oldSelf.orValue(7) == 4", "optionalOldSelf": true});
    check(optional(), Some(json!({"a": 4})), 0);
    check(optional(), Some(json!({"a": 5})), 1);
}

#[test]
fn violations_of_unchanged_values_are_warnings() {
    let items = json!({"type": "object", "required": ["k"], "properties": {
        "k": {"type": "string"}, "v": {"type": "integer"}, "n": {"type": "number"}},
        "x-kubernetes-validations": [{"rule": "self.v > 5", "message": "small"}]});
    let check = |keys: &[&str], new: Json, old: Json, errors: &[&str], warnings: &[&str]| {
        let list = json!({"type": "array", "items": items, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys});
        let schema =
            json!({"type": "object", "properties": {"l": list, "other": {"type": "string"}}});
        let result = Validator::new(&schema, KubernetesVersion::DEFAULT)
            .unwrap()
            .validate(
                &json!({"l": new, "other": "x"}),
                Some(&json!({"l": old, "other": "y"})),
            );
        let texts = |errors: &[_]| {
            errors
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<String>>()
        };
        assert_eq!(texts(&result.errors), errors, "{new}");
        assert_eq!(texts(&result.warnings), warnings, "{new}");
    };
    let (a, b) = (json!({"k": "a", "v": 1}), json!({"k": "b", "v": 2}));
    let first = "l[0]: Invalid value: small";
    let second = "l[1]: Invalid value: small";
    check(&["k"], json!([a, b]), json!([a, b]), &[], &[first, second]);
    check(&["k"], json!([b, a]), json!([a, b]), &[], &[first, second]);
    check(
        &["k"],
        json!([{"k": "b", "v": 3}, a]),
        json!([a, b]),
        &[first],
        &[second],
    );
    check(
        &["k"],
        json!([{"k": "c", "v": 1}]),
        json!([a, b]),
        &[first],
        &[],
    );
    // Two elements differ in the value of a key field. The value is not an integer.
    let with_number = |n: f64| json!({"k": "a", "v": 1, "n": n});
    check(
        &["n"],
        json!([with_number(1.5)]),
        json!([with_number(1.5)]),
        &[],
        &[first],
    );
    check(
        &["n"],
        json!([with_number(1.5)]),
        json!([with_number(2.5)]),
        &[first],
        &[],
    );
    check(
        &["k", "n"],
        json!([with_number(1.5)]),
        json!([with_number(1.5)]),
        &[],
        &[first],
    );
    check(
        &["k", "n"],
        json!([with_number(1.5)]),
        json!([with_number(2.5)]),
        &[first],
        &[],
    );
    check(&["v"], json!([a]), json!([b, a]), &[], &[first]);
}

#[test]
fn depth_of_validated_schemas_and_objects_is_limited() {
    let schema = |n: usize| {
        let leaf = json!({"type": "object"});
        (0..n).fold(leaf, |inner, _| json!({"type": "object", "not": inner}))
    };
    assert!(Validator::new(&schema(MAX_JSON_DEPTH - 2), KubernetesVersion::DEFAULT).is_ok());
    assert!(matches!(
        Validator::new(&schema(MAX_JSON_DEPTH - 1), KubernetesVersion::DEFAULT),
        Err(SchemaError::TooDeep)
    ));
    let ruled = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-validations": [{"rule": "true"}]});
    let validator = Validator::new(&ruled, KubernetesVersion::DEFAULT).unwrap();
    let nested = |n: usize| (0..n).fold(json!(1), |inner, _| json!({"a": inner}));
    let (allowed, deep) = (nested(MAX_JSON_DEPTH - 1), nested(MAX_JSON_DEPTH));
    assert!(validator.validate(&allowed, Some(&allowed)).is_complete);
    for (object, before) in [(&deep, None), (&json!({}), Some(&deep))] {
        let result = validator.validate(object, before);
        let error = result.errors[0].to_string();
        let expected = "<nil>: Internal error: the object nests deeper than 128 levels";
        assert_eq!(error, expected);
        assert!(!result.is_complete);
    }
    let unruled = Validator::new(&json!({"type": "object"}), KubernetesVersion::DEFAULT).unwrap();
    let result = unruled.validate(&deep, None);
    assert!(result.is_complete && result.errors.is_empty());
}
