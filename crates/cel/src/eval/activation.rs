//! Variable bindings of an evaluation.

use std::borrow::Cow;
use std::sync::Arc;

use crate::value::{EvalError, Value};

/// Source of variable values.
///
/// Source: cel-go `interpreter/activation.go`, `Activation`.
pub trait Activation: Sync {
    /// Returns the value of the variable `name`, which may be qualified. `None` if it is unbound.
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>>;

    /// Returns true if upstream represents the variables as native Go values, rather than CEL values. Messages then
    /// contain the names of Go types.
    fn is_native(&self) -> bool {
        true
    }

    /// Selects the fields `keys` one after another, starting from the variable `name`: `["a", "b"]` for `name.a.b`. May
    /// stop before the last key. If `is_test` is true, the last key is only tested for presence.
    ///
    /// Returns `None` if the activation does not support this for the variable. The caller must then call
    /// [`Activation::resolve`].
    fn resolve_part(&self, _name: &str, _keys: &[Arc<str>], _is_test: bool) -> Option<Part<'_>> {
        None
    }
}

/// Result of selecting a chain of keys.
#[derive(Debug)]
pub enum Part<'a> {
    /// The number of selected keys, and the selected value. After a presence test, the value is arbitrary.
    Value(usize, Cow<'a, Value>),
    /// The number of present keys. The key after them is absent.
    Absent(usize),
    /// The number of selected keys, and the error of selecting the key after them.
    Failed(usize, EvalError),
}

/// A small map from variable names to values.
#[derive(Clone, Debug, Default)]
pub struct Bindings(Vec<(String, Value)>);

impl Bindings {
    /// Binds `name` to `value`, replacing an earlier binding.
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

/// Variables as pairs of a name and a value, searched in order.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binding_replaces_earlier_binding_of_same_name() {
        let mut bindings = Bindings::default();
        bindings.bind("a", Value::Int(1));
        bindings.bind("b", Value::Int(2));
        bindings.bind("a", Value::Int(3));
        let value = |name| bindings.resolve(name).and_then(|value| value.as_int());
        assert_eq!(
            (value("a"), value("b"), value("c")),
            (Some(3), Some(2), None)
        );
    }
}
