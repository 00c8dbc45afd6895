//! Opt-in kinds (`--follow`): MutatingAdmissionPolicies, webhook configurations and CustomResourceDefinitions.
//!
//! Objects of these kinds are stored, queued and checked like ValidatingAdmissionPolicies, by [`SubjectId`]. The
//! controller writes their conditions to separate status objects (ADR 31).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyStatus;
use kube::Resource;

use super::event_source::EventSource;
use super::packed::Identity;
use super::store::Entry;
use crate::controller::subjects::policy_index::Bindings;
use crate::policy::subject::{StatusObjectKind, SubjectId, SubjectKind};
use crate::status::object::StatusObject;
use crate::telemetry::metrics::Source;

/// The watches of an opt-in kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watches {
    /// The watch of the objects of the kind. `None` for CRDs, which the controller always watches.
    pub(crate) subjects: Option<Source>,
    /// The watch of the bindings. `None` if the kind has no bindings.
    pub(crate) bindings: Option<Source>,
    pub(crate) statuses: Source,
    /// The name of the task for these watches.
    task: &'static str,
}

/// Returns the watches of an opt-in kind, and the kind of its status objects. `None` for ValidatingAdmissionPolicies.
const fn watches(kind: SubjectKind) -> Option<(Watches, StatusObjectKind)> {
    let (subjects, bindings, statuses, task) = match kind {
        SubjectKind::ValidatingAdmissionPolicy => return None,
        SubjectKind::MutatingAdmissionPolicy => (
            Some(Source::MutatingPolicies),
            Some(Source::MutatingBindings),
            Source::PolicyStatuses,
            "watch-mutating",
        ),
        SubjectKind::ValidatingWebhookConfiguration => (
            Some(Source::ValidatingWebhooks),
            None,
            Source::ValidatingWebhookStatuses,
            "watch-validating-webhooks",
        ),
        SubjectKind::MutatingWebhookConfiguration => (
            Some(Source::MutatingWebhooks),
            None,
            Source::MutatingWebhookStatuses,
            "watch-mutating-webhooks",
        ),
        SubjectKind::CustomResourceDefinition => {
            (None, None, Source::DefinitionStatuses, "watch-definitions")
        }
    };
    let Some(status_object) = kind.row().status_object else {
        return None;
    };
    let watches = Watches {
        subjects,
        bindings,
        statuses,
        task,
    };
    Some((watches, status_object))
}

/// Returns the opt-in kind that needs the watch `source`. `None` if the controller always runs this watch.
pub(crate) fn kind_of_source(source: Source) -> Option<SubjectKind> {
    SubjectKind::ALL.into_iter().find(|kind| {
        watches(*kind).is_some_and(|(of_kind, _)| {
            of_kind.subjects == Some(source)
                || of_kind.bindings == Some(source)
                || of_kind.statuses == source
        })
    })
}

/// Returns the name of the `ClusterRole` that an opt-in kind needs.
pub(crate) fn role(kind: SubjectKind) -> String {
    format!("vap-status-controller-{}", kind.plural())
}

#[derive(Debug)]
pub(crate) struct OptIn(Vec<OptInState>);

impl Default for OptIn {
    fn default() -> Self {
        let states = SubjectKind::ALL.into_iter().filter_map(OptInState::new);
        Self(states.collect())
    }
}

impl OptIn {
    pub(crate) fn state(&self, kind: SubjectKind) -> Option<&OptInState> {
        self.0.iter().find(|state| state.kind == kind)
    }

    /// Returns all subjects with a status object. Deleted subjects are included.
    pub(crate) fn ids(&self) -> Vec<SubjectId> {
        self.0.iter().flat_map(OptInState::ids).collect()
    }
}

#[derive(Debug)]
pub(crate) struct OptInState {
    pub(crate) kind: SubjectKind,
    pub(crate) status_object: StatusObjectKind,
    pub(crate) bindings: Bindings,
    pub(crate) watches: Watches,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The API version in which the subjects are served.
    version: &'static str,
    /// Why the kind is not watched although it is enabled. `None` if it can be watched.
    obstacle: Option<String>,
    are_policies_listed: bool,
    /// True if the bindings were listed, or the controller has no permission to read them.
    are_bindings_listed: bool,
    /// True if the status objects were listed.
    are_objects_listed: bool,
    /// Names of subjects in the last list that cannot be parsed.
    unreadable: BTreeSet<String>,
    /// The status objects by name. A status object has the name of its subject.
    objects: HashMap<String, Object>,
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) identity: Identity,
    pub(crate) content: std::sync::Arc<StatusObject>,
}

