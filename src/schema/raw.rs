//! One schema of an OpenAPI v3 document, as read: the keywords that decide about types, and nothing
//! else. Descriptions, examples and validations are dropped while reading.
//!
//! Reading is tolerant, since one odd schema must not cost a whole group its types: unknown keywords
//! are passed over, and a keyword of the wrong type makes its own schema [`Schema::malformed`], which
//! is then a schema without a type. Upstream refuses the whole document.
//!
//! Source: kube-openapi `pkg/validation/spec/schema.go` (`Schema`, `UnmarshalNextJSON`),
//! `pkg/validation/spec/swagger.go` (`SchemaOrBool`, `SchemaOrArray`, `StringOrArray`).

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::Gvk;
use super::extensions;

/// A JSON type, as the keyword `type` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JsonType {
    /// No `type`, or one that is none of these.
    #[default]
    None,
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

impl JsonType {
    fn of(name: &str) -> Self {
        match name {
            "array" => Self::Array,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "object" => Self::Object,
            "string" => Self::String,
            _ => Self::None,
        }
    }
}

/// A format that changes the type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    /// None, or one without effect.
    #[default]
    None,
    Byte,
    Date,
    DateTime,
    Duration,
    IntOrString,
}

impl Format {
    fn of(name: &str) -> Self {
        match name {
            "byte" => Self::Byte,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "duration" => Self::Duration,
            extensions::INT_OR_STRING_FORMAT => Self::IntOrString,
            _ => Self::None,
        }
    }
}

/// `additionalProperties`.
#[derive(Debug, Default)]
pub(super) enum AdditionalProperties {
    #[default]
    None,
    Allowed(bool),
    Schema(Schema),
}

/// A schema.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of its own"
)]
pub(super) struct Schema {
    /// The first type of `type`; the others count for nothing but [`Schema::is_string`] and
    /// [`Schema::is_object`].
    pub(super) type_: JsonType,
    pub(super) format: Format,
    /// Whether `string` is among the types.
    pub(super) is_string: bool,
    /// Whether `object` is among the types.
    pub(super) is_object: bool,
    pub(super) nullable: bool,
    pub(super) int_or_string: bool,
    pub(super) embedded_resource: bool,
    pub(super) preserve_unknown_fields: bool,
    /// Whether there is a default other than null.
    pub(super) has_default: bool,
    /// Whether a keyword that counts is of the wrong type.
    pub(super) malformed: bool,
    /// The keywords that most schemas lack.
    details: Option<Box<Details>>,
}

/// The keywords of lists, maps, objects, references and restricted scalars.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// The `$ref` of the schema or, without one, that of the first schema of `allOf` that has one;
    /// schemas wrap a reference in `allOf` to give it a description.
    pub(super) reference: Option<Box<str>>,
    pub(super) max_length: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) enum_values: Vec<Value>,
    /// The names of required properties, sorted.
    pub(super) required: Vec<Box<str>>,
    /// The properties, sorted by name, each name once.
    pub(super) properties: Vec<(Box<str>, Schema)>,
    pub(super) items: Option<Schema>,
    pub(super) additional: AdditionalProperties,
    pub(super) kinds: Vec<Gvk>,
}

impl Schema {
    /// A schema of the type `type_`, and nothing more.
    pub(super) fn of_type(type_: JsonType) -> Self {
        Self {
            type_,
            is_string: type_ == JsonType::String,
            is_object: type_ == JsonType::Object,
            ..Self::default()
        }
    }

    /// A schema that is a reference to `name`.
    pub(super) fn of_reference(name: &str) -> Self {
        let mut schema = Self::default();
        schema.details_mut().reference = Some(name.into());
        schema
    }

    /// The keywords that most schemas lack, where it has any of them.
    pub(super) fn details(&self) -> Option<&Details> {
        self.details.as_deref()
    }

    pub(super) fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    /// The schema that it stands for, by its name.
    ///
    /// Source: apiserver `pkg/cel/openapi/resolver/refs.go`, `refOf`.
    pub(super) fn reference(&self) -> Option<&str> {
        self.details()?.reference.as_deref()
    }

    /// The property `name`.
    pub(super) fn property(&self, name: &str) -> Option<&Schema> {
        let properties = &self.details()?.properties;
        let idx = properties
            .binary_search_by(|(key, _)| (**key).cmp(name))
            .ok()?;
        properties.get(idx).map(|(_, schema)| schema)
    }

    /// Sets the property `name`.
    pub(super) fn set_property(&mut self, name: &str, schema: Schema) {
        let properties = &mut self.details_mut().properties;
        match properties.binary_search_by(|(key, _)| (**key).cmp(name)) {
            Ok(idx) => {
                if let Some((_, old)) = properties.get_mut(idx) {
                    *old = schema;
                }
            }
            Err(idx) => properties.insert(idx, (name.into(), schema)),
        }
    }

    /// Requires the property `name`.
    pub(super) fn require(&mut self, name: &str) {
        let required = &mut self.details_mut().required;
        if let Err(idx) = required.binary_search_by(|known| (**known).cmp(name)) {
            required.insert(idx, name.into());
        }
    }

    /// The schemas within: of properties, of additional properties, of items.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Schema> {
        self.details().into_iter().flat_map(|details| {
            let additional = match &details.additional {
                AdditionalProperties::Schema(schema) => Some(schema),
                _ => None,
            };
            let properties = details.properties.iter().map(|(_, schema)| schema);
            properties.chain(additional).chain(&details.items)
        })
    }
}

/// Reads a [`Schema`], and counts the schemas that may still be read.
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
                _ => Schema {
                    malformed: true,
                    ..Schema::default()
                },
            },
        )
    }
}

/// What stands where a schema, a boolean or a list of schemas may stand.
enum Any {
    Null,
    Bool(bool),
    Schema(Schema),
    Schemas(Vec<Schema>),
    Other,
}

/// Reads [`Any`].
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
                    // A list of schemas, one for each item, gives upstream no type for items either.
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

/// Sets the keyword to a value that is not null; `None` where the value is of the wrong type.
fn set(schema: &mut Schema, keyword: Plain, value: Value) -> Option<()> {
    match keyword {
        // Upstream passes over a reference that is not a string, and extensions that are not booleans.
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
                .map_or(JsonType::None, |name| JsonType::of(name));
            schema.is_string = names.contains(&"string");
            schema.is_object = names.contains(&"object");
        }
        Plain::Format => schema.format = Format::of(value.as_str()?),
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

/// A whole number, also if written with a fraction of zero.
fn integer(value: &Value) -> Option<i64> {
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole numbers below 2^53 are exact"
    )]
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() < LIMIT).then_some(number as i64)
    })
}

/// A keyword whose value is not a schema.
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

/// A keyword of a schema.
enum Keyword {
    Properties,
    Items,
    AdditionalProperties,
    AllOf,
    Plain(Plain),
    Other,
}

/// Reads a [`Keyword`] without keeping its text.
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

/// Reads the value of `properties`; `None` where it is neither an object nor null.
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
        // Of two properties of one name the last counts.
        properties.reverse();
        properties.sort_by(|(a, _), (b, _)| a.cmp(b));
        properties.dedup_by(|(later, _), (kept, _)| later == kept);
        Ok(Some(properties))
    }
}
