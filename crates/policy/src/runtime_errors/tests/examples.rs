//! Tests of the search for allowed and denied example requests.
//!
//! The evaluator confirms each example, so the tests do not check its decision. They check which values the search
//! finds, and that the objects contain no other values.

use super::*;

/// Returns the parts of an example that differ from the usual request. The usual request creates an object `example` in
/// the namespace `default`.
fn shown(witness: &Witness) -> Json {
    let request = &witness.request;
    let mut parts = serde_json::Map::new();
    let mut add = |name: &str, value: &Json, usual: &Json| {
        if value != usual {
            parts.insert(name.to_owned(), value.clone());
        }
    };
    add("operation", &request["operation"], &json!("CREATE"));
    let user = json!({"username": "example", "groups": ["system:authenticated"]});
    add("user", &request["userInfo"], &user);
    let null = Json::Null;
    for (name, value) in request["object"].as_object().into_iter().flatten() {
        if name == "metadata" {
            let mut metadata = value.clone();
            let fields = metadata.as_object_mut().unwrap();
            fields.retain(|name, value| {
                let usual = match &**name {
                    "name" => "example",
                    "namespace" => "default",
                    "creationTimestamp" | "generation" | "resourceVersion" | "uid" => return false,
                    _ => "",
                };
                *value != usual
            });
            add("metadata", &metadata, &json!({}));
        } else if name != "apiVersion" && name != "kind" {
            add(name, value, &null);
        }
    }
    add("old", &request["oldObject"]["spec"], &null);
    let object_name = &request["object"]["metadata"]["name"];
    if request["name"] != *object_name {
        add("name", &request["name"], &json!("example"));
    }
    if let Some(namespace) = &witness.namespace_object {
        let metadata = &namespace["metadata"];
        add("namespace", &metadata["name"], &json!("default"));
        let mut labels = metadata["labels"].clone();
        labels
            .as_object_mut()
            .unwrap()
            .remove("kubernetes.io/metadata.name");
        add("namespaceLabels", &labels, &json!({}));
    }
    if let Some(params) = &witness.params {
        add("params", params, &json!("none"));
    }
    Json::Object(parts)
}

/// Returns the allowed and the denied example of each validation. Null means that there is no example.
fn found(served: &Served, operations: &[&str], spec: &Json) -> Vec<[Json; 2]> {
    let cache = ObjectCache::default();
    let all = examples(
        &policy(BOX, operations, spec),
        &served.context(&cache),
        None,
    );
    let both = all.iter().map(|one| [&one.allowed, &one.denied]);
    both.map(|both| both.map(|witness| json!(witness.as_ref().map(shown))))
        .collect()
}

/// Compares the examples with the file `examples.txt`.
#[test]
fn examples_differ_from_usual_request_only_as_validation_requires() {
    let mut n_cases = 0;
    for case in cases(include_str!("examples.txt")) {
        let [expression, allowed, denied] = case[..] else {
            panic!("{case:?}");
        };
        let expected: [Json; 2] = [("  allowed ", allowed), ("  denied ", denied)]
            .map(|(name, line)| serde_json::from_str(line.strip_prefix(name).unwrap()).unwrap());
        let actual = found(&PLAIN, &["CREATE"], &validation(expression));
        assert_eq!(actual, [expected], "{expression}");
        n_cases += 1;
    }
    assert!(n_cases > 100, "{n_cases}");
}

