//! Tests of the order and the formats of values.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::merge::element::Key;
use crate::merge::go_syntax::{plain, syntax, type_name};
use crate::merge::node::Node;
use crate::merge::{Applied, NonJson};

#[test]
fn values_are_ordered_by_type_and_value() {
    // Each value is less than the next.
    let values = [
        json!(-1.5),
        json!(1),
        json!(1.5),
        json!(2),
        json!("a"),
        json!("b"),
        json!(false),
        json!(true),
        json!([]),
        json!([1]),
        json!([1, 2]),
        json!([2]),
        json!({}),
        json!({"a": 1}),
        json!({"a": 1, "b": 1}),
        json!({"a": 2}),
        json!({"b": 1}),
        json!(null),
    ];
    for (n, a) in values.iter().enumerate() {
        for (m, b) in values.iter().enumerate() {
            let order = Node::from_json(a).compare(&Node::from_json(b));
            assert_eq!(order, n.cmp(&m), "{a} {b}");
        }
    }
    let equal = |a: Value, b: Value| {
        assert_eq!(
            Node::from_json(&a).compare(&Node::from_json(&b)),
            Ordering::Equal
        );
    };
    equal(json!(1), json!(1.0));
    equal(json!(2.0), json!(2));
    let other = NonJson::default();
    assert_eq!(Node::Null.compare(&Node::NonJson(&other)), Ordering::Less);
    assert!(Node::Int(1).is_scalar() && Node::Text("").is_scalar() && Node::Bool(true).is_scalar());
    assert!(
        Node::Double(1.0).is_scalar()
            && !Node::Null.is_scalar()
            && !Node::NonJson(&other).is_scalar()
    );
}

#[test]
fn values_in_paths_are_formatted() {
    for (value, expected) in [
        (json!(null), "null"),
        (json!(true), "true"),
        (json!(5), "5"),
        (json!(1.5), "1.5"),
        (json!("a\"b"), "\"a\\\"b\""),
        (json!([1, "x"]), "[1,\"x\"]"),
        (json!({"a": 1}), "a=1"),
    ] {
        assert_eq!(Node::from_json(&value).path_text(), expected);
    }
    assert_eq!(
        Node::NonJson(&NonJson::default()).path_text(),
        "{{undefined}}"
    );
}

#[test]
fn keys_are_ordered_and_formatted() {
    let value = |number: i64| Key::Value(Node::Int(number));
    let fields = |fields: &[(&'static str, i64)]| {
        Key::Fields(
            fields
                .iter()
                .map(|(name, number)| (*name, Node::Int(*number)))
                .collect(),
        )
    };
    let keys = [
        fields(&[("a", 1)]),
        fields(&[("a", 1), ("b", 1)]),
        fields(&[("a", 1), ("b", 2)]),
        fields(&[("a", 2)]),
        fields(&[("b", 0)]),
        value(1),
        value(2),
    ];
    for (n, a) in keys.iter().enumerate() {
        for (m, b) in keys.iter().enumerate() {
            assert_eq!(a.partial_cmp(b), Some(n.cmp(&m)), "{a:?} {b:?}");
            assert_eq!(a == b, n == m);
        }
    }
    assert_eq!(
        keys.map(|key| key.text())[2..6],
        ["[a=1,b=2]", "[a=2]", "[b=0]", "[=1]"]
    );
}

#[test]
fn values_are_formatted_in_go_syntax() {
    let other = NonJson {
        go_type: "time.Duration".to_owned(),
        plain: "1s".to_owned(),
        syntax: "1000000000".to_owned(),
    };
    let node = Node::NonJson(&other);
    assert_eq!(type_name(&node), "time.Duration");
    assert_eq!(plain(&node), "&{1s}");
    assert_eq!(syntax(&node), "&value.valueUnstructured{Value:1000000000}");
    assert_eq!(node.to_json(), Value::Null);
    assert_eq!(plain(&Node::List(vec![node, Node::Null])), "&{[1s <nil>]}");
    for (value, type_) in [
        (json!(null), "<nil>"),
        (json!(true), "bool"),
        (json!(5), "int64"),
        (json!(1.5), "float64"),
        (json!("x"), "string"),
        (json!([]), "[]interface {}"),
        (json!({}), "map[string]interface {}"),
    ] {
        assert_eq!(type_name(&Node::from_json(&value)), type_);
    }
}

#[test]
fn json_is_unchanged_by_conversion_to_nodes() {
    for value in [
        json!(null),
        json!({"a": [1, 1.5, true, "x", {"b": null}]}),
        json!(18_446_744_073_709_551_615.0),
    ] {
        let applied = Applied::from(&value);
        assert_eq!(Node::from_json(&value).to_json(), value);
        assert_eq!(Node::from_applied(&applied).to_json(), value);
    }
    assert_eq!(
        Applied::from(&json!(u64::MAX)),
        Applied::Double(18_446_744_073_709_551_615.0)
    );
    assert_eq!(Node::Double(f64::NAN).to_json(), Value::Null);
}
