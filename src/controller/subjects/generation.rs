//! Identity of a state of an object, by which a result is assigned to the state that it was computed from.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::ObjectMeta;
use serde::Serialize;

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
    /// A hash of the spec.
    spec: u64,
}

impl Generation {
    pub(crate) fn of_policy(policy: &ValidatingAdmissionPolicy) -> Self {
        Self::new(&policy.metadata, &policy.spec)
    }

    pub(crate) fn of_probe(probe: &Probe) -> Self {
        let rejected = u64::from(probe.rejected_bytes().is_some());
        Self {
            uid: probe.metadata.uid.clone(),
            number: probe.metadata.generation,
            // A probe without its spec has other results than the same probe with it.
            spec: probe.spec.hash ^ rejected,
        }
    }

    /// The generation of an object at rest.
    pub(crate) fn of_packed<T>(identity: &Identity, spec: &Packed<T>) -> Self {
        Self {
            uid: identity.state().uid.map(str::to_owned),
            number: identity.generation(),
            spec: hash(spec.json()),
        }
    }

    /// The same of a policy that is more than a validating one: the rest as JSON.
    pub(crate) fn with_body(mut self, body: Option<&[u8]>) -> Self {
        if let Some(body) = body {
            self.spec = self.spec.rotate_left(1) ^ hash(body);
        }
        self
    }

    fn new(metadata: &ObjectMeta, spec: &impl Serialize) -> Self {
        Self {
            uid: metadata.uid.clone(),
            number: metadata.generation,
            // What cannot be written as JSON is as good as nothing: none of these can fail.
            spec: hash(&serde_json::to_vec(spec).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(uid: &str, generation: i64, expression: &str) -> ValidatingAdmissionPolicy {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "uid": uid, "generation": generation},
            "spec": {"validations": [{"expression": expression}]},
        }))
        .unwrap()
    }

    #[test]
    fn at_rest_it_is_the_same() {
        let policy = policy("u", 1, "true");
        let identity = Identity::of(&policy.metadata);
        let packed = Generation::of_packed(&identity, &Packed::new(&policy.spec));
        assert_eq!(packed, Generation::of_policy(&policy));
    }

    #[test]
    fn uid_generation_and_spec_count_and_nothing_else() {
        let of = |policy: ValidatingAdmissionPolicy| Generation::of_policy(&policy);
        let mut labelled = policy("u", 1, "true");
        labelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        assert_eq!(of(policy("u", 1, "true")), of(labelled));
        for other in [
            policy("v", 1, "true"),
            policy("u", 2, "true"),
            policy("u", 1, "false"),
        ] {
            assert_ne!(of(policy("u", 1, "true")), of(other));
        }
    }
}
