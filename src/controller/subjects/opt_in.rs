//! Kinds besides ValidatingAdmissionPolicies: MutatingAdmissionPolicies, webhook configurations and
//! CustomResourceDefinitions, each watched if a flag enables it.
//!
//! They are in the same store and queue as ValidatingAdmissionPolicies, by [`SubjectId`], and are checked in the same
//! way. Their own objects have no conditions of ours; a status object holds them (ADR 31).

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

/// The watches of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watches {
    /// The watch of the objects. `None` if another task watches them in any case.
    pub(crate) subjects: Option<Source>,
    /// The watch of their bindings.
    pub(crate) bindings: Option<Source>,
    /// The watch of the objects that hold their conditions.
    pub(crate) statuses: Source,
    /// The name of the task.
    task: &'static str,
}

/// Returns the watches of a kind, and the kind of the objects that hold its conditions. `None` if the kind has a
/// status of its own.
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

/// Returns the kind that needs the watch `source`. `None` if it is watched in any case.
pub(crate) fn kind_of_source(source: Source) -> Option<SubjectKind> {
    SubjectKind::ALL.into_iter().find(|kind| {
        watches(*kind).is_some_and(|(of_kind, _)| {
            of_kind.subjects == Some(source)
                || of_kind.bindings == Some(source)
                || of_kind.statuses == source
        })
    })
}

/// Returns the name of the `ClusterRole` that a kind needs.
pub(crate) fn role(kind: SubjectKind) -> String {
    format!("vap-status-controller-{}", kind.plural())
}

/// The states of all kinds that can be watched on request.
#[derive(Debug)]
pub(crate) struct OptIn(Vec<OptInState>);

impl Default for OptIn {
    fn default() -> Self {
        let states = SubjectKind::ALL.into_iter().filter_map(OptInState::new);
        Self(states.collect())
    }
}

impl OptIn {
    /// Returns the state of a kind. `None` if the kind has a status of its own.
    pub(crate) fn of(&self, kind: SubjectKind) -> Option<&OptInState> {
        self.0.iter().find(|state| state.kind == kind)
    }

    /// Returns all subjects that have an object of ours, whether they exist or not.
    pub(crate) fn ids(&self) -> Vec<SubjectId> {
        self.0.iter().flat_map(OptInState::ids).collect()
    }
}

/// The state of one kind that can be watched on request.
#[derive(Debug)]
pub(crate) struct OptInState {
    /// The kind.
    pub(crate) kind: SubjectKind,
    /// The kind of the objects that hold the conditions.
    pub(crate) status_object: StatusObjectKind,
    /// The bindings, by their policy.
    pub(crate) bindings: Bindings,
    pub(crate) watches: Watches,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The version in which the subjects are served.
    version: &'static str,
    /// The reason why they are not watched, although they are enabled.
    obstacle: Option<String>,
    /// True once all subjects are known.
    are_policies_listed: bool,
    /// True once all bindings are known, or it is known that we are not allowed to read them.
    are_bindings_listed: bool,
    /// True once all of our objects are known.
    are_objects_listed: bool,
    /// Names of existing subjects that could not be parsed in the last list.
    unreadable: BTreeSet<String>,
    /// Our objects, by name, which is that of their subject.
    objects: HashMap<String, Object>,
}

