//! Maps: keys, lookups, mutable maps and sources.

use std::sync::Arc;

use super::{Bare, Lengths, Named, Nothing, at, type_value};
use crate::types::Type;
use crate::value::footprint::ALLOCATION;
use crate::value::map::MAP_TRAITS;
use crate::value::{EvalError, Key, Map, MapSource, Value};

fn numbered(n: i64) -> Map {
    let entries = (0..n).map(|n| (Value::Int(n), Value::Int(n * 10)));
    match Value::map(entries) {
        Ok(Value::Map(map)) => map,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn found(map: &Map, key: &Value) -> Option<String> {
    map.find(key).unwrap().map(|value| value.to_go_string())
}

#[track_caller]
fn check_entries(map: &Map, expected: &str) {
    assert_eq!(Value::Map(map.clone()).to_go_string(), expected);
    let keys: Vec<_> = map.keys().unwrap();
    let entries = map.entries().unwrap();
    assert_eq!((keys.len(), entries.len()), (map.len(), map.len()));
    for (key, (other, _)) in keys.iter().zip(&entries) {
        assert_eq!(key.to_go_string(), other.to_go_string());
    }
}

#[test]
fn map_keys_are_compared_as_in_go() {
    let value = Value::opaque(Bare);
    let equal = [
        (Value::Null, Value::Null),
        (Value::Double(0.0), Value::Double(-0.0)),
        (at(1, 2, 3), at(1, 2, 3)),
        (type_value(Type::Int), type_value(Type::Int)),
        (Value::opaque(Named("a")), Value::opaque(Named("a"))),
        (value.clone(), value.clone()),
        (Value::none(), Value::none()),
    ];
    for (left, right) in equal {
        assert_eq!(Key::new(&left), Key::new(&right), "{left:?}");
        assert_ne!(Key::new(&left), Ok(Key::Never));
    }
    let different = [
        (Value::Int(1), Value::Uint(1)),
        (Value::Int(1), Value::Duration(1)),
        (at(1, 2, 3), at(1, 2, 4)),
        (at(1, 2, 3), at(1, 3, 3)),
        (type_value(Type::Int), type_value(Type::Uint)),
        (Value::opaque(Named("a")), Value::opaque(Named("b"))),
        (value, Value::opaque(Bare)),
        (Value::list([]), Value::list([])),
        (Value::object(Vec::new()), Value::object(Vec::new())),
        (Value::some(Value::Int(1)), Value::some(Value::Int(1))),
    ];
    for (left, right) in different {
        assert_ne!(Key::new(&left), Key::new(&right), "{left:?}");
    }
    for never in [Value::Double(f64::NAN), Value::Error(EvalError::fixed("e"))] {
        assert_eq!(Key::new(&never), Ok(Key::Never));
    }
    assert_eq!(
        Key::new(&Value::bytes(*b"a")).unwrap_err().message(),
        "internal error: runtime error: hash of unhashable type types.Bytes"
    );
}

#[test]
fn entry_is_found_by_numeric_key_of_another_type() {
    let map = Value::map([
        (Value::Int(1), Value::from("int")),
        (Value::Uint(2), Value::from("uint")),
        (Value::Double(3.0), Value::from("double")),
    ]);
    let Ok(Value::Map(map)) = map else {
        panic!("{map:?}")
    };
    for (key, expected) in [
        (Value::Int(1), Some("int")),
        (Value::Uint(1), Some("int")),
        (Value::Double(1.0), Some("int")),
        (Value::Double(1.5), None),
        (Value::Int(2), Some("uint")),
        (Value::Double(2.0), Some("uint")),
        (Value::Double(3.0), Some("double")),
        // As in upstream, looking up an integer does not find an equal double key.
        (Value::Int(3), None),
        (Value::Int(-1), None),
        (Value::from("1"), None),
    ] {
        assert_eq!(found(&map, &key).as_deref(), expected, "{key:?}");
    }
}

#[test]
fn map_is_correct_with_and_without_index() {
    for n in [7, 8, 9, 20] {
        let mut map = numbered(n);
        map.insert(Value::Int(2), Value::from("new")).unwrap();
        assert_eq!(map.len(), usize::try_from(n).unwrap());
        map.remove(&Value::Int(0)).unwrap();
        map.remove(&Value::Int(100)).unwrap();
        assert_eq!(map.len(), usize::try_from(n - 1).unwrap());
        assert_eq!(found(&map, &Value::Int(0)), None);
        assert_eq!(found(&map, &Value::Int(2)).as_deref(), Some("new"));
        for key in (1..n).filter(|key| *key != 2) {
            let expected = (key * 10).to_string();
            assert_eq!(found(&map, &Value::Int(key)), Some(expected));
        }
        map.insert(Value::Int(0), Value::Int(5)).unwrap();
        assert_eq!(found(&map, &Value::Int(0)).as_deref(), Some("5"));
    }
}

#[test]
fn shared_map_is_copied_before_insertion() {
    let map = numbered(2);
    let mut other = map.clone();
    other.insert(Value::Int(5), Value::Null).unwrap();
    check_entries(&map, "{0: 0, 1: 10}");
    check_entries(&other, "{0: 0, 1: 10, 5: 0}");
}

#[test]
fn insertion_converts_fields_to_entries() {
    let fields = vec![
        ("b".into(), Value::Int(1)),
        ("a".into(), Value::Int(2)),
        ("b".into(), Value::Int(3)),
    ];
    let mut map = Map::from_fields(fields);
    check_entries(&map, "{a: 2, b: 3}");
    assert!(map.is_json() && map.as_fields().is_some() && map.held_fields().is_some());
    map.insert(Value::from("c"), Value::Int(4)).unwrap();
    check_entries(&map, "{a: 2, b: 3, c: 4}");
    assert!(!map.is_json() && map.as_fields().is_none() && map.held_fields().is_none());
    assert_eq!(map.field("c").and_then(Value::as_int), Some(4));
    assert!(map.field("d").is_none());
    let added = map.with_entry(Value::from("d"), Value::Int(5)).unwrap();
    check_entries(&added, "{a: 2, b: 3, c: 4, d: 5}");
    assert_eq!(
        added
            .with_entry(Value::from("d"), Value::Int(5))
            .unwrap_err()
            .message(),
        "insert failed: key d already exists"
    );
}

#[test]
fn field_of_large_object_is_found() {
    for n in [24, 25, 100] {
        let fields = (0..n).map(|n| (format!("{n:03}").into(), Value::Int(n)));
        let map = Map::from_fields(fields.collect());
        for key in 0..n {
            let field = map.field(&format!("{key:03}"));
            assert_eq!(field.and_then(Value::as_int), Some(key));
        }
        assert!(map.field("100").is_none() && map.field("00").is_none());
    }
}

#[test]
fn growing_map_is_extended_for_all_references() {
    let growing = Map::growing();
    let shared = growing.clone();
    assert!(growing.is_mutable() && growing.is_empty() && growing.is_plain());
    let growing = growing.with_entry(Value::Int(1), Value::Int(2)).unwrap();
    check_entries(&shared, "{1: 2}");
    assert!(shared.field("a").is_none() && shared.as_fields().is_none());
    assert_eq!(found(&shared, &Value::Int(1)).as_deref(), Some("2"));
    assert!(growing.frozen_size() > 0);
    let frozen = growing.frozen();
    assert!(!frozen.is_mutable());
    let shared = shared.with_entry(Value::Int(3), Value::Int(4)).unwrap();
    check_entries(&frozen, "{1: 2}");
    assert_eq!(shared.frozen_size(), 0);
    check_entries(&shared.frozen(), "{1: 2, 3: 4}");
    check_entries(&frozen.frozen(), "{1: 2}");
}

#[test]
fn map_source_creates_values_on_access() {
    let map = Map::from_source(Arc::new(Lengths(&["a", "bcd"], None)));
    check_entries(&map, "{a: 1, bcd: 3}");
    assert!(map.is_plain() && !map.is_json() && map.source().is_some());
    assert!(map.field("a").is_none() && map.held_fields().is_none());
    assert_eq!(map.get(&Value::from("bcd")).as_int(), Some(3));
    let error = |key: &str| match map.get(&Value::from(key)) {
        Value::Error(error) => error.message().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(error("x"), "no such key: x");
    assert_eq!(error("bad"), "bad key");
    let object = Map::from_source(Arc::new(Lengths(&["a"], Some("Object"))));
    assert!(!object.is_plain());
    assert_eq!(object.type_().type_name(), "Object");
    assert!(numbered(1).source().is_none());
}

#[test]
fn map_source_without_overrides_has_default_behavior() {
    assert!(Nothing.is_empty() && !Lengths(&["a"], None).is_empty());
    assert_eq!(Nothing.type_(), Type::map(Type::Dyn, Type::Dyn));
    assert_eq!(Nothing.traits(), MAP_TRAITS);
    assert!(Nothing.native().is_none());
    assert!(Nothing.equals(&Value::Null).is_none());
    let map = Value::Map(Map::from_source(Arc::new(Nothing)));
    assert_eq!(map.equals(&Value::object(Vec::new())), Ok(true));
    assert_eq!(map.equals(&Value::Int(1)), Ok(false));
}

#[test]
fn own_size_of_map_counts_its_entries() {
    let map = Value::object(vec![("a".into(), Value::Int(1))]);
    let of_field = size_of::<(Arc<str>, Value)>();
    assert_eq!(map.own_size(), of_field + ALLOCATION);
    let few = Value::Map(numbered(8));
    let many = Value::Map(numbered(9));
    let of_entry = 2 * size_of::<Value>();
    assert_eq!(few.own_size(), 8 * of_entry + ALLOCATION);
    assert!(many.own_size() > 16 * of_entry + ALLOCATION);
    assert_eq!(Value::Map(Map::growing()).own_size(), 0);
    let error = EvalError::new("x".repeat(1_000));
    assert!(Value::Error(error).own_size() > 1_000);
    assert_eq!(Value::Error(EvalError::fixed("x")).own_size(), 0);
}
