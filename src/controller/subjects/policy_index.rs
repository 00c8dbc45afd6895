//! An index of bindings and probes by their policy.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
};
use kube::{Resource as _, ResourceExt};

use super::binding_annotations;
use super::event_source::{EventSource, ObjectState};
use super::packed::{Identity, Packed};
use super::probe::Probe;
use crate::controller::process::memory::{self, mebibytes};
use crate::policy::subject::{SubjectId, SubjectKind};

/// The bindings, by policy.
pub(crate) type Bindings = PolicyIndex<ValidatingAdmissionPolicyBinding>;

/// The probes, by policy. If the cluster does not serve probes, the index is empty and counts as listed.
pub(crate) type Probes = PolicyIndex<Probe>;

/// An object that refers to a policy.
pub(crate) trait RefersToPolicy: ResourceExt {
    /// The stored form of the object.
    type Kept;

    fn keep(self) -> Self::Kept;

    /// Returns the object from its stored form.
    fn kept(kept: &Self::Kept) -> Arc<Self>;

    fn kept_state(kept: &Self::Kept) -> ObjectState<'_>;

    /// Returns the policy that the object refers to. A binding has only the policy's name, so `bound` is the policy's
    /// kind.
    fn subject(&self, bound: SubjectKind) -> SubjectId;

    /// Returns true if both objects have the same effect on the policy.
    fn is_equivalent_to(&self, other: &Self) -> bool;

    /// Returns the size that counts against the limits, in bytes. It is 0 for kinds without limits.
    fn stored_bytes(_kept: &Self::Kept) -> usize {
        0
    }

    /// Returns the creation time in seconds. If the limits do not allow all objects, the oldest ones are stored.
    fn created_at(_kept: &Self::Kept) -> i64 {
        0
    }

    /// Returns the object without its content, because it exceeds the limits. `why` is the message for its status.
    /// `None` for kinds without limits.
    fn rejected(_kept: &Self::Kept, _why: &str) -> Option<Self::Kept> {
        None
    }

    /// Returns the size that a rejected object would have if it were stored, in bytes. `None` if the object is not
    /// rejected.
    fn rejected_bytes(_kept: &Self::Kept) -> Option<usize> {
        None
    }
}

/// A stored binding in compact form, since there may be thousands of bindings.
#[derive(Debug)]
pub(crate) struct PackedBinding {
    name: Box<str>,
    identity: Identity,
    spec: Packed<ValidatingAdmissionPolicyBindingSpec>,
    /// True if the binding allows probes to use params and namespaces of the cluster.
    allows_inputs: bool,
    /// The paths of the fields that the controller does not know.
    unknown_fields: Box<[String]>,
}

impl RefersToPolicy for ValidatingAdmissionPolicyBinding {
    type Kept = PackedBinding;

    fn keep(self) -> PackedBinding {
        PackedBinding {
            name: self.metadata.name.as_deref().unwrap_or_default().into(),
            identity: Identity::new(&self.metadata),
            spec: Packed::new(&self.spec),
            allows_inputs: binding_annotations::allows_inputs(&self.metadata),
            unknown_fields: binding_annotations::unknown_fields(&self.metadata).into(),
        }
    }

    fn kept(kept: &PackedBinding) -> Arc<Self> {
        let mut metadata = kept.identity.metadata(&kept.name);
        binding_annotations::set_allows_inputs(&mut metadata, kept.allows_inputs);
        binding_annotations::set_unknown_fields(&mut metadata, &kept.unknown_fields);
        Arc::new(Self {
            metadata,
            spec: kept.spec.unpack(),
        })
    }

    fn kept_state(kept: &PackedBinding) -> ObjectState<'_> {
        kept.identity.state()
    }

    fn subject(&self, bound: SubjectKind) -> SubjectId {
        SubjectId::new(bound, &*self.spec.policy_name)
    }

    fn is_equivalent_to(&self, other: &Self) -> bool {
        self.spec == other.spec
            && binding_annotations::allows_inputs(&self.metadata)
                == binding_annotations::allows_inputs(&other.metadata)
            && binding_annotations::unknown_fields(&self.metadata)
                == binding_annotations::unknown_fields(&other.metadata)
    }
}

