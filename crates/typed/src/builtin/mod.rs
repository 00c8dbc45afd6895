//! Built-in objects as an API server decodes them: through their Go types.
//!
//! Decoding drops fields that the type does not have, and adds those that the type always writes: an empty
//! `status: {}`, a `null` list. Defaults are not set, as decoding itself sets none. The types come from the
//! OpenAPI documents of the API server, which tell a struct (`default: {}`) from a pointer to one, and from
//! tables of what the documents do not tell. Names of fields are case-sensitive, as they are to an API server.
//!
//! Source: Go `encoding/json`; apimachinery `pkg/runtime/converter.go`, `structToUnstructured`;
//! kube-openapi's definitions of `k8s.io/api`.

mod tables;

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use cel::base64;
use cel::temporal::parse_timestamp;
use kubernetes::library::quantity::Quantity;
use kubernetes::schema::Gvk;

/// How deep objects may be nested: deeper than any built-in type that an object can hold.
const MAX_DEPTH: u32 = 200;

/// The types of built-in objects.
#[derive(Debug, Default)]
pub struct TypedObjects {
    /// By the names of schemas.
    types: HashMap<String, Schema>,
    /// The names of the schemas of kinds.
    kinds: HashMap<Gvk, String>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    components: Components,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Components {
    schemas: BTreeMap<String, Schema>,
}

/// What is read of a schema.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Schema {
    #[serde(rename = "type")]
    type_: Option<String>,
    format: Option<String>,
    properties: BTreeMap<String, Schema>,
    required: Vec<String>,
    items: Option<Box<Schema>>,
    #[serde(rename = "additionalProperties")]
    additional_properties: Option<Box<Schema>>,
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "allOf")]
    all_of: Vec<Schema>,
    default: Option<Json>,
    #[serde(rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
struct Kind {
    group: String,
    version: String,
    #[serde(rename = "kind")]
    name: String,
}

impl Schema {
    /// The name of the schema that this one stands for.
    fn referenced(&self) -> Option<&str> {
        let only = match &self.all_of[..] {
            [only] => only.reference.as_deref(),
            _ => None,
        };
        let reference = self.reference.as_deref().or(only)?;
        reference.rsplit('/').next()
    }
}

/// The schemas of built-in types have this before their names.
const BUILT_IN: &str = "io.k8s.api.";

impl TypedObjects {
    /// Takes the types out of an OpenAPI v3 document of an API server.
    ///
    /// # Errors
    ///
    /// If it is not one.
    pub fn add_document(&mut self, bytes: &[u8]) -> Result<(), serde_json::Error> {
        let document: Document = serde_json::from_slice(bytes)?;
        for (name, schema) in document.components.schemas {
            if name.starts_with(BUILT_IN) {
                for kind in &schema.kinds {
                    let gvk = Gvk::new(&*kind.group, &*kind.version, &*kind.name);
                    self.kinds.insert(gvk, name.clone());
                }
            }
            self.types.insert(name, schema);
        }
        Ok(())
    }

    /// `object` as its type has it, or `None` for one of another than a built-in kind.
    ///
    /// # Errors
    ///
    /// If the type does not have what the object has: a text for a number, an object for a list.
    #[must_use]
    pub fn decode(&self, gvk: &Gvk, object: &Json) -> Option<Result<Json, String>> {
        let name = self.kinds.get(gvk)?;
        Some(self.named(name, object, 0))
    }

    /// A value of the type `name`.
    fn named(&self, name: &str, value: &Json, depth: u32) -> Result<Json, String> {
        if depth > MAX_DEPTH {
            return Err("nested too deep".to_owned());
        }
        match name
            .strip_prefix("io.k8s.apimachinery.pkg.")
            .unwrap_or(name)
        {
            "apis.meta.v1.Time" => return time(value),
            "apis.meta.v1.MicroTime" => return micro_time(value),
            "util.intstr.IntOrString" => return number_or_text(value),
            "api.resource.Quantity" => return quantity(value),
            "apis.meta.v1.FieldsV1" | "runtime.RawExtension" => return Ok(value.clone()),
            _ => {}
        }
        match self.types.get(name) {
            Some(schema)
                if schema.type_.as_deref() == Some("object")
                    && schema.additional_properties.is_none() =>
            {
                self.structure(TypeName::new(name), schema, value, depth)
            }
            Some(schema) => self.plain(schema, value, depth),
            None => Ok(value.clone()),
        }
    }

