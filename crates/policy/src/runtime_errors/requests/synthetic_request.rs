//! A request that was made, as it is sent and as policies see it.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value as Json;

use crate::admission::Operation;
use kubernetes::validity::{FieldPath, Root, Segment};

/// A request that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntheticRequest {
    /// The hash of the rest, made once; the first field, as most comparisons end with it.
    pub(crate) digest: u64,
    pub(crate) operation: Operation,
    /// The object as policies see it.
    pub(crate) object: Option<Json>,
    /// The object as it was before, as policies see it.
    pub(crate) old_object: Option<Json>,
    /// The object and the old one as they are sent, and as the cluster has it.
    pub(crate) sent: [Option<Json>; 2],
    pub(crate) params: Option<Json>,
    pub(crate) namespace: Option<Json>,
    /// The variable `request`, as far as it can be chosen.
    pub(crate) request: Json,
}

/// The hash of a value, equal in each run.
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
    /// The value at the root of paths.
    fn root(&self, root: Root) -> Option<&Json> {
        match root {
            Root::Object => self.object.as_ref(),
            Root::OldObject => self.old_object.as_ref(),
            Root::Params => self.params.as_ref(),
            Root::Namespace => self.namespace.as_ref(),
            Root::Request => Some(&self.request),
        }
    }

    /// The value at `path`.
    pub(crate) fn value_at(&self, path: &FieldPath) -> Option<&Json> {
        let mut value = self.root(path.root)?;
        for segment in &path.segments {
            value = child(value, segment)?;
        }
        Some(value)
    }

    /// Reports whether nothing is at `path`, though what is around it is there.
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
