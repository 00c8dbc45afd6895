//! Generates valid and invalid objects for the schemas of CustomResourceDefinitions, and old versions of these objects.

use serde_json::{Map, Value, json};

use super::choices;
use super::choices::Choices;
use super::rules::is_true;

fn one_of(choices: &mut Choices<'_>, values: &[Value]) -> Value {
    let at = choices.below(values.len().max(1));
    values.get(at).cloned().unwrap_or_default()
}

/// Generates a value for `schema`. Some of the values are invalid.
#[expect(clippy::too_many_lines, reason = "a table of values by type")]
#[must_use]
pub(crate) fn value(choices: &mut Choices<'_>, schema: &Value, depth: u32) -> Value {
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
        ];
        return one_of(choices, &odd);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.is_empty()
        && choices.chance(85)
    {
        return one_of(choices, values);
    }
    if is_true(schema, "x-kubernetes-int-or-string") {
        return one_of(
            choices,
            &[json!(3), json!("3"), json!(8), json!("50%"), json!("")],
        );
    }
    let text = |choices: &mut Choices<'_>, texts: &[&str]| json!(choices.pick(texts));
    match schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "boolean" => json!(choices.chance(50)),
        "integer" => {
            let numbers = [0, 1, 2, 3, 5, 7, 10, 80, 443, -1, 3_000_000];
            json!(numbers.get(choices.below(numbers.len())))
        }
        "number" => one_of(
            choices,
            &[
                json!(0),
                json!(1.5),
                json!(2),
                json!(99.25),
                json!(1e30),
                json!(-0.5),
            ],
        ),
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some("duration") => text(choices, &["1s", "2h", "5m30s", "3 days", "odd"]),
            Some("date") => text(choices, &["2024-02-29", "1999-01-01", "odd"]),
            Some("date-time") => text(
                choices,
                &["2024-02-29T10:11:12Z", "2031-01-01T00:00:00.5+02:00", "odd"],
            ),
            Some("byte") => text(choices, &["YWJj", "", "YQ==", "!"]),
            _ => text(
                choices,
                &[
                    "",
                    "a",
                    "b",
                    "x",
                    "abc",
                    "a,b",
                    "10.0.0.1",
                    "10.0.0.0/8",
                    "https://example.com/a?b",
                    "1Gi",
                    "Foo",
                    "a-b.c",
                    "7",
                    "*.example.com",
                    "\u{e4}\u{1f600}",
                ],
            ),
        },
        "array" => {
            let items = schema.get("items").cloned().unwrap_or_default();
            let n = choices.below(if depth > 3 { 2 } else { 4 });
            (0..n).map(|_| value(choices, &items, depth + 1)).collect()
        }
        "object" => {
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
            let present = if depth > 6 { 15 } else { 60 };
            for (name, property) in schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                let is_required = required.is_some_and(|names| names.contains(&json!(name)));
                if (is_required && choices.chance(95)) || choices.chance(present) {
                    fields.insert(name.clone(), value(choices, property, depth + 1));
                }
            }
            if choices.chance(4) {
                fields.insert("unknown".into(), json!({"a": [1]}));
            }
            fields.into()
        }
        _ => json!({"any": [1, "a"]}),
    }
}

#[must_use]
pub(crate) fn object(choices: &mut Choices<'_>, schema: &Value) -> Value {
    let mut object = value(choices, schema, 0);
    if !object.is_object() {
        object = json!({});
    }
    object["apiVersion"] = json!("made.example.com/v1");
    object["kind"] = json!("Made");
    if !object["metadata"].is_object() || choices.chance(80) {
        object["metadata"] = json!({"name": "made", "labels": {"a": "b"}});
    }
    object
}

/// Changes `object` into a possible old version of it. The greater `percent` is, the more values change.
pub(crate) fn change(choices: &mut Choices<'_>, object: &mut Value, percent: usize) {
    match object {
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            for name in names {
                if choices.chance(percent / 3) {
                    fields.remove(&name);
                } else if let Some(field) = fields.get_mut(&name) {
                    change(choices, field, percent);
                }
            }
        }
        Value::Array(elements) => {
            for element in elements.iter_mut() {
                change(choices, element, percent);
            }
            if elements.len() > 1 && choices.chance(percent) {
                elements.swap(0, 1);
            }
            if choices.chance(percent / 2) {
                elements.pop();
            }
            if let Some(first) = elements
                .first()
                .cloned()
                .filter(|_| choices.chance(percent / 2))
            {
                elements.push(first);
            }
        }
        scalar => {
            if choices.chance(percent) {
                *scalar = match &*scalar {
                    Value::Number(number) if number.is_i64() => {
                        json!(number.as_i64().unwrap_or_default().wrapping_add(1))
                    }
                    Value::String(_) => json!("other"),
                    Value::Bool(is) => json!(!is),
                    other => other.clone(),
                };
            }
        }
    }
}

#[must_use]
pub(crate) fn choices_of(seed: u64, n: u64) -> Choices<'static> {
    choices(seed, "crd object", n)
}
