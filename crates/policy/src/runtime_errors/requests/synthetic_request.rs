//! Synthetic requests. They contain the objects both as the client sends them and as policies receive them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::admission::trace::Step;
use crate::admission::{
    AdmissionRequest, Authorizer, AuthorizerList, AuthorizerRule, Namespace, Operation,
};
use kubernetes::validity::{FieldPath, Root, Segment};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntheticRequest {
    /// The hash of the other fields. It speeds up comparisons.
    pub(crate) digest: u64,
    pub(crate) operation: Operation,
    /// The object as policies receive it.
    pub(crate) object: Option<Json>,
    /// The old object as policies receive it.
    pub(crate) old_object: Option<Json>,
    /// The object as the client sends it, and the stored object.
    pub(crate) sent: [Option<Json>; 2],
    pub(crate) params: Option<Json>,
    pub(crate) namespace: Option<Json>,
    /// The value of `request`, without the objects.
    pub(crate) request: Json,
    /// The results of authorization checks. For other checks, `allowed()` is false.
    pub(crate) authorizer: Vec<AuthorizerRule>,
}

/// A request as admission receives it, its namespace, and all namespaces by name.
pub(crate) type AdmissionInput = (
    AdmissionRequest,
    Option<Namespace>,
    BTreeMap<String, Namespace>,
);

/// An evaluated request, with the results of the evaluated expressions.
#[derive(Debug)]
pub(crate) struct TracedRequest {
    pub(crate) input: AdmissionInput,
    pub(crate) steps: Vec<Step>,
}

/// Returns a hash of `value` that is the same in every run of the program.
pub(crate) fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Hash for SyntheticRequest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest);
    }
}

impl SyntheticRequest {
    /// Returns the value of a root variable. `None` if it is null.
    fn root(&self, root: Root) -> Option<&Json> {
        match root {
            Root::Object => self.object.as_ref(),
            Root::OldObject => self.old_object.as_ref(),
            Root::Params => self.params.as_ref(),
            Root::Namespace => self.namespace.as_ref(),
            Root::Request => Some(&self.request),
            Root::Authorizer => None,
        }
    }

    pub(crate) fn authorizer(&self) -> Arc<dyn Authorizer> {
        Arc::new(AuthorizerList(self.authorizer.clone()))
    }

    pub(crate) fn value_at(&self, path: &FieldPath) -> Option<&Json> {
        let mut value = self.root(path.root)?;
        for segment in &path.segments {
            value = child(value, segment)?;
        }
        Some(value)
    }

    /// Returns true if `path` is absent but its parent is present.
    pub(crate) fn lacks(&self, path: &FieldPath) -> bool {
        let Some(mut value) = self.root(path.root) else {
            return path.segments.is_empty();
        };
        let Some((last, around)) = path.segments.split_last() else {
            return false;
        };
        for segment in around {
            match child(value, segment) {
                Some(next) => value = next,
                None => return false,
            }
        }
        match (value, last) {
            (Json::Object(_), Segment::Field(_)) | (Json::Array(_), Segment::Index(_)) => {
                child(value, last).is_none()
            }
            _ => false,
        }
    }
}

fn child<'a>(value: &'a Json, segment: &Segment) -> Option<&'a Json> {
    match segment {
        Segment::Field(name) => value.get(&**name),
        Segment::Index(n) => value.get(*n),
    }
}
