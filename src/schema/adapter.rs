//! Values with a schema: JSON whose parts get their types when they are read.
//!
//! Takes a [`ValueSchema`] and a plain value, gives a value whose fields and elements are of the types that
//! the schema says: timestamps, durations, byte sequences, lists that are maps or sets. Rules of
//! CustomResourceDefinitions see their objects so; policies see plain values.
//!
//! Source: apiserver `pkg/cel/common/valuesunstructured.go`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use super::escape::{escape, unescape};
use super::extensions::INT_OR_STRING_FORMAT;
use super::go_time;
use crate::cel::types::Type;
use crate::cel::value::{EvalError, List, ListSource, Map, MapSource, Opaque, Value};

/// What of a schema matters for values.
#[derive(Debug, Default)]
pub struct ValueSchema {
    type_: String,
    format: String,
    nullable: bool,
    int_or_string: bool,
    preserve_unknown_fields: bool,
    properties: Option<HashMap<String, Arc<ValueSchema>>>,
    additional: Option<Arc<ValueSchema>>,
    items: Option<Arc<ValueSchema>>,
    list_type: String,
    list_map_keys: Vec<String>,
}

/// How deep a schema may nest; what is below has no type.
const MAX_DEPTH: u32 = 100;

impl ValueSchema {
    /// Reads a schema.
    #[must_use]
    pub fn new(schema: &Json) -> Arc<Self> {
        Arc::new(Self::read(schema, 0))
    }

    fn read(schema: &Json, depth: u32) -> Self {
        if depth > MAX_DEPTH {
            return Self::default();
        }
        let text = |key: &str| {
            schema
                .get(key)
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let flag = |key: &str| schema.get(key).and_then(Json::as_bool).unwrap_or(false);
        let part = |of: &Json| Arc::new(Self::read(of, depth.saturating_add(1)));
        let type_ = match schema.get("type") {
            Some(Json::Array(types)) => types.first().and_then(Json::as_str).unwrap_or_default(),
            Some(Json::String(type_)) => type_,
            _ => "",
        };
        let format = text("format");
        let properties = schema
            .get("properties")
            .and_then(Json::as_object)
            .map(|properties| {
                properties
                    .iter()
                    .map(|(name, property)| (name.clone(), part(property)))
                    .collect()
            });
        let mut read = Self {
            type_: type_.to_owned(),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string") || format == INT_OR_STRING_FORMAT,
            format,
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            properties,
            additional: schema
                .get("additionalProperties")
                .filter(|of| of.is_object())
                .map(part),
            items: schema.get("items").filter(|of| of.is_object()).map(part),
            list_type: text("x-kubernetes-list-type"),
            list_map_keys: schema
                .get("x-kubernetes-list-map-keys")
                .and_then(Json::as_array)
                .map(|keys| {
                    keys.iter()
                        .filter_map(Json::as_str)
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default(),
        };
        if flag("x-kubernetes-embedded-resource") {
            read.add_type_and_object_meta();
        }
        read
    }

    fn of_type(type_: &str) -> Arc<Self> {
        Arc::new(Self {
            type_: type_.into(),
            ..Self::default()
        })
    }

    /// Source: apiserver `pkg/cel/common/schemas.go`, `WithTypeAndObjectMeta`.
    fn add_type_and_object_meta(&mut self) {
        let is_string =
            |of: &Self, name: &str| of.property(name).is_some_and(|p| p.type_ == "string");
        let meta = self.property("metadata").cloned();
        let has_meta = meta.is_some_and(|meta| {
            meta.type_ == "object" && is_string(&meta, "name") && is_string(&meta, "generateName")
        });
        if is_string(self, "kind") && is_string(self, "apiVersion") && has_meta {
            return;
        }
        let string = || Self::of_type("string");
        let meta = Self {
            type_: "object".into(),
            properties: Some(
                ["name", "generateName"]
                    .map(|name| (name.to_owned(), string()))
                    .into(),
            ),
            ..Self::default()
        };
        let properties = self.properties.get_or_insert_default();
        properties.insert("kind".into(), string());
        properties.insert("apiVersion".into(), string());
        properties.insert("metadata".into(), Arc::new(meta));
    }

    fn property(&self, name: &str) -> Option<&Arc<Self>> {
        self.properties.as_ref()?.get(name)
    }

    fn is_object(&self) -> bool {
        self.properties.is_some()
    }

    /// The schema of the field or entry `name`.
    fn part(&self, name: &str) -> Option<&Arc<Self>> {
        if self.is_object() {
            self.property(name)
        } else {
            self.additional.as_ref()
        }
    }
}

fn invalid(message: impl Into<String>) -> Value {
    Value::Error(EvalError::new(message))
}

/// The name of the Go type of a plain value.
fn go_type(raw: &Value) -> &'static str {
    match raw {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Double(_) => "float64",
        Value::String(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
        Value::Opaque(_) => raw
            .downcast::<Foreign>()
            .map_or_else(|| raw.go_type(), |foreign| foreign.go_type),
        other => other.go_type(),
    }
}

/// A value that no JSON has, among the raw elements of a list: what the language's value wraps.
#[derive(Debug)]
struct Foreign {
    value: Value,
    go_type: &'static str,
}

impl Opaque for Foreign {
    fn type_(&self) -> Type {
        self.value.type_()
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        match other.downcast::<Self>() {
            // Pointers are as unlike as the values that they were made for.
            Some(other) => Ok(self.go_type == other.go_type
                && !self.go_type.starts_with('*')
                && self.value.equals(&other.value)?),
            None => Ok(false),
        }
    }

    fn native_type(&self) -> &'static str {
        self.go_type
    }
}

/// The plain value `raw` as one of the type of `schema`.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `UnstructuredToVal`.
#[must_use]
pub fn typed(raw: &Value, schema: &Arc<ValueSchema>) -> Value {
    let got = |expected: &str| {
        invalid(format!(
            "invalid data, expected {expected}, got {}",
            go_type(raw)
        ))
    };
    if matches!(raw, Value::Null) {
        return if schema.nullable {
            Value::Null
        } else {
            invalid("invalid data, got null for schema with nullable=false")
        };
    }
    if schema.int_or_string {
        return match raw {
            Value::String(_) | Value::Int(_) => raw.clone(),
            _ => invalid(
                "invalid data, expected XIntOrString value to be either a string or integer",
            ),
        };
    }
    match &*schema.type_ {
        "object" => match raw {
            Value::Map(map) => Value::Map(Map::from_source(Arc::new(TypedMap {
                raw: map.clone(),
                schema: Arc::clone(schema),
            }))),
            _ => invalid("invalid data, expected a map for the provided schema with type=object"),
        },
        "array" => typed_list(raw, schema),
        "string" => match raw {
            Value::String(text) => typed_string(text, schema),
            _ => got("string"),
        },
        "number" => match raw {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a whole number read as a double"
            )]
            Value::Int(value) => Value::Double(*value as f64),
            Value::Double(_) => raw.clone(),
            _ => got("float"),
        },
        "integer" => match raw {
            Value::Int(_) => raw.clone(),
            _ => got("int"),
        },
        "boolean" => match raw {
            Value::Bool(_) => raw.clone(),
            _ => got("bool"),
        },
        _ if schema.preserve_unknown_fields => Value::opaque(Preserved(raw.clone())),
        other => invalid(format!(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {other}"
        )),
    }
}

