//! Generates requests for custom resources from a seed. The CustomResourceDefinitions contain all validation keywords.
//! The objects are valid or invalid. Some requests update an older object.

use serde_json::{Map, Value, json};

use super::choices;
use super::choices::Choices;
use super::crds;
use super::rule_objects::change;
use super::rules;
use super::rules::is_true;

/// Generates `n` CustomResourceDefinitions. Most of them have rules.
#[must_use]
pub fn definitions(seed: u64, n: u64) -> Vec<Value> {
    let mut definitions = rules::definitions(seed, n / 2);
    definitions.extend(crds::crds(seed.wrapping_add(1), n - n / 2));
    for (at, definition) in (0_u64..).zip(&mut definitions) {
        let mut choices = choices(seed, "custom resource definition", at);
        let versions = definition.pointer_mut("/spec/versions");
        for version in versions.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                add_keywords(&mut choices, schema, 0);
            }
        }
    }
    definitions
}

const FORMATS: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "date-time",
    "datetime",
    "k8s-short-name",
    "k8s-long-name",
    "int32",
    "unknown",
];

const PATTERNS: &[&str] = &[
    "^[a-z]+$",
    "a|b",
    "^(https?|ftp)://",
    r"^\d{1,3}$",
    "^$",
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    r"^\p{L}*$",
    "(?i)^FOO$",
];

fn add_keywords(choices: &mut Choices<'_>, schema: &mut Value, depth: u32) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key).filter(|inner| inner.is_object()) {
            add_keywords(choices, inner, depth + 1);
        }
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for property in properties.values_mut() {
            add_keywords(choices, property, depth + 1);
        }
    }
    if depth == 0 {
        return;
    }
    let type_ = fields
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match type_.as_str() {
        "string" => add_to_string(choices, fields),
        "integer" | "number" => add_to_number(choices, fields, &type_),
        "array" => add_to_array(choices, fields),
        "object" => add_to_object(choices, fields),
        _ => {}
    }
    if choices.chance(8) {
        fields.insert("nullable".into(), json!(true));
    }
    if choices.chance(12) {
        add_junctors(choices, fields, &type_);
    }
}

fn add_to_string(choices: &mut Choices<'_>, fields: &mut Map<String, Value>) {
    if choices.chance(20) {
        fields.insert("minLength".into(), json!(choices.below(3)));
    }
    if choices.chance(20) {
        fields.insert(
            "maxLength".into(),
            json!([1, 2, 3, 5, 10].get(choices.below(5))),
        );
    }
    if choices.chance(20) {
        fields.insert("pattern".into(), json!(choices.pick(PATTERNS)));
    }
    if choices.chance(40) {
        fields.insert("format".into(), json!(choices.pick(FORMATS)));
    }
    if choices.chance(8) {
        fields.insert("enum".into(), json!(["a", "b", "\u{e4}\"", "7"]));
    }
    if choices.chance(10) {
        fields.insert(
            "default".into(),
            json!(choices.pick(&["a", "abc", "10.0.0.1"])),
        );
    }
}

fn add_to_number(choices: &mut Choices<'_>, fields: &mut Map<String, Value>, type_: &str) {
    let bounds = [
        json!(0),
        json!(1),
        json!(3),
        json!(-2),
        json!(2.5),
        json!(1_000_000),
        json!(1e10),
        json!(1e20),
    ];
    for key in ["minimum", "maximum"] {
        if choices.chance(25) {
            let bound = bounds.get(choices.below(bounds.len())).cloned();
            fields.insert(key.into(), bound.unwrap_or_default());
        }
    }
    for key in ["exclusiveMinimum", "exclusiveMaximum"] {
        if choices.chance(15) {
            fields.insert(key.into(), json!(true));
        }
    }
    if choices.chance(15) {
        let factors = [
            json!(2),
            json!(5),
            json!(0.5),
            json!(0.01),
            json!(0),
            json!(-1),
            json!(1.5),
        ];
        let factor = factors.get(choices.below(factors.len())).cloned();
        fields.insert("multipleOf".into(), factor.unwrap_or_default());
    }
    if choices.chance(30) {
        let format = choices.pick(&["int32", "int64", "float", "double", "odd"]);
        fields.insert("format".into(), json!(format));
    }
    if choices.chance(8) {
        fields.insert("enum".into(), json!([1, 3, 2.5, 10]));
    }
    if choices.chance(5) && type_ == "integer" {
        fields.insert("default".into(), json!(3));
    }
}

