//! Merges two values of the same structured-merge-diff type.
//!
//! Source: structured-merge-diff `typed/merge.go` (`mergingWalker` with `ruleKeepRHS`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::{Key, Path, key_of};
use super::node::Node;
use super::types::{Form, ListType, MapType, Relationship, Resolved, TypeRef, Types};
use super::validate::{Texts, scalar_error};

/// Merges the applied value `right` into the live value `left`.
pub(super) fn merge<'a>(
    types: &'a Types,
    type_: &'a TypeRef,
    left: &Node<'a>,
    right: &Node<'a>,
    errors: &mut Texts,
) -> Value {
    let merged = Merge { types }.value(type_, Some(left), Some(right), &Path::Root, errors);
    merged.unwrap_or(Value::Null)
}

#[derive(Clone, Copy)]
struct Merge<'a> {
    types: &'a Types,
}

/// A live or applied value. `None` if the object has no value at this path.
type Side<'v, 'a> = Option<&'v Node<'a>>;

/// Merges values that are replaced as a whole, such as scalars. Returns the right value if present, otherwise the left
/// value.
fn leaf(left: Side<'_, '_>, right: Side<'_, '_>) -> Option<Value> {
    right.or(left).map(Node::to_json)
}

impl<'a> Merge<'a> {
    fn value(
        self,
        type_: &'a TypeRef,
        left: Side<'_, 'a>,
        right: Side<'_, 'a>,
        path: &Path<'_>,
        errors: &mut Texts,
    ) -> Option<Value> {
        let Some(resolved) = self.types.resolve(type_) else {
            errors.push(path, || {
                format!("schema error: no type found matching: {}", type_.name())
            });
            return None;
        };
        let of_left = resolved.deduced(left);
        let of_right = resolved.deduced(right);
        if right.is_none() {
            return self.form(of_left, type_, left, right, path, errors);
        }
        if left.is_some() && !of_left.has_forms_of(&of_right) {
            // The values match different alternatives of the type. Upstream also merges them with the alternatives that
            // match the left value. It discards the result of this additional merge, but reports the errors.
            self.form(of_left, type_, left, right, path, errors);
        }
        self.form(of_right, type_, left, right, path, errors)
    }

    fn form(
        self,
        resolved: Resolved<'a>,
        type_: &TypeRef,
        left: Side<'_, 'a>,
        right: Side<'_, 'a>,
        path: &Path<'_>,
        errors: &mut Texts,
    ) -> Option<Value> {
        match resolved.form() {
            Some(Form::Map(map, relationship)) => {
                self.map(map, relationship, left, right, path, errors)
            }
            Some(Form::Scalar(scalar)) => {
                let check = |side: Side<'_, 'a>| match side {
                    Some(value) => scalar_error(scalar, value),
                    None => Ok(()),
                };
                if let (Err(of_left), Err(of_right)) = (check(left), check(right)) {
                    errors.push(path, || format!("lhs: {of_left}"));
                    errors.push(path, || format!("rhs: {of_right}"));
                    return None;
                }
                leaf(left, right)
            }
            Some(Form::List(list, relationship)) => {
                self.list(list, relationship, left, right, path, errors)
            }
            None => {
                errors.push(path, || {
                    format!("schema error: invalid atom: {}", type_.name())
                });
                None
            }
        }
    }

    fn map(
        self,
        map: &'a MapType,
        relationship: Relationship,
        left: Side<'_, 'a>,
        right: Side<'_, 'a>,
        path: &Path<'_>,
        errors: &mut Texts,
    ) -> Option<Value> {
        let (of_left, of_right) = (fields_of(left), fields_of(right));
        let are_empty = of_left.is_empty() && of_right.is_empty();
        if relationship == Relationship::Atomic || are_empty {
            return leaf(left, right);
        }
        let mut merged = Map::new();
        let only_right = of_right.keys().filter(|name| !of_left.contains_key(**name));
        for name in of_left.keys().chain(only_right) {
            let declared = map.fields.get(*name).map(|field| &field.type_);
            let path = Path::Field(path, name);
            let Some(type_) = declared.or(map.element.as_ref()) else {
                errors.push(&path, || "schema error: invalid atom: inlined".to_owned());
                continue;
            };
            let value = self.value(type_, of_left.get(name), of_right.get(name), &path, errors);
            if let Some(value) = value {
                merged.insert((*name).to_owned(), value);
            }
        }
        Some(Value::Object(merged))
    }

    fn list(
        self,
        list: &'a ListType,
        relationship: Relationship,
        left: Side<'_, 'a>,
        right: Side<'_, 'a>,
        path: &Path<'_>,
        errors: &mut Texts,
    ) -> Option<Value> {
        let (of_left, of_right) = (items_of(left), items_of(right));
        let are_empty = of_left.is_empty() && of_right.is_empty();
        if relationship == Relationship::Atomic || are_empty {
            return leaf(left, right);
        }
        let mut keys = Keys::default();
        let mut key_errors = Texts::default();
        let right = self.indexed(
            list,
            relationship,
            of_right,
            false,
            &mut keys,
            &mut key_errors,
        );
        let left = self.indexed(
            list,
            relationship,
            of_left,
            true,
            &mut keys,
            &mut key_errors,
        );
        if let Some(reasons) = key_errors.into_reasons() {
            for reason in reasons {
                errors.push(path, || reason);
            }
            return None;
        }
        let mut merged = Vec::new();
        for step in steps(&left, &right) {
            let (of_left, of_right) = match step {
                Step::Left(n) => (of_left.get(n), None),
                Step::Right(key) | Step::Both(key) => {
                    (left.by_key(key, of_left), right.by_key(key, of_right))
                }
            };
            // As in upstream, errors in list items are discarded.
            let mut dropped = Texts::default();
            let type_ = &list.element;
            merged.extend(self.value(type_, of_left, of_right, &Path::Root, &mut dropped));
        }
        (!merged.is_empty()).then_some(Value::Array(merged))
    }