impl RefersToPolicy for Probe {
    type Kept = Arc<Self>;

    fn keep(self) -> Arc<Self> {
        Arc::new(self)
    }

    fn kept(kept: &Arc<Self>) -> Arc<Self> {
        Arc::clone(kept)
    }

    fn kept_state(kept: &Arc<Self>) -> ObjectState<'_> {
        kept.meta().into()
    }

    fn subject(&self, _bound: SubjectKind) -> SubjectId {
        self.spec.subject.clone()
    }

    fn is_equivalent_to(&self, other: &Self) -> bool {
        self.spec.hash == other.spec.hash
            && self.status == other.status
            && self.problem == other.problem
    }

    fn stored_bytes(kept: &Arc<Self>) -> usize {
        Probe::stored_bytes(kept)
    }

    fn created_at(kept: &Arc<Self>) -> i64 {
        Probe::created_at(kept)
    }

    fn rejected(kept: &Arc<Self>, why: &str) -> Option<Arc<Self>> {
        Some(Arc::new(Probe::rejected(kept, why.to_owned())))
    }

    fn rejected_bytes(kept: &Arc<Self>) -> Option<usize> {
        Probe::rejected_bytes(kept)
    }
}

/// The maximum sizes of the stored objects of a kind.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The maximum size of one policy's objects, in bytes.
    of_policy: usize,
    /// The maximum size of all objects, in bytes.
    in_all: usize,
}

/// All objects of a kind by their policy.
pub(crate) struct PolicyIndex<K: RefersToPolicy> {
    /// The kind of the bound policies, in an index of bindings.
    bound: SubjectKind,
    state: Mutex<State<K>>,
}

impl<K: RefersToPolicy> fmt::Debug for PolicyIndex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyIndex").finish_non_exhaustive()
    }
}

type Named<T> = Vec<(Arc<str>, T)>;

/// Names of objects with their creation times, oldest first.
type ByAge = BTreeSet<(i64, Arc<str>)>;

struct State<K: RefersToPolicy> {
    limits: Limits,
    /// The size of all stored objects, in bytes.
    n_bytes: usize,
    /// The stored objects that count against the limits.
    stored: ByAge,
    /// The objects whose content is not stored, because it exceeds the limits.
    rejected: ByAge,
    /// True if all existing objects were listed.
    is_listed: bool,
    /// The policy of each object, by the name of the object.
    policies: HashMap<Arc<str>, SubjectId>,
    /// The objects of each policy, sorted by name.
    by_policy: HashMap<SubjectId, Named<K::Kept>>,
}

impl<K: RefersToPolicy> Default for PolicyIndex<K> {
    fn default() -> Self {
        let state = State {
            limits: Limits {
                of_policy: memory::MAX_PROBES_OF_POLICY,
                in_all: memory::MAX_PROBES,
            },
            n_bytes: 0,
            stored: ByAge::new(),
            rejected: ByAge::new(),
            is_listed: false,
            policies: HashMap::new(),
            by_policy: HashMap::new(),
        };
        Self {
            bound: SubjectKind::ValidatingAdmissionPolicy,
            state: Mutex::new(state),
        }
    }
}

impl<K: RefersToPolicy> PolicyIndex<K> {
    /// Creates an index of bindings to policies of the kind `bound`.
    pub(crate) fn new(bound: SubjectKind) -> Self {
        Self {
            bound,
            ..Self::default()
        }
    }

