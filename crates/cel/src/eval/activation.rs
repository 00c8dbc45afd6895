//! Where variables come from.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::value::{EvalError, Value};

/// The variables of an evaluation.
///
/// Source: cel-go `interpreter/activation.go`, `Activation`.
pub trait Activation: Sync {
    /// The value of the variable `name`, which may be dotted, or `None` if it is not bound.
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// The field `field` of the variable `name`, which has no such field where it is `Some(Ok(None))`.
    ///
    /// `None` where there is no shorter way to the field than through the value of the variable, which it
    /// then is selected from.
    fn resolve_field(&self, _name: &str, _field: &str) -> Option<FieldResult<'_>> {
        None
    }

    /// The value to which the first of `keys`, or all of them, lead in the variable `name`; of the last of all only
    /// whether it is there, if `is_test`.
    ///
    /// `None` where there is no shorter way to it than through the value of the variable.
    fn resolve_part(&self, _name: &str, _keys: &[Arc<str>], _is_test: bool) -> Option<Part> {
        None
    }
}

/// The end of a chain of keys, one selected after the other.
#[derive(Debug)]
pub enum Part {
    /// The first so many keys lead to this value. Where the last is only tested for, it may be any.
    Value(usize, Value),
    /// There is nothing under the key after the first so many.
    Absent(usize),
}

/// A field of a variable, if the variable has it.
pub type FieldResult<'a> = Result<Option<Cow<'a, Value>>, EvalError>;

/// Variables by name.
#[derive(Clone, Debug, Default)]
pub struct Bindings(HashMap<String, Value>);

impl Bindings {
    /// Binds `name` to `value`.
    pub fn bind(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }
}

impl FromIterator<(String, Value)> for Bindings {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(bindings: I) -> Self {
        Self(bindings.into_iter().collect())
    }
}

impl Activation for Bindings {
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.0.get(name).map(Cow::Borrowed)
    }
}

/// A few variables, in order.
impl Activation for [(&str, Value)] {
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.iter()
            .find(|(bound, _)| *bound == name)
            .map(|(_, value)| Cow::Borrowed(value))
    }
}

impl<const N: usize> Activation for [(&str, Value); N] {
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.as_slice().resolve(name)
    }
}
