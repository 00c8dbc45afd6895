//! Declarations of messages: a row has the name of one, its type and its fields.
//!
//! Source: cel-go `common/types/provider.go` (`FindStructType`, `FindStructFieldType`).

use std::sync::Arc;

use crate::decls::Sig;
use crate::types::{FieldTypes, Primitive, StructType, Type};

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
