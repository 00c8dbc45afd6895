//! Compares the object after mutations with the expected object.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::decision::ObjectMutation;
use crate::json_patch::{self, Operation};
use crate::policy::admission::ReviewOutcome;
use crate::probe::api::Expect;

/// Deeper values are compared as a whole.
const MAX_DEPTH: usize = 256;

const MAX_DESCRIBED: usize = 3;

/// The maximum length of a value in a message, in characters.
const MAX_TEXT: usize = 120;

/// Describes how the object after the mutations differs from the expected object, if it differs. In this case, also
/// stores the expected object in `mutated`.
///
/// `completed` applies defaults to an object, as the API server does after each mutation.
pub(super) fn difference(
    expect: &Expect,
    outcome: &ReviewOutcome,
    mutated: &mut ObjectMutation,
    completed: &dyn Fn(Value) -> Value,
) -> Option<String> {
    if expect.object.is_none() && expect.patch.is_none() && expect.unchanged.is_none() {
        return None;
    }
    let Some(after) = &mutated.after else {
        let denial = outcome.denial.as_ref();
        return Some(match denial {
            Some(denial) => format!(
                "expected an object, but the request is denied: {}",
                denial.cause
            ),
            None => "expected an object, but the request has none".to_owned(),
        });
    };
    if let Some(expected) = &expect.object {
        let expected = overlaid(after, expected, 0);
        if expected != *after {
            let difference = describe(&expected, after);
            mutated.expected = Some(expected);
            return Some(difference);
        }
    }
    if let Some(patch) = &expect.patch {
        let patched = operations(patch).and_then(|operations| {
            json_patch::apply(&mutated.before, &operations).map_err(|error| error.to_string())
        });
        let expected = match patched {
            Ok(patched) => completed(patched),
            Err(why) => return Some(format!("the expected patch cannot be applied: {why}")),
        };
        if expected != *after {
            let difference = describe(&expected, after);
            mutated.expected = Some(expected);
            return Some(difference);
        }
    }
    let is_changed = *after != mutated.before;
    match expect.unchanged {
        Some(true) if is_changed => {
            let difference = format!(
                "expected the object to stay unchanged; {}",
                describe(&mutated.before, after)
            );
            mutated.expected = Some(mutated.before.clone());
            Some(difference)
        }
        Some(false) if !is_changed => {
            Some("expected the object to change, but it is unchanged".to_owned())
        }
        _ => None,
    }
}

/// Parses the operations of a JSON patch. Fails if an operation has no `op` or no `path`.
pub(in crate::probe) fn operations(patch: &[Value]) -> Result<Vec<Operation>, String> {
    let operation = |(n, step): (usize, &Value)| {
        let text = |field: &str| step.get(field).and_then(Value::as_str);
        let (Some(op), Some(path)) = (text("op"), text("path")) else {
            return Err(format!("operation {n} requires both `op` and `path`"));
        };
        let mut operation = Operation::new(op, path);
        if let Some(from) = text("from") {
            operation = operation.with_from(from);
        }
        if let Some(value) = step.get("value") {
            operation = operation.with_value(value.clone());
        }
        Ok(operation)
    };
    patch.iter().enumerate().map(operation).collect()
}

/// Applies the fields of `expected` to `actual`. A field that is null in `expected` is removed. A list gets the length
/// of the list in `expected`, and its items are merged by index.
fn overlaid(actual: &Value, expected: &Value, depth: usize) -> Value {
    let deeper = depth.saturating_add(1);
    match (actual, expected) {
        (_, expected) if depth > MAX_DEPTH => expected.clone(),
        (actual, Value::Object(fields)) => {
            let mut whole = actual.as_object().cloned().unwrap_or_default();
            for (name, field) in fields {
                if field.is_null() {
                    whole.remove(name);
                    continue;
                }
                let actual_field = whole.get(name).unwrap_or(&Value::Null);
                let field = overlaid(actual_field, field, deeper);
                whole.insert(name.clone(), field);
            }
            Value::Object(whole)
        }
        (Value::Array(actual), Value::Array(expected)) => {
            let items = expected.iter().enumerate().map(|(n, item)| {
                let actual_item = actual.get(n).unwrap_or(&Value::Null);
                overlaid(actual_item, item, deeper)
            });
            items.collect()
        }
        (_, expected) => expected.clone(),
    }
}

/// Describes the first differing fields of two objects.
fn describe(expected: &Value, actual: &Value) -> String {
    let mut differing = Vec::new();
    let mut n = 0;
    collect(expected, actual, "", 0, &mut differing, &mut n);
    let mut text = differing.join("; ");
    if n > differing.len() {
        let more = n.saturating_sub(differing.len());
        let _ = write!(text, "; and {more} more");
    }
    text
}

fn collect(
    expected: &Value,
    actual: &Value,
    path: &str,
    depth: usize,
    differing: &mut Vec<String>,
    n: &mut usize,
) {
    if expected == actual {
        return;
    }
    let deeper = depth.saturating_add(1);
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) if depth <= MAX_DEPTH => {
            let additional = actual.keys().filter(|name| !expected.contains_key(*name));
            for name in expected.keys().chain(additional) {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match (expected.get(name), actual.get(name)) {
                    (Some(expected), Some(actual)) => {
                        collect(expected, actual, &path, deeper, differing, n);
                    }
                    (expected, actual) => add(expected, actual, &path, differing, n),
                }
            }
        }
        (Value::Array(expected), Value::Array(actual))
            if depth <= MAX_DEPTH && expected.len() == actual.len() =>
        {
            for (nth, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                collect(
                    expected,
                    actual,
                    &format!("{path}[{nth}]"),
                    deeper,
                    differing,
                    n,
                );
            }
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() != actual.len() => {
            *n = n.saturating_add(1);
            if differing.len() < MAX_DESCRIBED {
                differing.push(format!(
                    "expected `{path}` to have {} items, got {}",
                    expected.len(),
                    actual.len()
                ));
            }
        }
        (expected, actual) => add(Some(expected), Some(actual), path, differing, n),
    }
}

fn add(
    expected: Option<&Value>,
    actual: Option<&Value>,
    path: &str,
    differing: &mut Vec<String>,
    n: &mut usize,
) {
    *n = n.saturating_add(1);
    if differing.len() >= MAX_DESCRIBED {
        return;
    }
    let text = |value: Option<&Value>| match value {
        None => "none".to_owned(),
        Some(value) => {
            let text = value.to_string();
            if text.chars().count() <= MAX_TEXT {
                text
            } else {
                let short: String = text.chars().take(MAX_TEXT).collect();
                format!("{short}…")
            }
        }
    };
    differing.push(match expected {
        None => format!("expected no `{path}`, got {}", text(actual)),
        Some(_) => format!(
            "expected `{path}` to be {}, got {}",
            text(expected),
            text(actual)
        ),
    });
}
