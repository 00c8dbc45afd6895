//! Computes the JSON patch between two objects.

use serde_json::{Map, Value, json};

/// Deeper values are replaced as a whole.
const MAX_DEPTH: usize = 256;

/// Returns a JSON patch (RFC 6902) that changes `before` to `after`.
#[must_use]
pub fn between(before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    diff_values(before, after, "", 0, &mut operations);
    operations
}

fn diff_values(before: &Value, after: &Value, path: &str, depth: usize, out: &mut Vec<Value>) {
    if before == after {
        return;
    }
    let deeper = depth.saturating_add(1);
    match (before, after) {
        (Value::Object(before), Value::Object(after)) if depth <= MAX_DEPTH => {
            diff_fields(before, after, path, deeper, out);
        }
        (Value::Array(before), Value::Array(after)) if depth <= MAX_DEPTH => {
            diff_items(before, after, path, deeper, out);
        }
        _ => out.push(json!({"op": "replace", "path": path, "value": after})),
    }
}

fn diff_fields(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    path: &str,
    depth: usize,
    out: &mut Vec<Value>,
) {
    for (name, value) in before {
        let path = format!("{path}/{}", escaped(name));
        match after.get(name) {
            Some(other) => diff_values(value, other, &path, depth, out),
            None => out.push(json!({"op": "remove", "path": path})),
        }
    }
    for (name, value) in after {
        if !before.contains_key(name) {
            let path = format!("{path}/{}", escaped(name));
            out.push(json!({"op": "add", "path": path, "value": value}));
        }
    }
}

/// Adds the operations that change one list to another. Equal items at both ends are unchanged. In between, an item of
/// `before` is changed to the item of `after` with its index. The remaining items are added or removed.
fn diff_items(before: &[Value], after: &[Value], path: &str, depth: usize, out: &mut Vec<Value>) {
    let pairs = || before.iter().zip(after);
    let begin = pairs().take_while(|(one, other)| one == other).count();
    let shorter = before.len().min(after.len());
    let from_end = before.iter().rev().zip(after.iter().rev());
    let end = from_end.take_while(|(one, other)| one == other).count();
    let end = end.min(shorter.saturating_sub(begin));
    let n_before = before.len().saturating_sub(end).saturating_sub(begin);
    let n_after = after.len().saturating_sub(end).saturating_sub(begin);
    let n_both = n_before.min(n_after);
    for (n, (one, other)) in pairs().enumerate().skip(begin).take(n_both) {
        diff_values(one, other, &format!("{path}/{n}"), depth, out);
    }
    let first = begin.saturating_add(n_both);
    for n in (first..begin.saturating_add(n_before)).rev() {
        out.push(json!({"op": "remove", "path": format!("{path}/{n}")}));
    }
    let added = after.iter().enumerate().skip(first);
    for (n, value) in added.take(n_after.saturating_sub(n_both)) {
        out.push(json!({"op": "add", "path": format!("{path}/{n}"), "value": value}));
    }
}

/// Escapes a field name for a JSON pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::super::expected::operations;
    use super::*;
    use crate::json_patch;

    #[track_caller]
    fn check(before: &Value, after: &Value, expected: &Value) {
        let patch = between(before, after);
        assert_eq!(json!(patch), *expected);
        let patched = json_patch::apply(before, &operations(&patch).unwrap()).unwrap();
        assert_eq!(patched, *after);
    }

    #[test]
    fn patch_between_objects_turns_first_into_second() {
        check(
            &json!({"a": 1, "b": {"c/d": 1, "e~f": 2}}),
            &json!({"a": 2, "b": {"c/d": 1, "g/h": 3}}),
            &json!([
                {"op": "replace", "path": "/a", "value": 2},
                {"op": "remove", "path": "/b/e~0f"},
                {"op": "add", "path": "/b/g~1h", "value": 3},
            ]),
        );
        check(
            &json!({"l": [1, 2, 3, 4]}),
            &json!({"l": [1, 5, 4]}),
            &json!([
                {"op": "replace", "path": "/l/1", "value": 5},
                {"op": "remove", "path": "/l/2"},
            ]),
        );
        check(
            &json!({"l": [{"n": 1}, {"n": 2}]}),
            &json!({"l": [{"n": 0}, {"n": 1}, {"n": 2}]}),
            &json!([{"op": "add", "path": "/l/0", "value": {"n": 0}}]),
        );
        check(
            &json!({"l": [1, 1]}),
            &json!({"l": [1]}),
            &json!([{"op": "remove", "path": "/l/1"}]),
        );
        check(&json!({"a": null}), &json!({"a": null}), &json!([]));
    }
}
