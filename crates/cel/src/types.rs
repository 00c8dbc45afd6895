//! CEL types: what the checker infers, compares and prints.
//!
//! A [`Type`] is a cheap value: scalars are plain variants, everything parameterized is behind an
//! [`Arc`]. Object types carry their own field table as a trait object, so that a schema can name
//! and build the types of nested fields only when an expression selects them.
//!
//! Source: cel-go `common/types/types.go` (`Type`, `Kind`), `checker/format.go` (`FormatCELType`).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A type of the language.
///
/// Equality is cel-go's `IsExactType`: same kind, same name, same parameters. Object types are
/// compared by name alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// The type of an expression in error; assignable to and from everything.
    Error,
    /// The dynamic type: checked at run time only.
    Dyn,
    /// `google.protobuf.Any`, which behaves as `dyn` does.
    Any,
    /// The type of `null`.
    Null,
    /// `bool`.
    Bool,
    /// `int`, 64 bits signed.
    Int,
    /// `uint`, 64 bits unsigned.
    Uint,
    /// `double`, 64 bits IEEE 754.
    Double,
    /// `string`, a sequence of code points.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// A primitive type that also accepts null, as protobuf's wrapper messages do.
    Wrapper(Primitive),
    /// `list(elem)`.
    List(Arc<Type>),
    /// `map(key, value)`.
    Map(Arc<(Type, Type)>),
    /// A message or object with named fields.
    Struct(StructType),
    /// An abstract type known by its name and parameters, such as `optional_type(T)`.
    Opaque(Arc<OpaqueType>),
    /// The type of a type: `type(int)`, or `type` where the parameter is not known.
    Type(Option<Arc<Type>>),
    /// A type parameter: declared in a signature, or free in an inference.
    Param(TypeParam),
}

/// A primitive type that has a wrapper message in protobuf.
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
    /// The type that is wrapped.
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
    /// A parameter of an overload's signature, by its name in that signature.
    Declared(&'static str),
    /// A free type variable of one inference, printed as `_var<N>`.
    Free(u32),
}

/// An abstract type: its run-time name and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpaqueType {
    /// The name, such as `optional_type` or `kubernetes.Quantity`.
    pub name: Arc<str>,
    /// The parameters, in order.
    pub params: Box<[Type]>,
}

/// The fields of an object type, looked up by the checker on selection.
///
/// `owner` is the name of the object type, from which implementations derive the names of nested
/// types (`<owner>.<field>`).
pub trait FieldTypes: fmt::Debug + Send + Sync {
    /// The type of `field`, or `None` where the object type declares no such field.
    ///
    /// `field` is the name as written in the expression, that is escaped.
    fn field_type(&self, owner: &str, field: &str) -> Option<Type>;

    /// The names of all fields, sorted, as they are written in an expression.
    fn field_names(&self) -> Vec<&str>;

    /// Reports whether a value may have `field` although the type does not declare it: the object is
    /// open, or the field's own type cannot be expressed.
    fn may_hold(&self, _field: &str) -> bool {
        false
    }

    /// The types of which each value of `field` has one, where no single type is declared.
    fn alternatives(&self, _field: &str) -> &[Type] {
        &[]
    }

    /// Reports whether every value has `field`.
    fn is_required(&self, _field: &str) -> bool {
        false
    }

    /// Reports whether fields are still added, so that nothing may hold on to the table: it would have to be
    /// copied.
    fn is_growing(&self) -> bool {
        false
    }
}

/// An object type: its name and, where it is declared, its fields.
///
/// `fields` is `None` for a type that is only named, such as the API server's authorizer: selecting
/// a field of it is an "unexpected failed resolution".
#[derive(Clone, Debug)]
pub struct StructType {
    /// The fully qualified name.
    pub name: Arc<str>,
    /// The field table, or `None` where no provider declares the type.
    pub fields: Option<Arc<dyn FieldTypes>>,
}

impl StructType {
    /// A declared object type.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, fields: Arc<dyn FieldTypes>) -> Self {
        Self {
            name: name.into(),
            fields: Some(fields),
        }
    }

    /// An object type that is only named.
    #[must_use]
    pub fn undeclared(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            fields: None,
        }
    }
}

/// Character that distinguishes the names of two types that read the same: no name can contain it otherwise.
///
/// It is a part of the name, so that the types of nested fields, whose names begin with that of their
/// owner, are set apart too.
const APART: char = '\u{1}';

impl StructType {
    /// A name that reads as `name` and is another type's.
    #[must_use]
    pub fn name_apart(name: &str) -> String {
        format!("{name}{APART}")
    }

    /// The name as messages show it.
    #[must_use]
    pub fn shown_name(&self) -> Cow<'_, str> {
        if self.name.contains(APART) {
            Cow::Owned(self.name.replace(APART, ""))
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
    /// `list(elem)`.
    #[must_use]
    pub fn list(elem: Type) -> Self {
        Self::List(Arc::new(elem))
    }

    /// `map(key, value)`.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// `optional_type(value)`.
    #[must_use]
    pub fn optional(value: Type) -> Self {
        Self::opaque(OPTIONAL_TYPE, vec![value])
    }

    /// An abstract type.
    #[must_use]
    pub fn opaque(name: impl Into<Arc<str>>, params: Vec<Type>) -> Self {
        Self::Opaque(Arc::new(OpaqueType {
            name: name.into(),
            params: params.into(),
        }))
    }

    /// No type: that of fields which are found and have none. Only `dyn` fits it.
    ///
    /// Source: cel-go `common/types/types.go`, `UnspecifiedKind`.
    #[must_use]
    pub fn unspecified() -> Self {
        Self::opaque("", Vec::new())
    }

    /// Reports whether it is no type.
    #[must_use]
    pub fn is_unspecified(&self) -> bool {
        matches!(self, Self::Opaque(opaque) if opaque.name.is_empty())
    }

    /// The type of the type `of`.
    #[must_use]
    pub fn type_of(of: Type) -> Self {
        Self::Type(Some(Arc::new(of)))
    }

    /// Reports whether values of the type are checked at run time only.
    ///
    /// Source: cel-go `checker/types.go`, `isDyn`.
    #[must_use]
    pub fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// Reports whether the type is that of an expression in error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error)
    }

    /// Reports whether the type is dynamic or in error.
    #[must_use]
    pub fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || self.is_error()
    }

    /// The value type of an optional type.
    #[must_use]
    pub fn optional_value(&self) -> Option<&Type> {
        match self {
            Self::Opaque(opaque) if &*opaque.name == OPTIONAL_TYPE => opaque.params.first(),
            _ => None,
        }
    }

    /// The run-time name, without parameters.
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

    /// Returns true if `is` holds for the type or a type parameter of it, at any depth.
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

    /// The form used by compile errors of the API server, `must evaluate to bool but got dyn`.
    ///
    /// Unlike [`Display`](fmt::Display) this writes well-known types by their message names.
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

/// The form that checker messages use.
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
