//! A parsed schema of an OpenAPI v3 document. Contains only the keywords that affect types.
//!
//! Source: kube-openapi `pkg/validation/spec/schema.go` (`Schema`).

use serde_json::Value;

use super::Gvk;
use super::extensions;

/// A value of the keyword `type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JsonType {
    /// The keyword is missing, or its value is not a known type.
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
    pub(super) fn from_name(name: &str) -> Self {
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

/// A value of the keyword `format` that affects the CEL type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    /// No `format`, or a format that does not affect the CEL type.
    #[default]
    None,
    Byte,
    Date,
    DateTime,
    Duration,
    IntOrString,
}

impl Format {
    pub(super) fn from_name(name: &str) -> Self {
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

#[derive(Debug, Default)]
pub(super) enum AdditionalProperties {
    #[default]
    None,
    Allowed(bool),
    Schema(Schema),
}

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag corresponds to a schema keyword"
)]
pub(super) struct Schema {
    /// The first type in `type`. Any further types affect only [`Schema::is_string`] and [`Schema::is_object`].
    pub(super) type_: JsonType,
    pub(super) format: Format,
    /// True if `type` contains `string`.
    pub(super) is_string: bool,
    /// True if `type` contains `object`.
    pub(super) is_object: bool,
    pub(super) nullable: bool,
    pub(super) int_or_string: bool,
    pub(super) embedded_resource: bool,
    pub(super) preserve_unknown_fields: bool,
    /// True if the default is set and not null.
    pub(super) has_default: bool,
    /// True if a keyword that affects the type has a value of the wrong type.
    pub(super) malformed: bool,
    /// Rarely used keywords, stored separately to save memory.
    details: Option<Box<Details>>,
}

/// The keywords that apply to references, lists, maps and objects, and the keywords that restrict scalars.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// The schema's own `$ref`, or the first `$ref` in its `allOf`. Schemas wrap a reference in `allOf` to add a
    /// description.
    pub(super) reference: Option<Box<str>>,
    pub(super) max_length: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) enum_values: Vec<Value>,
    /// Sorted names of the required properties.
    pub(super) required: Vec<Box<str>>,
    /// The properties, sorted by name, without duplicates.
    pub(super) properties: Vec<(Box<str>, Schema)>,
    pub(super) items: Option<Schema>,
    pub(super) additional: AdditionalProperties,
    pub(super) kinds: Vec<Gvk>,
}

impl Schema {
    pub(super) fn with_type(type_: JsonType) -> Self {
        Self {
            type_,
            is_string: type_ == JsonType::String,
            is_object: type_ == JsonType::Object,
            ..Self::default()
        }
    }

    /// Returns a placeholder for a value that is not a schema.
    pub(super) fn malformed() -> Self {
        Self {
            malformed: true,
            ..Self::default()
        }
    }

    /// Creates a schema with only the reference `name`, a `$ref` value.
    pub(super) fn from_reference(name: &str) -> Self {
        let mut schema = Self::default();
        schema.details_mut().reference = Some(name.into());
        schema
    }

    pub(super) fn details(&self) -> Option<&Details> {
        self.details.as_deref()
    }

    pub(super) fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    /// Returns the value of `$ref`, if the schema is a reference.
    ///
    /// Source: apiserver `pkg/cel/openapi/resolver/refs.go`, `refOf`.
    pub(super) fn reference(&self) -> Option<&str> {
        self.details()?.reference.as_deref()
    }

    pub(super) fn property(&self, name: &str) -> Option<&Schema> {
        let properties = &self.details()?.properties;
        let idx = properties
            .binary_search_by(|(key, _)| (**key).cmp(name))
            .ok()?;
        properties.get(idx).map(|(_, schema)| schema)
    }

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

    pub(super) fn require(&mut self, name: &str) {
        let required = &mut self.details_mut().required;
        if let Err(idx) = required.binary_search_by(|known| (**known).cmp(name)) {
            required.insert(idx, name.into());
        }
    }

    /// Returns the schemas nested in `properties`, `additionalProperties` and `items`.
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
