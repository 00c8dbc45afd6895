//! Converts the CEL values of mutations to the Go values that the API server merges or writes as JSON.
//!
//! Source: k8s.io/apiserver `pkg/cel/mutation/dynamic/objects.go` (`ObjectVal.ConvertToNative`, `convertField`),
//! `pkg/admission/plugin/policy/mutating/patch/json_patch.go` (`evaluatePatchExpression`); cel-go `common/types`
//! (`Value`, `ConvertToNative`); protobuf-go `types/known/structpb` (`NewStruct`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::ValueError;
use cel::value::{EvalBudget, EvalError, List, Map, Value, go_quote};
use kubernetes::go_json;
use kubernetes::json_patch::Operation;
use kubernetes::library::mutation::{JsonPatchValue, ObjectValue};
use kubernetes::merge::{Applied, NonJson};
use kubernetes::version::Behavior;
use serde_json::{Map as JsonMap, Number, Value as Json};

/// Maximum nesting of a converted value.
const MAX_DEPTH: u32 = 300;

/// The greatest integer that cel-go converts to a JSON number. Greater integers become strings.
///
/// Source: cel-go `common/types/int.go`, `maxIntJSON`.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Memory charge in bytes for each value in the result of a mutation. It covers the field name, the merged value and
/// the JSON.
const NODE: usize = 160;

/// Charges the memory of the Go value of `value`. A value that occurs several times is charged each time, because the
/// conversion copies it.
///
/// # Errors
///
/// Returns an error if `budget` is exceeded.
pub(super) fn allocate(value: &Value, budget: &EvalBudget) -> Result<(), EvalError> {
    allocate_nested(value, budget, 0)
}

