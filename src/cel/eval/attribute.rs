//! Attributes: a variable, and what is selected from it.
//!
//! What is held in memory is walked by reference; only the last value is cloned.
//!
//! Source: cel-go `interpreter/attributes.go`.

use std::borrow::Cow;
use std::sync::Arc;

use super::machine::{Machine, fatal};
use super::node::{Attribute, Qualifier, QualifierKey, Root};
use crate::cel::value::{EvalError, List, Value, double_to_int};

/// The value of an attribute.
pub(super) struct Resolved {
    pub(super) value: Value,
    /// Whether upstream holds it as a Go value, which shows in the names of types in messages.
    native: bool,
}

impl<'p> Machine<'p> {
    /// The value of `attribute`, without the cost of the attribute itself.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `Attribute.Resolve`.
    pub(super) fn resolve(&mut self, attribute: &'p Attribute) -> Result<Resolved, EvalError> {
        let (root, native) = match &attribute.root {
            Root::Variable(_, name) => match self.activation.resolve(name) {
                Some(value) => (value, true),
                None => return Err(EvalError::new(format!("no such attribute(s): {name}"))),
            },
            Root::Local(_, local) => (self.local(*local)?, false),
            Root::Relative(_, node) => (self.eval(node)?, false),
            Root::Conditional(_, conditional) => {
                return match self.eval(&conditional.condition)? {
                    Value::Bool(true) => self.resolve(&conditional.truthy),
                    Value::Bool(false) => self.resolve(&conditional.falsy),
                    _ => Err(EvalError::no_such_overload()),
                };
            }
        };
        self.qualify(root, native, &attribute.qualifiers)
    }

    /// Source: cel-go `interpreter/attributes.go`, `applyQualifiers`.
    fn qualify(
        &mut self,
        root: Value,
        mut native: bool,
        qualifiers: &'p [Arc<Qualifier>],
    ) -> Result<Resolved, EvalError> {
        let (root, mut is_optional) = match root {
            Value::Error(error) => return Err(error),
            Value::Optional(optional) => match optional.get() {
                None => {
                    return Ok(Resolved {
                        value: Value::none(),
                        native: false,
                    });
                }
                Some(held) => {
                    native = true;
                    (through_native(held), true)
                }
            },
            plain => (plain, false),
        };
        let mut current = Cow::Borrowed(&root);
        for qualifier in qualifiers {
            is_optional |= qualifier.optional;
            native &= is_native_step(&current, qualifier);
            let selected = fatal(self.apply(current, qualifier, is_optional))?;
            // What is not there costs nothing if it need not be there.
            if !is_optional || matches!(selected, Ok(Some(_))) {
                self.account_for(qualifier)?;
            }
            match selected? {
                Some(next) => current = next,
                None => {
                    return Ok(Resolved {
                        value: Value::none(),
                        native: false,
                    });
                }
            }
        }
        let value = current.into_owned();
        Ok(Resolved {
            value: if is_optional {
                Value::some(value)
            } else {
                value
            },
            native: native && !is_optional,
        })
    }

    fn account_for(&mut self, qualifier: &Qualifier) -> Result<(), EvalError> {
        if matches!(qualifier.key, QualifierKey::Node(_)) {
            self.tracker.drop_step(qualifier.id);
        }
        self.tracker.add_select();
        self.tracker.done(qualifier.id)
    }

    /// What `qualifier` selects of `current`; `None` if it is not there and need not be.
    fn apply<'v>(
        &mut self,
        current: Cow<'v, Value>,
        qualifier: &'p Qualifier,
        is_optional: bool,
    ) -> Result<Option<Cow<'v, Value>>, EvalError> {
        match &qualifier.key {
            QualifierKey::Constant(key) => select(current, key, is_optional),
            QualifierKey::Presence(key) => {
                let is_present = select(current, key, true)?.is_some();
                // An optional selection goes on with null, and its result is an optional.
                Ok(match (is_optional, is_present) {
                    (true, false) => None,
                    (true, true) => Some(Cow::Owned(Value::Null)),
                    (false, is_present) => Some(Cow::Owned(Value::Bool(is_present))),
                })
            }
            QualifierKey::Attribute(attribute) => {
                let resolved = self.resolve(attribute)?;
                select(current, &valid_key(resolved)?, is_optional)
            }
            QualifierKey::Node(node) => {
                let value = self.eval(node)?;
                let resolved = self.qualify(value, false, &[])?;
                select(current, &valid_key(resolved)?, is_optional)
            }
        }
    }
}

/// Whether selecting `qualifier` of `current` stays within what upstream holds as Go values.
fn is_native_step(current: &Value, qualifier: &Qualifier) -> bool {
    match (current, &qualifier.key) {
        (
            Value::Map(map),
            QualifierKey::Constant(Value::String(_)) | QualifierKey::Attribute(_),
        ) => map.as_fields().is_some(),
        (Value::List(list), QualifierKey::Constant(Value::Int(_)) | QualifierKey::Attribute(_)) => {
            list.as_slice().is_some()
        }
        _ => false,
    }
}

