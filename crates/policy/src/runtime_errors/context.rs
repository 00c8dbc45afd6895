//! Inputs of the search in addition to the policy.

use serde_json::Value as Json;

use super::requests::object_cache::ObjectCache;
use crate::finding::ExpressionFindings;
use kubernetes::schema::Gvk;
use kubernetes::schema::resolver::SchemaResolver;
use kubernetes::schema::rest_mapper::RestMapper;

/// The schemas of custom resources as they are written.
pub trait WrittenSchemas: Sync {
    /// The schema of `gvk` as written, where it is a custom resource with one.
    fn written(&self, gvk: &Gvk) -> Option<&Json>;

    /// Reports whether `gvk` is one of Kubernetes' own kinds.
    fn is_builtin_kind(&self, gvk: &Gvk) -> bool;
}

/// The facts that are known besides the policy.
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
    /// The name of a binding of the policy that has no paramRef, where there is one.
    pub without_params: Option<&'a str>,
    /// True where no binding of the policy has one, though there are some.
    pub never_has_params: bool,
    /// The objects that were made for other policies.
    pub object_cache: &'a ObjectCache,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("without_params", &self.without_params)
            .finish_non_exhaustive()
    }
}
