//! Identity of a state of an object, by which a result is assigned to the state that it was computed from.

use super::packed::{Identity, Packed, hash};
use super::probe::Probe;

/// Identifies a state of an object by its uid, its generation and a hash of its spec.
///
/// The uid and the generation are not always enough: the spec may have been damaged in transit, or decoded with an
/// older schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    uid: Option<String>,
    number: Option<i64>,
    /// A hash of the content.
    content: u64,
}

impl Generation {
    pub(crate) fn of_probe(probe: &Probe) -> Self {
        let rejected = u64::from(probe.rejected_bytes().is_some());
        Self {
            uid: probe.metadata.uid.clone(),
            number: probe.metadata.generation,
            // A probe without its spec has other results than the same probe with it.
            content: probe.spec.hash ^ rejected,
        }
    }

    /// Returns the generation of a stored object.
    pub(crate) fn of_packed<T>(identity: &Identity, content: &Packed<T>) -> Self {
        Self {
            uid: identity.state().uid.map(str::to_owned),
            number: identity.generation(),
            content: hash(content.json()),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn generation(uid: &str, generation: i64, content: &str) -> Generation {
        let metadata = ObjectMeta {
            uid: Some(uid.to_owned()),
            generation: Some(generation),
            ..ObjectMeta::default()
        };
        Generation::of_packed(&Identity::of(&metadata), &Packed::new(&content.to_owned()))
    }

    #[test]
    fn uid_generation_and_content_count() {
        assert_eq!(generation("u", 1, "true"), generation("u", 1, "true"));
        for other in [
            generation("v", 1, "true"),
            generation("u", 2, "true"),
            generation("u", 1, "false"),
        ] {
            assert_ne!(generation("u", 1, "true"), other);
        }
    }
}
