//! The schema keywords that determine the CEL types of values.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::schema::extensions::INT_OR_STRING_FORMAT;
use crate::version::Behavior;

/// The keywords of a schema that determine the CEL types of values.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag corresponds to a schema keyword or a behavior"
)]
pub struct ValueSchema {
    /// The declared properties. `None` if they equal `properties`, because no common properties of resources were
    /// added.
    own_properties: Option<Properties>,
    pub(super) type_: String,
    pub(super) format: String,
    pub(super) nullable: bool,
    pub(super) int_or_string: bool,
    pub(super) preserve_unknown_fields: bool,
    pub(super) properties: Option<Properties>,
    pub(super) additional: Option<Arc<ValueSchema>>,
    pub(super) items: Option<Arc<ValueSchema>>,
    pub(super) list_type: String,
    pub(super) list_map_keys: Vec<String>,
    /// See [`Behavior`].
    pub(super) lists_hold_cel_values: bool,
}

type Properties = HashMap<String, Arc<ValueSchema>>;

/// The origin of a schema. It determines the meaning of some keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A schema of an OpenAPI document.
    OpenApi,
    /// The structural schema of a CustomResourceDefinition.
    Structural,
}

/// The maximum number of levels in a schema. Deeper values have no type.
const MAX_DEPTH: u32 = 100;

impl ValueSchema {
    /// Parses a schema of an OpenAPI document, for API servers with `behavior`.
    #[must_use]
    pub fn new(schema: &Json, behavior: Behavior) -> Arc<Self> {
        Arc::new(Self::read(schema, (Form::OpenApi, behavior), 0))
    }

    /// Parses a structural schema of a CRD, for API servers with `behavior`. If `is_resource` is true, adds the common
    /// properties of resources: `apiVersion`, `kind` and `metadata`.
    #[must_use]
    pub fn from_structural(schema: &Json, is_resource: bool, behavior: Behavior) -> Arc<Self> {
        let mut read = Self::read(schema, (Form::Structural, behavior), 0);
        if is_resource {
            read.add_type_and_object_meta();
        }
        Arc::new(read)
    }

    fn read(schema: &Json, (form, behavior): (Form, Behavior), depth: u32) -> Self {
        if depth > MAX_DEPTH {
            return Self::default();
        }
        let text = |key: &str| {
            schema
                .get(key)
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let flag = |key: &str| schema.get(key).and_then(Json::as_bool).unwrap_or(false);
        let part = |of: &Json| Arc::new(Self::read(of, (form, behavior), depth.saturating_add(1)));
        let type_ = match schema.get("type") {
            Some(Json::Array(types)) => types.first().and_then(Json::as_str).unwrap_or_default(),
            Some(Json::String(type_)) => type_,
            _ => "",
        };
        let format = text("format");
        let properties = schema
            .get("properties")
            .and_then(Json::as_object)
            .filter(|properties| form == Form::OpenApi || !properties.is_empty())
            .map(|properties| {
                properties
                    .iter()
                    .map(|(name, property)| (name.clone(), part(property)))
                    .collect()
            });
        let mut read = Self {
            type_: type_.to_owned(),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string")
                || (form == Form::OpenApi && format == INT_OR_STRING_FORMAT),
            format,
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            properties,
            additional: schema
                .get("additionalProperties")
                .filter(|of| of.is_object())
                .map(part),
            items: schema.get("items").filter(|of| of.is_object()).map(part),
            list_type: text("x-kubernetes-list-type"),
            list_map_keys: schema
                .get("x-kubernetes-list-map-keys")
                .and_then(Json::as_array)
                .map(|keys| {
                    keys.iter()
                        .filter_map(Json::as_str)
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default(),
            own_properties: None,
            lists_hold_cel_values: behavior.lists_hold_cel_values,
        };
        if flag("x-kubernetes-embedded-resource") {
            read.add_type_and_object_meta();
        }
        read
    }

    fn with_type(type_: &str) -> Arc<Self> {
        Arc::new(Self {
            type_: type_.into(),
            ..Self::default()
        })
    }

    /// Source: apiserver `pkg/cel/common/schemas.go`, `WithTypeAndObjectMeta`.
    fn add_type_and_object_meta(&mut self) {
        let is_string =
            |of: &Self, name: &str| of.property(name).is_some_and(|p| p.type_ == "string");
        let meta = self.property("metadata").cloned();
        let has_meta = meta.is_some_and(|meta| {
            meta.type_ == "object" && is_string(&meta, "name") && is_string(&meta, "generateName")
        });
        if is_string(self, "kind") && is_string(self, "apiVersion") && has_meta {
            return;
        }
        let string = || Self::with_type("string");
        let meta = Self {
            type_: "object".into(),
            properties: Some(
                ["name", "generateName"]
                    .map(|name| (name.to_owned(), string()))
                    .into(),
            ),
            ..Self::default()
        };
        self.own_properties = Some(self.properties.clone().unwrap_or_default());
        let properties = self.properties.get_or_insert_default();
        properties.insert("kind".into(), string());
        properties.insert("apiVersion".into(), string());
        properties.insert("metadata".into(), Arc::new(meta));
    }

    pub(super) fn property(&self, name: &str) -> Option<&Arc<Self>> {
        self.properties.as_ref()?.get(name)
    }

    /// Returns the `type` of the schema. Empty if the schema has no `type`.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.type_
    }

    /// Returns the schema of the list's items, if declared.
    #[must_use]
    pub fn items(&self) -> Option<&Arc<Self>> {
        self.items.as_ref()
    }

    /// Returns the key fields of a list of type `map`. Empty for any other schema.
    #[must_use]
    pub fn map_keys(&self) -> &[String] {
        let is_map = self.type_ == "array" && self.list_type == "map";
        if is_map { &self.list_map_keys } else { &[] }
    }

    /// Returns the declared schema of the field or map entry `name`. Ignores the added common properties of resources.
    #[must_use]
    pub fn declared_part(&self, name: &str) -> Option<&Arc<Self>> {
        let own = self.own_properties.as_ref().or(self.properties.as_ref());
        let property = own.and_then(|properties| properties.get(name));
        property.or(self.additional.as_ref())
    }

    pub(super) fn is_object(&self) -> bool {
        self.properties.is_some()
    }

    /// Returns the schema of the field or map entry `name`. Includes the common properties of resources.
    pub(super) fn part(&self, name: &str) -> Option<&Arc<Self>> {
        if self.is_object() {
            self.property(name)
        } else {
            self.additional.as_ref()
        }
    }
}
