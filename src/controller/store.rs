//! The policies that exist, with the status that they have now and what was found out about them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::{
    Mutation, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
    ValidatingAdmissionPolicyStatus,
};
use serde::{Deserialize, Serialize};

use super::check::CheckResult;
use super::cluster_snapshot::Change;
use super::dependencies::Dependencies;
use super::event_source::EventSource;
use super::exclude::{self, Excluded};
use super::generation::Generation;
use super::opt_in::{self, definitions::Rules};
use super::packed::{Identity, Packed};
use crate::policy;
use crate::policy::analysis::Profile;
use crate::schema::{GroupVersion, Gvk};
use crate::status::compute::Subject;
use crate::status::exclusion::Exclusion;

/// The policies, by name.
#[derive(Debug, Default)]
pub(crate) struct Store {
    entries: Mutex<HashMap<String, Kept>>,
    exclusion: Exclusion,
}

/// One policy.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its name here and in the queue: its own, or one with a prefix ([`super::opt_in::Followed::key`]).
    pub(crate) key: String,
    /// The kind that it has beside a policy, if it is no validating one.
    pub(crate) body: Option<Body>,
    /// The policy, as far as it is needed: half of an object is bookkeeping of others.
    pub(crate) policy: Arc<ValidatingAdmissionPolicy>,
    /// Result of its last check, if it was checked before.
    pub(crate) result: Option<Arc<CheckResult>>,
    /// Exclusion, if the policy is left alone.
    pub(crate) excluded: Option<Excluded>,
    /// True if its status is ours by its managed fields. What is not ours would stay when the controller is uninstalled.
    pub(crate) has_ours: bool,
}

/// The part of what is followed that it does not share with a ValidatingAdmissionPolicy.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Body {
    /// A mutating policy: the policy has the rest.
    Mutating {
        /// Its mutations.
        mutations: Vec<Mutation>,
        /// Its reinvocationPolicy.
        reinvocation: Option<String>,
    },
    /// A configuration of webhooks, each as a policy of its name: the policy has the metadata alone.
    Webhooks(Vec<ValidatingAdmissionPolicy>),
    /// A CustomResourceDefinition, of which nothing else is kept: the policy has the metadata alone.
    Definition(Rules),
}

impl Body {
    /// The mutations of a mutating policy.
    pub(crate) fn mutations(&self) -> &[Mutation] {
        match self {
            Self::Mutating { mutations, .. } => mutations,
            Self::Webhooks(_) | Self::Definition(_) => &[],
        }
    }

    /// The webhooks of a configuration.
    pub(crate) fn webhooks(&self) -> &[ValidatingAdmissionPolicy] {
        match self {
            Self::Webhooks(webhooks) => webhooks,
            Self::Mutating { .. } | Self::Definition(_) => &[],
        }
    }

    /// The sort of it, for conditions.
    pub(crate) const fn subject(&self) -> Subject {
        match self {
            Self::Mutating { .. } => Subject::Mutating,
            Self::Webhooks(_) => Subject::Webhooks,
            Self::Definition(_) => Subject::Definition,
        }
    }

    /// Reports whether one of its expressions may look at namespaces.
    pub(crate) fn looks_at_namespaces(
        &self,
        looks_at_namespaces: impl Fn(&ValidatingAdmissionPolicy) -> bool,
    ) -> bool {
        let of = |mutation: &Mutation| {
            let applied = mutation.apply_configuration.as_ref();
            let applied = applied.and_then(|applied| applied.expression.clone());
            let patch = mutation.json_patch.as_ref();
            applied.or_else(|| patch.and_then(|patch| patch.expression.clone()))
        };
        let mut expressions = self.mutations().iter().filter_map(of);
        expressions.any(|text| text.contains("namespaceObject"))
            || self.webhooks().iter().any(looks_at_namespaces)
    }

    /// Forgets what it says.
    fn clear(&mut self) {
        match self {
            Self::Mutating { mutations, .. } => mutations.clear(),
            Self::Webhooks(webhooks) => webhooks.clear(),
            Self::Definition(rules) => *rules = Rules::default(),
        }
    }
}

/// One policy as it is kept.
#[derive(Debug)]
struct Kept {
    policy: Arc<PackedPolicy>,
    result: Option<Arc<CheckResult>>,
    excluded: Option<Excluded>,
    has_ours: bool,
    dependencies: Arc<Dependencies>,
}

/// The policy, as far as it is needed.
#[derive(Debug)]
struct PackedPolicy {
    identity: Identity,
    spec: Packed<Option<ValidatingAdmissionPolicySpec>>,
    status: Packed<Option<ValidatingAdmissionPolicyStatus>>,
    body: Option<Packed<Body>>,
}