/// The key, if it is one that something can be selected by.
///
/// Source: cel-go `interpreter/attributes.go`, `newQualifier`.
fn valid_key(key: Resolved) -> Result<Value, EvalError> {
    let name = match &key.value {
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => {
            return Ok(key.value);
        }
        Value::Error(error) => return Err(error.clone()),
        Value::Null if key.native => "<nil>",
        Value::List(list) if key.native && list.as_slice().is_some() => "[]interface {}",
        Value::Map(map) if key.native && map.as_fields().is_some() => "map[string]interface {}",
        other => other.go_type(),
    };
    Err(EvalError::new(format!("invalid qualifier type: {name}")))
}

/// The value as it comes back from a Go value, as what an optional holds does when it is selected from.
///
/// Source: cel-go `interpreter/attributes.go`, `applyQualifiers` (`optObj.GetValue().Value()`);
/// `common/types/provider.go`, `nativeToValue`.
fn through_native(value: &Value) -> Value {
    let mut value = value;
    while let Value::Optional(optional) = value {
        match optional.get() {
            Some(held) => value = held,
            None => return Value::Null,
        }
    }
    match value {
        Value::Type(of) => Value::from(of.type_name()),
        Value::Opaque(opaque) => match opaque.through_native() {
            Ok(()) => value.clone(),
            Err(error) => Value::Error(error),
        },
        Value::Error(error) => Value::Error(EvalError::new(format!(
            "unsupported conversion to ref.Val: (*errors.errorString){error}"
        ))),
        Value::List(list) if list.is_joined() => Value::list(
            list.iter()
                .map(|element| through_native(&element))
                .collect::<Vec<_>>(),
        ),
        Value::List(list) => list
            .source()
            .and_then(|source| source.native())
            .unwrap_or_else(|| value.clone()),
        Value::Map(map) => map
            .source()
            .and_then(|source| source.native())
            .unwrap_or_else(|| value.clone()),
        plain => plain.clone(),
    }
}

/// What is under `key` in `current`; `None` if it is not there and `is_optional`.
///
/// Source: cel-go `interpreter/attributes.go`, `refQualify`.
fn select<'v>(
    current: Cow<'v, Value>,
    key: &Value,
    is_optional: bool,
) -> Result<Option<Cow<'v, Value>>, EvalError> {
    match current {
        Cow::Borrowed(value) => select_of(value, key, is_optional),
        Cow::Owned(value) => {
            Ok(select_of(&value, key, is_optional)?.map(|found| Cow::Owned(found.into_owned())))
        }
    }
}

fn select_of<'v>(
    current: &'v Value,
    key: &Value,
    is_optional: bool,
) -> Result<Option<Cow<'v, Value>>, EvalError> {
    let missing = match current {
        Value::Error(error) => return Err(error.clone()),
        Value::Map(map) => match map.look_up(key)? {
            Some(found) => return Ok(Some(found)),
            None => "no such key",
        },
        Value::List(list) => match element(list, key)? {
            Some(found) => return Ok(Some(found)),
            None => "index out of bounds",
        },
        _ => "no such key",
    };
    if is_optional {
        Ok(None)
    } else {
        Err(EvalError::new(format!("{missing}: {}", key.to_go_string())))
    }
}

fn element<'v>(list: &'v List, key: &Value) -> Result<Option<Cow<'v, Value>>, EvalError> {
    let index = list_index(key)?;
    let Ok(index) = usize::try_from(index) else {
        return Ok(None);
    };
    if let Some(elements) = list.as_slice() {
        return Ok(elements.get(index).map(Cow::Borrowed));
    }
    if list.source().is_some() && index < list.len() && !matches!(key, Value::Int(_)) {
        return Err(EvalError::new(format!(
            "unsupported index: {}",
            key.to_go_string()
        )));
    }
    Ok(list.get(index).map(Cow::Owned))
}

/// The index that `key` is.
///
/// Source: cel-go `common/types/list.go`, `IndexOrError`.
pub(super) fn list_index(key: &Value) -> Result<i64, EvalError> {
    let unsupported = || {
        EvalError::new(format!(
            "unsupported index value {} in list",
            key.to_go_string()
        ))
    };
    match key {
        Value::Int(index) => Ok(*index),
        Value::Double(index) => double_to_int(*index).ok_or_else(unsupported),
        Value::Uint(index) => i64::try_from(*index).map_err(|_| unsupported()),
        other => Err(EvalError::new(format!(
            "unsupported index type '{}' in list",
            other.type_().declared_string()
        ))),
    }
}
