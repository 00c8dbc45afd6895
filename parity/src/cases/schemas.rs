//! Generates random schemas with every feature that affects types, and valid values of the schemas.

use serde_json::{Map, Value, json};

use super::choices::Choices;

/// Names of properties: plain names, names that CEL must escape, reserved words, and names of metadata fields.
const NAMES: [&str; 22] = [
    "replicas",
    "image",
    "spec",
    "mode",
    "items",
    "labels",
    "size",
    "camelCase",
    "snake_case",
    "with-dash",
    "with.dot",
    "with/slash",
    "two__lines",
    "__own__",
    "namespace",
    "in",
    "type",
    "kind",
    "metadata",
    "9lives",
    "with space",
    "ünter",
];

const FORMATS: [&str; 14] = [
    "date",
    "date-time",
    "datetime",
    "duration",
    "byte",
    "binary",
    "uuid",
    "ipv4",
    "password",
    "int32",
    "int64",
    "double",
    "int-or-string",
    "no-such-format",
];

/// A schema and a valid value of the schema.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedSchema {
    pub(crate) schema: Value,
    pub(crate) value: Value,
}

fn generated(schema: Value, value: Value) -> GeneratedSchema {
    GeneratedSchema { schema, value }
}

/// Generates an object schema with at most `depth` levels of properties.
pub(crate) fn object(choices: &mut Choices<'_>, depth: u32) -> GeneratedSchema {
    let mut properties = Map::new();
    let mut value = Map::new();
    let mut required = Vec::new();
    for _ in 0..=choices.below(5) {
        let name = choices.pick(&NAMES);
        let part = any(choices, depth.saturating_sub(1));
        if choices.chance(25) {
            required.push(json!(name));
        }
        if choices.chance(85) {
            value.insert(name.to_owned(), part.value);
        } else {
            value.remove(name);
        }
        properties.insert(name.to_owned(), part.schema);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        required.sort_by_key(Value::to_string);
        required.dedup();
        set(&mut schema, "required", required.into());
    }
    if choices.chance(8) {
        set(
            &mut schema,
            "x-kubernetes-map-type",
            json!(choices.pick(&["granular", "atomic"])),
        );
    }
    generated(schema, value.into())
}

pub(crate) fn any(choices: &mut Choices<'_>, depth: u32) -> GeneratedSchema {
    let mut generated_schema = match choices.below(if depth == 0 { 8 } else { 14 }) {
        0 | 1 => string(choices),
        2 => number(choices),
        3 => generated(json!({"type": "boolean"}), json!(choices.chance(50))),
        4 => formatted(choices),
        5 => int_or_string(choices),
        6 => enumeration(choices),
        7 => preserving(choices),
        8 | 9 => list(choices, depth),
        10 => map(choices, depth),
        11 => embedded(choices),
        _ => object(choices, depth),
    };
    if choices.chance(10) {
        set(&mut generated_schema.schema, "nullable", json!(true));
        if choices.chance(50) {
            generated_schema.value = Value::Null;
        }
    }
    if choices.chance(6) && !generated_schema.value.is_null() {
        let default = generated_schema.value.clone();
        set(&mut generated_schema.schema, "default", default);
    }
    generated_schema
}

fn set(schema: &mut Value, keyword: &str, value: Value) {
    if let Value::Object(fields) = schema {
        fields.insert(keyword.to_owned(), value);
    }
}

fn string(choices: &mut Choices<'_>) -> GeneratedSchema {
    let mut schema = json!({"type": "string"});
    if choices.chance(50) {
        let most = [0, 1, 8, 63, 253, 1 << 20, 1_i64 << 40];
        let most = most.get(choices.below(most.len())).copied();
        set(&mut schema, "maxLength", json!(most));
    }
    if choices.chance(20) {
        set(&mut schema, "pattern", json!("^[a-z]*$"));
    }
    generated(
        schema,
        json!(choices.pick(&["", "a", "web", "é", "10%", "a,b"])),
    )
}

fn number(choices: &mut Choices<'_>) -> GeneratedSchema {
    if choices.chance(30) {
        let value = [json!(1), json!(0.5), json!(-2.25), json!(1e300)];
        return generated(json!({"type": "number"}), value[choices.below(4)].clone());
    }
    let mut schema = json!({"type": "integer"});
    if choices.chance(40) {
        set(
            &mut schema,
            "format",
            json!(choices.pick(&["int32", "int64"])),
        );
    }
    if choices.chance(20) {
        set(&mut schema, "minimum", json!(0));
    }
    let value = [0, 1, 3, -7, i64::MAX];
    generated(schema, json!(value[choices.below(5)]))
}

