//! The inputs of a mutation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::kinds::Kinds;
use crate::admission::Authorizer;
use crate::admission::namespace::NamespaceSource;
use crate::admission::recorder::Recorder;

/// All inputs of a mutation except the policies and the request.
#[derive(Clone)]
pub struct MutationContext<'a> {
    /// The types and defaults of the objects' kinds.
    pub kinds: &'a dyn Kinds,
    /// The lookup of namespaces.
    pub namespaces: &'a dyn NamespaceSource,
    /// The authorizer that decides the authorization checks in expressions.
    pub authorizer: Arc<dyn Authorizer>,
    /// If true, the policies are invoked in reverse order. An API server has no defined order. A result that differs in
    /// reverse order is therefore not reliable.
    pub is_reversed: bool,
    /// Setting this flag cancels the evaluation. The outcome of a canceled evaluation must be ignored.
    pub is_cancelled: Option<Arc<AtomicBool>>,
    /// If set, records the values of all subexpressions.
    pub recorder: Option<Arc<Recorder>>,
}

impl<'a> MutationContext<'a> {
    /// Creates a context that keeps the caller's order of policies.
    #[must_use]
    pub fn new(
        kinds: &'a dyn Kinds,
        namespaces: &'a dyn NamespaceSource,
        authorizer: Arc<dyn Authorizer>,
    ) -> Self {
        Self {
            kinds,
            namespaces,
            authorizer,
            is_reversed: false,
            is_cancelled: None,
            recorder: None,
        }
    }
}

impl fmt::Debug for MutationContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutationContext").finish_non_exhaustive()
    }
}
