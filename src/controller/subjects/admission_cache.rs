//! A cache of policies that are compiled for the evaluation of their probes. It contains one generation of each policy.
//!
//! An [`Admission`] depends only on the name and the spec of its policy: like the API server, probes evaluate
//! expressions without schemas. So an [`Admission`] remains valid for a generation, even if CRDs, params, bindings or
//! probes change. Only policies with probes are cached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::generation::Generation;
use super::store::Entry;
use crate::controller::process::memory::MAX_ADMISSIONS;
use crate::policy::admission::Admission;
use crate::policy::admission::mutation::MutatingAdmission;
use crate::policy::subject::SubjectId;
use crate::version::KubernetesVersion;

/// The compiled validating and mutating policies.
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

/// Compiled policies up to a limit of bytes. If the limit is exceeded, the least recently used policies are removed.
#[derive(Debug)]
struct Recent<T> {
    ready: HashMap<SubjectId, Ready<T>>,
    max_bytes: usize,
    n_bytes: usize,
    /// Incremented with each use. The least recently used policy has the lowest value.
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

    /// Stores a compiled policy of the size `n_bytes`. Does nothing if this size exceeds the limit.
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

/// The estimated size of a compiled policy: a factor for the size of its JSON, and a constant in bytes. Regular
/// expressions are not included.
const COMPILED: (usize, usize) = (96, 16 << 10);

/// Estimates the size of a compiled policy from the size of its JSON. Both are in bytes.
fn compiled_bytes(n_bytes: usize) -> usize {
    let (factor, base) = COMPILED;
    n_bytes.saturating_mul(factor).saturating_add(base)
}

impl AdmissionCache {
    /// Returns the policy for this generation of `entry`, compiled for `version`. `None` if it is not cached.
    pub(crate) fn get(&self, entry: &Entry, version: KubernetesVersion) -> Option<Arc<Admission>> {
        let cached = self.lock().get(&entry.id, &entry.generation());
        cached.filter(|admission| admission.version() == version)
    }

    /// Stores the compiled policy of `entry`. It replaces earlier generations.
    pub(crate) fn put(&self, entry: &Entry, admission: Admission) -> Arc<Admission> {
        let admission = Arc::new(admission);
        let n_bytes = compiled_bytes(entry.n_bytes);
        let (id, generation) = (entry.id.clone(), entry.generation());
        self.lock()
            .put(id, generation, Arc::clone(&admission), n_bytes);
        admission
    }

    /// Returns the mutating policy `entry`, compiled for `version`. Calls `compile` if the policy is not in the cache.
    pub(crate) fn mutating(
        &self,
        entry: &Entry,
        version: KubernetesVersion,
        compile: impl FnOnce() -> MutatingAdmission,
    ) -> Arc<MutatingAdmission> {
        let generation = entry.generation();
        let cached = lock(&self.mutating).get(&entry.id, &generation);
        let cached = cached.filter(|policy| policy.admission().version() == version);
        cached.unwrap_or_else(|| {
            let admission = Arc::new(compile());
            let n_bytes = compiled_bytes(entry.n_bytes);
            let id = entry.id.clone();
            lock(&self.mutating).put(id, generation, Arc::clone(&admission), n_bytes);
            admission
        })
    }

    /// Removes a policy that was deleted or has no probes any more.
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
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::subjects::event_source::EventSource;
    use crate::controller::subjects::store::Store;
    use crate::controller::tests::id;

    fn stored(policy: Value) -> Entry {
        let store = Store::default();
        let id = id(policy["metadata"]["name"].as_str().unwrap());
        assert!(store.put(serde_json::from_value(policy).unwrap(), EventSource::Listed));
        store.get(&id).unwrap()
    }

    fn compile(entry: &Entry) -> Admission {
        Admission::new(entry.subject.policy().unwrap(), KubernetesVersion::DEFAULT)
    }

    fn policy(uid: &str, generation: i64) -> Entry {
        stored(json!({
            "metadata": {"name": "a", "uid": uid, "generation": generation},
            "spec": {"validations": [{"expression": "true"}]},
        }))
    }

    #[test]
    fn only_policy_of_same_generation_is_returned_from_cache() {
        let admissions = AdmissionCache::default();
        let first = policy("u", 1);
        assert!(admissions.get(&first, KubernetesVersion::DEFAULT).is_none());
        let compiled = admissions.put(&first, compile(&first));
        assert!(Arc::ptr_eq(
            &compiled,
            &admissions.get(&first, KubernetesVersion::DEFAULT).unwrap()
        ));
        for other in [policy("u", 2), policy("v", 1)] {
            assert!(admissions.get(&other, KubernetesVersion::DEFAULT).is_none());
        }
        let second = policy("u", 2);
        admissions.put(&second, compile(&second));
        assert!(admissions.get(&first, KubernetesVersion::DEFAULT).is_none());
        assert_eq!(admissions.lock().ready.len(), 1);
        admissions.forget(&id("a"));
        assert!(
            admissions
                .get(&second, KubernetesVersion::DEFAULT)
                .is_none()
        );
    }

    fn named(name: &str, n_validations: usize) -> Entry {
        let validations: Vec<_> = (0..n_validations)
            .map(|n| {
                json!({"expression": format!(
                    "object.spec.replicas <= {n} && object.metadata.name.startsWith('a{n}') || has(object.spec.paused)"
                ), "messageExpression": "'the limit is ' + string(object.spec.replicas)"})
            })
            .collect();
        stored(json!({
            "metadata": {"name": name, "uid": name, "generation": 1},
            "spec": {"validations": validations},
        }))
    }

    #[test]
    fn cache_evicts_least_recently_used_policy() {
        let admissions = AdmissionCache::default();
        let n_bytes = compiled_bytes(named("p", 5).n_bytes);
        admissions.lock().max_bytes = 3 * n_bytes + n_bytes / 2;
        let policies: Vec<_> = (0..4).map(|n| named(&format!("p{n}"), 5)).collect();
        for policy in &policies[..3] {
            admissions.put(policy, compile(policy));
        }
        admissions
            .get(&policies[0], KubernetesVersion::DEFAULT)
            .unwrap();
        admissions.put(&policies[3], compile(&policies[3]));
        let is_stored: Vec<bool> = policies
            .iter()
            .map(|policy| admissions.get(policy, KubernetesVersion::DEFAULT).is_some())
            .collect();
        assert_eq!(is_stored, [true, false, true, true]);
        {
            let recent = admissions.lock();
            assert!(recent.n_bytes <= recent.max_bytes);
        }
        // A policy above the limit is not stored.
        let large = named("large", 200);
        admissions.put(&large, compile(&large));
        assert!(admissions.get(&large, KubernetesVersion::DEFAULT).is_none());
        for name in ["p0", "p2", "p3"] {
            admissions.forget(&id(name));
        }
        let n_bytes = admissions.lock().n_bytes;
        assert_eq!(n_bytes, 0);
    }

    #[test]
    fn estimated_size_of_compiled_policy_is_at_least_actual_size() {
        // The first compilation creates environments that all policies share.
        drop(compile(&named("a", 1)));
        for n in [1, 10, 100] {
            let policy = named("a", n);
            let mut compiled = None;
            let measured = allocation_counter::measure(|| compiled = Some(compile(&policy)));
            let real = usize::try_from(measured.bytes_current).unwrap();
            let estimate = compiled_bytes(policy.n_bytes);
            assert!(estimate >= real, "{n}: {estimate} < {real}");
            assert!(
                estimate <= 8 * real + COMPILED.1,
                "{n}: {estimate} >> {real}"
            );
        }
    }
}
