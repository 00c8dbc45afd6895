//! An object beside its value before an update: which parts belong together, and which are equal.
//!
//! Source: apiserver `pkg/cel/common/equality.go` (`CorrelatedObject`), `maplist.go` (`MapList`).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::typed_values::ValueSchema;
use cel::value::{List, Value, go_quote};

/// The elements of a list that is a map, by the values of its keys; of several with the same the first.
#[derive(Debug, Default)]
pub(super) struct MapList<'a> {
    keys: &'a [String],
    elements: HashMap<String, Value>,
}

impl<'a> MapList<'a> {
    /// The elements of `list`; none where the schema is not that of a list that is a map.
    pub(super) fn new(schema: &'a ValueSchema, list: Option<&Value>) -> Self {
        let keys = schema.map_keys();
        let mut elements = HashMap::new();
        if let (false, Some(Value::List(list))) = (keys.is_empty(), list) {
            for element in list {
                if let Some(key) = key_of(keys, &element) {
                    elements.entry(key).or_insert(element);
                }
            }
        }
        Self { keys, elements }
    }

    /// The element with the keys of `element`.
    pub(super) fn get(&self, element: &Value) -> Option<&Value> {
        if self.elements.is_empty() {
            return None;
        }
        self.elements.get(&key_of(self.keys, element)?)
    }
}

/// The values of `keys` in an element, as one text; `None` where one is absent or no scalar.
fn key_of(keys: &[String], element: &Value) -> Option<String> {
    let Value::Map(map) = element else {
        return None;
    };
    let mut text = String::new();
    for key in keys {
        text.push('\0');
        // Writing to a string cannot fail.
        let _ = match map.field(key)? {
            Value::Bool(value) => write!(text, "{value}"),
            Value::Int(value) => write!(text, "{value}"),
            // Of a single key the number itself counts, of several its text.
            Value::Double(value) if keys.len() == 1 => write!(text, "double {value}"),
            Value::Double(value) => write!(text, "{value:.6}"),
            Value::String(value) => write!(text, "{}", go_quote(value)),
            _ => return None,
        };
    }
    Some(text)
}

/// A value beside the one before an update that it belongs to.
#[derive(Debug)]
pub(crate) struct Correlated {
    new: Value,
    old: Value,
    schema: Arc<ValueSchema>,
    is_equal: OnceCell<bool>,
}

impl Correlated {
    pub(crate) fn new(new: Value, old: Value, schema: &Arc<ValueSchema>) -> Self {
        Self {
            new,
            old,
            schema: Arc::clone(schema),
            is_equal: OnceCell::new(),
        }
    }

    /// The field `name`, if it was there before and the schema declares it.
    pub(crate) fn key(&self, name: &str) -> Option<Self> {
        let (Value::Map(new), Value::Map(old)) = (&self.new, &self.old) else {
            return None;
        };
        let (new, old) = (new.field(name)?, old.field(name)?);
        let schema = self.schema.declared_part(name)?;
        Some(Self::new(new.clone(), old.clone(), schema))
    }

    /// The elements of a list, each with the one before that it belongs to.
    pub(crate) fn elements(&self) -> Elements<'_> {
        let list = match (&self.new, &self.old) {
            (Value::List(new), Value::List(_)) => Some(new),
            _ => None,
        };
        Elements {
            list,
            before: MapList::new(&self.schema, list.map(|_| &self.old)),
            schema: self.schema.items(),
        }
    }

    /// Reports whether nothing has changed, as far as the parts are found again.
    pub(crate) fn is_equal(&self) -> bool {
        *self.is_equal.get_or_init(|| self.compare())
    }

    fn compare(&self) -> bool {
        match (&self.new, &self.old) {
            (Value::Null, Value::Null) => true,
            (Value::Null, _) | (_, Value::Null) => false,
            (Value::List(new), Value::List(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if self.schema.map_keys().is_empty() || self.schema.items().is_none() {
                    return new.is_empty() || same(&self.new, &self.old);
                }
                let elements = self.elements();
                (0..new.len()).all(|at| elements.get(at).is_some_and(|part| part.is_equal()))
            }
            (Value::Map(new), Value::Map(old)) => {
                let names = new.as_fields().unwrap_or_default();
                new.len() == old.len()
                    && names
                        .iter()
                        .all(|(name, _)| self.key(name).is_some_and(|part| part.is_equal()))
            }
            (new, old) => same(new, old),
        }
    }
}

/// The elements of a list beside those before an update.
#[derive(Debug)]
pub(crate) struct Elements<'a> {
    list: Option<&'a List>,
    before: MapList<'a>,
    schema: Option<&'a Arc<ValueSchema>>,
}

impl Elements<'_> {
    /// The element at `index`, if its keys were there before.
    pub(crate) fn get(&self, index: usize) -> Option<Correlated> {
        let new = self.list?.get(index)?;
        let old = self.before.get(&new)?.clone();
        Some(Correlated::new(new, old, self.schema?))
    }
}

/// Reports whether two values of JSON are the same to Go.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(_), Value::Double(_)) | (Value::Double(_), Value::Int(_)) => false,
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a, &b))
        }
        (Value::Map(a), Value::Map(b)) => match (a.as_fields(), b.as_fields()) {
            (Some(a), Some(b)) => {
                let pairs = a.iter().zip(b);
                a.len() == b.len()
                    && pairs
                        .into_iter()
                        .all(|((a_name, a), (b_name, b))| a_name == b_name && same(a, b))
            }
            _ => false,
        },
        _ => a.equals(b).unwrap_or(false),
    }
}
