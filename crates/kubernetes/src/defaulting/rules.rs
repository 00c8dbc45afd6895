//! Applies the rules of the table of defaults to an object in compact form.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::Error;
use super::image;
use super::table::{Action, Dep, Form, KindTable, Open, Rule, Shape, Step, Table, Type};
use super::typed::{read, zero};
use crate::library::quantity::Quantity;

/// Fields with image names. Rules distinguish images only by whether they have the tag `latest`.
const IMAGES: [&str; 2] = ["image", "reference"];

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// A struct on the path to a field: the index of its type, and its fields before any rule was applied.
#[derive(Clone, Copy)]
struct Level<'a> {
    struct_: usize,
    before: &'a Map<String, Value>,
}

/// Applies `rules` to `object`. All conditions are evaluated on the object before the first rule is applied.
pub(super) fn apply(
    table: &Table,
    kind: &KindTable,
    rules: &[Rule],
    object: &mut Value,
) -> Result<(), Error> {
    let before = object.clone();
    let root = Level {
        struct_: kind.root,
        before: before.as_object().unwrap_or(&*NOTHING),
    };
    // Rounding rules come last, because other rules may copy values into the fields that are rounded.
    let is_last = |rule: &&Rule| rule.rows.iter().any(|row| row.action.op == "round");
    let (last, first): (Vec<&Rule>, Vec<&Rule>) = rules.iter().partition(is_last);
    for wanted in [first, last] {
        // Rules for the same path are adjacent, so the object is traversed only once per path.
        for at_place in wanted.chunk_by(|one, other| one.at == other.at) {
            if let (Some(first), Some(after)) = (at_place.first(), object.as_object_mut())
                && has_place(&first.at, root.before)
            {
                walk(
                    table,
                    &first.at,
                    &mut vec![root],
                    after,
                    &mut |levels, after| {
                        let mut rules = at_place.iter();
                        rules.try_for_each(|rule| change(table, rule, levels, after))
                    },
                )?;
            }
        }
    }
    Ok(())
}

/// Returns the path of the first field in `unknown` whose value cannot be determined, because the object sets the field
/// or one of its dependencies. Returns `None` if there is no such field.
pub(super) fn unknown(
    table: &Table,
    kind: &KindTable,
    unknown: &[Open],
    object: &Value,
) -> Option<String> {
    let root = Level {
        struct_: kind.root,
        before: object.as_object().unwrap_or(&*NOTHING),
    };
    let mut field = None;
    let mut copy = None;
    for open in unknown {
        if !has_place(&open.at, root.before) {
            continue;
        }
        let copy = copy.get_or_insert_with(|| object.clone());
        let Some(after) = copy.as_object_mut() else {
            continue;
        };
        let walked = walk(table, &open.at, &mut vec![root], after, &mut |levels, _| {
            let own = levels
                .last()
                .and_then(|level| level.before.get(&open.field));
            let is_empty = |value: &Value| match value {
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            };
            let own = own.filter(|value| !open.empty || is_empty(value));
            let other = open.deps.iter().any(|dep| value_of(dep, levels).is_some());
            if own.is_some() || other {
                let steps = open.at.iter().map(|step| step.field.as_str());
                let path: Vec<&str> = steps.chain([open.field.as_str()]).collect();
                field.get_or_insert_with(|| path.join("."));
            }
            Ok(())
        });
        if walked.is_err() || field.is_some() {
            break;
        }
    }
    field
}

/// Returns true if [`walk`] would reach a struct at the path `steps`. It does if all lists, maps and pointers on the
/// path are set.
///
/// This check is cheaper than [`walk`]. Most paths contain lists and pointers that the object does not set.
fn has_place(steps: &[Step], before: &Map<String, Value>) -> bool {
    let mut before = before;
    let mut steps = steps.iter();
    while let Some(step) = steps.next() {
        let given = before.get(&step.field);
        let rest = steps.as_slice();
        let leads_on = |value: &Value| {
            value
                .as_object()
                .is_some_and(|fields| has_place(rest, fields))
        };
        match step.form {
            Form::Struct => before = given.and_then(Value::as_object).unwrap_or(&*NOTHING),
            Form::Pointer => return given.is_some_and(leads_on),
            Form::List => {
                let items = given.and_then(Value::as_array);
                return items.is_some_and(|items| items.iter().any(leads_on));
            }
            Form::Map => {
                let entries = given.and_then(Value::as_object);
                return entries.is_some_and(|entries| entries.values().any(leads_on));
            }
        }
    }
    true
}

