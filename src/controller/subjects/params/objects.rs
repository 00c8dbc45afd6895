//! The listed objects of one paramKind, and an index of the policies that refer to them.
//!
//! There may be ten thousand objects, and a change of one object must cost only a lookup by name. So the objects and
//! the index are updated in place under a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use k8s_openapi::api::admissionregistration::v1::ParamRef;

use crate::policy::admission::{Labels, Selector};
use crate::policy::subject::SubjectId;

/// The namespace and name of an object. The namespace of a cluster-scoped object is empty.
pub(crate) type Key = (String, String);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) labels: Labels,
    pub(crate) resource_version: String,
}

#[derive(Debug, Default)]
pub(crate) struct Objects {
    by_name: RwLock<ByName>,
}

/// Objects by name and namespace. Nested maps for each name would be larger than their content.
type ByName = BTreeMap<(String, String), Meta>;

/// Returns the namespace and metadata of each object with `name`.
fn objects_named<'a>(
    by_name: &'a ByName,
    name: &'a str,
) -> impl Iterator<Item = (&'a String, &'a Meta)> + use<'a> {
    by_name
        .range((name.to_owned(), String::new())..)
        .take_while(move |((of, _), _)| of == name)
        .map(|((_, namespace), meta)| (namespace, meta))
}

/// An added, removed or changed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) key: Key,
    pub(crate) old: Option<Meta>,
    pub(crate) new: Option<Meta>,
}

impl Objects {
    /// Returns true if an object `name` exists in `namespace`. `None` means any namespace.
    pub(crate) fn has(&self, name: &str, namespace: Option<&str>) -> bool {
        let by_name = self.read();
        let mut named = objects_named(&by_name, name);
        named.any(|(of, _)| namespace.is_none_or(|namespace| of == namespace))
    }

    /// Returns true if `selector` selects an object in `namespace`. `None` means any namespace.
    pub(crate) fn has_selected(&self, namespace: Option<&str>, selector: &Selector) -> bool {
        let by_name = self.read();
        by_name.iter().any(|((_, of), meta)| {
            namespace.is_none_or(|namespace| of == namespace) && selector.matches(&meta.labels)
        })
    }

    /// Returns the keys of the objects `name` in all namespaces.
    pub(crate) fn named(&self, name: &str) -> Vec<Key> {
        let by_name = self.read();
        let named = objects_named(&by_name, name);
        named
            .map(|(namespace, _)| (namespace.clone(), name.to_owned()))
            .collect()
    }

    /// Returns the keys of the selected objects in all namespaces.
    pub(crate) fn selected(&self, selector: &Selector) -> Vec<Key> {
        let by_name = self.read();
        by_name
            .iter()
            .filter(|(_, meta)| selector.matches(&meta.labels))
            .map(|((name, of), _)| (of.clone(), name.clone()))
            .collect()
    }

    pub(crate) fn get(&self, (namespace, name): &Key) -> Option<Meta> {
        let key = (name.clone(), namespace.clone());
        self.read().get(&key).cloned()
    }

    /// Inserts or replaces an object. Returns the change. `None` if the metadata has not changed.
    pub(crate) fn put(&self, key: Key, meta: Meta) -> Option<Changed> {
        let (namespace, name) = key.clone();
        let old = self.write().insert((name, namespace), meta.clone());
        let changed = Changed {
            key,
            new: Some(meta),
            old,
        };
        (changed.old != changed.new).then_some(changed)
    }

    /// Removes an object. Returns the change. `None` if the object was not stored.
    pub(crate) fn remove(&self, key: &Key) -> Option<Changed> {
        let (namespace, name) = key.clone();
        let old = self.write().remove(&(name, namespace));
        old.map(|old| Changed {
            key: key.clone(),
            old: Some(old),
            new: None,
        })
    }

    /// Replaces all objects with `listed`. Returns the changes.
    pub(crate) fn replace(&self, listed: BTreeMap<Key, Meta>) -> Vec<Changed> {
        let gone: Vec<Key> = {
            let by_name = self.read();
            let keys = by_name
                .keys()
                .map(|(name, namespace)| (namespace.clone(), name.clone()));
            keys.filter(|key| !listed.contains_key(key)).collect()
        };
        let mut changed: Vec<Changed> = gone.iter().filter_map(|key| self.remove(key)).collect();
        let put = listed.into_iter();
        changed.extend(put.filter_map(|(key, meta)| self.put(key, meta)));
        changed
    }

