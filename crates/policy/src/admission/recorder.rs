//! The values of the parts of expressions, for who wants to see how a decision came about, or what was evaluated at all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use cel::eval::Observer;
use cel::value::{EvalError, Value};

/// The most values of one part that are kept as text: within a macro it has several.
const MAX_VALUES: usize = 4;

/// The longest text of a value, in characters.
const MAX_TEXT: usize = 80;

/// How many elements of a list or entries of a map are shown, and how deep.
const MAX_ELEMENTS: usize = 6;
const MAX_DEPTH: usize = 4;

/// Result of a part of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often it was evaluated.
    pub n: u64,
    /// True if it was `true`.
    pub is_true: bool,
    /// True if it was `false`.
    pub is_false: bool,
    /// True if it failed.
    pub is_error: bool,
    /// The first of its values.
    pub values: Vec<String>,
    /// The cost of it and its parts, in cost units.
    pub cost: u64,
}

impl Seen {
    /// Adds what became of the same part in another evaluation.
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

/// The parts that were evaluated: the index of the expression among those of the policy, and that of the part in it.
pub type Recording = BTreeMap<(usize, usize), Seen>;

/// Where parts are recorded.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Recording>);

impl Recorder {
    /// Takes what was recorded.
    #[must_use]
    pub fn take(&self) -> Recording {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut known)
    }

    /// The recorder of one expression.
    pub(super) fn of(&self, index: usize) -> OfExpression<'_> {
        OfExpression {
            recorder: self,
            index,
        }
    }
}

/// Records the parts of one expression.
#[derive(Debug)]
pub(super) struct OfExpression<'a> {
    recorder: &'a Recorder,
    index: usize,
}

/// Records parts as those of the expression with the index 0.
impl Observer for Recorder {
    fn observe(&self, part: usize, result: &Result<Value, EvalError>, cost: u64) {
        self.of(0).observe(part, result, cost);
    }
}

impl Observer for OfExpression<'_> {
    fn observe(&self, part: usize, result: &Result<Value, EvalError>, cost: u64) {
        let mut known = self
            .recorder
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let seen = known.entry((self.index, part)).or_default();
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
                Ok(value) => shown(value),
                Err(error) => cut(format!("error: {error}")),
            });
        }
    }
}

fn cut(text: String) -> String {
    if text.chars().count() <= MAX_TEXT {
        return text;
    }
    let mut short: String = text.chars().take(MAX_TEXT).collect();
    short.push('…');
    short
}

/// A value in the language's own form, cut where it is long.
fn shown(value: &Value) -> String {
    let mut out = String::new();
    show(value, &mut out, 0);
    cut(out)
}

fn show(value: &Value, out: &mut String, depth: usize) {
    if depth > MAX_DEPTH || out.len() > MAX_TEXT * 4 {
        out.push('…');
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
            let short: String = text.chars().take(MAX_TEXT).collect();
            let _ = write!(out, "{short:?}");
        }
        Value::List(list) => {
            out.push('[');
            show_each(list.iter().take(list.len()), out, |element, out| {
                show(&element, out, depth + 1);
            });
            out.push(']');
        }
        Value::Map(map) if map.source().is_some() => out.push_str("{…}"),
        Value::Map(map) => {
            out.push('{');
            let entries = map.entries().unwrap_or_default();
            show_each(entries, out, |(key, value), out| {
                show(&key, out, depth + 1);
                out.push_str(": ");
                show(&value, out, depth + 1);
            });
            out.push('}');
        }
        Value::Optional(optional) => match optional.get() {
            Some(value) => {
                out.push_str("optional.of(");
                show(value, out, depth + 1);
                out.push(')');
            }
            None => out.push_str("optional.none()"),
        },
        Value::Error(error) => {
            let _ = write!(out, "error: {error}");
        }
        other => {
            let text = other.to_go_string();
            out.push_str(if text.is_empty() { "…" } else { &text });
        }
    }
}

/// Writes the first elements of a list or entries of a map with commas between them.
fn show_each<T>(
    parts: impl IntoIterator<Item = T>,
    out: &mut String,
    mut show: impl FnMut(T, &mut String),
) {
    for (n, part) in parts.into_iter().enumerate() {
        if n >= MAX_ELEMENTS {
            out.push_str(", …");
            break;
        }
        if n > 0 {
            out.push_str(", ");
        }
        show(part, out);
    }
}
