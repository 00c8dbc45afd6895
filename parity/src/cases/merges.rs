//! Generates inputs of merges and patches: objects, apply configurations, patches, and CustomResourceDefinitions with
//! every schema feature that affects merges. Most objects and configurations match the schemas of an OpenAPI document.
//! Some contain mistakes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::random::Random;

/// The generated strings. Their number is small, so that items of two lists are often equal.
const TEXTS: [&str; 5] = ["a", "b", "c", "TCP", "<é&>"];

const MAX_DEPTH: u32 = 12;

/// The schemas of a document, by name.
pub type Schemas = BTreeMap<String, Value>;

/// Returns the schemas of an OpenAPI v3 document.
#[must_use]
pub fn schemas(document: &Value) -> Schemas {
    let schemas = document
        .pointer("/components/schemas")
        .and_then(Value::as_object);
    let schemas = schemas.into_iter().flatten();
    schemas
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect()
}

/// The purpose of a generated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A stored object.
    Live,
    /// An apply configuration for a stored object.
    Applied {
        /// Permille of values that do not match their schema.
        mistakes: u64,
        /// Permille of atomic values that are set. Other atomic values are omitted.
        atomics: u64,
    },
}

/// Generates values for schemas.
#[derive(Debug)]
pub struct ValueGenerator<'a> {
    /// The source of random numbers.
    pub random: Random,
    /// The schemas to which `$ref` may refer.
    pub schemas: &'a Schemas,
    /// The purpose of the generated values.
    pub purpose: Purpose,
    /// Permille of optional fields that are set.
    pub density: u64,
}

