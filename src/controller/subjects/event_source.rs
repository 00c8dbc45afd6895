//! Decides whether a received object replaces the stored object.
//!
//! Lists and watch events arrive in order. A response to a write may arrive out of order: before the watch event of
//! this write, or after the event of the object's deletion. So a response may only update a stored object, never add
//! one.

use std::cmp::Ordering;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The metadata that identifies one state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectState<'a> {
    pub(crate) uid: Option<&'a str>,
    pub(crate) resource_version: Option<&'a str>,
}

impl<'a> From<&'a ObjectMeta> for ObjectState<'a> {
    fn from(metadata: &'a ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.as_deref(),
            resource_version: metadata.resource_version.as_deref(),
        }
    }
}

/// The source of a received object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// A list. Its objects replace newer stored objects too, since the cluster may have been restored from a backup.
    Listed,
    /// A watch event.
    Watched,
    /// The response to a write of the controller.
    Answered,
}

/// Compares two resource versions of one resource. `None` if they are not numbers.
///
/// Source: KEP-5504.
pub(crate) fn compare_versions(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (left.parse::<u64>().ok()?, right.parse::<u64>().ok()?);
    Some(left.cmp(&right))
}

impl EventSource {
    /// Returns true if an object with the metadata `new` from this source must be stored. `known` is the metadata of
    /// the stored object of that name, if any.
    ///
    /// Resource versions of one resource are increasing numbers (KEP-5504). If they are not numbers, a watch event
    /// replaces the object, and a response to a write does not.
    pub(crate) fn supersedes(self, new: ObjectState<'_>, known: Option<ObjectState<'_>>) -> bool {
        let Some(known) = known else {
            return self != Self::Answered;
        };
        let (version, known_version) = (new.resource_version, known.resource_version);
        let order = version
            .zip(known_version)
            .and_then(|(version, known)| compare_versions(version, known));
        let is_newer = order.map(Ordering::is_gt);
        let is_other = new != known;
        match self {
            Self::Listed => is_other,
            Self::Watched => is_newer.unwrap_or(is_other),
            Self::Answered => new.uid == known.uid && is_newer.unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state<'a>((uid, version): (&'a str, &'a str)) -> ObjectState<'a> {
        ObjectState {
            uid: Some(uid),
            resource_version: Some(version),
        }
    }

    #[test]
    fn newer_object_is_determined_by_source_uid_and_version() {
        use EventSource::{Answered, Listed, Watched};
        let table = [
            // Only lists and watches add objects. Responses to writes do not.
            (Listed, None, ("u", "9"), true),
            (Watched, None, ("u", "9"), true),
            (Answered, None, ("u", "9"), false),
            // Only a list may replace an object by an older state.
            (Watched, Some(("u", "9")), ("u", "10"), true),
            (Watched, Some(("u", "9")), ("u", "9"), false),
            (Watched, Some(("u", "10")), ("u", "9"), false),
            (Listed, Some(("u", "10")), ("u", "9"), true),
            (Listed, Some(("u", "9")), ("u", "9"), false),
            (Answered, Some(("u", "9")), ("u", "10"), true),
            (Answered, Some(("u", "10")), ("u", "9"), false),
            // The object was recreated with the same name.
            (Watched, Some(("u", "9")), ("v", "10"), true),
            (Listed, Some(("u", "9")), ("v", "9"), true),
            (Answered, Some(("v", "9")), ("u", "10"), false),
            // The resource versions are not numbers.
            (Watched, Some(("u", "x")), ("u", "y"), true),
            (Watched, Some(("u", "x")), ("u", "x"), false),
            (Answered, Some(("u", "x")), ("u", "y"), false),
        ];
        for (source, known, new, expect) in table {
            let supersedes = source.supersedes(state(new), known.map(state));
            assert_eq!(supersedes, expect, "{source:?} {known:?} {new:?}");
        }
    }
}
