//! The policies that exist, with their current status and the results of their checks.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::{
    Mutation, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
    ValidatingAdmissionPolicyStatus,
};
use serde::{Deserialize, Serialize};

use super::dependencies::Dependencies;
use super::event_source::EventSource;
use super::exclude::{self, Excluded};
use super::generation::Generation;
use super::managed_fields::owns_status;
use super::packed::{Identity, Packed};
use crate::controller::cluster::snapshot::Change;
use crate::controller::subjects::check_result::CheckResult;
use crate::controller::subjects::rules::Rules;
use crate::policy;
use crate::policy::analysis::Profile;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::schema::{GroupVersion, Gvk};
use crate::status::exclusion::Exclusion;

/// The policies and other subjects that exist.
#[derive(Debug, Default)]
pub(crate) struct Store {
    entries: Mutex<HashMap<SubjectId, StoredPolicy>>,
    exclusion: Exclusion,
}

/// One policy.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its kind and name.
    pub(crate) id: SubjectId,
    /// The part that a validating policy does not have. `None` for a validating policy.
    pub(crate) body: Option<Body>,
    /// The policy, as far as it is needed: half of an object is bookkeeping of others.
    pub(crate) policy: Arc<ValidatingAdmissionPolicy>,
    /// Result of its last check, if it was checked before.
    pub(crate) result: Option<Arc<CheckResult>>,
    /// Exclusion, if the policy is left alone.
    pub(crate) excluded: Option<Excluded>,
    /// True if its status is ours by its managed fields. What is not ours would stay when the controller is
    /// uninstalled.
    pub(crate) owns_status: bool,
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

/// One policy as it is stored.
#[derive(Debug)]
struct StoredPolicy {
    policy: Arc<PackedPolicy>,
    result: Option<Arc<CheckResult>>,
    excluded: Option<Excluded>,
    owns_status: bool,
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
    /// Its kind.
    pub(crate) const fn kind(&self) -> SubjectKind {
        self.id.kind
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
    entries: &HashMap<SubjectId, StoredPolicy>,
    id: &SubjectId,
    policy: &ValidatingAdmissionPolicy,
    from: EventSource,
) -> bool {
    let known = entries.get(id);
    let known = known.map(|known| known.policy.identity.state());
    from.supersedes((&policy.metadata).into(), known)
}

impl Store {
    /// Creates a store that excludes some policies.
    pub(crate) fn new(exclusion: Exclusion) -> Self {
        Self {
            exclusion,
            ..Self::default()
        }
    }

    /// Returns the number of excluded policies.
    pub(crate) fn n_excluded(&self) -> usize {
        let entries = self.lock();
        entries
            .values()
            .filter(|entry| entry.excluded.is_some())
            .count()
    }

    /// Inserts the policy if it supersedes the stored one. Returns true if it did.
    pub(crate) fn put(&self, policy: ValidatingAdmissionPolicy, from: EventSource) -> bool {
        let Some(name) = policy.metadata.name.as_deref() else {
            return false;
        };
        self.put_as(SubjectId::policy(name), policy, None, from)
    }

    /// Inserts a subject of another kind: the part that it shares with validating policies, and the rest.
    pub(crate) fn put_opt_in(
        &self,
        id: SubjectId,
        shared: ValidatingAdmissionPolicy,
        body: Body,
        from: EventSource,
    ) -> bool {
        self.put_as(id, shared, Some(body), from)
    }

