//! Runtime values.
//!
//! A [`Value`] is a shared immutable tree. Cloning copies a word or two and increments a reference count. An object
//! is therefore decoded once and never copied by an evaluation (see `docs/adr/0007-evaluator.md`). Lists and maps may
//! be backed by sources that create elements on access ([`ListSource`], [`MapSource`]). Values of types that are not
//! part of the language are [`Opaque`].
//!
//! Recursion is bounded: values are dropped by a loop, and traversals stop at [`MAX_DEPTH`] or before.
//!
//! Source: cel-go `common/types` (`ref.Val` and the types that implement it).

mod budget;
pub mod civil;
mod compare;
mod convert;
mod equality;
mod error;
mod footprint;
mod go;
mod json;
mod list;
mod map;
mod native;
mod opaque;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use budget::{EvalBudget, Exceeded, Mark};
pub(crate) use compare::{double_to_int, double_to_uint};
pub use convert::parse_double;
pub use error::{ErrorKind, EvalError};
pub(crate) use footprint::{ALLOCATION, GROWN_ENTRY};
pub use go::{format_double, go_quote};
pub use list::{List, ListSource};
pub(crate) use map::Key;
pub use map::{Map, MapSource};
pub use opaque::{Hashed, Opaque, Traits};

use super::types::{Primitive, Type};

/// Maximum nesting depth of values that can be compared.
///
/// Objects and expressions are far less deep, because of their size and depth limits. The values of variables may be
/// deeper, if each variable contains the previous one.
pub const MAX_DEPTH: u32 = 10_000;

/// Maximum nesting depth printed in messages.
const MAX_PRINTED_DEPTH: u32 = 100;

/// A point in time.
///
/// Equality compares instants. The offset affects only how the timestamp is printed.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Offset of the time zone used for printing, in seconds ahead of UTC.
    pub offset_seconds: i32,
}

impl Timestamp {
    /// Returns the instant, for comparison.
    #[must_use]
    pub fn instant(self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.instant() == other.instant()
    }
}

impl Eq for Timestamp {}

/// A value.
///
/// `Value` does not implement `PartialEq`. The language's equality is [`Value::equals`].
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// A `bool`.
    Bool(bool),
    /// An `int`.
    Int(i64),
    /// A `uint`.
    Uint(u64),
    /// A `double`.
    Double(f64),
    /// A `string`.
    String(Arc<str>),
    /// A `bytes`.
    Bytes(Arc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A list.
    List(List),
    /// A map, or an object with fields.
    Map(Map),
    /// A type.
    Type(Arc<Type>),
    /// An optional value.
    Optional(Optional),
    /// A value of a type that is not part of the language.
    Opaque(Arc<dyn Opaque>),
    /// An error stored as a value. It occurs only inside an optional.
    ///
    /// Upstream cannot pass values of some types through a conditional, and stores the error in the
    /// optional instead.
    Error(EvalError),
}

impl Value {
    /// Creates a string.
    #[must_use]
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// Creates a byte sequence.
    #[must_use]
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// Creates a list of `elements`.
    #[must_use]
    pub fn list(elements: impl Into<Vec<Value>>) -> Self {
        Self::List(List::new(elements.into()))
    }

    /// Creates a map of `entries`. The last of several entries with the same key wins.
    ///
    /// # Errors
    ///
    /// Returns Go's error for a value that cannot be a key.
    pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Result<Self, EvalError> {
        let mut map = Map::default();
        for (key, value) in entries {
            map.insert(key, value)?;
        }
        Ok(Self::Map(map))
    }

    /// Creates an object with the given fields. The last of several fields with the same name wins.
    #[must_use]
    pub fn object(fields: Vec<(Arc<str>, Value)>) -> Self {
        Self::Map(Map::from_fields(fields))
    }

    /// Creates a value of a type that is not part of the language.
    #[must_use]
    pub fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// Creates `optional.of(value)`.
    #[must_use]
    pub fn some(value: Value) -> Self {
        Self::Optional(Optional(Some(Arc::new(Held(value.frozen())))))
    }

    /// Creates `optional.none()`.
    #[must_use]
    pub const fn none() -> Self {
        Self::Optional(Optional(None))
    }

