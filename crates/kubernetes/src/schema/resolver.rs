//! Finds the declared type of a kind.
//!
//! Source: apiserver `pkg/cel/openapi/resolver/resolver.go` (`SchemaResolver`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::crd::{Crd, CrdVersion};
use super::decl_type::DeclType;
use super::error::SchemaError;
use super::intern::Interner;
use super::openapi::OpenApiDocument;
use super::{GroupVersion, Gvk};

/// The result of looking up the type of a kind.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The type of the kind's objects. To get its CEL type, call [`DeclType::cel_type`] with [`Gvk::type_name`].
    Found(Arc<DeclType>),
    /// No published document has a schema for the kind.
    NotFound,
    /// The schema is temporarily unavailable or cannot be parsed. Contains the reason.
    Unavailable(String),
}

/// A source of the types of kinds.
pub trait SchemaResolver: Sync {
    /// Returns the type of the kind's objects.
    fn resolve(&self, gvk: &Gvk) -> Resolution;

    /// Returns the CustomResourceDefinition of a kind, and its version. Returns `None` for built-in kinds, or if the
    /// CRD is not available.
    fn custom(&self, _gvk: &Gvk) -> Option<(&Crd, &CrdVersion)> {
        None
    }
}

/// The types of kinds from OpenAPI documents and CustomResourceDefinitions, in memory.
///
/// If several sources have a schema for a kind, the document of the kind's own group version takes precedence.
/// Otherwise, the source that was added first takes precedence.
#[derive(Clone, Debug, Default)]
pub struct SchemaSet {
    types: HashMap<Gvk, Known>,
    /// The group versions whose documents cannot be read, with the reasons.
    unavailable: BTreeMap<GroupVersion, String>,
}

#[derive(Clone, Debug)]
struct Known {
    outcome: Result<Arc<DeclType>, SchemaError>,
    is_own: bool,
}

impl SchemaSet {
    /// Adds the types of all kinds in an OpenAPI document. `own` is the group version of the document.
    pub fn add_document(
        &mut self,
        own: Option<&GroupVersion>,
        document: &OpenApiDocument,
        interner: &mut Interner,
    ) {
        for (gvk, outcome) in document.decl_types(interner) {
            let is_own = own.is_some_and(|own| *own == gvk.group_version());
            self.insert(gvk, Known { outcome, is_own });
        }
    }

    /// Adds the types of a CustomResourceDefinition, for all served versions.
    pub fn add_crd(&mut self, crd: &Crd, interner: &mut Interner) {
        for (gvk, outcome) in crd.decl_types(interner) {
            let is_own = gvk.group == crd.group;
            self.insert(gvk, Known { outcome, is_own });
        }
    }

    /// Records that the document of a group version is unavailable.
    pub fn add_unavailable(&mut self, group_version: GroupVersion, reason: impl Into<String>) {
        self.unavailable.insert(group_version, reason.into());
    }

    /// Returns the kinds that have a schema, even if it is invalid, in arbitrary order.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.types.keys()
    }

    fn insert(&mut self, gvk: Gvk, new: Known) {
        match self.types.get_mut(&gvk) {
            Some(known) if new.is_own && !known.is_own => *known = new,
            Some(_) => {}
            None => {
                self.types.insert(gvk, new);
            }
        }
    }
}

impl SchemaResolver for SchemaSet {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        match self.types.get(gvk).map(|known| &known.outcome) {
            Some(Ok(type_)) => Resolution::Found(Arc::clone(type_)),
            Some(Err(error)) => Resolution::Unavailable(error.to_string()),
            None => match self.unavailable.get(&gvk.group_version()) {
                Some(reason) => Resolution::Unavailable(reason.clone()),
                None => Resolution::NotFound,
            },
        }
    }
}