/// A function to call for each struct at a path. The first argument contains the structs on the path, ending with this
/// struct. The second argument contains the current fields of this struct.
type AtPlace<'f> = &'f mut dyn FnMut(&[Level<'_>], &mut Map<String, Value>) -> Result<(), Error>;

fn walk<'a>(
    table: &Table,
    steps: &[Step],
    levels: &mut Vec<Level<'a>>,
    after: &mut Map<String, Value>,
    at_place: AtPlace<'_>,
) -> Result<(), Error> {
    let (Some((step, rest)), Some(level)) = (steps.split_first(), levels.last().copied()) else {
        return at_place(levels, after);
    };
    let struct_ = table
        .type_of(level.struct_, &step.field)
        .and_then(Type::struct_within)
        .ok_or_else(|| Error::Broken(format!("no struct in {}", step.field)))?;
    let before = level.before.get(&step.field);
    let mut into = |before: &'a Map<String, Value>, after: &mut Map<String, Value>| {
        levels.push(Level { struct_, before });
        let done = walk(table, rest, levels, after, at_place);
        levels.pop();
        done
    };
    match step.form {
        Form::Struct => {
            let before = before.and_then(Value::as_object).unwrap_or(&*NOTHING);
            let slot = after
                .entry(step.field.clone())
                .or_insert_with(|| Value::Object(Map::new()));
            if let Some(fields) = slot.as_object_mut() {
                into(before, fields)?;
                if fields.is_empty() {
                    after.remove(&step.field);
                }
            }
        }
        Form::Pointer => {
            let before = before.and_then(Value::as_object);
            let after = after.get_mut(&step.field).and_then(Value::as_object_mut);
            if let (Some(before), Some(after)) = (before, after) {
                into(before, after)?;
            }
        }
        Form::List => {
            let before = before.and_then(Value::as_array).into_iter().flatten();
            let after = after.get_mut(&step.field).and_then(Value::as_array_mut);
            for (before, after) in before.zip(after.into_iter().flatten()) {
                if let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) {
                    into(before, after)?;
                }
            }
        }
        Form::Map => {
            let before = before.and_then(Value::as_object).unwrap_or(&*NOTHING);
            let after = after.get_mut(&step.field).and_then(Value::as_object_mut);
            for (key, after) in after.into_iter().flatten() {
                let before = before.get(key).and_then(Value::as_object);
                if let (Some(before), Some(after)) = (before, after.as_object_mut()) {
                    into(before, after)?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the struct that contains the field of a dependency: the index of the struct's type, and the struct's fields
/// before any rule was applied. The index is `usize::MAX` for a dependency with a path.
fn lookup<'a>(dep: &Dep, levels: &[Level<'a>]) -> Option<(usize, &'a Map<String, Value>)> {
    if dep.path.is_none() {
        let n = levels.len().checked_sub(1)?.checked_sub(dep.up)?;
        return levels.get(n).map(|level| (level.struct_, level.before));
    }
    let mut node = levels.first()?.before;
    for name in dep.path.iter().flatten() {
        node = node.get(name).and_then(Value::as_object)?;
    }
    Some((usize::MAX, node))
}

fn value_of<'a>(dep: &Dep, levels: &[Level<'a>]) -> Option<&'a Value> {
    lookup(dep, levels)?.1.get(&dep.field)
}

fn type_of<'t>(table: &'t Table, dep: &Dep, levels: &[Level<'_>]) -> Option<Type<'t>> {
    let Some(path) = &dep.path else {
        let n = levels.len().checked_sub(1)?.checked_sub(dep.up)?;
        return table.type_of(levels.get(n)?.struct_, &dep.field);
    };
    let mut struct_ = levels.first()?.struct_;
    for name in path {
        struct_ = table.type_of(struct_, name)?.struct_within()?;
    }
    table.type_of(struct_, &dep.field)
}

/// Returns the class of a value in the table's notation. `-` is an absent value, `=x` is the constant `x` that rules
/// distinguish, and `*` is any other value.
fn class<'a>(
    value: Option<&'a Value>,
    type_: Option<Type<'_>>,
    field: &str,
    constants: Option<&'a Vec<String>>,
) -> &'a str {
    let is_pointer = type_.is_some_and(Type::is_pointer);
    let is_int_or_string = matches!(type_.map(Type::shape), Some(Shape::IntOrString));
    let constant = match value {
        None if is_int_or_string => "0".into(),
        None | Some(Value::Null) => return "-",
        Some(Value::Array(items)) if items.is_empty() && !is_pointer => return "-",
        Some(Value::Object(fields)) if fields.is_empty() && !is_pointer => return "-",
        Some(Value::String(text)) if text.is_empty() && !is_pointer => return "-",
        Some(Value::String(text)) if IMAGES.contains(&field) => {
            if !image::is_latest(text) {
                return "*";
            }
            "latest".into()
        }
        Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
        Some(Value::Bool(bool)) => if *bool { "true" } else { "false" }.into(),
        Some(Value::Number(number)) if is_int_or_string => number.to_string().into(),
        Some(_) => return "*",
    };
    let is_constant =
        |constant_class: &&String| constant_class.strip_prefix('=') == Some(&*constant);
    let class = constants.and_then(|constants| constants.iter().find(is_constant));
    class.map_or("*", String::as_str)
}

