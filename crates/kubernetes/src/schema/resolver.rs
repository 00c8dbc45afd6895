//! Resolves the type of a kind.
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

/// The result of resolving the schema of a kind.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The type of objects of the kind. Its CEL type is [`DeclType::cel_type`] with [`Gvk::type_name`].
    Found(Arc<DeclType>),
    /// The kind has no published schema.
    NotFound,
    /// The schema is temporarily unavailable or cannot be parsed, with the reason.
    Unavailable(String),
}

/// Resolves the type of a kind's objects.
pub trait SchemaResolver: Sync {
    /// Resolves the type of `gvk`.
    fn resolve(&self, gvk: &Gvk) -> Resolution;

    /// Returns the CustomResourceDefinition of a kind with the version, if it is available.
    fn custom(&self, _gvk: &Gvk) -> Option<(&Crd, &CrdVersion)> {
        None
    }
}

/// Types in memory, from documents and CustomResourceDefinitions.
///
/// If several sources have a schema for a kind, the document of the kind's own group version takes precedence, then the
/// source that was added first.
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
    /// Adds the kinds of a document of the group version `own`.
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

    /// Marks the document of a group version as unavailable.
    pub fn add_unavailable(&mut self, group_version: GroupVersion, reason: impl Into<String>) {
        self.unavailable.insert(group_version, reason.into());
    }

    /// Returns the kinds with a schema, valid or not, in no order.
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
