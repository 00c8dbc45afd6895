//! The inputs of the search for runtime errors, except for the policy.

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use serde_json::Value as Json;

use super::requests::object_cache::ObjectCache;
use crate::admission::mutation::Kinds;
use crate::finding::ExpressionFindings;
use kubernetes::schema::resolver::SchemaResolver;
use kubernetes::schema::rest_mapper::RestMapper;
use kubernetes::schema::{Builtin, Gvk};

/// The schemas of CRDs in their original JSON form.
pub trait WrittenSchemas: Sync {
    /// Returns the schema of `gvk`. `None` if `gvk` is not a custom resource or its CRD has no schema.
    fn written(&self, gvk: &Gvk) -> Option<&Json>;

    /// Returns true if `gvk` is a built-in kind.
    fn is_builtin_kind(&self, gvk: &Gvk) -> bool;
}

/// The inputs of the search for runtime errors, except for the policy.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The served resources.
    pub mapper: &'a RestMapper,
    /// The types of the fields of each kind.
    pub schemas: &'a dyn SchemaResolver,
    /// The schemas of CRDs in their original JSON form.
    pub written: &'a dyn WrittenSchemas,
    /// The findings of type checking.
    pub type_findings: &'a [ExpressionFindings],
    /// The name of a binding without a paramRef. `None` if all bindings have one.
    pub without_params: Option<&'a str>,
    /// True if the policy has bindings and none of them has a paramRef.
    pub never_has_params: bool,
    /// The matchResources of the policy's binding. `None` if there are several bindings, or if the binding matches all
    /// requests.
    pub match_resources: Option<&'a MatchResources>,
    /// The types that are needed to apply mutations. If `None`, mutations are not applied, and expressions that depend
    /// on earlier mutations have no findings.
    pub kinds: Option<&'a (dyn Kinds + Sync)>,
    /// A cache of generated objects. Several policies can share it.
    pub object_cache: &'a ObjectCache,
}

impl<'a> Context<'a> {
    /// Creates the inputs of a search for a validating policy whose bindings are unknown.
    #[must_use]
    pub fn new<S: SchemaResolver + WrittenSchemas>(
        mapper: &'a RestMapper,
        schemas: &'a S,
        type_findings: &'a [ExpressionFindings],
        object_cache: &'a ObjectCache,
    ) -> Self {
        Self {
            mapper,
            schemas,
            written: schemas,
            type_findings,
            without_params: None,
            never_has_params: false,
            match_resources: None,
            kinds: None,
            object_cache,
        }
    }
}

/// The built-in kinds, without custom resources.
impl WrittenSchemas for Builtin {
    fn written(&self, _: &Gvk) -> Option<&Json> {
        None
    }

    fn is_builtin_kind(&self, gvk: &Gvk) -> bool {
        self.has(gvk)
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("without_params", &self.without_params)
            .finish_non_exhaustive()
    }
}
