//! Identifies the state of an object from which a result was computed.

use super::packed::{Identity, Packed, hash};
use super::probe::Probe;

/// A state of an object, identified by its uid, its generation and a hash of its spec.
///
/// The hash is needed since a received spec may be incomplete, or decoded with an older schema. In both cases, two
/// unequal specs have one generation number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    uid: Option<String>,
    number: Option<i64>,
    content: u64,
}

impl Generation {
    pub(crate) fn from_probe(probe: &Probe) -> Self {
        let rejected = u64::from(probe.rejected_bytes().is_some());
        Self {
            uid: probe.metadata.uid.clone(),
            number: probe.metadata.generation,
            // A probe whose spec is too large to store cannot be evaluated. Its generation must differ from the
            // generation that the probe has once its spec is stored.
            content: probe.spec.hash ^ rejected,
        }
    }

    /// Returns the generation of the object stored as `content`.
    pub(crate) fn from_packed<T>(identity: &Identity, content: &Packed<T>) -> Self {
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
        Generation::from_packed(&Identity::new(&metadata), &Packed::new(&content.to_owned()))
    }

    #[test]
    fn generations_differ_if_uid_or_number_or_content_differs() {
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
