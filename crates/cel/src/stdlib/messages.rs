//! The well-known protobuf messages, declared in every environment.
//!
//! An expression may refer to a message type (`type(x) == google.protobuf.Timestamp`) or construct a message
//! (`google.protobuf.Int64Value{value: 1}`). A message therefore has a type and a field table. Most messages are
//! represented by a type of the language, whose values have no fields.
//!
//! Source: cel-go `common/types/pb/pb.go` (`init`), `common/types/provider.go` (`NewRegistry`,
//! `FindStructType`), `common/types/types.go` (`checkedWellKnowns`).

use crate::decls::Sig;
use crate::env::Library;
use crate::message::{Meaning, MessageRow};
use crate::types::Primitive;
use Sig::{Bool, Bytes, Double, Dyn, Int, List, Map, String as Str, Uint};

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

/// Declares all messages, and the only value of the enum `google.protobuf.NullValue`.
pub fn add_to(library: &mut Library) {
    for row in MESSAGES {
        library.add_message(row);
    }
    library.add_constant("google.protobuf.NullValue.NULL_VALUE", 0);
}
