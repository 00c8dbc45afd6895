//! JSON values whose objects may have duplicate keys.

use std::fmt;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    /// Null, a boolean, a number or a string.
    Scalar(Value),
    /// A list.
    List(Vec<Self>),
    /// The keys and values of an object, in order. Keys may be equal.
    Map(Vec<(String, Self)>),
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(fields) => {
                let fields = fields.into_iter();
                Self::Map(fields.map(|(name, value)| (name, value.into())).collect())
            }
            scalar => Self::Scalar(scalar),
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(value) => write!(f, "{value}"),
            Self::List(items) => {
                write!(f, "[")?;
                for (n, item) in items.iter().enumerate() {
                    let comma = if n > 0 { ", " } else { "" };
                    write!(f, "{comma}{item}")?;
                }
                write!(f, "]")
            }
            Self::Map(fields) => {
                write!(f, "{{")?;
                for (n, (name, field)) in fields.iter().enumerate() {
                    let comma = if n > 0 { ", " } else { "" };
                    write!(f, "{comma}{}: {field}", Value::from(name.as_str()))?;
                }
                write!(f, "}}")
            }
        }
    }
}

impl Tree {
    /// Returns the number of values: this value and all values within it.
    pub(super) fn count(&self) -> usize {
        1 + match self {
            Self::Scalar(_) => 0,
            Self::List(items) => items.iter().map(Self::count).sum(),
            Self::Map(fields) => fields.iter().map(|(_, field)| field.count()).sum(),
        }
    }

    /// Returns the `n`th value in depth-first order, starting with this value. Also returns the name of the field that
    /// contains the value.
    pub(super) fn nth(&mut self, n: usize) -> Option<(&str, &mut Self)> {
        self.nth_of("", n).ok()
    }

    fn nth_of<'a>(&'a mut self, name: &'a str, n: usize) -> Result<(&'a str, &'a mut Self), usize> {
        if n == 0 {
            return Ok((name, self));
        }
        let mut left = n - 1;
        let children: Vec<(&'a str, &'a mut Self)> = match self {
            Self::Scalar(_) => Vec::new(),
            Self::List(items) => items.iter_mut().map(|item| (name, item)).collect(),
            Self::Map(fields) => {
                let fields = fields.iter_mut();
                fields.map(|(name, field)| (name.as_str(), field)).collect()
            }
        };
        for (name, child) in children {
            let size = child.count();
            if left < size {
                return child.nth_of(name, left);
            }
            left -= size;
        }
        Err(left)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Map(fields) => {
                let mut fields = fields.iter_mut();
                let entry = fields.find(|(known, _)| known == name);
                entry.map(|(_, field)| field)
            }
            _ => None,
        }
    }

    /// Adds a field. An existing field with the same name stays.
    pub(super) fn set(&mut self, name: &str, value: Self) {
        if let Some(field) = self.get_mut(name) {
            *field = value;
        } else if let Self::Map(fields) = self {
            fields.push((name.to_owned(), value));
        }
    }
}
