//! The object that a case expects of mutations, held against the one that they give.

use std::fmt::Write as _;

use serde_json::Value;

use super::Mutated;
use crate::json_patch::{self, Operation};
use crate::policy::admission::ReviewOutcome;
use crate::probe::api::Expect;

/// How deep objects are followed; what is deeper is compared as a whole.
const MAX_DEPTH: usize = 256;

/// The most differences that are named.
const MAX_NAMED: usize = 3;

/// The longest text of a value that is shown, in characters.
const MAX_TEXT: usize = 120;

/// How the object after mutations differs from what is expected of it; the expected one goes to `mutated`.
///
/// `completed` gives an object its defaults, as the API server does after each mutation.
pub(super) fn difference(
    expect: &Expect,
    outcome: &ReviewOutcome,
    mutated: &mut Mutated,
    completed: &dyn Fn(Value) -> Value,
) -> Option<String> {
    if expect.object.is_none() && expect.patch.is_none() && expect.unchanged.is_none() {
        return None;
    }
    let Some(after) = &mutated.after else {
        let denial = outcome.denial.as_ref();
        return Some(match denial {
            Some(denial) => format!(
                "expected an object, and the request is denied: {}",
                denial.cause
            ),
            None => "expected an object, and the request has none".to_owned(),
        });
    };
    if let Some(expected) = &expect.object {
        let expected = overlaid(after, expected, 0);
        if expected != *after {
            let difference = named(&expected, after);
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
            Err(why) => return Some(format!("the expected patch does not apply: {why}")),
        };
        if expected != *after {
            let difference = named(&expected, after);
            mutated.expected = Some(expected);
            return Some(difference);
        }
    }
    let is_changed = *after != mutated.before;
    match expect.unchanged {
        Some(true) if is_changed => {
            let difference = format!(
                "expected the object to stay as it is; {}",
                named(&mutated.before, after)
            );
            mutated.expected = Some(mutated.before.clone());
            Some(difference)
        }
        Some(false) if !is_changed => {
            Some("expected the object to change, and it stays as it is".to_owned())
        }
        _ => None,
    }
}

/// The operations of a patch as it is written.
///
/// # Errors
/// The operation that is none.
pub(in crate::probe) fn operations(patch: &[Value]) -> Result<Vec<Operation>, String> {
    let operation = |(n, step): (usize, &Value)| {
        let text = |field: &str| step.get(field).and_then(Value::as_str);
        let (Some(op), Some(path)) = (text("op"), text("path")) else {
            return Err(format!("operation {n} has no `op` and `path`"));
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

/// The object as it would be if it had the fields of `expected`: a field that is null there is none, a list has the
/// items of the expected one, each with its fields.
fn overlaid(found: &Value, expected: &Value, depth: usize) -> Value {
    let deeper = depth.saturating_add(1);
    match (found, expected) {
        (_, expected) if depth > MAX_DEPTH => expected.clone(),
        (found, Value::Object(fields)) => {
            let mut whole = found.as_object().cloned().unwrap_or_default();
            for (name, field) in fields {
                if field.is_null() {
                    whole.remove(name);
                    continue;
                }
                let of_found = whole.get(name).unwrap_or(&Value::Null);
                let field = overlaid(of_found, field, deeper);
                whole.insert(name.clone(), field);
            }
            Value::Object(whole)
        }
        (Value::Array(found), Value::Array(expected)) => {
            let items = expected.iter().enumerate().map(|(n, item)| {
                let of_found = found.get(n).unwrap_or(&Value::Null);
                overlaid(of_found, item, deeper)
            });
            items.collect()
        }
        (_, expected) => expected.clone(),
    }
}

/// Names the first fields in which two objects differ.
fn named(expected: &Value, found: &Value) -> String {
    let mut differing = Vec::new();
    let mut n = 0;
    collect(expected, found, "", 0, &mut differing, &mut n);
    let mut text = differing.join("; ");
    if n > differing.len() {
        let more = n.saturating_sub(differing.len());
        let _ = write!(text, "; and {more} more");
    }
    text
}

fn collect(
    expected: &Value,
    found: &Value,
    path: &str,
    depth: usize,
    differing: &mut Vec<String>,
    n: &mut usize,
) {
    if expected == found {
        return;
    }
    let deeper = depth.saturating_add(1);
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) if depth <= MAX_DEPTH => {
            let of_found = found.keys().filter(|name| !expected.contains_key(*name));
            for name in expected.keys().chain(of_found) {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match (expected.get(name), found.get(name)) {
                    (Some(expected), Some(found)) => {
                        collect(expected, found, &path, deeper, differing, n);
                    }
                    (expected, found) => tell(expected, found, &path, differing, n),
                }
            }
        }
        (Value::Array(expected), Value::Array(found))
            if depth <= MAX_DEPTH && expected.len() == found.len() =>
        {
            for (nth, (expected, found)) in expected.iter().zip(found).enumerate() {
                collect(
                    expected,
                    found,
                    &format!("{path}[{nth}]"),
                    deeper,
                    differing,
                    n,
                );
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() != found.len() => {
            *n = n.saturating_add(1);
            if differing.len() < MAX_NAMED {
                differing.push(format!(
                    "expected `{path}` to have {} items, got {}",
                    expected.len(),
                    found.len()
                ));
            }
        }
        (expected, found) => tell(Some(expected), Some(found), path, differing, n),
    }
}

fn tell(
    expected: Option<&Value>,
    found: Option<&Value>,
    path: &str,
    differing: &mut Vec<String>,
    n: &mut usize,
) {
    *n = n.saturating_add(1);
    if differing.len() >= MAX_NAMED {
        return;
    }
    let of = |value: Option<&Value>| match value {
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
        None => format!("expected no `{path}`, got {}", of(found)),
        Some(_) => format!(
            "expected `{path}` to be {}, got {}",
            of(expected),
            of(found)
        ),
    });
}