impl ValueGenerator<'_> {
    /// Generates a value for a schema. Returns `None` if the purpose does not allow any value of this schema.
    pub fn value(&mut self, schema: &Value, depth: u32) -> Option<Value> {
        if let Some(name) = reference(schema) {
            let last = name.rsplit('.').next().unwrap_or_default();
            match last {
                "Quantity" => return Some(json!(self.one(&["1", "100m", "2Gi"]))),
                "IntOrString" => return Some(self.int_or_string()),
                "MicroTime" => return Some(json!("2024-01-01T00:00:00.000000Z")),
                "Time" => return Some(json!("2024-01-01T00:00:00Z")),
                "Duration" => return Some(json!("5s")),
                "FieldsV1" | "RawExtension" => {
                    return Some(self.one(&[json!({"f:a": {}}), json!({"x": {"y": 1}})]));
                }
                _ => {}
            }
            let schemas = self.schemas;
            let named = schemas.get(name)?;
            if self.avoids_atomic(schema) {
                return None;
            }
            return self.value(named, depth);
        }
        let mistakes = match self.purpose {
            Purpose::Live => 0,
            Purpose::Applied { mistakes, .. } => mistakes,
        };
        if self.random.permille(mistakes) {
            return Some(self.anything(0));
        }
        if depth > MAX_DEPTH || self.avoids_atomic(schema) {
            return None;
        }
        let value = match schema["type"].as_str() {
            Some("object") => self.object(schema, depth),
            Some("array") => return self.list(schema, depth),
            Some("integer") => json!(self.random.below(4)),
            Some("number") => self.one(&[json!(0.5), json!(2), json!(1e21)]),
            Some("boolean") => json!(self.random.permille(500)),
            Some("string") => match schema["format"].as_str() {
                Some("date-time") => json!("2024-01-01T00:00:00Z"),
                Some("byte") => json!("YQ=="),
                Some("int-or-string") => self.int_or_string(),
                _ => json!(self.one(&TEXTS)),
            },
            _ if schema["x-kubernetes-int-or-string"] == true => self.int_or_string(),
            _ => self.anything(0),
        };
        Some(value)
    }

    /// Generates an object with the properties of its schema, and sometimes with unknown properties.
    pub fn object(&mut self, schema: &Value, depth: u32) -> Value {
        let mut fields = Map::new();
        let depth = depth.saturating_add(1);
        let density = if depth > 6 {
            self.density / 2
        } else {
            self.density
        };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_key = matches!(
                name.as_str(),
                "name" | "uid" | "type" | "key" | "containerPort" | "port"
            );
            if !self.random.permille(if is_key { 900 } else { density }) {
                continue;
            }
            if let Some(value) = self.value(property, depth) {
                fields.insert(name.clone(), value);
            }
        }
        let values = &schema["additionalProperties"];
        if values.is_object() {
            for _ in 0..self.random.below(3) {
                let name = self.one(&TEXTS).to_owned();
                if let Some(value) = self.value(values, depth) {
                    fields.insert(name, value);
                }
            }
        } else if schema["x-kubernetes-preserve-unknown-fields"] == true || *values == true {
            for _ in 0..self.random.below(3) {
                let name = self.one(&TEXTS).to_owned();
                let value = self.anything(0);
                fields.insert(name, value);
            }
        }
        if let Purpose::Applied { mistakes, .. } = self.purpose
            && self.random.permille(mistakes)
        {
            fields.insert(format!("odd{}", self.random.below(2)), json!(1));
        }
        Value::Object(fields)
    }

    fn list(&mut self, schema: &Value, depth: u32) -> Option<Value> {
        let items = &schema["items"];
        let is_live = self.purpose == Purpose::Live;
        let mut elements: Vec<Value> = Vec::new();
        let is_keyed = matches!(
            schema["x-kubernetes-list-type"].as_str(),
            Some("map" | "set")
        );
        for _ in 0..self.random.below(5) {
            let Some(item) = self.value(items, depth.saturating_add(1)) else {
                continue;
            };
            let keys = schema["x-kubernetes-list-map-keys"].as_array();
            let key = |of: &Value| match keys {
                Some(keys) => keys
                    .iter()
                    .map(|key| of.get(key.as_str().unwrap_or_default()).cloned())
                    .collect(),
                None => vec![Some(of.clone())],
            };
            // Stored lists often contain duplicates. Applied lists rarely do.
            let allowed = if is_live { 200 } else { 15 };
            if is_keyed
                && elements.iter().any(|earlier| key(earlier) == key(&item))
                && !self.random.permille(allowed)
            {
                continue;
            }
            elements.push(item);
        }
        (!elements.is_empty() || self.random.permille(200)).then_some(Value::Array(elements))
    }

    /// Returns true if the schema is atomic and the generated object must omit this value.
    fn avoids_atomic(&mut self, schema: &Value) -> bool {
        let Purpose::Applied { atomics, .. } = self.purpose else {
            return false;
        };
        let named = reference(schema).and_then(|name| self.schemas.get(name));
        let resolved = named.unwrap_or(schema);
        let is_atomic = |of: &Value| {
            of["x-kubernetes-map-type"] == "atomic"
                || (of["type"] == "array"
                    && !matches!(of["x-kubernetes-list-type"].as_str(), Some("map" | "set")))
        };
        (is_atomic(schema) || is_atomic(resolved)) && !self.random.permille(atomics)
    }

    fn int_or_string(&mut self) -> Value {
        self.one(&[json!(1), json!("50%")])
    }

    fn anything(&mut self, depth: u32) -> Value {
        let below = if depth > 2 { 8 } else { 11 };
        match self.random.below(below) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(7),
            3 => json!(1.5),
            4 => json!(123_456_789.0),
            5 => json!(""),
            6 => json!([]),
            7 => json!("x\"\u{7}"),
            8 => {
                let n = self.random.below(3);
                (0..n)
                    .map(|_| self.anything(depth.saturating_add(1)))
                    .collect()
            }
            _ => {
                let n = self.random.below(3);
                let fields: Map<_, _> = (0..n)
                    .map(|n| (format!("k{n}"), self.anything(depth.saturating_add(1))))
                    .collect();
                Value::Object(fields)
            }
        }
    }

    fn one<T: Clone + Default>(&mut self, choices: &[T]) -> T {
        self.random.choose(choices).cloned().unwrap_or_default()
    }
}

fn reference(schema: &Value) -> Option<&str> {
    let wrapped = &schema["allOf"][0]["$ref"];
    let reference = schema["$ref"].as_str().or_else(|| wrapped.as_str())?;
    reference.rsplit('/').next()
}

/// Generates a CustomResourceDefinition of the kind `Box` in the version `v1`.
#[must_use]
pub fn definition(random: &mut Random) -> Value {
    let mut properties = Map::new();
    for n in 0..=random.below(3) {
        properties.insert(format!("p{n}"), schema(random, 0));
    }
    // The root is not an embedded resource, because this test does not cover rules about the metadata of such
    // resources.
    let mut root = json!({"type": "object", "properties": properties});
    if random.permille(100) {
        root["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Box", "plural": "boxes", "listKind": "BoxList", "singular": "box"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}}],
        },
    })
}

