//! The well-known protobuf messages, which every environment knows by name.
//!
//! An expression may name one (`type(x) == google.protobuf.Timestamp`) or make one
//! (`google.protobuf.Int64Value{value: 1}`), so that a message has a type and a table of fields. Most
//! stand for a type of the language, whose values have no fields to select.
//!
//! Source: cel-go `common/types/pb/pb.go` (`init`), `common/types/provider.go` (`NewRegistry`,
//! `FindStructType`), `common/types/types.go` (`checkedWellKnowns`).

use std::sync::Arc;

use crate::decls::Sig;
use crate::env::Library;
use crate::types::{FieldTypes, Primitive, StructType, Type};
use Sig::{Bool, Bytes, Double, Dyn, Int, List, Map, String as Str, Uint};

/// A message: its name, its type and its fields.
#[derive(Clone, Copy, Debug)]
pub struct MessageRow {
    /// The fully qualified name.
    pub name: &'static str,
    /// What values of the message are in the language.
    pub meaning: Meaning,
    /// The fields that can be set, sorted by name.
    pub fields: &'static [(&'static str, Sig)],
}

/// What values of a message are in the language.
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

const STRING_TO_DYN: Sig = Map(&Str, &Dyn);
const LIST_OF_DYN: Sig = List(&Dyn);

/// All messages.
pub static MESSAGES: &[MessageRow] = &[
    MessageRow {
        name: "google.protobuf.Any",
        meaning: Meaning::Plain(Sig::Any),
        fields: &[("type_url", Str), ("value", Bytes)],
    },
    MessageRow {
        name: "google.protobuf.Duration",
        meaning: Meaning::Plain(Sig::Duration),
        fields: &[("nanos", Int), ("seconds", Int)],
    },
    MessageRow {
        name: "google.protobuf.Timestamp",
        meaning: Meaning::Plain(Sig::Timestamp),
        fields: &[("nanos", Int), ("seconds", Int)],
    },
    MessageRow {
        name: "google.protobuf.Empty",
        meaning: Meaning::Message,
        fields: &[],
    },
    MessageRow {
        name: "google.protobuf.Struct",
        meaning: Meaning::Plain(STRING_TO_DYN),
        fields: &[("fields", STRING_TO_DYN)],
    },
    MessageRow {
        name: "google.protobuf.Struct.FieldsEntry",
        meaning: Meaning::Message,
        fields: &[("key", Str), ("value", Dyn)],
    },
    MessageRow {
        name: "google.protobuf.Value",
        meaning: Meaning::Plain(Dyn),
        fields: &[
            ("bool_value", Bool),
            ("list_value", LIST_OF_DYN),
            ("null_value", Int),
            ("number_value", Double),
            ("string_value", Str),
            ("struct_value", STRING_TO_DYN),
        ],
    },
    MessageRow {
        name: "google.protobuf.ListValue",
        meaning: Meaning::Plain(LIST_OF_DYN),
        fields: &[("values", LIST_OF_DYN)],
    },
    wrapper(
        "google.protobuf.BoolValue",
        Primitive::Bool,
        &[("value", Bool)],
    ),
    wrapper(
        "google.protobuf.BytesValue",
        Primitive::Bytes,
        &[("value", Bytes)],
    ),
    wrapper(
        "google.protobuf.DoubleValue",
        Primitive::Double,
        &[("value", Double)],
    ),
    wrapper(
        "google.protobuf.FloatValue",
        Primitive::Double,
        &[("value", Double)],
    ),
    wrapper(
        "google.protobuf.Int32Value",
        Primitive::Int,
        &[("value", Int)],
    ),
    wrapper(
        "google.protobuf.Int64Value",
        Primitive::Int,
        &[("value", Int)],
    ),
    wrapper(
        "google.protobuf.StringValue",
        Primitive::String,
        &[("value", Str)],
    ),
    wrapper(
        "google.protobuf.UInt32Value",
        Primitive::Uint,
        &[("value", Uint)],
    ),
    wrapper(
        "google.protobuf.UInt64Value",
        Primitive::Uint,
        &[("value", Uint)],
    ),
];

const fn wrapper(
    name: &'static str,
    primitive: Primitive,
    fields: &'static [(&'static str, Sig)],
) -> MessageRow {
    MessageRow {
        name,
        meaning: Meaning::Wrapper(primitive),
        fields,
    }
}

/// Declares all messages, and the one value of the one enumeration beside them.
pub fn add_to(library: &mut Library) {
    for row in MESSAGES {
        library.add_message(row);
    }
    library.add_constant("google.protobuf.NullValue.NULL_VALUE", 0);
}
