//! Lists: flat, concatenated, or with elements created on access.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::footprint::{ALLOCATION, GROWN_ELEMENT, size_of_new};
use super::{EvalBudget, EvalError, Value};

/// A list whose elements are created on access, such as an array of a JSON object with a schema.
pub trait ListSource: Any + fmt::Debug + Send + Sync {
    /// Returns the number of elements.
    fn len(&self) -> usize;

    /// Returns true if the list has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the element at `index`. `None` if it is out of range.
    fn get(&self, index: usize) -> Option<Value>;

    /// Returns the elements as a slice. `None` if the list does not store [`Value`]s.
    fn held(&self) -> Option<&[Value]> {
        None
    }

    /// Returns the list without its schema, as after a conversion to a native Go value and back. `None` if the
    /// conversion does not change the list.
    fn native(&self) -> Option<Value> {
        None
    }

    /// Returns true if `other` is equal to this list. `None` if the list has no equality rule of its own.
    fn equals(&self, _other: &Value) -> Option<Result<bool, EvalError>> {
        None
    }

    /// Returns true if the list contains `element`. `None` if the list has no membership rule of its own.
    fn contains(&self, _element: &Value) -> Option<Result<bool, EvalError>> {
        None
    }

    /// Concatenates this list and `other`, within `budget`. `None` if the list has no concatenation rule of its own.
    fn add(&self, _other: &Value, _budget: &EvalBudget) -> Option<Result<Value, EvalError>> {
        None
    }

    /// Returns the error of an access with `index`, a number in range that is not an `int`.
    fn index_error(&self, index: &Value) -> EvalError {
        EvalError::new(format!("unsupported index: {}", index.to_go_string()))
    }

    /// Returns the name of the Go type that represents the list.
    fn go_type(&self) -> &'static str {
        "*common.unstructuredList"
    }

    /// Returns the error of a conversion to the Go type `to`. `None` if the list is converted like other lists.
    fn native_error(&self, _to: &str) -> Option<EvalError> {
        None
    }
}

/// A list.
///
/// Concatenation usually links both operands without copying their elements. Short operands are copied. If the left
/// operand is not shared, the elements of the right operand may be appended to it.
///
/// Source: cel-go `common/types/list.go`.
#[derive(Clone, Debug)]
pub struct List(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Flat(Arc<Elements>),
    Concat(Arc<ConcatList>),
    Source(Arc<dyn ListSource>),
    /// The accumulator of a comprehension; elements are appended in place.
    Mutable(Arc<MutableList>),
}

/// A mutable list. Concatenation modifies it for all references.
///
/// Source: cel-go `common/types/list.go`, `mutableList`.
#[derive(Debug, Default)]
struct MutableList(Mutex<Elements>);

impl MutableList {
    fn lock(&self) -> MutexGuard<'_, Elements> {
        // Elements are appended one at a time, so the list remains valid after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Elements, dropped without recursion.
#[derive(Debug, Default)]
struct Elements(Vec<Value>, Origin);

/// Upstream's representation of the elements: values of the language, or native Go values decoded from JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Language,
    Json,
    /// A concatenation that was copied because it is short. Upstream gives concatenated lists their own Go type and
    /// their own comparison.
    Concatenation,
}

impl Drop for Elements {
    fn drop(&mut self) {
        if self.0.iter().any(Value::is_nested) {
            super::release(std::mem::take(&mut self.0));
        }
    }
}

#[derive(Debug)]
struct ConcatList {
    left: List,
    right: List,
    len: usize,
}

impl Drop for ConcatList {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.left);
        let right = std::mem::take(&mut self.right);
        super::release(vec![Value::List(left), Value::List(right)]);
    }
}

impl Default for List {
    fn default() -> Self {
        Self(Repr::Flat(Arc::default()))
    }
}

fn size_of_elements(n: usize) -> usize {
    n.saturating_mul(size_of::<Value>())
}

/// Concatenations with at most this many elements are copied.
const SHORT: usize = 64;

impl List {
    /// Creates a list of `elements`.
    #[must_use]
    pub fn new(elements: Vec<Value>) -> Self {
        Self(Repr::Flat(Arc::new(Elements(elements, Origin::Language))))
    }

    /// Creates a list decoded from JSON.
    #[must_use]
    pub fn from_json(elements: Vec<Value>) -> Self {
        Self(Repr::Flat(Arc::new(Elements(elements, Origin::Json))))
    }

