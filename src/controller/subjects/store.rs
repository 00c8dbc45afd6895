//! Stores the existing policies and other subjects, with their current status and the results of their checks.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::dependencies::Dependencies;
use super::event_source::EventSource;
use super::exclude::{self, Excluded};
use super::generation::Generation;
use super::managed_fields::owns_status;
use super::packed::{Identity, Packed};
use super::subject::Subject;
use crate::controller::cluster::snapshot::Change;
use crate::controller::subjects::check_result::CheckResult;
use crate::policy::RequestPolicy;
use crate::policy::analysis::Profile;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::schema::{GroupVersion, Gvk};
use crate::status::exclusion::Exclusion;

/// The existing subjects, by kind and name.
#[derive(Debug, Default)]
pub(crate) struct Store {
    entries: Mutex<HashMap<SubjectId, StoredSubject>>,
    exclusion: Exclusion,
}

/// A subject as [`Store::get`] returns it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The kind and the name.
    pub(crate) id: SubjectId,
    /// The uid, generation and resource version.
    pub(crate) identity: Identity,
    /// The spec. Its form depends on the kind.
    pub(crate) subject: Arc<Subject>,
    /// The current status. The store contains it only for ValidatingAdmissionPolicies. For other kinds, it comes from
    /// the status object.
    pub(crate) status: Option<ValidatingAdmissionPolicyStatus>,
    pub(crate) result: Option<Arc<CheckResult>>,
    /// `Some` if the subject is excluded from checks.
    pub(crate) excluded: Option<Excluded>,
    /// True if the controller owns fields of the status, according to the managed fields. An apply can remove only
    /// these fields.
    pub(crate) owns_status: bool,
    /// The size of the content as JSON, in bytes.
    pub(crate) n_bytes: usize,
    generation: Generation,
}

#[derive(Debug)]
struct StoredSubject {
    packed: Arc<PackedSubject>,
    result: Option<Arc<CheckResult>>,
    excluded: Option<Excluded>,
    owns_status: bool,
    dependencies: Arc<Dependencies>,
}

#[derive(Debug)]
struct PackedSubject {
    identity: Identity,
    subject: Packed<Subject>,
    status: Packed<Option<ValidatingAdmissionPolicyStatus>>,
}

impl PackedSubject {
    fn generation(&self) -> Generation {
        Generation::from_packed(&self.identity, &self.subject)
    }
}

impl Entry {
    pub(crate) const fn kind(&self) -> SubjectKind {
        self.id.kind
    }

    /// Returns the uid, generation and content hash. They identify the state that a check evaluates.
    pub(crate) fn generation(&self) -> Generation {
        self.generation.clone()
    }

    /// Returns the `metadata.generation`, or 0.
    pub(crate) fn object_generation(&self) -> i64 {
        self.identity.generation().unwrap_or_default()
    }

    pub(crate) fn metadata(&self) -> ObjectMeta {
        self.identity.metadata(&self.id.name)
    }
}

/// Returns true if an object with `metadata` replaces the stored object.
fn supersedes(
    entries: &HashMap<SubjectId, StoredSubject>,
    id: &SubjectId,
    metadata: &ObjectMeta,
    from: EventSource,
) -> bool {
    let stored = entries.get(id);
    let stored = stored.map(|stored| stored.packed.identity.state());
    from.supersedes(metadata.into(), stored)
}

impl Store {
    /// Creates a store that excludes the policies of `exclusion` from checks.
    pub(crate) fn new(exclusion: Exclusion) -> Self {
        Self {
            exclusion,
            ..Self::default()
        }
    }

    pub(crate) fn n_excluded(&self) -> usize {
        let entries = self.lock();
        entries
            .values()
            .filter(|entry| entry.excluded.is_some())
            .count()
    }

    /// Stores a policy without unknown fields if it supersedes the stored one. Returns true if it was stored.
    pub(crate) fn put(&self, policy: ValidatingAdmissionPolicy, from: EventSource) -> bool {
        let (metadata, status) = (policy.metadata.clone(), policy.status.clone());
        self.put_policy(&metadata, policy.into(), status, from)
    }

    /// Stores the policy if it supersedes the stored one. Returns true if it was stored.
    pub(crate) fn put_policy(
        &self,
        metadata: &ObjectMeta,
        policy: RequestPolicy,
        status: Option<ValidatingAdmissionPolicyStatus>,
        from: EventSource,
    ) -> bool {
        let Some(name) = metadata.name.as_deref() else {
            return false;
        };
        let id = SubjectId::policy(name);
        let subject = Subject::ValidatingPolicy(policy);
        self.put_with_status(id, metadata, (subject, status), from)
    }

