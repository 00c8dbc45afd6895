//! Following MutatingAdmissionPolicies, configurations of webhooks and CustomResourceDefinitions besides
//! ValidatingAdmissionPolicies, where that is asked for.
//!
//! A mutating policy is read as a validating one with mutations, and a configuration as one policy for each of its
//! webhooks. It has its place in the same store and the same queue, and is judged in the same way. Its name there has a
//! prefix, as objects of several kinds may have the same name. It has no status, so that its conditions are those of
//! an object of ours (ADR 31).

pub(crate) mod definitions;
mod received;
mod watch;
mod write;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyStatus;
use kube::Resource;

pub(crate) use self::watch::run;
pub(crate) use self::write::{apply, delete};
use super::by_policy::Bindings;
use super::event_source::EventSource;
use super::packed::Identity;
use super::store::Entry;
use crate::status::object::{ObjectKind, StatusObject};
use crate::telemetry::metrics::Source;

/// Kinds that can be followed besides ValidatingAdmissionPolicies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Followed {
    /// `MutatingAdmissionPolicies`, where the cluster serves them
    #[value(name = "mutatingadmissionpolicies")]
    MutatingAdmissionPolicies,
    /// `ValidatingWebhookConfigurations`: the match conditions and rules of webhooks
    #[value(name = "validatingwebhookconfigurations")]
    ValidatingWebhookConfigurations,
    /// `MutatingWebhookConfigurations`, likewise
    #[value(name = "mutatingwebhookconfigurations")]
    MutatingWebhookConfigurations,
    /// `CustomResourceDefinitions` with validation rules: these rules
    #[value(name = "customresourcedefinitions")]
    CustomResourceDefinitions,
}

/// All that tells kinds apart which are followed.
pub(crate) struct Row {
    /// The resource, which is the value of the flag, and the text before the slash in keys.
    pub(crate) resource: &'static str,
    /// Their API group.
    group: &'static str,
    /// The versions, the best first.
    versions: &'static [&'static str],
    /// The resource of bindings, where there are some.
    bindings: Option<&'static str>,
    /// The objects that hold the conditions.
    pub(crate) objects: ObjectKind,
    /// The watches of the objects that are followed, of their bindings, and of the objects that hold their conditions;
    /// of the first, nothing where another task watches them anyway.
    sources: (Option<Source>, Option<Source>, Source),
    /// Advice where they are not served.
    remedy: &'static str,
    /// The name of the task.
    pub(crate) task: &'static str,
}

const MUTATING: Row = Row {
    resource: "mutatingadmissionpolicies",
    group: received::GROUP,
    versions: &["v1", "v1beta1", "v1alpha1"],
    bindings: Some("mutatingadmissionpolicybindings"),
    objects: ObjectKind::OF_MUTATING,
    sources: (
        Some(Source::MutatingPolicies),
        Some(Source::MutatingBindings),
        Source::PolicyStatuses,
    ),
    remedy: " (Kubernetes 1.36, or the beta)",
    task: "watch-mutating",
};

const VALIDATING_WEBHOOKS: Row = Row {
    resource: "validatingwebhookconfigurations",
    group: received::GROUP,
    versions: &["v1"],
    bindings: None,
    objects: ObjectKind::OF_VALIDATING_WEBHOOKS,
    sources: (
        Some(Source::ValidatingWebhooks),
        None,
        Source::ValidatingWebhookStatuses,
    ),
    remedy: "",
    task: "watch-validating-webhooks",
};

const MUTATING_WEBHOOKS: Row = Row {
    resource: "mutatingwebhookconfigurations",
    group: received::GROUP,
    versions: &["v1"],
    bindings: None,
    objects: ObjectKind::OF_MUTATING_WEBHOOKS,
    sources: (
        Some(Source::MutatingWebhooks),
        None,
        Source::MutatingWebhookStatuses,
    ),
    remedy: "",
    task: "watch-mutating-webhooks",
};

const DEFINITIONS: Row = Row {
    resource: "customresourcedefinitions",
    group: "apiextensions.k8s.io",
    versions: &["v1"],
    bindings: None,
    objects: ObjectKind::OF_DEFINITIONS,
    sources: (None, None, Source::DefinitionStatuses),
    remedy: "",
    task: "watch-definitions",
};