impl PackedPolicy {
    fn new(policy: &ValidatingAdmissionPolicy, body: Option<&Body>) -> Self {
        Self {
            body: body.map(Packed::new),
            identity: Identity::of(&policy.metadata),
            spec: Packed::new(&policy.spec),
            status: Packed::new(&policy.status),
        }
    }

    fn unpack(&self) -> ValidatingAdmissionPolicy {
        ValidatingAdmissionPolicy {
            metadata: self.identity.metadata(),
            spec: self.spec.unpack(),
            status: self.status.unpack(),
        }
    }
}

impl Entry {
    /// The sort of it, for conditions.
    pub(crate) fn subject(&self) -> Subject {
        self.body
            .as_ref()
            .map_or(Subject::Validating, Body::subject)
    }

    /// The webhooks of a configuration.
    pub(crate) fn webhooks(&self) -> &[ValidatingAdmissionPolicy] {
        self.body.as_ref().map_or(&[], Body::webhooks)
    }

    /// Reports whether it is a CustomResourceDefinition with rules.
    pub(crate) fn has_rules(&self) -> bool {
        matches!(&self.body, Some(Body::Definition(rules)) if rules.has_some)
    }

    /// Reports whether a request for which it fails is denied; of webhooks, for which one of them fails.
    pub(crate) fn fails_closed(&self) -> bool {
        match &self.body {
            Some(Body::Webhooks(webhooks)) => webhooks.iter().any(policy::fails_closed),
            _ => policy::fails_closed(&self.policy),
        }
    }

    /// The generation that a check of it is about.
    pub(crate) fn generation(&self) -> Generation {
        let body = self.body.as_ref();
        // What cannot be written as JSON is as good as nothing: none of these can fail.
        let body = body.map(|of| serde_json::to_vec(of).unwrap_or_default());
        Generation::of_policy(&self.policy).with_body(body.as_deref())
    }
}

/// Reports whether `policy` takes the place of what is known by that name.
fn supersedes(
    entries: &HashMap<String, Kept>,
    name: &str,
    policy: &ValidatingAdmissionPolicy,
    from: EventSource,
) -> bool {
    let known = entries.get(name);
    let known = known.map(|known| known.policy.identity.state());
    from.supersedes((&policy.metadata).into(), known)
}

impl Store {
    /// A store that leaves some policies alone.
    pub(crate) fn new(exclusion: Exclusion) -> Self {
        Self {
            exclusion,
            ..Self::default()
        }
    }

    /// How many policies are left alone.
    pub(crate) fn n_excluded(&self) -> usize {
        let entries = self.lock();
        entries
            .values()
            .filter(|entry| entry.excluded.is_some())
            .count()
    }

    /// Puts in a policy as the API server told it, by the rule of [`EventSource`]; whether that is news.
    pub(crate) fn put(&self, policy: ValidatingAdmissionPolicy, from: EventSource) -> bool {
        let Some(name) = policy.metadata.name.clone() else {
            return false;
        };
        self.put_as(name, policy, None, from)
    }

    /// Puts in what is followed by its key: what it shares with validating policies, and the rest.
    pub(crate) fn put_opt_in(
        &self,
        key: &str,
        shared: ValidatingAdmissionPolicy,
        body: Body,
        from: EventSource,
    ) -> bool {
        self.put_as(key.to_owned(), shared, Some(body), from)
    }

    fn put_as(
        &self,
        name: String,
        mut policy: ValidatingAdmissionPolicy,
        mut body: Option<Body>,
        from: EventSource,
    ) -> bool {
        // Every other event tells of a write of ours, whose answer was put in before: packing it would be for nothing.
        if !supersedes(&self.lock(), &name, &policy, from) {
            return false;
        }
        let excluded = exclude::excluded(&self.exclusion, &policy);
        // What is followed has its status in an object that is ours as a whole.
        let has_ours = body.is_some() || exclude::has_ours(&policy.metadata);
        if excluded.is_some() {
            // Nothing of it is read, and so it depends on nothing.
            (policy.spec, policy.status) = (None, None);
            body.iter_mut().for_each(Body::clear);
        }
        let packed = Arc::new(PackedPolicy::new(&policy, body.as_ref()));
        let webhooks = body.as_ref().map_or(&[][..], Body::webhooks);
        let mut entries = self.lock();
        if !supersedes(&entries, &name, &policy, from) {
            return false;
        }
        let Some(known) = entries.get_mut(&name) else {
            let kept = Kept {
                policy: packed,
                result: None,
                excluded,
                has_ours,
                dependencies: Arc::new(Dependencies::of(&policy, webhooks)),
            };
            entries.insert(name, kept);
            return true;
        };
        let is_other = known.policy.identity.state().uid != policy.metadata.uid.as_deref();
        let is_same = |known: &PackedPolicy| packed.spec == known.spec && packed.body == known.body;
        if is_other || !is_same(&known.policy) {
            let mut dependencies = Dependencies::of(&policy, webhooks);
            dependencies
                .probe_groups
                .clone_from(&known.dependencies.probe_groups);
            known.dependencies = Arc::new(dependencies);
            // Also at the same generation: what was read before was not what is stored.
            known.result = None;
        }
        known.policy = packed;
        known.excluded = excluded;
        known.has_ours = has_ours;
        true
    }

