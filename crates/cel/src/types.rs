//! CEL types.
//!
//! A [`Type`] is cheap to clone: scalars are plain variants, parameterized types are shared through an [`Arc`]. The
//! field table of an object type is a trait object. A schema can therefore resolve the type of a nested field when an
//! expression selects this field.
//!
//! Source: cel-go `common/types/types.go` (`Type`, `Kind`), `checker/format.go` (`FormatCELType`).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A CEL type.
///
/// Equality is cel-go's `IsExactType`: same kind, name and parameters. Object types are compared by name
/// only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// The type of an invalid expression, assignable to and from all types.
    Error,
    /// The dynamic type, checked at run time only.
    Dyn,
    /// `google.protobuf.Any`, equivalent to `dyn`.
    Any,
    /// The type of `null`.
    Null,
    /// `bool`.
    Bool,
    /// `int`, a signed 64-bit integer.
    Int,
    /// `uint`, an unsigned 64-bit integer.
    Uint,
    /// `double`, a 64-bit IEEE 754 number.
    Double,
    /// `string`, a sequence of code points.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// A primitive type or null, like protobuf's wrapper messages.
    Wrapper(Primitive),
    /// `list(elem)`.
    List(Arc<Type>),
    /// `map(key, value)`.
    Map(Arc<(Type, Type)>),
    /// A message or object with named fields.
    Struct(StructType),
    /// An abstract type, identified by its name and parameters, such as `optional_type(T)`.
    Opaque(Arc<OpaqueType>),
    /// The type of a type: `type(int)`, or `type` if the parameter is unknown.
    Type(Option<Arc<Type>>),
    /// A type parameter of a signature, or a type variable of an inference.
    Param(TypeParam),
}

/// A primitive type with a wrapper message in protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// `google.protobuf.BoolValue`.
    Bool,
    /// `google.protobuf.BytesValue`.
    Bytes,
    /// `google.protobuf.DoubleValue` and `FloatValue`.
    Double,
    /// `google.protobuf.Int64Value` and `Int32Value`.
    Int,
    /// `google.protobuf.StringValue`.
    String,
    /// `google.protobuf.UInt64Value` and `UInt32Value`.
    Uint,
}

impl Primitive {
    /// Returns the wrapped primitive type.
    #[must_use]
    pub fn unwrapped(self) -> Type {
        match self {
            Self::Bool => Type::Bool,
            Self::Bytes => Type::Bytes,
            Self::Double => Type::Double,
            Self::Int => Type::Int,
            Self::String => Type::String,
            Self::Uint => Type::Uint,
        }
    }
}

/// A type parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeParam {
    /// A type parameter of an overload's signature, by name.
    Declared(&'static str),
    /// A free type variable of one inference, printed as `_var<N>`.
    Free(u32),
}

/// An abstract type: its runtime name and parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpaqueType {
    /// The name, such as `optional_type` or `kubernetes.Quantity`.
    pub name: Arc<str>,
    /// The parameters, in order.
    pub params: Box<[Type]>,
}

/// The fields of an object type. The checker resolves a field when an expression selects this field.
///
/// `owner` is the name of the object type. Implementations derive the names of nested types from it
/// (`<owner>.<field>`).
pub trait FieldTypes: fmt::Debug + Send + Sync {
    /// Returns the type of `field`. `None` if the object type does not declare it.
    ///
    /// `field` is the escaped form of the name, which expressions contain.
    fn field_type(&self, owner: &str, field: &str) -> Option<Type>;

    /// Returns true if `field` is a CEL keyword, and the type has a field with the escaped form of this name.
    fn is_keyword(&self, _field: &str) -> bool {
        false
    }

    /// Returns the names of all fields, sorted, in their escaped form.
    fn field_names(&self) -> Vec<&str>;

    /// Returns true if a value may have `field` although the type does not declare it. Examples are an object type
    /// that allows any field, and a field whose type does not exist in CEL.
    fn may_hold(&self, _field: &str) -> bool {
        false
    }

    /// Returns the possible types of `field` if it has several. Empty for other fields.
    fn alternatives(&self, _field: &str) -> &[Type] {
        &[]
    }

