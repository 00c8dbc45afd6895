//! Evaluates attributes: variables followed by qualifiers such as `.field` or `[index]`.
//!
//! Values in memory are traversed by reference; only the final value is cloned.
//!
//! Source: cel-go `interpreter/attributes.go`.

use std::borrow::Cow;
use std::sync::Arc;

use super::Part;
use super::machine::{Machine, fatal};
use super::node::{Attribute, Node, Qualifier, QualifierKey, Root, Shape};
use crate::value::{EvalError, List, Value, double_to_int, go_quote};

pub(super) struct Resolved {
    pub(super) value: Value,
    /// True if upstream represents the value as a native Go value. Messages then contain the name of the Go type.
    native: bool,
}

/// The state after the first part of a traversal along the keys of an attribute.
enum Start<'v> {
    /// The number of traversed keys, and the value to which they lead. The other keys still have to be traversed.
    Value(usize, Cow<'v, Value>),
    /// The traversal is complete. Contains the number of charged keys, and the result.
    Ended(usize, Result<Value, EvalError>),
}

impl Start<'_> {
    /// Creates the result of a traversal that found `n_found` keys and failed with `error` at the next key.
    #[cold]
    fn failed(n_found: usize, error: EvalError) -> Self {
        Self::Ended(n_charged_until(n_found, &error), Err(error))
    }
}

/// Returns the number of charged keys of a traversal that found `n_found` keys and failed with `error` at the next
/// key. The failed key is charged too, unless the error ends the evaluation.
fn n_charged_until(n_found: usize, error: &EvalError) -> usize {
    n_found.saturating_add(usize::from(!error.ends_evaluation()))
}

impl<'p> Machine<'p> {
    /// Evaluates an attribute.
    ///
    /// A path of constant keys is traversed without recording its steps in the cost tracker, because no other step
    /// searches for them. Other attributes are evaluated step by step.
    ///
    /// The result is constructed in place. Moving the result would take a quarter of the evaluation time.
    #[inline]
    pub(super) fn eval_attribute(
        &mut self,
        node: &'p Node,
        attribute: &'p Attribute,
        is_test: bool,
    ) -> Result<Value, EvalError> {
        let mut n_charged = 0;
        let mut end;
        match self.start(attribute) {
            Some(start) => {
                end = match start {
                    Start::Value(n_found, value) => {
                        let rest = attribute.qualifiers.get(n_found..).unwrap_or_default();
                        walk_constant_path(&value, rest, n_found, &mut n_charged)
                    }
                    Start::Ended(n, end) => {
                        n_charged = n;
                        end
                    }
                };
                self.account_for_path(node, attribute, n_charged, &mut end);
            }
            None => end = self.eval_steps(node, attribute, is_test),
        }
        end
    }

    /// Charges the traversal of `n_charged` keys. If `end` is an error, sets its origin to the failed key.
    #[inline]
    fn account_for_path(
        &mut self,
        node: &'p Node,
        attribute: &'p Attribute,
        n_charged: usize,
        end: &mut Result<Value, EvalError>,
    ) {
        self.tracker.add_selects(n_charged);
        if let Err(error) = end
            && error.ends_evaluation()
        {
            return;
        }
        // Upstream drops the last step whose id is that of the attribute. The last key has the same id as the
        // attribute. If the traversal reached the last key, upstream drops the step of this key; here, this step is not
        // recorded. Otherwise, the step may be left over from an earlier iteration of a comprehension, so it is dropped
        // here too.
        let is_dropped = n_charged == attribute.qualifiers.len() && n_charged > 0;
        if !is_dropped && !self.frames.is_empty() {
            self.tracker.drop_step(attribute.id());
        }
        self.tracker.add_select();
        if attribute.shape == Shape::Test && !self.settings.presence_test_has_cost {
            self.tracker.subtract_select();
        }
        if let Err(error) = self.tracker.done(node.id) {
            *end = Err(error);
            return;
        }
        if let Err(error) = end
            // The last charged key is the failed key.
            && let Some(failed) = n_charged.checked_sub(1)
            && let Some(failed) = attribute.qualifiers.get(failed)
        {
            error.set_step(failed.id);
        }
    }