#[test]
fn examples_have_operation_that_validation_requires() {
    for (operations, expression, allowed, denied) in [
        (
            &["CREATE", "UPDATE"][..],
            "request.operation == 'UPDATE'",
            json!({"old":{},"operation":"UPDATE","spec":{}}),
            json!({"spec":{}}),
        ),
        (
            &["CREATE", "UPDATE", "DELETE"][..],
            "request.operation != 'DELETE'",
            json!({"spec":{}}),
            json!({"old":{},"operation":"DELETE"}),
        ),
        (
            &["UPDATE"][..],
            "object.spec.size >= oldObject.spec.size",
            json!({"old":{"size":1},"operation":"UPDATE","spec":{"flag":true,"size":1,"tags":{"example":"example"}}}),
            json!({"old":{"size":1},"operation":"UPDATE","spec":{"size":0}}),
        ),
        (
            &["UPDATE"][..],
            "object.spec.text == oldObject.spec.text",
            json!({"old":{"text":"example"},"operation":"UPDATE","spec":{"text":"example"}}),
            json!({"old":{"text":"example"},"operation":"UPDATE","spec":{"text":"a"}}),
        ),
        (
            &["DELETE"][..],
            "oldObject.spec.text == 'zq'",
            json!({"old":{"text":"zq"},"operation":"DELETE"}),
            json!({"old":{"text":"example"},"operation":"DELETE"}),
        ),
        (
            &["CREATE", "DELETE"][..],
            "object == null",
            json!({"old":{},"operation":"DELETE"}),
            json!({"spec":{}}),
        ),
        (
            &["CREATE", "UPDATE"][..],
            "oldObject == null",
            json!({"spec":{}}),
            json!({"old":{},"operation":"UPDATE","spec":{}}),
        ),
    ] {
        let actual = found(&PLAIN, operations, &validation(expression));
        assert_eq!(actual, [[allowed, denied]], "{expression}");
    }
}

#[test]
fn examples_satisfy_other_expressions_of_policy() {
    for (spec, expected) in [
        (
            json!({"validations":[{"expression":"variables.v == 'zq'"}],"variables":[{"expression":"object.spec.text.lowerAscii()","name":"v"}]}),
            vec![[
                json!({"spec":{"text":"zq"}}),
                json!({"spec":{"text":"example"}}),
            ]],
        ),
        (
            json!({"validations":[{"expression":"variables.v.lowerAscii() == 'zq' && variables.v != 'qz'"}],"variables":[{"expression":"object.spec.text","name":"v"}]}),
            vec![[
                json!({"spec":{"text":"zq"}}),
                json!({"spec":{"text":"example"}}),
            ]],
        ),
        (
            json!({"validations":[{"expression":"object.spec.text == 'a'"},{"expression":"object.spec.size == 44"},{"expression":"object.spec.text != 'a' || object.spec.size != 3"}]}),
            vec![
                [
                    json!({"spec":{"size":44,"text":"a"}}),
                    json!({"spec":{"size":44,"text":"example"}}),
                ],
                [
                    json!({"spec":{"size":44,"text":"a"}}),
                    json!({"spec":{"size":1,"text":"a"}}),
                ],
                [
                    json!({"spec":{"size":44,"text":"a"}}),
                    json!({"spec":{"size":3,"text":"a"}}),
                ],
            ],
        ),
        (
            json!({"matchConditions":[{"expression":"object.spec.text == 'zq'","name":"m"}],"validations":[{"expression":"object.spec.size == 44"}]}),
            vec![[
                json!({"spec":{"size":44,"text":"zq"}}),
                json!({"spec":{"size":1,"text":"zq"}}),
            ]],
        ),
        (
            json!({"matchConditions":[{"expression":"object.spec.text.lowerAscii() == 'zq'","name":"m"}],"validations":[{"expression":"object.spec.size == 44"}]}),
            vec![[
                json!({"spec":{"size":44,"text":"zq"}}),
                json!({"spec":{"size":1,"text":"zq"}}),
            ]],
        ),
        (
            json!({"auditAnnotations":[{"key":"k","valueExpression":"object.spec.text"}],"validations":[{"expression":"object.spec.size == 44"}]}),
            vec![[json!({"spec":{"size":44}}), json!({"spec":{"size":1}})]],
        ),
    ] {
        assert_eq!(found(&PLAIN, &["CREATE"], &spec), expected, "{spec}");
    }
}