    /// Downcasts an opaque value to its implementing type `T`. `None` if it has a different type.
    #[must_use]
    pub fn downcast<T: Opaque>(&self) -> Option<&T> {
        match self {
            Self::Opaque(opaque) => (opaque.as_ref() as &dyn std::any::Any).downcast_ref(),
            _ => None,
        }
    }

    /// Returns the contents of a string. `None` for other types.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of an `int`. `None` for other types.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the value of a `bool`. `None` for other types.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the list. `None` for other types.
    #[must_use]
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the map. `None` for other types.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the runtime type of the value.
    ///
    /// Source: cel-go `ref.Val.Type`.
    #[must_use]
    pub fn type_(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Duration(_) => Type::Duration,
            Self::Timestamp(_) => Type::Timestamp,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(map) => map.type_(),
            Self::Type(_) => Type::Type(None),
            Self::Optional(_) => Type::opaque(super::types::OPTIONAL_TYPE, Vec::new()),
            Self::Opaque(opaque) => opaque.type_(),
            Self::Error(_) => Type::opaque("error", Vec::new()),
        }
    }

    /// Returns the number of elements, entries, code points or bytes. `None` for types without a size.
    ///
    /// Source: cel-go `traits.Sizer`.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        match self {
            Self::String(text) => Some(count_code_points(text)),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::List(list) => Some(list.len()),
            Self::Map(map) => Some(map.len()),
            Self::Opaque(opaque) => opaque.size(),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Duration(_)
            | Self::Timestamp(_)
            | Self::Type(_)
            | Self::Optional(_)
            | Self::Error(_) => None,
        }
    }

    /// Returns the size used by cost calculations. An optional has the size of its content. A value without a size
    /// has size 1.
    ///
    /// Source: cel-go `interpreter/runtimecost.go`, `actualSize`.
    #[must_use]
    pub fn cost_size(&self) -> u64 {
        let mut value = self;
        while let Self::Optional(optional) = value
            && let Some(held) = optional.get()
        {
            value = held;
        }
        value
            .size()
            .map_or(1, |size| u64::try_from(size).unwrap_or(u64::MAX))
    }

    /// Returns true if the value matches `type_` by the rules for checking signatures at run time. In a list or map,
    /// only the first element or entry is checked.
    ///
    /// Source: cel-go `common/types/types.go`, `Type.IsAssignableRuntimeType`.
    #[must_use]
    pub fn is_of(&self, type_: &Type) -> bool {
        match (self, type_) {
            (_, Type::Dyn | Type::Any | Type::Param(_))
            | (Self::Null, Type::Null | Type::Wrapper(_))
            | (Self::Bool(_), Type::Bool | Type::Wrapper(Primitive::Bool))
            | (Self::Int(_), Type::Int | Type::Wrapper(Primitive::Int))
            | (Self::Uint(_), Type::Uint | Type::Wrapper(Primitive::Uint))
            | (Self::Double(_), Type::Double | Type::Wrapper(Primitive::Double))
            | (Self::String(_), Type::String | Type::Wrapper(Primitive::String))
            | (Self::Bytes(_), Type::Bytes | Type::Wrapper(Primitive::Bytes))
            | (Self::Duration(_), Type::Duration)
            | (Self::Timestamp(_), Type::Timestamp)
            | (Self::Type(_), Type::Type(_)) => true,
            (Self::List(list), Type::List(element)) => {
                element.is_dyn()
                    || matches!(**element, Type::Param(_))
                    || list.get(0).is_none_or(|first| first.is_of(element))
            }
            (Self::Map(map), Type::Map(entry)) => {
                map.is_plain() && map.first_is_of(&entry.0, &entry.1)
            }
            (Self::Map(map), Type::Struct(object)) => map.type_().type_name() == *object.name,
            (Self::Optional(_), Type::Opaque(opaque)) => {
                *opaque.name == *super::types::OPTIONAL_TYPE
            }
            (Self::Opaque(value), Type::Opaque(_) | Type::Struct(_)) => {
                value.type_().type_name() == type_.type_name()
            }
            _ => false,
        }
    }

    /// Returns the traits, which determine the applicable operators.
    ///
    /// Source: cel-go `common/types/types.go`, the trait masks of the types.
    #[must_use]
    pub fn traits(&self) -> Traits {
        const NUMBER: Traits = Traits::ADDER
            .and(Traits::COMPARER)
            .and(Traits::DIVIDER)
            .and(Traits::MULTIPLIER)
            .and(Traits::SUBTRACTOR);
        match self {
            Self::Bool(_) => Traits::COMPARER.and(Traits::NEGATER),
            Self::Int(_) => NUMBER.and(Traits::MODDER).and(Traits::NEGATER),
            Self::Uint(_) => NUMBER.and(Traits::MODDER),
            Self::Double(_) => NUMBER.and(Traits::NEGATER),
            Self::String(_) => Traits::ADDER
                .and(Traits::COMPARER)
                .and(Traits::MATCHER)
                .and(Traits::RECEIVER)
                .and(Traits::SIZER),
            Self::Bytes(_) => Traits::ADDER.and(Traits::COMPARER).and(Traits::SIZER),
            Self::Duration(_) => Traits::ADDER
                .and(Traits::COMPARER)
                .and(Traits::NEGATER)
                .and(Traits::RECEIVER)
                .and(Traits::SUBTRACTOR),
            Self::Timestamp(_) => Traits::ADDER
                .and(Traits::COMPARER)
                .and(Traits::RECEIVER)
                .and(Traits::SUBTRACTOR),
            Self::List(_) => Traits::ADDER
                .and(Traits::CONTAINER)
                .and(Traits::INDEXER)
                .and(Traits::ITERABLE)
                .and(Traits::SIZER),
            Self::Map(map) => map.traits(),
            Self::Opaque(opaque) => opaque.traits(),
            Self::Null | Self::Type(_) | Self::Optional(_) | Self::Error(_) => Traits::NONE,
        }
    }

    /// Returns an immutable snapshot of the value: a mutable list or map is copied.
    ///
    /// A value must be frozen before it becomes part of a list, map or optional. Otherwise a value could contain
    /// itself.
    #[must_use]
    pub(crate) fn frozen(self) -> Self {
        match self {
            Self::List(list) if list.is_mutable() => Self::List(list.frozen()),
            Self::Map(map) if map.is_mutable() => Self::Map(map.frozen()),
            other => other,
        }
    }
}

