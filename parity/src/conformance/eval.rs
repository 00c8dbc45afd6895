//! Converts values of the conformance tests to values of the evaluator, and compares results with expected values.
//!
//! Source: cel-spec `simple.proto`, `SimpleTest.value` (equality of values, maps in any order, all NaNs equal); cel-go
//! `conformance/conformance_test.go`, `diffValue`.

use std::sync::Arc;

use vap_status_controller::cel::eval::Bindings;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::{Timestamp, Value as Actual};

use super::run::Failure;
use super::suite::Test;
use super::value::{Binding, Span, Value};

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Returns the values of the variables of `test`.
///
/// # Errors
/// Returns an error if the evaluator does not support the value of a variable.
pub fn bindings(test: &Test) -> Result<Bindings, Failure> {
    let mut bindings = Bindings::default();
    for (name, binding) in &test.bindings {
        let Binding::Value(value) = binding else {
            return Err(Failure::NotSupported(
                "a variable that is an error or unknown",
            ));
        };
        let value = actual(value).ok_or(Failure::NotSupported(
            "a variable with a value of this type",
        ))?;
        bindings.bind(name.as_str(), value);
    }
    Ok(bindings)
}

/// Converts a value of a test to a value of the evaluator. Returns `None` for messages and enumeration values.
fn actual(value: &Value) -> Option<Actual> {
    Some(match value {
        Value::Null => Actual::Null,
        Value::Bool(value) => Actual::Bool(*value),
        Value::Int(value) => Actual::Int(*value),
        Value::Uint(value) => Actual::Uint(*value),
        Value::Double(value) => Actual::Double(*value),
        Value::String(text) => Actual::string(text.as_str()),
        Value::Bytes(bytes) => Actual::bytes(bytes.as_slice()),
        Value::List(elements) => {
            let elements = elements.iter().map(actual);
            Actual::list(elements.collect::<Option<Vec<_>>>()?)
        }
        Value::Map(entries) => {
            let entries = entries.iter().map(|(k, v)| Some((actual(k)?, actual(v)?)));
            Actual::map(entries.collect::<Option<Vec<_>>>()?).ok()?
        }
        Value::Type(name) => Actual::Type(Arc::new(named(name)?)),
        Value::Duration(span) => Actual::Duration(i64::try_from(nanos(*span)).ok()?),
        Value::Timestamp(span) => Actual::Timestamp(Timestamp {
            seconds: span.seconds,
            nanos: u32::try_from(span.nanos).ok()?,
            offset_seconds: 0,
        }),
        Value::Enum(_) | Value::Message(_) => return None,
    })
}

/// Returns the type with the runtime name `name`. Returns `None` if the engine has no such type.
fn named(name: &str) -> Option<Type> {
    let types = [
        Type::Null,
        Type::Bool,
        Type::Int,
        Type::Uint,
        Type::Double,
        Type::String,
        Type::Bytes,
        Type::Duration,
        Type::Timestamp,
        Type::list(Type::Dyn),
        Type::map(Type::Dyn, Type::Dyn),
        Type::Type(None),
    ];
    types.into_iter().find(|type_| type_.type_name() == name)
}

fn nanos(span: Span) -> i128 {
    i128::from(span.seconds) * NANOS_PER_SECOND + i128::from(span.nanos)
}

/// Returns true if `value` equals the expected value and has the same type.
#[must_use]
pub fn is_expected(expected: &Value, value: &Actual) -> bool {
    match (expected, value) {
        (Value::Null, Actual::Null) => true,
        (Value::Bool(a), Actual::Bool(b)) => a == b,
        (Value::Int(a), Actual::Int(b)) => a == b,
        (Value::Uint(a), Actual::Uint(b)) => a == b,
        (Value::Double(a), Actual::Double(b)) => {
            // Compares doubles like protobuf: the sign of zero is significant, and all NaNs are equal.
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        }
        (Value::String(a), Actual::String(b)) => **a == **b,
        (Value::Bytes(a), Actual::Bytes(b)) => **a == **b,
        (Value::Type(name), Actual::Type(type_)) => *name == type_.type_name(),
        (Value::Duration(span), Actual::Duration(b)) => nanos(*span) == i128::from(*b),
        (Value::Timestamp(span), Actual::Timestamp(b)) => {
            let (seconds, nanos) = b.instant();
            span.seconds == seconds && i64::from(span.nanos) == i64::from(nanos)
        }
        (Value::List(a), Actual::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_expected(a, &b))
        }
        (Value::Map(a), Actual::Map(b)) => {
            let Ok(entries) = b.entries() else {
                return false;
            };
            let holds = |(key, value): &(Value, Value)| {
                let entry = entries.iter().find(|(k, _)| is_expected(key, k));
                entry.is_some_and(|(_, v)| is_expected(value, v))
            };
            a.len() == entries.len() && a.iter().all(holds)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance_values_convert_to_evaluator_values() {
        let span = Span {
            seconds: -1,
            nanos: -500_000_000,
        };
        let values = [
            Value::Null,
            Value::Double(f64::NAN),
            Value::List(vec![Value::Int(1), Value::String("a".into())]),
            Value::Map(vec![
                (Value::String("b".into()), Value::Bytes(vec![0])),
                (Value::Bool(true), Value::Type("list".into())),
            ]),
            Value::Duration(span),
        ];
        for value in &values {
            let same = actual(value).unwrap();
            for other in &values {
                // Each value equals itself, and no other value of the list.
                assert_eq!(is_expected(other, &same), std::ptr::eq(other, value));
            }
        }
        assert!(!is_expected(&Value::Int(1), &Actual::Uint(1)));
        assert!(!is_expected(&Value::Double(0.0), &Actual::Double(-0.0)));
        assert!(actual(&Value::Message("a.B".into())).is_none());
    }
}
