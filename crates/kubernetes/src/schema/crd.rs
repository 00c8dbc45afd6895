//! The types that the API server publishes for CustomResourceDefinitions.
//!
//! The API server publishes an OpenAPI document for each served version. This module builds the part of the document
//! that affects types. Defaults, pruning and validations do not affect types.
//!
//! - A structural schema is published with the standard metadata.
//! - For any other schema, an object without declared fields is published.
//!
//! Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go` (`generateBuilder`,
//! `buildKubeNative`, `addEmbeddedProperties`, `buildListSchema`).

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::LazyLock;

use serde::de::DeserializeSeed;
use serde_json::{Map, Value};

use super::decl_type::DeclType;
use super::error::SchemaError;
use super::intern::Interner;
use super::openapi::OpenApiDocument;
use super::raw::{AdditionalProperties, JsonType, Schema};
use super::read::SchemaSeed;
use super::rest_mapper::ApiResource;
use super::{Gvk, Gvr, refs, sizes, structural};

/// The apimachinery schemas to which the published schemas of custom resources refer, as JSON.
pub(crate) const META: &str = include_str!("meta.json");

pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
/// The name of the custom resource's schema. No other schema can have the name `#`.
const ROOT: &str = "#";

/// The maximum number of nested JSON levels in a schema, the same as in `serde_json`.
pub(crate) const MAX_JSON_DEPTH: usize = 128;

/// The parts of a CustomResourceDefinition that this project uses.
#[derive(Clone, Debug)]
pub struct Crd {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The list kind of the resource. The default is the resource's kind with the suffix `List`.
    pub list_kind: String,
    /// The resource name, such as `widgets`.
    pub plural: String,
    /// The singular name. The default is the kind in lower case.
    pub singular: String,
    /// True if the resource is namespaced.
    pub namespaced: bool,
    /// True if a webhook converts objects between versions. Otherwise, conversion changes only `apiVersion`.
    pub has_webhook: bool,
    /// The served versions.
    pub versions: Vec<CrdVersion>,
    definition: Arc<Value>,
}

/// A served version of a CustomResourceDefinition.
#[derive(Clone, Debug)]
pub struct CrdVersion {
    /// The name of the version, such as `v1`.
    pub name: String,
    /// True if the version has a `status` subresource.
    pub has_status: bool,
    /// True if the version has a `scale` subresource.
    pub has_scale: bool,
    /// The unmodified schema in the CRD. `None` if the CRD contains no schema for this version.
    pub schema: Option<WrittenSchema>,
}

/// The unmodified schema of one version in a CRD. All versions share the JSON of the CRD in memory.
#[derive(Clone, Debug)]
pub struct WrittenSchema {
    definition: Arc<Value>,
    /// The index of the version in `spec.versions`.
    nth: usize,
}

impl WrittenSchema {
    fn new(definition: &Arc<Value>, nth: usize) -> Option<Self> {
        let schema = Self {
            definition: Arc::clone(definition),
            nth,
        };
        (!schema.is_null()).then_some(schema)
    }
}

impl Deref for WrittenSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        let versions = self.definition.pointer("/spec/versions");
        let version = versions.and_then(|versions| versions.get(self.nth));
        let schema = version.and_then(|version| version.pointer("/schema/openAPIV3Schema"));
        schema.unwrap_or(&Value::Null)
    }
}

impl Crd {
    /// Parses a CustomResourceDefinition of `apiextensions.k8s.io/v1` and applies the defaults of this API.
    ///
    /// # Errors
    /// Returns [`SchemaError::Crd`] if a required name is missing.
    pub fn from_value(crd: &Value) -> Result<Self, SchemaError> {
        Self::from_shared(Arc::new(crd.clone()))
    }

