//! Values: what expressions are evaluated to and what variables hold.
//!
//! A [`Value`] is a shared immutable tree: cloning it copies a word or two and counts a reference, so that
//! an object is read once and never copied by an evaluation (see `docs/adr/0007-evaluator.md`). Lists and
//! maps may also be sources that make their elements on access ([`ListSource`], [`MapSource`]); values of
//! types that the language does not know are [`Opaque`].
//!
//! Nothing here recurses without a bound: a value is dropped by a loop, and what walks a value stops at
//! [`MAX_DEPTH`] or before.
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
mod opaque;
mod passed;

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

/// How deep values may be nested for them to be compared.
///
/// Values nest as deep as an expression or an object does, and an object's text is limited long before.
/// Chains of variables, each holding the one before, may nest deeper.
pub const MAX_DEPTH: u32 = 10_000;

/// How deep values are printed in messages.
const MAX_PRINTED_DEPTH: u32 = 100;

/// A point in time.
///
/// Equality is that of the instant; the offset only shows when the timestamp is printed.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970, UTC.
    pub seconds: i64,
    /// Nanoseconds after that, less than a second.
    pub nanos: u32,
    /// How far the zone in which it is printed is ahead of UTC, in seconds.
    pub offset_seconds: i32,
}

impl Timestamp {
    /// The instant, for comparison.
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
/// There is no `PartialEq`: equality of the language is [`Value::equals`].
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
    /// A value of a type that the language does not know.
    Opaque(Arc<dyn Opaque>),
    /// An error that is held as a value, which only optional values do.
    ///
    /// Upstream loses values of some types that pass through a conditional, and keeps the error in the
    /// optional instead.
    Error(EvalError),
}

impl Value {
    /// A string.
    #[must_use]
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// A byte sequence.
    #[must_use]
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// A list of `elements`.
    #[must_use]
    pub fn list(elements: impl Into<Vec<Value>>) -> Self {
        Self::List(List::new(elements.into()))
    }

    /// A map of `entries`; of several with one key the last is kept.
    ///
    /// # Errors
    ///
    /// Go's, for a key that cannot be one.
    pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Result<Self, EvalError> {
        let mut map = Map::default();
        for (key, value) in entries {
            map.insert(key, value)?;
        }
        Ok(Self::Map(map))
    }

    /// An object with the fields `fields`; of several with one name the last is kept.
    #[must_use]
    pub fn object(fields: Vec<(Arc<str>, Value)>) -> Self {
        Self::Map(Map::from_fields(fields))
    }

    /// A value of a type that the language does not know.
    #[must_use]
    pub fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// `optional.of(value)`.
    #[must_use]
    pub fn some(value: Value) -> Self {
        Self::Optional(Optional(Some(Arc::new(Held(value.frozen())))))
    }

    /// `optional.none()`.
    #[must_use]
    pub const fn none() -> Self {
        Self::Optional(Optional(None))
    }

    /// The opaque value as the type `T` that implements it.
    #[must_use]
    pub fn downcast<T: Opaque>(&self) -> Option<&T> {
        match self {
            Self::Opaque(opaque) => (opaque.as_ref() as &dyn std::any::Any).downcast_ref(),
            _ => None,
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of an `int`.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of a `bool`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The list.
    #[must_use]
    pub fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The map.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The type of the value at run time.
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

    /// The number of elements, entries, code points or bytes, of values that have one.
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

    /// The size of the value for the purposes of cost: that of sized values, of what an optional holds,
    /// else one.
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

    /// Reports whether the value is one of `type_`, as far as a signature is checked at run time: only
    /// the first element of a list and the first entry of a map are checked.
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

    /// Returns the traits, by which operators can be applied.
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

    /// The value as it is now: a list or map that grows is copied.
    ///
    /// What is put into a list, map or optional must be frozen, so that nothing can come to hold itself.
    #[must_use]
    pub(crate) fn frozen(self) -> Self {
        match self {
            Self::List(list) if list.is_growing() => Self::List(list.frozen()),
            Self::Map(map) if map.is_growing() => Self::Map(map.frozen()),
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

    /// Reports whether dropping the value may drop further values that nest.
    pub(crate) fn is_nested(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Map(_) | Self::Optional(Optional(Some(_)))
        )
    }
}

/// An optional value: what it holds, if anything.
#[derive(Clone, Debug)]
pub struct Optional(Option<Arc<Held>>);

impl Optional {
    /// Returns the value that it holds.
    #[must_use]
    pub fn get(&self) -> Option<&Value> {
        self.0.as_ref().map(|held| &held.0)
    }

    /// Returns the bytes that only this value uses, with those of a value that only it holds.
    fn own_size(&self) -> usize {
        match &self.0 {
            Some(held) if Arc::strong_count(held) == 1 => {
                let of_content = match &held.0 {
                    // Only the operands of an expression nest optionals, and they are held elsewhere, too.
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

/// Value of an optional, dropped without recursion.
#[derive(Debug)]
struct Held(Value);

impl Drop for Held {
    fn drop(&mut self) {
        if self.0.is_nested() {
            release(vec![std::mem::replace(&mut self.0, Value::Null)]);
        }
    }
}

/// Drops `pending` and all that it alone holds, by a loop.
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

/// The number of code points of `text`.
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