    fn structure(
        &self,
        of: TypeName<'_>,
        schema: &Schema,
        value: &Json,
        depth: u32,
    ) -> Result<Json, String> {
        let given = value
            .as_object()
            .ok_or_else(|| mismatch(value, "an object"))?;
        let mut fields = Map::new();
        for (name, property) in &schema.properties {
            let given = given.get(name).filter(|value| !value.is_null());
            let is_in = |table: &[&str]| of.is_in(table, name);
            let is_struct = property.referenced().is_some()
                && property.default.as_ref().is_some_and(Json::is_object);
            let is_always_written = is_struct
                || if schema.required.contains(name) {
                    !is_in(&tables::MAY_BE_LEFT_OUT)
                } else {
                    is_in(&tables::ALWAYS_WRITTEN)
                };
            let value = match given {
                None if is_struct => {
                    let empty = Json::Object(Map::new());
                    self.value(property, &empty, depth + 1)?
                }
                None if is_in(&tables::EMPTY_IS_WRITTEN) => special_zero(property),
                None if !is_always_written => continue,
                None if is_in(&tables::NULL_IS_WRITTEN) => Json::Null,
                None => zero(property),
                Some(given) => {
                    let value = self.value(property, given, depth + 1)?;
                    if !is_always_written && is_empty(of, name, property, &value) {
                        continue;
                    }
                    value
                }
            };
            fields.insert(name.clone(), value);
        }
        Ok(Json::Object(fields))
    }

    fn value(&self, schema: &Schema, value: &Json, depth: u32) -> Result<Json, String> {
        match schema.referenced() {
            Some(name) => self.named(name, value, depth),
            None => self.plain(schema, value, depth),
        }
    }

    fn plain(&self, schema: &Schema, value: &Json, depth: u32) -> Result<Json, String> {
        if depth > MAX_DEPTH {
            return Err("nested too deep".to_owned());
        }
        let one = |schema: &Schema, value: &Json| match value {
            Json::Null => Ok(match schema.referenced() {
                Some(name) if !is_special(name) => {
                    self.named(name, &Json::Object(Map::new()), depth + 1)?
                }
                Some(_) => special_zero(schema),
                None => zero(schema),
            }),
            value => self.value(schema, value, depth + 1),
        };
        let (expected, is_of) = match schema.type_.as_deref() {
            Some("array") => {
                let items = value.as_array().ok_or_else(|| mismatch(value, "a list"))?;
                let Some(schema) = &schema.items else {
                    return Ok(value.clone());
                };
                let items = items.iter().map(|item| one(schema, item));
                return Ok(Json::Array(items.collect::<Result<_, _>>()?));
            }
            Some("object") => {
                let entries = value
                    .as_object()
                    .ok_or_else(|| mismatch(value, "an object"))?;
                let Some(schema) = &schema.additional_properties else {
                    return Ok(value.clone());
                };
                let entries = entries.iter();
                let entries = entries.map(|(key, value)| Ok((key.clone(), one(schema, value)?)));
                return Ok(Json::Object(entries.collect::<Result<_, String>>()?));
            }
            Some("string") if schema.format.as_deref() == Some("byte") => return bytes(value),
            Some("string") => ("a text", value.is_string()),
            Some("integer") if schema.format.as_deref() == Some("int32") => {
                let is_of = value.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
                ("a whole number of 32 bits", is_of)
            }
            Some("integer") => ("a whole number", value.is_i64()),
            Some("number") => {
                let number = value.as_f64().ok_or_else(|| mismatch(value, "a number"))?;
                return Ok(number.into());
            }
            Some("boolean") => ("true or false", value.is_boolean()),
            _ => return Ok(value.clone()),
        };
        if is_of {
            Ok(value.clone())
        } else {
            Err(mismatch(value, expected))
        }
    }
}

fn mismatch(value: &Json, expected: &str) -> String {
    let found = match value {
        Json::Null => "null",
        Json::Bool(_) => "true or false",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    };
    format!("found {found} where the type has {expected}")
}

/// What Go writes for a field without a value that is always written.
fn zero(schema: &Schema) -> Json {
    match schema.type_.as_deref() {
        Some("string") if schema.format.as_deref() != Some("byte") => "".into(),
        Some("integer" | "number") => 0.into(),
        Some("boolean") => false.into(),
        _ => Json::Null,
    }
}

