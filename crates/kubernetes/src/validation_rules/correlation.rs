//! Correlates an updated object with the old object: finds the old value for each nested value, and compares the two.
//!
//! Source: apiserver `pkg/cel/common/equality.go` (`CorrelatedObject`), `maplist.go` (`MapList`).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Number, Value as Json};

use crate::typed_values::ValueSchema;
use cel::value::go_quote;

/// The elements of a list of type `map` by key. If several elements have the same key, only the first element is
/// stored.
#[derive(Debug, Default)]
pub(super) struct MapList<'a> {
    keys: &'a [String],
    elements: HashMap<String, &'a Json>,
}

impl<'a> MapList<'a> {
    /// Indexes the elements of `list`. If `schema` does not describe a list of type `map`, the index is empty.
    pub(super) fn new(schema: &'a ValueSchema, list: Option<&'a Json>) -> Self {
        let keys = schema.map_keys();
        let mut elements = HashMap::new();
        if let (false, Some(Json::Array(list))) = (keys.is_empty(), list) {
            for element in list {
                if let Some(key) = key_of(keys, element) {
                    elements.entry(key).or_insert(element);
                }
            }
        }
        Self { keys, elements }
    }

    /// Returns the indexed element with the same key as `element`.
    pub(super) fn get(&self, element: &Json) -> Option<&'a Json> {
        if self.elements.is_empty() {
            return None;
        }
        self.elements.get(&key_of(self.keys, element)?).copied()
    }
}

/// Combines the key fields of an element into a string. Returns `None` if a key field is absent or not a scalar.
fn key_of(keys: &[String], element: &Json) -> Option<String> {
    let fields = element.as_object()?;
    let mut text = String::new();
    for key in keys {
        text.push('\0');
        // Writing to a string cannot fail.
        let _ = match fields.get(key)? {
            Json::Bool(value) => write!(text, "{value}"),
            Json::Number(number) => match number.as_i64() {
                Some(value) => write!(text, "{value}"),
                // If there is a single key field, upstream compares its values as numbers. It compares the values of
                // several key fields as strings.
                None if keys.len() == 1 => write!(text, "double {}", double(number)),
                None => write!(text, "{:.6}", double(number)),
            },
            Json::String(value) => write!(text, "{}", go_quote(value)),
            _ => return None,
        };
    }
    Some(text)
}

/// Converts a number that is not a 64-bit integer to a double.
fn double(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

#[derive(Debug)]
pub(crate) struct Correlated<'a> {
    new: &'a Json,
    old: &'a Json,
    schema: &'a ValueSchema,
    is_equal: OnceCell<bool>,
}

impl<'a> Correlated<'a> {
    pub(crate) fn new(new: &'a Json, old: &'a Json, schema: &'a ValueSchema) -> Self {
        Self {
            new,
            old,
            schema,
            is_equal: OnceCell::new(),
        }
    }

    /// Correlates the field `name`. Returns `None` if either object lacks the field, or if the schema does not declare
    /// the field.
    pub(crate) fn key(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?, self.old.as_object()?);
        let (new, old) = (new.get(name)?, old.get(name)?);
        let schema = self.schema.declared_part(name)?;
        Some(Self::new(new, old, schema))
    }

    /// Correlates the elements of a list of type `map` with the elements of the old list.
    pub(crate) fn elements(&self) -> Elements<'a> {
        let list = match (self.new, self.old) {
            (Json::Array(new), Json::Array(_)) => Some(new.as_slice()),
            _ => None,
        };
        Elements {
            list,
            before: MapList::new(self.schema, list.map(|_| self.old)),
            schema: self.schema.items().map(|items| &**items),
        }
    }

    /// Returns true if the value did not change. For a list of type `map`, the order of the elements does not matter.
    pub(crate) fn is_equal(&self) -> bool {
        *self.is_equal.get_or_init(|| self.compare())
    }

    fn compare(&self) -> bool {
        match (self.new, self.old) {
            (Json::Array(new), Json::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if self.schema.map_keys().is_empty() || self.schema.items().is_none() {
                    return same(self.new, self.old);
                }
                let elements = self.elements();
                (0..new.len()).all(|at| elements.get(at).is_some_and(|part| part.is_equal()))
            }
            (Json::Object(new), Json::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|name| self.key(name).is_some_and(|part| part.is_equal()))
            }
            (new, old) => same(new, old),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Elements<'a> {
    list: Option<&'a [Json]>,
    before: MapList<'a>,
    schema: Option<&'a ValueSchema>,
}

impl<'a> Elements<'a> {
    /// Returns the element at `index` with the old element that has the same key. Returns `None` if no old element has
    /// this key.
    pub(crate) fn get(&self, index: usize) -> Option<Correlated<'a>> {
        let new = self.list?.get(index)?;
        let old = self.before.get(new)?;
        Some(Correlated::new(new, old, self.schema?))
    }
}

/// Returns true if the values are equal in Go.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a == b,
            #[expect(clippy::float_cmp, reason = "Go compares floats exactly")]
            (None, None) => double(a) == double(b),
            _ => false,
        },
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
