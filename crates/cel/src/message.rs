//! Declarations of messages: a row has the name of one, its type and its fields; a resolver declares by a rule.
//!
//! Source: cel-go `common/types/provider.go` (`FindStructType`, `FindStructFieldType`).

use std::fmt;
use std::sync::Arc;

use crate::decls::Sig;
use crate::types::{FieldTypes, Primitive, StructType, Type};
use crate::value::{EvalError, Value};

/// Object types that are known by a rule and not by a list, and the values that their literals make.
///
/// Their names can be written in literals. Alone they are types for the check and nothing for the planner, as no
/// name of a type is known to it but by a list.
///
/// Source: k8s.io/apiserver `pkg/cel/common/typeprovider.go`, `TypeResolver`, `ResolverTypeProvider`.
pub trait TypeResolver: fmt::Debug + Send + Sync {
    /// The object type `name`.
    fn resolve(&self, name: &str) -> Option<StructType>;

    /// Reports whether some dotted name of a type begins with the part `first`.
    fn is_namespace(&self, first: &str) -> bool;

    /// Reports whether fields of an expression of the type `name` are read from the Go map that its value is turned
    /// into, and not from the value.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `attrFactory.NewQualifier`, `fieldQualifier`.
    fn reads_native(&self, name: &str) -> bool;

    /// The value of a literal of the type `name`.
    ///
    /// # Errors
    ///
    /// For fields that the type does not take.
    fn make(&self, name: &Arc<str>, fields: Vec<(Arc<str>, Value)>) -> Result<Value, EvalError>;
}

/// A message: its name, its type and its fields.
#[derive(Clone, Copy, Debug)]
pub struct MessageRow {
    /// The fully qualified name.
    pub name: &'static str,
    /// Representation of the message's values in the language.
    pub meaning: Meaning,
    /// The fields that can be set, sorted by name.
    pub fields: &'static [(&'static str, Sig)],
}

/// Representations of a message's values in the language.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// Values of the type.
    Plain(Sig),
    /// Values of the primitive type, or null.
    Wrapper(Primitive),
    /// Messages, with fields to select.
    Message,
}

impl MessageRow {
    /// The type of the message.
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

    /// The type of the field `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Type> {
        self.fields
            .iter()
            .find(|(field, _)| *field == name)
            .map(|(_, sig)| sig.to_type())
    }
}

/// The fields of a message as those of an object type.
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
