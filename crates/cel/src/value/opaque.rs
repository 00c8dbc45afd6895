//! Values of types that are not part of the language.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;

use super::{EvalBudget, EvalError, Value};
use crate::types::Type;

/// Capabilities of a value. An operator requires certain traits of its operands.
///
/// Source: cel-go `common/types/traits/traits.go`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits(u16);

impl Traits {
    /// No traits.
    pub const NONE: Self = Self(0);
    /// Supports `+`.
    pub const ADDER: Self = Self(1);
    /// Supports `<`, `<=`, `>`, `>=`.
    pub const COMPARER: Self = Self(1 << 1);
    /// Supports `in`.
    pub const CONTAINER: Self = Self(1 << 2);
    /// Supports `/`.
    pub const DIVIDER: Self = Self(1 << 3);
    /// Supports `has`.
    pub const FIELD_TESTER: Self = Self(1 << 4);
    /// Supports `[]`.
    pub const INDEXER: Self = Self(1 << 5);
    /// Supports comprehensions.
    pub const ITERABLE: Self = Self(1 << 6);
    /// Supports `matches`.
    pub const MATCHER: Self = Self(1 << 7);
    /// Supports `%`.
    pub const MODDER: Self = Self(1 << 8);
    /// Supports `*`.
    pub const MULTIPLIER: Self = Self(1 << 9);
    /// Unary `-`.
    pub const NEGATER: Self = Self(1 << 10);
    /// Methods that the value dispatches itself.
    pub const RECEIVER: Self = Self(1 << 11);
    /// Supports `size`.
    pub const SIZER: Self = Self(1 << 12);
    /// Supports `-`.
    pub const SUBTRACTOR: Self = Self(1 << 13);

    /// Returns the union of two sets of traits.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if all traits of `other` are present.
    ///
    /// Source: cel-go `common/types/types.go`, `Type.HasTrait`.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Behavior of a value as a key of a Go map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hashed {
    /// Equal only to itself, because the value holds a pointer.
    ByAddress,
    /// Equal to the values of the same type with this string.
    ByText(String),
    /// Not usable as a key. Go panics, because the value holds a slice or a function.
    Never,
}

/// A value of a type that is not part of the language, such as a quantity.
pub trait Opaque: Any + fmt::Debug + Send + Sync {
    /// Returns the type that `type(x)` shows and that is compared with overload signatures.
    fn type_(&self) -> Type;

    /// Returns true if `other` is equal to this value.
    ///
    /// # Errors
    ///
    /// Returns an error if the two values cannot be compared. Most types of the API server return `no such overload`
    /// for a value of a different type.
    fn equals(&self, other: &Value) -> Result<bool, EvalError>;

    /// Returns true if `other` is equal to this value, like [`Opaque::equals`]. Comparisons of contained values are
    /// charged to `budget`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Opaque::equals`], and an error if the budget is exhausted.
    fn equals_within(&self, other: &Value, _budget: &EvalBudget) -> Result<bool, EvalError> {
        self.equals(other)
    }

    /// Compares this value with `other`, for types with [`Traits::COMPARER`].
    ///
    /// # Errors
    ///
    /// Returns `no such overload` if the two values cannot be compared.
    fn compare(&self, _other: &Value) -> Result<Ordering, EvalError> {
        Err(EvalError::no_such_overload())
    }

    /// Returns the traits, which determine the applicable operators.
    fn traits(&self) -> Traits {
        Traits::NONE
    }

    /// Converts the value to `to`. The caller handles conversions to the type of the value and to `type`.
    ///
    /// # Errors
    ///
    /// Returns `type conversion error` if the conversion does not exist.
    fn convert_to(&self, to: &Type) -> Result<Value, EvalError> {
        Err(EvalError::conversion(&self.type_(), to))
    }

    /// Returns the result of `type(x)`.
    ///
    /// # Errors
    ///
    /// Returns an error for values without a type at run time.
    fn own_type(&self) -> Result<Type, EvalError> {
        Ok(self.type_())
    }

    /// Returns the behavior of the value as a key of a Go map.
    fn hashed(&self) -> Hashed {
        Hashed::ByAddress
    }

    /// Returns the size, for types with [`Traits::SIZER`]. Costs and the function `size` use it.
    fn size(&self) -> Option<usize> {
        None
    }

    /// Returns the heap memory of the value in bytes, such as that of its strings.
    fn heap_size(&self) -> usize {
        0
    }

    /// Returns the string that Go prints (`fmt.Stringer`). `None` if the type does not implement it.
    fn text(&self) -> Option<String> {
        None
    }

    /// Returns Go's type name of the wrapped native value (`*resource.Quantity`), for messages.
    fn native_type(&self) -> &'static str;

    /// Returns Go's type name of the value itself (`cel.Quantity`), for messages.
    fn go_type(&self) -> &'static str {
        self.native_type()
    }

    /// Converts the value to a native Go value and back. Upstream does this with the branches of a conditional that
    /// returns an optional. `None` if the conversion does not change the value.
    ///
    /// # Errors
    ///
    /// Returns the error that upstream stores in the optional instead of the value.
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

    /// Returns the value under `key`. `None` if the type does not support indexing.
    ///
    /// # Errors
    ///
    /// Returns an error for a key that the type does not have.
    ///
    /// Source: cel-go `common/types/traits/indexer.go`.
    fn index(&self, _key: &Value) -> Option<Result<Value, EvalError>> {
        None
    }

    /// Returns true if `key` is present, for types that support field selection.
    ///
    /// # Errors
    ///
    /// Returns an error for a key that the type does not have.
    ///
    /// Source: cel-go `common/types/traits/field_tester.go`.
    fn is_set(&self, _key: &Value) -> Result<bool, EvalError> {
        Ok(true)
    }

    /// Returns true if the value is the zero value of its type, for `optional.ofNonZeroValue`.
    fn is_zero(&self) -> bool {
        false
    }
}