    /// Stores the object if it supersedes the stored one.
    ///
    /// Returns the affected policies: the policy to which the object refers, the policy to which it referred before,
    /// and the policies of objects that the limits no longer allow.
    pub(crate) fn put(&self, mut object: K, from: EventSource) -> Vec<SubjectId> {
        let Some(name) = object.meta().name.clone() else {
            return Vec::new();
        };
        object.meta_mut().managed_fields = None;
        binding_annotations::trim_annotations(object.meta_mut());
        let policy = object.subject(self.bound);
        let mut state = self.lock();
        let stored = state.get(&name).map(K::kept_state);
        if !from.supersedes(object.meta().into(), stored) {
            return Vec::new();
        }
        let before = state.policies.get(&*name).cloned();
        let replaced = before.as_ref().and_then(|before| state.take(before, &name));
        let name: Arc<str> = name.into();
        state.insert(Arc::clone(&name), &policy, object.keep());
        // The policies of other objects that the limits no longer allow.
        let mut touched = state.make_room(&policy, &name);
        let is_news = match (before, replaced, state.get(&name)) {
            (Some(before), Some(old), Some(new)) if before == policy => {
                !K::kept(new).is_equivalent_to(&K::kept(&old))
            }
            (Some(before), ..) if before != policy => {
                touched.push(before);
                true
            }
            _ => true,
        };
        if is_news {
            touched.push(policy);
        }
        touched
    }

    /// Returns the names of rejected objects that the limits now allow, oldest first.
    pub(crate) fn readmissible(&self) -> Vec<String> {
        let state = self.lock();
        let mut n_bytes = state.n_bytes;
        let mut names = Vec::new();
        for (_, name) in &state.rejected {
            let needed = state.get(name).and_then(K::rejected_bytes);
            let needed = needed.unwrap_or_default();
            let policy = state.policies.get(name);
            let of_policy = policy.map_or(0, |policy| state.bytes_of(policy));
            if n_bytes.saturating_add(needed) <= state.limits.in_all
                && of_policy.saturating_add(needed) <= state.limits.of_policy
            {
                n_bytes += needed;
                names.push(name.to_string());
            }
        }
        names
    }

    /// Stores a rejected object that was read again, unless a newer state is known. Returns the affected policies.
    pub(crate) fn readmit(&self, object: K) -> Vec<SubjectId> {
        {
            let mut state = self.lock();
            let name = object.meta().name.clone().unwrap_or_default();
            let Some(kept) = state.get(&name) else {
                return Vec::new();
            };
            let stored = K::kept_state(kept);
            let is_same = stored == object.meta().into();
            let is_newer = EventSource::Watched.supersedes(object.meta().into(), Some(stored));
            if K::rejected_bytes(kept).is_none() || !(is_same || is_newer) {
                return Vec::new();
            }
            if let Some(policy) = state.policies.remove(&*name) {
                state.take(&policy, &name);
            }
        }
        self.put(object, EventSource::Watched)
    }

    /// Returns the size of all stored objects, in bytes.
    #[cfg(test)]
    pub(crate) fn n_bytes(&self) -> usize {
        self.lock().n_bytes
    }

    #[cfg(test)]
    pub(crate) fn set_limits(&self, of_policy: usize, in_all: usize) {
        self.lock().limits = Limits { of_policy, in_all };
    }

    /// Removes an object. Returns its policy.
    pub(crate) fn remove(&self, name: &str) -> Option<SubjectId> {
        let mut state = self.lock();
        let policy = state.policies.remove(name)?;
        state.take(&policy, name);
        Some(policy)
    }

    /// Removes the objects whose names are not in `names`, and records that all objects are listed. Returns the
    /// policies of the removed objects.
    pub(crate) fn retain(&self, names: &BTreeSet<String>) -> Vec<SubjectId> {
        let gone: Vec<String> = {
            let mut state = self.lock();
            state.is_listed = true;
            let stored_names = state.policies.keys();
            stored_names
                .filter(|name| !names.contains(&***name))
                .map(ToString::to_string)
                .collect()
        };
        gone.iter().filter_map(|name| self.remove(name)).collect()
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.lock().is_listed
    }

    /// Returns the objects that refer to `policy`, sorted by name. `None` before all objects are listed.
    pub(crate) fn for_policy(&self, policy: &SubjectId) -> Option<Vec<Arc<K>>> {
        let state = self.lock();
        if !state.is_listed {
            return None;
        }
        let objects = state.by_policy.get(policy).into_iter().flatten();
        Some(objects.map(|(_, kept)| K::kept(kept)).collect())
    }