    /// Stores a subject of an opt-in kind if it supersedes the stored one. Returns true if it was stored.
    pub(crate) fn put_opt_in(
        &self,
        id: SubjectId,
        metadata: &ObjectMeta,
        subject: Subject,
        from: EventSource,
    ) -> bool {
        self.put_with_status(id, metadata, (subject, None), from)
    }

    fn put_with_status(
        &self,
        id: SubjectId,
        metadata: &ObjectMeta,
        (mut subject, mut status): (Subject, Option<ValidatingAdmissionPolicyStatus>),
        from: EventSource,
    ) -> bool {
        // The controller's own writes cause watch events. The store already has the object from the response, so such
        // an event is skipped here, before the object is packed.
        if !supersedes(&self.lock(), &id, metadata, from) {
            return false;
        }
        let excluded = exclude::excluded(&self.exclusion, metadata);
        // If the kind has status objects, the controller owns the whole status object.
        let owns_status = id.kind.row().status_object.is_some() || owns_status(metadata);
        if excluded.is_some() {
            // An excluded subject has no dependencies, and its content is not stored.
            subject.clear();
            status = None;
        }
        let packed = Arc::new(PackedSubject {
            identity: Identity::new(metadata),
            subject: Packed::new(&subject),
            status: Packed::new(&status),
        });
        let mut entries = self.lock();
        if !supersedes(&entries, &id, metadata, from) {
            return false;
        }
        let Some(stored) = entries.get_mut(&id) else {
            let stored = StoredSubject {
                packed,
                result: None,
                excluded,
                owns_status,
                dependencies: Arc::new(Dependencies::new(subject.policies())),
            };
            entries.insert(id, stored);
            return true;
        };
        let is_other = stored.packed.identity.state().uid != metadata.uid.as_deref();
        if is_other || packed.subject != stored.packed.subject {
            let mut dependencies = Dependencies::new(subject.policies());
            dependencies
                .probe_groups
                .clone_from(&stored.dependencies.probe_groups);
            stored.dependencies = Arc::new(dependencies);
            // The content differs, so the result is dropped even if the generation has not changed.
            stored.result = None;
        }
        stored.packed = packed;
        stored.excluded = excluded;
        stored.owns_status = owns_status;
        true
    }

    pub(crate) fn remove(&self, id: &SubjectId) -> bool {
        self.lock().remove(id).is_some()
    }

    /// Removes and returns the subjects of a kind whose names are not in `names`.
    pub(crate) fn retain(&self, kind: SubjectKind, names: &BTreeSet<String>) -> Vec<SubjectId> {
        let mut entries = self.lock();
        let check_no_leader = |id: &&SubjectId| id.kind == kind && !names.contains(&*id.name);
        let gone: Vec<SubjectId> = entries.keys().filter(check_no_leader).cloned().collect();
        for id in &gone {
            entries.remove(id);
        }
        gone
    }

    pub(crate) fn get(&self, id: &SubjectId) -> Option<Entry> {
        let (packed, result, excluded, owns_status) = {
            let entries = self.lock();
            let stored = entries.get(id)?;
            let result = stored.result.clone();
            let packed = Arc::clone(&stored.packed);
            (packed, result, stored.excluded, stored.owns_status)
        };
        Some(Entry {
            id: id.clone(),
            identity: packed.identity.clone(),
            subject: Arc::new(packed.subject.unpack()),
            status: packed.status.unpack(),
            result,
            excluded,
            owns_status,
            n_bytes: packed.subject.json().len(),
            generation: packed.generation(),
        })
    }

    pub(crate) fn has(&self, id: &SubjectId) -> bool {
        self.lock().contains_key(id)
    }

    /// Stores the result of a check, unless the subject has changed since then.
    pub(crate) fn note(&self, id: &SubjectId, result: &Arc<CheckResult>) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(id) else {
            return;
        };
        if !result.is_of(&entry.packed.generation()) {
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

    /// Stores the API groups of the kinds in a subject's probes. The subject depends on them.
    pub(crate) fn note_probe_groups(&self, id: &SubjectId, groups: BTreeSet<String>) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(id)
            && entry.dependencies.probe_groups != groups
        {
            Arc::make_mut(&mut entry.dependencies).probe_groups = groups;
        }
    }