impl Followed {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [
        Self::MutatingAdmissionPolicies,
        Self::ValidatingWebhookConfigurations,
        Self::MutatingWebhookConfigurations,
        Self::CustomResourceDefinitions,
    ];

    /// The state that is told apart by the kind.
    pub(crate) const fn row(self) -> &'static Row {
        match self {
            Self::MutatingAdmissionPolicies => &MUTATING,
            Self::ValidatingWebhookConfigurations => &VALIDATING_WEBHOOKS,
            Self::MutatingWebhookConfigurations => &MUTATING_WEBHOOKS,
            Self::CustomResourceDefinitions => &DEFINITIONS,
        }
    }

    /// Reports whether another task watches them, followed or not.
    const fn is_watched_anyway(self) -> bool {
        let (watch, ..) = self.row().sources;
        watch.is_none()
    }

    /// The resource, which is the value of the flag.
    pub(crate) const fn resource(self) -> &'static str {
        self.row().resource
    }

    /// The kind.
    pub(crate) const fn kind(self) -> &'static str {
        let ObjectKind { about, .. } = self.row().objects;
        about
    }

    /// The name of the `ClusterRole` that it takes.
    pub(crate) fn role(self) -> String {
        format!("vap-status-controller-{}", self.resource())
    }

    /// The name of one of them among those of all policies: theirs has no slash.
    pub(crate) fn key(self, name: &str) -> String {
        format!("{}/{name}", self.resource())
    }

    /// The kind that is followed by this watch.
    pub(crate) fn of_source(source: Source) -> Option<Self> {
        Self::ALL.into_iter().find(|followed| {
            let (objects, bindings, statuses) = followed.row().sources;
            objects == Some(source) || bindings == Some(source) || statuses == source
        })
    }

    /// The kind of that name.
    pub(crate) fn of_kind(kind: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|followed| followed.kind() == kind)
    }
}

/// The kind and the name of what is followed, where `key` is that of one.
pub(crate) fn parts_of(key: &str) -> Option<(Followed, &str)> {
    let (resource, name) = key.split_once('/')?;
    let mut all = Followed::ALL.into_iter();
    let followed = all.find(|followed| followed.resource() == resource)?;
    Some((followed, name))
}

/// The kind of what is followed whose key that is.
pub(crate) fn of_key(key: &str) -> Option<Followed> {
    parts_of(key).map(|(followed, _)| followed)
}

/// The states of all kinds that can be followed.
#[derive(Debug)]
pub(crate) struct OptIn([OptInState; 4]);

impl Default for OptIn {
    fn default() -> Self {
        Self(Followed::ALL.map(OptInState::new))
    }
}

impl OptIn {
    /// The state of one kind.
    pub(crate) const fn of(&self, followed: Followed) -> &OptInState {
        let [policies, validating, mutating, definitions] = &self.0;
        match followed {
            Followed::MutatingAdmissionPolicies => policies,
            Followed::ValidatingWebhookConfigurations => validating,
            Followed::MutatingWebhookConfigurations => mutating,
            Followed::CustomResourceDefinitions => definitions,
        }
    }

    /// The state of the kind whose key that is.
    pub(crate) fn by_key(&self, key: &str) -> Option<&OptInState> {
        of_key(key).map(|followed| self.of(followed))
    }

    /// The keys of everything that has an object, whether it exists or not.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.iter().flat_map(OptInState::keys).collect()
    }
}

/// The state of one kind that is followed.
#[derive(Debug)]
pub(crate) struct OptInState {
    /// The kind.
    pub(crate) followed: Followed,
    /// The bindings, by the policy's key.
    pub(crate) bindings: Bindings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The version in which the policies are served.
    version: &'static str,
    /// Why they are not followed, although they are to be.
    obstacle: Option<String>,
    /// True once all policies are known.
    are_policies_listed: bool,
    /// True once all bindings are known, or it is known that they may not be read.
    are_bindings_listed: bool,
    /// True once all of our objects are known.
    are_objects_listed: bool,
    /// Policies that exist, by key, and could not be read in the last list.
    unreadable: BTreeSet<String>,
    /// Our objects, by the key of their policy.
    objects: HashMap<String, Object>,
}