/// What Go writes for a time, a quantity, a raw object, or a number or text without a value.
fn special_zero(schema: &Schema) -> Json {
    let name = schema.referenced().unwrap_or_default();
    if name.ends_with(".Quantity") {
        "0".into()
    } else if name.ends_with(".IntOrString") {
        0.into()
    } else {
        Json::Null
    }
}

/// Whether values of the type are read and written by code of its own.
fn is_special(name: &str) -> bool {
    [
        ".Time",
        ".MicroTime",
        ".Quantity",
        ".IntOrString",
        ".FieldsV1",
        ".RawExtension",
    ]
    .iter()
    .any(|special| name.ends_with(special))
}

/// The name of a type, as the tables have it.
#[derive(Clone, Copy)]
struct TypeName<'a> {
    /// `core.v1`.
    package: &'a str,
    name: &'a str,
}

impl<'a> TypeName<'a> {
    fn new(full: &'a str) -> Self {
        let (path, name) = full.rsplit_once('.').unwrap_or(("", full));
        let mut dots = path.rmatch_indices('.').skip(1);
        let package = dots.next().and_then(|(at, _)| path.get(at + 1..));
        Self {
            package: package.unwrap_or(path),
            name,
        }
    }

    /// Whether `table` has `field` of this type.
    fn is_in(self, table: &[&str], field: &str) -> bool {
        let Self { package, name } = self;
        let has = |row: &str| table.binary_search(&row).is_ok();
        has(&format!("{name}.{field}")) || has(&format!("{package}.{name}.{field}"))
    }
}

/// Whether Go leaves out the value of a field that may be left out.
fn is_empty(of: TypeName<'_>, field: &str, schema: &Schema, value: &Json) -> bool {
    if schema.referenced().is_some() {
        // A struct behind a pointer is kept, as is a time that is zero, but for one.
        return value.is_null() && field == "creationTimestamp";
    }
    match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(entries) => entries.is_empty(),
        Json::String(text) => text.is_empty() && !of.is_in(&tables::EMPTY_IS_KEPT, field),
        Json::Bool(value) => !value && of.is_in(&tables::ZERO_IS_LEFT_OUT, field),
        Json::Number(number) => {
            number.as_f64() == Some(0.0) && of.is_in(&tables::ZERO_IS_LEFT_OUT, field)
        }
    }
}

/// A time as the API server prints it: in UTC, to the second. The zero time is null.
///
/// Source: apimachinery `pkg/apis/meta/v1/time.go`, `Time.UnmarshalJSON`, `Time.ToUnstructured`.
fn time(value: &Json) -> Result<Json, String> {
    let text = value.as_str().ok_or_else(|| mismatch(value, "a time"))?;
    let seconds = seconds_of(text)?;
    if seconds == ZERO_TIME {
        return Ok(Json::Null);
    }
    let time = Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
    Ok(time.to_string().into())
}

/// Go's zero time, the start of year 1, in seconds of Unix.
const ZERO_TIME: i64 = -62_135_596_800;

/// The seconds of Unix of a time by RFC 3339, of which a fraction is cut off.
fn seconds_of(text: &str) -> Result<i64, String> {
    parse_timestamp(text)
        .map(|time| time.seconds)
        .map_err(|_| format!("cannot read the time {text:?}"))
}

/// A time with six digits after the second, no more and no fewer.
///
/// Source: apimachinery `pkg/apis/meta/v1/micro_time.go`, `RFC3339Micro`.
fn micro_time(value: &Json) -> Result<Json, String> {
    let text = value.as_str().ok_or_else(|| mismatch(value, "a time"))?;
    let seconds = seconds_of(text)?;
    let wrong = || format!("cannot read the time {text:?} to the microsecond");
    let (_, rest) = text.split_once('.').ok_or_else(wrong)?;
    let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = rest.get(..n_digits).ok_or_else(wrong)?;
    if n_digits != 6 {
        return Err(wrong());
    }
    let time = Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
    let text = time.to_string();
    let whole = text.strip_suffix('Z').unwrap_or(&text);
    Ok(format!("{whole}.{fraction}Z").into())
}

