//! Inputs of the search in addition to the policy.

use serde_json::Value as Json;

use super::requests::object_cache::ObjectCache;
use crate::finding::ExpressionFindings;
use kubernetes::schema::Gvk;
use kubernetes::schema::resolver::SchemaResolver;
use kubernetes::schema::rest_mapper::RestMapper;

/// Schemas of custom resources as written.
pub trait WrittenSchemas: Sync {
    /// Returns the schema of `gvk`. `None` if it is not a custom resource with a schema.
    fn written(&self, gvk: &Gvk) -> Option<&Json>;

    /// Returns true if `gvk` is a built-in kind.
    fn is_builtin_kind(&self, gvk: &Gvk) -> bool;
}

/// Inputs of the search in addition to the policy.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The served resources.
    pub mapper: &'a RestMapper,
    /// The types of kinds.
    pub schemas: &'a dyn SchemaResolver,
    /// The schemas of custom resources as written.
    pub written: &'a dyn WrittenSchemas,
    /// The findings of type checking.
    pub type_findings: &'a [ExpressionFindings],
    /// The name of a binding of the policy without a paramRef.
    pub without_params: Option<&'a str>,
    /// True if the policy has bindings, and none has a paramRef.
    pub never_has_params: bool,
    /// The objects that were built for other policies.
    pub object_cache: &'a ObjectCache,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("without_params", &self.without_params)
            .finish_non_exhaustive()
    }
}
