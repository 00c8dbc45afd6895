//! Combines two inputs. If both define an object of the same kind and name, the object of one input takes precedence.

use std::collections::{BTreeMap, BTreeSet};

use super::{Input, Object, Place};
use crate::policy;
use crate::schema::{GroupVersion, Gvk};

/// The group, kind, namespace and name of an object. The version is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct ObjectKey {
    group: String,
    pub(in crate::cli) kind: String,
    namespace: String,
    pub(in crate::cli) name: String,
}

impl ObjectKey {
    fn new<T>(object: &Object<T>) -> Self {
        let (group, _) = GroupVersion::split(object.api_version());
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Self {
            group: group.to_owned(),
            kind: object.kind().to_owned(),
            namespace: text(object.namespace()),
            name: text(object.name()),
        }
    }

    pub(in crate::cli) fn policy(name: &str) -> Self {
        Self {
            group: super::POLICY_GROUP.to_owned(),
            kind: "ValidatingAdmissionPolicy".to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        }
    }
}

/// The file of an object, and the index of its document in the file.
type DocumentId = (String, usize);

/// The objects that an input defines, with their documents.
#[derive(Debug, Default)]
pub(in crate::cli) struct Definitions(BTreeMap<ObjectKey, Vec<DocumentId>>);

impl Definitions {
    /// Adds the objects of `input` that can affect evaluations. Objects of other kinds are added only if they are
    /// params of its policies.
    pub(in crate::cli) fn add(&mut self, input: &Input) {
        input.each_definition(&mut |key, id| self.0.entry(key).or_default().push(id));
    }

    /// Adds a policy of a cluster.
    pub(in crate::cli) fn add_policy(&mut self, name: &str) {
        self.0.entry(ObjectKey::policy(name)).or_default();
    }

    fn contains<T>(&self, object: &Object<T>) -> bool {
        object.name().is_some() && self.0.contains_key(&ObjectKey::new(object))
    }

    /// Returns true if `object` comes from the same document as one of its definitions.
    fn is_same_document<T>(&self, object: &Object<T>) -> bool {
        let definitions = self.0.get(&ObjectKey::new(object));
        let is_same = |(file, index): &DocumentId| {
            *file == object.source.name && *index == object.document.index
        };
        definitions.is_some_and(|definitions| definitions.iter().any(is_same))
    }
}

/// An object that was removed because another input defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct OverriddenObject {
    pub(in crate::cli) key: ObjectKey,
    pub(in crate::cli) file: String,
    pub(in crate::cli) place: Place,
}

impl Input {
    fn param_kinds(&self) -> BTreeSet<Gvk> {
        self.all_policies().filter_map(policy::param_kind).collect()
    }

    fn each_definition(&self, each: &mut dyn FnMut(ObjectKey, DocumentId)) {
        fn all<'a, T: 'a>(
            objects: impl IntoIterator<Item = &'a Object<T>>,
            each: &mut dyn FnMut(ObjectKey, DocumentId),
        ) {
            for object in objects.into_iter().filter(|object| object.name().is_some()) {
                let id = (object.source.name.clone(), object.document.index);
                each(ObjectKey::new(object), id);
            }
        }
        all(&self.policies, each);
        all(&self.bindings, each);
        all(
            self.mutating_policies.iter().map(|policy| &policy.shared),
            each,
        );
        all(&self.mutating_bindings, each);
        all(&self.crds, each);
        all(&self.invalid, each);
        all(&self.probes, each);
        all(&self.namespaces, each);
        for kind in self.param_kinds() {
            all(self.objects_of_kind(&kind), each);
        }
    }

    /// Removes the objects that `definitions` contains. Returns the removed objects, except for those that come from
    /// the same document as their definition.
    pub(in crate::cli) fn remove(&mut self, definitions: &Definitions) -> Vec<OverriddenObject> {
        fn retain<T, U>(
            objects: &mut Vec<T>,
            object: impl Fn(&T) -> &Object<U>,
            definitions: &Definitions,
            removed: &mut Vec<OverriddenObject>,
        ) {
            objects.retain(|item| {
                let object = object(item);
                let is_removed = definitions.contains(object);
                if is_removed && !definitions.is_same_document(object) {
                    removed.push(OverriddenObject {
                        key: ObjectKey::new(object),
                        file: object.source.name.clone(),
                        place: object.place(),
                    });
                }
                !is_removed
            });
        }
        let mut removed = Vec::new();
        retain(&mut self.policies, |it| it, definitions, &mut removed);
        retain(
            &mut self.mutating_policies,
            |it| &it.shared,
            definitions,
            &mut removed,
        );
        retain(&mut self.bindings, |it| it, definitions, &mut removed);
        retain(
            &mut self.mutating_bindings,
            |it| it,
            definitions,
            &mut removed,
        );
        retain(&mut self.crds, |it| it, definitions, &mut removed);
        retain(&mut self.invalid, |it| it, definitions, &mut removed);
        retain(&mut self.probes, |it| it, definitions, &mut removed);
        retain(&mut self.namespaces, |it| it, definitions, &mut removed);
        retain(&mut self.others, |it| it, definitions, &mut removed);
        removed
    }

    pub(in crate::cli) fn append(&mut self, mut other: Self) {
        self.policies.append(&mut other.policies);
        self.bindings.append(&mut other.bindings);
        self.mutating_policies.append(&mut other.mutating_policies);
        self.mutating_bindings.append(&mut other.mutating_bindings);
        self.webhooks.append(&mut other.webhooks);
        self.crds.append(&mut other.crds);
        self.invalid.append(&mut other.invalid);
        self.probes.append(&mut other.probes);
        self.namespaces.append(&mut other.namespaces);
        self.others.append(&mut other.others);
        self.name_affixes.append(&mut other.name_affixes);
        self.comments.append(&mut other.comments);
        self.files.append(&mut other.files);
        self.problems.append(&mut other.problems);
        for (kind, skipped) in other.dropped {
            let n = skipped.n;
            match self.dropped.entry(kind) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(skipped);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    entry.get_mut().n += n;
                    entry.get_mut().names.extend(skipped.names);
                    entry.get_mut().objects.extend(skipped.objects);
                }
            }
        }
        self.n_excluded += other.n_excluded;
        self.n_files += other.n_files;
        self.n_objects += other.n_objects;
        self.n_skipped += other.n_skipped;
    }
}
