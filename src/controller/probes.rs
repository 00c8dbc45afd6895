//! The probes that exist, by the policy that they are about.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::probe::api::PolicyProbe;

/// The probes.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether all that exist are known: they are if their kind is not served.
    is_listed: bool,
    policies: HashMap<String, String>,
    by_policy: HashMap<String, BTreeMap<String, Arc<PolicyProbe>>>,
}

impl Probes {
    /// Puts in a probe as the API server told it, and names the policies that this touches.
    pub(crate) fn put(&self, mut probe: PolicyProbe) -> Vec<String> {
        let Some(name) = probe.metadata.name.clone() else {
            return Vec::new();
        };
        probe.metadata.managed_fields = None;
        probe.metadata.annotations = None;
        let policy = probe.spec.policy_name.clone();
        let mut state = self.lock();
        let before = state.policies.insert(name.clone(), policy.clone());
        let mut touched = Vec::new();
        let mut is_news = true;
        if let Some(before) = before {
            let replaced = state.take(&before, &name);
            if before != policy {
                touched.push(before);
            } else if let Some(old) = replaced {
                is_news = old.spec != probe.spec || old.status != probe.status;
            }
        }
        state
            .by_policy
            .entry(policy.clone())
            .or_default()
            .insert(name, Arc::new(probe));
        if is_news {
            touched.push(policy);
        }
        touched
    }

    /// Takes a probe out, and names the policy that this touches.
    pub(crate) fn remove(&self, name: &str) -> Option<String> {
        let mut state = self.lock();
        let policy = state.policies.remove(name)?;
        state.take(&policy, name);
        Some(policy)
    }

    /// Takes out all probes but these, notes that there are no others, and names the policies that this
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

    /// The probes of a policy, by name; `None` as long as not all are known.
    pub(crate) fn of(&self, policy: &str) -> Option<Vec<Arc<PolicyProbe>>> {
        let state = self.lock();
        if !state.is_listed {
            return None;
        }
        let probes = state.by_policy.get(policy);
        Some(
            probes
                .map(|all| all.values().cloned().collect())
                .unwrap_or_default(),
        )
    }

    /// The names of all policies that probes are about.
    pub(crate) fn policies(&self) -> Vec<String> {
        self.lock().by_policy.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, policy: &str, name: &str) -> Option<Arc<PolicyProbe>> {
        let of_policy = self.by_policy.get_mut(policy)?;
        let taken = of_policy.remove(name);
        if of_policy.is_empty() {
            self.by_policy.remove(policy);
        }
        taken
    }
}