fn formatted(choices: &mut Choices<'_>) -> GeneratedSchema {
    let format = choices.pick(&FORMATS);
    let value = match format {
        "date" => "2024-02-29",
        "date-time" | "datetime" => {
            choices.pick(&["2024-02-29T12:34:56.789Z", "0001-01-01T00:00:00Z"])
        }
        "duration" => choices.pick(&["1h30m", "0s", "2562047h"]),
        "byte" => choices.pick(&["aGVsbG8=", ""]),
        _ => "text",
    };
    let mut schema = json!({"type": "string", "format": format});
    if choices.chance(30) {
        set(&mut schema, "maxLength", json!(40));
    }
    generated(schema, json!(value))
}

fn int_or_string(choices: &mut Choices<'_>) -> GeneratedSchema {
    let mut schema = json!({"x-kubernetes-int-or-string": true});
    if choices.chance(40) {
        set(
            &mut schema,
            "anyOf",
            json!([{"type": "integer"}, {"type": "string"}]),
        );
    }
    if choices.chance(20) {
        set(&mut schema, "maxLength", json!(8));
    }
    let value = [json!(1), json!("50%"), json!(0), json!("http")];
    generated(schema, value[choices.below(4)].clone())
}

fn enumeration(choices: &mut Choices<'_>) -> GeneratedSchema {
    if choices.chance(25) {
        return generated(json!({"type": "integer", "enum": [1, 2, 30]}), json!(2));
    }
    let mut words = vec!["Always", "Never", "IfNotPresent", ""];
    words.truncate(1 + choices.below(4));
    let value = words.first().copied();
    generated(json!({"type": "string", "enum": words}), json!(value))
}

fn preserving(choices: &mut Choices<'_>) -> GeneratedSchema {
    let mut schema = json!({"x-kubernetes-preserve-unknown-fields": true});
    if choices.chance(60) {
        set(&mut schema, "type", json!("object"));
    }
    if choices.chance(40) {
        set(&mut schema, "type", json!("object"));
        set(
            &mut schema,
            "properties",
            json!({"known": {"type": "string"}}),
        );
        return generated(schema, json!({"known": "a"}));
    }
    generated(schema, json!({"one": 1}))
}

fn embedded(choices: &mut Choices<'_>) -> GeneratedSchema {
    let mut schema = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    let mut value = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}});
    if choices.chance(50) {
        set(
            &mut schema,
            "x-kubernetes-preserve-unknown-fields",
            json!(true),
        );
    } else {
        let inner = number(choices);
        set(&mut schema, "properties", json!({"count": inner.schema}));
        set(&mut value, "count", inner.value);
    }
    generated(schema, value)
}

fn list(choices: &mut Choices<'_>, depth: u32) -> GeneratedSchema {
    let keyed = choices.chance(25);
    let inner = if keyed {
        let mut inner = object(choices, depth.saturating_sub(1));
        if let Some(Value::Object(properties)) = inner.schema.get_mut("properties") {
            properties.insert("name".to_owned(), json!({"type": "string"}));
        }
        set(&mut inner.value, "name", json!("one"));
        set(&mut inner.schema, "required", json!(["name"]));
        inner
    } else {
        any(choices, depth.saturating_sub(1))
    };
    let is_scalar = matches!(
        inner.schema.get("type").and_then(Value::as_str),
        Some("string" | "integer" | "boolean")
    );
    let mut schema = json!({"type": "array", "items": inner.schema});
    if choices.chance(50) {
        let most = [0, 1, 5, 1000];
        set(&mut schema, "maxItems", json!(most[choices.below(4)]));
    }
    if keyed {
        set(&mut schema, "x-kubernetes-list-type", json!("map"));
        set(&mut schema, "x-kubernetes-list-map-keys", json!(["name"]));
    } else if choices.chance(40) {
        let kind = if is_scalar && choices.chance(60) {
            "set"
        } else {
            "atomic"
        };
        set(&mut schema, "x-kubernetes-list-type", json!(kind));
    }
    let n = if keyed || !is_scalar { 2 } else { 4 };
    let n = choices.below(n);
    generated(schema, vec![inner.value; n].into())
}

/// Generates a map with at most one entry, because Go iterates over maps in random order.
fn map(choices: &mut Choices<'_>, depth: u32) -> GeneratedSchema {
    let inner = any(choices, depth.saturating_sub(1));
    let mut schema = json!({"type": "object", "additionalProperties": inner.schema});
    if choices.chance(40) {
        let most = [0, 1, 16];
        set(&mut schema, "maxProperties", json!(most[choices.below(3)]));
    }
    if choices.chance(10) {
        set(&mut schema, "additionalProperties", json!(true));
        return generated(schema, json!({}));
    }
    let value = if choices.chance(80) {
        json!({choices.pick(&["k", "with-dash", "example.com/x"]): inner.value})
    } else {
        json!({})
    };
    generated(schema, value)
}