    /// Returns true if every value has `field`.
    fn is_required(&self, _field: &str) -> bool {
        false
    }

    /// Returns true if fields are still being added. Such a table must not be shared, because
    /// adding a field to a shared table copies the table.
    fn is_mutable(&self) -> bool {
        false
    }
}

/// An object type: its name and, if declared, its fields.
///
/// `fields` is `None` for an undeclared type, such as the API server's authorizer. Selecting a
/// field of such a type reports `unexpected failed resolution`.
#[derive(Clone, Debug)]
pub struct StructType {
    /// The fully qualified name.
    pub name: Arc<str>,
    /// The field table. `None` if no provider declares the type.
    pub fields: Option<Arc<dyn FieldTypes>>,
}

impl StructType {
    /// Creates a declared object type.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, fields: Arc<dyn FieldTypes>) -> Self {
        Self {
            name: name.into(),
            fields: Some(fields),
        }
    }

    /// Creates an object type without a declaration.
    #[must_use]
    pub fn undeclared(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            fields: None,
        }
    }
}

/// Suffix that distinguishes two types with the same displayed name. Displayed names do not contain this character.
///
/// The suffix is part of the name. The names of nested types start with the name of their owner, so they contain the
/// suffix too.
const DISTINCTION: char = '\u{1}';

impl StructType {
    /// Returns a name that is displayed as `name` but identifies a different type.
    #[must_use]
    pub fn distinct_name(name: &str) -> String {
        format!("{name}{DISTINCTION}")
    }

    /// Returns the name as displayed in messages.
    #[must_use]
    pub fn shown_name(&self) -> Cow<'_, str> {
        if self.name.contains(DISTINCTION) {
            Cow::Owned(self.name.replace(DISTINCTION, ""))
        } else {
            Cow::Borrowed(&self.name)
        }
    }
}

impl PartialEq for StructType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for StructType {}

impl std::hash::Hash for StructType {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The name of the optional type.
///
/// Source: cel-go `checker/types.go`, `isOptional`.
pub const OPTIONAL_TYPE: &str = "optional_type";

impl Type {
    /// Returns `list(elem)`.
    #[must_use]
    pub fn list(elem: Type) -> Self {
        Self::List(Arc::new(elem))
    }

    /// Returns `map(key, value)`.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// Returns `optional_type(value)`.
    #[must_use]
    pub fn optional(value: Type) -> Self {
        Self::opaque(OPTIONAL_TYPE, vec![value])
    }

    /// Creates an abstract type.
    #[must_use]
    pub fn opaque(name: impl Into<Arc<str>>, params: Vec<Type>) -> Self {
        Self::Opaque(Arc::new(OpaqueType {
            name: name.into(),
            params: params.into(),
        }))
    }

    /// Returns the unspecified type: the type of fields declared without a type. Only `dyn` is assignable to it.
    ///
    /// Source: cel-go `common/types/types.go`, `UnspecifiedKind`.
    #[must_use]
    pub fn unspecified() -> Self {
        Self::opaque("", Vec::new())
    }

    /// Returns true if the type is unspecified.
    #[must_use]
    pub fn is_unspecified(&self) -> bool {
        matches!(self, Self::Opaque(opaque) if opaque.name.is_empty())
    }

    /// Returns `type(of)`.
    #[must_use]
    pub fn type_of(of: Type) -> Self {
        Self::Type(Some(Arc::new(of)))
    }

    /// Returns true if values of the type are checked at run time only.
    ///
    /// Source: cel-go `checker/types.go`, `isDyn`.
    #[must_use]
    pub fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// Returns true for the error type.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error)
    }

