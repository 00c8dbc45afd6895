//! Declarations of message types and object types. A [`MessageRow`] lists the fields of one message. A [`TypeResolver`]
//! derives object types from their names.
//!
//! Source: cel-go `common/types/provider.go` (`FindStructType`, `FindStructFieldType`).

use std::fmt;
use std::sync::Arc;

use crate::decls::Sig;
use crate::types::{FieldTypes, Primitive, StructType, Type};
use crate::value::{EvalError, Value};

/// Derives object types from their names, and constructs their values.
///
/// Expressions can use the names of these types in object literals. In other places, the checker resolves such a name
/// to a type, but the planner rejects the name as undefined.
///
/// Source: k8s.io/apiserver `pkg/cel/common/typeprovider.go`, `TypeResolver`, `ResolverTypeProvider`.
pub trait TypeResolver: fmt::Debug + Send + Sync {
    /// Returns the object type `name`. `None` if it is not declared.
    fn resolve(&self, name: &str) -> Option<StructType>;

    /// Returns true if a qualified type name starts with the component `first`.
    fn is_namespace(&self, first: &str) -> bool;

    /// Returns true if a field selection converts values of the type `name` to a Go map and reads the field from this
    /// map. If false, the field is read from the value itself.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `attrFactory.NewQualifier`, `fieldQualifier`.
    fn reads_native(&self, name: &str) -> bool;

    /// Constructs the value of a literal of the type `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the type does not accept one of the fields.
    fn make(&self, name: &Arc<str>, fields: Vec<(Arc<str>, Value)>) -> Result<Value, EvalError>;
}

/// A message declaration: its name, its type and its fields.
#[derive(Clone, Copy, Debug)]
pub struct MessageRow {
    /// The qualified name.
    pub name: &'static str,
    /// The representation of the message in the language.
    pub meaning: Meaning,
    /// The fields that can be set, sorted by name.
    pub fields: &'static [(&'static str, Sig)],
}

/// Representation of a message in the language.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// A value of this type.
    Plain(Sig),
    /// A value of the primitive type, or null.
    Wrapper(Primitive),
    /// A message with fields that can be selected.
    Message,
}

impl MessageRow {
    /// Returns the type of the message.
    #[must_use]
    pub fn to_type(&'static self) -> Type {
        match self.meaning {
            Meaning::Plain(sig) => sig.to_type(),
            Meaning::Wrapper(primitive) => Type::Wrapper(primitive),
            Meaning::Message => {
                Type::Struct(StructType::new(self.name, Arc::new(MessageFields(self))))
            }
        }
    }

    /// Returns the type of the field `name`. `None` if it is not declared.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Type> {
        self.fields
            .iter()
            .find(|(field, _)| *field == name)
            .map(|(_, sig)| sig.to_type())
    }
}

/// The fields of a message as a field table.
#[derive(Debug)]
struct MessageFields(&'static MessageRow);

impl FieldTypes for MessageFields {
    fn field_type(&self, _owner: &str, field: &str) -> Option<Type> {
        self.0.field(field)
    }

    fn field_names(&self) -> Vec<&str> {
        self.0.fields.iter().map(|(name, _)| *name).collect()
    }
}
