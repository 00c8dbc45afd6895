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
pub(super) type Omit = u8;

/// A field of a struct. The members are its name, its type, when it is omitted, and the name of its type in Go's error
/// messages. If an embedded struct declares the field, the last member starts with the embedded struct, as in
/// `ProbeHandler|*v1.ExecAction`.
#[derive(Debug, Deserialize)]
pub(super) struct Field(
    pub(super) String,
    pub(super) String,
    pub(super) Omit,
    pub(super) String,
);

#[derive(Debug, Deserialize)]
struct File {
    kubernetes: String,
    structs: Vec<Vec<Field>>,
    kinds: Vec<KindTable>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KindTable {
    group: String,
    version: String,
    kind: String,
    /// The index of the kind's Go type in [`Table::structs`].
    pub(super) root: usize,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) rules: Vec<Rule>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) unknown: Vec<Open>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) create: Vec<Rule>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) create_unknown: Vec<Open>,
}

fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The changes of one field by the API server. They depend on the values of this field and of other fields.
#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    #[serde(rename = "at", deserialize_with = "steps")]
    pub(super) at: Vec<Step>,
    pub(super) field: String,
    #[serde(default)]
    pub(super) deps: Vec<Dep>,
    #[serde(default)]
    pub(super) known: Vec<Option<Vec<String>>>,
    pub(super) rows: Vec<Row>,
}

/// A field without rules.
#[derive(Debug, Deserialize)]
pub(super) struct Open {
    #[serde(rename = "at", deserialize_with = "steps")]
    pub(super) at: Vec<Step>,
    pub(super) field: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) deps: Vec<Dep>,
    /// If true, rules are missing only for an empty list or map in this field.
    #[serde(default)]
    pub(super) empty: bool,
}

/// A field on which the change of another field depends. If `path` is set, the field is in the struct at this path from
/// the root. Otherwise, it is in the struct `up` levels above the struct of the changed field.
#[derive(Debug, Deserialize)]
pub(super) struct Dep {
    #[serde(default)]
    pub(super) up: usize,
    #[serde(default)]
    pub(super) path: Option<Vec<String>>,
    pub(super) field: String,
}

/// The action for one combination of value classes. The classes are those of the field and its dependencies.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    #[serde(rename = "if")]
    pub(super) classes: Vec<String>,
    #[serde(rename = "do")]
    pub(super) action: Action,
}

/// The action that determines the new value of a field. If no member is set, the value does not change.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Action {
    pub(super) set: Option<Value>,
    pub(super) remove: bool,
    /// Copies the value of the dependency with this index. Index 0 is the field itself.
    pub(super) copy: Option<usize>,
    /// Adds the entries of the dependencies with these indices, which are maps. Existing keys are not overwritten.
    pub(super) union: Vec<usize>,
    /// Sets entries of a map to constants.
    pub(super) merge: serde_json::Map<String, Value>,
    /// Sets map entries to the values of the dependencies with these indices. A missing value becomes an empty string.
    pub(super) entry: std::collections::BTreeMap<String, usize>,
    /// Sets the field to this template, in which `{"$": n}` is the value of dependency `n`.
    pub(super) template: Option<Value>,
    /// Appends the items that the list does not contain yet.
    pub(super) append: Vec<Value>,
    /// An action in code: `round` or `now`.
    pub(super) op: String,
}

/// A field on the path to a nested struct.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) field: String,
    pub(super) form: Form,
}

/// The way in which a field contains a nested struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
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
pub(super) struct Table {
    pub(super) kubernetes: String,
    pub(super) structs: Vec<Vec<Field>>,
    kinds: HashMap<Gvk, KindTable>,
}

impl Table {
    /// Returns the table in this program.
    pub(super) fn get() -> Result<&'static Self, Error> {
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
        Ok(Self {
            kubernetes: file.kubernetes,
            structs: file.structs,
            kinds: file
                .kinds
                .into_iter()
                .map(|kind| (gvk(&kind), kind))
                .collect(),
        })
    }

    pub(super) fn kind(&self, gvk: &Gvk) -> Option<&KindTable> {
        self.kinds.get(gvk)
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    pub(super) fn fields(&self, struct_: usize) -> &[Field] {
        self.structs
            .get(struct_)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Returns the type of a struct's field.
    pub(super) fn type_of(&self, struct_: usize, name: &str) -> Option<Type<'_>> {
        let mut fields = self.fields(struct_).iter();
        fields
            .find(|field| field.0 == name)
            .map(|field| Type(&field.1))
    }
}

/// A type in the table's notation, such as `*s` for a pointer to a string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type<'a>(pub(super) &'a str);

/// The parsed form of a [`Type`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'a> {
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
    pub(super) fn shape(self) -> Shape<'a> {
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

    pub(super) fn is_pointer(self) -> bool {
        self.0.starts_with('*')
    }

    /// Returns the index of the struct in the type. Returns `None` if the type contains no struct.
    pub(super) fn struct_within(self) -> Option<usize> {
        match self.shape() {
            Shape::Struct(n) => Some(n),
            Shape::Pointer(inner) | Shape::List(inner) | Shape::Map(inner) => inner.struct_within(),
            _ => None,
        }
    }
}
