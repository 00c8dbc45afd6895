//! Tests of converting plain values to the types of a schema.

use serde_json::{Value as Json, json};

use super::raw::{Members, hashable, unwrapped};
use super::{ValueSchema, go_type, typed};
use crate::version::KubernetesVersion;
use cel::value::{EvalBudget, Value};

fn value(schema: &Json, raw: &Json) -> Value {
    typed(
        &Value::from(raw),
        &ValueSchema::from_structural(schema, false, KubernetesVersion::DEFAULT.behavior()),
    )
}

#[test]
fn value_of_wrong_type_is_an_error() {
    let invalid = "invalid data, expected";
    for (schema, raw, expected) in [
        (
            json!({"type": "string"}),
            json!(1),
            format!("{invalid} string, got int64"),
        ),
        (
            json!({"type": "string"}),
            json!(true),
            format!("{invalid} string, got bool"),
        ),
        (
            json!({"type": "integer"}),
            json!("x"),
            format!("{invalid} int, got string"),
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            format!("{invalid} int, got float64"),
        ),
        (
            json!({"type": "number"}),
            json!([]),
            format!("{invalid} float, got []interface {{}}"),
        ),
        (
            json!({"type": "boolean"}),
            json!({}),
            format!("{invalid} bool, got map[string]interface {{}}"),
        ),
        (
            json!({"type": "object"}),
            json!(1),
            format!("{invalid} a map for the provided schema with type=object"),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(1),
            format!("{invalid} an array for the provided schema with type=array"),
        ),
        (
            json!({"type": "array"}),
            json!([]),
            "invalid array type, expected Items with a non-empty Schema".to_owned(),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}),
            json!([]),
            "invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got bag"
                .to_owned(),
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(1.5),
            format!("{invalid} XIntOrString value to be either a string or integer"),
        ),
        (
            json!({"type": "string"}),
            json!(null),
            "invalid data, got null for schema with nullable=false".to_owned(),
        ),
        (
            json!({"type": "string", "format": "byte"}),
            json!("a*"),
            "Invalid byte formatted string a*: illegal base64 data at input byte 1".to_owned(),
        ),
        (
            json!({"type": "string", "format": "duration"}),
            json!("x"),
            "Invalid duration x: unable to parse x as duration".to_owned(),
        ),
    ] {
        match value(&schema, &raw) {
            Value::Error(error) => assert_eq!(error.message(), expected, "{schema} {raw}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn value_of_right_type_is_converted() {
    let matches = |schema: Json, raw: Json, is: fn(&Value) -> bool| {
        let value = value(&schema, &raw);
        assert!(is(&value), "{schema} {raw}: {value:?}");
    };
    matches(
        json!({"type": "string", "nullable": true}),
        json!(null),
        |it| matches!(it, Value::Null),
    );
    matches(json!({"type": "number"}), json!(2), |it| {
        matches!(it, Value::Double(2.0))
    });
    matches(json!({"type": "number"}), json!(1.5), |it| {
        matches!(it, Value::Double(1.5))
    });
    matches(json!({"type": "integer"}), json!(2), |it| {
        matches!(it, Value::Int(2))
    });
    matches(json!({"type": "boolean"}), json!(true), |it| {
        matches!(it, Value::Bool(true))
    });
    for raw in [json!("x"), json!(1)] {
        matches(json!({"x-kubernetes-int-or-string": true}), raw, |it| {
            matches!(it, Value::String(_) | Value::Int(_))
        });
    }
    let string = |format: &str| json!({"type": "string", "format": format});
    matches(
        string("byte"),
        json!("aGk="),
        |it| matches!(it, Value::Bytes(bytes) if **bytes == *b"hi"),
    );
    matches(string("duration"), json!("1s"), |it| {
        matches!(it, Value::Duration(1_000_000_000))
    });
    matches(
        string("date"),
        json!("1970-01-02"),
        |it| matches!(it, Value::Timestamp(at) if at.seconds == 86_400),
    );
    matches(
        string("date-time"),
        json!("1970-01-01T00:00:05Z"),
        |it| matches!(it, Value::Timestamp(at) if at.seconds == 5),
    );
    matches(string("uuid"), json!("x"), |it| {
        matches!(it, Value::String(_))
    });
    for list_type in ["atomic", "map", "set"] {
        let list = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": list_type});
        matches(
            list,
            json!(["a"]),
            |it| matches!(it, Value::List(list) if list.len() == 1),
        );
    }
}

#[test]
fn value_with_preserved_unknown_fields_can_only_be_compared() {
    let schema = json!({"x-kubernetes-preserve-unknown-fields": true});
    let of = |raw: Json| value(&schema, &raw);
    for (a, b, expected) in [
        (json!(1), json!(1), true),
        (json!(1), json!(2), false),
        (json!(1), json!(1.0), false),
        (json!("1"), json!(1), false),
        (json!([1]), json!([1]), true),
        (json!({"a": 1}), json!({"a": 1}), true),
        (json!({"a": 1}), json!({"a": 2}), false),
    ] {
        let Value::Opaque(opaque) = of(a.clone()) else {
            panic!("{a}");
        };
        assert_eq!(
            opaque.equals(&of(b.clone())).ok(),
            Some(expected),
            "{a} {b}"
        );
        assert_eq!(
            opaque.equals(&Value::from(&b)).ok(),
            Some(expected),
            "{a} {b}"
        );
        assert_eq!(opaque.type_().type_name(), "unknown");
        assert_eq!(opaque.native_type(), go_type(&Value::from(&a)));
        assert_eq!(opaque.go_type(), "*common.unknownPreserved");
        let message = "not supported for values preserved by x-kubernetes-preserve-unknown-fields";
        for error in [
            opaque.convert_to(&cel::types::Type::String).unwrap_err(),
            opaque.own_type().unwrap_err(),
        ] {
            assert!(error.message().ends_with(message), "{error}");
        }
    }
}

#[test]
fn unwrapped_values_have_go_types() {
    let budget = EvalBudget::default();
    for (value, expected) in [
        (Value::Null, "structpb.NullValue"),
        (Value::Uint(1), "uint64"),
        (Value::bytes(*b"a"), "[]uint8"),
        (Value::Duration(1), "time.Duration"),
        (Value::Int(1), "int64"),
        (Value::Double(1.0), "float64"),
        (Value::string("a"), "string"),
        (Value::Bool(true), "bool"),
        (Value::some(Value::Int(1)), "int64"),
        (Value::none(), "<nil>"),
        (Value::from(&json!([1])), "[]interface {}"),
        (Value::from(&json!({"a": 1})), "map[string]interface {}"),
        (Value::list(vec![Value::Int(1)]), "[]ref.Val"),
    ] {
        let raw = unwrapped(&value, &budget).unwrap();
        assert_eq!(go_type(&raw), expected, "{value:?}");
        let is_hashable = !expected.starts_with("[]") && !expected.starts_with("map[");
        assert_eq!(hashable(&raw).is_ok(), is_hashable, "{expected}");
    }
    let raw = Value::from(&json!([1]));
    let error = hashable(&raw).unwrap_err();
    assert!(
        error
            .message()
            .contains("hash of unhashable type []interface {}"),
        "{error}"
    );
}

#[test]
fn set_members_are_compared_like_keys_of_go_maps() {
    let budget = EvalBudget::default();
    let raw = |value: Value| unwrapped(&value, &budget).unwrap();
    let values = || {
        [
            Value::Bool(true),
            Value::Int(1),
            Value::Double(1.0),
            Value::string("1"),
            Value::Uint(1),
            Value::Duration(1),
            Value::Duration(2),
            Value::none(),
        ]
    };
    for (n, own) in values().into_iter().enumerate() {
        let mut members = Members::default();
        members.insert(raw(own));
        for (m, other) in values().into_iter().enumerate() {
            assert_eq!(members.contains(&raw(other.clone())), n == m, "{other:?}");
        }
    }
    let mut members = Members::default();
    members.insert(Value::Double(0.0));
    assert!(members.contains(&Value::Double(-0.0)) && !members.contains(&Value::Double(1.5)));
    members.insert(Value::Double(f64::NAN));
    assert!(!members.contains(&Value::Double(f64::NAN)));
}