    /// Same as [`Self::from_value`], but shares the CRD instead of copying it.
    ///
    /// # Errors
    /// Returns [`SchemaError::Crd`] if a required name is missing.
    pub fn from_shared(crd: Arc<Value>) -> Result<Self, SchemaError> {
        let spec = crd.get("spec").unwrap_or(&Value::Null);
        let names = spec.get("names").unwrap_or(&Value::Null);
        let optional = |of: &Value, key: &str| {
            let text = of.get(key).and_then(Value::as_str).unwrap_or_default();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let required = |of: &Value, path: &str, key: &str| {
            optional(of, key)
                .ok_or_else(|| SchemaError::Crd(format!("{path}.{key} is missing").into()))
        };
        let kind = required(names, "spec.names", "kind")?;
        let mut versions = Vec::new();
        let written = spec.get("versions").and_then(Value::as_array);
        for (nth, version) in written.into_iter().flatten().enumerate() {
            let is_served = version.get("served") == Some(&Value::Bool(true));
            let name = required(version, "spec.versions[*]", "name")?;
            if !is_served || versions.iter().any(|known: &CrdVersion| known.name == name) {
                continue;
            }
            let subresource = |key| {
                version
                    .get("subresources")?
                    .get(key)
                    .filter(|v| !v.is_null())
            };
            versions.push(CrdVersion {
                name,
                has_status: subresource("status").is_some(),
                has_scale: subresource("scale").is_some(),
                schema: WrittenSchema::new(&crd, nth),
            });
        }
        Ok(Self {
            group: required(spec, "spec", "group")?,
            list_kind: optional(names, "listKind").unwrap_or_else(|| format!("{kind}List")),
            plural: required(names, "spec.names", "plural")?,
            singular: optional(names, "singular").unwrap_or_else(|| kind.to_lowercase()),
            namespaced: spec.get("scope").and_then(Value::as_str) == Some("Namespaced"),
            has_webhook: spec
                .get("conversion")
                .and_then(|conversion| conversion.get("strategy"))
                .and_then(Value::as_str)
                == Some("Webhook"),
            kind,
            versions,
            definition: crd,
        })
    }

    /// Returns the unmodified CRD.
    #[must_use]
    pub fn definition(&self) -> &Value {
        &self.definition
    }

    /// Returns the custom resource and its subresources, for each served version.
    #[must_use]
    pub fn resources(&self) -> Vec<ApiResource> {
        let mut resources = Vec::new();
        for version in &self.versions {
            let own = Gvk::new(&self.group, &version.name, &self.kind);
            let scale = Gvk::new("autoscaling", "v1", "Scale");
            let mut add = |name: String, gvk: &Gvk, singular: &str| {
                resources.push(ApiResource {
                    gvr: Gvr::new(&self.group, &version.name, name),
                    gvk: gvk.clone(),
                    singular: singular.into(),
                    namespaced: self.namespaced,
                });
            };
            add(self.plural.clone(), &own, &self.singular);
            if version.has_status {
                add(format!("{}/status", self.plural), &own, "");
            }
            if version.has_scale {
                add(format!("{}/scale", self.plural), &scale, "");
            }
        }
        resources
    }

    /// Returns the types of the kind, of the list kind, and of `Scale` if a version has the `scale` subresource.
    #[must_use]
    pub fn decl_types(
        &self,
        interner: &mut Interner,
    ) -> Vec<(Gvk, Result<Arc<DeclType>, SchemaError>)> {
        let mut types = Vec::new();
        for version in &self.versions {
            match self.document(version) {
                Ok(document) => types.extend(document.decl_types(interner)),
                Err(error) => {
                    types.push((Gvk::new(&self.group, &version.name, &self.kind), Err(error)));
                }
            }
        }
        types
    }

    /// Builds the part of a version's OpenAPI document that affects types.
    fn document(&self, version: &CrdVersion) -> Result<OpenApiDocument, SchemaError> {
        let gvk = |kind: &String| Some(Gvk::new(&self.group, &version.name, kind));
        let mut schemas = meta_schemas()?;
        if version.has_scale {
            for (_, _, of) in schemas.iter_mut().filter(|(name, ..)| &**name == SCALE) {
                *of = Some(Gvk::new("autoscaling", "v1", "Scale"));
            }
        }
        schemas.push((ROOT.into(), self.root_schema(version)?, gvk(&self.kind)));
        schemas.push(("#list".into(), list_schema(), gvk(&self.list_kind)));
        Ok(OpenApiDocument::from_schemas(schemas))
    }

    /// Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go`, `buildKubeNative`.
    fn root_schema(&self, version: &CrdVersion) -> Result<Schema, SchemaError> {
        let bare = || Schema::with_type(JsonType::Object);
        let Some(written) = version.schema.as_deref() else {
            return Ok(bare());
        };
        let error = |reason: String| SchemaError::Schema {
            name: format!("{}.{}", self.plural, self.group).into(),
            reason: reason.into(),
        };
        if !is_shallower(written, MAX_JSON_DEPTH) {
            return Err(error(format!(
                "it nests deeper than {MAX_JSON_DEPTH} levels"
            )));
        }
        if !written.as_object().is_some_and(structural::is_structural) {
            return Ok(bare());
        }
        let left = Cell::new(sizes::MAX_SCHEMAS);
        let mut schema = SchemaSeed { left: &left }
            .deserialize(written)
            .map_err(|reason| error(reason.to_string()))?;
        publish(&mut schema);
        add_type_and_object_meta(&mut schema);
        Ok(schema)
    }
}

type NamedSchema = (Box<str>, Schema, Option<Gvk>);

/// Parses [`META`].
fn meta_schemas() -> Result<Vec<NamedSchema>, SchemaError> {
    static DEFINITIONS: LazyLock<Result<Map<String, Value>, String>> =
        LazyLock::new(|| serde_json::from_str(META).map_err(|error| error.to_string()));
    let error = |error: serde_json::Error| SchemaError::Document(error.to_string().into());
    let definitions = DEFINITIONS.as_ref();
    let definitions = definitions.map_err(|why| SchemaError::Document(why.as_str().into()))?;
    let left = Cell::new(sizes::MAX_SCHEMAS);
    let read = |(name, schema): (&String, &Value)| {
        Ok((
            name.as_str().into(),
            SchemaSeed { left: &left }
                .deserialize(schema)
                .map_err(error)?,
            None,
        ))
    };
    definitions.iter().map(read).collect()
}

fn reference(name: &str) -> Schema {
    Schema::from_reference(&format!("{}{name}", refs::PREFIX))
}

fn add_type_and_object_meta(schema: &mut Schema) {
    schema.set_property("apiVersion", Schema::with_type(JsonType::String));
    schema.set_property("kind", Schema::with_type(JsonType::String));
    schema.set_property("metadata", reference(OBJECT_META));
}

/// Converts a structural schema to the form that the API server publishes. Embedded resources get the common fields of
/// resources. References are dropped, because a structural schema can contain only empty references.
///
/// Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go`,
/// `addEmbeddedProperties`; `pkg/apiserver/schema/kubeopenapi.go`, `ToKubeOpenAPI`.
fn publish(schema: &mut Schema) {
    if schema.details().is_some() {
        let details = schema.details_mut();
        details.reference = None;
        for (_, property) in &mut details.properties {
            publish(property);
        }
        if let AdditionalProperties::Schema(value) = &mut details.additional {
            publish(value);
        }
        if let Some(items) = &mut details.items {
            publish(items);
        }
    }
    if schema.embedded_resource {
        add_type_and_object_meta(schema);
        schema.require("apiVersion");
        schema.require("kind");
    }
}

/// Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go`, `buildListSchema`.
fn list_schema() -> Schema {
    let mut items = Schema::with_type(JsonType::Array);
    items.details_mut().items = Some(reference(ROOT));
    let mut list = Schema::with_type(JsonType::Object);
    list.set_property("items", items);
    list.require("items");
    list.set_property("metadata", reference(LIST_META));
    list.set_property("apiVersion", Schema::with_type(JsonType::String));
    list.set_property("kind", Schema::with_type(JsonType::String));
    list
}

/// Returns true if `value` has at most `depth` nested levels.
pub(crate) fn is_shallower(value: &Value, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(values) => values.iter().all(|value| is_shallower(value, below)),
        Value::Object(values) => values.values().all(|value| is_shallower(value, below)),
        _ => true,
    }
}
