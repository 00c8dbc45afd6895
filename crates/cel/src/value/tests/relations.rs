//! Equality and order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Bare, Lengths, Named, Numbers, at, ints, type_value};
use crate::types::Type;
use crate::value::{ErrorKind, EvalError, List, Map, Value, double_to_int, double_to_uint};

const MAX_INT: f64 = 9_223_372_036_854_775_808.0;
const MAX_UINT: f64 = 18_446_744_073_709_551_616.0;

fn failing_equality() -> Value {
    // Comparing this value with a value of a different type is an error.
    Value::opaque(Named("n"))
}

#[test]
fn double_becomes_integer_only_if_conversion_is_exact() {
    for (value, int, uint) in [
        (0.0, Some(0), Some(0)),
        (1.5, None, None),
        (-1.0, Some(-1), None),
        (-0.0, Some(0), Some(0)),
        (MAX_INT, None, Some(1 << 63)),
        (-MAX_INT, None, None),
        (
            MAX_INT - 1024.0,
            Some(i64::MAX - 1023),
            Some((1 << 63) - 1024),
        ),
        (1024.0 - MAX_INT, Some(1024 + i64::MIN), None),
        (MAX_UINT, None, None),
        (MAX_UINT - 2048.0, None, Some(u64::MAX - 2047)),
        (f64::NAN, None, None),
        (f64::INFINITY, None, None),
        (f64::NEG_INFINITY, None, None),
    ] {
        assert_eq!(double_to_int(value), int, "{value}");
        assert_eq!(double_to_uint(value), uint, "{value}");
    }
}

#[test]
fn numbers_of_different_types_are_ordered() {
    use Ordering::{Equal, Greater, Less};
    for (left, right, expected) in [
        (Value::Int(1), Value::Int(2), Less),
        (Value::Int(-1), Value::Uint(0), Less),
        (Value::Int(1), Value::Uint(1), Equal),
        (Value::Int(2), Value::Uint(1), Greater),
        (Value::Int(i64::MAX), Value::Uint(u64::MAX), Less),
        (Value::Int(1), Value::Double(1.0), Equal),
        (Value::Int(1), Value::Double(0.5), Greater),
        (Value::Int(i64::MAX), Value::Double(1e19), Less),
        (Value::Int(i64::MIN), Value::Double(-1e19), Greater),
        (Value::Int(i64::MAX), Value::Double(MAX_INT), Equal),
        (Value::Int(i64::MIN), Value::Double(-MAX_INT), Equal),
        (Value::Int(0), Value::Double(f64::INFINITY), Less),
        (Value::Uint(1), Value::Double(1.0), Equal),
        (Value::Uint(0), Value::Double(-0.5), Greater),
        (Value::Uint(0), Value::Double(-0.0), Equal),
        (Value::Uint(u64::MAX), Value::Double(1e20), Less),
        (Value::Uint(u64::MAX), Value::Double(MAX_UINT), Equal),
        (Value::Uint(1), Value::Uint(2), Less),
        (Value::Double(1.0), Value::Double(2.0), Less),
        (Value::Bool(false), Value::Bool(true), Less),
        (Value::Duration(2), Value::Duration(1), Greater),
        (Value::from("a"), Value::from("b"), Less),
        (Value::from("\u{e9}"), Value::from("z"), Greater),
        (Value::bytes(*b"b"), Value::bytes(*b"a"), Greater),
        (at(1, 0, 5), at(1, 0, 0), Equal),
        (at(1, 0, 0), at(1, 1, 0), Less),
        (at(2, 0, 0), at(1, 1, 0), Greater),
        (Value::opaque(Named("a")), Value::opaque(Named("b")), Less),
    ] {
        assert_eq!(left.compare(&right), Ok(expected), "{left:?} {right:?}");
        let reversed = right.compare(&left);
        assert_eq!(reversed, Ok(expected.reverse()), "{right:?} {left:?}");
        let are_equal = left.equals(&right);
        assert_eq!(are_equal, Ok(expected == Equal), "{left:?} {right:?}");
        let are_equal = right.equals(&left);
        assert_eq!(are_equal, Ok(expected == Equal), "{right:?} {left:?}");
    }
}

#[test]
fn comparison_with_nan_or_other_type_fails() {
    let nan = Err(EvalError::fixed("NaN values cannot be ordered"));
    let none = Err(EvalError::no_such_overload());
    let number = Value::Double(f64::NAN);
    for (left, right, expected) in [
        (&number, &Value::Int(1), &nan),
        (&number, &Value::from("a"), &nan),
        (&Value::Int(1), &number, &nan),
        (&Value::Uint(1), &number, &nan),
        (&Value::Double(1.0), &number, &nan),
        (&Value::from("a"), &Value::Int(1), &none),
        (&Value::Null, &Value::Null, &none),
        (&Value::Duration(1), &Value::Int(1), &none),
        (&Value::opaque(Bare), &Value::Int(1), &none),
        (&Value::opaque(Named("a")), &Value::Int(1), &none),
    ] {
        assert_eq!(&left.compare(right), expected, "{left:?} {right:?}");
    }
}

