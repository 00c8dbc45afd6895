//! Attributes: a variable, and what is selected from it.
//!
//! What is held in memory is walked by reference; only the last value is cloned.
//!
//! Source: cel-go `interpreter/attributes.go`.

use std::borrow::Cow;
use std::sync::Arc;

use super::Part;
use super::machine::{Machine, fatal};
use super::node::{Attribute, Node, Qualifier, QualifierKey, Root, Shape};
use crate::value::{EvalError, List, Value, double_to_int, go_quote};

/// The value of an attribute.
pub(super) struct Resolved {
    pub(super) value: Value,
    /// True if upstream holds it as a Go value, which shows in the names of types in messages.
    native: bool,
}

/// How far a walk along a path came.
struct Walked {
    /// How many of the keys cost something: those that were found, and the one that was not.
    n_charged: usize,
    /// Value or error that it evaluates to.
    end: Result<Value, EvalError>,
}

impl Walked {
    /// A walk that failed at the key after the first `n_found`.
    #[cold]
    fn failed(n_found: usize, error: EvalError) -> Self {
        let is_charged = !error.ends_evaluation();
        Self {
            n_charged: n_found.saturating_add(usize::from(is_charged)),
            end: Err(error),
        }
    }

    /// The same walk, that began `n_before` keys earlier.
    fn after(mut self, n_before: usize) -> Self {
        self.n_charged = self.n_charged.saturating_add(n_before);
        self
    }
}

impl<'p> Machine<'p> {
    /// Evaluates an attribute that is a path, in one go; `None` where that must be done step by step.
    ///
    /// The steps in between are not recorded, as nothing looks for them.
    #[inline]
    pub(super) fn eval_path(
        &mut self,
        node: &'p Node,
        attribute: &'p Attribute,
    ) -> Option<Result<Value, EvalError>> {
        let n_steps = attribute.qualifiers.len().saturating_add(1);
        if attribute.shape == Shape::Other || !self.tracker.has_room(n_steps) {
            return None;
        }
        let Walked { n_charged, end } = self.walk(attribute)?;
        self.tracker.add_selects(n_charged);
        if let Err(error) = &end
            && error.ends_evaluation()
        {
            return Some(end);
        }
        // The step of the last key, which is that of the attribute, is recorded and dropped again. Without
        // comprehensions no step is evaluated twice, so that there is none from before.
        let is_dropped = n_charged == attribute.qualifiers.len() && n_charged > 0;
        if !is_dropped && !self.frames.is_empty() {
            self.tracker.drop_step(attribute.id());
        }
        self.tracker.add_select();
        if attribute.shape == Shape::Test && !self.presence_test_has_cost {
            self.tracker.subtract_select();
        }
        if let Err(error) = self.tracker.done(node.id) {
            return Some(Err(error));
        }
        // The last key that was charged for is the one that failed.
        Some(end.map_err(|error| {
            let failed = n_charged
                .checked_sub(1)
                .and_then(|n| attribute.qualifiers.get(n));
            match failed {
                Some(failed) => error.at_step(failed.id),
                None => error,
            }
        }))
    }

    #[inline]
    fn walk(&self, attribute: &'p Attribute) -> Option<Walked> {
        let path = &*attribute.qualifiers;
        let root = match &attribute.root {
            Root::Variable(_, name) => {
                if let Some(walked) = self.walk_parts(name, attribute) {
                    return Some(walked);
                }
                match self.activation.resolve(name) {
                    Some(value) => value,
                    None => {
                        return Some(Walked {
                            n_charged: 0,
                            end: Err(EvalError::new(format!("no such attribute(s): {name}"))),
                        });
                    }
                }
            }
            Root::Local(_, local) => Cow::Borrowed(self.held_local(*local)?),
            Root::Relative(..) | Root::Conditional(..) => return None,
        };
        match &*root {
            Value::Error(_) | Value::Optional(_) => None,
            _ => Some(walk_held(&root, path)),
        }
    }

    /// The walk along a path whose variable makes its parts when they are asked for.
    #[inline]
    fn walk_parts(&self, name: &str, attribute: &'p Attribute) -> Option<Walked> {
        let (path, names) = (&*attribute.qualifiers, &*attribute.names);
        if names.is_empty() {
            return None;
        }
        let is_test = attribute.shape == Shape::Test && names.len() == path.len();
        let part = self.activation.resolve_part(name, names, is_test)?;
        Some(match part {
            Part::Value(n_found, _) if is_test && n_found == path.len() => Walked {
                n_charged: n_found,
                end: Ok(Value::Bool(true)),
            },
            Part::Value(n_found, value) => {
                let rest = path.get(n_found..).unwrap_or_default();
                walk_held(&value, rest).after(n_found)
            }
            Part::Absent(n_found) if is_test && n_found.saturating_add(1) == path.len() => Walked {
                n_charged: path.len(),
                end: Ok(Value::Bool(false)),
            },
            Part::Absent(n_found) => {
                let key = names.get(n_found).map_or("", |name| &**name);
                Walked::failed(n_found, EvalError::no_such_key(key))
            }
            Part::Failed(n_found, error) => Walked::failed(n_found, error),
        })
    }