/// Source: the documentation of the schema's keywords.
#[test]
fn values_of_examples_are_valid() {
    for (spec, expression, allowed, denied) in [
        (
            json!({"properties":{"e":{"enum":["x","y"],"type":"string"}},"type":"object"}),
            "object.spec.e == 'z'",
            json!(null),
            json!({"spec":{"e":"x"}}),
        ),
        (
            json!({"properties":{"e":{"enum":["x","y"],"type":"string"}},"type":"object"}),
            "object.spec.e != 'x'",
            json!({"spec":{"e":"y"}}),
            json!({"spec":{"e":"x"}}),
        ),
        (
            json!({"properties":{"n":{"maximum":40,"type":"integer"}},"type":"object"}),
            "object.spec.n > 44",
            json!(null),
            json!({"spec":{"n":1}}),
        ),
        (
            json!({"properties":{"n":{"exclusiveMaximum":true,"maximum":45,"type":"integer"}},"type":"object"}),
            "object.spec.n > 44",
            json!(null),
            json!({"spec":{"n":43}}),
        ),
        (
            json!({"properties":{"n":{"maximum":45,"type":"integer"}},"type":"object"}),
            "object.spec.n > 44",
            json!({"spec":{"n":45}}),
            json!({"spec":{"n":43}}),
        ),
        (
            json!({"properties":{"l":{"maxLength":5,"type":"string"}},"type":"object"}),
            "object.spec.l == 'abcdef'",
            json!(null),
            json!({"spec":{"l":"a"}}),
        ),
        (
            json!({"properties":{"l":{"maxLength":6,"type":"string"}},"type":"object"}),
            "object.spec.l == 'abcdef'",
            json!({"spec":{"l":"abcdef"}}),
            json!({"spec":{"l":"a"}}),
        ),
        (
            json!({"properties":{"l":{"minLength":6,"type":"string"}},"type":"object"}),
            "object.spec.l == 'abcde'",
            json!(null),
            json!({"spec":{"l":"example"}}),
        ),
        (
            json!({"properties":{"l":{"items":{"x-kubernetes-preserve-unknown-fields":true},"type":"array"}},"type":"object"}),
            "object.spec.l.size() == 2",
            json!({"spec":{"l":[{},{}]}}),
            json!({"spec":{"l":[{},{},{}]}}),
        ),
        (
            json!({"type":"object","x-kubernetes-preserve-unknown-fields":true}),
            "object.spec.zq == 'a'",
            json!({"spec":{"zq":"a"}}),
            json!({"spec":{"zq":{}}}),
        ),
    ] {
        let actual = found(&Served::new(&spec), &["CREATE"], &validation(expression));
        assert_eq!(actual, [[allowed, denied]], "{expression}");
    }
}

/// Checks the value of a required field with the schema `schema` in an example.
#[track_caller]
fn check_required(schema: &Json, expected: &Json) {
    let spec = json!({"type": "object", "required": ["x"], "properties": {"x": schema}});
    let actual = found(
        &Served::new(&spec),
        &["CREATE"],
        &validation("has(object.spec.x)"),
    );
    assert_eq!(actual[0][0]["spec"]["x"], *expected, "{schema}");
}

#[test]
fn required_string_has_valid_value() {
    for (schema, expected) in [
        (json!({"type": "string"}), json!("example")),
        (
            json!({"format": "date", "type": "string"}),
            json!("2026-01-01"),
        ),
        (
            json!({"format": "date-time", "type": "string"}),
            json!("2026-01-01T00:00:00Z"),
        ),
        (json!({"format": "duration", "type": "string"}), json!("1s")),
        (json!({"format": "ip", "type": "string"}), json!("10.0.0.1")),
        (
            json!({"format": "ipv4", "type": "string"}),
            json!("10.0.0.1"),
        ),
        (
            json!({"format": "ipv6", "type": "string"}),
            json!("2001:db8::1"),
        ),
        (
            json!({"format": "cidr", "type": "string"}),
            json!("10.0.0.0/8"),
        ),
        (
            json!({"format": "uri", "type": "string"}),
            json!("https://example.com"),
        ),
        (
            json!({"format": "uuid", "type": "string"}),
            json!("123e4567-e89b-42d3-a456-426614174000"),
        ),
        (
            json!({"format": "email", "type": "string"}),
            json!("a@example.com"),
        ),
        (
            json!({"format": "hostname", "type": "string"}),
            json!("example.com"),
        ),
        (json!({"format": "byte", "type": "string"}), json!("YQ==")),
        (
            json!({"minLength": 12, "type": "string"}),
            json!("exampleaaaaa"),
        ),
        (json!({"minLength": 7, "type": "string"}), json!("example")),
        (json!({"minLength": 8, "type": "string"}), json!("examplea")),
        (json!({"maxLength": 1, "type": "string"}), json!("a")),
        (json!({"maxLength": 6, "type": "string"}), json!("a")),
        (json!({"maxLength": 7, "type": "string"}), json!("example")),
        (json!({"enum": ["zq", "qz"], "type": "string"}), json!("zq")),
    ] {
        check_required(&schema, &expected);
    }
}

