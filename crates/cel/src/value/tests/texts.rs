//! Formatted values and Go type names, as shown in messages.

use std::sync::Arc;

use super::{Bare, Lengths, Named, Numbers, at, ints, type_value};
use crate::types::{StructType, Type};
use crate::value::civil::{format_go_duration, format_go_time, format_rfc3339, format_seconds};
use crate::value::{EvalError, List, Map, Timestamp, Value};

#[test]
fn formatted_go_duration_matches_go() {
    for (nanos, expected) in [
        (0, "0s"),
        (1, "1ns"),
        (-1, "-1ns"),
        (999, "999ns"),
        (1_000, "1\u{b5}s"),
        (1_001, "1.001\u{b5}s"),
        (1_500, "1.5\u{b5}s"),
        (999_999, "999.999\u{b5}s"),
        (1_000_000, "1ms"),
        (-1_500_000, "-1.5ms"),
        (999_999_999, "999.999999ms"),
        (1_000_000_000, "1s"),
        (1_500_000_000, "1.5s"),
        (59_999_999_999, "59.999999999s"),
        (60_000_000_000, "1m0s"),
        (61_000_000_000, "1m1s"),
        (3_600_000_000_000, "1h0m0s"),
        (3_660_500_000_000, "1h1m0.5s"),
        (-3_600_000_000_001, "-1h0m0.000000001s"),
        (i64::MIN, "-2562047h47m16.854775808s"),
        (i64::MAX, "2562047h47m16.854775807s"),
    ] {
        assert_eq!(format_go_duration(nanos), expected);
        assert_eq!(Value::Duration(nanos).to_go_string(), expected);
    }
}

#[test]
fn formatted_seconds_have_no_exponent() {
    for (nanos, expected) in [
        (0, "0s"),
        (1, "0.000000001s"),
        (-1_500_000_000, "-1.5s"),
        (90_000_000_000, "90s"),
        (2_000_000_000_000_000_000, "2000000000s"),
    ] {
        assert_eq!(format_seconds(nanos), expected);
    }
}

#[test]
fn formatted_timestamp_matches_go() {
    for ((seconds, nanos, offset_seconds), text, rfc3339) in [
        (
            (0, 0, 0),
            "1970-01-01 00:00:00 +0000 UTC",
            "1970-01-01T00:00:00Z",
        ),
        (
            (0, 500_000_000, 3_600),
            "1970-01-01 01:00:00.5 +0100 +0100",
            "1970-01-01T01:00:00.5+01:00",
        ),
        (
            (-1, 1, -5_400),
            "1969-12-31 22:29:59.000000001 -0130 -0130",
            "1969-12-31T22:29:59.000000001-01:30",
        ),
        (
            (1_700_000_000, 120, -1_800),
            "2023-11-14 21:43:20.00000012 -0030 -0030",
            "2023-11-14T21:43:20.00000012-00:30",
        ),
        (
            (0, 0, -59),
            "1969-12-31 23:59:01 +0000 +0000",
            "1969-12-31T23:59:01+00:00",
        ),
        (
            (253_402_300_799, 999_999_999, 0),
            "9999-12-31 23:59:59.999999999 +0000 UTC",
            "9999-12-31T23:59:59.999999999Z",
        ),
    ] {
        let timestamp = Timestamp {
            seconds,
            nanos,
            offset_seconds,
        };
        assert_eq!(format_go_time(timestamp), text);
        assert_eq!(format_rfc3339(timestamp), rfc3339);
        assert_eq!(Value::Timestamp(timestamp).to_go_string(), text);
    }
}

#[test]
fn nested_values_are_formatted_as_in_go() {
    let map = Value::map([
        (Value::from("a"), Value::Int(1)),
        (Value::Bool(true), Value::Null),
    ]);
    for (value, expected) in [
        (Value::Null, "0"),
        (Value::Uint(7), "7"),
        (Value::bytes(*b"a\0\xff"), "[97 0 255]"),
        (Value::bytes([]), "[]"),
        (Value::list(ints([1, -2])), "[1, -2]"),
        (map.unwrap(), "{a: 1, true: 0}"),
        (type_value(Type::list(Type::Int)), "list(int)"),
        (Value::none(), "optional.none()"),
        (Value::some(Value::list([])), "optional([])"),
        (Value::opaque(Named("n")), "n"),
        (Value::opaque(Bare), ""),
        (Value::Error(EvalError::fixed("failed")), "failed"),
    ] {
        assert_eq!(value.to_go_string(), expected);
    }
}

#[test]
fn go_string_of_deep_value_is_abbreviated() {
    let nested = |depth: usize| (0..depth).fold(Value::Int(1), |value, _| Value::list([value]));
    let text =
        |depth: usize, inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(nested(100).to_go_string(), text(100, "1"));
    assert_eq!(nested(101).to_go_string(), text(101, "..."));
    assert_eq!(nested(105).to_go_string(), text(101, "..."));
}

#[test]
fn go_string_of_long_value_is_cut() {
    const MAX: usize = 256 << 10;
    let text = |n_bytes: usize| Value::from("x".repeat(n_bytes)).to_go_string();
    assert_eq!(text(MAX), "x".repeat(MAX));
    assert_eq!(text(MAX + 1), "x".repeat(MAX) + "...");
    // A character that would exceed the limit is dropped as a whole.
    let wide = Value::from("x".repeat(MAX - 1) + "\u{e9}\u{e9}").to_go_string();
    assert_eq!(wide, "x".repeat(MAX - 1) + "...");
    let bytes = Value::bytes(vec![1; MAX]).to_go_string();
    assert_eq!(bytes.len(), MAX + 3);
    let list = Value::list(vec![Value::from("y".repeat(MAX / 2)); 8]).to_go_string();
    assert_eq!(list.len(), MAX + 3);
    let entries = (0..8).map(|n| (Value::Int(n), Value::from("z".repeat(MAX / 2))));
    assert_eq!(Value::map(entries).unwrap().to_go_string().len(), MAX + 3);
}