fn schema(random: &mut Random, depth: u32) -> Value {
    let inner = depth.saturating_add(1);
    let choices = if depth > 3 { 8 } else { 16 };
    match random.below(choices) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "string", "format": "date-time"}),
        2 => json!({"type": "integer", "format": "int64"}),
        3 => json!({"type": "number", "nullable": true}),
        4 => json!({"type": "boolean"}),
        5 => json!({"x-kubernetes-int-or-string": true}),
        6 => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        7 => json!({"x-kubernetes-preserve-unknown-fields": true}),
        8 => {
            let of = if random.permille(500) {
                "string"
            } else {
                "integer"
            };
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": of}})
        }
        9 => json!({"type": "array", "items": schema(random, inner)}),
        10 => {
            json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": schema(random, inner)})
        }
        11 | 12 => list_map(random, inner),
        13 => {
            let mut map = json!({"type": "object", "additionalProperties": schema(random, inner)});
            if random.permille(200) {
                map["x-kubernetes-map-type"] = json!("atomic");
            }
            map
        }
        14 => {
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true})
        }
        _ => {
            let mut properties = Map::new();
            for n in 0..random.below(4) {
                properties.insert(format!("f{n}"), schema(random, inner));
            }
            let mut object = json!({"type": "object", "properties": properties});
            match random.below(10) {
                0 => object["x-kubernetes-map-type"] = json!("atomic"),
                1 => object["x-kubernetes-map-type"] = json!("granular"),
                2 => object["x-kubernetes-preserve-unknown-fields"] = json!(true),
                _ => {}
            }
            object
        }
    }
}

fn list_map(random: &mut Random, depth: u32) -> Value {
    let mut properties = Map::new();
    let mut keys = vec!["name"];
    properties.insert("name".into(), json!({"type": "string"}));
    if random.permille(500) {
        keys.push("port");
        let mut port = json!({"type": "integer"});
        if random.permille(500) {
            port["default"] = json!(2);
        }
        properties.insert("port".into(), port);
    }
    if random.permille(300) {
        keys.insert(0, "type");
        properties.insert("type".into(), json!({"type": "string", "default": "TCP"}));
    }
    for n in 0..random.below(3) {
        properties.insert(format!("f{n}"), schema(random, depth));
    }
    json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        "items": {"type": "object", "properties": properties},
    })
}

/// Generates a patch of `object`. Most operations have paths that exist in the object.
#[must_use]
pub fn patch(random: &mut Random, object: &Value) -> Value {
    let mut paths = vec![String::new()];
    collect(object, String::new(), &mut paths);
    let n = random.below(5).saturating_add(1);
    (0..n).map(|_| operation(random, &paths)).collect()
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(field, format!("{path}/{name}"), paths);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                collect(item, format!("{path}/{n}"), paths);
            }
        }
        _ => {}
    }
    paths.push(path);
}

fn operation(random: &mut Random, paths: &[String]) -> Value {
    const OPS: [&str; 8] = [
        "add", "remove", "replace", "move", "copy", "test", "test", "add",
    ];
    let op = *random.choose(&OPS).unwrap_or(&"add");
    let mut operation = json!({"op": op, "path": path(random, paths)});
    if random.permille(10) {
        operation["op"] = json!(random.choose(&["Add", "", "te\u{1}st", "set"]));
    }
    if matches!(op, "move" | "copy") != random.permille(20) {
        operation["from"] = json!(path(random, paths));
    }
    if matches!(op, "add" | "replace" | "test") != random.permille(30) {
        let values = [
            json!(1),
            json!(1.5),
            json!(-3),
            json!("a"),
            json!("<\u{2028}\u{7f}\">"),
            json!(true),
            json!(null),
            json!([]),
            json!({}),
            json!([1, "b", {"c": null}]),
            json!({"a": {"b": [1]}}),
            json!(0.000_000_1),
            json!(123_456_789),
            json!({"x": null}),
            json!([null]),
            json!(2.0),
        ];
        operation["value"] = random.choose(&values).cloned().unwrap_or_default();
    }
    operation
}

fn path(random: &mut Random, paths: &[String]) -> String {
    const KEYS: [&str; 14] = [
        "-",
        "0",
        "1",
        "-1",
        "-2",
        "7",
        "+1",
        "x",
        "",
        "a~1b",
        "~0",
        "01",
        "99999999999999999999",
        "new",
    ];
    let existing = random.choose(paths).cloned().unwrap_or_default();
    let key = *random.choose(&KEYS).unwrap_or(&"");
    match random.below(20) {
        0..=10 => existing,
        11..=15 => format!("{existing}/{key}"),
        16 | 17 => match existing.rsplit_once('/') {
            Some((above, _)) => format!("{above}/{key}"),
            None => existing,
        },
        18 => format!("{existing}/{key}/{key}"),
        _ => random
            .choose(&["a", "", "a/b", "/\u{7}", "/\u{1}/x", "/\u{e0001}", "//"])
            .map_or_else(String::new, |text| (*text).to_owned()),
    }
}
