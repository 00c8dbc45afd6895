//! The bindings that exist, by the policy that they refer to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

/// The bindings.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether all that exist are known.
    is_listed: bool,
    /// The policy that a binding refers to, by the name of the binding.
    policies: HashMap<String, String>,
    by_policy: HashMap<String, BTreeMap<String, Arc<ValidatingAdmissionPolicyBinding>>>,
}

/// The name of the policy that `binding` refers to.
fn policy_name(binding: &ValidatingAdmissionPolicyBinding) -> &str {
    &binding.spec.policy_name
}

impl Bindings {
    /// Puts in a binding, and names the policies that this touches: the one it refers to, and the one
    /// that it referred to before.
    pub(crate) fn put(&self, mut binding: ValidatingAdmissionPolicyBinding) -> Vec<String> {
        let Some(name) = binding.metadata.name.clone() else {
            return Vec::new();
        };
        binding.metadata.managed_fields = None;
        binding.metadata.annotations = None;
        let policy = policy_name(&binding).to_owned();
        let mut state = self.lock();
        let before = state.policies.insert(name.clone(), policy.clone());
        let mut touched = Vec::new();
        if let Some(before) = before {
            let replaced = state.take(&before, &name);
            if before != policy {
                touched.push(before);
            } else if replaced.is_some_and(|old| old.spec == binding.spec) {
                // Only its metadata changed, which decides nothing.
                state.give(&policy, name, binding);
                return touched;
            }
        }
        state.give(&policy, name, binding);
        touched.push(policy);
        touched
    }

    /// Takes a binding out, and names the policy that this touches.
    pub(crate) fn remove(&self, name: &str) -> Option<String> {
        let mut state = self.lock();
        let policy = state.policies.remove(name)?;
        state.take(&policy, name);
        Some(policy)
    }

    /// Takes out all bindings but these, notes that there are no others, and names the policies that
    /// this touches.
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

    /// The bindings of a policy, by name; `None` as long as not all are known.
    pub(crate) fn of(&self, policy: &str) -> Option<Vec<Arc<ValidatingAdmissionPolicyBinding>>> {
        let state = self.lock();
        if !state.is_listed {
            return None;
        }
        let bindings = state.by_policy.get(policy);
        Some(
            bindings
                .map(|all| all.values().cloned().collect())
                .unwrap_or_default(),
        )
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, policy: &str, name: &str) -> Option<Arc<ValidatingAdmissionPolicyBinding>> {
        let of_policy = self.by_policy.get_mut(policy)?;
        let taken = of_policy.remove(name);
        if of_policy.is_empty() {
            self.by_policy.remove(policy);
        }
        taken
    }

    fn give(&mut self, policy: &str, name: String, binding: ValidatingAdmissionPolicyBinding) {
        self.by_policy
            .entry(policy.to_owned())
            .or_default()
            .insert(name, Arc::new(binding));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn binding(name: &str, policy: &str) -> ValidatingAdmissionPolicyBinding {
        let value = json!({"metadata": {"name": name},
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
        bindings.put(binding("a", "p"));
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
        assert_eq!(bindings.put(binding("a", "p")), ["p"]);
        assert_eq!(bindings.put(binding("a", "p")), Vec::<String>::new());
        assert_eq!(bindings.put(binding("a", "q")), ["p", "q"]);
        bindings.put(binding("b", "q"));
        assert_eq!(bindings.retain(&["b".to_owned()].into()), ["q"]);
        assert_eq!(names(&bindings, "q").unwrap(), ["b"]);
        assert_eq!(bindings.remove("b").as_deref(), Some("q"));
        assert_eq!(bindings.remove("b"), None);
        assert_eq!(names(&bindings, "q").unwrap(), Vec::<String>::new());
    }
}