    /// The value of `attribute`, without the cost of the attribute itself.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `Attribute.Resolve`.
    pub(super) fn resolve(&mut self, attribute: &'p Attribute) -> Result<Resolved, EvalError> {
        if self.stack.is_used_up() {
            return self.on_deep_stack(|machine| machine.resolve(attribute));
        }
        let (root, native) = match &attribute.root {
            Root::Variable(_, name) => match self.activation.resolve(name) {
                Some(value) => (value.into_owned(), true),
                None => return Err(EvalError::new(format!("no such attribute(s): {name}"))),
            },
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
                    (held.through_native(self.context.budget())?, true)
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

    /// Selects `qualifier` of `current`; `None` if it is absent and optional.
    fn apply<'v>(
        &mut self,
        current: Cow<'v, Value>,
        qualifier: &'p Qualifier,
        is_optional: bool,
    ) -> Result<Option<Cow<'v, Value>>, EvalError> {
        match &qualifier.key {
            QualifierKey::Constant(key) => select(current, key, is_optional),
            QualifierKey::Field(name, is_test) => {
                let native = current.through_native(self.context.budget())?;
                field_of(&native, name, is_optional, *is_test)
            }
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

/// The value at the end of a path, whose keys are constants, and the last may be tested for.
fn walk_held(root: &Value, path: &[Qualifier]) -> Walked {
    let mut current = root;
    for (n_found, qualifier) in path.iter().enumerate() {
        let (key, is_test) = match &qualifier.key {
            QualifierKey::Constant(key) => (key, false),
            QualifierKey::Presence(key) => (key, true),
            QualifierKey::Field(..) | QualifierKey::Attribute(_) | QualifierKey::Node(_) => {
                return Walked::failed(n_found, EvalError::no_such_overload());
            }
        };
        let held = match (current, key) {
            (Value::Map(map), Value::String(name)) => {
                map.held_fields().map(|fields| fields.find(name))
            }
            _ => None,
        };
        let found = match held {
            Some(found) => found.map(Cow::Borrowed),
            None => match select_of(current, key, is_test) {
                Ok(found) => found,
                Err(error) => return Walked::failed(n_found, error),
            },
        };
        let n_found_now = n_found.saturating_add(1);
        match found {
            found if is_test => {
                return Walked {
                    n_charged: n_found_now,
                    end: Ok(Value::Bool(found.is_some())),
                };
            }
            Some(Cow::Borrowed(next)) => current = next,
            Some(Cow::Owned(next)) => {
                let rest = path.get(n_found_now..).unwrap_or_default();
                return walk_held(&next, rest).after(n_found_now);
            }
            None => {
                return Walked::failed(n_found, EvalError::no_such_key(key.to_go_string()));
            }
        }
    }
    let end = match current {
        Value::Error(error) => Err(error.clone()),
        value => Ok(value.clone()),
    };
    Walked {
        n_charged: path.len(),
        end,
    }
}

/// Reports whether selecting `qualifier` of `current` stays within what upstream holds as Go values.
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

/// Returns the field `name` of the Go map `native` that a value is turned into, or for a test whether it is there;
/// `None` if it is absent and `is_optional`.
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
    let found = fields.and_then(|fields| fields.field(name));
    let value = match (is_test, is_optional) {
        (true, false) => return Ok(Some(Cow::Owned(Value::Bool(found.is_some())))),
        // An optional selection goes on with null, and its result is an optional.
        (true, true) => return Ok(found.map(|_| Cow::Owned(Value::Null))),
        (false, true) => match found {
            Some(found) => found.clone(),
            None => return Ok(None),
        },
        (false, false) if fields.is_some() => found.cloned().unwrap_or(Value::Null),
        (false, false) => {
            let message = format!("cannot get field {}", go_quote(name));
            return Err(EvalError::new(message));
        }
    };
    Ok(Some(Cow::Owned(value)))
}

/// Returns the value under `key` in `current`; `None` if it is absent and `is_optional`.
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