fn typed_list(raw: &Value, schema: &Arc<ValueSchema>) -> Value {
    let Value::List(list) = raw else {
        return invalid("invalid data, expected an array for the provided schema with type=array");
    };
    let Some(items) = &schema.items else {
        return invalid("invalid array type, expected Items with a non-empty Schema");
    };
    let kind = match &*schema.list_type {
        "" | "atomic" => ListKind::Atomic,
        "map" => ListKind::Map,
        "set" => ListKind::Set,
        other => {
            return invalid(format!(
                "invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got {other}"
            ));
        }
    };
    TypedList::value(list.iter().collect(), items, kind, schema)
}

fn typed_string(text: &Arc<str>, schema: &ValueSchema) -> Value {
    let read = match &*schema.format {
        "duration" => go_time::duration(text)
            .map(Value::Duration)
            .map_err(|error| format!("Invalid duration {text}: {error}")),
        "date" => go_time::date(text)
            .map(Value::Timestamp)
            .map_err(|error| format!("Invalid date formatted string {text}: {error}")),
        "date-time" => go_time::date_time(text)
            .map(Value::Timestamp)
            .map_err(|error| format!("Invalid date-time formatted string {text}: {error}")),
        "byte" => decode_base64(text).map(Value::bytes).map_err(|at| {
            format!("Invalid byte formatted string {text}: illegal base64 data at input byte {at}")
        }),
        _ => Ok(Value::String(Arc::clone(text))),
    };
    read.unwrap_or_else(invalid)
}