    pub(crate) fn ids(&self) -> Vec<SubjectId> {
        self.lock().keys().cloned().collect()
    }

    /// Returns the subjects whose status may be affected by `change`, with the number of schema documents that each
    /// needs. Subjects with small numbers are first.
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

    /// Returns the policies whose params are of the kind `gvk`.
    pub(crate) fn with_param_kind(&self, gvk: &Gvk) -> Vec<SubjectId> {
        let entries = self.lock();
        let of_kind = entries
            .iter()
            .filter(|(_, entry)| entry.dependencies.param_kind() == Some(gvk));
        of_kind.map(|(id, _)| id.clone()).collect()
    }

    /// Returns the paramKinds of all policies.
    pub(crate) fn param_kinds(&self) -> BTreeSet<Gvk> {
        let entries = self.lock();
        entries
            .values()
            .filter_map(|entry| entry.dependencies.param_kind().cloned())
            .collect()
    }

    /// Returns the group versions whose schemas were used in the checks of all subjects.
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

    fn lock(&self) -> MutexGuard<'_, HashMap<SubjectId, StoredSubject>> {
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
    fn response_to_write_does_not_restore_deleted_policy() {
        let store = Store::default();
        assert!(store.put(policy("1", "a"), EventSource::Watched));
        assert!(store.put(policy("2", "a"), EventSource::Answered));
        assert!(!store.put(policy("2", "a"), EventSource::Watched));
        assert!(store.remove(&id("a")));
        assert!(!store.put(policy("3", "a"), EventSource::Answered));
        assert!(store.get(&id("a")).is_none());
    }

    #[test]
    fn new_spec_replaces_dependencies() {
        let store = Store::default();
        store.put(policy("1", "a"), EventSource::Watched);
        assert_eq!(names(&store, "a"), ["a"]);
        store.put(policy("2", "b"), EventSource::Watched);
        assert_eq!(names(&store, "a"), Vec::<String>::new());
        assert_eq!(names(&store, "b"), ["a"]);
    }

    #[test]
    fn store_drops_metadata_that_is_not_needed() {
        let store = Store::default();
        store.put(policy("1", "a"), EventSource::Watched);
        let metadata = store.get(&id("a")).unwrap().metadata();
        assert_eq!(metadata.name.as_deref(), Some("a"));
        assert_eq!((&metadata.annotations, &metadata.labels), (&None, &None));
        assert_eq!(metadata.managed_fields, None);
    }

    #[test]
    fn subjects_of_different_kinds_with_same_name_are_independent() {
        let store = Store::default();
        let mutating = SubjectId::new(SubjectKind::MutatingAdmissionPolicy, "a");
        let subject = |expression: &str| -> Subject {
            let mutations =
                json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]);
            Subject::MutatingPolicy {
                policy: policy("1", "a").into(),
                mutations: serde_json::from_value(mutations).unwrap(),
                reinvocation_policy: None,
            }
        };
        let put = |version, expression| {
            let metadata = policy(version, "a").metadata;
            let from = EventSource::Watched;
            store.put_opt_in(mutating.clone(), &metadata, subject(expression), from)
        };
        assert!(store.put(policy("1", "a"), EventSource::Watched));
        assert!(put("2", "[]"));
        let entry = |id: &SubjectId| store.get(id).unwrap();
        let validating = Subject::ValidatingPolicy(policy("1", "a").into());
        assert_eq!(*entry(&id("a")).subject, validating);
        assert_eq!(*entry(&mutating).subject, subject("[]"));
        let before = entry(&mutating).generation();
        assert_ne!(entry(&id("a")).generation(), before);
        assert!(put("3", "[[]]"));
        assert_ne!(entry(&mutating).generation(), before);
        // Calling `retain` for one kind does not affect another kind.
        let retain = |kind| store.retain(kind, &BTreeSet::new());
        assert_eq!(retain(SubjectKind::ValidatingAdmissionPolicy), [id("a")]);
        assert_eq!(retain(SubjectKind::MutatingAdmissionPolicy), [mutating]);
    }

    #[test]
    fn subjects_that_are_not_listed_are_removed() {
        let store = Store::default();
        store.put(policy("1", "a"), EventSource::Watched);
        assert_eq!(store.retain(POLICIES, &["a".to_owned()].into()), []);
        assert_eq!(store.retain(POLICIES, &BTreeSet::new()), [id("a")]);
        assert!(store.get(&id("a")).is_none());
        assert!(!store.remove(&id("a")));
    }
}
