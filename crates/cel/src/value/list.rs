//! Lists: flat, joined, or made on access.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::footprint::{ALLOCATION, GROWN_ELEMENT, size_of_new};
use super::{EvalError, Value};

/// A list whose elements are made on access, such as an array of a JSON object with a schema.
pub trait ListSource: Any + fmt::Debug + Send + Sync {
    /// The number of elements.
    fn len(&self) -> usize;

    /// Reports whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`, or `None` past the end.
    fn get(&self, index: usize) -> Option<Value>;

    /// The same without a schema, as it is when it passes through a Go value.
    fn native(&self) -> Option<Value> {
        None
    }

    /// Reports whether `other` is equal, if the list has an equality of its own.
    fn equals(&self, _other: &Value) -> Option<Result<bool, EvalError>> {
        None
    }

    /// Reports whether `element` is in the list, if the list has a rule of its own.
    fn contains(&self, _element: &Value) -> Option<Result<bool, EvalError>> {
        None
    }

    /// This list and `other` joined, if the list has a rule of its own.
    fn add(&self, _other: &Value) -> Option<Result<Value, EvalError>> {
        None
    }
}

/// A list.
///
/// Joining two lists copies neither, unless they are short, or the left one is not used elsewhere.
///
/// Source: cel-go `common/types/list.go`.
#[derive(Clone, Debug)]
pub struct List(Repr);

#[derive(Clone, Debug)]
enum Repr {
    Flat(Arc<Elements>),
    Joined(Arc<Joined>),
    Source(Arc<dyn ListSource>),
    /// The accumulator of a comprehension, to which elements are appended in place.
    Growing(Arc<Growing>),
}

/// A list that grows: joining it to another changes it, for all that hold it.
///
/// Source: cel-go `common/types/list.go`, `mutableList`.
#[derive(Debug, Default)]
struct Growing(Mutex<Elements>);

impl Growing {
    fn lock(&self) -> MutexGuard<'_, Elements> {
        // Elements are appended one by one, so that a panic in between leaves a list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Elements that are dropped without recursion.
#[derive(Debug, Default)]
struct Elements(Vec<Value>, Origin);

/// Upstream's representation of the elements: values of the language, or those of Go that JSON is read into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Language,
    Json,
    /// Two lists joined, copied because they are short. Joined lists differ in their Go type and in how they
    /// compare.
    Joined,
}

impl Drop for Elements {
    fn drop(&mut self) {
        if self.0.iter().any(Value::is_nested) {
            super::release(std::mem::take(&mut self.0));
        }
    }
}

/// Two lists, one after the other.
#[derive(Debug)]
struct Joined {
    left: List,
    right: List,
    len: usize,
}

impl Drop for Joined {
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

/// Lists of no more elements than these together are copied when they are joined.
const SHORT: usize = 64;

impl List {
    /// A list of `elements`.
    #[must_use]
    pub fn new(elements: Vec<Value>) -> Self {
        Self(Repr::Flat(Arc::new(Elements(elements, Origin::Language))))
    }

    /// A list of JSON.
    #[must_use]
    pub fn of_json(elements: Vec<Value>) -> Self {
        Self(Repr::Flat(Arc::new(Elements(elements, Origin::Json))))
    }

    /// Reports whether this is a list of JSON, not one that an expression has made.
    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(&self.0, Repr::Flat(elements) if elements.1 == Origin::Json)
    }

    /// A list whose elements are made on access.
    #[must_use]
    pub fn from_source(source: Arc<dyn ListSource>) -> Self {
        Self(Repr::Source(source))
    }

    /// The source of the elements, if they are made on access.
    #[must_use]
    pub fn source(&self) -> Option<&Arc<dyn ListSource>> {
        match &self.0 {
            Repr::Source(source) => Some(source),
            Repr::Flat(_) | Repr::Joined(_) | Repr::Growing(_) => None,
        }
    }

    /// An empty list that grows when another is joined to it, for the accumulator of a comprehension.
    ///
    /// It must not be held by another value, or else it may come to hold itself: see [`Value::frozen`].
    #[must_use]
    pub(crate) fn growing() -> Self {
        Self(Repr::Growing(Arc::default()))
    }

    /// Reports whether the list grows.
    pub(crate) fn is_growing(&self) -> bool {
        matches!(self.0, Repr::Growing(_))
    }

    /// The list as it is now, if it grows.
    #[must_use]
    pub(crate) fn frozen(self) -> Self {
        match self.0 {
            Repr::Growing(growing) => match Arc::try_unwrap(growing) {
                Ok(owned) => {
                    let elements = owned.0.into_inner().unwrap_or_else(PoisonError::into_inner);
                    Self(Repr::Flat(Arc::new(elements)))
                }
                Err(shared) => Self::new(shared.lock().0.clone()),
            },
            _ => self,
        }
    }

