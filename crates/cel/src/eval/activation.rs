//! Where variables come from.

use std::borrow::Cow;
use std::collections::HashMap;

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
