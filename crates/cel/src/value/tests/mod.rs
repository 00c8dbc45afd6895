//! Tests of values. The expected results are those of Go and of cel-go's `common/types`.

mod conversions;
mod doubles;
mod lists;
mod maps;
mod relations;
mod texts;

use std::cmp::Ordering;
use std::sync::Arc;

use super::{EvalError, Hashed, ListSource, MapSource, Opaque, Timestamp, Traits, Value};
use crate::types::{StructType, Type};

/// A list whose elements are created on access.
#[derive(Debug)]
struct Numbers(i64);

impl ListSource for Numbers {
    fn len(&self) -> usize {
        usize::try_from(self.0).unwrap()
    }

    fn get(&self, index: usize) -> Option<Value> {
        (index < self.len()).then(|| Value::Int(i64::try_from(index).unwrap()))
    }
}

/// A map from names to their lengths, created on access. The type is an object type if it has a name.
#[derive(Debug)]
struct Lengths(&'static [&'static str], Option<&'static str>);

impl MapSource for Lengths {
    fn type_(&self) -> Type {
        match self.1 {
            Some(name) => Type::Struct(StructType::undeclared(name)),
            None => Type::map(Type::String, Type::Int),
        }
    }

    fn find(&self, key: &Value) -> Result<Option<Value>, EvalError> {
        match key.as_str() {
            Some("bad") => Err(EvalError::fixed("bad key")),
            Some(name) if self.0.contains(&name) => {
                Ok(Some(Value::Int(i64::try_from(name.len()).unwrap())))
            }
            _ => Ok(None),
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn keys(&self) -> Result<Vec<Value>, EvalError> {
        Ok(self.0.iter().map(|name| Value::from(*name)).collect())
    }
}

/// A map without rules of its own.
#[derive(Debug)]
struct Nothing;

impl MapSource for Nothing {
    fn find(&self, _: &Value) -> Result<Option<Value>, EvalError> {
        Ok(None)
    }

    fn len(&self) -> usize {
        0
    }

    fn keys(&self) -> Result<Vec<Value>, EvalError> {
        Ok(Vec::new())
    }
}

/// A value that is hashed by its string.
#[derive(Debug)]
struct Named(&'static str);

impl Opaque for Named {
    fn type_(&self) -> Type {
        Type::opaque("test.Named", Vec::new())
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        match other.downcast::<Self>() {
            Some(other) => Ok(self.0 == other.0),
            None => Err(EvalError::no_such_overload()),
        }
    }

    fn compare(&self, other: &Value) -> Result<Ordering, EvalError> {
        match other.downcast::<Self>() {
            Some(other) => Ok(self.0.cmp(other.0)),
            None => Err(EvalError::no_such_overload()),
        }
    }

    fn traits(&self) -> Traits {
        Traits::COMPARER
    }

    fn hashed(&self) -> Hashed {
        Hashed::ByText(self.0.to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn native_type(&self) -> &'static str {
        "*test.Native"
    }

    fn go_type(&self) -> &'static str {
        "test.Named"
    }
}

/// A value with the default behavior.
#[derive(Debug)]
struct Bare;

impl Opaque for Bare {
    fn type_(&self) -> Type {
        Type::opaque("test.Bare", Vec::new())
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        Ok(other.downcast::<Self>().is_some())
    }

    fn native_type(&self) -> &'static str {
        "*test.Bare"
    }
}

fn at(seconds: i64, nanos: u32, offset_seconds: i32) -> Value {
    Value::Timestamp(Timestamp {
        seconds,
        nanos,
        offset_seconds,
    })
}

fn ints(numbers: impl IntoIterator<Item = i64>) -> Vec<Value> {
    numbers.into_iter().map(Value::Int).collect()
}

fn type_value(of: Type) -> Value {
    Value::Type(Arc::new(of))
}
