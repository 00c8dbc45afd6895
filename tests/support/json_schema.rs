//! Values held against a JSON Schema, as far as the schemas of this project go; an unknown keyword fails.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Keywords that say nothing of values, or of formats that types imply.
const SILENT: [&str; 11] = [
    "$schema", "$id", "$defs", "definitions", "title", "description", "default", "format", "examples", "$comment",
    "readOnly",
];

/// The faults of `value`, each with its place. With `is_closed`, a field that no schema names is a fault.
pub(crate) fn faults(schema: &Value, value: &Value, is_closed: bool) -> Vec<String> {
    let mut walk = Walk {
        root: schema,
        is_closed,
        found: Vec::new(),
    };
    walk.value(schema, value, "$");
    walk.found
}

struct Walk<'a> {
    root: &'a Value,
    is_closed: bool,
    found: Vec<String>,
}

impl<'a> Walk<'a> {
    fn fault(&mut self, path: &str, what: &str) {
        self.found.push(format!("{path}: {what}"));
    }

    fn is_valid(&self, schema: &Value, value: &Value) -> bool {
        faults_below(self.root, schema, value, self.is_closed).is_empty()
    }

    fn value(&mut self, schema: &'a Value, value: &Value, path: &str) {
        let Value::Object(keywords) = schema else {
            if schema == &Value::Bool(false) {
                self.fault(path, "is not allowed");
            }
            return;
        };
        for (keyword, of) in keywords {
            self.keyword(keyword, of, value, path);
        }
        if let Value::Object(fields) = value {
            self.fields(keywords, fields, path);
        }
    }

    fn keyword(&mut self, keyword: &str, of: &'a Value, value: &Value, path: &str) {
        let holds = match keyword {
            "$ref" => {
                let pointer = of.as_str().unwrap().trim_start_matches('#');
                let target = self.root.pointer(pointer).unwrap();
                self.value(target, value, path);
                true
            }
            "type" => match of {
                Value::Array(types) => types.iter().any(|of| is_of(of, value)),
                of => is_of(of, value),
            },
            "enum" => of.as_array().unwrap().contains(value),
            "const" => of == value,
            "anyOf" => of.as_array().unwrap().iter().any(|of| self.is_valid(of, value)),
            "oneOf" => {
                let all = of.as_array().unwrap().iter();
                all.filter(|of| self.is_valid(of, value)).count() == 1
            }
            "allOf" => {
                for of in of.as_array().unwrap() {
                    self.value(of, value, path);
                }
                true
            }
            "not" => !self.is_valid(of, value),
            "minimum" => value.as_f64().is_none_or(|it| it >= of.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|it| it <= of.as_f64().unwrap()),
            "minLength" => length(value).is_none_or(|it| it >= of.as_u64().unwrap()),
            "maxLength" => length(value).is_none_or(|it| it <= of.as_u64().unwrap()),
            "minItems" => count(value).is_none_or(|it| it >= of.as_u64().unwrap()),
            "maxItems" => count(value).is_none_or(|it| it <= of.as_u64().unwrap()),
            "minProperties" => value.as_object().is_none_or(|it| it.len() as u64 >= of.as_u64().unwrap()),
            "uniqueItems" => {
                let items = value.as_array().map(|items| {
                    let texts: BTreeSet<String> = items.iter().map(Value::to_string).collect();
                    (texts.len(), items.len())
                });
                of == &Value::Bool(false) || items.is_none_or(|(different, all)| different == all)
            }
            "pattern" => {
                let pattern = regexp::Program::new(of.as_str().unwrap()).unwrap();
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.value(of, item, &format!("{path}[{n}]"));
                }
                true
            }
            // With the fields.
            "properties" | "additionalProperties" | "required" => true,
            silent if SILENT.contains(&silent) => true,
            unknown => panic!("the keyword {unknown} is not known"),
        };
        if !holds {
            let shown: String = value.to_string().chars().take(80).collect();
            self.fault(path, &format!("{shown} is not {keyword} {of}"));
        }
    }

    fn fields(&mut self, keywords: &'a Map<String, Value>, fields: &Map<String, Value>, path: &str) {
        for name in keywords.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                self.fault(path, &format!("has no {name}"));
            }
        }
        let properties = keywords.get("properties").and_then(Value::as_object);
        let others = keywords.get("additionalProperties");
        for (name, field) in fields {
            let path = format!("{path}.{name}");
            match (properties.and_then(|known| known.get(name)), others) {
                (Some(schema), _) | (None, Some(schema)) => self.value(schema, field, &path),
                (None, None) if self.is_closed && properties.is_some() => {
                    self.fault(&path, "is named by no schema");
                }
                (None, None) => {}
            }
        }
    }
}

fn faults_below(root: &Value, schema: &Value, value: &Value, is_closed: bool) -> Vec<String> {
    let mut walk = Walk {
        root,
        is_closed,
        found: Vec::new(),
    };
    walk.value(schema, value, "");
    walk.found
}

fn is_of(type_: &Value, value: &Value) -> bool {
    match type_.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other}"),
    }
}

fn length(value: &Value) -> Option<u64> {
    Some(value.as_str()?.chars().count() as u64)
}

fn count(value: &Value) -> Option<u64> {
    Some(value.as_array()?.len() as u64)
}