    /// The number of elements.
    ///
    /// It may exceed what memory holds, since a list may be joined to itself.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Flat(elements) => elements.0.len(),
            Repr::Joined(joined) => joined.len,
            Repr::Source(source) => source.len(),
            Repr::Growing(growing) => growing.lock().0.len(),
        }
    }

    /// Reports whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reports whether this and `other` are the same list in memory, not merely equal.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.address() == other.address()
    }

    /// Reports whether the list is two lists joined.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        match &self.0 {
            Repr::Joined(_) => true,
            Repr::Flat(elements) => elements.1 == Origin::Joined,
            Repr::Source(_) | Repr::Growing(_) => false,
        }
    }

    /// Two lists joined, copied into one.
    fn copied(elements: Vec<Value>) -> Self {
        Self(Repr::Flat(Arc::new(Elements(elements, Origin::Joined))))
    }

    /// Returns the bytes that only this list uses, without those of its elements; zero if it is shared.
    ///
    /// Elements of a list that grows are counted when they are appended: see [`List::join_size`].
    pub(super) fn own_size(&self) -> usize {
        match &self.0 {
            Repr::Flat(elements) => size_of_new(elements, size_of_elements(elements.0.capacity())),
            Repr::Joined(joined) if Arc::strong_count(joined) == 1 => {
                let of_right = match &joined.right.0 {
                    Repr::Flat(right) => size_of_new(right, size_of_elements(right.0.capacity())),
                    Repr::Joined(_) | Repr::Source(_) | Repr::Growing(_) => 0,
                };
                size_of::<Joined>()
                    .saturating_add(ALLOCATION)
                    .saturating_add(of_right)
            }
            Repr::Joined(_) | Repr::Source(_) | Repr::Growing(_) => 0,
        }
    }

    /// Returns the bytes by which a list that grows becomes larger when `other` is appended; zero for other lists,
    /// whose concatenation is a new list.
    pub(crate) fn join_size(&self, other: &Self) -> usize {
        match &self.0 {
            Repr::Growing(_) => other.len().saturating_mul(GROWN_ELEMENT),
            Repr::Flat(_) | Repr::Joined(_) | Repr::Source(_) => 0,
        }
    }

    /// Returns the bytes that [`List::frozen`] copies.
    pub(super) fn frozen_size(&self) -> usize {
        match &self.0 {
            Repr::Growing(growing) if Arc::strong_count(growing) > 1 => {
                size_of_elements(self.len())
            }
            _ => 0,
        }
    }

    /// The place in memory, as the identity of the list.
    pub(super) fn address(&self) -> usize {
        match &self.0 {
            Repr::Flat(elements) => Arc::as_ptr(elements).addr(),
            Repr::Joined(joined) => Arc::as_ptr(joined).addr(),
            Repr::Source(source) => Arc::as_ptr(source).cast::<()>().addr(),
            Repr::Growing(growing) => Arc::as_ptr(growing).addr(),
        }
    }

    /// The element at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value> {
        let (mut list, mut index) = (self, index);
        loop {
            match &list.0 {
                Repr::Flat(elements) => return elements.0.get(index).cloned(),
                Repr::Source(source) => return source.get(index),
                Repr::Growing(growing) => return growing.lock().0.get(index).cloned(),
                Repr::Joined(joined) => match index.checked_sub(joined.left.len()) {
                    None => list = &joined.left,
                    Some(rest) => (list, index) = (&joined.right, rest),
                },
            }
        }
    }

    /// The elements, if they are one after the other in memory.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[Value]> {
        match &self.0 {
            Repr::Flat(elements) => Some(&elements.0),
            Repr::Joined(_) | Repr::Source(_) | Repr::Growing(_) => None,
        }
    }

    /// The elements in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            pending: vec![self],
            current: None,
        }
    }

    /// The elements, copied unless nothing else uses them.
    #[must_use]
    pub fn into_vec(self) -> Vec<Value> {
        match self.0 {
            Repr::Flat(elements) => match Arc::try_unwrap(elements) {
                Ok(mut owned) => std::mem::take(&mut owned.0),
                Err(shared) => shared.0.clone(),
            },
            Repr::Joined(_) | Repr::Source(_) | Repr::Growing(_) => self.iter().collect(),
        }
    }

    /// This list and then `other`.
    ///
    /// Source: cel-go `common/types/list.go`, `baseList.Add`, `concatList`, `mutableList.Add`.
    #[must_use]
    pub fn join(mut self, other: &Self) -> Self {
        if let Repr::Growing(growing) = &self.0 {
            // The other may be this list itself, which is locked only after it was read.
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
            owned.1 = Origin::Joined;
            return self;
        }
        if len <= SHORT {
            return Self::copied(self.iter().chain(other.iter()).collect());
        }
        // A long chain of joins with short lists keeps few nodes: the last short ones are merged.
        if other.len() <= SHORT
            && let Repr::Joined(joined) = &self.0
            && joined.right.len() <= SHORT
        {
            let right = Self::new(joined.right.iter().chain(other.iter()).collect());
            return Self(Repr::Joined(Arc::new(Joined {
                left: joined.left.clone(),
                right,
                len,
            })));
        }
        Self(Repr::Joined(Arc::new(Joined {
            left: self,
            right: other.clone(),
            len,
        })))
    }

    /// Moves what is nested into `pending`, if nothing else uses the list.
    pub(super) fn release_into(self, pending: &mut Vec<Value>) {
        match self.0 {
            Repr::Flat(elements) => {
                if let Some(mut owned) = Arc::into_inner(elements) {
                    pending.append(&mut owned.0);
                }
            }
            Repr::Joined(joined) => {
                if let Some(mut owned) = Arc::into_inner(joined) {
                    pending.push(Value::List(std::mem::take(&mut owned.left)));
                    pending.push(Value::List(std::mem::take(&mut owned.right)));
                }
            }
            Repr::Growing(growing) => {
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

/// The elements of a list in order.
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
            if let Repr::Joined(joined) = &list.0 {
                self.pending.push(&joined.right);
                self.pending.push(&joined.left);
            } else {
                self.current = Some((list, 0));
            }
        }
    }
}
