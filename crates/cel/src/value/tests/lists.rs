//! Lists: concatenation, mutable lists and memory.

use std::sync::Arc;

use super::{Numbers, ints};
use crate::value::footprint::{ALLOCATION, GROWN_ELEMENT};
use crate::value::{List, Value};

fn list(numbers: std::ops::Range<i64>) -> List {
    List::new(ints(numbers))
}

#[track_caller]
fn check(list: &List, expected: std::ops::Range<i64>) {
    let n = usize::try_from(expected.end - expected.start).unwrap();
    let elements: Vec<_> = list.iter().map(|value| value.as_int().unwrap()).collect();
    assert_eq!(elements, expected.clone().collect::<Vec<_>>());
    assert_eq!(list.len(), n);
    let by_index = (0..=n).map(|index| list.get(index).and_then(|value| value.as_int()));
    assert!(by_index.eq(expected.map(Some).chain([None])));
}

#[test]
fn joined_short_lists_are_copied() {
    let (left, right) = (list(0..32), list(32..64));
    let joined = left.clone().join(&right);
    assert!(joined.is_joined() && joined.as_slice().is_some());
    check(&joined, 0..64);
    check(&left, 0..32);
}

#[test]
fn joined_long_shared_lists_are_linked() {
    let (left, right) = (list(0..33), list(33..65));
    let joined = left.clone().join(&right);
    assert!(joined.is_joined() && joined.as_slice().is_none());
    check(&joined, 0..65);
    // A short list is merged with a short right operand.
    let longer = joined.clone().join(&list(65..70));
    check(&longer, 0..70);
    check(&joined, 0..65);
    let longest = longer.join(&list(70..200)).join(&list(200..201));
    check(&longest, 0..201);
}

#[test]
fn joined_unshared_list_is_extended_in_place() {
    let joined = list(0..100).join(&list(100..300));
    assert!(joined.is_joined() && joined.as_slice().is_some());
    check(&joined, 0..300);
}

#[test]
fn list_joined_with_empty_list_is_unchanged() {
    let (some, none) = (list(0..3), List::default());
    assert!(none.is_empty() && !some.is_empty());
    for joined in [some.clone().join(&none), none.join(&some)] {
        assert!(joined.is_same(&some) && !joined.is_joined());
    }
    assert!(!some.is_same(&list(0..3)));
}

#[test]
fn growing_list_is_extended_for_all_references() {
    let growing = List::growing();
    let shared = growing.clone();
    assert!(growing.is_mutable() && !list(0..1).is_mutable());
    let other = growing.clone().join(&list(0..2)).join(&list(2..3));
    assert!(other.is_mutable() && other.is_same(&growing));
    check(&shared, 0..3);
    let doubled = shared.clone().join(&shared);
    assert_eq!(doubled.len(), 6);
    assert_eq!(growing.join_size(&list(0..4)), 4 * GROWN_ELEMENT);
    assert_eq!(list(0..2).join_size(&list(0..4)), 0);
}

#[test]
fn frozen_shared_list_is_copied() {
    let growing = List::growing().join(&list(0..2));
    let shared = growing.clone();
    assert_eq!(growing.frozen_size(), 2 * size_of::<Value>());
    let frozen = growing.frozen();
    assert!(!frozen.is_mutable());
    let _ = shared.clone().join(&list(2..3));
    check(&frozen, 0..2);
    check(&shared, 0..3);
    assert_eq!((shared.frozen_size(), frozen.frozen_size()), (0, 0));
    check(&shared.frozen(), 0..3);
    let same = frozen.clone().frozen();
    assert!(same.is_same(&frozen));
}

#[test]
fn shared_elements_are_copied_into_vec() {
    let numbers = |elements: Vec<Value>| -> Vec<_> {
        elements
            .iter()
            .map(|value| value.as_int().unwrap())
            .collect()
    };
    let shared = list(0..3);
    assert_eq!(numbers(shared.clone().into_vec()), [0, 1, 2]);
    assert_eq!(numbers(shared.into_vec()), [0, 1, 2]);
    let source = List::from_source(Arc::new(Numbers(2)));
    assert_eq!(numbers(source.into_vec()), [0, 1]);
    let left = list(0..60);
    assert_eq!(
        numbers(left.clone().join(&list(60..90)).into_vec()).len(),
        90
    );
    let collected: List = ints(0..4).into_iter().collect();
    check(&collected, 0..4);
}

#[test]
fn list_source_creates_elements_on_access() {
    let source = List::from_source(Arc::new(Numbers(3)));
    assert!(source.source().is_some() && source.as_slice().is_none());
    assert!(!source.is_json() && !source.is_joined() && !source.is_empty());
    check(&source, 0..3);
    assert!(List::from_source(Arc::new(Numbers(0))).is_empty());
    assert!(source.is_same(&source.clone()));
    assert!(list(0..1).source().is_none());
    assert!(List::from_json(Vec::new()).is_json() && !list(0..1).is_json());
}

#[test]
fn own_size_of_concatenation_excludes_shared_operands() {
    let left = list(0..100);
    let right = list(100..200);
    let shared = left.clone().join(&right);
    let without = Value::List(shared.clone()).own_size();
    assert_eq!(without, 0);
    let node = Value::List(left.clone().join(&right)).own_size();
    assert!(node > ALLOCATION && node < 100 * size_of::<Value>());
    let new = Value::List(shared.join(&list(0..0)).join(&list(200..264)));
    assert!(new.own_size() < 100 * size_of::<Value>());
    let merged = left.join(&list(0..5)).join(&list(5..10));
    assert_eq!(merged.len(), 110);
    assert_eq!(Value::List(List::growing()).own_size(), 0);
}

#[test]
fn dropping_deep_values_does_not_recurse() {
    const DEPTH: usize = 200_000;
    let lists = (0..DEPTH).fold(Value::Null, |value, _| Value::list([value]));
    drop(lists);
    let growing = (0..DEPTH).fold(Value::Null, |value, _| {
        Value::List(List::growing().join(&List::new(vec![value])))
    });
    drop(growing);
    let optionals = (0..DEPTH).fold(Value::Null, |value, _| Value::some(value));
    drop(optionals);
    let maps = (0..DEPTH).fold(Value::Null, |value, _| {
        Value::map([(Value::Int(1), value)]).unwrap()
    });
    drop(maps);
    let objects = (0..DEPTH).fold(Value::Null, |value, _| {
        Value::object(vec![("a".into(), value)])
    });
    drop(objects);
}
