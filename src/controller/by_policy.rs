//! Objects that refer to a policy, by that policy: bindings and probes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use kube::ResourceExt;

use super::origin::Origin;
use super::probe::Probe;

/// The bindings.
pub(crate) type Bindings = ByPolicy<ValidatingAdmissionPolicyBinding>;

/// The probes. All that exist are known where their kind is not served.
pub(crate) type Probes = ByPolicy<Probe>;

/// An object that refers to a policy.
pub(crate) trait RefersToPolicy: ResourceExt {
    /// The name of the policy.
    fn policy_name(&self) -> &str;

    /// Whether the object says the same of the policy as `other` did: what else is different decides
    /// nothing.
    fn says_the_same_as(&self, other: &Self) -> bool;
}

impl RefersToPolicy for ValidatingAdmissionPolicyBinding {
    fn policy_name(&self) -> &str {
        &self.spec.policy_name
    }

    fn says_the_same_as(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl RefersToPolicy for Probe {
    fn policy_name(&self) -> &str {
        &self.spec.policy_name
    }

    fn says_the_same_as(&self, other: &Self) -> bool {
        self.spec == other.spec && self.status == other.status && self.problem == other.problem
    }
}

/// All objects of a kind, by the policy that they refer to.
#[derive(Debug)]
pub(crate) struct ByPolicy<K> {
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    /// Whether all that exist are known.
    is_listed: bool,
    /// The policy that an object refers to, by the name of the object.
    policies: HashMap<String, String>,
    by_policy: HashMap<String, BTreeMap<String, Arc<K>>>,
}

impl<K> Default for ByPolicy<K> {
    fn default() -> Self {
        let state = State {
            is_listed: false,
            policies: HashMap::new(),
            by_policy: HashMap::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

impl<K: RefersToPolicy> ByPolicy<K> {
    /// Puts in an object as the API server told it, by the rule of [`Origin`], and names the policies that
    /// this touches: the one it refers to, and the one that it referred to before.
    pub(crate) fn put(&self, mut object: K, from: Origin) -> Vec<String> {
        let Some(name) = object.meta().name.clone() else {
            return Vec::new();
        };
        object.meta_mut().managed_fields = None;
        object.meta_mut().annotations = None;
        let policy = object.policy_name().to_owned();
        let mut state = self.lock();
        let known = state.get(&name).map(|known| known.meta());
        if !from.supersedes(object.meta(), known) {
            return Vec::new();
        }
        let before = state.policies.insert(name.clone(), policy.clone());
        let mut touched = Vec::new();
        let mut is_news = true;
        if let Some(before) = before {
            let replaced = state.take(&before, &name);
            if before != policy {
                touched.push(before);
            } else if let Some(old) = replaced {
                is_news = !object.says_the_same_as(&old);
            }
        }
        state
            .by_policy
            .entry(policy.clone())
            .or_default()
            .insert(name, Arc::new(object));
        if is_news {
            touched.push(policy);
        }
        touched
    }
}

impl<K> ByPolicy<K> {
    /// Takes an object out, and names the policy that this touches.
    pub(crate) fn remove(&self, name: &str) -> Option<String> {
        let mut state = self.lock();
        let policy = state.policies.remove(name)?;
        state.take(&policy, name);
        Some(policy)
    }

    /// Takes out all objects but these, notes that there are no others, and names the policies that this
    /// touches.
    pub(crate) fn retain(&self, names: &BTreeSet<String>) -> Vec<String> {
        let gone: Vec<String> = {
            let mut state = self.lock();
            state.is_listed = true;
            let known = state.policies.keys();
            known
                .filter(|name| !names.contains(*name))
                .cloned()
                .collect()
        };
        gone.iter().filter_map(|name| self.remove(name)).collect()
    }

    /// Whether all that exist are known.
    pub(crate) fn is_listed(&self) -> bool {
        self.lock().is_listed
    }

    /// The objects that refer to a policy, by name; `None` as long as not all are known.
    pub(crate) fn of(&self, policy: &str) -> Option<Vec<Arc<K>>> {
        let state = self.lock();
        if !state.is_listed {
            return None;
        }
        let objects = state.by_policy.get(policy);
        Some(
            objects
                .map(|all| all.values().cloned().collect())
                .unwrap_or_default(),
        )
    }

    /// The names of all policies that objects refer to.
    pub(crate) fn policies(&self) -> Vec<String> {
        self.lock().by_policy.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> State<K> {
    fn get(&self, name: &str) -> Option<&Arc<K>> {
        self.by_policy.get(self.policies.get(name)?)?.get(name)
    }

    fn take(&mut self, policy: &str, name: &str) -> Option<Arc<K>> {
        let of_policy = self.by_policy.get_mut(policy)?;
        let taken = of_policy.remove(name);
        if of_policy.is_empty() {
            self.by_policy.remove(policy);
        }
        taken
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn binding(name: &str, policy: &str) -> ValidatingAdmissionPolicyBinding {
        use std::sync::atomic::{AtomicU64, Ordering};
        static VERSION: AtomicU64 = AtomicU64::new(100);
        let version = VERSION.fetch_add(1, Ordering::Relaxed).to_string();
        let value = json!({"metadata": {"name": name, "uid": name, "resourceVersion": version},
                           "spec": {"policyName": policy, "validationActions": ["Deny"]}});
        serde_json::from_value(value).unwrap()
    }

    fn names(bindings: &Bindings, policy: &str) -> Option<Vec<String>> {
        let name = |binding: Arc<ValidatingAdmissionPolicyBinding>| {
            binding.metadata.name.clone().unwrap_or_default()
        };
        Some(bindings.of(policy)?.into_iter().map(name).collect())
    }

    #[test]
    fn nothing_is_known_before_the_list() {
        let bindings = Bindings::default();
        bindings.put(binding("a", "p"), Origin::Watched);
        assert_eq!(names(&bindings, "p"), None);
        assert_eq!(
            bindings.retain(&["a".to_owned()].into()),
            Vec::<String>::new()
        );
        assert_eq!(names(&bindings, "p").unwrap(), ["a"]);
        assert_eq!(names(&bindings, "q").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_binding_touches_the_policy_it_leaves_too() {
        let bindings = Bindings::default();
        assert_eq!(bindings.put(binding("a", "p"), Origin::Watched), ["p"]);
        assert_eq!(
            bindings.put(binding("a", "p"), Origin::Watched),
            Vec::<String>::new()
        );
        assert_eq!(bindings.put(binding("a", "q"), Origin::Watched), ["p", "q"]);
        bindings.put(binding("b", "q"), Origin::Watched);
        assert_eq!(bindings.retain(&["b".to_owned()].into()), ["q"]);
        assert_eq!(names(&bindings, "q").unwrap(), ["b"]);
        assert_eq!(bindings.remove("b").as_deref(), Some("q"));
        assert_eq!(bindings.remove("b"), None);
        assert_eq!(names(&bindings, "q").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_answer_does_not_undo_what_the_watch_told() {
        let bindings = Bindings::default();
        let of = |version: &str, policy: &str| {
            let mut binding = binding("a", policy);
            binding.metadata.resource_version = Some(version.to_owned());
            binding
        };
        bindings.retain(&BTreeSet::new());
        bindings.put(of("3", "p"), Origin::Answered);
        assert_eq!(names(&bindings, "p").unwrap().len(), 0, "it is deleted");
        bindings.put(of("9", "p"), Origin::Watched);
        bindings.put(of("8", "q"), Origin::Answered);
        assert_eq!(names(&bindings, "q").unwrap().len(), 0);
        bindings.put(of("10", "q"), Origin::Answered);
        assert_eq!(names(&bindings, "q").unwrap(), ["a"]);
        assert_eq!(names(&bindings, "p").unwrap().len(), 0);
    }
}
