//! Records the values of subexpressions. Callers use them to explain decisions and to measure coverage.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cel::eval::Observer;
use cel::value::{EvalError, Map, Value};
use kubernetes::library::mutation::{JsonPatchValue, ObjectValue};

/// The prefix of a recorded error. No value starts with it: strings are recorded with quotation marks.
const ERROR: &str = "error: ";

/// The placeholder for a value that cannot be formatted.
const NO_TEXT: &str = "…";

/// Maximum number of recorded values of one subexpression. A subexpression in a macro has one value per iteration.
const MAX_VALUES: usize = 4;

/// The limits of formatted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimits {
    /// Maximum length of a value, in characters.
    length: usize,
    /// Maximum number of elements of a list, or of entries of a map.
    elements: usize,
    /// Maximum depth of nested values.
    depth: usize,
}

impl TextLimits {
    /// The limits of values that explain a decision.
    pub const SHORT: Self = Self {
        length: 80,
        elements: 6,
        depth: 4,
    };
    /// The limits of values that are shown as the result of an evaluation.
    pub const LONG: Self = Self {
        length: 20_000,
        elements: 1000,
        depth: 32,
    };
}

impl Default for TextLimits {
    fn default() -> Self {
        Self::SHORT
    }
}

/// Maximum length of the formatted result of a mutation, in characters.
const MAX_MUTATION_VALUE_TEXT: usize = 240;

/// Maximum length of [`RecordedValue::times`] and of [`RecordedValue::keys`].
const MAX_TIMES: usize = 128;

/// The results of one subexpression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedValue {
    /// The number of evaluations.
    pub n: u64,
    /// True if at least one result was `true`.
    pub is_true: bool,
    /// True if at least one result was `false`.
    pub is_false: bool,
    /// True if at least one evaluation failed.
    pub is_error: bool,
    /// The first values, formatted.
    pub values: Vec<String>,
    /// The number of the first evaluation with the result `true`, counted from 0.
    pub first_true: Option<u64>,
    /// The number of the first evaluation with the result `false`, counted from 0.
    pub first_false: Option<u64>,
    /// The times of the first evaluations. A time is the number of earlier evaluations of all subexpressions.
    pub times: Vec<u64>,
    /// The first keys of the latest value, in iteration order. Empty if this value is not a map, or if its time is not
    /// recorded.
    pub keys: Vec<String>,
    /// The total cost of the evaluations, in cost units. It includes the cost of nested subexpressions.
    pub cost: u64,
}

impl RecordedValue {
    /// Returns true if values were recorded but none can be formatted, as for `authorizer`.
    #[must_use]
    pub fn is_without_text(&self) -> bool {
        !self.values.is_empty() && self.values.iter().all(|value| value == NO_TEXT)
    }

    /// Returns true if at least one of the recorded values is not an error.
    #[must_use]
    pub fn has_value(&self) -> bool {
        self.values.iter().any(|value| !value.starts_with(ERROR))
    }

    /// Adds `other`, the results of the same subexpression in another evaluation of the policy.
    pub fn add(&mut self, other: &Self) {
        self.n = self.n.saturating_add(other.n);
        self.is_true |= other.is_true;
        self.is_false |= other.is_false;
        self.is_error |= other.is_error;
        self.cost = self.cost.saturating_add(other.cost);
        let room = MAX_VALUES.saturating_sub(self.values.len());
        self.values.extend(other.values.iter().take(room).cloned());
    }
}

/// The results by the index of the expression and the index of the node.
pub type Recording = BTreeMap<(usize, usize), RecordedValue>;

/// Collects a [`Recording`].
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Recording>, AtomicU64, TextLimits);

impl Recorder {
    /// Creates a recorder whose values have the given limits.
    #[must_use]
    pub fn new(limits: TextLimits) -> Self {
        Self(Mutex::default(), AtomicU64::default(), limits)
    }

    /// Returns the results recorded so far, and removes them from the recorder.
    #[must_use]
    pub fn take(&self) -> Recording {
        let mut recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut recording)
    }

    pub(super) fn expression(&self, index: usize) -> ExpressionRecorder<'_> {
        ExpressionRecorder {
            recorder: self,
            index,
        }
    }
}

#[derive(Debug)]
pub(super) struct ExpressionRecorder<'a> {
    recorder: &'a Recorder,
    index: usize,
}

/// Records an expression that is evaluated without a policy. Its index in the recording is 0.
impl Observer for Recorder {
    fn observe(&self, part: usize, result: &Result<Value, EvalError>, cost: u64) {
        self.expression(0).observe(part, result, cost);
    }
}

