//! Where variables come from.

use std::collections::HashMap;

use crate::cel::value::Value;

/// The variables of an evaluation.
///
/// Source: cel-go `interpreter/activation.go`, `Activation`.
pub trait Activation: Sync {
    /// The value of the variable `name`, which may be dotted, or `None` if it is not bound.
    fn resolve(&self, name: &str) -> Option<Value>;
}

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
    fn resolve(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
}

/// A few variables, in order.
impl Activation for [(&str, Value)] {
    fn resolve(&self, name: &str) -> Option<Value> {
        self.iter()
            .find(|(bound, _)| *bound == name)
            .map(|(_, value)| value.clone())
    }
}

impl<const N: usize> Activation for [(&str, Value); N] {
    fn resolve(&self, name: &str) -> Option<Value> {
        self.as_slice().resolve(name)
    }
}
