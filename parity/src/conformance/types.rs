//! Converts types and declarations of the conformance tests to those of our checker.
//!
//! Source: cel-spec `proto/cel/expr/checked.proto`, `Type`, `Decl`; cel-go `common/types/types.go`, `ProtoAsType`.

use anyhow::{Context as _, Result, bail};
use vap_status_controller::cel::types::{Primitive, StructType, Type, TypeParam};

use super::textproto::{Message, Value};

/// Prefix of the names of messages that protobuf itself defines.
pub const WELL_KNOWN: &str = "google.protobuf.";

/// Converts a type of a test. A message becomes an opaque type with the name of the message.
///
/// # Errors
/// Returns an error if the type is malformed or not supported by the checker.
pub fn read_type(message: &Message) -> Result<Type> {
    let Some((kind, value)) = message.fields().next() else {
        bail!("a type without a kind");
    };
    Ok(match (kind, value) {
        ("dyn", _) => Type::Dyn,
        ("null", _) => Type::Null,
        ("error", _) => Type::Error,
        ("primitive", value) => primitive(value.word()?)?.unwrapped(),
        ("wrapper", value) => Type::Wrapper(primitive(value.word()?)?),
        ("well_known", value) => match value.word()? {
            "ANY" => Type::Any,
            "TIMESTAMP" => Type::Timestamp,
            "DURATION" => Type::Duration,
            other => bail!("well-known type {other}"),
        },
        ("list_type", Value::Message(list)) => Type::list(part(list, "elem_type")?),
        ("map_type", Value::Message(map)) => {
            Type::map(part(map, "key_type")?, part(map, "value_type")?)
        }
        ("message_type", value) => message_type(value.text()?),
        ("type", Value::Message(of)) if of.fields().next().is_none() => Type::Type(None),
        ("type", Value::Message(of)) => Type::type_of(read_type(of)?),
        ("abstract_type", Value::Message(opaque)) => {
            let params = opaque.messages("parameter_types")?;
            let params = params.into_iter().map(read_type);
            Type::opaque(opaque.text("name")?, params.collect::<Result<_>>()?)
        }
        // Leaks the name of the type parameter, which must be static.
        ("type_param", value) => Type::Param(TypeParam::Declared(value.text()?.leak())),
        (other, _) => bail!("a type of the kind `{other}`"),
    })
}

fn part(message: &Message, name: &str) -> Result<Type> {
    let type_ = message.message(name)?;
    read_type(type_.with_context(|| format!("no {name}"))?)
}

fn primitive(name: &str) -> Result<Primitive> {
    Ok(match name {
        "BOOL" => Primitive::Bool,
        "INT64" => Primitive::Int,
        "UINT64" => Primitive::Uint,
        "DOUBLE" => Primitive::Double,
        "STRING" => Primitive::String,
        "BYTES" => Primitive::Bytes,
        other => bail!("primitive type {other}"),
    })
}

/// Converts the name of a message to a type. Some messages have a built-in type in CEL.
///
/// Source: cel-go `common/types/types.go`, `checkedWellKnowns`.
fn message_type(name: String) -> Type {
    match name.strip_prefix(WELL_KNOWN) {
        Some("Any") => Type::Any,
        Some("Value") => Type::Dyn,
        Some("Struct") => Type::map(Type::String, Type::Dyn),
        Some("ListValue") => Type::list(Type::Dyn),
        Some("Duration") => Type::Duration,
        Some("Timestamp") => Type::Timestamp,
        Some("BoolValue") => Type::Wrapper(Primitive::Bool),
        Some("BytesValue") => Type::Wrapper(Primitive::Bytes),
        Some("DoubleValue" | "FloatValue") => Type::Wrapper(Primitive::Double),
        Some("Int32Value" | "Int64Value") => Type::Wrapper(Primitive::Int),
        Some("StringValue") => Type::Wrapper(Primitive::String),
        Some("UInt32Value" | "UInt64Value") => Type::Wrapper(Primitive::Uint),
        _ => Type::Struct(StructType::undeclared(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance_types_of_all_kinds_are_converted() {
        let cases = [
            ("primitive: UINT64", "uint"),
            ("wrapper: STRING", "wrapper(string)"),
            (
                "map_type { key_type { primitive: STRING } value_type { dyn {} } }",
                "map(string, dyn)",
            ),
            ("type { primitive: INT64 }", "type(int)"),
            ("type {}", "type"),
            ("well_known: DURATION", "duration"),
            ("message_type: 'google.protobuf.Struct'", "map(string, dyn)"),
            ("message_type: 'a.B'", "a.B"),
            (
                "abstract_type { name: 'optional_type' parameter_types { null: 0 } }",
                "optional_type(null)",
            ),
        ];
        for (text, expected) in cases {
            let type_ = read_type(&Message::parse(text).unwrap()).unwrap();
            assert_eq!(type_.to_string(), expected);
        }
        assert!(read_type(&Message::parse("primitive: FLOAT").unwrap()).is_err());
    }
}