impl Observer for ExpressionRecorder<'_> {
    fn observe(&self, part: usize, result: &Result<Value, EvalError>, cost: u64) {
        let mut recording = self
            .recorder
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = self.recorder.1.fetch_add(1, Ordering::Relaxed);
        let limits = self.recorder.2;
        let seen = recording.entry((self.index, part)).or_default();
        match result {
            Ok(Value::Bool(true)) if !seen.is_true => seen.first_true = Some(seen.n),
            Ok(Value::Bool(false)) if !seen.is_false => seen.first_false = Some(seen.n),
            Ok(Value::Map(map)) if seen.times.len() < MAX_TIMES => seen.keys = keys(map),
            Ok(_) => seen.keys.clear(),
            _ => {}
        }
        if seen.times.len() < MAX_TIMES {
            seen.times.push(now);
        }
        seen.n = seen.n.saturating_add(1);
        seen.cost = seen.cost.saturating_add(cost);
        match result {
            Ok(Value::Bool(true)) => seen.is_true = true,
            Ok(Value::Bool(false)) => seen.is_false = true,
            Ok(_) => {}
            Err(_) => seen.is_error = true,
        }
        if seen.values.len() < MAX_VALUES {
            seen.values.push(match result {
                Ok(value) => shown(value, limits),
                Err(error) => cut(format!("{ERROR}{error}"), limits.length),
            });
        }
    }
}

fn cut(text: String, max: usize) -> String {
    if text.chars().count() <= max {
        return text;
    }
    let mut short: String = text.chars().take(max).collect();
    short.push('…');
    short
}

/// Returns the first keys of a map. Empty for a lazy map such as `variables`: its keys cannot be read without
/// evaluating its values.
fn keys(map: &Map) -> Vec<String> {
    if !map.is_plain() {
        return Vec::new();
    }
    let keys = map.keys().unwrap_or_default();
    let keys = keys.iter().take(MAX_TIMES);
    keys.map(|key| shown(key, TextLimits::SHORT)).collect()
}

/// Formats a value in CEL syntax, cut to the maximum length.
fn shown(value: &Value, limits: TextLimits) -> String {
    let mut out = String::new();
    show(value, &mut out, (0, limits));
    let is_mutation_value = match value {
        Value::List(list) => list.get(0).is_some_and(|first| is_mutation_value(&first)),
        value => is_mutation_value(value),
    };
    cut(
        out,
        if is_mutation_value {
            limits.length.max(MAX_MUTATION_VALUE_TEXT)
        } else {
            limits.length
        },
    )
}

/// Returns true if the value is the result of a mutation: an `Object` or a `JSONPatch`.
fn is_mutation_value(value: &Value) -> bool {
    value.downcast::<ObjectValue>().is_some() || value.downcast::<JsonPatchValue>().is_some()
}

