//! Parses schemas. Descriptions, examples and validations are skipped.
//!
//! A malformed schema does not affect other types of the same group. Unknown keywords are skipped. A keyword with a
//! value of the wrong type makes the schema [malformed](Schema::malformed), so the schema has no type.
//!
//! Differs: upstream rejects the whole document.
//!
//! Source: kube-openapi `pkg/validation/spec/schema.go` (`UnmarshalNextJSON`),
//! `pkg/validation/spec/swagger.go` (`SchemaOrBool`, `SchemaOrArray`, `StringOrArray`).

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::extensions;
use super::raw::{AdditionalProperties, Format, JsonType, Schema};

/// A deserializer of a [`Schema`]. Decrements `left`, the remaining number of schemas that may be parsed.
#[derive(Clone, Copy)]
pub(super) struct SchemaSeed<'a> {
    pub(super) left: &'a Cell<u32>,
}

impl<'de> DeserializeSeed<'de> for SchemaSeed<'_> {
    type Value = Schema;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Schema, D::Error> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(D::Error::custom(format_args!(
                "more than {} schemas in one document",
                super::sizes::MAX_SCHEMAS
            )));
        };
        self.left.set(left);
        Ok(
            match (AnySeed { left: self.left }).deserialize(deserializer)? {
                Any::Schema(schema) => schema,
                _ => Schema::malformed(),
            },
        )
    }
}

/// The value of a keyword that accepts a schema, a boolean or a list of schemas.
enum Any {
    Null,
    Bool(bool),
    Schema(Schema),
    Schemas(Vec<Schema>),
    Other,
}

struct AnySeed<'a> {
    left: &'a Cell<u32>,
}