fn allocate_nested(value: &Value, budget: &EvalBudget, depth: u32) -> Result<(), EvalError> {
    let len = match value {
        Value::String(text) => text.len(),
        // Bytes are formatted as numbers, with up to four characters per byte, or as base64, which is shorter.
        Value::Bytes(bytes) => bytes.len().saturating_mul(4),
        _ => 0,
    };
    budget.allocate(len.saturating_mul(2).saturating_add(NODE))?;
    if depth > MAX_DEPTH {
        return Ok(());
    }
    let deeper = depth.saturating_add(1);
    match value {
        Value::List(list) => {
            for element in list {
                allocate_nested(&element, budget, deeper)?;
            }
        }
        Value::Map(map) if map.is_plain() => {
            budget.reserve(map.len().saturating_mul(2 * size_of::<Value>()))?;
            for (key, value) in map.entries()? {
                budget.allocate(key.as_str().map_or(0, str::len))?;
                allocate_nested(&value, budget, deeper)?;
            }
        }
        Value::Optional(optional) => {
            if let Some(held) = optional.get() {
                allocate_nested(held, budget, deeper)?;
            }
        }
        Value::Opaque(_) => {
            let object = value.downcast::<ObjectValue>();
            for (name, value) in object.map_or(&[][..], ObjectValue::fields) {
                budget.allocate(name.len())?;
                allocate_nested(value, budget, deeper)?;
            }
            let patch = value.downcast::<JsonPatchValue>();
            if let Some(value) = patch.and_then(|patch| patch.value.as_ref()) {
                allocate_nested(value, budget, deeper)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Converts the value of an `ApplyConfiguration` expression for the merge.
///
/// # Errors
/// Returns the API server's error if the value is not an object that can be merged.
pub(super) fn applied(value: &Value) -> Result<Applied, ValueError> {
    let Some(object) = value.downcast::<ObjectValue>() else {
        let name = value.type_().declared_string();
        return Err(
            format!("unsupported return type from ApplyConfiguration expression: {name}").into(),
        );
    };
    placed(object)?;
    fields(object, 0).ok_or_else(|| {
        let message = "invalid return type: *dynamic.ObjectVal";
        message.to_owned().into()
    })
}

/// Checks that the type name of each nested object matches the path of its field.
///
/// # Errors
/// Returns the API server's error, with the type of the first object that does not match.
fn placed(object: &ObjectValue) -> Result<(), ValueError> {
    let misplaced = object.misplaced();
    let Some(first) = misplaced.first() else {
        return Ok(());
    };
    let texts: Vec<String> = misplaced.iter().map(ToString::to_string).collect();
    Err(ValueError {
        message: format!("type mismatch: {}", texts.join("\n")),
        misplaced: Some(Arc::clone(&first.found)),
    })
}

/// Converts the fields of an object for the merge. `None` if a nested map has a key that is not a string.
fn fields(object: &ObjectValue, depth: u32) -> Option<Applied> {
    let mut converted = BTreeMap::new();
    for (name, value) in object.fields() {
        converted.insert(name.to_string(), field(value, depth.saturating_add(1))?);
    }
    Some(Applied::Map(converted))
}

fn field(value: &Value, depth: u32) -> Option<Applied> {
    match value {
        Value::List(list) if is_literal_list(list) => Some(Applied::List(
            list.iter().map(|element| native(&element, depth)).collect(),
        )),
        Value::Map(map) if is_literal_map(map) => {
            let mut entries = BTreeMap::new();
            for (key, value) in map.entries().unwrap_or_default() {
                entries.insert(key.as_str()?.to_owned(), native(&value, depth));
            }
            Some(Applied::Map(entries))
        }
        other => Some(native(other, depth)),
    }
}

/// Returns true if Go represents the list as `[]ref.Val`. The merge does not treat such a value as a list.
fn is_literal_list(list: &List) -> bool {
    !list.is_joined() && !list.is_json() && list.source().is_none()
}

/// Returns true if Go represents the map as `map[ref.Val]ref.Val`. The merge does not treat such a value as a map.
fn is_literal_map(map: &Map) -> bool {
    map.source().is_none() && map.as_fields().is_none()
}

/// Converts a CEL value to its Go value for the merge.
///
/// Source: cel-go `common/types`, `Value` of each type.
fn native(value: &Value, depth: u32) -> Applied {
    let foreign = |go_type: &str, plain: String, syntax: String| {
        Applied::NonJson(NonJson {
            go_type: go_type.to_owned(),
            plain,
            syntax,
        })
    };
    let whole = |go_type: &str| {
        let text = value.to_go_string();
        foreign(go_type, text.clone(), text)
    };
    if depth > MAX_DEPTH {
        return whole("interface {}");
    }
    let deeper = depth.saturating_add(1);
    match value {
        Value::Null => foreign("structpb.NullValue", "NULL_VALUE".into(), "0".into()),
        Value::Bool(value) => Applied::Bool(*value),
        Value::Int(value) => Applied::Int(*value),
        Value::Uint(value) => foreign("uint64", value.to_string(), format!("{value:#x}")),
        Value::Double(value) => Applied::Double(*value),
        Value::String(text) => Applied::Text(text.to_string()),
        Value::Type(of) => Applied::Text(of.type_name().clone()),
        Value::Optional(optional) => match optional.get() {
            Some(held) => native(held, deeper),
            None => Applied::Null,
        },
        Value::List(list) if is_literal_list(list) => {
            let items: Vec<_> = list.iter().map(|item| item.to_go_string()).collect();
            let syntax = format!("[]ref.Val{{{}}}", items.join(", "));
            foreign("[]ref.Val", format!("[{}]", items.join(" ")), syntax)
        }
        Value::List(list) if list.is_json() => Applied::List(
            list.iter()
                .map(|item| applied_json(&item, deeper))
                .collect(),
        ),
        Value::List(list) => Applied::List(list.iter().map(|item| native(&item, deeper)).collect()),
        Value::Map(map) if is_literal_map(map) => {
            let entries = map.entries().unwrap_or_default();
            let text = |between: &str, quote: bool| -> Vec<String> {
                entries
                    .iter()
                    .map(|(key, value)| match (quote, key) {
                        (true, Value::String(key)) => {
                            format!("{}{between}{}", go_quote(key), value.to_go_string())
                        }
                        _ => format!("{}{between}{}", key.to_go_string(), value.to_go_string()),
                    })
                    .collect()
            };
            foreign(
                "map[ref.Val]ref.Val",
                format!("map[{}]", text(":", false).join(" ")),
                format!("map[ref.Val]ref.Val{{{}}}", text(":", true).join(", ")),
            )
        }
        Value::Map(_) => applied_json(value, deeper),
        Value::Bytes(_) => whole("[]uint8"),
        Value::Duration(_) => whole("time.Duration"),
        Value::Timestamp(_) => whole("time.Time"),
        Value::Opaque(opaque) => match value.downcast::<ObjectValue>() {
            Some(object) => fields(object, deeper).unwrap_or_else(|| whole("*types.Err")),
            None => whole(opaque.native_type()),
        },
        Value::Error(_) => whole("*errors.errorString"),
    }
}

/// Converts a value that originates from an object of the request.
fn applied_json(value: &Value, depth: u32) -> Applied {
    let deeper = depth.saturating_add(1);
    match value {
        Value::Null => Applied::Null,
        Value::List(list) if depth <= MAX_DEPTH => Applied::List(
            list.iter()
                .map(|item| applied_json(&item, deeper))
                .collect(),
        ),
        Value::Map(map) if depth <= MAX_DEPTH => {
            let entries = map.entries().unwrap_or_default().into_iter();
            let entries = entries.filter_map(|(key, value)| {
                Some((key.as_str()?.to_owned(), applied_json(&value, deeper)))
            });
            Applied::Map(entries.collect())
        }
        other => native(other, deeper),
    }
}

#[derive(Debug)]
pub(super) enum PatchFailure {
    /// The API server's error.
    Failed(ValueError),
    /// The API server panics, because the patch has an object within a list or map.
    Panic,
}

impl From<ValueError> for PatchFailure {
    fn from(error: ValueError) -> Self {
        Self::Failed(error)
    }
}

impl From<String> for PatchFailure {
    fn from(error: String) -> Self {
        Self::Failed(error.into())
    }
}

/// Returns the operations of the patch that a `JSONPatch` expression returns in an API server with `behavior`.
///
/// # Errors
/// Returns the API server's error, or [`PatchFailure::Panic`] if the API server panics.
pub(super) fn patch(value: &Value, behavior: Behavior) -> Result<Vec<Operation>, PatchFailure> {
    let Value::List(list) = value else {
        let error = "type mismatch: JSONPatchType.expression should evaluate to array";
        return Err(error.to_owned().into());
    };
    let mut operations = Vec::new();
    for element in list {
        let Some(step) = element.downcast::<JsonPatchValue>() else {
            return Err(format!(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {}",
                element.go_type()
            )
            .into());
        };
        let mut operation = Operation::new(&step.op, &step.path);
        if !step.from.is_empty() {
            operation = operation.with_from(&step.from);
        }
        if let Some(value) = &step.value {
            if let Some(object) = value.downcast::<ObjectValue>() {
                placed(object)?;
            }
            let json = json(value, behavior, 0).map_err(|failure| match failure {
                PatchFailure::Failed(reason) => PatchFailure::from(format!(
                    "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {}",
                    reason.message
                )),
                PatchFailure::Panic => PatchFailure::Panic,
            })?;
            operation = operation.with_value(json);
        }
        operations.push(operation);
    }
    Ok(operations)
}

/// The Go type of JSON values in patches.
const JSON_VALUE: &str = "*structpb.Value";

/// Converts a value to JSON as the API server does.
///
/// Source: cel-go `common/types`, `ConvertToNative` of each type to `structpb.Value`.
fn json(value: &Value, behavior: Behavior, depth: u32) -> Result<Json, PatchFailure> {
    if depth > MAX_DEPTH {
        return Err("it nests too deeply".to_owned().into());
    }
    let deeper = depth.saturating_add(1);
    let unsupported = || {
        format!(
            "type conversion error from '{}' to '*structpb.Value'",
            value.type_().declared_string()
        )
    };
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) if value.unsigned_abs() <= MAX_SAFE => (*value).into(),
        Value::Int(value) => value.to_string().into(),
        Value::Uint(value) if *value <= MAX_SAFE => (*value).into(),
        Value::Uint(value) => value.to_string().into(),
        Value::Double(value) => number(*value).ok_or_else(|| {
            format!("json: error calling MarshalJSON for type *structpb.Value: {value}")
        })?,
        Value::String(text) => (**text).into(),
        Value::Type(_) => {
            return Err("type conversion not supported for 'type'".to_owned().into());
        }
        Value::Optional(optional) => match optional.get() {
            Some(held) => json(held, behavior, deeper)?,
            None => return Err("optional.none() dereference".to_owned().into()),
        },
        Value::List(list) => {
            let error = list
                .source()
                .and_then(|source| source.native_error(JSON_VALUE));
            if let Some(error) = error {
                return Err(error.to_string().into());
            }
            let items = list.iter().map(|item| json(&item, behavior, deeper));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let error = map
                .source()
                .and_then(|source| source.native_error(JSON_VALUE));
            if let Some(error) = error {
                return Err(error.to_string().into());
            }
            let mut fields = JsonMap::new();
            for (key, value) in map.entries().map_err(|error| error.to_string())? {
                let key = match &key {
                    Value::String(text) => text.to_string(),
                    other => {
                        let key = other.type_().declared_string();
                        let error: String = match other {
                            Value::Bool(_) => "type conversion error from bool to 'string'".into(),
                            _ => format!("unsupported type conversion from '{key}' to string"),
                        };
                        return Err(error.into());
                    }
                };
                fields.insert(key, json(&value, behavior, deeper)?);
            }
            Json::Object(fields)
        }
        Value::Opaque(_) => match value.downcast::<ObjectValue>() {
            Some(_) if depth > 0 && !behavior.patches_convert_nested_objects => {
                return Err(PatchFailure::Panic);
            }
            Some(object) => json_from_applied(&fields(object, deeper).ok_or_else(unsupported)?)?,
            None => return Err(unsupported().into()),
        },
        Value::Bytes(bytes) => cel::base64::encode(bytes).into(),
        Value::Duration(_) | Value::Timestamp(_) => {
            let text = value
                .convert_to(&cel::types::Type::String)
                .map_err(|error| error.to_string())?;
            text.as_str().unwrap_or_default().into()
        }
        Value::Error(_) => return Err(unsupported().into()),
    })
}

/// Converts a double to JSON as Go decodes it: a whole number becomes an integer. `None` for NaN and infinities.
fn number(value: f64) -> Option<Json> {
    Number::from_f64(value).map(|number| Json::Number(go_json::reread_number(&number)))
}

/// Converts an object in a patch to JSON.
///
/// Source: protobuf-go `types/known/structpb`, `NewValue`.
fn json_from_applied(value: &Applied) -> Result<Json, String> {
    Ok(match value {
        Applied::Null => Json::Null,
        Applied::Bool(value) => Json::Bool(*value),
        #[expect(clippy::cast_precision_loss, reason = "all numbers are doubles there")]
        Applied::Int(value) => number(*value as f64).unwrap_or_default(),
        Applied::Double(value) => number(*value).unwrap_or_default(),
        Applied::Text(text) => text.clone().into(),
        Applied::List(items) => Json::Array(
            items
                .iter()
                .map(json_from_applied)
                .collect::<Result<_, _>>()?,
        ),
        Applied::Map(fields) => {
            let fields = fields
                .iter()
                .map(|(name, field)| Ok::<_, String>((name.clone(), json_from_applied(field)?)));
            Json::Object(fields.collect::<Result<_, _>>()?)
        }
        Applied::NonJson(foreign) => {
            return Err(format!("proto: invalid type: {}", foreign.go_type));
        }
    })
}

#[cfg(test)]
mod tests;
