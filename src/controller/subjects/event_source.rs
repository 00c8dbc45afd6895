//! The rule by which a received object supersedes the stored one.
//!
//! Lists and watch events are ordered. Responses to our own writes overtake them, or arrive after the object was
//! deleted. So a response may only update an object that the watch has reported, and neither creates nor restores
//! one.

use std::cmp::Ordering;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// One state of an object: the metadata that identifies it.
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

/// The source of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// A list, which is authoritative even if it is older, as after the restore of a backup.
    Listed,
    /// An event of a watch.
    Watched,
    /// The response to a write.
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
    /// Returns true if an object with the metadata `new` from this source replaces `known`, or is the first of its name.
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
    fn the_rule() {
        use EventSource::{Answered, Listed, Watched};
        let table = [
            // Only lists and watches report new objects; responses to writes do not.
            (Listed, None, ("u", "9"), true),
            (Watched, None, ("u", "9"), true),
            (Answered, None, ("u", "9"), false),
            // An older state is only accepted from a list.
            (Watched, Some(("u", "9")), ("u", "10"), true),
            (Watched, Some(("u", "9")), ("u", "9"), false),
            (Watched, Some(("u", "10")), ("u", "9"), false),
            (Listed, Some(("u", "10")), ("u", "9"), true),
            (Listed, Some(("u", "9")), ("u", "9"), false),
            (Answered, Some(("u", "9")), ("u", "10"), true),
            (Answered, Some(("u", "10")), ("u", "9"), false),
            // Another object of the same name.
            (Watched, Some(("u", "9")), ("v", "10"), true),
            (Listed, Some(("u", "9")), ("v", "9"), true),
            (Answered, Some(("v", "9")), ("u", "10"), false),
            // Versions that are not numbers.
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
