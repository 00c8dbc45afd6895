//! Converts the schemas of a document to declared types.
//!
//! Source: apiserver `pkg/cel/common/schemas.go` (`SchemaDeclType`, `WithTypeAndObjectMeta`),
//! `pkg/cel/openapi/resolver/refs.go` (`populateRefs`).

use std::collections::HashMap;
use std::sync::Arc;

use super::decl_type::{DeclField, DeclKind, DeclType};
use super::error::SchemaError;
use super::intern::Interner;
use super::raw::{AdditionalProperties, JsonType, Schema};
use super::refs::{Entry, RefId, References};
use super::scalars::{bounded_string, int_or_string, is_int_or_string, string};
use super::{escape, sizes};
use crate::version::Behavior;
use cel::interrupt::checkpoint;

pub(super) type ConversionResult = Result<Arc<DeclType>, SchemaError>;

pub(super) struct Converter<'a, 'i> {
    schemas: &'a [Entry<'a>],
    references: References<'a>,
    interner: &'i mut Interner,
    /// The API server's behavior, for types in validation rules. `None` for other types, because the API server does
    /// not use their sizes.
    rules: Option<Behavior>,
    /// The results for references that were reached from outside of their cycle.
    free: HashMap<RefId, ConversionResult>,
    /// The results for references that were reached from within their cycle. The key is the reference, and the
    /// references of its cycle on the path, sorted.
    bound: HashMap<(RefId, Box<[RefId]>), ConversionResult>,
    /// The number of the current cycle, and the number of schemas that may still be converted for it.
    cycle_left: (Option<u32>, u32),
    /// The number of schemas that may still be converted for all cycles together.
    cycles_left: u32,
}

/// The maximum length of an object name, in characters.
///
/// Source: apimachinery `pkg/util/validation/validation.go`, `DNS1123SubdomainMaxLength`.
const MAX_NAME_LENGTH: i64 = 253;

/// The suffix of the name of the quantity schema.
const QUANTITY: &str = ".api.resource.Quantity";

/// The position of a schema in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The root of a resource. Its type always declares metadata.
    Resource,
    /// The target of a reference.
    Named,
    /// A schema nested in another schema.
    Inline,
}

#[derive(Default)]
struct Path {
    /// The references on the path, root first.
    refs: Vec<RefId>,
    /// The number of references on the path that come after a different reference of the same cycle.
    n_cyclic: usize,
    depth: u16,
}

