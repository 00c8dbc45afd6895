//! An object beside its value before an update: which parts belong together, and which are equal.
//!
//! Source: apiserver `pkg/cel/common/equality.go` (`CorrelatedObject`), `maplist.go` (`MapList`).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Number, Value as Json};

use crate::typed_values::ValueSchema;
use cel::value::go_quote;

/// The elements of a list that is a map, by the values of its keys; of several with the same the first.
#[derive(Debug, Default)]
pub(super) struct MapList<'a> {
    keys: &'a [String],
    elements: HashMap<String, &'a Json>,
}

impl<'a> MapList<'a> {
    /// The elements of `list`; none where the schema is not that of a list that is a map.
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

    /// The element with the keys of `element`.
    pub(super) fn get(&self, element: &Json) -> Option<&'a Json> {
        if self.elements.is_empty() {
            return None;
        }
        self.elements.get(&key_of(self.keys, element)?).copied()
    }
}

/// The values of `keys` in an element, as one text; `None` where one is absent or no scalar.
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
                // Of a single key the number itself counts, of several its text.
                None if keys.len() == 1 => write!(text, "double {}", double(number)),
                None => write!(text, "{:.6}", double(number)),
            },
            Json::String(value) => write!(text, "{}", go_quote(value)),
            _ => return None,
        };
    }
    Some(text)
}

/// A number that is not whole, or too large for a whole one.
fn double(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// A value beside the one before an update that it belongs to.
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

    /// The field `name`, if it was there before and the schema declares it.
    pub(crate) fn key(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?, self.old.as_object()?);
        let (new, old) = (new.get(name)?, old.get(name)?);
        let schema = self.schema.declared_part(name)?;
        Some(Self::new(new, old, schema))
    }

    /// The elements of a list, each with the one before that it belongs to.
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

    /// Reports whether nothing has changed, as far as the parts are found again.
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

/// The elements of a list beside those before an update.
#[derive(Debug)]
pub(crate) struct Elements<'a> {
    list: Option<&'a [Json]>,
    before: MapList<'a>,
    schema: Option<&'a ValueSchema>,
}

impl<'a> Elements<'a> {
    /// The element at `index`, if its keys were there before.
    pub(crate) fn get(&self, index: usize) -> Option<Correlated<'a>> {
        let new = self.list?.get(index)?;
        let old = self.before.get(new)?;
        Some(Correlated::new(new, old, self.schema?))
    }
}

/// Reports whether two values of JSON are the same to Go.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a == b,
            #[expect(clippy::float_cmp, reason = "as Go compares numbers")]
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
