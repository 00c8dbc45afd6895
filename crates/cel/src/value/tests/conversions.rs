//! Conversions to other types, to JSON and through native Go values.

use std::sync::Arc;

use super::{Bare, Named, Numbers, at, ints, type_value};
use crate::types::{Primitive, Type};
use crate::value::{EvalBudget, EvalError, List, Map, Traits, Value};

/// Compares the formatted result, or the error.
#[track_caller]
fn check(rows: &[(Value, Type, &str)]) {
    for (value, to, expected) in rows {
        let actual = match value.convert_to(to) {
            Ok(converted) => {
                assert!(converted.is_of(to), "{converted:?} {to}");
                converted.to_go_string()
            }
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(actual, *expected, "{value:?} {to}");
    }
}

#[test]
fn conversions_of_integers_check_ranges() {
    check(&[
        (Value::Int(-1), Type::Int, "-1"),
        (Value::Int(0), Type::Uint, "0"),
        (
            Value::Int(-1),
            Type::Uint,
            "error: unsigned integer overflow",
        ),
        (Value::Int(2), Type::Double, "2"),
        (Value::Int(-3), Type::String, "-3"),
        (
            Value::Int(-62_135_596_800),
            Type::Timestamp,
            "0001-01-01 00:00:00 +0000 UTC",
        ),
        (
            Value::Int(-62_135_596_801),
            Type::Timestamp,
            "error: timestamp overflow",
        ),
        (
            Value::Int(253_402_300_799),
            Type::Timestamp,
            "9999-12-31 23:59:59 +0000 UTC",
        ),
        (
            Value::Int(253_402_300_800),
            Type::Timestamp,
            "error: timestamp overflow",
        ),
        (
            Value::Int(1),
            Type::Bool,
            "error: type conversion error from 'int' to 'bool'",
        ),
        (Value::Uint(5), Type::Uint, "5"),
        (Value::Uint(1 << 63), Type::Int, "error: integer overflow"),
        (Value::Uint((1 << 63) - 1), Type::Int, "9223372036854775807"),
        (Value::Uint(3), Type::Double, "3"),
        (Value::Uint(4), Type::String, "4"),
        (
            Value::Uint(1),
            Type::Bytes,
            "error: type conversion error from 'uint' to 'bytes'",
        ),
    ]);
}

#[test]
fn conversions_of_doubles_check_ranges() {
    check(&[
        (Value::Double(-1.9), Type::Int, "-1"),
        (
            Value::Double(9_223_372_036_854_775_808.0),
            Type::Int,
            "error: integer overflow",
        ),
        (
            Value::Double(-9_223_372_036_854_775_808.0),
            Type::Int,
            "error: integer overflow",
        ),
        (
            Value::Double(9_223_372_036_854_774_784.0),
            Type::Int,
            "9223372036854774784",
        ),
        (
            Value::Double(f64::NAN),
            Type::Int,
            "error: integer overflow",
        ),
        (Value::Double(0.9), Type::Uint, "0"),
        (Value::Double(0.0), Type::Uint, "0"),
        (
            Value::Double(-0.1),
            Type::Uint,
            "error: unsigned integer overflow",
        ),
        (
            Value::Double(18_446_744_073_709_551_616.0),
            Type::Uint,
            "error: unsigned integer overflow",
        ),
        (
            Value::Double(f64::NAN),
            Type::Uint,
            "error: unsigned integer overflow",
        ),
        (Value::Double(1.5), Type::Double, "1.5"),
        (Value::Double(1e6), Type::String, "1e+06"),
        (
            Value::Double(1.0),
            Type::Timestamp,
            "error: type conversion error from 'double' to 'google.protobuf.Timestamp'",
        ),
    ]);
}

#[test]
fn strings_are_parsed_when_converted() {
    let failed = |to: &str| format!("error: type conversion error from 'string' to '{to}'");
    check(&[
        (Value::from("+5"), Type::Int, "5"),
        (Value::from("5"), Type::Uint, "5"),
        (Value::from("+5"), Type::Uint, &failed("uint")),
        (Value::from("-5"), Type::Uint, &failed("uint")),
        (Value::from("0x1p1"), Type::Double, "2"),
        (Value::from("x"), Type::Double, &failed("double")),
        (Value::from("1"), Type::Bool, "true"),
        (Value::from("t"), Type::Bool, "true"),
        (Value::from("True"), Type::Bool, "true"),
        (Value::from("0"), Type::Bool, "false"),
        (Value::from("F"), Type::Bool, "false"),
        (Value::from("FALSE"), Type::Bool, "false"),
        (Value::from("tRUE"), Type::Bool, &failed("bool")),
        (Value::from("a\u{e9}"), Type::Bytes, "[97 195 169]"),
        (Value::from("1h1s"), Type::Duration, "1h0m1s"),
        (
            Value::from("1"),
            Type::Duration,
            &failed("google.protobuf.Duration"),
        ),
        (
            Value::from("2024-02-29T00:00:00.5+01:00"),
            Type::Timestamp,
            "2024-02-29 00:00:00.5 +0100 +0100",
        ),
        (
            Value::from("0000-12-31T00:00:00Z"),
            Type::Timestamp,
            "error: timestamp overflow",
        ),
        (
            Value::from("2024-02-30T00:00:00Z"),
            Type::Timestamp,
            &failed("google.protobuf.Timestamp"),
        ),
        (Value::from("s"), Type::String, "s"),
        (Value::from("s"), Type::Null, &failed("null_type")),
    ]);
}

#[test]
fn conversions_of_bool_bytes_and_maps_agree_with_go() {
    let map = Value::map([(Value::Int(1), Value::Int(2))]).unwrap();
    check(&[
        (Value::Bool(true), Type::String, "true"),
        (Value::Bool(false), Type::Bool, "false"),
        (
            Value::Bool(true),
            Type::Int,
            "error: type conversion error from 'bool' to 'int'",
        ),
        (Value::bytes(*b"a"), Type::String, "a"),
        (Value::bytes(*b"a"), Type::Bytes, "[97]"),
        (
            Value::bytes(*b"\xff"),
            Type::String,
            "error: invalid UTF-8 in bytes, cannot convert to string",
        ),
        (Value::Duration(1_500_000_000), Type::String, "1.5s"),
        (Value::Duration(15), Type::Int, "15"),
        (Value::Duration(15), Type::Duration, "15ns"),
        (
            at(7, 1, 3_600),
            Type::String,
            "1970-01-01T01:00:07.000000001+01:00",
        ),
        (at(7, 1, 3_600), Type::Int, "7"),
        (
            at(7, 0, 0),
            Type::Timestamp,
            "1970-01-01 00:00:07 +0000 UTC",
        ),
        (Value::Null, Type::String, "null"),
        (Value::Null, Type::Null, "0"),
        (type_value(Type::list(Type::Int)), Type::String, "list"),
        (Value::list([]), Type::list(Type::Int), "[]"),
        (map, Type::map(Type::Dyn, Type::Dyn), "{1: 2}"),
        (
            Value::list([]),
            Type::String,
            "error: type conversion error from 'list(dyn)' to 'string'",
        ),
        (
            Value::opaque(Bare),
            Type::String,
            "error: type conversion error from 'test.Bare' to 'string'",
        ),
    ]);
}

#[test]
fn conversion_to_type_returns_type_of_value() {
    for (value, expected) in [
        (Value::Int(1), "int"),
        (Value::list([]), "list(dyn)"),
        (type_value(Type::Int), "type"),
        (Value::opaque(Bare), "test.Bare"),
    ] {
        let type_ = value.convert_to(&Type::Type(None)).unwrap();
        assert!(matches!(type_, Value::Type(_)), "{type_:?}");
        assert_eq!(type_.to_go_string(), expected);
    }
}

#[test]
fn accessors_return_none_for_other_types() {
    let (text, number) = (Value::string("a"), Value::Int(1));
    assert_eq!((text.as_str(), number.as_str()), (Some("a"), None));
    assert_eq!((text.as_int(), number.as_int()), (None, Some(1)));
    assert_eq!(Value::Bool(true).as_bool(), Some(true));
    assert_eq!(number.as_bool(), None);
    assert!(number.as_list().is_none() && number.as_map().is_none());
    assert!(Value::list([]).as_list().is_some());
    assert!(Value::object(Vec::new()).as_map().is_some());
    assert!(matches!(Value::from(3_u64), Value::Uint(3)));
    assert!(number.downcast::<Bare>().is_none());
    assert!(Value::opaque(Bare).downcast::<Bare>().is_some());
    assert!(Value::opaque(Bare).downcast::<Named>().is_none());
}

#[test]
fn opaque_value_without_overrides_has_default_behavior() {
    let value = Value::opaque(Bare);
    let Value::Opaque(bare) = &value else {
        panic!("{value:?}")
    };
    assert_eq!(bare.compare(&value), Err(EvalError::no_such_overload()));
    assert_eq!(bare.own_type(), Ok(bare.type_()));
    assert_eq!(bare.is_set(&Value::Int(1)), Ok(true));
    assert!(bare.index(&Value::Int(1)).is_none());
    assert_eq!(
        (bare.text(), bare.size(), bare.heap_size()),
        (None, None, 0)
    );
    assert_eq!(bare.traits(), Traits::NONE);
    assert!(!bare.is_zero());
}

#[test]
fn conversion_to_native_value_and_back_agrees_with_upstream() {
    let budget = EvalBudget::default();
    let single = List::new(ints([1]));
    let joined = single.clone().join(&single);
    let error = "unsupported conversion to ref.Val: (*errors.errorString)failed";
    let opaque = "unsupported conversion to ref.Val: (*test.Native)n";
    for (value, expected, go_type) in [
        (type_value(Type::Int), "int", "types.String"),
        (Value::none(), "0", "types.Null"),
        (Value::some(Value::some(Value::Int(1))), "1", "types.Int"),
        (Value::some(Value::none()), "0", "types.Null"),
        (Value::List(joined), "[1, 1]", "*types.baseList"),
        (Value::list(ints([2])), "[2]", "*types.baseList"),
        (Value::object(Vec::new()), "{}", "*types.baseMap"),
        (
            Value::List(List::from_source(Arc::new(Numbers(2)))),
            "[0, 1]",
            "*common.unstructuredList",
        ),
        (
            Value::Error(EvalError::fixed("failed")),
            error,
            "*types.Err",
        ),
        (Value::opaque(Named("n")), opaque, "*types.Err"),
    ] {
        let native = value.through_native(&budget).unwrap();
        assert_eq!(native.to_go_string(), expected);
        assert_eq!(native.go_type(), go_type, "{expected}");
    }
}

#[test]
fn json_numbers_become_int_or_double() {
    let text = r#"{"b":[null,true,"x"],"a":{"n":9223372036854775808,"i":-9223372036854775808,"f":1.0,"e":1e3}}"#;
    let expected =
        "{a: {e: 1000, f: 1, i: -9223372036854775808, n: 9.223372036854776e+18}, b: [0, true, x]}";
    let streamed: Value = serde_json::from_str(text).unwrap();
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    for value in [streamed, Value::from(&json)] {
        assert_eq!(value.to_go_string(), expected);
        let a = value.as_map().and_then(|map| map.field("a")).unwrap();
        let field = |name| a.as_map().and_then(|map| map.field(name)).cloned().unwrap();
        assert!(matches!(field("n"), Value::Double(_)));
        assert!(matches!(field("i"), Value::Int(i64::MIN)));
        assert!(matches!(field("f"), Value::Double(_)));
        let b = value.as_map().and_then(|map| map.field("b")).unwrap();
        assert!(b.as_list().is_some_and(List::is_json));
        assert!(value.as_map().is_some_and(Map::is_json));
    }
    let error = serde_json::from_str::<Value>("{1:2}").unwrap_err();
    assert!(
        error.to_string().contains("key must be a string"),
        "{error}"
    );
}

#[test]
fn type_test_checks_only_first_element_or_entry() {
    let wrapper = Type::Wrapper(Primitive::Int);
    let map = Value::map([(Value::Int(1), Value::from("a"))]).unwrap();
    let list = Value::list([Value::Int(1), Value::from("a")]);
    let list_of = |of: Type| Type::list(of);
    for (value, type_, expected) in [
        (&Value::Null, wrapper.clone(), true),
        (&Value::Int(1), wrapper.clone(), true),
        (&Value::Uint(1), wrapper, false),
        (&list, list_of(Type::Int), true),
        (&list, list_of(Type::String), false),
        (&list, list_of(Type::Dyn), true),
        (&Value::list([]), list_of(Type::String), true),
        (&map, Type::map(Type::Int, Type::String), true),
        (&map, Type::map(Type::Int, Type::Int), false),
        (&map, Type::map(Type::String, Type::String), false),
        (&map, Type::map(Type::Dyn, Type::String), true),
        (&map, Type::map(Type::Dyn, Type::Int), false),
        (&map, Type::map(Type::Int, Type::Dyn), true),
        (&map, Type::map(Type::Dyn, Type::Dyn), true),
        (
            &Value::object(Vec::new()),
            Type::map(Type::Int, Type::Int),
            true,
        ),
        (&Value::none(), Type::optional(Type::Int), true),
        (&Value::none(), Type::opaque("other", Vec::new()), false),
        (
            &Value::opaque(Bare),
            Type::opaque("test.Bare", Vec::new()),
            true,
        ),
        (
            &Value::opaque(Bare),
            Type::opaque("test.Named", Vec::new()),
            false,
        ),
        (&type_value(Type::Int), Type::Type(None), true),
        (&Value::Duration(1), Type::Timestamp, false),
    ] {
        assert_eq!(value.is_of(&type_), expected, "{value:?} {type_}");
    }
}