/// One of our objects.
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

    /// Returns the name of the task that watches the kind.
    pub(crate) const fn task(&self) -> &'static str {
        self.watches.task
    }

    /// Returns true if another task watches the subjects in any case.
    pub(crate) const fn is_watched_anyway(&self) -> bool {
        self.watches.subjects.is_none()
    }

    /// Returns true if all objects of the kind are known, so that a status can be computed.
    pub(crate) fn is_known(&self) -> bool {
        let state = self.lock();
        let has_bindings = self.kind.row().bindings.is_some();
        state.are_policies_listed
            && (state.are_bindings_listed || !has_bindings)
            && state.are_objects_listed
    }

    /// Removes everything, as the kind is not watched any more. Returns the subjects that had an object.
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

    /// Returns the `apiVersion` in which the policies are served.
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.kind.row().group, self.lock().version)
    }

    pub(crate) fn set_version(&self, version: &'static str) {
        let mut state = self.lock();
        (state.version, state.obstacle) = (version, None);
    }

    /// Returns the reason why the kind is not watched, although it is enabled.
    pub(crate) fn obstacle(&self) -> Option<String> {
        self.lock().obstacle.clone()
    }

    pub(crate) fn set_obstacle(&self, why: String) {
        self.lock().obstacle = Some(why);
    }

    /// Records that all policies are known. Those with these names exist and cannot be parsed.
    pub(crate) fn set_policies_listed(&self, unreadable: BTreeSet<String>) {
        let mut state = self.lock();
        state.are_policies_listed = true;
        state.unreadable = unreadable;
    }

    /// Records that all bindings are known, or that reading them is not allowed. Returns true the first time.
    pub(crate) fn set_bindings_listed(&self) -> bool {
        !std::mem::replace(&mut self.lock().are_bindings_listed, true)
    }

    pub(crate) fn set_objects_listed(&self) {
        self.lock().are_objects_listed = true;
    }

    /// Inserts one of our objects if it supersedes the stored one. Returns true if it did.
    pub(crate) fn put(&self, object: StatusObject, from: EventSource) -> bool {
        let metadata = object.meta();
        let Some(name) = metadata.name.clone() else {
            return false;
        };
        let mut state = self.lock();
        let known = state.objects.get(&name);
        let known = known.map(|known| known.identity.state());
        if !from.supersedes(metadata.into(), known) {
            return false;
        }
        let identity = Identity::of(metadata);
        let content = std::sync::Arc::new(object);
        state.objects.insert(name, Object { identity, content });
        true
    }

    /// Removes the object of that name. Returns true if it was there.
    pub(crate) fn remove(&self, name: &str) -> bool {
        self.lock().objects.remove(name).is_some()
    }

    /// Removes all objects but those of these names, and returns their subjects.
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
    pub(crate) fn set_gone(&self, name: &str) {
        self.lock().unreadable.remove(name);
    }

    /// Returns the object of the subject of that name.
    pub(crate) fn object(&self, name: &str) -> Option<Object> {
        self.lock().objects.get(name).cloned()
    }

    /// Returns the subjects that have an object, whether they exist or not.
    pub(crate) fn ids(&self) -> Vec<SubjectId> {
        self.ids_of(self.lock().objects.keys().cloned())
    }

    fn ids_of(&self, names: impl IntoIterator<Item = String>) -> Vec<SubjectId> {
        let id = |name| SubjectId::new(self.kind, name);
        names.into_iter().map(id).collect()
    }

    /// Returns the object of a subject of that name that certainly does not exist any more.
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
    /// Returns the status of `entry`. `None` if the object is about an earlier subject of that name.
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
    fn sources_belong_to_their_kind() {
        let opt_in = OptIn::default();
        for kind in SubjectKind::opt_in() {
            let state = opt_in.of(kind).unwrap();
            let watches = state.watches;
            let sources = [watches.subjects, watches.bindings, Some(watches.statuses)];
            for source in sources.into_iter().flatten() {
                assert_eq!(kind_of_source(source), Some(kind));
            }
        }
        assert!(opt_in.of(SubjectKind::ValidatingAdmissionPolicy).is_none());
        assert_eq!(kind_of_source(Source::Policies), None);
        // The watch of definitions is permitted by the controller's own role.
        assert_eq!(kind_of_source(Source::Crds), None);
    }

    #[test]
    fn only_what_is_certain_is_an_orphan() {
        let unknown = OptInState::new(KIND).unwrap();
        unknown.put(object("a", "1"), EventSource::Listed);
        assert!(unknown.orphan("a").is_none());
        unknown.set_objects_listed();
        unknown.set_policies_listed(BTreeSet::new());
        assert!(unknown.orphan("a").is_none());
        assert!(listed(&[]).orphan("a").is_some());
        assert!(listed(&[]).orphan("b").is_none());
        // It exists and cannot be parsed: its status object remains until it is deleted.
        let unreadable = listed(&["a"]);
        assert!(unreadable.orphan("a").is_none());
        unreadable.set_gone("a");
        assert!(unreadable.orphan("a").is_some());
    }

    #[test]
    fn what_is_followed_no_longer_is_forgotten() {
        let state = listed(&[]);
        let id = SubjectId::new(KIND, "a");
        assert_eq!(state.ids(), std::slice::from_ref(&id));
        assert_eq!(state.forget(), [id]);
        assert!(!state.is_known());
        assert_eq!(state.ids(), []);
    }

    #[test]
    fn an_answer_brings_no_object_back() {
        let state = listed(&[]);
        assert!(!state.put(object("a", "1"), EventSource::Watched));
        assert!(state.put(object("a", "2"), EventSource::Answered));
        assert!(state.remove("a"));
        assert!(!state.put(object("a", "3"), EventSource::Answered));
        assert!(state.object("a").is_none());
    }
}