    fn read(&self) -> RwLockReadGuard<'_, ByName> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByName> {
        self.by_name.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The origin of a policy's references to params.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Referrer {
    /// Bindings. The status of the policy depends on the existence and labels of the objects.
    Bindings,
    /// Probes. Their results also depend on the content of the objects.
    Probes,
}

/// An index of the policies that refer to the objects of a kind.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_field_names,
    reason = "each field is an index named after its key"
)]
pub(crate) struct References {
    by_policy: BTreeMap<(SubjectId, Referrer), Vec<Reference>>,
    /// The policies that refer to objects by name.
    by_name: BTreeMap<String, BTreeSet<(SubjectId, Referrer)>>,
    /// The policies that refer to objects by labels.
    by_labels: BTreeSet<(SubjectId, Referrer)>,
}

/// A reference to objects in `namespace`. `None` means any namespace.
#[derive(Clone, Debug)]
struct Reference {
    namespace: Option<String>,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Name(String),
    Labels(Selector),
}

impl Reference {
    fn new(reference: &ParamRef, is_namespaced: bool) -> Option<Self> {
        let named = reference.name.as_ref().filter(|name| !name.is_empty());
        let what = match (named, &reference.selector) {
            (Some(name), _) => What::Name(name.clone()),
            (None, Some(selector)) => What::Labels(Selector::new(selector).ok()?),
            (None, None) => return None,
        };
        let namespace = reference.namespace.clone();
        let namespace = namespace.filter(|namespace| is_namespaced && !namespace.is_empty());
        Some(Self { namespace, what })
    }

    /// Returns true if `changed` affects the objects that the reference selects.
    fn is_touched_by(&self, changed: &Changed, referrer: Referrer) -> bool {
        let (namespace, name) = &changed.key;
        if self.namespace.as_ref().is_some_and(|of| of != namespace) {
            return false;
        }
        let selects = |meta: &Option<Meta>| match &self.what {
            What::Name(of) => of == name && meta.is_some(),
            What::Labels(selector) => {
                let labels = meta.as_ref().map(|meta| &meta.labels);
                labels.is_some_and(|labels| selector.matches(labels))
            }
        };
        match (selects(&changed.old), selects(&changed.new)) {
            (true, true) => referrer == Referrer::Probes,
            (before, after) => before != after,
        }
    }
}