/// Source: apimachinery `pkg/util/intstr/intstr.go`, `IntOrString.UnmarshalJSON`.
fn number_or_text(value: &Json) -> Result<Json, String> {
    let is_number = value.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
    if is_number || value.is_string() {
        return Ok(value.clone());
    }
    Err(mismatch(value, "a text or a whole number of 32 bits"))
}

/// A quantity in its canonical form.
///
/// Source: apimachinery `pkg/api/resource/quantity.go`, `Quantity.UnmarshalJSON`, `Quantity.ToUnstructured`.
fn quantity(value: &Json) -> Result<Json, String> {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        other => return Err(mismatch(other, "a quantity")),
    };
    let quantity = Quantity::parse(text.trim()).map_err(|error| error.to_string())?;
    Ok(quantity.to_string().into())
}

/// Bytes, as base64; a list of numbers is read too.
///
/// Source: Go `encoding/json/decode.go`, `decodeState.array`, `decodeState.literalStore`.
fn bytes(value: &Json) -> Result<Json, String> {
    if let Json::Array(items) = value {
        let byte = |item: &Json| match item {
            Json::Null => Ok(0),
            item => {
                let byte = item.as_u64().and_then(|number| u8::try_from(number).ok());
                byte.ok_or_else(|| mismatch(item, "a byte"))
            }
        };
        let read = items.iter().map(byte).collect::<Result<Vec<u8>, _>>()?;
        return Ok(base64::encode(&read).into());
    }
    let text = value.as_str().ok_or_else(|| mismatch(value, "bytes"))?;
    match base64::decode(text) {
        Ok(read) => Ok(base64::encode(&read).into()),
        Err(at) => Err(format!("illegal base64 data at input byte {at}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The types of a document with the kind `apps/v1 Thing`.
    fn types() -> TypedObjects {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let structure = |name: &str| json!({"allOf": [reference(name)], "default": {}});
        let texts = json!({"type": "array", "items": {"type": "string", "default": ""}});
        let thing = json!({
            "type": "object",
            "required": ["rules"],
            "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Thing"}],
            "properties": {
                "kind": {"type": "string"},
                "spec": structure("io.k8s.api.apps.v1.DeploymentSpec"),
                "status": structure("io.k8s.api.apps.v1.ThingStatus"),
                "rules": texts,
                "made": reference("io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
            },
        });
        let spec = json!({
            "type": "object",
            "required": ["selector", "name"],
            "properties": {
                "replicas": {"type": "integer"},
                "paused": {"type": "boolean"},
                "minReadySeconds": {"type": "integer"},
                "name": {"type": "string", "default": ""},
                "note": {"type": "string"},
                "selector": reference("io.k8s.api.apps.v1.ThingStatus"),
                "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
                "args": texts,
                "cpu": reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
                "part": reference("io.k8s.api.apps.v1.ThingStatus"),
            },
        });
        let status = json!({"type": "object", "properties": {"phase": {"type": "string"}}});
        let schemas = json!({
            "io.k8s.api.apps.v1.Thing": thing,
            "io.k8s.api.apps.v1.DeploymentSpec": spec,
            "io.k8s.api.apps.v1.ThingStatus": status,
        });
        let mut types = TypedObjects::default();
        let document = json!({"components": {"schemas": schemas}}).to_string();
        types.add_document(document.as_bytes()).unwrap();
        types
    }

    fn decode(object: &Json) -> Result<Json, String> {
        types()
            .decode(&Gvk::new("apps", "v1", "Thing"), object)
            .unwrap()
    }

    #[test]
    fn empty_structs_and_required_fields_are_added() {
        assert_eq!(
            decode(&json!({"kind": "Thing"})),
            Ok(json!({
                "kind": "Thing",
                "spec": {"selector": null, "name": ""},
                "status": {},
                "rules": null,
            }))
        );
    }

    #[test]
    fn unknown_fields_and_empty_values_are_left_out() {
        let spec = json!({
            "replicas": 0, "paused": false, "minReadySeconds": 0, "note": "", "labels": {}, "args": [], "zz": 1,
            "part": {}, "selector": {"phase": "x", "zz": 1}, "name": null,
        });
        let decoded = decode(&json!({"spec": spec, "rules": [], "zz": {}})).unwrap();
        assert_eq!(
            decoded,
            json!({
                // `replicas` is a pointer, `paused` and `minReadySeconds` are not.
                "spec": {"replicas": 0, "part": {}, "selector": {"phase": "x"}, "name": ""},
                "status": {},
                "rules": [],
            })
        );
    }

    #[test]
    fn values_are_written_as_the_api_server_writes_them() {
        let object = json!({
            "made": "2024-01-01T02:00:00.5+02:00",
            "spec": {"selector": {}, "name": "a", "cpu": 2, "labels": {"a": null}, "args": [null, "b"]},
            "rules": ["x"],
        });
        let decoded = decode(&object).unwrap();
        assert_eq!(decoded["made"], "2024-01-01T00:00:00Z");
        assert_eq!(
            decoded["spec"],
            json!({"selector": {}, "name": "a", "cpu": "2", "labels": {"a": ""}, "args": ["", "b"]})
        );
    }

    #[test]
    fn what_the_type_does_not_have_is_an_error() {
        for spec in [
            json!({"replicas": "1"}),
            json!({"replicas": 1.5}),
            json!({"paused": 1}),
            json!({"labels": []}),
            json!({"args": {"a": "b"}}),
            json!({"name": {}}),
            json!([]),
        ] {
            assert!(decode(&json!({"spec": spec})).is_err(), "{spec}");
        }
        let other = Gvk::new("apps", "v2", "Thing");
        assert!(types().decode(&other, &json!({})).is_none());
    }

    #[test]
    fn times_are_read_as_go_reads_them() {
        let read = |text: &str| time(&json!(text));
        assert_eq!(
            read("2024-01-01T01:00:00.9+01:00"),
            Ok(json!("2024-01-01T00:00:00Z"))
        );
        assert_eq!(read("0001-01-01T00:00:00Z"), Ok(Json::Null));
        for wrong in ["", "x", "2024-01-01", "2024-01-01t00:00:00z"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let micro = |text: &str| micro_time(&json!(text));
        assert_eq!(
            micro("2024-01-01T01:00:00.120000+01:00"),
            Ok(json!("2024-01-01T00:00:00.120000Z"))
        );
        for wrong in ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.123Z"] {
            assert!(micro(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn quantities_are_canonical_and_bytes_are_checked() {
        for (given, expected) in [("1000m", "1"), ("0.5Gi", "512Mi"), ("12e6", "12e6")] {
            assert_eq!(quantity(&json!(given)), Ok(json!(expected)));
        }
        assert!(quantity(&json!("")).is_err());
        assert!(quantity(&json!("x")).is_err());
        assert_eq!(bytes(&json!("aGk=\n")), Ok(json!("aGk=")));
        assert_eq!(bytes(&json!([104, 105])), Ok(json!("aGk=")));
        assert_eq!(bytes(&json!([104, null, 105, 1])), Ok(json!("aABpAQ==")));
        assert_eq!(bytes(&json!([])), Ok(json!("")));
        for wrong in [json!("aGk"), json!([256]), json!({}), json!(1)] {
            assert!(bytes(&wrong).is_err(), "{wrong}");
        }
        for wrong in [json!(2_147_483_648_i64), json!(1.5), json!(true)] {
            assert!(number_or_text(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_tables_know_what_the_documents_do_not() {
        let budget = TypeName::new("io.k8s.api.policy.v1.PodDisruptionBudgetStatus");
        assert!(budget.is_in(&tables::ALWAYS_WRITTEN, "currentHealthy"));
        let reference = TypeName::new("io.k8s.api.networking.v1.ParentReference");
        assert!(reference.is_in(&tables::MAY_BE_LEFT_OUT, "name"));
        // Types of one name that do not agree.
        let new = TypeName::new("io.k8s.api.resource.v1.ResourceSliceSpec");
        let old = TypeName::new("io.k8s.api.resource.v1beta1.ResourceSliceSpec");
        assert!(new.is_in(&tables::EMPTY_IS_KEPT, "nodeName"));
        assert!(!old.is_in(&tables::EMPTY_IS_KEPT, "nodeName"));
    }

    #[test]
    fn the_tables_are_sorted() {
        for table in [
            &tables::ZERO_IS_LEFT_OUT[..],
            &tables::EMPTY_IS_KEPT,
            &tables::EMPTY_IS_WRITTEN,
            &tables::ALWAYS_WRITTEN,
            &tables::MAY_BE_LEFT_OUT,
            &tables::NULL_IS_WRITTEN,
        ] {
            assert!(table.is_sorted());
        }
    }
}
