//! The keys of items in associative lists, and paths to values.
//!
//! Source: structured-merge-diff `fieldpath/element.go` (`PathElement`), `typed/helpers.go`
//! (`listItemToPathElement`).

use std::cmp::Ordering;

use cel::go_text;

use super::node::Node;
use super::types::{ListType, Relationship, Types};

/// The key of a list item: the item itself in a set, or its key fields in a list of type `map`.
#[derive(Clone, Debug)]
pub(super) enum Key<'a> {
    Value(Node<'a>),
    Fields(Vec<(&'a str, Node<'a>)>),
}

impl Key<'_> {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Value(value) => format!("[={}]", value.path_text()),
            Self::Fields(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}={}", value.path_text()))
                    .collect();
                format!("[{}]", fields.join(","))
            }
        }
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => a.compare(b),
            (Self::Fields(a), Self::Fields(b)) => {
                let unlike = a.iter().zip(b).map(|((a_name, a), (b_name, b))| {
                    a_name.cmp(b_name).then_with(|| a.compare(b))
                });
                let unlike = unlike.into_iter().find(|order| order.is_ne());
                unlike.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Fields(_), Self::Value(_)) => Ordering::Less,
            (Self::Value(_), Self::Fields(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key<'_> {}

/// Returns the key of a list item.
///
/// # Errors
/// Returns the API server's message if the list is not associative, or if the item has no valid key.
pub(super) fn key_of<'a>(
    types: &'a Types,
    list: &'a ListType,
    relationship: Relationship,
    item: &Node<'a>,
) -> Result<Key<'a>, String> {
    if relationship != Relationship::Associative {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if list.keys.is_empty() {
        return match item {
            Node::Map(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Node::List(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Node::Null => Err(
                "associative list without keys has an element that's an explicit null".to_owned(),
            ),
            scalar => Ok(Key::Value(scalar.clone())),
        };
    }
    let item = match item {
        Node::Map(item) => item,
        Node::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => {
            return Err("associative list with keys may not have non-map elements".to_owned());
        }
    };
    let mut fields: Vec<(&'a str, Node<'a>)> = Vec::with_capacity(list.keys.len());
    for name in &list.keys {
        if let Some(value) = item.get(name.as_str()) {
            fields.push((name, value.clone()));
        } else if let Some(value) = default_of(types, list, name)
            .map_err(|reason| format!("couldn't find default value for {name}: {reason}"))?
        {
            fields.push((name, value));
        }
    }
    if fields.is_empty() {
        let keys: Vec<_> = list.keys.iter().map(|key| go_text::quote(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            keys.join(" ")
        ));
    }
    fields.sort_by_key(|(name, _)| *name);
    Ok(Key::Fields(fields))
}

/// Returns the default of the key field `name`, if the schema declares a default.
///
/// Source: structured-merge-diff `typed/helpers.go`, `getAssociativeKeyDefault`.
fn default_of<'a>(
    types: &'a Types,
    list: &'a ListType,
    name: &str,
) -> Result<Option<Node<'a>>, &'static str> {
    let element = types
        .resolve(&list.element)
        .ok_or("invalid elementType for list")?;
    let (map, _) = element
        .map
        .ok_or("associative list may not have non-map types")?;
    let default = map
        .fields
        .get(name)
        .and_then(|field| field.default.as_ref());
    Ok(default.map(|default| match Node::from_json(default) {
        // Upstream decodes defaults as generic JSON, so all numbers are doubles.
        #[expect(
            clippy::cast_precision_loss,
            reason = "upstream converts the integer to a double"
        )]
        Node::Int(number) => Node::Double(number as f64),
        other => other,
    }))
}

/// The path of a value: the last element, and a link to the parent's path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
    Item(&'a Path<'a>, &'a Key<'a>),
}

impl Path<'_> {
    /// Returns the field names on the path, without list elements.
    pub(super) fn fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        let mut path = self;
        loop {
            path = match path {
                Path::Root => break,
                Path::Field(above, name) => {
                    fields.push((*name).to_owned());
                    above
                }
                Path::Index(above, _) | Path::Item(above, _) => above,
            };
        }
        fields.reverse();
        fields
    }

    pub(super) fn text(&self) -> String {
        let mut steps = Vec::new();
        let mut path = self;
        loop {
            path = match path {
                Path::Root => break,
                Path::Field(above, name) => {
                    steps.push(format!(".{name}"));
                    above
                }
                Path::Index(above, index) => {
                    steps.push(format!("[{index}]"));
                    above
                }
                Path::Item(above, key) => {
                    steps.push(key.text());
                    above
                }
            };
        }
        steps.reverse();
        steps.concat()
    }
}