    fn put_as(
        &self,
        id: SubjectId,
        mut policy: ValidatingAdmissionPolicy,
        mut body: Option<Body>,
        from: EventSource,
    ) -> bool {
        // Every other event tells of a write of ours, whose answer was put in before: packing it would be for nothing.
        if !supersedes(&self.lock(), &id, &policy, from) {
            return false;
        }
        let excluded = exclude::excluded(&self.exclusion, &policy);
        // What is followed has its status in an object that is ours as a whole.
        let owns_status = body.is_some() || owns_status(&policy.metadata);
        if excluded.is_some() {
            // Without expressions, it has no dependencies.
            (policy.spec, policy.status) = (None, None);
            body.iter_mut().for_each(Body::clear);
        }
        let packed = Arc::new(PackedPolicy::new(&policy, body.as_ref()));
        let webhooks = body.as_ref().map_or(&[][..], Body::webhooks);
        let mut entries = self.lock();
        if !supersedes(&entries, &id, &policy, from) {
            return false;
        }
        let Some(known) = entries.get_mut(&id) else {
            let kept = StoredPolicy {
                policy: packed,
                result: None,
                excluded,
                owns_status,
                dependencies: Arc::new(Dependencies::of(&policy, webhooks)),
            };
            entries.insert(id, kept);
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
        known.owns_status = owns_status;
        true
    }

    /// Removes a subject. Returns true if it existed.
    pub(crate) fn remove(&self, id: &SubjectId) -> bool {
        self.lock().remove(id).is_some()
    }

    /// Removes the subjects of a kind whose names are not in `names`, and returns them.
    pub(crate) fn retain(&self, kind: SubjectKind, names: &BTreeSet<String>) -> Vec<SubjectId> {
        let mut entries = self.lock();
        let is_gone = |id: &&SubjectId| id.kind == kind && !names.contains(&*id.name);
        let gone: Vec<SubjectId> = entries.keys().filter(is_gone).cloned().collect();
        for id in &gone {
            entries.remove(id);
        }
        gone
    }

    /// Returns a subject.
    pub(crate) fn get(&self, id: &SubjectId) -> Option<Entry> {
        let (packed, result, excluded, owns_status) = {
            let entries = self.lock();
            let kept = entries.get(id)?;
            let result = kept.result.clone();
            let packed = Arc::clone(&kept.policy);
            (packed, result, kept.excluded, kept.owns_status)
        };
        Some(Entry {
            id: id.clone(),
            body: packed.body.as_ref().map(Packed::unpack),
            policy: Arc::new(packed.unpack()),
            result,
            excluded,
            owns_status,
        })
    }

    /// Returns true if the subject exists.
    pub(crate) fn has(&self, id: &SubjectId) -> bool {
        self.lock().contains_key(id)
    }

    /// Stores the result of a check, unless the subject has changed since.
    pub(crate) fn note(&self, id: &SubjectId, result: &Arc<CheckResult>) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(id) else {
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
    pub(crate) fn note_probe_groups(&self, id: &SubjectId, groups: BTreeSet<String>) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(id)
            && entry.dependencies.probe_groups != groups
        {
            Arc::make_mut(&mut entry.dependencies).probe_groups = groups;
        }
    }

    /// Returns all subjects.
    pub(crate) fn ids(&self) -> Vec<SubjectId> {
        self.lock().keys().cloned().collect()
    }

    /// The policies whose status `change` may change, each with how many documents it depends on, those that depend
    /// on little first.
    pub(crate) fn touched_by(&self, change: &Change, profile: Profile) -> Vec<(usize, SubjectId)> {
        let entries = self.lock();
        let touched = entries
            .iter()
            .filter(|(_, entry)| entry.dependencies.are_touched_by(change, profile));
        let mut touched: Vec<(usize, &SubjectId)> = touched
            .map(|(id, entry)| (entry.dependencies.schemas.len(), id))
            .collect();
        touched.sort_unstable();
        touched.into_iter().map(|(n, id)| (n, id.clone())).collect()
    }

    /// The policies whose params are of the kind `gvk`.
    pub(crate) fn with_param_kind(&self, gvk: &Gvk) -> Vec<SubjectId> {
        let entries = self.lock();
        let of_kind = entries
            .iter()
            .filter(|(_, entry)| entry.dependencies.param_kind() == Some(gvk));
        of_kind.map(|(id, _)| id.clone()).collect()
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

    fn lock(&self) -> MutexGuard<'_, HashMap<SubjectId, StoredPolicy>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::cluster::snapshot::tests::gv;
    use crate::controller::tests::id;

    fn policy(version: &str, group: &str) -> ValidatingAdmissionPolicy {
        let value = json!({
            "metadata": {"name": "a", "uid": "u", "resourceVersion": version, "generation": 1,
                         "annotations": {"a": "b"}, "managedFields": [{}], "labels": {"a": "b"}},
            "spec": {"matchConstraints": {"resourceRules": [
                {"apiGroups": [group], "apiVersions": ["v1"], "resources": ["x"]}]}},
        });
        serde_json::from_value(value).unwrap()
    }

    const POLICIES: SubjectKind = SubjectKind::ValidatingAdmissionPolicy;

    fn names(store: &Store, group: &str) -> Vec<String> {
        let touched = store.touched_by(&touches(group), Profile::Truthful);
        touched.into_iter().map(|(_, id)| id.to_string()).collect()
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
        assert!(store.remove(&id("a")));
        assert!(!store.put(policy("3", "a"), EventSource::Answered));
        assert!(store.get(&id("a")).is_none());
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
        let kept = store.get(&id("a")).unwrap().policy;
        let metadata = &kept.metadata;
        assert_eq!((&metadata.annotations, &metadata.labels), (&None, &None));
        assert_eq!(metadata.managed_fields, None);
    }

    #[test]
    fn policies_of_both_kinds_may_have_one_name() {
        let store = Store::default();
        let mutating = SubjectId::new(SubjectKind::MutatingAdmissionPolicy, "a");
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
            store.put_opt_in(
                mutating.clone(),
                policy,
                patch(expression),
                EventSource::Watched,
            )
        };
        assert!(store.put(policy("1", "a"), EventSource::Watched));
        assert!(put("2", "[]"));
        let of = |id: &SubjectId| store.get(id).unwrap();
        assert_eq!(
            (of(&id("a")).body, of(&mutating).body),
            (None, Some(patch("[]")))
        );
        assert_ne!(of(&id("a")).generation(), of(&mutating).generation());
        let before = of(&mutating).generation();
        assert!(put("3", "[[]]"));
        assert_ne!(
            of(&mutating).generation(),
            before,
            "the mutations are others"
        );
        // A list of one kind says nothing of the other.
        let retain = |kind| store.retain(kind, &BTreeSet::new());
        assert_eq!(retain(SubjectKind::ValidatingAdmissionPolicy), [id("a")]);
        assert_eq!(retain(SubjectKind::MutatingAdmissionPolicy), [mutating]);
    }

    #[test]
    fn a_list_takes_out_what_it_lacks() {
        let store = Store::default();
        store.put(policy("1", "a"), EventSource::Watched);
        assert_eq!(store.retain(POLICIES, &["a".to_owned()].into()), []);
        assert_eq!(store.retain(POLICIES, &BTreeSet::new()), [id("a")]);
        assert!(store.get(&id("a")).is_none());
        assert!(!store.remove(&id("a")));
    }
}