#[test]
fn required_number_or_list_or_map_has_valid_value() {
    for (schema, expected) in [
        (json!({"type": "integer"}), json!(1)),
        (json!({"minimum": 44, "type": "integer"}), json!(44)),
        (json!({"maximum": 1, "type": "integer"}), json!(1)),
        (json!({"maximum": 0, "type": "integer"}), json!(0)),
        (json!({"maximum": -3, "type": "integer"}), json!(-3)),
        (json!({"enum": [5, 6], "type": "integer"}), json!(5)),
        (json!({"type": "number"}), json!(1)),
        (json!({"minimum": 2.5, "type": "number"}), json!(2.5)),
        (
            json!({"maximum": 0.9, "minimum": 0.1, "type": "number"}),
            json!(0.1),
        ),
        (json!({"type": "boolean"}), json!(true)),
        (
            json!({"items": {"type": "string"}, "type": "array"}),
            json!([]),
        ),
        (
            json!({"items": {"type": "integer"}, "minItems": 2, "type": "array"}),
            json!([1, 1]),
        ),
        (
            json!({"items": {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"], "type": "object"}, "minItems": 1, "type": "array"}),
            json!([{"a": "example"}]),
        ),
        (json!({"type": "object"}), json!({})),
        (
            json!({"additionalProperties": {"type": "integer"}, "type": "object"}),
            json!({}),
        ),
        (
            json!({"additionalProperties": {"type": "integer"}, "minProperties": 2, "type": "object"}),
            json!({"example0": 1, "example1": 1}),
        ),
        (
            json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"], "type": "object"}),
            json!({"a": "example"}),
        ),
        (
            json!({"properties": {"a": {"default": "d", "type": "string"}}, "type": "object"}),
            json!({"a": "d"}),
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({}),
        ),
        (json!({"x-kubernetes-int-or-string": true}), json!(1)),
        (
            json!({"pattern": "^[0-9]+%$", "x-kubernetes-int-or-string": true}),
            json!(1),
        ),
    ] {
        check_required(&schema, &expected);
    }
}

#[test]
fn dependence_on_inputs_includes_variables_and_match_conditions() {
    let variables = json!([
        {"name": "limit", "expression": "params.spec.size"},
        {"name": "text", "expression": "object.spec.text"},
        {"name": "both", "expression": "variables.text + variables.text"},
        {"name": "three", "expression": "3"},
        {"name": "broken", "expression": "1 +"},
    ]);
    for (condition, expression, expected) in [
        ("true", "true", Dependence::Nothing),
        ("true", "variables.three == 3", Dependence::Nothing),
        (
            "object.spec.text == 'a'",
            "variables.three == 3",
            Dependence::Nothing,
        ),
        ("true", "object.spec.text == 'a'", Dependence::Request),
        ("true", "variables.both == 'a'", Dependence::Request),
        ("true", "oldObject == null", Dependence::Request),
        ("true", "request.name == 'a'", Dependence::Request),
        (
            "true",
            "namespaceObject.metadata.name == 'a'",
            Dependence::Request,
        ),
        ("true", "params == null", Dependence::More),
        ("true", "variables.limit == 3", Dependence::More),
        (
            "true",
            "object.spec.size == variables.limit",
            Dependence::More,
        ),
        ("variables.limit == 3", "true", Dependence::More),
        (
            "true",
            "authorizer.path('/').check('get').allowed()",
            Dependence::More,
        ),
        ("true", "dyn(variables).limit == 3", Dependence::More),
        (
            "true",
            "dyn(variables).exists(v, v == 3)",
            Dependence::Broken,
        ),
        ("true", "variables.broken == 3", Dependence::Broken),
        ("true", "object.spec.text ==", Dependence::Broken),
        ("1 +", "true", Dependence::Broken),
    ] {
        let spec = json!({
            "paramKind": {"apiVersion": "example.com/v1", "kind": "Box"},
            "variables": variables,
            "matchConditions": [{"name": "m", "expression": condition}],
            "validations": [{"expression": expression}],
        });
        let policy = policy(BOX, &["CREATE"], &spec);
        let expressions = policy.expressions().iter();
        let is_validation = |it: &crate::expressions::PolicyExpression| {
            it.role == crate::expressions::Role::Validation
        };
        let index = expressions.clone().position(is_validation).unwrap();
        assert_eq!(
            dependence(&policy, index),
            expected,
            "{condition}, {expression}"
        );
    }
}