impl OptInState {
    fn new(kind: SubjectKind) -> Option<Self> {
        let (watches, status_object) = watches(kind)?;
        Some(Self {
            kind,
            status_object,
            bindings: Bindings::new(kind),
            watches,
            state: Mutex::default(),
        })
    }

    pub(crate) const fn task(&self) -> &'static str {
        self.watches.task
    }

    /// Returns true if the subjects are watched even without `--follow`.
    pub(crate) const fn is_watched_anyway(&self) -> bool {
        self.watches.subjects.is_none()
    }

    /// Returns true if subjects, bindings and status objects were listed. Before that, statuses cannot be computed.
    pub(crate) fn is_known(&self) -> bool {
        let state = self.lock();
        let has_bindings = self.kind.row().bindings.is_some();
        state.are_policies_listed
            && (state.are_bindings_listed || !has_bindings)
            && state.are_objects_listed
    }

    /// Removes the stored data of the kind, which is no longer watched. Returns the subjects that had a status object.
    pub(crate) fn forget(&self) -> Vec<SubjectId> {
        let mut state = self.lock();
        let objects = std::mem::take(&mut state.objects);
        *state = if self.is_watched_anyway() {
            State {
                are_policies_listed: state.are_policies_listed,
                unreadable: std::mem::take(&mut state.unreadable),
                ..State::default()
            }
        } else {
            State::default()
        };
        drop(state);
        self.bindings.retain(&BTreeSet::new());
        self.ids_of(objects.into_keys())
    }

    /// Returns the `apiVersion` in which the subjects are served.
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.kind.row().group, self.lock().version)
    }

    pub(crate) fn set_version(&self, version: &'static str) {
        let mut state = self.lock();
        (state.version, state.obstacle) = (version, None);
    }

    /// Returns why the kind is not watched although it is enabled. `None` if it can be watched.
    pub(crate) fn obstacle(&self) -> Option<String> {
        self.lock().obstacle.clone()
    }

    pub(crate) fn set_obstacle(&self, why: String) {
        self.lock().obstacle = Some(why);
    }

    /// Records that the subjects were listed. `unreadable` contains the names of the subjects that cannot be parsed.
    pub(crate) fn set_policies_listed(&self, unreadable: BTreeSet<String>) {
        let mut state = self.lock();
        state.are_policies_listed = true;
        state.unreadable = unreadable;
    }

    /// Records that the bindings were listed, or that the controller has no permission to read them. Returns true the
    /// first time.
    pub(crate) fn set_bindings_listed(&self) -> bool {
        !std::mem::replace(&mut self.lock().are_bindings_listed, true)
    }

    pub(crate) fn set_objects_listed(&self) {
        self.lock().are_objects_listed = true;
    }

    /// Stores a status object if it supersedes the stored one. Returns true if it was stored.
    pub(crate) fn put(&self, object: StatusObject, from: EventSource) -> bool {
        let metadata = object.meta();
        let Some(name) = metadata.name.clone() else {
            return false;
        };
        let mut state = self.lock();
        let stored = state.objects.get(&name);
        let stored = stored.map(|stored| stored.identity.state());
        if !from.supersedes(metadata.into(), stored) {
            return false;
        }
        let identity = Identity::new(metadata);
        let content = std::sync::Arc::new(object);
        state.objects.insert(name, Object { identity, content });
        true
    }

    /// Removes the status object `name`. Returns true if it was stored.
    pub(crate) fn remove(&self, name: &str) -> bool {
        self.lock().objects.remove(name).is_some()
    }

    /// Removes the status objects whose names are not in `names`. Returns their subjects.
    pub(crate) fn retain(&self, names: &BTreeSet<String>) -> Vec<SubjectId> {
        let mut gone = Vec::new();
        self.lock().objects.retain(|name, _| {
            let is_retained = names.contains(name);
            if !is_retained {
                gone.push(name.clone());
            }
            is_retained
        });
        self.ids_of(gone)
    }

    /// Records that an unreadable subject is deleted.
    pub(crate) fn set_unavailable(&self, name: &str) {
        self.lock().unreadable.remove(name);
    }

    /// Returns the status object of the subject `name`.
    pub(crate) fn object(&self, name: &str) -> Option<Object> {
        self.lock().objects.get(name).cloned()
    }

    /// Returns the subjects with a status object. Deleted subjects are included.
    pub(crate) fn ids(&self) -> Vec<SubjectId> {
        self.ids_of(self.lock().objects.keys().cloned())
    }

    fn ids_of(&self, names: impl IntoIterator<Item = String>) -> Vec<SubjectId> {
        let id = |name| SubjectId::new(self.kind, name);
        names.into_iter().map(id).collect()
    }

    /// Returns the status object `name` of a subject that is not stored. `None` if the subject may exist, because it
    /// cannot be parsed or a list is incomplete.
    pub(crate) fn orphan(&self, name: &str) -> Option<Object> {
        let is_known = self.is_known();
        let state = self.lock();
        let object = state.objects.get(name)?;
        (is_known && !state.unreadable.contains(name)).then(|| object.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Object {
    /// Returns the status of `entry` from its status object. `None` if the status object belongs to an earlier subject
    /// of the same name.
    pub(crate) fn status_of(&self, entry: &Entry) -> Option<ValidatingAdmissionPolicyStatus> {
        let uid = entry.identity.state().uid;
        self.content
            .is_owned_by(uid)
            .then(|| self.content.policy_status())
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KIND: SubjectKind = SubjectKind::MutatingAdmissionPolicy;

    fn object(name: &str, version: &str) -> StatusObject {
        let metadata = json!({"name": name, "uid": "o", "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn listed(unreadable: &[&str]) -> OptInState {
        let state = OptInState::new(KIND).unwrap();
        state.put(object("a", "1"), EventSource::Listed);
        state.set_objects_listed();
        state.set_bindings_listed();
        state.set_policies_listed(unreadable.iter().map(ToString::to_string).collect());
        state
    }

    #[test]
    fn source_of_each_watch_has_its_kind() {
        let opt_in = OptIn::default();
        for kind in SubjectKind::opt_in() {
            let state = opt_in.state(kind).unwrap();
            let watches = state.watches;
            let sources = [watches.subjects, watches.bindings, Some(watches.statuses)];
            for source in sources.into_iter().flatten() {
                assert_eq!(kind_of_source(source), Some(kind));
            }
        }
        assert!(
            opt_in
                .state(SubjectKind::ValidatingAdmissionPolicy)
                .is_none()
        );
        assert_eq!(kind_of_source(Source::Policies), None);
        // The watch of CRDs always runs, so it belongs to no opt-in kind.
        assert_eq!(kind_of_source(Source::Crds), None);
    }

    #[test]
    fn status_object_is_no_orphan_if_subject_may_exist() {
        let unknown = OptInState::new(KIND).unwrap();
        unknown.put(object("a", "1"), EventSource::Listed);
        assert!(unknown.orphan("a").is_none());
        unknown.set_objects_listed();
        unknown.set_policies_listed(BTreeSet::new());
        assert!(unknown.orphan("a").is_none());
        assert!(listed(&[]).orphan("a").is_some());
        assert!(listed(&[]).orphan("b").is_none());
        // The subject exists although it cannot be parsed. So its status object remains until the subject is deleted.
        let unreadable = listed(&["a"]);
        assert!(unreadable.orphan("a").is_none());
        unreadable.set_unavailable("a");
        assert!(unreadable.orphan("a").is_some());
    }

    #[test]
    fn forgotten_state_has_no_objects_and_is_unknown() {
        let state = listed(&[]);
        let id = SubjectId::new(KIND, "a");
        assert_eq!(state.ids(), std::slice::from_ref(&id));
        assert_eq!(state.forget(), [id]);
        assert!(!state.is_known());
        assert_eq!(state.ids(), []);
    }

    #[test]
    fn response_to_write_does_not_restore_deleted_object() {
        let state = listed(&[]);
        assert!(!state.put(object("a", "1"), EventSource::Watched));
        assert!(state.put(object("a", "2"), EventSource::Answered));
        assert!(state.remove("a"));
        assert!(!state.put(object("a", "3"), EventSource::Answered));
        assert!(state.object("a").is_none());
    }
}
