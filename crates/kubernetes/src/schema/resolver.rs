//! Looks up the declared type of a kind.
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
    /// The type of the kind's objects. To get the CEL type, call [`DeclType::cel_type`] with [`Gvk::type_name`].
    Found(Arc<DeclType>),
    /// No document contains a schema for the kind.
    NotFound,
    /// The schema is invalid or temporarily unavailable. Contains the reason.
    Unavailable(String),
}

/// Looks up the types of kinds.
pub trait SchemaResolver: Sync {
    /// Looks up the type of the kind's objects.
    fn resolve(&self, gvk: &Gvk) -> Resolution;

    /// Returns the CRD and the version of a custom kind. Returns `None` if the kind is built-in or the CRD is not
    /// available.
    fn custom(&self, _gvk: &Gvk) -> Option<(&Crd, &CrdVersion)> {
        None
    }
}

/// Types of kinds from OpenAPI documents and CustomResourceDefinitions.
///
/// Several documents may describe the same kind. The document of the kind's own group version takes precedence, then
/// the document that was added first.
#[derive(Clone, Debug, Default)]
pub struct SchemaSet {
    types: HashMap<Gvk, Known>,
    /// The group versions whose documents are unavailable, with the reasons.
    unavailable: BTreeMap<GroupVersion, String>,
}

#[derive(Clone, Debug)]
struct Known {
    outcome: Result<Arc<DeclType>, SchemaError>,
    is_own: bool,
}

impl SchemaSet {
    /// Adds all kinds of an OpenAPI document. `own` is the group version of the document.
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

    /// Adds all served versions of a CustomResourceDefinition.
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

    /// Returns all kinds that have a schema, in arbitrary order. The schema may be invalid.
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
