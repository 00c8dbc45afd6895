//! Where variables come from.

use std::borrow::Cow;
use std::sync::Arc;

use crate::value::{EvalError, Value};

/// The variables of an evaluation.
///
/// Source: cel-go `interpreter/activation.go`, `Activation`.
pub trait Activation: Sync {
    /// The value of the variable `name`, which may be dotted, or `None` if it is not bound.
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// The value to which the first of `keys`, or all of them, lead in the variable `name`; of the last of all only
    /// whether it is there, if `is_test`.
    ///
    /// `None` where there is no shorter way to it than through the value of the variable.
    fn resolve_part(&self, _name: &str, _keys: &[Arc<str>], _is_test: bool) -> Option<Part<'_>> {
        None
    }
}

/// The end of a chain of keys, one selected after the other.
#[derive(Debug)]
pub enum Part<'a> {
    /// The first so many keys lead to this value. Where the last is only tested for, it may be any.
    Value(usize, Cow<'a, Value>),
    /// There is nothing under the key after the first so many.
    Absent(usize),
    /// The key after the first so many cannot be selected, with this error.
    Failed(usize, EvalError),
}

/// Variables by name: a few of them, as in an [`Env`](crate::env::Env).
#[derive(Clone, Debug, Default)]
pub struct Bindings(Vec<(String, Value)>);

impl Bindings {
    /// Binds `name` to `value`, in the place of what it was bound to.
    pub fn bind(&mut self, name: impl Into<String>, value: Value) {
        let name = name.into();
        match self.0.iter_mut().find(|(bound, _)| *bound == name) {
            Some((_, bound)) => *bound = value,
            None => self.0.push((name, value)),
        }
    }
}

impl FromIterator<(String, Value)> for Bindings {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(bindings: I) -> Self {
        let mut all = Self::default();
        for (name, value) in bindings {
            all.bind(name, value);
        }
        all
    }
}

impl Activation for Bindings {
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>> {
        let mut bindings = self.0.iter();
        bindings
            .find(|(bound, _)| *bound == name)
            .map(|(_, value)| Cow::Borrowed(value))
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