/// Applies `rule` to a field of one struct.
fn change(
    table: &Table,
    rule: &Rule,
    levels: &[Level<'_>],
    after: &mut Map<String, Value>,
) -> Result<(), Error> {
    let Some(level) = levels.last() else {
        return Ok(());
    };
    let type_ = table.type_of(level.struct_, &rule.field);
    let constants = |n: usize| rule.known.get(n).and_then(Option::as_ref);
    let own = level.before.get(&rule.field);
    let mut classes = vec![class(own, type_, &rule.field, constants(0))];
    let mut values = vec![own];
    for (n, dep) in rule.deps.iter().enumerate() {
        let value = value_of(dep, levels);
        let of_dep = type_of(table, dep, levels);
        classes.push(class(
            value,
            of_dep,
            &dep.field,
            constants(n.saturating_add(1)),
        ));
        values.push(value);
    }
    let is_round = rule.rows.iter().any(|row| row.action.op == "round");
    let row = rule
        .rows
        .iter()
        .find(|row| is_round || row.classes == classes);
    let (Some(row), Some(type_)) = (row, type_) else {
        return Ok(());
    };
    let present = after.get(&rule.field);
    let Some(value) = outcome(&row.action, &values, present) else {
        after.remove(&rule.field);
        return Ok(());
    };
    // Values in the table are in serialized form, so decode them into compact form.
    match read(table, &value, type_, &rule.field, 0)? {
        Some(value) => after.insert(rule.field.clone(), value),
        None if type_.is_pointer() && !value.is_null() => {
            after.insert(rule.field.clone(), zero(type_))
        }
        None => after.remove(&rule.field),
    };
    Ok(())
}

/// Returns the new value of a field. Returns `None` to remove the field.
fn outcome(action: &Action, values: &[Option<&Value>], present: Option<&Value>) -> Option<Value> {
    let dep = |n: usize| values.get(n).copied().flatten();
    if let Some(value) = &action.set {
        return Some(value.clone());
    }
    if action.remove {
        return None;
    }
    if let Some(n) = action.copy {
        return dep(n).cloned();
    }
    if let Some(template) = &action.template {
        return Some(filled(template, values));
    }
    let entries = || {
        present
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    if !action.union.is_empty() {
        let mut all = entries();
        for more in action.union.iter().filter_map(|n| dep(*n)?.as_object()) {
            for (key, value) in more {
                all.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        return Some(all.into());
    }
    if !action.merge.is_empty() || !action.entry.is_empty() {
        let mut all = entries();
        all.extend(action.merge.clone());
        for (key, n) in &action.entry {
            all.insert(key.clone(), dep(*n).cloned().unwrap_or_else(|| "".into()));
        }
        return Some(all.into());
    }
    if !action.append.is_empty() {
        let mut items = present
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        for item in &action.append {
            if !items.contains(item) {
                items.push(item.clone());
            }
        }
        return Some(items.into());
    }
    match action.op.as_str() {
        "round" => {
            let mut all = entries();
            for amount in all.values_mut() {
                if let Some(rounded) = amount.as_str().and_then(rounded_up) {
                    *amount = rounded.into();
                }
            }
            present.is_some().then(|| all.into())
        }
        "now" => Some(super::NOW.into()),
        _ => present.cloned(),
    }
}

/// Replaces each placeholder `{"$": n}` in a template with the value at index `n`.
fn filled(template: &Value, values: &[Option<&Value>]) -> Value {
    match template {
        Value::Object(fields) => {
            if let Some(n) = fields.get("$").and_then(Value::as_u64) {
                let n = usize::try_from(n).unwrap_or(usize::MAX);
                let value = values.get(n).copied().flatten();
                return value.cloned().unwrap_or(Value::Null);
            }
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.clone(), filled(value, values)))
                .collect()
        }
        Value::Array(items) => items.iter().map(|item| filled(item, values)).collect(),
        other => other.clone(),
    }
}

/// Rounds a quantity to thousandths, away from zero. Returns `None` if no rounding is necessary because the suffix is
/// neither `u` nor `n`.
///
/// Source: apimachinery `pkg/api/resource/quantity.go`, `RoundUp`.
fn rounded_up(text: &str) -> Option<String> {
    let (number, divisor) = match text.strip_suffix('u') {
        Some(number) => (number, 1_000_i128),
        None => (text.strip_suffix('n')?, 1_000_000),
    };
    let number: i128 = number.parse().ok()?;
    let (whole, rest) = (number.checked_div(divisor)?, number.checked_rem(divisor)?);
    let away = whole.checked_add(rest.signum())?;
    let text = format!("{away}m");
    Some(Quantity::parse(&text).ok()?.to_string())
}