    /// Takes a policy out; whether it was there.
    pub(crate) fn remove(&self, name: &str) -> bool {
        self.lock().remove(name).is_some()
    }

    /// Takes out all validating policies but these, and names those that were taken out.
    pub(crate) fn retain(&self, names: &BTreeSet<String>) -> Vec<String> {
        self.retain_among(|name| opt_in::of_key(name).is_none(), names)
    }

    /// Takes out those of which `is_meant` but for these, and names those that were taken out.
    pub(crate) fn retain_among(
        &self,
        is_meant: impl Fn(&str) -> bool,
        names: &BTreeSet<String>,
    ) -> Vec<String> {
        let mut entries = self.lock();
        let gone: Vec<String> = entries
            .keys()
            .filter(|name| is_meant(name) && !names.contains(*name))
            .cloned()
            .collect();
        for name in &gone {
            entries.remove(name);
        }
        gone
    }

    /// The policy of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Entry> {
        let (packed, result, excluded, has_ours) = {
            let entries = self.lock();
            let kept = entries.get(name)?;
            let result = kept.result.clone();
            let packed = Arc::clone(&kept.policy);
            (packed, result, kept.excluded, kept.has_ours)
        };
        Some(Entry {
            key: name.to_owned(),
            body: packed.body.as_ref().map(Packed::unpack),
            policy: Arc::new(packed.unpack()),
            result,
            excluded,
            has_ours,
        })
    }

    /// Reports whether there is a policy of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    /// Notes what was found out about a policy, unless it is another by now.
    pub(crate) fn note(&self, name: &str, result: &Arc<CheckResult>) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(name) else {
            return;
        };
        let PackedPolicy {
            identity,
            spec,
            body,
            ..
        } = &*entry.policy;
        let generation = Generation::of_packed(identity, spec);
        let body = body.as_ref().map(Packed::json);
        if !result.is_of(&generation.with_body(body)) {
            return;
        }
        let mut dependencies = Dependencies::clone(&entry.dependencies);
        dependencies.schemas = Arc::clone(result.group_versions());
        dependencies.has_suggestions = result.has_suggestions();
        if dependencies != *entry.dependencies {
            entry.dependencies = Arc::new(dependencies);
        }
        entry.result = Some(Arc::clone(result));
    }

    /// Notes the groups of the kinds that the probes of a policy name.
    pub(crate) fn note_probe_groups(&self, name: &str, groups: BTreeSet<String>) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(name)
            && entry.dependencies.probe_groups != groups
        {
            Arc::make_mut(&mut entry.dependencies).probe_groups = groups;
        }
    }

    /// The names of all policies.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// The policies whose status `change` may change, each with how many documents it depends on, those that depend
    /// on little first.
    pub(crate) fn touched_by(&self, change: &Change, profile: Profile) -> Vec<(usize, String)> {
        let entries = self.lock();
        let touched = entries
            .iter()
            .filter(|(_, entry)| entry.dependencies.are_touched_by(change, profile));
        let mut touched: Vec<(usize, &String)> = touched
            .map(|(name, entry)| (entry.dependencies.schemas.len(), name))
            .collect();
        touched.sort_unstable();
        touched
            .into_iter()
            .map(|(n, name)| (n, name.clone()))
            .collect()
    }

    /// The policies whose params are of the kind `gvk`.
    pub(crate) fn with_param_kind(&self, gvk: &Gvk) -> Vec<String> {
        let entries = self.lock();
        let of_kind = entries
            .iter()
            .filter(|(_, entry)| entry.dependencies.param_kind() == Some(gvk));
        of_kind.map(|(name, _)| name.clone()).collect()
    }

    /// The kinds of the params of all policies.
    pub(crate) fn param_kinds(&self) -> BTreeSet<Gvk> {
        let entries = self.lock();
        entries
            .values()
            .filter_map(|entry| entry.dependencies.param_kind().cloned())
            .collect()
    }

    /// The group versions whose schemas policies were checked against.
    pub(crate) fn needed_schemas(&self) -> BTreeSet<GroupVersion> {
        let entries = self.lock();
        let mut needed = BTreeSet::new();
        for gv in entries
            .values()
            .flat_map(|entry| &*entry.dependencies.schemas)
        {
            if !needed.contains(gv) {
                needed.insert(gv.clone());
            }
        }
        needed
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::cluster_snapshot::tests::gv;

    fn policy(version: &str, group: &str) -> ValidatingAdmissionPolicy {
        let value = json!({
            "metadata": {"name": "a", "uid": "u", "resourceVersion": version, "generation": 1,
                         "annotations": {"a": "b"}, "managedFields": [{}], "labels": {"a": "b"}},
            "spec": {"matchConstraints": {"resourceRules": [
                {"apiGroups": [group], "apiVersions": ["v1"], "resources": ["x"]}]}},
        });
        serde_json::from_value(value).unwrap()
    }

    fn names(store: &Store, group: &str) -> Vec<String> {
        let touched = store.touched_by(&touches(group), Profile::Truthful);
        touched.into_iter().map(|(_, name)| name).collect()
    }

    fn touches(group: &str) -> Change {
        Change {
            resources: [gv(&format!("{group}/v1"))].into(),
            ..Change::default()
        }
    }

    #[test]
    fn an_answer_brings_no_policy_back() {
        let store = Store::default();
        assert!(store.put(policy("1", "a"), EventSource::Watched));
        assert!(store.put(policy("2", "a"), EventSource::Answered));
        assert!(!store.put(policy("2", "a"), EventSource::Watched));
        assert!(store.remove("a"));
        assert!(!store.put(policy("3", "a"), EventSource::Answered));
        assert!(store.get("a").is_none());
    }

    #[test]
    fn a_new_spec_has_new_dependencies() {
        let store = Store::default();
        store.put(policy("1", "a"), EventSource::Watched);
        assert_eq!(names(&store, "a"), ["a"]);
        store.put(policy("2", "b"), EventSource::Watched);
        assert_eq!(names(&store, "a"), Vec::<String>::new());
        assert_eq!(names(&store, "b"), ["a"]);
    }

    #[test]
    fn what_is_not_needed_is_not_kept() {
        let store = Store::default();
        store.put(policy("1", "a"), EventSource::Watched);
        let kept = store.get("a").unwrap().policy;
        let metadata = &kept.metadata;
        assert_eq!((&metadata.annotations, &metadata.labels), (&None, &None));
        assert_eq!(metadata.managed_fields, None);
    }

    #[test]
    fn policies_of_both_kinds_may_have_one_name() {
        let store = Store::default();
        let key = opt_in::Followed::MutatingAdmissionPolicies.key("a");
        let patch = |expression: &str| -> Body {
            let mutation =
                json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]);
            Body::Mutating {
                mutations: serde_json::from_value(mutation).unwrap(),
                reinvocation: None,
            }
        };
        let put = |version, expression| {
            let policy = policy(version, "a");
            store.put_opt_in(&key, policy, patch(expression), EventSource::Watched)
        };
        assert!(store.put(policy("1", "a"), EventSource::Watched));
        assert!(put("2", "[]"));
        let of = |name: &str| store.get(name).unwrap();
        assert_eq!((of("a").body, of(&key).body), (None, Some(patch("[]"))));
        assert_ne!(of("a").generation(), of(&key).generation());
        let before = of(&key).generation();
        assert!(put("3", "[[]]"));
        assert_ne!(of(&key).generation(), before, "the mutations are others");
        // A list of one kind says nothing of the other.
        assert_eq!(store.retain(&BTreeSet::new()), ["a"]);
        let mutating = |name: &str| opt_in::of_key(name).is_some();
        assert_eq!(
            store.retain_among(mutating, &BTreeSet::new()),
            std::slice::from_ref(&key)
        );
    }

    #[test]
    fn a_list_takes_out_what_it_lacks() {
        let store = Store::default();
        store.put(policy("1", "a"), EventSource::Watched);
        assert_eq!(store.retain(&["a".to_owned()].into()), Vec::<String>::new());
        assert_eq!(store.retain(&BTreeSet::new()), ["a"]);
        assert!(store.get("a").is_none());
        assert!(!store.remove("a"));
    }
}