/// One of our objects.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) identity: Identity,
    pub(crate) content: std::sync::Arc<StatusObject>,
}

impl OptInState {
    fn new(followed: Followed) -> Self {
        Self {
            followed,
            bindings: Bindings::default(),
            state: Mutex::default(),
        }
    }

    /// Reports whether a verdict can be given, and whether what is not there does not exist.
    pub(crate) fn is_known(&self) -> bool {
        let state = self.lock();
        let has_bindings = self.followed.row().bindings.is_some();
        state.are_policies_listed
            && (state.are_bindings_listed || !has_bindings)
            && state.are_objects_listed
    }

    /// Forgets everything, as it is followed no longer.
    fn forget(&self) -> Vec<String> {
        let mut state = self.lock();
        let objects = std::mem::take(&mut state.objects);
        *state = if self.followed.is_watched_anyway() {
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
        objects.into_keys().collect()
    }

    /// The `apiVersion` in which the policies are served.
    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.followed.row().group, self.lock().version)
    }

    fn set_version(&self, version: &'static str) {
        let mut state = self.lock();
        (state.version, state.obstacle) = (version, None);
    }

    /// Why they are not followed, although they are to be.
    pub(crate) fn obstacle(&self) -> Option<String> {
        self.lock().obstacle.clone()
    }

    fn set_obstacle(&self, why: String) {
        self.lock().obstacle = Some(why);
    }

    /// Notes that all policies are known; those of these keys exist and cannot be read.
    fn set_policies_listed(&self, unreadable: BTreeSet<String>) {
        let mut state = self.lock();
        state.are_policies_listed = true;
        state.unreadable = unreadable;
    }

    /// Notes that all bindings are known, or that they may not be read; whether that is news.
    pub(crate) fn set_bindings_listed(&self) -> bool {
        !std::mem::replace(&mut self.lock().are_bindings_listed, true)
    }

    fn set_objects_listed(&self) {
        self.lock().are_objects_listed = true;
    }

    /// Puts in one of our objects by the rule of [`EventSource`]; whether that is news.
    pub(crate) fn put(&self, object: StatusObject, from: EventSource) -> bool {
        let metadata = object.meta();
        let Some(name) = &metadata.name else {
            return false;
        };
        let key = self.followed.key(name);
        let mut state = self.lock();
        let known = state.objects.get(&key);
        let known = known.map(|known| known.identity.state());
        if !from.supersedes(metadata.into(), known) {
            return false;
        }
        let identity = Identity::of(metadata);
        let content = std::sync::Arc::new(object);
        state.objects.insert(key, Object { identity, content });
        true
    }

    /// Takes out the object of the policy of that key; whether it was there.
    pub(crate) fn remove(&self, key: &str) -> bool {
        self.lock().objects.remove(key).is_some()
    }

    /// Takes out all objects but these, by key, and names those that were taken out.
    fn retain(&self, keys: &BTreeSet<String>) -> Vec<String> {
        let mut gone = Vec::new();
        self.lock().objects.retain(|key, _| {
            let stays = keys.contains(key);
            if !stays {
                gone.push(key.clone());
            }
            stays
        });
        gone
    }

    /// Notes that a policy that could not be read is gone.
    fn set_gone(&self, key: &str) {
        self.lock().unreadable.remove(key);
    }

    /// The object of the policy of that key.
    pub(crate) fn object(&self, key: &str) -> Option<Object> {
        self.lock().objects.get(key).cloned()
    }

    /// The keys of the policies that have an object, whether they exist or not.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.lock().objects.keys().cloned().collect()
    }

    /// The object of a policy of that key that does not exist any more, where that is certain.
    pub(crate) fn orphan(&self, key: &str) -> Option<Object> {
        let is_known = self.is_known();
        let state = self.lock();
        let object = state.objects.get(key)?;
        (is_known && !state.unreadable.contains(key)).then(|| object.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Object {
    /// The status of the policy `entry` that it holds; nothing where it is about another of that name.
    pub(crate) fn status_of(&self, entry: &Entry) -> Option<ValidatingAdmissionPolicyStatus> {
        let uid = entry.policy.metadata.uid.as_deref();
        self.content
            .is_owned_by(uid)
            .then(|| self.content.policy_status())
            .flatten()
    }
}

/// The parsers of opt-in kinds for fuzz targets.
pub(crate) mod fuzzing {
    use super::definitions::{ReadDefinition, WithRules};
    use super::received::{Received, ReceivedBinding, ReceivedMutating, ReceivedWebhooks};

    /// Reads an object as each kind.
    pub(crate) fn received(text: &[u8]) {
        if let Ok(policy) = serde_json::from_slice::<ReceivedMutating>(text) {
            drop(policy.parts());
        }
        if let Ok(webhooks) = serde_json::from_slice::<ReceivedWebhooks>(text) {
            drop(webhooks.parts());
        }
        if let Ok(definition) = serde_json::from_slice::<WithRules>(text) {
            drop(definition.parts());
        }
        drop(serde_json::from_slice::<ReceivedBinding>(text));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FOLLOWED: Followed = Followed::MutatingAdmissionPolicies;

    fn key(name: &str) -> String {
        FOLLOWED.key(name)
    }

    fn object(name: &str, version: &str) -> StatusObject {
        let metadata = json!({"name": name, "uid": "o", "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn listed(unreadable: &[&str]) -> OptInState {
        let state = OptInState::new(FOLLOWED);
        state.put(object("a", "1"), EventSource::Listed);
        state.set_objects_listed();
        state.set_bindings_listed();
        state.set_policies_listed(unreadable.iter().map(|name| key(name)).collect());
        state
    }

    #[test]
    fn keys_tell_kinds_apart() {
        for followed in Followed::ALL {
            assert_eq!(parts_of(&followed.key("a")), Some((followed, "a")));
            assert_eq!(Followed::of_kind(followed.kind()), Some(followed));
            let states = OptIn::default();
            assert_eq!(states.of(followed).followed, followed);
            let (source, _, statuses) = followed.row().sources;
            if let Some(source) = source {
                assert_eq!(Followed::of_source(source), Some(followed));
            }
            assert_eq!(Followed::of_source(statuses), Some(followed));
        }
        assert_eq!(parts_of("a"), None);
        assert_eq!(parts_of("b/a"), None);
        assert_eq!(Followed::of_source(Source::Policies), None);
        // The watch of definitions is permitted by the controller's own role.
        assert_eq!(Followed::of_source(Source::Crds), None);
    }

    #[test]
    fn only_what_is_certain_is_an_orphan() {
        let unknown = OptInState::new(FOLLOWED);
        unknown.put(object("a", "1"), EventSource::Listed);
        assert!(unknown.orphan(&key("a")).is_none());
        unknown.set_objects_listed();
        unknown.set_policies_listed(BTreeSet::new());
        assert!(unknown.orphan(&key("a")).is_none());
        assert!(listed(&[]).orphan(&key("a")).is_some());
        assert!(listed(&[]).orphan(&key("b")).is_none());
        // It exists, and cannot be read: its object stays until it is gone.
        let unreadable = listed(&["a"]);
        assert!(unreadable.orphan(&key("a")).is_none());
        unreadable.set_gone(&key("a"));
        assert!(unreadable.orphan(&key("a")).is_some());
    }

    #[test]
    fn what_is_followed_no_longer_is_forgotten() {
        let state = listed(&[]);
        assert_eq!(state.keys(), [key("a")]);
        assert_eq!(state.forget(), [key("a")]);
        assert!(!state.is_known());
        assert_eq!(state.keys(), Vec::<String>::new());
    }

    #[test]
    fn an_answer_brings_no_object_back() {
        let state = listed(&[]);
        assert!(!state.put(object("a", "1"), EventSource::Watched));
        assert!(state.put(object("a", "2"), EventSource::Answered));
        assert!(state.remove(&key("a")));
        assert!(!state.put(object("a", "3"), EventSource::Answered));
        assert!(state.object(&key("a")).is_none());
    }
}
