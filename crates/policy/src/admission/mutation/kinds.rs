//! Kinds, as far as mutations ask of them: how objects are merged, and what their defaults are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;

use kubernetes::defaulting::{self, Typed};
use kubernetes::merge::Types;
use kubernetes::schema::crd::CrdVersion;
use kubernetes::schema::{Builtin, Crd, Gvk};

/// The kinds of objects, as far as mutations ask.
pub trait Kinds {
    /// The types of the document that has the kind; `None` where the API server has none.
    fn types(&self, gvk: &Gvk) -> Option<Arc<Types>>;

    /// Reports whether a CustomResourceDefinition defines the kind.
    fn is_custom(&self, gvk: &Gvk) -> bool;

    /// The object with its defaults, as the API server sets them after a mutation.
    ///
    /// # Errors
    /// The object as it is, and why its defaults are not known.
    fn completed(&self, gvk: &Gvk, object: Json) -> Result<Json, (Json, String)>;
}

/// The kinds of Kubernetes' own APIs, and of CustomResourceDefinitions.
pub struct KnownKinds {
    builtin: Builtin,
    crds: Vec<Crd>,
    types: Mutex<BTreeMap<Gvk, Option<Arc<Types>>>>,
}

impl fmt::Debug for KnownKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownKinds").finish_non_exhaustive()
    }
}

impl KnownKinds {
    /// The kinds that are built in, and those of `crds`.
    #[must_use]
    pub fn new(builtin: Builtin, crds: Vec<Crd>) -> Self {
        Self {
            builtin,
            crds,
            types: Mutex::default(),
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

impl Kinds for KnownKinds {
    fn types(&self, gvk: &Gvk) -> Option<Arc<Types>> {
        let mut known = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(types) = known.get(gvk) {
            return types.clone();
        }
        let types = match self.custom(gvk) {
            Some((crd, version)) => Types::of_crd(crd, version),
            None => Types::of_builtin(&self.builtin, gvk),
        };
        let types = types.ok().map(Arc::new);
        known.insert(gvk.clone(), types.clone());
        types
    }

    fn is_custom(&self, gvk: &Gvk) -> bool {
        self.custom(gvk).is_some()
    }

    fn completed(&self, gvk: &Gvk, mut object: Json) -> Result<Json, (Json, String)> {
        if let Some((_, version)) = self.custom(gvk) {
            if let Some(schema) = &version.schema {
                defaulting::complete_defaults(&mut object, schema);
            }
            return Ok(object);
        }
        let completed = Typed::read(gvk, &object).and_then(|typed| typed.write());
        completed.map_err(|error| (object, error.to_string()))
    }
}