/// Base64 with padding; line breaks count for nothing.
///
/// # Errors
///
/// The place of the first byte that is wrong, as Go tells it.
///
/// Source: Go `encoding/base64/base64.go`, `Encoding.decodeQuantum`.
fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    let mut symbols = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'))
        .peekable();
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    while symbols.peek().is_some() {
        let mut bits = 0_u32;
        let mut n_digits = 0_usize;
        while n_digits < 4 {
            let Some((at, symbol)) = symbols.next() else {
                return Err(text.len().saturating_sub(n_digits));
            };
            if let Some(digit) = base64_digit(symbol) {
                bits = bits << 6 | digit;
                n_digits += 1;
                continue;
            }
            if symbol != b'=' || n_digits < 2 {
                return Err(at);
            }
            if n_digits == 2 {
                match symbols.next() {
                    Some((_, b'=')) => {}
                    Some((at, _)) => return Err(at),
                    None => return Err(text.len()),
                }
            }
            if let Some((at, _)) = symbols.next() {
                return Err(at);
            }
            break;
        }
        if n_digits == 0 {
            break;
        }
        bits <<= 6 * (4 - n_digits);
        decoded.extend(bits.to_be_bytes().iter().skip(1).take(n_digits - 1));
    }
    Ok(decoded)
}