impl<'de> DeserializeSeed<'de> for AnySeed<'_> {
    type Value = Any;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Any, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnySeed<'_> {
    type Value = Any;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a schema")
    }

    fn visit_unit<E>(self) -> Result<Any, E> {
        Ok(Any::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Any, E> {
        Ok(Any::Bool(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Any, E> {
        Ok(Any::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Any, E> {
        Ok(Any::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Any, E> {
        Ok(Any::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Any, E> {
        Ok(Any::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Any, A::Error> {
        let mut schemas = Vec::new();
        while let Some(schema) = seq.next_element_seed(SchemaSeed { left: self.left })? {
            schemas.push(schema);
        }
        Ok(Any::Schemas(schemas))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any, A::Error> {
        let mut schema = Schema::default();
        let mut wrapped_reference = None;
        while let Some(keyword) = map.next_key_seed(KeywordSeed)? {
            let seed = AnySeed { left: self.left };
            match keyword {
                Keyword::Properties => {
                    let seed = PropertiesSeed { left: self.left };
                    match map.next_value_seed(seed)? {
                        Some(properties) if properties.is_empty() => {}
                        Some(properties) => schema.details_mut().properties = properties,
                        None => schema.malformed = true,
                    }
                }
                Keyword::Items => match map.next_value_seed(seed)? {
                    Any::Schema(items) => schema.details_mut().items = Some(items),
                    // If `items` is a list with one schema per item, the items have no type, as in upstream.
                    Any::Null | Any::Schemas(_) => {}
                    Any::Bool(_) | Any::Other => schema.malformed = true,
                },
                Keyword::AdditionalProperties => {
                    let additional = match map.next_value_seed(seed)? {
                        Any::Null => continue,
                        Any::Bool(allowed) => AdditionalProperties::Allowed(allowed),
                        Any::Schema(value) => AdditionalProperties::Schema(value),
                        Any::Schemas(_) | Any::Other => {
                            schema.malformed = true;
                            continue;
                        }
                    };
                    schema.details_mut().additional = additional;
                }
                Keyword::AllOf => match map.next_value_seed(seed)? {
                    Any::Schemas(all) => {
                        let mut references = all.iter().filter_map(Schema::reference);
                        wrapped_reference = references.next().map(Box::from);
                    }
                    Any::Null => {}
                    Any::Bool(_) | Any::Schema(_) | Any::Other => schema.malformed = true,
                },
                Keyword::Plain(keyword) => {
                    let value: Value = map.next_value()?;
                    schema.malformed |=
                        !value.is_null() && set(&mut schema, keyword, value).is_none();
                }
                Keyword::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if schema.reference().is_none() && wrapped_reference.is_some() {
            schema.details_mut().reference = wrapped_reference;
        }
        Ok(Any::Schema(schema))
    }
}

/// Sets a keyword to a non-null value. Returns `None` if the value has the wrong type.
fn set(schema: &mut Schema, keyword: Plain, value: Value) -> Option<()> {
    match keyword {
        // Upstream ignores a `$ref` that is not a string, and extensions that are not booleans.
        Plain::Ref => {
            if let Value::String(name) = value {
                schema.details_mut().reference = Some(name.into());
            }
        }
        Plain::IntOrString => schema.int_or_string = value == Value::Bool(true),
        Plain::EmbeddedResource => schema.embedded_resource = value == Value::Bool(true),
        Plain::PreserveUnknownFields => {
            schema.preserve_unknown_fields = value == Value::Bool(true);
        }
        Plain::Kinds => {
            let kinds = extensions::kinds(&value);
            if !kinds.is_empty() {
                schema.details_mut().kinds = kinds;
            }
        }
        Plain::Default => schema.has_default = true,
        Plain::Type => {
            let names = match &value {
                Value::String(name) => vec![name.as_str()],
                Value::Array(names) => names.iter().map(Value::as_str).collect::<Option<_>>()?,
                _ => return None,
            };
            schema.type_ = names
                .first()
                .map_or(JsonType::None, |name| JsonType::from_name(name));
            schema.is_string = names.contains(&"string");
            schema.is_object = names.contains(&"object");
        }
        Plain::Format => schema.format = Format::from_name(value.as_str()?),
        Plain::Nullable => schema.nullable = value.as_bool()?,
        Plain::MaxLength => schema.details_mut().max_length = Some(integer(&value)?),
        Plain::MaxItems => schema.details_mut().max_items = Some(integer(&value)?),
        Plain::MaxProperties => schema.details_mut().max_properties = Some(integer(&value)?),
        Plain::Enum => match value {
            Value::Array(values) if values.is_empty() => {}
            Value::Array(values) => schema.details_mut().enum_values = values,
            _ => return None,
        },
        Plain::Required => {
            let names = value
                .as_array()?
                .iter()
                .map(|name| name.as_str().map(Box::from));
            let mut names: Vec<_> = names.collect::<Option<_>>()?;
            names.sort_unstable();
            if !names.is_empty() {
                schema.details_mut().required = names;
            }
        }
    }
    Some(())
}

/// Returns the value as an integer. Accepts a zero fraction, as in `5.0`.
fn integer(value: &Value) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "integers below 2^53 are exact"
    )]
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() < LIMIT).then_some(number as i64)
    })
}

/// A keyword whose value contains no schemas.
#[derive(Clone, Copy)]
enum Plain {
    Ref,
    Type,
    Format,
    Nullable,
    Default,
    MaxLength,
    MaxItems,
    MaxProperties,
    Enum,
    Required,
    IntOrString,
    EmbeddedResource,
    PreserveUnknownFields,
    Kinds,
}

/// A keyword, grouped by the syntax of its value.
enum Keyword {
    Properties,
    Items,
    AdditionalProperties,
    AllOf,
    Plain(Plain),
    Other,
}

/// Deserializes a [`Keyword`] without allocating a string.
struct KeywordSeed;

impl<'de> DeserializeSeed<'de> for KeywordSeed {
    type Value = Keyword;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Keyword, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeywordSeed {
    type Value = Keyword;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a keyword")
    }

    fn visit_str<E>(self, text: &str) -> Result<Keyword, E> {
        Ok(Keyword::Plain(match text {
            "properties" => return Ok(Keyword::Properties),
            "items" => return Ok(Keyword::Items),
            "additionalProperties" => return Ok(Keyword::AdditionalProperties),
            "allOf" => return Ok(Keyword::AllOf),
            "$ref" => Plain::Ref,
            "type" => Plain::Type,
            "format" => Plain::Format,
            "nullable" => Plain::Nullable,
            "default" => Plain::Default,
            "maxLength" => Plain::MaxLength,
            "maxItems" => Plain::MaxItems,
            "maxProperties" => Plain::MaxProperties,
            "enum" => Plain::Enum,
            "required" => Plain::Required,
            extensions::INT_OR_STRING => Plain::IntOrString,
            extensions::EMBEDDED_RESOURCE => Plain::EmbeddedResource,
            extensions::PRESERVE_UNKNOWN_FIELDS => Plain::PreserveUnknownFields,
            extensions::GROUP_VERSION_KIND => Plain::Kinds,
            _ => return Ok(Keyword::Other),
        }))
    }
}

/// Deserializes the value of `properties`. Returns `None` if the value is neither an object nor null.
struct PropertiesSeed<'a> {
    left: &'a Cell<u32>,
}

impl<'de> DeserializeSeed<'de> for PropertiesSeed<'_> {
    type Value = Option<Vec<(Box<str>, Schema)>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PropertiesSeed<'_> {
    type Value = Option<Vec<(Box<str>, Schema)>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("properties")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Some(Vec::new()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut properties = Vec::new();
        while let Some(name) = map.next_key::<Box<str>>()? {
            properties.push((name, map.next_value_seed(SchemaSeed { left: self.left })?));
        }
        // If several properties have the same name, the last one is used.
        properties.reverse();
        properties.sort_by(|(a, _), (b, _)| a.cmp(b));
        properties.dedup_by(|(later, _), (kept, _)| later == kept);
        Ok(Some(properties))
    }
}