    /// Determines the key of each item of a list.
    fn indexed(
        self,
        list: &'a ListType,
        relationship: Relationship,
        items: &[Node<'a>],
        allows_duplicates: bool,
        keys: &mut Keys<'a>,
        errors: &mut Texts,
    ) -> Indexed {
        let mut indexed = Indexed::default();
        for (n, item) in items.iter().enumerate() {
            let key = match key_of(self.types, list, relationship, item) {
                Ok(key) => key,
                Err(reason) => {
                    errors.push(&Path::Root, || format!("element {n}: {reason}"));
                    continue;
                }
            };
            let id = keys.id(&key);
            match indexed.observed.get_mut(&id) {
                Some(_) if !allows_duplicates => {
                    errors.push(&Path::Root, || {
                        format!("duplicate entries for key {}", key.text())
                    });
                    continue;
                }
                Some(place) => *place = None,
                None => {
                    indexed.observed.insert(id, Some(n));
                }
            }
            indexed.keys.push(id);
        }
        indexed
    }
}

fn fields_of<'v, 'a>(side: Side<'v, 'a>) -> &'v BTreeMap<&'a str, Node<'a>> {
    static EMPTY: BTreeMap<&str, Node<'_>> = BTreeMap::new();
    match side {
        Some(Node::Map(fields)) => fields,
        _ => &EMPTY,
    }
}

fn items_of<'v, 'a>(side: Side<'v, 'a>) -> &'v [Node<'a>] {
    match side {
        Some(Node::List(items)) => items,
        _ => &[],
    }
}

/// The numbers that identify the item keys of two lists. Equal keys have the same number.
#[derive(Debug, Default)]
struct Keys<'a> {
    ids: BTreeMap<Key<'a>, usize>,
}

impl<'a> Keys<'a> {
    fn id(&mut self, key: &Key<'a>) -> usize {
        let next = self.ids.len();
        match self.ids.get(key) {
            Some(id) => *id,
            None => {
                self.ids.insert(key.clone(), next);
                next
            }
        }
    }
}

/// The keys of the items of a list, in order, and the index of the item with each key.
#[derive(Debug, Default)]
struct Indexed {
    keys: Vec<usize>,
    /// The index of the item with each key. `None` if several items have this key.
    observed: BTreeMap<usize, Option<usize>>,
}

impl Indexed {
    fn has(&self, key: usize) -> bool {
        self.observed.contains_key(&key)
    }

    /// Returns the item with this key, or `None` if no item has the key. If several items have the key, returns a null.
    fn by_key<'v, 'a>(&self, key: usize, items: &'v [Node<'a>]) -> Option<&'v Node<'a>> {
        match self.observed.get(&key)? {
            Some(n) => items.get(*n),
            None => Some(&Node::Null),
        }
    }
}

/// The origin of an item in the merged list.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The left item at this index. No right item has the same key.
    Left(usize),
    /// The left and right items with this key, merged. This key is next in both lists.
    Both(usize),
    /// The right item with this key. If a left item has the same key, both items are merged.
    Right(usize),
}

/// Returns the origins of the items in the merged list, in order. Right items keep their order. Items that are only in
/// the left list keep their positions.
///
/// Source: structured-merge-diff `typed/merge.go`, `visitListItems`.
fn steps(left: &Indexed, right: &Indexed) -> Vec<Step> {
    let shared = right.keys.iter().copied().filter(|key| left.has(*key));
    let mut shared = shared.collect::<Vec<_>>().into_iter();
    let mut next_shared = shared.next();
    let mut merged = BTreeSet::new();
    let mut steps = Vec::new();
    let (mut at_left, mut at_right) = (0_usize, 0_usize);
    loop {
        let of_left = left.keys.get(at_left).copied();
        let of_right = right.keys.get(at_right).copied();
        if let (Some(key), Some(other)) = (of_left, of_right) {
            if key == other {
                merged.insert(key);
                steps.push(Step::Both(key));
                at_left = at_left.saturating_add(1);
                at_right = at_right.saturating_add(1);
                next_shared = shared.next();
                continue;
            }
            if right.has(key) && next_shared.is_some_and(|next| next != key) {
                // The right list has this key at a different position. The item is merged when the loop reaches that
                // position.
                at_left = at_left.saturating_add(1);
                continue;
            }
        }
        if let Some(key) = of_left {
            if !right.has(key) {
                steps.push(Step::Left(at_left));
                at_left = at_left.saturating_add(1);
                continue;
            }
            if merged.contains(&key) {
                at_left = at_left.saturating_add(1);
            }
        }
        if let Some(key) = of_right {
            merged.insert(key);
            steps.push(Step::Right(key));
            at_right = at_right.saturating_add(1);
            if next_shared == Some(key) {
                next_shared = shared.next();
            }
        } else if of_left.is_none() {
            return steps;
        }
    }
}
