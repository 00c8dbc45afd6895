//! The table of defaults: the Go types and the rules of built-in kinds.
//!
//! The program in `parity/defaults` generates the table by running upstream's own functions. See ADR 21.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use super::Error;
use crate::schema::Gvk;

static DATA: &[u8] = include_bytes!("table.bin");

/// The maximum size of the unpacked table, in bytes.
const MAX_UNPACKED_BYTES: usize = 16 * 1024 * 1024;

/// The condition under which Go's encoder omits a field: 0 for never, 1 for an empty value, 2 for a zero value.
pub(crate) type Omit = u8;

/// A field of a struct. The members are the field's name, its type, the condition for omitting it, and the name of its
/// type in Go's error messages. If an embedded struct declares the field, the last member starts with the embedded
/// struct, as in `ProbeHandler|*v1.ExecAction`.
#[derive(Debug, Deserialize)]
pub(crate) struct Field(
    pub(crate) String,
    pub(crate) String,
    pub(crate) Omit,
    pub(crate) String,
);

impl Field {
    /// Returns the type of the field.
    pub(crate) fn go(&self) -> Go<'_> {
        Go {
            type_: Type(&self.1),
            text: self.3.rsplit('|').next().unwrap_or_default(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct File {
    kubernetes: String,
    structs: Vec<Vec<Field>>,
    kinds: Vec<KindTable>,
    types: Vec<KindType>,
}

/// A kind without rules.
#[derive(Debug, Deserialize)]
struct KindType {
    group: String,
    version: String,
    kind: String,
    root: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KindTable {
    group: String,
    version: String,
    kind: String,
    /// The index of the kind's Go type in [`Table::structs`].
    pub(crate) root: usize,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) rules: Vec<Rule>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) unknown: Vec<Open>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) create: Vec<Rule>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) create_unknown: Vec<Open>,
}

fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The changes that the API server makes to one field. They depend on the values of this field and other fields.
#[derive(Debug, Deserialize)]
pub(crate) struct Rule {
    #[serde(rename = "at", deserialize_with = "steps")]
    pub(crate) at: Vec<Step>,
    pub(crate) field: String,
    #[serde(default)]
    pub(crate) deps: Vec<Dep>,
    #[serde(default)]
    pub(crate) known: Vec<Option<Vec<String>>>,
    pub(crate) rows: Vec<Row>,
}

/// A field without rules.
#[derive(Debug, Deserialize)]
pub(crate) struct Open {
    #[serde(rename = "at", deserialize_with = "steps")]
    pub(crate) at: Vec<Step>,
    pub(crate) field: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) deps: Vec<Dep>,
    /// If true, rules are missing only for an empty list or map in this field.
    #[serde(default)]
    pub(crate) empty: bool,
}

/// A field whose value affects the change to another field. If `path` is set, the field is in the struct at this path
/// from the root. Otherwise, it is in the struct `up` levels above the struct of the changed field.
#[derive(Debug, Deserialize)]
pub(crate) struct Dep {
    #[serde(default)]
    pub(crate) up: usize,
    #[serde(default)]
    pub(crate) path: Option<Vec<String>>,
    pub(crate) field: String,
}

/// The action for one combination of the value classes of the field and its dependencies.
#[derive(Debug, Deserialize)]
pub(crate) struct Row {
    #[serde(rename = "if")]
    pub(crate) classes: Vec<String>,
    #[serde(rename = "do")]
    pub(crate) action: Action,
}

/// The action that determines the new value of a field. If no member is set, the value does not change.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Action {
    pub(crate) set: Option<Value>,
    pub(crate) remove: bool,
    /// Copies the value of the dependency with this index. Index 0 is the field itself.
    pub(crate) copy: Option<usize>,
    /// Adds the map entries of the dependencies with these indices. Existing keys are not overwritten.
    pub(crate) union: Vec<usize>,
    /// Sets entries of a map to constants.
    pub(crate) merge: serde_json::Map<String, Value>,
    /// Sets map entries to the values of the dependencies with these indices. A missing value becomes an empty string.
    pub(crate) entry: std::collections::BTreeMap<String, usize>,
    /// Sets the field to this template, in which `{"$": n}` is the value of dependency `n`.
    pub(crate) template: Option<Value>,
    /// Appends the items in this list that the field does not contain yet.
    pub(crate) append: Vec<Value>,
    /// The name of an action that is implemented in code: `round` or `now`.
    pub(crate) op: String,
}

/// A field on the path to a nested struct.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) field: String,
    pub(crate) form: Form,
}

/// The way in which a field contains a nested struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Struct,
    Pointer,
    List,
    Map,
}