    pub(crate) fn policies(&self) -> Vec<SubjectId> {
        self.lock().by_policy.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: RefersToPolicy> State<K> {
    fn get(&self, name: &str) -> Option<&K::Kept> {
        let of_policy = self.by_policy.get(self.policies.get(name)?)?;
        let idx = position(of_policy, name).ok()?;
        of_policy.get(idx).map(|(_, kept)| kept)
    }

    fn insert(&mut self, name: Arc<str>, policy: &SubjectId, kept: K::Kept) {
        // The stored id of the policy is reused, so that its name is stored only once.
        let policy = match self.by_policy.get_key_value(policy) {
            Some((known, _)) => known.clone(),
            None => policy.clone(),
        };
        self.policies.insert(Arc::clone(&name), policy.clone());
        let of_policy = self.by_policy.entry(policy).or_default();
        // Most policies have one object. Without this call, the vector would have capacity for several.
        of_policy.reserve_exact(1);
        let (Ok(idx) | Err(idx)) = position(of_policy, &name);
        let n_bytes = K::stored_bytes(&kept);
        let age = (K::created_at(&kept), Arc::clone(&name));
        let is_rejected = K::rejected_bytes(&kept).is_some();
        of_policy.insert(idx, (name, kept));
        if is_rejected {
            self.rejected.insert(age);
        } else if n_bytes > 0 {
            self.n_bytes += n_bytes;
            self.stored.insert(age);
        }
    }

    /// Returns the size of a policy's objects, in bytes.
    fn bytes_of(&self, policy: &SubjectId) -> usize {
        let objects = self.by_policy.get(policy).into_iter().flatten();
        objects.map(|(_, kept)| K::stored_bytes(kept)).sum()
    }

    /// Rejects the newest objects until the objects of `policy`, and all objects together, are within the size limits.
    /// Returns the policies of rejected objects, except for the policy of the object `name`.
    ///
    /// The API server sets the creation times that determine this order. So many new objects cannot displace existing
    /// ones, and a restart has the same result.
    fn make_room(&mut self, policy: &SubjectId, name: &str) -> Vec<SubjectId> {
        let mut touched = Vec::new();
        if self.n_bytes == 0 {
            // Objects of this kind have no limit.
            return touched;
        }
        let Limits { of_policy, in_all } = self.limits;
        while self.bytes_of(policy) > of_policy {
            let objects = self.by_policy.get(policy).into_iter().flatten();
            let stored = objects.filter(|(_, kept)| K::stored_bytes(kept) > 0);
            let ages = stored.map(|(of, kept)| (K::created_at(kept), Arc::clone(of)));
            let Some((_, youngest)) = ages.max() else {
                break;
            };
            let why = format!(
                "there is no room for the probe: all probes of one policy together are limited to {}, and older \
                 probes take precedence; use fewer or smaller cases",
                mebibytes(of_policy)
            );
            if !self.reject(&youngest, &why) {
                break;
            }
        }
        while self.n_bytes > in_all {
            let Some((_, youngest)) = self.stored.last().cloned() else {
                break;
            };
            let why = format!(
                "there is no room for the probe: the probes of all policies together are limited to {}, and older \
                 probes take precedence; delete probes that are not needed",
                mebibytes(in_all)
            );
            let policy = self.policies.get(&youngest).cloned();
            if !self.reject(&youngest, &why) {
                break;
            }
            touched.extend(policy.filter(|_| *youngest != *name));
        }
        touched
    }

    /// Replaces the object `name` with its form without content. Returns true if it was replaced.
    fn reject(&mut self, name: &str, why: &str) -> bool {
        let Some((name, policy)) = self.policies.get_key_value(name) else {
            return false;
        };
        let (name, policy) = (Arc::clone(name), policy.clone());
        let rejected = self.get(&name).and_then(|kept| K::rejected(kept, why));
        let Some(rejected) = rejected else {
            return false;
        };
        self.take(&policy, &name);
        self.insert(name, &policy, rejected);
        true
    }

    fn take(&mut self, policy: &SubjectId, name: &str) -> Option<K::Kept> {
        let of_policy = self.by_policy.get_mut(policy)?;
        let idx = position(of_policy, name).ok()?;
        let (name, taken) = of_policy.remove(idx);
        if of_policy.is_empty() {
            self.by_policy.remove(policy);
        }
        let age = (K::created_at(&taken), name);
        if self.stored.remove(&age) {
            self.n_bytes = self.n_bytes.saturating_sub(K::stored_bytes(&taken));
        }
        self.rejected.remove(&age);
        Some(taken)
    }
}

/// Returns the index of the object `name` in `objects`. If it is missing, returns the index for an insertion as an
/// error.
fn position<T>(objects: &[(Arc<str>, T)], name: &str) -> Result<usize, usize> {
    objects.binary_search_by(|(of, _)| (**of).cmp(name))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::tests::id;

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
        Some(
            bindings
                .for_policy(&id(policy))?
                .into_iter()
                .map(name)
                .collect(),
        )
    }

    #[test]
    fn bindings_are_unknown_before_first_list() {
        let bindings = Bindings::default();
        bindings.put(binding("a", "p"), EventSource::Watched);
        assert_eq!(names(&bindings, "p"), None);
        assert_eq!(bindings.retain(&["a".to_owned()].into()), []);
        assert_eq!(names(&bindings, "p").unwrap(), ["a"]);
        assert_eq!(names(&bindings, "q").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn stored_binding_affects_its_previous_and_current_policy() {
        let bindings = Bindings::default();
        assert_eq!(
            bindings.put(binding("a", "p"), EventSource::Watched),
            [id("p")]
        );
        assert_eq!(bindings.put(binding("a", "p"), EventSource::Watched), []);
        assert_eq!(
            bindings.put(binding("a", "q"), EventSource::Watched),
            [id("p"), id("q")]
        );
        bindings.put(binding("b", "q"), EventSource::Watched);
        assert_eq!(bindings.retain(&["b".to_owned()].into()), [id("q")]);
        assert_eq!(names(&bindings, "q").unwrap(), ["b"]);
        assert_eq!(bindings.remove("b"), Some(id("q")));
        assert_eq!(bindings.remove("b"), None);
        assert_eq!(names(&bindings, "q").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn stored_binding_retains_only_annotation_for_probe_inputs() {
        let bindings = Bindings::default();
        bindings.retain(&BTreeSet::new());
        let annotated = |value: &str| {
            let mut binding = binding("a", "p");
            let annotations = [(binding_annotations::PROBE_INPUTS, value), ("other", "x")];
            let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
            binding.metadata.annotations = Some(annotations.into());
            binding
        };
        let is_allowed = || {
            binding_annotations::allows_inputs(&bindings.for_policy(&id("p")).unwrap()[0].metadata)
        };
        bindings.put(annotated("no"), EventSource::Watched);
        assert!(!is_allowed());
        assert_eq!(
            bindings.put(annotated("FromCluster"), EventSource::Watched),
            [id("p")]
        );
        assert!(is_allowed());
        assert_eq!(
            bindings.for_policy(&id("p")).unwrap()[0]
                .metadata
                .annotations
                .as_ref()
                .unwrap()
                .len(),
            1
        );
        assert_eq!(
            bindings.put(annotated("FromCluster"), EventSource::Watched),
            []
        );
        assert_eq!(
            bindings.put(binding("a", "p"), EventSource::Watched),
            [id("p")]
        );
        assert!(!is_allowed());
    }

    #[test]
    fn older_response_to_write_does_not_replace_watched_binding() {
        let bindings = Bindings::default();
        let of = |version: &str, policy: &str| {
            let mut binding = binding("a", policy);
            binding.metadata.resource_version = Some(version.to_owned());
            binding
        };
        bindings.retain(&BTreeSet::new());
        bindings.put(of("3", "p"), EventSource::Answered);
        assert_eq!(
            names(&bindings, "p").unwrap().len(),
            0,
            "a deleted binding must not be restored"
        );
        bindings.put(of("9", "p"), EventSource::Watched);
        bindings.put(of("8", "q"), EventSource::Answered);
        assert_eq!(names(&bindings, "q").unwrap().len(), 0);
        bindings.put(of("10", "q"), EventSource::Answered);
        assert_eq!(names(&bindings, "q").unwrap(), ["a"]);
        assert_eq!(names(&bindings, "p").unwrap().len(), 0);
    }
}