fn add_to_array(choices: &mut Choices<'_>, fields: &mut Map<String, Value>) {
    if choices.chance(20) {
        fields.insert("minItems".into(), json!(choices.below(3)));
    }
    if choices.chance(20) {
        fields.insert("maxItems".into(), json!(choices.below(4)));
    }
    if choices.chance(5) {
        fields.insert("uniqueItems".into(), json!(true));
    }
    if fields.contains_key("x-kubernetes-list-type") || !choices.chance(45) {
        return;
    }
    let names = fields
        .get("items")
        .and_then(|items| items.get("properties"))
        .and_then(Value::as_object);
    let keys: Vec<String> = names
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .take(1 + choices.below(2))
        .collect();
    if keys.is_empty() {
        fields.insert("x-kubernetes-list-type".into(), json!("set"));
    } else {
        fields.insert("x-kubernetes-list-type".into(), json!("map"));
        fields.insert("x-kubernetes-list-map-keys".into(), json!(keys));
    }
}

fn add_to_object(choices: &mut Choices<'_>, fields: &mut Map<String, Value>) {
    if choices.chance(10) {
        fields.insert("minProperties".into(), json!(choices.below(3)));
    }
    if choices.chance(10) {
        fields.insert("maxProperties".into(), json!(choices.below(4)));
    }
    let names: Vec<String> = match fields.get("properties").and_then(Value::as_object) {
        Some(properties) => properties.keys().cloned().collect(),
        None => Vec::new(),
    };
    if choices.chance(30) && !fields.contains_key("required") {
        let required: Vec<&String> = names.iter().filter(|_| choices.chance(50)).collect();
        fields.insert("required".into(), json!(required));
    }
    if choices.chance(6) && !names.is_empty() {
        fields.insert("x-kubernetes-embedded-resource".into(), json!(true));
        fields.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
    }
}

/// Adds `allOf`, `anyOf`, `oneOf` and `not`. Their schemas contain keywords but no types.
fn add_junctors(choices: &mut Choices<'_>, fields: &mut Map<String, Value>, type_: &str) {
    let names: Vec<String> = match fields.get("properties").and_then(Value::as_object) {
        Some(properties) => properties.keys().cloned().collect(),
        None => vec!["a".to_owned()],
    };
    let nested = |choices: &mut Choices<'_>| -> Value {
        let name = names
            .get(choices.below(names.len().max(1)))
            .cloned()
            .unwrap_or_default();
        match type_ {
            "string" => match choices.below(4) {
                0 => json!({"format": choices.pick(FORMATS)}),
                1 => json!({"maxLength": choices.below(5)}),
                2 => json!({"enum": ["", "a", "x"]}),
                _ => json!({"pattern": choices.pick(PATTERNS)}),
            },
            "integer" | "number" => match choices.below(3) {
                0 => json!({"minimum": choices.below(9)}),
                1 => json!({"maximum": choices.below(9), "multipleOf": 2}),
                _ => json!({"enum": [1, 2, "a"]}),
            },
            "array" => match choices.below(3) {
                0 => json!({"minItems": choices.below(3)}),
                1 => json!({"items": {"required": ["a"]}}),
                _ => json!({"maxItems": choices.below(3), "items": {"minLength": 2, "minimum": 3}}),
            },
            _ => match choices.below(5) {
                0 => json!({"required": [name]}),
                1 => json!({"not": {"required": [name]}}),
                2 => json!({"properties": {name: {"minLength": 2, "minimum": 2}}}),
                3 => {
                    json!({"required": [name], "properties": {name: {"enum": ["a", 1, true, null, ["a"], {"a": 1}]}}})
                }
                _ => json!({"maxProperties": choices.below(3), "required": [name, "a"]}),
            },
        }
    };
    match choices.below(4) {
        0 => {
            let not = nested(choices);
            fields.insert("not".into(), not);
        }
        n => {
            let key = ["anyOf", "oneOf", "allOf"]
                .get(n - 1)
                .copied()
                .unwrap_or("anyOf");
            let list: Vec<Value> = (0..=choices.below(3)).map(|_| nested(choices)).collect();
            fields.insert(key.into(), list.into());
        }
    }
}