fn steps<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Step>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parts = text.split('.').filter(|part| !part.is_empty());
    Ok(parts
        .map(|part| {
            let forms = [("[]", Form::List), ("{}", Form::Map), ("?", Form::Pointer)];
            let parsed = forms
                .iter()
                .find_map(|(suffix, form)| Some((part.strip_suffix(suffix)?, *form)));
            let (field, form) = parsed.unwrap_or((part, Form::Struct));
            Step {
                field: field.to_owned(),
                form,
            }
        })
        .collect())
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) kubernetes: String,
    pub(crate) structs: Vec<Vec<Field>>,
    kinds: HashMap<Gvk, KindTable>,
    /// The indices of the Go types of kinds without rules.
    types: HashMap<Gvk, usize>,
}

impl Table {
    pub(crate) fn get() -> Result<&'static Self, Error> {
        static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();
        TABLE
            .get_or_init(|| Self::from_bytes(DATA))
            .as_ref()
            .map_err(|why| Error::Broken(why.clone()))
    }

    fn from_bytes(data: &[u8]) -> Result<Self, String> {
        let text =
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(data, MAX_UNPACKED_BYTES)
                .map_err(|error| error.to_string())?;
        let file: File = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let gvk =
            |kind: &KindTable| Gvk::new(kind.group.as_str(), kind.version.as_str(), &*kind.kind);
        let types = file.types.into_iter();
        let types = types.map(|type_| {
            let gvk = Gvk::new(type_.group, type_.version, &*type_.kind);
            (gvk, type_.root)
        });
        Ok(Self {
            kubernetes: file.kubernetes,
            structs: file.structs,
            kinds: file
                .kinds
                .into_iter()
                .map(|kind| (gvk(&kind), kind))
                .collect(),
            types: types.collect(),
        })
    }

    pub(crate) fn kind(&self, gvk: &Gvk) -> Option<&KindTable> {
        self.kinds.get(gvk)
    }

    /// Returns the index of the kind's Go type. `None` if the kind is not built in.
    pub(crate) fn root(&self, gvk: &Gvk) -> Option<usize> {
        let with_rules = self.kind(gvk).map(|kind| kind.root);
        with_rules.or_else(|| self.types.get(gvk).copied())
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    pub(crate) fn fields(&self, struct_: usize) -> &[Field] {
        self.structs
            .get(struct_)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    pub(crate) fn type_of(&self, struct_: usize, name: &str) -> Option<Type<'_>> {
        let mut fields = self.fields(struct_).iter();
        fields
            .find(|field| field.0 == name)
            .map(|field| Type(&field.1))
    }
}

/// A type in the table's notation. For example, `*s` is a pointer to a string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type<'a>(pub(crate) &'a str);

/// A type in the table with its Go name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Go<'a> {
    pub(crate) type_: Type<'a>,
    pub(crate) text: &'a str,
}

impl<'a> Go<'a> {
    /// Returns the element type of a list or map, or the target type of a pointer. `type_` is this type in the table's
    /// notation.
    pub(crate) fn within(self, type_: Type<'a>) -> Self {
        let text = match self.text.strip_prefix("map[") {
            Some(map) => map.split_once(']').map_or("", |(_, values)| values),
            None => self
                .text
                .strip_prefix("[]")
                .or_else(|| self.text.strip_prefix('*'))
                .unwrap_or(self.text),
        };
        Self { type_, text }
    }

    /// Returns the Go name without its package.
    pub(crate) fn name(self) -> &'a str {
        self.text.rsplit('.').next().unwrap_or(self.text)
    }
}

/// The parsed form of a [`Type`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    Text,
    Bool,
    Int,
    Float,
    Bytes,
    Quantity,
    Time,
    MicroTime,
    Duration,
    IntOrString,
    Any,
    Pointer(Type<'a>),
    List(Type<'a>),
    Map(Type<'a>),
    Struct(usize),
}

impl<'a> Type<'a> {
    pub(crate) fn shape(self) -> Shape<'a> {
        let inner = || Type(self.0.get(1..).unwrap_or_default());
        match self.0.as_bytes().first() {
            Some(b's') => Shape::Text,
            Some(b'b') => Shape::Bool,
            Some(b'i') => Shape::Int,
            Some(b'f') => Shape::Float,
            Some(b'y') => Shape::Bytes,
            Some(b'q') => Shape::Quantity,
            Some(b't') => Shape::Time,
            Some(b'u') => Shape::MicroTime,
            Some(b'd') => Shape::Duration,
            Some(b'o') => Shape::IntOrString,
            Some(b'*') => Shape::Pointer(inner()),
            Some(b'[') => Shape::List(inner()),
            Some(b'{') => Shape::Map(inner()),
            Some(b'#') => Shape::Struct(inner().0.parse().unwrap_or(usize::MAX)),
            _ => Shape::Any,
        }
    }

    pub(crate) fn is_pointer(self) -> bool {
        self.0.starts_with('*')
    }

    /// Returns the index of the struct in the type. Returns `None` if the type contains no struct.
    pub(crate) fn struct_within(self) -> Option<usize> {
        match self.shape() {
            Shape::Struct(n) => Some(n),
            Shape::Pointer(inner) | Shape::List(inner) | Shape::Map(inner) => inner.struct_within(),
            _ => None,
        }
    }
}