/// Writes an `Object` or a `JSONPatch` without its type name. Returns false for other values.
fn show_mutation_value(value: &Value, out: &mut String, at: (usize, TextLimits)) -> bool {
    let (depth, limits) = at;
    let field = |name: &str, value: &Value, out: &mut String| {
        out.push_str(name);
        out.push_str(": ");
        show(value, out, (depth + 1, limits));
    };
    if let Some(object) = value.downcast::<ObjectValue>() {
        out.push('{');
        show_each(object.fields(), limits, out, |(name, value), out| {
            field(name, value, out);
        });
        out.push('}');
        return true;
    }
    let Some(patch) = value.downcast::<JsonPatchValue>() else {
        return false;
    };
    let texts = [
        ("op", &patch.op),
        ("from", &patch.from),
        ("path", &patch.path),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let texts = texts.map(|(name, text)| (name, Value::String(Arc::clone(text))));
    let value = patch.value.iter().map(|value| ("value", value.clone()));
    out.push('{');
    show_each(texts.chain(value), limits, out, |(name, value), out| {
        field(name, &value, out);
    });
    out.push('}');
    true
}

fn show(value: &Value, out: &mut String, (depth, limits): (usize, TextLimits)) {
    if depth > limits.depth || out.len() > limits.length.saturating_mul(4) {
        out.push('…');
        return;
    }
    let nested = (depth + 1, limits);
    if show_mutation_value(value, out, (depth, limits)) {
        return;
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Uint(value) => {
            let _ = write!(out, "{value}u");
        }
        Value::Double(value) => {
            let _ = write!(out, "{value:?}");
        }
        Value::String(text) => {
            let short: String = text.chars().take(limits.length).collect();
            let _ = write!(out, "{short:?}");
        }
        // Each byte takes at least two characters: a digit and a space.
        Value::Bytes(bytes) if bytes.len() > MAX_MUTATION_VALUE_TEXT => {
            let start = bytes.get(..MAX_MUTATION_VALUE_TEXT).unwrap_or_default();
            out.push_str(&Value::Bytes(start.into()).to_go_string());
        }
        Value::List(list) => {
            out.push('[');
            show_each(list.iter().take(list.len()), limits, out, |element, out| {
                show(&element, out, nested);
            });
            out.push(']');
        }
        Value::Map(map) if map.source().is_some_and(|source| !source.is_in_memory()) => {
            out.push_str("{…}");
        }
        Value::Map(map) => {
            out.push('{');
            let entries = map.entries().unwrap_or_default();
            show_each(entries, limits, out, |(key, value), out| {
                show(&key, out, nested);
                out.push_str(": ");
                show(&value, out, nested);
            });
            out.push('}');
        }
        Value::Optional(optional) => match optional.get() {
            Some(value) => {
                out.push_str("optional.of(");
                show(value, out, nested);
                out.push(')');
            }
            None => out.push_str("optional.none()"),
        },
        Value::Error(error) => {
            let _ = write!(out, "error: {error}");
        }
        // In Go, an opaque value such as `authorizer` may be an error without a message.
        Value::Opaque(opaque) if opaque.native_type() == "*types.Err" => out.push_str(NO_TEXT),
        other => {
            let text = other.to_go_string();
            out.push_str(if text.is_empty() { NO_TEXT } else { &text });
        }
    }
}

/// Writes the first elements of a list, or the first entries of a map, separated by commas.
fn show_each<T>(
    parts: impl IntoIterator<Item = T>,
    limits: TextLimits,
    out: &mut String,
    mut show: impl FnMut(T, &mut String),
) {
    for (n, part) in parts.into_iter().enumerate() {
        if n >= limits.elements {
            out.push_str(", …");
            break;
        }
        if n > 0 {
            out.push_str(", ");
        }
        show(part, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cel::env::Env;
    use cel::eval::{Limits, Program};
    use cel::{checker, syntax};
    use kubernetes::library::mutation::mutation_env;
    use kubernetes::library::runtime::KubernetesRuntime;
    use kubernetes::version::KubernetesVersion;

    fn env() -> &'static Env {
        mutation_env(KubernetesVersion::DEFAULT)
    }

    #[track_caller]
    fn check(expression: &str, expected: &str) {
        let ast = Arc::new(syntax::parse(expression).0.unwrap());
        let (checked, diagnostics) = checker::check(&ast, expression, env());
        assert!(diagnostics.is_empty(), "{expression}");
        let program = Program::plan(&checked, env(), &KubernetesRuntime).unwrap();
        let none: [(&str, Value); 0] = [];
        let value = program
            .eval(&none, Limits::from_cost(10_000))
            .result
            .unwrap();
        assert_eq!(shown(&value, TextLimits::SHORT), expected, "{expression}");
    }

    #[test]
    fn mutation_results_are_shown_as_objects_without_type_names() {
        check(
            "Object{metadata: Object.metadata{labels: {'a': 'b'}}, spec: Object.spec{replicas: 3}}",
            "{metadata: {labels: {\"a\": \"b\"}}, spec: {replicas: 3}}",
        );
        check(
            "[JSONPatch{op: 'add', path: '/spec', value: Object.spec{replicas: 1}}, JSONPatch{op: 'remove', path: '/b'}]",
            "[{op: \"add\", path: \"/spec\", value: {replicas: 1}}, {op: \"remove\", path: \"/b\"}]",
        );
        check(
            "JSONPatch{op: 'move', from: '/a', path: '/b'}",
            "{op: \"move\", from: \"/a\", path: \"/b\"}",
        );
        let fields = (0..9).map(|n| format!("field{n}: '{}'", "x".repeat(50)));
        let object = format!("Object{{{}}}", fields.collect::<Vec<_>>().join(", "));
        let ast = Arc::new(syntax::parse(&object).0.unwrap());
        let (checked, _) = checker::check(&ast, &object, env());
        let program = Program::plan(&checked, env(), &KubernetesRuntime).unwrap();
        let none: [(&str, Value); 0] = [];
        let value = program
            .eval(&none, Limits::from_cost(10_000))
            .result
            .unwrap();
        let short = shown(&value, TextLimits::SHORT);
        assert_eq!(short.chars().count(), MAX_MUTATION_VALUE_TEXT + 1);
    }

    #[test]
    fn values_are_shown_as_literals() {
        for (expression, expected) in [
            ("null", "null"),
            ("true", "true"),
            ("false", "false"),
            ("-3", "-3"),
            ("3u", "3u"),
            ("2.0", "2.0"),
            ("1.5", "1.5"),
            ("'a\"b'", "\"a\\\"b\""),
            ("b'ab'", "[97 98]"),
            ("[1, 2]", "[1, 2]"),
            ("{'a': [1u]}", "{\"a\": [1u]}"),
            ("optional.none()", "optional.none()"),
            ("optional.of(1)", "optional.of(1)"),
            ("duration('90s')", "1m30s"),
            ("type(1)", "int"),
        ] {
            check(expression, expected);
        }
    }
}
