//! Decodes mutated objects into their Go types like the API server. After a JSON patch, the input is JSON. After an
//! apply configuration, the input is an unstructured object.
//!
//! Differs: if several fields have errors, this module returns the error of the alphabetically first field. Upstream
//! returns the error of the first field in the JSON document or in the random order of a Go map.
//!
//! Source: apimachinery `pkg/runtime/serializer/json/{json,meta}.go` (`Decode`, `Interpret`),
//! `pkg/runtime/converter.go` (`fromUnstructured`), `pkg/runtime/scheme.go` (`unstructuredToTyped`); `sigs.k8s.io/json`
//! `internal/golang/encoding/json/decode.go` (`UnmarshalTypeError`).

use serde_json::{Map, Value};

use super::table::{Field, Go, Shape, Table, Type};
use crate::go_json;
use crate::library::quantity::Quantity;
use crate::schema::{GroupVersion, Gvk};
use cel::base64;
use cel::temporal::parse_timestamp;
use cel::value::go_quote;

/// The method of decoding an object into its Go type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// From JSON. A value of the wrong type is an error.
    Json,
    /// From an unstructured object. Numbers are converted to the type of the field like in a Go type conversion.
    Conversion,
}

/// Decodes an object into the Go type of its kind. Returns `None` if the table lacks this type.
///
/// # Errors
/// Returns the API server's error message if the object cannot be decoded.
#[must_use]
pub fn decode(gvk: &Gvk, object: &Value, decoding: Decoding) -> Option<Result<Value, String>> {
    let table = Table::get().ok()?;
    let root = table.root(gvk)?;
    Some(decoded(table, gvk, root, object, decoding))
}

fn decoded(
    table: &Table,
    gvk: &Gvk,
    root: usize,
    object: &Value,
    decoding: Decoding,
) -> Result<Value, String> {
    if decoding == Decoding::Json {
        registered(gvk, object)?;
    }
    let decoder = Decoder { table, decoding };
    let type_ = Go {
        type_: Type(""),
        text: &gvk.kind,
    };
    let mut stack = Vec::new();
    let Value::Object(fields) = object else {
        return Err(decoder.mismatch(object, &type_, None, &stack));
    };
    let mut decoder = Walk {
        decoder,
        saved: None,
    };
    let read = decoder.structure(fields, root, &gvk.kind, &mut stack)?;
    match decoder.saved {
        Some(error) => Err(error),
        None => Ok(Value::Object(read)),
    }
    .map_err(|error| match decoding {
        Decoding::Json => error,
        Decoding::Conversion => unconverted(gvk, &error),
    })
}

/// Source: apimachinery `pkg/runtime/scheme.go`, `unstructuredToTyped`.
fn unconverted(gvk: &Gvk, error: &str) -> String {
    let api_version = gvk.api_version();
    format!(
        "unable to convert unstructured object to {api_version}, Kind={}: {error}",
        gvk.kind
    )
}

/// Checks that `object` has the `apiVersion` and `kind` of `gvk`. Both fields may be missing.
fn registered(gvk: &Gvk, object: &Value) -> Result<(), String> {
    let mut texts = ["", ""];
    for (name, text) in ["apiVersion", "kind"].into_iter().zip(&mut texts) {
        match object.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(own)) => *text = own,
            Some(other) => {
                return Err(format!(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field \
                     .{name} of type string",
                    word(other)
                ));
            }
        }
    }
    let [api_version, kind] = texts;
    if api_version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    let own = gvk.api_version();
    let api_version = if api_version.is_empty() {
        &*own
    } else {
        api_version
    };
    let kind = if kind.is_empty() { &*gvk.kind } else { kind };
    if api_version == own && kind == &*gvk.kind {
        return Ok(());
    }
    let (group, version) = GroupVersion::split(api_version);
    if super::has(&Gvk::new(group, version, kind)) {
        return Err(format!(
            "failed to convert object: converting ({version}.{kind}) to ({}.{}): unknown conversion",
            gvk.group, gvk.kind
        ));
    }
    Err(format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go_quote(kind),
        go_quote(api_version)
    ))
}

/// Returns the name that Go's error messages use for the JSON type of a value.
fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the Go kind of a value in an unstructured object.
fn untyped(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[derive(Clone, Copy)]
struct Decoder<'a> {
    table: &'a Table,
    decoding: Decoding,
}