#[test]
fn values_of_all_types_are_compared_for_equality() {
    let list = |elements: Vec<Value>| Value::list(elements);
    let map = |key: Value, value: Value| Value::map([(key, value)]).unwrap();
    let object = |value: Value| Value::object(vec![("a".into(), value)]);
    let numbers = || Value::List(List::from_source(Arc::new(Numbers(2))));
    let lengths = || Value::Map(Map::from_source(Arc::new(Lengths(&["a"], None))));
    for (left, right, expected) in [
        (Value::Null, Value::Null, true),
        (Value::Null, Value::Int(0), false),
        (Value::Double(f64::NAN), Value::Double(f64::NAN), false),
        (Value::Int(1), Value::Duration(1), false),
        (Value::from("a"), Value::bytes(*b"a"), false),
        (type_value(Type::Int), type_value(Type::Int), true),
        (
            type_value(Type::list(Type::Int)),
            type_value(Type::list(Type::Dyn)),
            true,
        ),
        (type_value(Type::Int), type_value(Type::Uint), false),
        (list(ints([1, 2])), list(ints([1, 2])), true),
        (list(ints([1, 2])), list(ints([1])), false),
        (list(ints([1, 2])), list(ints([1, 3])), false),
        (list(ints([1])), list(vec![Value::Double(1.0)]), true),
        (numbers(), list(ints([0, 1])), true),
        (numbers(), list(ints([0, 2])), false),
        (numbers(), Value::Int(2), false),
        (list(ints([])), object(Value::Null), false),
        (
            map(Value::from("a"), Value::Int(1)),
            object(Value::Uint(1)),
            true,
        ),
        (
            map(Value::from("b"), Value::Int(1)),
            object(Value::Int(1)),
            false,
        ),
        (object(Value::Int(1)), object(Value::Int(2)), false),
        (object(Value::Int(1)), Value::object(Vec::new()), false),
        (
            map(Value::Int(1), Value::Null),
            map(Value::Uint(1), Value::Null),
            true,
        ),
        (lengths(), object(Value::Int(1)), true),
        (lengths(), object(Value::Int(2)), false),
        (Value::none(), Value::none(), true),
        (Value::none(), Value::some(Value::Null), false),
        (
            Value::some(Value::Int(1)),
            Value::some(Value::Uint(1)),
            true,
        ),
        (Value::some(Value::Int(1)), Value::Int(1), false),
        (Value::opaque(Bare), Value::opaque(Bare), true),
        (Value::opaque(Bare), Value::Int(1), false),
    ] {
        assert_eq!(left.equals(&right), Ok(expected), "{left:?} {right:?}");
    }
}

#[test]
fn elements_whose_comparison_fails_count_as_equal() {
    let error = EvalError::no_such_overload();
    let (odd, one) = (failing_equality(), Value::Int(1));
    assert_eq!(odd.equals(&one), Err(error.clone()));
    assert_eq!(Value::Error(error.clone()).equals(&one), Err(error.clone()));
    let list = |elements: [&Value; 2]| Value::list(elements.map(Value::clone));
    // As in upstream, elements whose comparison fails count as equal, unless the list is a concatenation.
    let plain = list([&odd, &one]);
    assert_eq!(plain.equals(&list([&one, &one])), Ok(true));
    assert_eq!(plain.equals(&list([&one, &odd])), Ok(false));
    let left = List::new(vec![odd.clone()]);
    let joined = Value::List(left.clone().join(&List::new(vec![one.clone()])));
    assert_eq!(joined.equals(&list([&one, &one])), Err(error));
    assert_eq!(joined.equals(&list([&one, &Value::Int(2)])), Ok(false));
    let map = |value: &Value| Value::map([(Value::Int(1), value.clone())]).unwrap();
    assert_eq!(map(&odd).equals(&map(&one)), Ok(true));
    let bad = Value::map([(Value::from("bad"), one)]).unwrap();
    let source = Value::Map(Map::from_source(Arc::new(Lengths(&["a"], None))));
    assert_eq!(bad.equals(&source), Ok(false));
}

#[test]
fn depth_of_equality_comparison_is_limited() {
    let nested = |depth: u32| (0..depth).fold(Value::Null, |value, _| Value::list([value]));
    assert_eq!(nested(10_000).equals(&nested(10_000)), Ok(true));
    let error = nested(10_001).equals(&nested(10_001)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit(_)), "{error:?}");
}

#[test]
fn errors_are_equal_regardless_of_origin() {
    let error = EvalError::fixed("a");
    assert_eq!(
        (error.origin(), error.clone().at_step(3).origin()),
        (None, Some(3))
    );
    assert_eq!(error.clone().at_step(3).at_step(4).origin(), Some(3));
    assert_eq!(EvalError::new("a").at_step(5).origin(), Some(5));
    assert_eq!(error, EvalError::new("a").at_step(1));
    assert_ne!(error, EvalError::fixed("b"));
    assert_ne!(error, EvalError::cancelled("a"));
    assert!(!error.ends_evaluation() && EvalError::cancelled("a").ends_evaluation());
    assert!(EvalError::internal("a").ends_evaluation());
    let args = [Value::Int(1), Value::list([])];
    assert_eq!(
        EvalError::no_such_overload_of("f", &args).message(),
        "no such overload: f(int, list)"
    );
}

#[test]
fn cost_size_of_optional_is_size_of_content() {
    let text = Value::from("a\u{e9}\u{1f600}");
    for (value, size, cost) in [
        (text.clone(), Some(3), 3),
        (Value::bytes(*b"ab"), Some(2), 2),
        (Value::list([]), Some(0), 0),
        (Value::object(vec![("a".into(), Value::Null)]), Some(1), 1),
        (Value::Int(5), None, 1),
        (Value::some(Value::some(text)), None, 3),
        (Value::none(), None, 1),
        (Value::opaque(Bare), None, 1),
    ] {
        assert_eq!((value.size(), value.cost_size()), (size, cost), "{value:?}");
    }
}