    /// Starts the traversal of `attribute`. Returns `None` if the attribute must be evaluated step by step.
    #[inline]
    fn start(&self, attribute: &'p Attribute) -> Option<Start<'_>> {
        let n_steps = attribute.qualifiers.len().saturating_add(1);
        if attribute.shape == Shape::Other || !self.tracker.has_room(n_steps) {
            return None;
        }
        let root = match &attribute.root {
            Root::Variable(_, name) => {
                if let Some(start) = self.start_at_part(name, attribute) {
                    return Some(start);
                }
                match self.activation.resolve(name) {
                    Some(value) => value,
                    None => return Some(Start::Ended(0, Err(no_such_attribute(name)))),
                }
            }
            Root::Local(_, local) => Cow::Borrowed(self.held_local(*local)?),
            Root::Hidden(..) | Root::Relative(..) | Root::Conditional(..) => return None,
        };
        match &*root {
            Value::Error(_) | Value::Optional(_) => None,
            _ => Some(Start::Value(0, root)),
        }
    }

    /// Starts the traversal within a variable whose fields are created on access. Returns `None` for other variables.
    #[inline]
    fn start_at_part(&self, name: &str, attribute: &'p Attribute) -> Option<Start<'_>> {
        let (path, names) = (&*attribute.qualifiers, &*attribute.names);
        if names.is_empty() {
            return None;
        }
        let is_test = attribute.shape == Shape::Test && names.len() == path.len();
        let part = self.activation.resolve_part(name, names, is_test)?;
        Some(match part {
            Part::Value(n_found, _) if is_test && n_found == path.len() => {
                Start::Ended(n_found, Ok(Value::Bool(true)))
            }
            Part::Value(n_found, value) => Start::Value(n_found, value),
            Part::Absent(n_found) if is_test && n_found.saturating_add(1) == path.len() => {
                Start::Ended(path.len(), Ok(Value::Bool(false)))
            }
            Part::Absent(n_found) => {
                let key = names.get(n_found).map_or("", |name| &**name);
                Start::failed(n_found, EvalError::no_such_key(key))
            }
            Part::Failed(n_found, error) => Start::failed(n_found, error),
        })
    }

    /// Resolves `attribute`, without charging the cost of the attribute itself.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `Attribute.Resolve`.
    pub(super) fn resolve(&mut self, attribute: &'p Attribute) -> Result<Resolved, EvalError> {
        if self.stack.is_used_up() {
            return self.on_deep_stack(|machine| machine.resolve(attribute));
        }
        let (root, native) = match &attribute.root {
            Root::Variable(_, name) => self.variable(name)?,
            Root::Hidden(_, name) => {
                let (value, native) = self.variable(name)?;
                // Upstream evaluates the qualifiers outside of the tracked evaluation, so they cost nothing.
                //
                // Source: cel-go 0.29 `interpreter/attributes.go`, `absoluteAttribute.Resolve`.
                let tracker = self.tracker.clone();
                let resolved = self.qualify(value, native, &attribute.qualifiers);
                self.tracker = tracker;
                return resolved;
            }
            Root::Local(_, local) => (self.local(*local)?, false),
            Root::Relative(_, node) => (self.eval(node)?, false),
            Root::Conditional(id, conditional) => {
                return match self.eval(&conditional.condition)? {
                    Value::Bool(true) => self.resolve(&conditional.truthy),
                    Value::Bool(false) => self.resolve(&conditional.falsy),
                    _ => Err(EvalError::no_such_overload().at_step(*id)),
                };
            }
        };
        self.qualify(root, native, &attribute.qualifiers)
    }

    /// Returns the value of a variable, and true if upstream represents it as a native Go value.
    fn variable(&self, name: &str) -> Result<(Value, bool), EvalError> {
        let value = self.activation.resolve(name);
        let value = value.ok_or_else(|| no_such_attribute(name))?;
        // In every activation, upstream represents a null variable as a native nil.
        let native = self.activation.is_native() || matches!(*value, Value::Null);
        Ok((value.into_owned(), native))
    }

    /// Source: cel-go `interpreter/attributes.go`, `applyQualifiers`.
    fn qualify(
        &mut self,
        root: Value,
        mut native: bool,
        qualifiers: &'p [Qualifier],
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
                    let held = if self.settings.optionals_hold_cel_values {
                        held.clone()
                    } else {
                        held.through_native(self.budget)?
                    };
                    (held, true)
                }
            },
            plain => (plain, false),
        };
        let mut current = Cow::Borrowed(&root);
        for qualifier in qualifiers {
            is_optional |= qualifier.optional;
            native &= is_native_step(&current, qualifier);
            let selected = fatal(self.apply(current, qualifier, is_optional))?;
            // An absent key in an optional chain costs nothing.
            if !is_optional || matches!(selected, Ok(Some(_))) {
                self.account_for(qualifier)?;
            }
            match selected.map_err(|error| error.at_step(qualifier.id))? {
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

    /// Selects the value of `qualifier` from `current`. Returns `None` if the key is absent and `is_optional` is
    /// true.
    fn apply<'v>(
        &mut self,
        current: Cow<'v, Value>,
        qualifier: &'p Qualifier,
        is_optional: bool,
    ) -> Result<Option<Cow<'v, Value>>, EvalError> {
        match &qualifier.key {
            QualifierKey::Constant(key) => select(current, key, is_optional),
            QualifierKey::Field(name, is_test) => {
                let native = current.through_native(self.budget)?;
                field_of(&native, name, is_optional, *is_test)
            }
            QualifierKey::Presence(key) => {
                let is_present = select(current, key, true)?.is_some();
                // As in upstream, a presence test in an optional chain yields null for a key that is present.
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

#[cold]
fn no_such_attribute(name: &str) -> EvalError {
    EvalError::new(format!("no such attribute(s): {name}"))
}

/// Traverses `path` from `root`. All keys of `path` are constants, and the last one may be a presence test. Sets
/// `n_charged` to the number of charged keys, including the `n_before` keys that lead to `root`.
fn walk_constant_path(
    root: &Value,
    path: &[Qualifier],
    n_before: usize,
    n_charged: &mut usize,
) -> Result<Value, EvalError> {
    let mut current = root;
    for (n, qualifier) in path.iter().enumerate() {
        let n_found = n_before.saturating_add(n);
        let failed = |error: EvalError, n_charged: &mut usize| {
            *n_charged = n_charged_until(n_found, &error);
            Err(error)
        };
        let (key, is_test) = match &qualifier.key {
            QualifierKey::Constant(key) => (key, false),
            QualifierKey::Presence(key) => (key, true),
            QualifierKey::Field(..) | QualifierKey::Attribute(_) | QualifierKey::Node(_) => {
                return failed(EvalError::no_such_overload(), n_charged);
            }
        };
        let held = match (current, key) {
            (Value::Map(map), Value::String(name)) => {
                map.held_fields().map(|fields| fields.find(name))
            }
            _ => None,
        };
        let selected = match held {
            Some(selected) => selected.map(Cow::Borrowed),
            None => match select_of(current, key, is_test) {
                Ok(selected) => selected,
                Err(error) => return failed(error, n_charged),
            },
        };
        let n_found_now = n_found.saturating_add(1);
        match selected {
            selected if is_test => {
                *n_charged = n_found_now;
                return Ok(Value::Bool(selected.is_some()));
            }
            Some(Cow::Borrowed(next)) => current = next,
            Some(Cow::Owned(next)) => {
                let rest = path.get(n.saturating_add(1)..).unwrap_or_default();
                return walk_constant_path(&next, rest, n_found_now, n_charged);
            }
            None => return failed(EvalError::no_such_key(key.to_go_string()), n_charged),
        }
    }
    *n_charged = n_before.saturating_add(path.len());
    match current {
        Value::Error(error) => Err(error.clone()),
        value => Ok(value.clone()),
    }
}

/// Returns true if the value that `qualifier` selects from `current` is a native Go value in upstream.
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

/// Checks that `key` has a type that can qualify an attribute.
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

/// Selects the field `name` from `native`, a value that was converted to a Go map. If `is_test` is true, tests for
/// the presence of the field instead. Returns `None` if the field is absent and `is_optional` is true.
///
/// Source: cel-go `interpreter/attributes.go`, `fieldQualifier`; k8s.io/apiserver
/// `pkg/cel/mutation/dynamic/objects.go`, `ObjectType.Field`.
fn field_of<'v>(
    native: &Value,
    name: &Arc<str>,
    is_optional: bool,
    is_test: bool,
) -> Result<Option<Cow<'v, Value>>, EvalError> {
    let fields = match native {
        Value::Map(map) if map.as_fields().is_some() => Some(map),
        _ => None,
    };
    let field = fields.and_then(|fields| fields.field(name));
    let value = match (is_test, is_optional) {
        (true, false) => return Ok(Some(Cow::Owned(Value::Bool(field.is_some())))),
        // As in upstream, a presence test in an optional chain yields null for a key that is present.
        (true, true) => return Ok(field.map(|_| Cow::Owned(Value::Null))),
        (false, true) => match field {
            Some(field) => field.clone(),
            None => return Ok(None),
        },
        (false, false) if fields.is_some() => field.cloned().unwrap_or(Value::Null),
        (false, false) => {
            let message = format!("cannot get field {}", go_quote(name));
            return Err(EvalError::new(message));
        }
    };
    Ok(Some(Cow::Owned(value)))
}

/// Returns the value under `key` in `current`. Returns `None` if the key is absent and `is_optional` is true.
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
        Value::Opaque(opaque) => match opaque.index(key) {
            Some(_) if is_optional && !opaque.is_set(key)? => return Ok(None),
            Some(found) => return found.map(|found| Some(Cow::Owned(found))),
            None => "no such key",
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
    if let Some(source) = list.source()
        && index < list.len()
        && !matches!(key, Value::Int(_))
    {
        // As in upstream, the result of this access is an error value, on which the next access fails.
        return Ok(Some(Cow::Owned(Value::Error(source.index_error(key)))));
    }
    if let Some(elements) = list.held() {
        return Ok(elements.get(index).map(Cow::Borrowed));
    }
    Ok(list.get(index).map(Cow::Owned))
}

/// Converts `key` to a list index.
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