impl Value {
    /// Returns the bytes that [`Value::frozen`] copies.
    pub(crate) fn frozen_size(&self) -> usize {
        match self {
            Self::List(list) => list.frozen_size(),
            Self::Map(map) => map.frozen_size(),
            _ => 0,
        }
    }

    /// Returns true if dropping the value may drop further nested values.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Map(_) | Self::Optional(Optional(Some(_)))
        )
    }
}

/// An optional value.
#[derive(Clone, Debug)]
pub struct Optional(Option<Arc<Held>>);

impl Optional {
    /// Returns the contained value. `None` if it is absent.
    #[must_use]
    pub fn get(&self) -> Option<&Value> {
        self.0.as_ref().map(|held| &held.0)
    }

    /// Returns the memory owned exclusively by this optional, in bytes. This includes the content, unless the content
    /// is shared.
    fn own_size(&self) -> usize {
        match &self.0 {
            Some(held) if Arc::strong_count(held) == 1 => {
                let of_content = match &held.0 {
                    // The expression that created the nested optional refers to it too, so its memory is shared.
                    Value::Optional(_) => 0,
                    content => content.own_size(),
                };
                size_of::<Value>()
                    .saturating_add(footprint::ALLOCATION)
                    .saturating_add(of_content)
            }
            _ => 0,
        }
    }
}

/// Content of an optional, dropped without recursion.
#[derive(Debug)]
struct Held(Value);

impl Drop for Held {
    fn drop(&mut self) {
        if self.0.is_nested() {
            release(vec![std::mem::replace(&mut self.0, Value::Null)]);
        }
    }
}

/// Drops `pending` without recursion, including nested values that are not shared.
fn release(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::List(list) => list.release_into(&mut pending),
            Value::Map(map) => map.release_into(&mut pending),
            Value::Optional(Optional(Some(held))) => {
                if let Some(mut owned) = Arc::into_inner(held) {
                    pending.push(std::mem::replace(&mut owned.0, Value::Null));
                }
            }
            _ => {}
        }
    }
}

/// Returns the number of code points of a string.
#[must_use]
pub fn count_code_points(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Uint(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}
