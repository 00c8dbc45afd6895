//! Where the type of a kind comes from.
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

/// The answer to the question for the schema of a kind.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The type of objects of the kind; [`DeclType::cel_type`] of [`Gvk::type_name`] is the type in
    /// CEL.
    Found(Arc<DeclType>),
    /// The kind has no published schema.
    NotFound,
    /// The schema is temporarily unavailable or cannot be parsed, with the reason.
    Unavailable(String),
}

/// Gives the type of a kind's objects.
pub trait SchemaResolver: Sync {
    /// The type of `gvk`.
    fn resolve(&self, gvk: &Gvk) -> Resolution;

    /// The CustomResourceDefinition of a kind with the version, where the kind has one that is at hand.
    fn custom(&self, _gvk: &Gvk) -> Option<(&Crd, &CrdVersion)> {
        None
    }
}

/// Types in memory, filled from documents and CustomResourceDefinitions.
///
/// Where several have a schema for a kind, that of the document of the kind's own group version
/// counts, and of several of these, or of none, the first that was added.
#[derive(Clone, Debug, Default)]
pub struct SchemaSet {
    types: HashMap<Gvk, Known>,
    /// Group versions whose document cannot be read, with the reason.
    unavailable: BTreeMap<GroupVersion, String>,
}

#[derive(Clone, Debug)]
struct Known {
    outcome: Result<Arc<DeclType>, SchemaError>,
    is_own: bool,
}

impl SchemaSet {
    /// Adds the kinds of a document; `own` is the group version that it is the document of.
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

    /// Adds the kinds of a CustomResourceDefinition, in all served versions.
    pub fn add_crd(&mut self, crd: &Crd, interner: &mut Interner) {
        for (gvk, outcome) in crd.decl_types(interner) {
            let is_own = gvk.group == crd.group;
            self.insert(gvk, Known { outcome, is_own });
        }
    }

    /// Notes that the document of a group version cannot be had.
    pub fn add_unavailable(&mut self, group_version: GroupVersion, reason: impl Into<String>) {
        self.unavailable.insert(group_version, reason.into());
    }

    /// The kinds that have a schema, readable or not, in no order.
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
