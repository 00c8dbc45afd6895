//! Policies that are ready to decide, for their probes: compiled once a generation.
//!
//! What an [`Admission`] is made of is the policy's name and spec, and nothing that the cluster serves:
//! the objects of probes carry no schema, as in the API server. So it holds as long as the generation
//! does, whatever becomes of CRDs, params, bindings and probes. Only policies with probes have one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::generation::Generation;
use super::store::Entry;
use crate::policy::admission::Admission;
use crate::policy::admission::mutation::MutatingAdmission;

/// Policies ready to decide, by name.
#[derive(Debug, Default)]
pub(crate) struct AdmissionCache {
    ready: Mutex<HashMap<String, Ready<Admission>>>,
    mutating: Mutex<HashMap<String, Ready<MutatingAdmission>>>,
}

#[derive(Debug)]
struct Ready<T> {
    generation: Generation,
    admission: Arc<T>,
}

impl AdmissionCache {
    /// Returns what was made of this very generation of `policy`, if there is one.
    pub(crate) fn get(&self, policy: &ValidatingAdmissionPolicy) -> Option<Arc<Admission>> {
        let name = policy.metadata.name.as_deref()?;
        let ready = self.lock();
        let generation = Generation::of_policy(policy);
        let ready = ready.get(name);
        let ready = ready.filter(|ready| ready.generation == generation)?;
        Some(Arc::clone(&ready.admission))
    }

    /// Keeps what was made of `policy`, in the place of what was made of an earlier generation.
    pub(crate) fn put(
        &self,
        policy: &ValidatingAdmissionPolicy,
        admission: Admission,
    ) -> Arc<Admission> {
        let admission = Arc::new(admission);
        if let Some(name) = policy.metadata.name.clone() {
            let ready = Ready {
                generation: Generation::of_policy(policy),
                admission: Arc::clone(&admission),
            };
            self.lock().insert(name, ready);
        }
        admission
    }

    /// The mutating policy `entry`, as it is or as `make` makes it ready.
    pub(crate) fn mutating(
        &self,
        entry: &Entry,
        make: impl FnOnce() -> MutatingAdmission,
    ) -> Arc<MutatingAdmission> {
        let generation = entry.generation();
        let known = lock(&self.mutating).get(&entry.key).and_then(|ready| {
            (ready.generation == generation).then(|| Arc::clone(&ready.admission))
        });
        known.unwrap_or_else(|| {
            let admission = Arc::new(make());
            let ready = Ready {
                generation,
                admission: Arc::clone(&admission),
            };
            lock(&self.mutating).insert(entry.key.clone(), ready);
            admission
        })
    }

    /// Drops what was made of the policy `name`: it is gone, or has no probes.
    pub(crate) fn forget(&self, name: &str) {
        self.lock().remove(name);
        lock(&self.mutating).remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Ready<Admission>>> {
        lock(&self.ready)
    }
}

fn lock<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(uid: &str, generation: i64) -> ValidatingAdmissionPolicy {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "uid": uid, "generation": generation},
            "spec": {"validations": [{"expression": "true"}]},
        }))
        .unwrap()
    }

    #[test]
    fn it_holds_for_a_generation_of_a_policy() {
        let admissions = AdmissionCache::default();
        let first = policy("u", 1);
        assert!(admissions.get(&first).is_none());
        let made = admissions.put(&first, Admission::new(&first));
        assert!(Arc::ptr_eq(&made, &admissions.get(&first).unwrap()));
        for other in [policy("u", 2), policy("v", 1)] {
            assert!(admissions.get(&other).is_none());
        }
        let second = policy("u", 2);
        admissions.put(&second, Admission::new(&second));
        assert!(admissions.get(&first).is_none());
        assert_eq!(admissions.lock().len(), 1);
        admissions.forget("a");
        assert!(admissions.get(&second).is_none());
    }
}
