//! Compiled policies for the evaluation of their probes, one for each generation.
//!
//! An [`Admission`] depends on the name and the spec of its policy, and not on the cluster: the objects of probes
//! have no schema, as in the API server. So it is valid for the whole generation, whatever happens to CRDs, params,
//! bindings and probes. Only policies with probes have one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::generation::Generation;
use super::store::{Body, Entry};
use crate::controller::process::memory::MAX_ADMISSIONS;
use crate::policy::admission::Admission;
use crate::policy::admission::mutation::MutatingAdmission;
use crate::policy::subject::SubjectId;

/// Policies ready to decide.
#[derive(Debug)]
pub(crate) struct AdmissionCache {
    ready: Mutex<Recent<Admission>>,
    mutating: Mutex<Recent<MutatingAdmission>>,
}

impl Default for AdmissionCache {
    fn default() -> Self {
        Self {
            ready: Mutex::new(Recent::new(MAX_ADMISSIONS)),
            mutating: Mutex::new(Recent::new(MAX_ADMISSIONS / 2)),
        }
    }
}

/// Compiled policies within a number of bytes: those that were not used for the longest time are dropped.
#[derive(Debug)]
struct Recent<T> {
    ready: HashMap<SubjectId, Ready<T>>,
    max_bytes: usize,
    n_bytes: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Ready<T> {
    generation: Generation,
    admission: Arc<T>,
    n_bytes: usize,
    used_at: u64,
}

impl<T> Recent<T> {
    fn new(max_bytes: usize) -> Self {
        Self {
            ready: HashMap::new(),
            max_bytes,
            n_bytes: 0,
            clock: 0,
        }
    }

    fn get(&mut self, id: &SubjectId, generation: &Generation) -> Option<Arc<T>> {
        self.clock += 1;
        let ready = self.ready.get_mut(id)?;
        if ready.generation != *generation {
            return None;
        }
        ready.used_at = self.clock;
        Some(Arc::clone(&ready.admission))
    }

    /// Stores a compiled policy that takes `n_bytes`, unless that is more than all may take.
    fn put(&mut self, id: SubjectId, generation: Generation, admission: Arc<T>, n_bytes: usize) {
        self.remove(&id);
        if n_bytes > self.max_bytes {
            return;
        }
        while self.n_bytes + n_bytes > self.max_bytes {
            let oldest = self.ready.iter().min_by_key(|(_, ready)| ready.used_at);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                break;
            };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.n_bytes += n_bytes;
        let ready = Ready {
            generation,
            admission,
            n_bytes,
            used_at: self.clock,
        };
        self.ready.insert(id, ready);
    }

    fn remove(&mut self, id: &SubjectId) {
        if let Some(ready) = self.ready.remove(id) {
            self.n_bytes = self.n_bytes.saturating_sub(ready.n_bytes);
        }
    }
}

/// Bytes of a compiled policy for each byte of its spec as JSON, and besides. Patterns are not counted.
const COMPILED: (usize, usize) = (96, 16 << 10);

/// Estimates the bytes that a compiled policy takes, from its spec and the rest of it.
fn compiled_bytes(policy: &ValidatingAdmissionPolicy, body: Option<&Body>) -> usize {
    let of = |text: Result<Vec<u8>, _>| text.map_or(0, |text: Vec<u8>| text.len());
    let n_bytes = of(serde_json::to_vec(&policy.spec)) + of(serde_json::to_vec(&body));
    let (factor, besides) = COMPILED;
    n_bytes.saturating_mul(factor).saturating_add(besides)
}

impl AdmissionCache {
    /// Returns what was made of this very generation of `policy`, if there is one.
    pub(crate) fn get(&self, policy: &ValidatingAdmissionPolicy) -> Option<Arc<Admission>> {
        let id = SubjectId::policy(policy.metadata.name.as_deref()?);
        self.lock().get(&id, &Generation::of_policy(policy))
    }

    /// Keeps what was made of `policy`, in the place of what was made of an earlier generation.
    pub(crate) fn put(
        &self,
        policy: &ValidatingAdmissionPolicy,
        admission: Admission,
    ) -> Arc<Admission> {
        let admission = Arc::new(admission);
        if let Some(name) = policy.metadata.name.as_deref() {
            let generation = Generation::of_policy(policy);
            let n_bytes = compiled_bytes(policy, None);
            self.lock().put(
                SubjectId::policy(name),
                generation,
                Arc::clone(&admission),
                n_bytes,
            );
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
        let known = lock(&self.mutating).get(&entry.id, &generation);
        known.unwrap_or_else(|| {
            let admission = Arc::new(make());
            let n_bytes = compiled_bytes(&entry.policy, entry.body.as_ref());
            let id = entry.id.clone();
            lock(&self.mutating).put(id, generation, Arc::clone(&admission), n_bytes);
            admission
        })
    }

    /// Drops what was made of a policy: it is gone, or has no probes.
    pub(crate) fn forget(&self, id: &SubjectId) {
        self.lock().remove(id);
        lock(&self.mutating).remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, Recent<Admission>> {
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
    use crate::controller::tests::id;

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
        assert_eq!(admissions.lock().ready.len(), 1);
        admissions.forget(&id("a"));
        assert!(admissions.get(&second).is_none());
    }

    fn named(name: &str, n_validations: usize) -> ValidatingAdmissionPolicy {
        let validations: Vec<_> = (0..n_validations)
            .map(|n| {
                json!({"expression": format!(
                    "object.spec.replicas <= {n} && object.metadata.name.startsWith('a{n}') || has(object.spec.paused)"
                ), "messageExpression": "'the limit is ' + string(object.spec.replicas)"})
            })
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": name, "generation": 1},
            "spec": {"validations": validations},
        }))
        .unwrap()
    }

    #[test]
    fn cache_evicts_least_recently_used() {
        let admissions = AdmissionCache::default();
        let n_bytes = compiled_bytes(&named("p", 5), None);
        admissions.lock().max_bytes = 3 * n_bytes + n_bytes / 2;
        let policies: Vec<_> = (0..4).map(|n| named(&format!("p{n}"), 5)).collect();
        for policy in &policies[..3] {
            admissions.put(policy, Admission::new(policy));
        }
        admissions.get(&policies[0]).unwrap();
        admissions.put(&policies[3], Admission::new(&policies[3]));
        let is_stored: Vec<bool> = policies
            .iter()
            .map(|policy| admissions.get(policy).is_some())
            .collect();
        assert_eq!(is_stored, [true, false, true, true]);
        {
            let recent = admissions.lock();
            assert!(recent.n_bytes <= recent.max_bytes);
        }
        // One that is larger than all may be is compiled for each evaluation.
        let large = named("large", 200);
        admissions.put(&large, Admission::new(&large));
        assert!(admissions.get(&large).is_none());
        for name in ["p0", "p2", "p3"] {
            admissions.forget(&id(name));
        }
        let n_bytes = admissions.lock().n_bytes;
        assert_eq!(n_bytes, 0);
    }

    #[test]
    fn compiled_bytes_is_at_least_the_real_size() {
        // Environments that all policies share are made once.
        drop(Admission::new(&named("a", 1)));
        for n in [1, 10, 100] {
            let policy = named("a", n);
            let mut kept = None;
            let measured = allocation_counter::measure(|| kept = Some(Admission::new(&policy)));
            let real = usize::try_from(measured.bytes_current).unwrap();
            let estimate = compiled_bytes(&policy, None);
            assert!(estimate >= real, "{n}: {estimate} < {real}");
            assert!(
                estimate <= 8 * real + COMPILED.1,
                "{n}: {estimate} >> {real}"
            );
        }
    }
}
