//! Values that pass through Go values.

use super::{EvalError, Value};

impl Value {
    /// The value as it comes back from a Go value, as what an optional holds does when it is selected from.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `applyQualifiers` (`optObj.GetValue().Value()`);
    /// `common/types/provider.go`, `nativeToValue`.
    #[must_use]
    pub fn through_native(&self) -> Self {
        let mut value = self;
        while let Self::Optional(optional) = value {
            match optional.get() {
                Some(held) => value = held,
                None => return Self::Null,
            }
        }
        match value {
            Self::Type(of) => Self::from(of.type_name()),
            Self::Opaque(opaque) => match opaque.through_native() {
                Ok(native) => native.unwrap_or_else(|| value.clone()),
                Err(error) => Self::Error(error),
            },
            Self::Error(error) => Self::Error(EvalError::new(format!(
                "unsupported conversion to ref.Val: (*errors.errorString){error}"
            ))),
            Self::List(list) if list.is_joined() => Self::list(
                list.iter()
                    .map(|element| element.through_native())
                    .collect::<Vec<_>>(),
            ),
            Self::List(list) => list
                .source()
                .and_then(|source| source.native())
                .unwrap_or_else(|| value.clone()),
            Self::Map(map) => map
                .source()
                .and_then(|source| source.native())
                .unwrap_or_else(|| value.clone()),
            plain => plain.clone(),
        }
    }
}