impl<'a, 'i> Converter<'a, 'i> {
    /// Converts all references in `schemas`, which must be sorted by name.
    pub(super) fn new(schemas: &'a [Entry<'a>], interner: &'i mut Interner) -> Self {
        let mut converter = Self {
            schemas,
            references: References::new(schemas),
            interner,
            rules: None,
            free: HashMap::new(),
            bound: HashMap::new(),
            cycle_left: (None, 0),
            cycles_left: sizes::MAX_PARTS_OF_CYCLES,
        };
        // References are converted in topological order. Nested references to schemas outside of the current cycle are
        // therefore already converted, so the recursion does not leave the cycle.
        for id in converter.references.in_order() {
            // References of the same cycle are adjacent in this order.
            let cycle = converter.references.cycle(id);
            if converter.cycle_left.0 != cycle {
                converter.cycle_left = (cycle, sizes::MAX_PARTS_OF_CYCLE);
            }
            let outcome = converter.target_converted(id, &mut Path::default());
            converter.free.insert(id, outcome);
        }
        converter
    }

    /// Returns the type of the kind described by the schema at index `idx`.
    pub(super) fn root(&mut self, idx: usize) -> ConversionResult {
        let (name, schema) = self.schemas.get(idx).ok_or(SchemaError::UnknownKind)?;
        let mut schema = schema.map_err(Clone::clone)?;
        // Upstream identifies the root by its name, and a reference by its `$ref` value. Only a reference without a
        // prefix can equal the name of the root.
        let refs = self.references.id(name).into_iter().collect();
        self.cycle_left = (None, sizes::MAX_PARTS_OF_CYCLE);
        let mut path = Path {
            refs,
            ..Path::default()
        };
        if let Some(text) = schema.reference() {
            match self.resolve(text, &path.refs)? {
                None => {
                    let mut properties = Vec::new();
                    self.add_object_meta(&mut properties, None);
                    let schema = Schema::with_type(JsonType::Object);
                    let type_ = self.object(&schema, properties, Place::Resource);
                    return Ok(self.interner.intern(type_));
                }
                Some((id, target)) => {
                    path.refs.push(id);
                    schema = target;
                }
            }
        }
        self.converted(schema, Place::Resource, &mut path)
    }

    /// Returns the type of a structural schema, for validation rules. Structural schemas contain no references.
    pub(super) fn structural(
        &mut self,
        schema: &'a Schema,
        is_resource: bool,
        behavior: Behavior,
    ) -> ConversionResult {
        self.rules = Some(behavior);
        let place = if is_resource {
            Place::Resource
        } else {
            Place::Inline
        };
        self.converted(schema, place, &mut Path::default())
    }

    /// Returns the id and the target schema of the reference `text`. Returns `None` if the reference is in `refs`,
    /// which contains the references on the path.
    fn resolve(
        &self,
        text: &str,
        refs: &[RefId],
    ) -> Result<Option<(RefId, &'a Schema)>, SchemaError> {
        let unresolved = || SchemaError::UnresolvedRef(text.into());
        let id = self.references.id(text).ok_or_else(unresolved)?;
        if refs.contains(&id) {
            return Ok(None);
        }
        let target = self.references.target(id).ok_or_else(unresolved)?;
        let (_, schema) = self.schemas.get(target).ok_or_else(unresolved)?;
        Ok(Some((id, schema.map_err(Clone::clone)?)))
    }

    fn part(&mut self, schema: &'a Schema, path: &mut Path) -> ConversionResult {
        let Some(text) = schema.reference() else {
            return self.converted(schema, Place::Inline, path);
        };
        let id = self.references.id(text);
        let id = id.ok_or_else(|| SchemaError::UnresolvedRef(text.into()))?;
        let in_circle = |known: &&RefId| self.references.in_one_cycle(id, **known);
        let mut bound: Vec<_> = path.refs.iter().filter(in_circle).copied().collect();
        if bound.contains(&id) {
            return Ok(self.interner.intern(truncated()));
        }
        if bound.is_empty()
            && let Some(outcome) = self.free.get(&id)
        {
            return outcome.clone();
        }
        bound.sort_unstable();
        let key = (id, bound.into());
        if let Some(outcome) = self.bound.get(&key) {
            return outcome.clone();
        }
        path.n_cyclic += 1;
        let outcome = self.target_converted(id, path);
        path.n_cyclic -= 1;
        self.bound.insert(key, outcome.clone());
        outcome
    }

    /// Returns the type of the schema to which the reference `id` points.
    fn target_converted(&mut self, id: RefId, path: &mut Path) -> ConversionResult {
        let (_, schema) = self
            .references
            .target(id)
            .and_then(|idx| self.schemas.get(idx))
            .ok_or_else(|| SchemaError::UnresolvedRef(self.references.text(id).into()))?;
        let schema = schema.map_err(Clone::clone)?;
        path.refs.push(id);
        let outcome = self.converted(schema, Place::Named, path);
        path.refs.pop();
        match outcome {
            Ok(type_)
                if matches!(type_.kind, DeclKind::Unknown)
                    && self.references.text(id).ends_with(QUANTITY) =>
            {
                Ok(self.interner.intern(DeclType::scalar(DeclKind::Quantity)))
            }
            outcome => outcome,
        }
    }

    /// Returns the type of a schema. Ignores the schema's own `$ref`.
    fn converted(&mut self, schema: &'a Schema, place: Place, path: &mut Path) -> ConversionResult {
        checkpoint();
        if path.depth >= sizes::MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        if path.n_cyclic > 0 {
            self.charge(schema)?;
        }
        path.depth += 1;
        let place = if schema.embedded_resource {
            Place::Resource
        } else {
            place
        };
        let outcome = self.parts_converted(schema, place, path);
        path.depth -= 1;
        let mut type_ = outcome?;
        if type_.depth() > sizes::MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        type_.nullable = schema.nullable;
        type_.has_default = schema.has_default;
        type_.embedded_resource = schema.embedded_resource;
        type_.enum_values = schema
            .details()
            .filter(|details| !details.enum_values.is_empty())
            .map(|details| details.enum_values.as_slice().into());
        Ok(self.interner.intern(type_))
    }

    /// Counts the schema and its directly nested schemas against the limits for cycles.
    fn charge(&mut self, schema: &Schema) -> Result<(), SchemaError> {
        let parts = u32::try_from(schema.parts().count())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        for left in [&mut self.cycle_left.1, &mut self.cycles_left] {
            *left = left.checked_sub(parts).ok_or(SchemaError::TooComplex)?;
        }
        Ok(())
    }

    fn parts_converted(
        &mut self,
        schema: &'a Schema,
        place: Place,
        path: &mut Path,
    ) -> Result<DeclType, SchemaError> {
        // Resolve all references, even if they do not affect the type, because upstream rejects every dangling
        // reference.
        let mut properties = Vec::new();
        let (mut value, mut items) = (None, None);
        if let Some(details) = schema.details() {
            for (name, property) in &details.properties {
                properties.push((&**name, self.part(property, path)?));
            }
            if let AdditionalProperties::Schema(schema) = &details.additional {
                value = Some(self.part(schema, path)?);
            }
            if let Some(schema) = &details.items {
                items = Some(self.part(schema, path)?);
            }
        }
        if is_int_or_string(schema) {
            let ignores_length = self
                .rules
                .is_some_and(|behavior| !behavior.bounds_int_or_string_by_length);
            return Ok(if ignores_length {
                int_or_string(&Schema::default())
            } else {
                int_or_string(schema)
            });
        }
        if schema.malformed {
            return Ok(DeclType::scalar(DeclKind::Unknown));
        }
        Ok(match schema.type_ {
            JsonType::None => DeclType::scalar(DeclKind::Unknown),
            JsonType::Array => self.list(schema, items),
            JsonType::Boolean => DeclType::scalar(DeclKind::Bool),
            JsonType::Integer => DeclType::scalar(DeclKind::Int),
            JsonType::Number => DeclType::scalar(DeclKind::Double),
            JsonType::Object => {
                if let Some(value) = value {
                    return Ok(map(schema, value));
                }
                let is_resource = place == Place::Resource;
                if is_resource && !self.declares_object_meta(schema, &path.refs) {
                    self.add_object_meta(&mut properties, Some(schema));
                }
                self.object(schema, properties, place)
            }
            JsonType::String => string(schema),
        })
    }

    fn list(&mut self, schema: &Schema, items: Option<Arc<DeclType>>) -> DeclType {
        let unknown = || self.interner.intern(DeclType::scalar(DeclKind::Unknown));
        let items = items.unwrap_or_else(unknown);
        let max_items = schema.details().and_then(|details| details.max_items);
        let estimate = sizes::max_items(items.min_serialized_size);
        DeclType::list(items, max_items.map_or(estimate, |max| max.max(0)))
    }

    fn object(
        &mut self,
        schema: &Schema,
        properties: Vec<(&str, Arc<DeclType>)>,
        place: Place,
    ) -> DeclType {
        let mut min_serialized_size = sizes::MIN_COMPOSITE_SIZE_BYTES;
        let mut fields = Vec::with_capacity(properties.len());
        let required = schema
            .details()
            .map_or(&[][..], |details| &details.required);
        for (name, type_) in properties {
            let required = required
                .binary_search_by(|known| (**known).cmp(name))
                .is_ok();
            // The minimum size excludes required properties with a default, because a request may omit them. The API
            // server sets their defaults before it evaluates expressions.
            if type_.is_exposed() && required && !type_.has_default {
                let size = i64::try_from(name.len())
                    .unwrap_or(i64::MAX)
                    .saturating_add(4);
                min_serialized_size = min_serialized_size
                    .saturating_add(size)
                    .saturating_add(type_.min_serialized_size);
            }
            if let Some(escaped) = escape::escape(name) {
                let has_default = schema
                    .property(name)
                    .is_some_and(|property| property.has_default);
                fields.push(DeclField {
                    has_default,
                    ..DeclField::new(self.interner.name(&escaped), type_, required)
                });
            }
        }
        let is_open = is_open(schema, place);
        DeclType::object_of(None, fields, is_open, min_serialized_size)
    }

    /// Returns true if the schema declares the standard metadata of a resource.
    fn declares_object_meta(&self, schema: &'a Schema, refs: &[RefId]) -> bool {
        let is_string = |schema: &'a Schema, name: &str, refs: &[RefId]| {
            self.populated(schema.property(name), refs)
                .is_some_and(|(_, found)| found.is_string)
        };
        let Some((refs_to_metadata, metadata)) = self.populated(schema.property("metadata"), refs)
        else {
            return false;
        };
        is_string(schema, "kind", refs)
            && is_string(schema, "apiVersion", refs)
            && metadata.is_object
            && is_string(metadata, "name", &refs_to_metadata)
            && is_string(metadata, "generateName", &refs_to_metadata)
    }

    /// Resolves a property that may be a reference. Returns `refs` plus the resolved reference, and the schema of the
    /// property.
    fn populated(
        &self,
        property: Option<&'a Schema>,
        refs: &[RefId],
    ) -> Option<(Vec<RefId>, &'a Schema)> {
        let mut refs = refs.to_vec();
        let mut schema = property?;
        if let Some(text) = schema.reference() {
            let (id, target) = self.resolve(text, &refs).ok().flatten()?;
            refs.push(id);
            schema = target;
        }
        Some((refs, schema))
    }

    /// Replaces the types of `kind`, `apiVersion` and `metadata`. The new type of `metadata` declares only `name` and
    /// `generateName`.
    fn add_object_meta(
        &mut self,
        properties: &mut Vec<(&'a str, Arc<DeclType>)>,
        schema: Option<&Schema>,
    ) {
        let text = self
            .interner
            .intern(string(&Schema::with_type(JsonType::String)));
        let bounds_names = self
            .rules
            .is_some_and(|behavior| behavior.bounds_names_in_rules);
        let declared = schema.and_then(|schema| schema.property("metadata"));
        // A generated name is at least one character longer than its prefix.
        let fields = [
            ("generateName", MAX_NAME_LENGTH - 1),
            ("name", MAX_NAME_LENGTH),
        ];
        let fields = fields.map(|(name, max_length)| {
            let type_ = if bounds_names {
                let declared = declared.and_then(|metadata| metadata.property(name));
                self.interner.intern(bounded_string(declared, max_length))
            } else {
                Arc::clone(&text)
            };
            DeclField::new(self.interner.name(name), type_, false)
        });
        let metadata =
            DeclType::object_of(None, fields.into(), true, sizes::MIN_COMPOSITE_SIZE_BYTES);
        let metadata = self.interner.intern(metadata);
        properties.retain(|(name, _)| !matches!(*name, "kind" | "apiVersion" | "metadata"));
        properties.extend([
            ("kind", Arc::clone(&text)),
            ("apiVersion", text),
            ("metadata", metadata),
        ]);
    }
}