const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "abc",
    "Foo",
    "7",
    "10.0.0.1",
    "010.0.0.001",
    "::1",
    "::ffff:1.2.3.4",
    "10.0.0.0/8",
    "fd00::/64",
    "https://example.com/a?b",
    "/a",
    "1Gi",
    "a-b.c",
    "-a",
    "*.example.com",
    "\u{e4}\u{1f600}",
    "a@b.example",
    "Ann <a@b>",
    "507f1f77bcf86cd799439011",
    "00:00:5e:00:53:01",
    "0000.5e00.5301",
    "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    "F47AC10B58CC5372A5670E02B2C3D479",
    "3836221195",
    "978-3-8362-2119-1",
    "4220-8554-2622-2389",
    "111-22-3333",
    "#f00",
    "rgb(1, 2, 3)",
    "YWJj",
    "2024-02-29",
    "2023-02-29",
    "3 days",
    "1h2m",
    "5 x",
    "2024-02-29T10:11:12Z",
    "2024-02-29t10:11:12.5+01:00",
    "12345",
    "line\nbreak\u{7}",
    "\"quoted\" <&>",
];

fn one_of(choices: &mut Choices<'_>, values: &[Value]) -> Value {
    let at = choices.below(values.len().max(1));
    values.get(at).cloned().unwrap_or_default()
}

/// Generates a value for `schema`. Some of the values are invalid.
fn value(choices: &mut Choices<'_>, schema: &Value, depth: u32) -> Value {
    if choices.chance(2) || (is_true(schema, "nullable") && choices.chance(20)) {
        return Value::Null;
    }
    if choices.chance(2) {
        let odd = [
            json!(3),
            json!("odd"),
            json!([]),
            json!({}),
            json!(1.5),
            json!(true),
            json!(2.0),
            json!(97),
        ];
        return one_of(choices, &odd);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && choices.chance(80)
    {
        return one_of(choices, values);
    }
    if is_true(schema, "x-kubernetes-int-or-string") {
        return one_of(
            choices,
            &[
                json!(3),
                json!("3"),
                json!(8),
                json!("50%"),
                json!(""),
                json!(2.0),
            ],
        );
    }
    match schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "boolean" => json!(choices.chance(50)),
        "integer" => one_of(
            choices,
            &[
                json!(0),
                json!(1),
                json!(2),
                json!(3),
                json!(5),
                json!(10),
                json!(80),
                json!(-1),
                json!(3_000_000),
                json!(3_000_000_000_i64),
                json!(9_007_199_254_740_993_i64),
                json!(1.0),
                json!(2.5),
            ],
        ),
        "number" => one_of(
            choices,
            &[
                json!(0),
                json!(1.5),
                json!(2),
                json!(99.25),
                json!(1e30),
                json!(-0.5),
                json!(0.03),
                json!(1e39),
                json!(1_234_567.5),
                json!(1.000_000_000_1),
            ],
        ),
        "string" => json!(choices.pick(TEXTS)),
        "array" => {
            let items = schema.get("items").cloned().unwrap_or_default();
            let n = choices.below(if depth > 3 { 2 } else { 4 });
            let mut list: Vec<Value> = (0..n).map(|_| value(choices, &items, depth + 1)).collect();
            if let Some(first) = list.first().cloned().filter(|_| choices.chance(15)) {
                list.push(first);
            }
            list.into()
        }
        "object" => object_value(choices, schema, depth).into(),
        _ => json!({"any": [1, "a"]}),
    }
}

fn object_value(choices: &mut Choices<'_>, schema: &Value, depth: u32) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
    {
        for key in ["a", "b", "k.l"] {
            if choices.chance(50) {
                fields.insert(key.into(), value(choices, values, depth + 1));
            }
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    let present = if depth > 6 { 15 } else { 50 };
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.contains(&json!(name)));
        if (is_required && choices.chance(93)) || choices.chance(present) {
            fields.insert(name.clone(), value(choices, property, depth + 1));
        }
    }
    if choices.chance(4) {
        fields.insert("unknown".into(), json!({"a": [1]}));
    }
    if is_true(schema, "x-kubernetes-embedded-resource") {
        for (name, texts) in [
            ("apiVersion", &["v1", "apps/v1", "a/b/c", "", "/"][..]),
            ("kind", &["Pod", "a.b", "", "9a"][..]),
        ] {
            if choices.chance(90) {
                let n = if choices.chance(75) { 1 } else { texts.len() };
                fields.insert(name.into(), json!(texts.get(choices.below(n))));
            }
        }
        if choices.chance(60) {
            fields.insert("metadata".into(), metadata(choices));
        }
    }
    fields
}

