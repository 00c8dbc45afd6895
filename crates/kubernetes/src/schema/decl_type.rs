//! Declared types: the parts of schemas that CEL uses.
//!
//! A [`DeclType`] is immutable and shared by all fields with the same type. It has no name, because the name of an
//! object type depends on the field path, as in `Deployment#.spec.template`. [`DeclType::cel_type`] creates a CEL type
//! with a name. The types of its fields are named when an expression selects them.
//!
//! Upstream drops fields that CEL does not expose, such as fields without a type. Here, these fields have the kind
//! [`DeclKind::Unknown`]. [`DeclType::is_exposed`] returns false for them, and [`DeclType::cel_type`] omits them as
//! upstream does. [`DeclType::declared_field`] returns them.
//!
//! Source: apiserver `pkg/cel/types.go` (`DeclType`, `DeclField`, `MaybeAssignTypeName`).

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::escape;
use super::sizes;
use cel::types::{FieldTypes, StructType, Type};

/// The kind of a type's values.
#[derive(Clone, Debug)]
pub enum DeclKind {
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// A double.
    Double,
    /// A string. Some formats have their own kind, such as [`DeclKind::Timestamp`].
    String,
    /// Bytes, encoded as a base64 string in JSON.
    Bytes,
    /// A duration, encoded as a string in JSON.
    Duration,
    /// A date with an optional time, encoded as a string in JSON.
    Timestamp,
    /// An integer or a string. Its CEL type is `dyn`.
    IntOrString,
    /// A list of values of this type.
    List(Arc<DeclType>),
    /// A map from strings to values of this type.
    Map(Arc<DeclType>),
    /// An object with declared fields.
    Object(ObjectDecl),
    /// A CEL type, for objects whose types are declared in Rust code instead of a schema.
    Cel(Type),
    /// A quantity in a built-in kind. It is a string in JSON, and its schema has no type.
    Quantity,
    /// A value whose schema has no type, or a type that CEL does not expose.
    Unknown,
}

/// The declaration of an object type.
#[derive(Clone, Debug)]
pub struct ObjectDecl {
    /// The name of a type declared in Rust code, such as `kubernetes.UserInfo`. `None` for types from schemas.
    pub name: Option<Arc<str>>,
    /// The fields, sorted by name, without duplicates.
    fields: Box<[DeclField]>,
    /// True if objects may have undeclared fields. This is the case if the schema preserves unknown fields, allows
    /// additional properties, or declares no properties.
    pub is_open: bool,
}

impl ObjectDecl {
    /// Returns all declared fields, sorted by name. Includes fields that CEL does not expose.
    #[must_use]
    pub fn fields(&self) -> &[DeclField] {
        &self.fields
    }
}

/// A field of an object type.
#[derive(Clone, Debug)]
pub struct DeclField {
    /// The escaped name that expressions use.
    pub name: Arc<str>,
    /// The type.
    pub type_: Arc<DeclType>,
    /// True if the schema requires the field.
    pub required: bool,
    /// True if the API server sets a default for an absent field.
    pub has_default: bool,
}

impl DeclField {
    /// Creates a field with an escaped name and without a default.
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
    reason = "each flag corresponds to a schema keyword"
)]
pub struct DeclType {
    /// The kind of the type's values.
    pub kind: DeclKind,
    /// The maximum number of list elements, map entries or string bytes. It is 0 for types without a size, and -1 if a
    /// type declared in Rust code has no bound.
    pub max_elements: i64,
    /// The minimum JSON size of a value, in bytes.
    pub min_serialized_size: i64,
    /// True if the schema allows null.
    pub nullable: bool,
    /// True if the schema has a default that is not null.
    pub has_default: bool,
    /// True if the value is an embedded resource, which has its own kind and metadata.
    pub embedded_resource: bool,
    /// The values of the keyword `enum`, if the schema has it.
    pub enum_values: Option<Arc<[Value]>>,
    /// The minimum JSON size of an object of this type with its required fields. 0 for other types.
    size_with_required: i64,
    /// The number of levels of nested types, including this type.
    depth: u16,
    exposed: bool,
}