impl Decoder<'_> {
    /// Returns the error for a value of the wrong type. `stack` contains the fields on the path to the value, and
    /// `within` is the name of the struct that declares the last of these fields.
    fn mismatch(self, value: &Value, go: &Go<'_>, within: Option<&str>, stack: &[&str]) -> String {
        let actual = match (value, go.type_.shape()) {
            (Value::Number(number), Shape::Int | Shape::Float | Shape::IntOrString) => {
                format!("number {}", go_json::number_text(number))
            }
            _ => word(value).to_owned(),
        };
        let expected = match go.type_.shape() {
            Shape::IntOrString => "int32",
            Shape::Time | Shape::MicroTime | Shape::Duration => "string",
            _ => go.text,
        };
        self.cannot(&actual, expected, within, stack)
    }

    fn cannot(self, actual: &str, expected: &str, within: Option<&str>, stack: &[&str]) -> String {
        match within.filter(|_| self.decoding == Decoding::Json) {
            Some(within) => format!(
                "json: cannot unmarshal {actual} into Go struct field {within}.{} of type {expected}",
                stack.join(".")
            ),
            None => format!("json: cannot unmarshal {actual} into Go value of type {expected}"),
        }
    }
}

/// A traversal of an object. `saved` is the error for the first value of the wrong type: Go's JSON decoder continues
/// after this error and returns it at the end.
struct Walk<'a> {
    decoder: Decoder<'a>,
    saved: Option<String>,
}

impl<'a> Walk<'a> {
    fn structure(
        &mut self,
        given: &Map<String, Value>,
        n: usize,
        name: &str,
        stack: &mut Vec<&'a str>,
    ) -> Result<Map<String, Value>, String> {
        let mut read = given.clone();
        let mut fields: Vec<&'a Field> = self.decoder.table.fields(n).iter().collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        for field in fields {
            let Some(value) = given.get(&field.0) else {
                continue;
            };
            let depth = stack.len();
            let mut parts = field.3.split('|').rev();
            let text = parts.next().unwrap_or_default();
            let embedded: Vec<&str> = parts.collect();
            stack.extend(embedded.into_iter().rev());
            stack.push(&field.0);
            let go = Go {
                type_: Type(&field.1),
                text,
            };
            let value = self.value(value, go, name, stack)?;
            stack.truncate(depth);
            read.insert(field.0.clone(), value);
        }
        Ok(read)
    }

    /// Handles a value of the wrong type. For JSON, saves the first error. For a conversion, returns the error.
    fn wrong(
        &mut self,
        value: &Value,
        go: &Go<'_>,
        within: &str,
        stack: &[&str],
    ) -> Result<Value, String> {
        let is_json = self.decoder.decoding == Decoding::Json;
        let error = match go.type_.shape() {
            Shape::Struct(_) if !is_json => {
                format!("cannot restore struct from: {}", untyped(value))
            }
            Shape::Map(_) if !is_json => format!("cannot restore map from {}", untyped(value)),
            Shape::List(_) | Shape::Bytes if !is_json => {
                format!("cannot restore slice from {}", untyped(value))
            }
            Shape::Int | Shape::Float | Shape::Text | Shape::Bool if !is_json => {
                format!("cannot convert {} to {}", untyped(value), go.text)
            }
            _ => (self.decoder).mismatch(value, go, Some(within), stack),
        };
        if !is_json {
            return Err(error);
        }
        self.saved.get_or_insert(error);
        Ok(Value::Null)
    }

    fn value(
        &mut self,
        value: &Value,
        go: Go<'a>,
        within: &str,
        stack: &mut Vec<&'a str>,
    ) -> Result<Value, String> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        match (go.type_.shape(), value) {
            (Shape::Pointer(inner), _) => self.value(value, go.within(inner), within, stack),
            (Shape::Any, _)
            | (Shape::Text | Shape::IntOrString | Shape::Duration, Value::String(_))
            | (Shape::Bool, Value::Bool(_))
            | (Shape::Float, Value::Number(_)) => Ok(value.clone()),
            (Shape::Int, Value::Number(_)) => match self.whole(value, go.text) {
                Some(number) => Ok(number.into()),
                None => self.wrong(value, &go, within, stack),
            },
            (Shape::Struct(n), Value::Object(fields)) => Ok(Value::Object(self.structure(
                fields,
                n,
                go.name(),
                stack,
            )?)),
            (Shape::Map(inner), Value::Object(fields)) => {
                let mut read = Map::new();
                for (name, value) in fields {
                    let value = self.value(value, go.within(inner), within, stack)?;
                    read.insert(name.clone(), value);
                }
                Ok(Value::Object(read))
            }
            (Shape::List(inner), Value::Array(items)) => {
                let mut read = Vec::new();
                for item in items {
                    read.push(self.value(item, go.within(inner), within, stack)?);
                }
                Ok(Value::Array(read))
            }
            (Shape::Bytes, Value::String(text)) => match base64::decode(text) {
                Ok(_) => Ok(value.clone()),
                Err(at) => {
                    let error = format!("illegal base64 data at input byte {at}");
                    if self.decoder.decoding == Decoding::Conversion {
                        return Err(format!("error decoding from json: {error}"));
                    }
                    self.saved.get_or_insert(error);
                    Ok(Value::Null)
                }
            },
            (Shape::IntOrString, Value::Number(number)) => {
                let whole = go_json::number_text(number).parse::<i32>();
                let wrong = |_| (self.decoder).mismatch(value, &go, Some(within), stack);
                whole.map(Value::from).map_err(wrong)
            }
            (Shape::Quantity, _) => quantity(value),
            (Shape::Time | Shape::MicroTime, Value::String(text)) => {
                let is_micro = matches!(go.type_.shape(), Shape::MicroTime);
                let layout = if is_micro {
                    "2006-01-02T15:04:05.000000Z07:00"
                } else {
                    "2006-01-02T15:04:05Z07:00"
                };
                if parse_timestamp(text).is_ok() && (!is_micro || has_microseconds(text)) {
                    Ok(value.clone())
                } else {
                    Err(format!("parsing time {} as {layout:?}", go_quote(text)))
                }
            }
            (
                Shape::IntOrString | Shape::Time | Shape::MicroTime | Shape::Duration,
                Value::Array(_) | Value::Object(_) | Value::Bool(_) | Value::Number(_),
            ) => Err((self.decoder).mismatch(value, &go, Some(within), stack)),
            _ => self.wrong(value, &go, within, stack),
        }
    }

    /// Converts `value` to an integer of the type `go_type` like Go. Returns `None` if Go cannot store the value.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Go's conversions truncate numbers"
    )]
    fn whole(&self, value: &Value, go_type: &str) -> Option<i64> {
        if self.decoder.decoding == Decoding::Json {
            let Value::Number(number) = value else {
                return None;
            };
            let whole: i64 = go_json::number_text(number).parse().ok()?;
            let fits = go_type != "int32" || i32::try_from(whole).is_ok();
            return fits.then_some(whole);
        }
        let whole = match (value.as_i64(), value.as_f64()) {
            (Some(whole), _) => whole,
            // On amd64, Go converts a double outside of the integer range to the minimum integer.
            (None, Some(number)) if number.fract().abs() < f64::MIN_POSITIVE => {
                let is_in_range =
                    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
                if is_in_range { number as i64 } else { i64::MIN }
            }
            _ => return None,
        };
        Some(if go_type == "int32" {
            i64::from(whole as i32)
        } else {
            whole
        })
    }
}

