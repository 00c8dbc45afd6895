//! Converts values to native Go values and back.

use super::{EvalBudget, EvalError, Value};

impl Value {
    /// Returns the value after a conversion to a native Go value and back. Upstream converts the content of an
    /// optional in this way before a selection.
    ///
    /// # Errors
    ///
    /// Returns an error if copying a list exceeds `budget`.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `applyQualifiers` (`optObj.GetValue().Value()`);
    /// `common/types/provider.go`, `nativeToValue`.
    pub fn through_native(&self, budget: &EvalBudget) -> Result<Self, EvalError> {
        let mut value = self;
        while let Self::Optional(optional) = value {
            match optional.get() {
                Some(held) => value = held,
                None => return Ok(Self::Null),
            }
        }
        Ok(match value {
            Self::Type(of) => Self::from(of.type_name()),
            Self::Opaque(opaque) => match opaque.through_native(budget) {
                Ok(native) => native.unwrap_or_else(|| value.clone()),
                Err(error) if error.ends_evaluation() => return Err(error),
                Err(error) => Self::Error(error),
            },
            Self::Error(error) => Self::Error(EvalError::new(format!(
                "unsupported conversion to ref.Val: (*errors.errorString){error}"
            ))),
            Self::List(list) if list.is_joined() => {
                budget.allocate(list.len().saturating_mul(size_of::<Self>()))?;
                let elements = list.iter().map(|element| element.through_native(budget));
                Self::list(elements.collect::<Result<Vec<_>, _>>()?)
            }
            Self::List(list) => list
                .source()
                .and_then(|source| source.native())
                .unwrap_or_else(|| value.clone()),
            Self::Map(map) => map
                .source()
                .and_then(|source| source.native())
                .unwrap_or_else(|| value.clone()),
            plain => plain.clone(),
        })
    }
}