impl References {
    /// Replaces the references of a policy that have the origin `referrer`.
    pub(crate) fn set<'a>(
        &mut self,
        policy: &SubjectId,
        referrer: Referrer,
        references: impl IntoIterator<Item = &'a ParamRef>,
        is_namespaced: bool,
    ) {
        self.remove(policy, referrer);
        let who = (policy.clone(), referrer);
        let references = references.into_iter();
        let references: Vec<Reference> = references
            .filter_map(|reference| Reference::new(reference, is_namespaced))
            .collect();
        for reference in &references {
            match &reference.what {
                What::Name(name) => {
                    let objects_named = self.by_name.entry(name.clone()).or_default();
                    objects_named.insert(who.clone());
                }
                What::Labels(_) => drop(self.by_labels.insert(who.clone())),
            }
        }
        if !references.is_empty() {
            self.by_policy.insert(who, references);
        }
    }

    /// Removes the references of a policy that have the origin `referrer`.
    pub(crate) fn remove(&mut self, policy: &SubjectId, referrer: Referrer) {
        let who = (policy.clone(), referrer);
        for reference in self.by_policy.remove(&who).unwrap_or_default() {
            if let What::Name(name) = reference.what
                && let Some(objects_named) = self.by_name.get_mut(&name)
            {
                objects_named.remove(&who);
                if objects_named.is_empty() {
                    self.by_name.remove(&name);
                }
            }
        }
        self.by_labels.remove(&who);
    }

    /// Returns the policies that refer to a changed object.
    pub(crate) fn touched_by(&self, changed: &[Changed]) -> BTreeSet<SubjectId> {
        let mut touched = BTreeSet::new();
        for changed in changed {
            let by_name = self.by_name.get(&changed.key.1).into_iter().flatten();
            for who in by_name.chain(&self.by_labels) {
                let references = self.by_policy.get(who).into_iter().flatten();
                let mut touches = references.map(|of| of.is_touched_by(changed, who.1));
                if touches.any(|is_touched| is_touched) {
                    touched.insert(who.0.clone());
                }
            }
        }
        touched
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::tests::id;

    fn meta(team: &str, version: &str) -> Meta {
        Meta {
            labels: [("team".to_owned(), team.to_owned())].into(),
            resource_version: version.to_owned(),
        }
    }

    fn key(namespace: &str, name: &str) -> Key {
        (namespace.to_owned(), name.to_owned())
    }

    fn reference(value: Value) -> ParamRef {
        serde_json::from_value(value).unwrap()
    }

    fn touched(references: &References, changed: Option<Changed>) -> Vec<String> {
        let changed: Vec<Changed> = changed.into_iter().collect();
        let touched = references.touched_by(&changed);
        touched.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn changed_object_affects_policies_that_refer_to_it() {
        let mut references = References::default();
        let by_name = [reference(json!({"name": "one", "namespace": "a"}))];
        references.set(&id("by-name"), Referrer::Bindings, &by_name, true);
        let anywhere = [reference(json!({"name": "one"}))];
        references.set(&id("anywhere"), Referrer::Bindings, &anywhere, true);
        let by_labels = [reference(
            json!({"selector": {"matchLabels": {"team": "x"}}}),
        )];
        references.set(&id("by-labels"), Referrer::Bindings, &by_labels, true);
        references.set(&id("probed"), Referrer::Probes, &by_name, true);
        for n in 0..1000 {
            let other = [reference(json!({"name": format!("other-{n}")}))];
            references.set(&id(&format!("other-{n}")), Referrer::Bindings, &other, true);
        }
        let objects = Objects::default();
        let put = |namespace, name, meta| objects.put(key(namespace, name), meta);

        let changed = put("a", "one", meta("x", "1"));
        assert_eq!(
            touched(&references, changed),
            ["anywhere", "by-labels", "by-name", "probed"]
        );
        // First the object is unchanged, then its content changes, then its labels.
        assert_eq!(put("a", "one", meta("x", "1")), None);
        let changed = put("a", "one", meta("x", "2"));
        assert_eq!(touched(&references, changed), ["probed"]);
        let changed = put("a", "one", meta("y", "3"));
        assert_eq!(touched(&references, changed), ["by-labels", "probed"]);
        // An object with the same name in another namespace changes.
        let changed = put("b", "one", meta("y", "4"));
        assert_eq!(touched(&references, changed), ["anywhere"]);
        let changed = put("b", "two", meta("y", "5"));
        assert_eq!(touched(&references, changed), Vec::<String>::new());
        let changed = objects.remove(&key("a", "one"));
        assert_eq!(
            touched(&references, changed),
            ["anywhere", "by-name", "probed"]
        );
        assert_eq!(objects.remove(&key("a", "one")), None);
    }

    #[test]
    fn replaced_and_removed_references_are_ignored() {
        let mut references = References::default();
        let objects = Objects::default();
        let one = [
            reference(json!({"name": "one"})),
            reference(json!({"selector": {}})),
        ];
        references.set(&id("p"), Referrer::Bindings, &one, true);
        references.set(
            &id("p"),
            Referrer::Bindings,
            &[reference(json!({"name": "two"}))],
            true,
        );
        let changed = objects.put(key("a", "one"), meta("x", "1"));
        assert_eq!(touched(&references, changed), Vec::<String>::new());
        let changed = objects.put(key("a", "two"), meta("x", "1"));
        assert_eq!(touched(&references, changed), ["p"]);
        references.remove(&id("p"), Referrer::Bindings);
        assert!(references.by_name.is_empty() && references.by_labels.is_empty());
        assert!(references.by_policy.is_empty());
    }

    #[test]
    fn replacement_returns_added_and_removed_objects() {
        let objects = Objects::default();
        objects.put(key("a", "stays"), meta("x", "1"));
        objects.put(key("a", "goes"), meta("x", "1"));
        let listed = [
            (key("a", "stays"), meta("x", "1")),
            (key("a", "comes"), meta("x", "2")),
        ];
        let changed = objects.replace(listed.into());
        let keys: Vec<&str> = changed.iter().map(|changed| &*changed.key.1).collect();
        assert_eq!(keys, ["goes", "comes"]);
        assert!(objects.has("stays", None) && objects.has("comes", Some("a")));
        assert!(!objects.has("goes", None) && !objects.has("comes", Some("b")));
        assert_eq!(objects.named("stays"), [key("a", "stays")]);
    }
}