/// Returns true if the seconds of a valid time have exactly six decimal places.
///
/// Source: apimachinery `pkg/apis/meta/v1/micro_time.go`, `MicroTime.UnmarshalJSON`; Go `time/format.go`, `parse` with
/// `stdFracSecond0`.
fn has_microseconds(time: &str) -> bool {
    let decimals = time.split_once(['.', ',']).map_or("", |(_, rest)| rest);
    decimals.bytes().take_while(u8::is_ascii_digit).count() == 6
}

/// Source: apimachinery `pkg/api/resource/quantity.go`, `Quantity.UnmarshalJSON`.
fn quantity(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => go_json::number_text(number),
        other => go_json::to_text(other),
    };
    match Quantity::parse(&text) {
        Ok(_) => Ok(value.clone()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn micro_time_has_six_decimal_places() {
        let gvk = Gvk::new("coordination.k8s.io", "v1", "Lease");
        for (time, is_valid) in [
            ("2024-01-02T03:04:05.123456Z", true),
            ("2024-01-02T04:04:05,000000+01:00", true),
            ("2024-01-02T03:04:05Z", false),
            ("2024-01-02T03:04:05.123Z", false),
            ("2024-01-02T03:04:05.1234567Z", false),
            ("today", false),
        ] {
            let lease = json!({"spec": {"renewTime": time}});
            let decoded = decode(&gvk, &lease, Decoding::Json).unwrap();
            let expected = if is_valid {
                Ok(lease)
            } else {
                Err(format!(
                    "parsing time \"{time}\" as \"2006-01-02T15:04:05.000000Z07:00\""
                ))
            };
            assert_eq!(decoded, expected, "{time}");
        }
    }
}