    /// Returns true if the list was decoded from JSON, rather than created by an expression.
    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(&self.0, Repr::Flat(elements) if elements.1 == Origin::Json)
    }

    /// Creates a list whose elements are created on access.
    #[must_use]
    pub fn from_source(source: Arc<dyn ListSource>) -> Self {
        Self(Repr::Source(source))
    }

    /// Returns the source of the elements. `None` unless they are created on access.
    #[must_use]
    pub fn source(&self) -> Option<&Arc<dyn ListSource>> {
        match &self.0 {
            Repr::Source(source) => Some(source),
            Repr::Flat(_) | Repr::Concat(_) | Repr::Mutable(_) => None,
        }
    }

    /// Creates an empty mutable list, for the accumulator of a comprehension. Concatenation appends to it.
    ///
    /// This list must not be part of another value. Otherwise it could come to contain itself: see [`Value::frozen`].
    #[must_use]
    pub(crate) fn growing() -> Self {
        Self(Repr::Mutable(Arc::default()))
    }

    pub(crate) fn is_mutable(&self) -> bool {
        matches!(self.0, Repr::Mutable(_))
    }

    /// Returns an immutable snapshot of the list.
    #[must_use]
    pub(crate) fn frozen(self) -> Self {
        match self.0 {
            Repr::Mutable(growing) => match Arc::try_unwrap(growing) {
                Ok(owned) => {
                    let elements = owned.0.into_inner().unwrap_or_else(PoisonError::into_inner);
                    Self(Repr::Flat(Arc::new(elements)))
                }
                Err(shared) => Self::new(shared.lock().0.clone()),
            },
            _ => self,
        }
    }

    /// Returns the number of elements.
    ///
    /// The list can have more elements than would fit into memory, because a list can be concatenated with itself
    /// without a copy.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Flat(elements) => elements.0.len(),
            Repr::Concat(joined) => joined.len,
            Repr::Source(source) => source.len(),
            Repr::Mutable(growing) => growing.lock().0.len(),
        }
    }

    /// Returns true if the list has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if both lists are the same list in memory, rather than merely equal.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.address() == other.address()
    }

    /// Returns true if the list is a concatenation.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        match &self.0 {
            Repr::Concat(_) => true,
            Repr::Flat(elements) => elements.1 == Origin::Concatenation,
            Repr::Source(_) | Repr::Mutable(_) => false,
        }
    }

    /// Creates a short concatenation whose elements were copied into one list.
    fn copied(elements: Vec<Value>) -> Self {
        Self(Repr::Flat(Arc::new(Elements(
            elements,
            Origin::Concatenation,
        ))))
    }

    /// Returns the memory owned exclusively by this list, in bytes, excluding its elements. Zero if
    /// the list is shared.
    ///
    /// Elements of a mutable list are counted when they are appended: see [`List::join_size`].
    pub(super) fn own_size(&self) -> usize {
        match &self.0 {
            Repr::Flat(elements) => size_of_new(elements, size_of_elements(elements.0.capacity())),
            Repr::Concat(joined) if Arc::strong_count(joined) == 1 => {
                let of_right = match &joined.right.0 {
                    Repr::Flat(right) => size_of_new(right, size_of_elements(right.0.capacity())),
                    Repr::Concat(_) | Repr::Source(_) | Repr::Mutable(_) => 0,
                };
                size_of::<ConcatList>()
                    .saturating_add(ALLOCATION)
                    .saturating_add(of_right)
            }
            Repr::Concat(_) | Repr::Source(_) | Repr::Mutable(_) => 0,
        }
    }

    /// Returns the bytes by which a mutable list grows when `other` is appended. Zero for other lists, whose
    /// concatenation is a new list.
    pub(crate) fn join_size(&self, other: &Self) -> usize {
        match &self.0 {
            Repr::Mutable(_) => other.len().saturating_mul(GROWN_ELEMENT),
            Repr::Flat(_) | Repr::Concat(_) | Repr::Source(_) => 0,
        }
    }

    /// Returns the bytes that [`List::frozen`] copies.
    pub(super) fn frozen_size(&self) -> usize {
        match &self.0 {
            Repr::Mutable(growing) if Arc::strong_count(growing) > 1 => {
                size_of_elements(self.len())
            }
            _ => 0,
        }
    }

    /// Returns the memory address, which identifies the list.
    pub(super) fn address(&self) -> usize {
        match &self.0 {
            Repr::Flat(elements) => Arc::as_ptr(elements).addr(),
            Repr::Concat(joined) => Arc::as_ptr(joined).addr(),
            Repr::Source(source) => Arc::as_ptr(source).cast::<()>().addr(),
            Repr::Mutable(growing) => Arc::as_ptr(growing).addr(),
        }
    }

    /// Returns the element at `index`. `None` if it is out of range.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value> {
        let (mut list, mut index) = (self, index);
        loop {
            match &list.0 {
                Repr::Flat(elements) => return elements.0.get(index).cloned(),
                Repr::Source(source) => return source.get(index),
                Repr::Mutable(growing) => return growing.lock().0.get(index).cloned(),
                Repr::Concat(joined) => match index.checked_sub(joined.left.len()) {
                    None => list = &joined.left,
                    Some(rest) => (list, index) = (&joined.right, rest),
                },
            }
        }
    }

    /// Returns the elements as a slice. `None` if they are not contiguous in memory.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[Value]> {
        match &self.0 {
            Repr::Flat(elements) => Some(&elements.0),
            Repr::Concat(_) | Repr::Source(_) | Repr::Mutable(_) => None,
        }
    }

    /// Returns the elements as a slice, including those of a custom [`ListSource`]. `None` if they are not contiguous
    /// in memory.
    pub(crate) fn held(&self) -> Option<&[Value]> {
        self.as_slice().or_else(|| self.source()?.held())
    }

    /// Iterates over the elements in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            pending: vec![self],
            current: None,
        }
    }

    /// Returns the elements, copied if they are shared.
    #[must_use]
    pub fn into_vec(self) -> Vec<Value> {
        match self.0 {
            Repr::Flat(elements) => match Arc::try_unwrap(elements) {
                Ok(mut owned) => std::mem::take(&mut owned.0),
                Err(shared) => shared.0.clone(),
            },
            Repr::Concat(_) | Repr::Source(_) | Repr::Mutable(_) => self.iter().collect(),
        }
    }

    /// Concatenates this list and `other`.
    ///
    /// Source: cel-go `common/types/list.go`, `baseList.Add`, `concatList`, `mutableList.Add`.
    #[must_use]
    pub fn join(mut self, other: &Self) -> Self {
        if let Repr::Mutable(growing) = &self.0 {
            // `other` may be this list, so it is read before locking.
            let appended: Vec<Value> = other.iter().collect();
            growing.lock().0.extend(appended);
            return self;
        }
        if other.is_empty() {
            return self;
        }
        if self.is_empty() {
            return other.clone();
        }
        let len = self.len().saturating_add(other.len());
        if let Repr::Flat(elements) = &mut self.0
            && (other.len() <= SHORT || other.as_slice().is_some())
            && let Some(owned) = Arc::get_mut(elements)
        {
            owned.0.extend(other.iter());
            owned.1 = Origin::Concatenation;
            return self;
        }
        if len <= SHORT {
            return Self::copied(self.iter().chain(other.iter()).collect());
        }
        // If both the right operand of this concatenation and `other` are short, merges them to
        // limit the number of nodes.
        if other.len() <= SHORT
            && let Repr::Concat(joined) = &self.0
            && joined.right.len() <= SHORT
        {
            let right = Self::new(joined.right.iter().chain(other.iter()).collect());
            return Self(Repr::Concat(Arc::new(ConcatList {
                left: joined.left.clone(),
                right,
                len,
            })));
        }
        Self(Repr::Concat(Arc::new(ConcatList {
            left: self,
            right: other.clone(),
            len,
        })))
    }

    /// Moves nested values into `pending`, if the list is not shared.
    pub(super) fn release_into(self, pending: &mut Vec<Value>) {
        match self.0 {
            Repr::Flat(elements) => {
                if let Some(mut owned) = Arc::into_inner(elements) {
                    pending.append(&mut owned.0);
                }
            }
            Repr::Concat(joined) => {
                if let Some(mut owned) = Arc::into_inner(joined) {
                    pending.push(Value::List(std::mem::take(&mut owned.left)));
                    pending.push(Value::List(std::mem::take(&mut owned.right)));
                }
            }
            Repr::Mutable(growing) => {
                if let Some(owned) = Arc::into_inner(growing) {
                    let mut owned = owned.0.into_inner().unwrap_or_else(PoisonError::into_inner);
                    pending.append(&mut owned.0);
                }
            }
            Repr::Source(_) => {}
        }
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = Value;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(elements: I) -> Self {
        Self::new(elements.into_iter().collect())
    }
}

/// Iterator over the elements of a list.
#[derive(Debug)]
pub struct Iter<'a> {
    pending: Vec<&'a List>,
    current: Option<(&'a List, usize)>,
}

impl Iterator for Iter<'_> {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((list, index)) = &mut self.current {
                if let Some(element) = list.get(*index) {
                    *index = index.saturating_add(1);
                    return Some(element);
                }
                self.current = None;
            }
            let list = self.pending.pop()?;
            if let Repr::Concat(joined) = &list.0 {
                self.pending.push(&joined.right);
                self.pending.push(&joined.left);
            } else {
                self.current = Some((list, 0));
            }
        }
    }
}