/// Generates metadata, which is usually valid.
fn metadata(choices: &mut Choices<'_>) -> Value {
    let mut metadata = json!({"name": "made"});
    if choices.chance(75) {
        return metadata;
    }
    let changes = [
        json!({"name": "Made_1"}),
        json!({"name": ".."}),
        json!({"name": "a/b"}),
        json!({"name": null}),
        json!({"name": "", "generateName": "made-"}),
        json!({"generateName": "Made-"}),
        json!({"labels": {"a": "b", "-x": "y z"}}),
        json!({"labels": {"example.com/a": "-"}}),
        json!({"annotations": {"Example.com/A": "b", "a/b/c": ""}}),
        json!({"finalizers": ["example.com/a", "b b"]}),
        json!({"finalizers": ["orphan", "foregroundDeletion"]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b"}]}),
        json!({"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
        json!({"ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "controller": true},
            {"apiVersion": "v1", "kind": "Pod", "name": "c", "uid": "d", "controller": true, "blockOwnerDeletion": false}]}),
        json!({"managedFields": [{"manager": "a\u{7}", "operation": "Change", "fieldsType": "FieldsV2"}]}),
        json!({"generation": -1}),
        json!({"deletionTimestamp": "2024-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}),
        json!({"unknown": 1, "labels": {"a": null}}),
        json!({"labels": {"a": 1}}),
        json!({"name": 5}),
        json!({"finalizers": "a"}),
        json!({"ownerReferences": [{"name": 1}]}),
    ];
    let change = one_of(choices, &changes);
    for (name, field) in change.as_object().into_iter().flatten() {
        if let Some(fields) = metadata.as_object_mut() {
            fields.insert(name.clone(), field.clone());
        }
    }
    metadata
}

/// Generates the `n`th request for an object of `definition` in `version`. The request contains the object, the
/// namespace, and in most cases the old object.
#[must_use]
pub fn request(seed: u64, n: u64, definition: &Value, version: &Value) -> Value {
    let mut choices = choices(seed, "custom resource", n);
    let schema = version
        .pointer("/schema/openAPIV3Schema")
        .cloned()
        .unwrap_or_default();
    let mut object = Value::Object(object_value(&mut choices, &schema, 0));
    let text = |pointer: &str| {
        definition
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let group = text("/spec/group");
    let name = version
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_namespaced = text("/spec/scope") == "Namespaced";
    let (api_version, kind) = if choices.chance(98) {
        (
            json!(format!("{group}/{name}")),
            json!(text("/spec/names/kind")),
        )
    } else {
        (json!("other.example.com/v1"), json!("Other"))
    };
    set(&mut object, "apiVersion", api_version);
    set(&mut object, "kind", kind);
    set(&mut object, "metadata", metadata(&mut choices));
    let mut request = json!({"namespace": if is_namespaced { "default" } else { "" }});
    if choices.chance(60) {
        let mut old = object.clone();
        let percent = [0, 0, 5, 15, 40]
            .get(choices.below(5))
            .copied()
            .unwrap_or(0);
        for name in object
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
        {
            if let Some(field) = old
                .get_mut(&name)
                .filter(|_| !matches!(&*name, "apiVersion" | "kind" | "metadata"))
            {
                change(&mut choices, field, percent);
            }
        }
        if choices.chance(10) {
            set(&mut old, "metadata", metadata(&mut choices));
        }
        for (object, generation) in [(&mut object, 1), (&mut old, 1)] {
            let Some(metadata) = object
                .get_mut("metadata")
                .filter(|metadata| metadata.is_object())
            else {
                continue;
            };
            set(
                metadata,
                "uid",
                json!("00000000-0000-4000-8000-000000000000"),
            );
            set(metadata, "resourceVersion", json!("1"));
            set(metadata, "creationTimestamp", json!("2026-01-01T00:00:00Z"));
            if metadata
                .get("name")
                .is_none_or(|name| name.is_null() || name == "")
            {
                set(metadata, "name", json!("made"));
            }
            if is_namespaced {
                set(metadata, "namespace", json!("default"));
            }
            if metadata.get("generation").is_none() {
                set(metadata, "generation", json!(generation));
            }
        }
        set(&mut request, "old", old);
    }
    set(&mut request, "object", object);
    request
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}
