//! The table of defaults: Go types, and rules by kind.
//!
//! The program in `parity/defaults` generates it by running upstream's own functions; see ADR 21.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use super::Error;
use crate::schema::Gvk;

static DATA: &[u8] = include_bytes!("table.bin");

/// The maximum size of the unpacked table, in bytes.
const MAX_UNPACKED_BYTES: usize = 16 * 1024 * 1024;

/// When a field is omitted: never (0), if it is empty (1), if it is zero (2).
pub(super) type Omit = u8;

/// A field: name, type, omission, and the type in Go's error messages, after the embedded structs that contain the
/// field (`ProbeHandler|*v1.ExecAction`).
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

/// The rules of a kind.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KindTable {
    group: String,
    version: String,
    kind: String,
    /// The struct of the kind.
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

/// Changes of a field at a path, depending on its value and on other fields.
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

/// A field without rules in the table.
#[derive(Debug, Deserialize)]
pub(super) struct Open {
    #[serde(rename = "at", deserialize_with = "steps")]
    pub(super) at: Vec<Step>,
    pub(super) field: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) deps: Vec<Dep>,
    /// True if only empty lists and maps have no rules.
    #[serde(default)]
    pub(super) empty: bool,
}

/// A field that an outcome depends on: of an enclosing struct some levels up, or by its path.
#[derive(Debug, Deserialize)]
pub(super) struct Dep {
    #[serde(default)]
    pub(super) up: usize,
    #[serde(default)]
    pub(super) path: Option<Vec<String>>,
    pub(super) field: String,
}

/// The action for a combination of value classes.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    #[serde(rename = "if")]
    pub(super) classes: Vec<String>,
    #[serde(rename = "do")]
    pub(super) action: Action,
}

/// New content of a field. Exactly one field is set.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Action {
    pub(super) set: Option<Value>,
    pub(super) remove: bool,
    /// Copies the value of the dependency with this index.
    pub(super) copy: Option<usize>,
    /// Adds the missing entries of these dependencies.
    pub(super) union: Vec<usize>,
    /// Sets entries to values.
    pub(super) merge: serde_json::Map<String, Value>,
    /// Sets entries to the values of dependencies.
    pub(super) entry: std::collections::BTreeMap<String, usize>,
    /// Sets a value in which `{"$": n}` denotes a dependency.
    pub(super) template: Option<Value>,
    /// Appends items.
    pub(super) append: Vec<Value>,
    /// A special action.
    pub(super) op: String,
}

/// A step from a struct to a nested struct.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) field: String,
    pub(super) form: Form,
}

/// The way in which a field contains a struct.
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

/// The rules of all kinds.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) kubernetes: String,
    pub(super) structs: Vec<Vec<Field>>,
    kinds: HashMap<Gvk, KindTable>,
}

impl Table {
    /// Returns the table of this build.
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

    /// Returns the type of a field of a struct.
    pub(super) fn type_of(&self, struct_: usize, name: &str) -> Option<Type<'_>> {
        let mut fields = self.fields(struct_).iter();
        fields
            .find(|field| field.0 == name)
            .map(|field| Type(&field.1))
    }
}

/// A type in the notation of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type<'a>(pub(super) &'a str);

/// A parsed type.
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

    /// Returns the struct that the type is or contains.
    pub(super) fn struct_within(self) -> Option<usize> {
        match self.shape() {
            Shape::Struct(n) => Some(n),
            Shape::Pointer(inner) | Shape::List(inner) | Shape::Map(inner) => inner.struct_within(),
            _ => None,
        }
    }
}