/// Returns the type of a reference inside its own target: an object without declared fields.
///
/// Source: apiserver `pkg/cel/openapi/resolver/refs.go`, `populateRefs`.
fn truncated() -> DeclType {
    DeclType::object_of(None, Vec::new(), true, sizes::MIN_COMPOSITE_SIZE_BYTES)
}

/// Returns true if objects may have undeclared fields.
///
/// A schema without properties allows any fields if it is named or a root. Examples are `RawExtension` and the
/// published schema of a CRD whose schema is not structural. An inline schema without properties is part of a
/// structural schema, where undeclared fields are pruned.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/pruning` (`prune`).
fn is_open(schema: &Schema, place: Place) -> bool {
    let is_silent = |is_empty: bool| is_empty && place != Place::Inline;
    schema.preserve_unknown_fields
        || schema
            .details()
            .map_or(is_silent(true), |details| match details.additional {
                AdditionalProperties::Allowed(allowed) => allowed,
                _ => is_silent(details.properties.is_empty()),
            })
}

fn map(schema: &Schema, value: Arc<DeclType>) -> DeclType {
    let max_entries = schema.details().and_then(|details| details.max_properties);
    let estimate = sizes::max_entries(value.min_serialized_size);
    DeclType::map(value, max_entries.map_or(estimate, |max| max.max(0)))
}
