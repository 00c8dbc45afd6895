//! The kinds of mutated objects: the types that merges use, and the defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;

use kubernetes::defaulting::{self, Decoding, TypedObject};
use kubernetes::merge::Types;
use kubernetes::schema::crd::CrdVersion;
use kubernetes::schema::resolver::SchemaResolver;
use kubernetes::schema::{Builtin, Crd, Gvk, SchemaError};

/// The types and defaults of mutated objects.
pub trait Kinds {
    /// Returns the types of the OpenAPI document that describes the kind. `None` if the API server has no such
    /// document.
    fn types(&self, gvk: &Gvk) -> Option<Arc<Types>>;

    /// Returns true if a CustomResourceDefinition defines the kind.
    fn is_custom(&self, gvk: &Gvk) -> bool;

    /// Decodes an object of a built-in kind to its Go type, as the API server does after a mutation, and encodes the
    /// result as JSON. Returns other objects unchanged.
    ///
    /// # Errors
    /// Returns the API server's error if the object cannot be decoded.
    fn read(&self, gvk: &Gvk, object: &Json, decoding: Decoding) -> Result<Json, String> {
        if self.is_custom(gvk) {
            return Ok(object.clone());
        }
        let decoded = defaulting::decode(gvk, object, decoding);
        decoded.unwrap_or_else(|| Ok(object.clone()))
    }

    /// Sets the defaults of the object, as the API server does after a mutation.
    ///
    /// # Errors
    /// If the defaults of the kind are unknown, returns the unchanged object and the reason.
    fn completed(&self, gvk: &Gvk, object: Json) -> Result<Json, (Json, String)>;
}

/// The built-in kinds, and the kinds of given CustomResourceDefinitions.
pub struct KnownKinds {
    builtin: &'static Builtin,
    crds: Vec<Crd>,
    types: KnownTypes,
}

impl fmt::Debug for KnownKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownKinds").finish_non_exhaustive()
    }
}

impl KnownKinds {
    /// Creates an instance with the kinds of `crds` in addition to the built-in kinds.
    #[must_use]
    pub fn new(builtin: &'static Builtin, crds: Vec<Crd>) -> Self {
        Self {
            builtin,
            crds,
            types: KnownTypes::default(),
        }
    }

    fn custom(&self, gvk: &Gvk) -> Option<(&Crd, &CrdVersion)> {
        let mut crds = self.crds.iter();
        let crd = crds.find(|crd| crd.group == gvk.group && crd.kind == gvk.kind)?;
        let mut versions = crd.versions.iter();
        let version = versions.find(|version| version.name == gvk.version)?;
        Some((crd, version))
    }
}

/// A cache of the types of kinds.
#[derive(Default)]
pub struct KnownTypes(Mutex<TypesOf>);

#[derive(Default)]
struct TypesOf {
    kinds: BTreeMap<Gvk, Option<Arc<Types>>>,
    /// The types of each built-in OpenAPI document, by the index of the document.
    documents: BTreeMap<usize, Option<Arc<Types>>>,
}

impl fmt::Debug for KnownTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownTypes").finish_non_exhaustive()
    }
}

/// The built-in kinds, and the custom kinds of a schema resolver.
pub struct KindsOf<'a, S> {
    builtin: &'a Builtin,
    schemas: &'a S,
    types: Arc<KnownTypes>,
}

impl<S> fmt::Debug for KindsOf<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindsOf").finish_non_exhaustive()
    }
}

impl<'a, S: SchemaResolver> KindsOf<'a, S> {
    /// Creates an instance with the custom kinds of `schemas` in addition to the built-in kinds.
    #[must_use]
    pub fn new(builtin: &'a Builtin, schemas: &'a S) -> Self {
        Self::sharing(builtin, schemas, Arc::default())
    }

    /// Like [`KindsOf::new`], but with a cache that several instances share. Instances that share a cache must have the
    /// same kinds.
    #[must_use]
    pub fn sharing(builtin: &'a Builtin, schemas: &'a S, types: Arc<KnownTypes>) -> Self {
        Self {
            builtin,
            schemas,
            types,
        }
    }
}

impl<S: SchemaResolver> Kinds for KindsOf<'_, S> {
    fn types(&self, gvk: &Gvk) -> Option<Arc<Types>> {
        types_for_kind(&self.types, self.builtin, self.schemas.custom(gvk), gvk)
    }

    fn is_custom(&self, gvk: &Gvk) -> bool {
        self.schemas.custom(gvk).is_some()
    }

    fn completed(&self, gvk: &Gvk, object: Json) -> Result<Json, (Json, String)> {
        let custom = self.schemas.custom(gvk);
        completed(custom.map(|(_, version)| version), gvk, object)
    }
}

/// Returns the types of a kind. The types are converted from the schema on first use, and then cached.
fn types_for_kind(
    cache: &KnownTypes,
    builtin: &Builtin,
    custom: Option<(&Crd, &CrdVersion)>,
    gvk: &Gvk,
) -> Option<Arc<Types>> {
    let mut cache = cache.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(types) = cache.kinds.get(gvk) {
        return types.clone();
    }
    let shared = |types: Result<Types, SchemaError>| types.ok().map(Arc::new);
    let types = match (custom, builtin.document_number(gvk)) {
        (Some((crd, version)), _) => shared(Types::from_crd(crd, version)),
        (None, None) => None,
        (None, Some(document)) => {
            let of_document = cache.documents.entry(document);
            let types = of_document.or_insert_with(|| shared(Types::from_builtin(builtin, gvk)));
            types.clone()
        }
    };
    cache.kinds.insert(gvk.clone(), types.clone());
    types
}

fn completed(
    custom: Option<&CrdVersion>,
    gvk: &Gvk,
    mut object: Json,
) -> Result<Json, (Json, String)> {
    if let Some(version) = custom {
        if let Some(schema) = &version.schema {
            defaulting::complete_defaults(&mut object, schema);
        }
        return Ok(object);
    }
    if let Some(completed) = defaulting::complete_subresource(gvk, &object) {
        return Ok(completed);
    }
    let completed = TypedObject::read(gvk, &object).and_then(|typed| typed.write());
    completed.map_err(|error| (object, error.to_string()))
}

impl Kinds for KnownKinds {
    fn types(&self, gvk: &Gvk) -> Option<Arc<Types>> {
        types_for_kind(&self.types, self.builtin, self.custom(gvk), gvk)
    }

    fn is_custom(&self, gvk: &Gvk) -> bool {
        self.custom(gvk).is_some()
    }

    fn completed(&self, gvk: &Gvk, object: Json) -> Result<Json, (Json, String)> {
        let custom = self.custom(gvk).map(|(_, version)| version);
        completed(custom, gvk, object)
    }
}