fn base64_digit(symbol: u8) -> Option<u32> {
    Some(u32::from(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// What `value` wraps in Go, which is what joined lists keep, and what keys and elements of sets are.
///
/// Source: cel-go `common/types/ref/reference.go`, `Val.Value`, of each type.
fn unwrapped(value: &Value) -> Value {
    let foreign = |go_type| {
        Value::opaque(Foreign {
            value: value.clone(),
            go_type,
        })
    };
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::String(_) => value.clone(),
        Value::Null => foreign("structpb.NullValue"),
        Value::Uint(_) => foreign("uint64"),
        Value::Bytes(_) => foreign("[]uint8"),
        Value::Duration(_) => foreign("time.Duration"),
        Value::Timestamp(_) => foreign("time.Time"),
        Value::Type(of) => Value::from(of.type_name()),
        Value::Optional(optional) => optional.get().map_or(Value::Null, unwrapped),
        Value::List(list) if list.is_json() => value.clone(),
        Value::List(list) if list.is_joined() => {
            let elements = list.iter().map(|element| unwrapped(&element)).collect();
            Value::List(List::of_json(elements))
        }
        Value::List(list) => list
            .source()
            .and_then(|source| source.native())
            .unwrap_or_else(|| foreign("[]ref.Val")),
        Value::Map(map) if map.is_json() => value.clone(),
        Value::Map(map) => map
            .source()
            .and_then(|source| source.native())
            .unwrap_or_else(|| foreign("map[ref.Val]ref.Val")),
        Value::Opaque(opaque) => match value.downcast::<Preserved>() {
            Some(preserved) => preserved.0.clone(),
            None => foreign(opaque.native_type()),
        },
        Value::Error(_) => foreign("*errors.errorString"),
    }
}

/// Go's panic for what can be no key of a map.
fn hashable(raw: &Value) -> Result<(), EvalError> {
    let go_type = go_type(raw);
    let is_hashable = !go_type.starts_with("[]")
        && !go_type.starts_with("map[")
        && !matches!(go_type, "semver.Version");
    if is_hashable {
        return Ok(());
    }
    Err(EvalError::internal(&format!(
        "runtime error: hash of unhashable type {go_type}"
    )))
}

/// An object or a map with a schema.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unstructuredMap`.
#[derive(Debug)]
struct TypedMap {
    raw: Map,
    schema: Arc<ValueSchema>,
}

impl TypedMap {
    fn keys_of(&self) -> Vec<Value> {
        self.raw.keys().unwrap_or_default()
    }
}

impl MapSource for TypedMap {
    fn find(&self, key: &Value) -> Result<Option<Value>, EvalError> {
        let Value::String(name) = key else {
            return Err(EvalError::no_such_overload());
        };
        let is_object = self.schema.is_object();
        let name = if is_object {
            match unescape(name) {
                Some(name) => name,
                None => return Ok(None),
            }
        } else {
            name.as_ref().into()
        };
        let Some(raw) = self.raw.find(&Value::from(&*name))? else {
            return Ok(None);
        };
        // A null field is one that is not there.
        if is_object && matches!(raw, Value::Null) {
            return Ok(None);
        }
        match self.schema.part(&name).map(|schema| typed(&raw, schema)) {
            Some(Value::Error(error)) => Err(error),
            found => Ok(found),
        }
    }

    fn len(&self) -> usize {
        self.raw.len()
    }

    fn keys(&self) -> Result<Vec<Value>, EvalError> {
        let is_object = self.schema.is_object();
        let all = self.keys_of();
        let n_all = all.len();
        let mut keys: Vec<Value> = all
            .into_iter()
            .filter(|key| {
                key.as_str()
                    .is_some_and(|name| self.schema.part(name).is_some())
            })
            .map(|key| match key.as_str().and_then(escape) {
                Some(escaped) if is_object => Value::from(&*escaped),
                _ => key,
            })
            .collect();
        // Upstream has room for all keys, and leaves nil where there is no schema.
        keys.resize(n_all, Value::Null);
        Ok(keys)
    }

    fn native(&self) -> Option<Value> {
        Some(Value::Map(self.raw.clone()))
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        Some(self.is_equal(other))
    }
}

impl TypedMap {
    fn is_equal(&self, other: &Value) -> Result<bool, EvalError> {
        let Value::Map(other_map) = other else {
            return Err(EvalError::no_such_overload());
        };
        if self.len() != other_map.len() {
            return Ok(false);
        }
        for key in self.keys_of() {
            let is_known = key
                .as_str()
                .is_some_and(|name| self.schema.part(name).is_some());
            if is_known {
                match (self.find(&key)?, other_map.find(&key)?) {
                    (None, None) => {}
                    (Some(own), Some(others)) => {
                        if !part_equals(&own, &others)? {
                            return Ok(false);
                        }
                    }
                    (None, Some(_)) | (Some(_), None) => return Ok(false),
                }
            } else {
                let Some(Value::Map(others)) =
                    other_map.source().and_then(|source| source.native())
                else {
                    return Err(EvalError::no_such_overload());
                };
                if let (Some(own), Some(other)) = (self.raw.find(&key)?, others.find(&key)?)
                    && !own.equals(&other)?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Whether a part equals another by its own rule, which knows no null.
fn part_equals(own: &Value, other: &Value) -> Result<bool, EvalError> {
    let by_rule = match own {
        Value::List(list) => list.source().and_then(|source| source.equals(other)),
        Value::Map(map) => map.source().and_then(|source| source.equals(other)),
        _ => None,
    };
    by_rule.unwrap_or_else(|| own.equals(other))
}

/// Keys of so many fields are arrays of Go.
const MAX_HASHED_KEYS: usize = 3;

/// What equality and joining of a list go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListKind {
    Atomic,
    Map,
    Set,
}

/// A list with a schema.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unstructuredList`, `unstructuredMapList`,
/// `unstructuredSetList`.
#[derive(Debug)]
struct TypedList {
    raw: Vec<Value>,
    items: Arc<ValueSchema>,
    kind: ListKind,
    /// The schema of the list, for the keys of its elements.
    schema: Arc<ValueSchema>,
    /// What was joined to a list that is a set, which is taken to be in it from then on.
    added: Mutex<Vec<Value>>,
}

impl TypedList {
    fn value(
        raw: Vec<Value>,
        items: &Arc<ValueSchema>,
        kind: ListKind,
        schema: &Arc<ValueSchema>,
    ) -> Value {
        Value::List(List::from_source(Arc::new(Self {
            raw,
            items: Arc::clone(items),
            kind,
            schema: Arc::clone(schema),
            added: Mutex::default(),
        })))
    }

    /// What was joined to this set before.
    fn added(&self) -> MutexGuard<'_, Vec<Value>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The values of the key fields of an element of a list that is a map, as a text; `None` for what is no
    /// object, whose key is like no other.
    ///
    /// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unstructuredMapList.toMapKey`.
    fn key_of(&self, raw: &Value) -> Result<Option<String>, EvalError> {
        let Value::Map(map) = raw else {
            return Ok(None);
        };
        let names = &self.schema.list_map_keys;
        let mut text = String::new();
        for name in names {
            let escaped = escape(name).unwrap_or(name.into());
            let part = match map.field(&escaped) {
                None | Some(Value::Null) => "none".to_owned(),
                Some(value) => {
                    // More than three keys are printed, and what is printed can be hashed.
                    if names.len() <= MAX_HASHED_KEYS {
                        hashable(value)?;
                    }
                    format!("{} {}", value.go_type(), value.to_go_string())
                }
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "{}:{part},", part.len());
        }
        Ok(Some(text))
    }

    /// The elements of a list that is a map, by their keys; of several of one key the last.
    fn places(&self) -> Result<HashMap<String, usize>, EvalError> {
        let mut places = HashMap::new();
        for (at, own) in self.raw.iter().enumerate() {
            if let Some(key) = self.key_of(own)? {
                places.insert(key, at);
            }
        }
        Ok(places)
    }

    fn is_equal(&self, other: &Value) -> Result<bool, EvalError> {
        let Value::List(other) = other else {
            return Err(EvalError::no_such_overload());
        };
        if self.raw.len() != other.len() {
            return Ok(false);
        }
        match self.kind {
            ListKind::Atomic => {
                for (own, other) in self.raw.iter().zip(other) {
                    match typed(own, &self.items) {
                        Value::Error(error) => return Err(error),
                        own if !part_equals(&own, &other)? => return Ok(false),
                        _ => {}
                    }
                }
            }
            ListKind::Map => {
                let places = self.places()?;
                for other in other {
                    let at = self
                        .key_of(&unwrapped(&other))?
                        .and_then(|key| places.get(&key));
                    let Some(own) = at.and_then(|at| self.raw.get(*at)) else {
                        return Ok(false);
                    };
                    match typed(own, &self.items) {
                        Value::Error(error) => return Err(error),
                        own if !part_equals(&own, &other)? => return Ok(false),
                        _ => {}
                    }
                }
            }
            ListKind::Set => {
                self.raw.iter().try_for_each(hashable)?;
                for other in other {
                    let other = unwrapped(&other);
                    hashable(&other)?;
                    if !contains_same(&self.raw, &other) && !contains_same(&self.added(), &other) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn joined(&self, other: &Value) -> Result<Value, EvalError> {
        let Value::List(other) = other else {
            return Err(EvalError::no_such_overload());
        };
        let mut raw = self.raw.clone();
        let others = other.iter().map(|element| unwrapped(&element));
        match self.kind {
            ListKind::Atomic => raw.extend(others),
            ListKind::Set => {
                raw.iter().try_for_each(hashable)?;
                for element in others {
                    hashable(&element)?;
                    let mut added = self.added();
                    if !contains_same(&self.raw, &element) && !contains_same(&added, &element) {
                        added.push(element.clone());
                        raw.push(element);
                    }
                }
            }
            ListKind::Map => {
                let places = self.places()?;
                for element in others {
                    let at = self.key_of(&element)?.and_then(|key| places.get(&key));
                    match at.and_then(|at| raw.get_mut(*at)) {
                        Some(slot) => *slot = element,
                        None => raw.push(element),
                    }
                }
            }
        }
        Ok(Self::value(raw, &self.items, self.kind, &self.schema))
    }
}

/// Whether a scalar is among `elements`, as a key of a Go map is.
fn contains_same(elements: &[Value], element: &Value) -> bool {
    elements
        .iter()
        .any(|own| go_type(own) == go_type(element) && own.equals(element).unwrap_or(false))
}

impl ListSource for TypedList {
    fn len(&self) -> usize {
        self.raw.len()
    }

    fn get(&self, index: usize) -> Option<Value> {
        self.raw.get(index).map(|raw| typed(raw, &self.items))
    }

    fn native(&self) -> Option<Value> {
        Some(Value::List(List::of_json(self.raw.clone())))
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        Some(self.is_equal(other))
    }

    fn contains(&self, element: &Value) -> Option<Result<bool, EvalError>> {
        let mut failed = None;
        for raw in &self.raw {
            let equal = match typed(raw, &self.items) {
                Value::Error(error) => Err(error),
                own => part_equals(&own, element),
            };
            match equal {
                Ok(true) => return Some(Ok(true)),
                Ok(false) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Some(failed.map_or(Ok(false), Err))
    }

    fn add(&self, other: &Value) -> Option<Result<Value, EvalError>> {
        Some(self.joined(other))
    }
}

/// A value of unknown type, which can only be compared.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unknownPreserved`.
#[derive(Debug)]
struct Preserved(Value);

impl Opaque for Preserved {
    fn type_(&self) -> Type {
        Type::opaque("unknown", Vec::new())
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        let other = unwrapped(other);
        Ok(go_type(&self.0) == go_type(&other) && self.0.equals(&other)?)
    }

    fn convert_to(&self, to: &Type) -> Result<Value, EvalError> {
        Err(EvalError::new(format!(
            "type conversion to '{}' not supported for values preserved by \
             x-kubernetes-preserve-unknown-fields",
            to.type_name()
        )))
    }

    fn own_type(&self) -> Result<Type, EvalError> {
        self.convert_to(&Type::Type(None)).map(|of| of.type_())
    }

    fn native_type(&self) -> &'static str {
        go_type(&self.0)
    }

    fn go_type(&self) -> &'static str {
        "*common.unknownPreserved"
    }

    fn through_native(&self) -> Result<(), EvalError> {
        Ok(())
    }
}