    /// Returns true for the dynamic types and the error type.
    #[must_use]
    pub fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || self.is_error()
    }

    /// Returns the value type of an optional type. `None` for other types.
    #[must_use]
    pub fn optional_value(&self) -> Option<&Type> {
        match self {
            Self::Opaque(opaque) if &*opaque.name == OPTIONAL_TYPE => opaque.params.first(),
            _ => None,
        }
    }

    /// Returns the runtime name, without parameters.
    ///
    /// Source: cel-go `common/types/types.go`, `Type.TypeName`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Self::Error => "error".into(),
            Self::Dyn => "dyn".into(),
            Self::Any => "google.protobuf.Any".into(),
            Self::Null => "null_type".into(),
            Self::Bool | Self::Wrapper(Primitive::Bool) => "bool".into(),
            Self::Int | Self::Wrapper(Primitive::Int) => "int".into(),
            Self::Uint | Self::Wrapper(Primitive::Uint) => "uint".into(),
            Self::Double | Self::Wrapper(Primitive::Double) => "double".into(),
            Self::String | Self::Wrapper(Primitive::String) => "string".into(),
            Self::Bytes | Self::Wrapper(Primitive::Bytes) => "bytes".into(),
            Self::Duration => "google.protobuf.Duration".into(),
            Self::Timestamp => "google.protobuf.Timestamp".into(),
            Self::List(_) => "list".into(),
            Self::Map(_) => "map".into(),
            Self::Struct(object) => object.shown_name().into_owned(),
            Self::Opaque(opaque) => opaque.name.to_string(),
            Self::Type(_) => "type".into(),
            Self::Param(TypeParam::Declared(name)) => (*name).into(),
            Self::Param(TypeParam::Free(number)) => format!("_var{number}"),
        }
    }

    /// Returns true if `is` holds for the type or for any of its type parameters, at any depth.
    #[must_use]
    pub fn has_part(&self, is: impl Fn(&Self) -> bool + Copy) -> bool {
        is(self)
            || match self {
                Self::List(elem) => elem.has_part(is),
                Self::Map(entry) => entry.0.has_part(is) || entry.1.has_part(is),
                Self::Opaque(opaque) => opaque.params.iter().any(|param| param.has_part(is)),
                Self::Type(Some(of)) => of.has_part(is),
                _ => false,
            }
    }

    /// Formats the type as in compile errors of the API server (`must evaluate to bool but got dyn`).
    ///
    /// Unlike [`Display`](fmt::Display), this format shows well-known types by their message names.
    ///
    /// Source: cel-go `common/types/types.go`, `Type.String`.
    #[must_use]
    pub fn declared_string(&self) -> String {
        match self {
            Self::Param(_) => format!("<{}>", self.type_name()),
            Self::Wrapper(_) => format!("wrapper({})", self.type_name()),
            Self::List(elem) => format!("list({})", elem.declared_string()),
            Self::Map(entry) => {
                format!(
                    "map({}, {})",
                    entry.0.declared_string(),
                    entry.1.declared_string()
                )
            }
            Self::Opaque(opaque) if !opaque.params.is_empty() => {
                let params: Vec<_> = opaque.params.iter().map(Self::declared_string).collect();
                format!("{}({})", opaque.name, params.join(", "))
            }
            Self::Type(Some(of)) => format!("type({})", of.declared_string()),
            _ => self.type_name(),
        }
    }
}

/// Formats the type as in checker messages.
///
/// Source: cel-go `checker/format.go`, `FormatCELType`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.write_str("!error!"),
            Self::Any => f.write_str("any"),
            Self::Null => f.write_str("null"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Wrapper(_) => write!(f, "wrapper({})", self.type_name()),
            Self::List(elem) => write!(f, "list({elem})"),
            Self::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Self::Struct(object) => f.write_str(&object.shown_name()),
            Self::Opaque(opaque) => {
                f.write_str(&opaque.name)?;
                if opaque.params.is_empty() {
                    return Ok(());
                }
                f.write_str("(")?;
                for (n, param) in opaque.params.iter().enumerate() {
                    if n > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{param}")?;
                }
                f.write_str(")")
            }
            Self::Type(Some(of)) => write!(f, "type({of})"),
            Self::Dyn
            | Self::Bool
            | Self::Int
            | Self::Uint
            | Self::Double
            | Self::String
            | Self::Bytes
            | Self::Type(None)
            | Self::Param(_) => f.write_str(&self.type_name()),
        }
    }
}
