//! Validates values by a JSON Schema. Supports the keywords in this project's schemas. Panics for other keywords.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::eval::{Limits, PlainRuntime, Program};
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::Value;
use vap_status_controller::cel::{checker, stdlib, syntax};

/// Keywords that need no validation: annotations, and formats that the values always have.
const SILENT: [&str; 12] = [
    "$schema",
    "id",
    "$id",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "format",
    "examples",
    "$comment",
    "readOnly",
];

/// Returns the validation errors of `value`, with their paths. If `is_closed` is true, undeclared fields are errors.
pub(crate) fn errors(schema: &Json, value: &Json, is_closed: bool) -> Vec<String> {
    let mut walk = Walk {
        root: schema,
        is_closed,
        found: Vec::new(),
    };
    walk.value(schema, value, "$");
    walk.found
}

struct Walk<'a> {
    root: &'a Json,
    is_closed: bool,
    found: Vec<String>,
}

impl<'a> Walk<'a> {
    fn error(&mut self, path: &str, what: &str) {
        self.found.push(format!("{path}: {what}"));
    }

    fn is_valid(&self, schema: &Json, value: &Json) -> bool {
        errors_below(self.root, schema, value, self.is_closed).is_empty()
    }

    fn value(&mut self, schema: &'a Json, value: &Json, path: &str) {
        let Json::Object(keywords) = schema else {
            if schema == &Json::Bool(false) {
                self.error(path, "is not allowed");
            }
            return;
        };
        for (keyword, of) in keywords {
            self.keyword(keyword, of, value, path);
        }
        if let Json::Object(fields) = value {
            self.fields(keywords, fields, path);
        }
    }

    fn keyword(&mut self, keyword: &str, of: &'a Json, value: &Json, path: &str) {
        let holds = match keyword {
            "$ref" => {
                let pointer = of.as_str().unwrap().trim_start_matches('#');
                let target = self.root.pointer(pointer).unwrap();
                self.value(target, value, path);
                true
            }
            "type" => match of {
                Json::Array(types) => types.iter().any(|of| is_of(of, value)),
                of => is_of(of, value),
            },
            "enum" => of.as_array().unwrap().contains(value),
            "const" => of == value,
            "anyOf" => of
                .as_array()
                .unwrap()
                .iter()
                .any(|of| self.is_valid(of, value)),
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
            "minProperties" => value
                .as_object()
                .is_none_or(|it| it.len() as u64 >= of.as_u64().unwrap()),
            "uniqueItems" => {
                let items = value.as_array().map(|items| {
                    let texts: BTreeSet<String> = items.iter().map(Json::to_string).collect();
                    (texts.len(), items.len())
                });
                of == &Json::Bool(false) || items.is_none_or(|(different, all)| different == all)
            }
            "pattern" => {
                let pattern = of.as_str().unwrap();
                value.as_str().is_none_or(|text| matches(pattern, text))
            }
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.value(of, item, &format!("{path}[{n}]"));
                }
                true
            }
            // These keywords are validated with the fields.
            "properties" | "additionalProperties" | "required" => true,
            silent if SILENT.contains(&silent) => true,
            unknown => panic!("the keyword {unknown} is not supported"),
        };
        if !holds {
            let shown: String = value.to_string().chars().take(80).collect();
            self.error(path, &format!("{shown} is not {keyword} {of}"));
        }
    }

    fn fields(&mut self, keywords: &'a Map<String, Json>, fields: &Map<String, Json>, path: &str) {
        for name in keywords
            .get("required")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
        {
            if !fields.contains_key(name.as_str().unwrap()) {
                self.error(path, &format!("has no {name}"));
            }
        }
        let properties = keywords.get("properties").and_then(Json::as_object);
        let others = keywords.get("additionalProperties");
        for (name, field) in fields {
            let path = format!("{path}.{name}");
            match (properties.and_then(|known| known.get(name)), others) {
                (Some(schema), _) | (None, Some(schema)) => self.value(schema, field, &path),
                (None, None) if self.is_closed && properties.is_some() => {
                    self.error(&path, "is not declared in the schema");
                }
                (None, None) => {}
            }
        }
    }
}

fn errors_below(root: &Json, schema: &Json, value: &Json, is_closed: bool) -> Vec<String> {
    let mut walk = Walk {
        root,
        is_closed,
        found: Vec::new(),
    };
    walk.value(schema, value, "");
    walk.found
}

fn matches(pattern: &str, text: &str) -> bool {
    const EXPRESSION: &str = "t.matches(p)";
    let variables = ["t", "p"].map(|name| Variable::new(name, Type::String));
    let env = Env::new(Arc::new(stdlib::library())).extend(variables);
    let ast = Arc::new(syntax::parse(EXPRESSION).0.unwrap());
    let (checked, _) = checker::check(&ast, EXPRESSION, &env);
    let program = Program::plan(&checked, &env, &PlainRuntime).unwrap();
    let values = [
        ("t", Value::from(&json!(text))),
        ("p", Value::from(&json!(pattern))),
    ];
    let result = program.eval(&values, Limits::from_cost(u64::MAX)).result;
    matches!(result.unwrap(), Value::Bool(true))
}

fn is_of(type_: &Json, value: &Json) -> bool {
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

fn length(value: &Json) -> Option<u64> {
    Some(value.as_str()?.chars().count() as u64)
}

fn count(value: &Json) -> Option<u64> {
    Some(value.as_array()?.len() as u64)
}
