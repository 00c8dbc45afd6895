//! Values of types that the language does not know.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;

use super::{EvalBudget, EvalError, Value};
use crate::types::Type;

/// Capabilities of a value, which operators require before they are applied.
///
/// Source: cel-go `common/types/traits/traits.go`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits(u16);

impl Traits {
    /// No trait.
    pub const NONE: Self = Self(0);
    /// `+`.
    pub const ADDER: Self = Self(1);
    /// `<` and the like.
    pub const COMPARER: Self = Self(1 << 1);
    /// `in`.
    pub const CONTAINER: Self = Self(1 << 2);
    /// `/`.
    pub const DIVIDER: Self = Self(1 << 3);
    /// `has`.
    pub const FIELD_TESTER: Self = Self(1 << 4);
    /// `[]`.
    pub const INDEXER: Self = Self(1 << 5);
    /// Comprehensions.
    pub const ITERABLE: Self = Self(1 << 6);
    /// `matches`.
    pub const MATCHER: Self = Self(1 << 7);
    /// `%`.
    pub const MODDER: Self = Self(1 << 8);
    /// `*`.
    pub const MULTIPLIER: Self = Self(1 << 9);
    /// Unary `-`.
    pub const NEGATER: Self = Self(1 << 10);
    /// Methods that the value itself dispatches.
    pub const RECEIVER: Self = Self(1 << 11);
    /// `size`.
    pub const SIZER: Self = Self(1 << 12);
    /// `-`.
    pub const SUBTRACTOR: Self = Self(1 << 13);

    /// All traits of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Reports whether all of `other` are among these.
    ///
    /// Source: cel-go `common/types/types.go`, `Type.HasTrait`.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Representation of a value as a key of a Go map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hashed {
    /// Like itself alone: it holds a pointer.
    ByAddress,
    /// Like all values of its type with this text.
    ByText(String),
    /// Go panics: it holds a slice or a function.
    Never,
}

/// A value of a type that the language does not know, such as a quantity.
pub trait Opaque: Any + fmt::Debug + Send + Sync {
    /// The type, whose name `type(x)` shows and which signatures are held against.
    fn type_(&self) -> Type;

    /// Reports whether `other` is equal; an error if the two cannot be compared.
    ///
    /// # Errors
    ///
    /// Most types of the API server give `no such overload` for a value of another type.
    fn equals(&self, other: &Value) -> Result<bool, EvalError>;

    /// As [`Opaque::equals`], for values that hold others, whose comparison uses `budget`.
    ///
    /// # Errors
    ///
    /// As of [`Opaque::equals`], or if the budget is exceeded.
    fn equals_within(&self, other: &Value, _budget: &EvalBudget) -> Result<bool, EvalError> {
        self.equals(other)
    }

    /// The order of this and `other`, for types with [`Traits::COMPARER`].
    ///
    /// # Errors
    ///
    /// `no such overload` if the two cannot be compared.
    fn compare(&self, _other: &Value) -> Result<Ordering, EvalError> {
        Err(EvalError::no_such_overload())
    }

    /// Returns the traits, by which operators can be applied.
    fn traits(&self) -> Traits {
        Traits::NONE
    }

    /// The value converted to `to` (a conversion to its own type and to `type` need not be handled).
    ///
    /// # Errors
    ///
    /// `type conversion error` where there is no such conversion.
    fn convert_to(&self, to: &Type) -> Result<Value, EvalError> {
        Err(EvalError::conversion(&self.type_(), to))
    }

    /// The type that `type(x)` gives.
    ///
    /// # Errors
    ///
    /// For values whose type cannot be asked for.
    fn own_type(&self) -> Result<Type, EvalError> {
        Ok(self.type_())
    }

    /// Returns the value's representation as a key of a Go map.
    fn hashed(&self) -> Hashed {
        Hashed::ByAddress
    }

    /// The size, for costs and for `size`, of types with [`Traits::SIZER`].
    fn size(&self) -> Option<usize> {
        None
    }

    /// Returns the bytes that the value uses besides its own, such as those of its texts.
    fn heap_size(&self) -> usize {
        0
    }

    /// The value as a text, as Go prints it (`fmt.Stringer`), if the type has one.
    fn text(&self) -> Option<String> {
        None
    }

    /// Go's name for what the value wraps (`*resource.Quantity`), for messages that show it.
    fn native_type(&self) -> &'static str;

    /// Go's name for the type of the value itself (`cel.Quantity`), for messages that show it.
    fn go_type(&self) -> &'static str {
        self.native_type()
    }

    /// Converts a Kubernetes value to a Go value and back, as the branches of a conditional with an
    /// optional result are; an error if it does not survive, and `None` if it is the same after it.
    ///
    /// # Errors
    ///
    /// The error that upstream puts into the optional instead of the value.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `conditionalAttribute`; `common/types/provider.go`,
    /// `nativeToValue`.
    fn through_native(&self, _budget: &EvalBudget) -> Result<Option<Value>, EvalError> {
        Err(EvalError::new(format!(
            "unsupported conversion to ref.Val: ({}){}",
            self.native_type(),
            self.text().unwrap_or_default()
        )))
    }

    /// The value under `key`, for types that are selected from and indexed.
    ///
    /// # Errors
    ///
    /// For a key that the type does not have.
    ///
    /// Source: cel-go `common/types/traits/indexer.go`.
    fn index(&self, _key: &Value) -> Option<Result<Value, EvalError>> {
        None
    }

    /// Reports whether there is something under `key`, for types that are selected from and indexed.
    ///
    /// # Errors
    ///
    /// For a key that the type does not have.
    ///
    /// Source: cel-go `common/types/traits/field_tester.go`.
    fn is_set(&self, _key: &Value) -> Result<bool, EvalError> {
        Ok(true)
    }

    /// Reports whether it is the zero value of its type, for `optional.ofNonZeroValue`.
    fn is_zero(&self) -> bool {
        false
    }
}
