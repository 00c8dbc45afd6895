//! Declared types: the information of a schema that CEL uses.
//!
//! A [`DeclType`] is immutable and shared. A type of many fields exists once, and has no name. The names of object
//! types depend on their position (`Deployment#.spec.template`), so they are assigned when an expression selects a
//! field: [`DeclType::cel_type`] names a type, and the type names those of its fields.
//!
//! Upstream drops fields that CEL does not expose, such as those without a type. Here they stay, as
//! [`DeclKind::Unknown`] with [`DeclType::is_exposed`] returning false, and the CEL types are the same as upstream's.
//! [`DeclType::declared_field`] finds all fields.
//!
//! Source: apiserver `pkg/cel/types.go` (`DeclType`, `DeclField`, `MaybeAssignTypeName`).

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::escape;
use super::sizes;
use cel::types::{FieldTypes, StructType, Type};

/// Kinds of a type's values.
#[derive(Clone, Debug)]
pub enum DeclKind {
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`: in JSON a string in base64.
    Bytes,
    /// A duration: in JSON a string.
    Duration,
    /// A date, or a date and time: in JSON a string.
    Timestamp,
    /// An integer or a string; `dyn` to CEL.
    IntOrString,
    /// A list of items of the type.
    List(Arc<DeclType>),
    /// A map of strings to values of the type.
    Map(Arc<DeclType>),
    /// An object with its fields.
    Object(ObjectDecl),
    /// A CEL type without a schema, for manually declared objects.
    Cel(Type),
    /// A quantity of the built-in kinds. Their schemas have no type for it, in JSON it is a string.
    Quantity,
    /// A value without a type in the schema, or with a type that CEL does not expose.
    Unknown,
}

/// An object type: its name, if it has its own, and its fields.
#[derive(Clone, Debug)]
pub struct ObjectDecl {
    /// The name of a manually declared type, such as `kubernetes.UserInfo`. Types of schemas have no name.
    pub name: Option<Arc<str>>,
    /// The fields, sorted by name, without duplicates.
    fields: Box<[DeclField]>,
    /// True if objects may have undeclared fields: the schema preserves unknown fields, allows additional properties,
    /// or declares no properties at all.
    pub is_open: bool,
}

impl ObjectDecl {
    /// Returns the declared fields, exposed or not, sorted by name.
    #[must_use]
    pub fn fields(&self) -> &[DeclField] {
        &self.fields
    }
}

/// A field of an object type.
#[derive(Clone, Debug)]
pub struct DeclField {
    /// The escaped name, as used in expressions.
    pub name: Arc<str>,
    /// The type.
    pub type_: Arc<DeclType>,
    /// True if the schema requires the field.
    pub required: bool,
    /// True if an absent field gets a default.
    pub has_default: bool,
}

impl DeclField {
    /// Creates a field with the escaped name `name`.
    pub fn new(name: impl Into<Arc<str>>, type_: Arc<DeclType>, required: bool) -> Self {
        Self {
            name: name.into(),
            type_,
            required,
            has_default: false,
        }
    }
}

/// A declared type.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of its own"
)]
pub struct DeclType {
    /// The kind of the type's values.
    pub kind: DeclKind,
    /// The maximum number of elements of a list or map, or of bytes of a string. It is 0 for types without a size, and
    /// `-1` for manually declared lists and maps without a bound.
    pub max_elements: i64,
    /// The minimum size of a value in JSON, in bytes.
    pub min_serialized_size: i64,
    /// True if the schema allows null.
    pub nullable: bool,
    /// True if the schema has a default other than null.
    pub has_default: bool,
    /// True if the value is an object with its own kind and metadata.
    pub embedded_resource: bool,
    /// The values of `enum`, if the schema has it.
    pub enum_values: Option<Arc<[Value]>>,
    /// The number of type levels, including this one.
    depth: u16,
    exposed: bool,
}

impl DeclType {
    /// Returns true if values are strings, numbers or booleans.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        matches!(
            self.kind,
            DeclKind::Bool
                | DeclKind::Int
                | DeclKind::Double
                | DeclKind::String
                | DeclKind::IntOrString
        )
    }

    /// Creates a type of `kind` with its sizes only.
    fn new(kind: DeclKind, max_elements: i64, min_serialized_size: i64) -> Self {
        let (below, exposed) = match &kind {
            DeclKind::List(elem) | DeclKind::Map(elem) => (elem.depth, elem.exposed),
            DeclKind::Object(object) => (
                object
                    .fields
                    .iter()
                    .map(|field| field.type_.depth)
                    .max()
                    .unwrap_or(0),
                true,
            ),
            DeclKind::Unknown | DeclKind::Quantity => (0, false),
            _ => (0, true),
        };
        Self {
            kind,
            max_elements,
            min_serialized_size,
            nullable: false,
            has_default: false,
            embedded_resource: false,
            enum_values: None,
            depth: below.saturating_add(1),
            exposed,
        }
    }

    /// Creates a type without a size, such as [`DeclKind::Bool`]. Lists, maps and objects have their own constructors.
    #[must_use]
    pub fn scalar(kind: DeclKind) -> Self {
        let (max_elements, min_serialized_size) = match &kind {
            DeclKind::Bool => (0, sizes::MIN_BOOL_SIZE_BYTES),
            DeclKind::Int | DeclKind::Double => (0, sizes::MIN_NUMBER_SIZE_BYTES),
            DeclKind::String | DeclKind::Bytes => (0, sizes::MIN_STRING_SIZE_BYTES),
            DeclKind::Duration => (0, sizes::MIN_DURATION_SIZE_BYTES),
            DeclKind::Timestamp => (0, sizes::DATE_SIZE_BYTES),
            DeclKind::IntOrString | DeclKind::Cel(_) => (0, sizes::MIN_DYN_SIZE_BYTES),
            DeclKind::List(_) | DeclKind::Map(_) | DeclKind::Object(_) => {
                (0, sizes::MIN_COMPOSITE_SIZE_BYTES)
            }
            DeclKind::Unknown | DeclKind::Quantity => (0, 0),
        };
        Self::new(kind, max_elements, min_serialized_size)
    }

    /// Creates the type of values that are only checked at run time.
    #[must_use]
    pub fn dyn_() -> Self {
        Self::scalar(DeclKind::Cel(Type::Dyn))
    }

    /// Creates a list of at most `max_items` of `elem`.
    #[must_use]
    pub fn list(elem: Arc<DeclType>, max_items: i64) -> Self {
        Self::new(
            DeclKind::List(elem),
            max_items,
            sizes::MIN_COMPOSITE_SIZE_BYTES,
        )
    }

    /// Creates a map with at most `max_entries` string keys and values of type `value`.
    #[must_use]
    pub fn map(value: Arc<DeclType>, max_entries: i64) -> Self {
        Self::new(
            DeclKind::Map(value),
            max_entries,
            sizes::MIN_COMPOSITE_SIZE_BYTES,
        )
    }

    /// Creates a manually declared object type, which has its own name.
    #[must_use]
    pub fn object(
        name: impl Into<Arc<str>>,
        fields: impl IntoIterator<Item = DeclField>,
    ) -> Arc<Self> {
        let fields = fields.into_iter().collect();
        Arc::new(Self::object_of(
            Some(name.into()),
            fields,
            false,
            sizes::MIN_COMPOSITE_SIZE_BYTES,
        ))
    }

    /// Creates the object type of a schema. If several fields have the same name, the last counts.
    pub(super) fn object_of(
        name: Option<Arc<str>>,
        mut fields: Vec<DeclField>,
        is_open: bool,
        min_serialized_size: i64,
    ) -> Self {
        fields.reverse();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.dedup_by(|later, kept| later.name == kept.name);
        let object = ObjectDecl {
            name,
            fields: fields.into(),
            is_open,
        };
        Self::new(DeclKind::Object(object), 0, min_serialized_size)
    }

    /// Returns true if CEL exposes values of the type. It does not expose values without a type in the schema, nor
    /// lists and maps of such values.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        self.exposed
    }

    /// Returns the number of type levels, including this one: at most [`sizes::MAX_DEPTH`] for types of schemas.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Returns the declaration of an object type, or `None` for any other type.
    #[must_use]
    pub fn as_object(&self) -> Option<&ObjectDecl> {
        match &self.kind {
            DeclKind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the declared fields, exposed or not, sorted by name. The list is empty for a type that is not an object.
    #[must_use]
    pub fn declared_fields(&self) -> &[DeclField] {
        self.as_object().map_or(&[], |object| &object.fields)
    }

    /// Returns the field that an expression selects by `name`, exposed or not.
    ///
    /// A reserved word also finds its escaped form: `namespace` finds `__namespace__`.
    ///
    /// Source: apiserver `pkg/cel/types.go`, `DeclTypeProvider.FindStructFieldType` with
    /// `recognizeKeywordAsFieldName`, which is on since version 1.31.
    #[must_use]
    pub fn declared_field(&self, name: &str) -> Option<&DeclField> {
        let fields = self.declared_fields();
        let find = |name: &str| {
            let idx = fields
                .binary_search_by(|field| (*field.name).cmp(name))
                .ok()?;
            fields.get(idx)
        };
        match find(name) {
            None if escape::is_reserved(name) => find(&format!("__{name}__")),
            found => found,
        }
    }

    /// Returns the field that an expression selects by `name`, if CEL exposes it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&DeclField> {
        self.declared_field(name)
            .filter(|field| field.type_.exposed)
    }

    /// Returns the CEL type. `name` is the name of an object type without its own.
    ///
    /// A type that CEL does not expose becomes `dyn`, because the API server declares a variable without a schema type
    /// that way. Fields of such types are not declared at all.
    ///
    /// Source: apiserver `pkg/cel/types.go`, `DeclType.MaybeAssignTypeName`;
    /// `pkg/admission/plugin/policy/validating/typechecking.go`, `createVariableOpts`.
    #[must_use]
    pub fn cel_type(self: &Arc<Self>, name: &str) -> Type {
        if !self.exposed {
            return Type::Dyn;
        }
        match &self.kind {
            DeclKind::Bool => Type::Bool,
            DeclKind::Int => Type::Int,
            DeclKind::Double => Type::Double,
            DeclKind::String => Type::String,
            DeclKind::Bytes => Type::Bytes,
            DeclKind::Duration => Type::Duration,
            DeclKind::Timestamp => Type::Timestamp,
            DeclKind::IntOrString | DeclKind::Quantity | DeclKind::Unknown => Type::Dyn,
            DeclKind::List(elem) => Type::list(elem.cel_type(&format!("{name}.@idx"))),
            DeclKind::Map(value) => {
                Type::map(Type::String, value.cel_type(&format!("{name}.@elem")))
            }
            DeclKind::Object(object) => {
                let name = object.name.clone().unwrap_or_else(|| name.into());
                Type::Struct(StructType::new(name, Arc::<Self>::clone(self)))
            }
            DeclKind::Cel(type_) => type_.clone(),
        }
    }
}

/// Formats one level only: nested types may repeat and would grow without bound.
impl fmt::Debug for DeclType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DeclKind::List(_) => f.write_str("List(..)"),
            DeclKind::Map(_) => f.write_str("Map(..)"),
            DeclKind::Object(object) => {
                let name = object.name.as_deref().unwrap_or("object");
                write!(f, "Object({name}, {} fields)", object.fields.len())
            }
            DeclKind::Cel(type_) => write!(f, "Cel({type_})"),
            scalar => scalar.fmt(f),
        }
    }
}

/// The exposed fields of an object type. Other types have none.
impl FieldTypes for DeclType {
    fn field_type(&self, owner: &str, field: &str) -> Option<Type> {
        let field = self.field(field)?;
        Some(field.type_.cel_type(&format!("{owner}.{}", field.name)))
    }

    fn field_names(&self) -> Vec<&str> {
        let exposed = self
            .declared_fields()
            .iter()
            .filter(|field| field.type_.exposed);
        exposed.map(|field| &*field.name).collect()
    }

    fn may_hold(&self, field: &str) -> bool {
        self.as_object().is_some_and(|object| object.is_open)
            || self.declared_field(field).is_some()
    }
}