impl DeclType {
    /// Returns true if values are plain strings, numbers or booleans. Timestamps and durations are not scalars.
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
            size_with_required: 0,
            depth: below.saturating_add(1),
            exposed,
        }
    }

    /// Creates a type without nested types, such as [`DeclKind::Bool`]. The maximum size is not set.
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

    /// Creates the type `dyn`, whose values are checked at run time.
    #[must_use]
    pub fn dyn_() -> Self {
        Self::scalar(DeclKind::Cel(Type::Dyn))
    }

    /// Creates a list of at most `max_items` values of the type `elem`.
    #[must_use]
    pub fn list(elem: Arc<DeclType>, max_items: i64) -> Self {
        Self::new(
            DeclKind::List(elem),
            max_items,
            sizes::MIN_COMPOSITE_SIZE_BYTES,
        )
    }

    /// Creates a map from strings to at most `max_entries` values of the type `value`.
    #[must_use]
    pub fn map(value: Arc<DeclType>, max_entries: i64) -> Self {
        Self::new(
            DeclKind::Map(value),
            max_entries,
            sizes::MIN_COMPOSITE_SIZE_BYTES,
        )
    }

    /// Creates an object type that is declared in Rust code and has its own name.
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

    /// Creates an object type. If several fields have the same name, the last field is used.
    pub(super) fn object_of(
        name: Option<Arc<str>>,
        mut fields: Vec<DeclField>,
        is_open: bool,
        min_serialized_size: i64,
    ) -> Self {
        fields.reverse();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.dedup_by(|later, kept| later.name == kept.name);
        // The fields of a named type are computed. They are not part of a stored object, so they add nothing to its
        // size.
        let required = fields
            .iter()
            .filter(|field| name.is_none() && field.required && field.type_.is_exposed());
        let size_with_required = required.fold(sizes::MIN_COMPOSITE_SIZE_BYTES, |sum, field| {
            let n_name = i64::try_from(field.name.len()).unwrap_or(i64::MAX);
            sum.saturating_add(n_name)
                .saturating_add(4)
                .saturating_add(field.type_.min_evaluated_size())
        });
        let object = ObjectDecl {
            name,
            fields: fields.into(),
            is_open,
        };
        Self {
            size_with_required,
            ..Self::new(DeclKind::Object(object), 0, min_serialized_size)
        }
    }

    /// Returns the minimum JSON size of a value during the evaluation of expressions, in bytes. Required fields with a
    /// default are then present, even if the request omits them.
    #[must_use]
    pub fn min_evaluated_size(&self) -> i64 {
        self.min_serialized_size.max(self.size_with_required)
    }

    /// Returns true if CEL exposes values of the type. CEL does not expose values without a type in the schema, or
    /// lists and maps of such values.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        self.exposed
    }

    /// Returns the number of levels of nested types, including this type. Types from schemas have at most
    /// [`sizes::MAX_DEPTH`].
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Returns the declaration of an object type. Returns `None` if the type is not an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&ObjectDecl> {
        match &self.kind {
            DeclKind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns all declared fields, sorted by name. Includes fields that CEL does not expose. Empty if the type is not
    /// an object.
    #[must_use]
    pub fn declared_fields(&self) -> &[DeclField] {
        self.as_object().map_or(&[], |object| &object.fields)
    }

    /// Returns the field that an expression selects by `name`. Includes fields that CEL does not expose.
    ///
    /// If `name` is a reserved word, the escaped name is looked up as well: `namespace` finds the field
    /// `__namespace__`.
    ///
    /// Source: apiserver `pkg/cel/types.go`, `DeclTypeProvider.FindStructFieldType` with
    /// `recognizeKeywordAsFieldName`. The type checker rejects these names if the version does not enable it.
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

    /// Returns the field that an expression selects by `name`, if CEL exposes this field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&DeclField> {
        self.declared_field(name)
            .filter(|field| field.type_.exposed)
    }

    /// Returns the CEL type. If an object type has no name of its own, its name is `name`.
    ///
    /// Returns `dyn` for a type that CEL does not expose. The API server does the same for a variable whose schema has
    /// no type. A field with such a type is not declared.
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

/// Formats only one level. Shared nested types would otherwise be repeated exponentially often.
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

/// Declares the exposed fields of an object type. Other types have no fields.
impl FieldTypes for DeclType {
    fn field_type(&self, owner: &str, field: &str) -> Option<Type> {
        let field = self.field(field)?;
        Some(field.type_.cel_type(&format!("{owner}.{}", field.name)))
    }

    fn is_keyword(&self, field: &str) -> bool {
        let declared = self.declared_field(field);
        declared.is_some_and(|declared| *declared.name != *field)
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