#[test]
fn long_message_of_evaluation_error_is_cut() {
    const MAX: usize = 256 << 10;
    let message = |n_bytes: usize| EvalError::new("x".repeat(n_bytes)).message().to_owned();
    assert_eq!(message(MAX).len(), MAX);
    assert_eq!(message(MAX + 1), "x".repeat(MAX) + "...");
}

fn joined() -> List {
    let left = List::new(ints([1]));
    left.clone().join(&left)
}

fn object(name: Option<&'static str>) -> Value {
    Value::Map(Map::from_source(Arc::new(Lengths(&["a"], name))))
}

#[test]
fn each_value_has_its_go_type() {
    let entries = Value::map([(Value::Int(1), Value::Int(2))]).unwrap();
    for (value, go_type, wrapped) in [
        (Value::Null, "types.Null", "structpb.NullValue"),
        (Value::Bool(true), "types.Bool", "bool"),
        (Value::Int(1), "types.Int", "int64"),
        (Value::Uint(1), "types.Uint", "uint64"),
        (Value::Double(1.0), "types.Double", "float64"),
        (Value::from("a"), "types.String", "string"),
        (Value::bytes(*b"a"), "types.Bytes", "[]uint8"),
        (Value::Duration(1), "types.Duration", "time.Duration"),
        (at(0, 0, 0), "types.Timestamp", "time.Time"),
        (type_value(Type::Int), "*types.Type", "string"),
        (Value::list([]), "*types.baseList", "[]ref.Val"),
        (
            Value::List(List::from_json(Vec::new())),
            "*types.baseList",
            "[]interface {}",
        ),
        (
            Value::List(List::growing()),
            "*types.mutableList",
            "[]ref.Val",
        ),
        (Value::List(joined()), "*types.concatList", "[]interface {}"),
        (
            Value::List(List::from_source(Arc::new(Numbers(1)))),
            "*common.unstructuredList",
            "[]interface {}",
        ),
        (entries, "*types.baseMap", "map[ref.Val]ref.Val"),
        (
            Value::object(Vec::new()),
            "*types.baseMap",
            "map[string]interface {}",
        ),
        (
            Value::Map(Map::growing()),
            "*types.mutableMap",
            "map[ref.Val]ref.Val",
        ),
        (
            object(None),
            "*common.unstructuredMap",
            "map[string]interface {}",
        ),
        (
            object(Some("Object")),
            "*lazy.MapValue",
            "map[string]interface {}",
        ),
        (Value::none(), "*types.Optional", "<nil>"),
        (Value::some(Value::Int(1)), "*types.Optional", "int64"),
        (Value::opaque(Named("n")), "test.Named", "*test.Native"),
        (Value::opaque(Bare), "*test.Bare", "*test.Bare"),
        (
            Value::Error(EvalError::fixed("e")),
            "*types.Err",
            "*types.Err",
        ),
    ] {
        assert_eq!(value.go_type(), go_type, "{value:?}");
        assert_eq!(value.wrapped_go_type(), wrapped, "{value:?}");
    }
}

#[test]
fn each_value_has_its_cel_type() {
    for (value, expected) in [
        (Value::Null, "null_type"),
        (Value::from("a"), "string"),
        (Value::Duration(1), "google.protobuf.Duration"),
        (at(0, 0, 0), "google.protobuf.Timestamp"),
        (Value::list([]), "list(dyn)"),
        (Value::object(Vec::new()), "map(dyn, dyn)"),
        (Value::Map(Map::growing()), "map(dyn, dyn)"),
        (object(None), "map(string, int)"),
        (object(Some("Object")), "Object"),
        (type_value(Type::Int), "type"),
        (Value::none(), "optional_type"),
        (Value::opaque(Bare), "test.Bare"),
        (Value::Error(EvalError::fixed("e")), "error"),
    ] {
        assert_eq!(value.type_().declared_string(), expected);
    }
}

#[test]
fn type_names_match_upstream() {
    let of_two = Type::opaque("pair", vec![Type::Int, Type::Null]);
    let apart = Type::Struct(StructType::undeclared(StructType::distinct_name("a.B")));
    for (type_, display, declared, name) in [
        (Type::Error, "!error!", "error", "error"),
        (
            Type::Any,
            "any",
            "google.protobuf.Any",
            "google.protobuf.Any",
        ),
        (Type::Null, "null", "null_type", "null_type"),
        (
            Type::map(Type::Int, Type::Duration),
            "map(int, duration)",
            "map(int, google.protobuf.Duration)",
            "map",
        ),
        (of_two, "pair(int, null)", "pair(int, null_type)", "pair"),
        (apart, "a.B", "a.B", "a.B"),
        (Type::type_of(Type::Int), "type(int)", "type(int)", "type"),
        (Type::Type(None), "type", "type", "type"),
    ] {
        assert_eq!(type_.to_string(), display);
        assert_eq!(type_.declared_string(), declared);
        assert_eq!(type_.type_name(), name);
    }
}

#[test]
fn debug_output_of_evaluation_error_shows_kind_and_message() {
    let debug = |error: EvalError| format!("{error:?}");
    assert_eq!(debug(EvalError::fixed("a")), "EvalError(Value, \"a\")");
    assert_eq!(
        debug(EvalError::cancelled("b")),
        "EvalError(Cancelled, \"b\")"
    );
    assert_eq!(
        debug(EvalError::internal("c")),
        "EvalError(Internal, \"internal error: c\")"
    );
}
