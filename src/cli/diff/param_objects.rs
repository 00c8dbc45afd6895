//! The param objects that the bindings of a policy select, in both versions.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::ParamRef;
use serde_json::Value;

use super::{PolicyPair, both_versions};
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::cli::eval::setup::Setup;
use crate::policy::admission::{self, Selector};
use crate::schema::Gvk;

/// The fields of the metadata that expressions rarely read and that the API server sets.
const SERVER_FIELDS: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// The param objects of both versions of a policy, by namespace and name.
#[derive(Default)]
pub(super) struct ParamObjects<'a> {
    sides: [BTreeMap<String, &'a Value>; 2],
}

impl<'a> ParamObjects<'a> {
    /// Collects the param objects that a binding of either version selects.
    pub(super) fn new(
        pair: &PolicyPair,
        sets: [&PolicySet<'_>; 2],
        setups: [&'a Setup; 2],
    ) -> Self {
        let Some(policies) = both_versions(pair, sets) else {
            return Self::default();
        };
        // If only one version is in a cluster, the params of the other version are unknown, so no params are compared.
        let [of_old, of_new] = setups.map(|setup| setup.cluster_inputs.is_some());
        if of_old != of_new {
            return Self::default();
        }
        let references = policies.iter().flat_map(|policy| &policy.bindings);
        let references = references.filter_map(|binding| binding.spec().param_ref.as_ref());
        let references: Vec<(&ParamRef, Option<Selector>)> = references
            .map(|it| {
                let selector = it.selector.as_ref();
                (it, selector.and_then(|it| Selector::new(it).ok()))
            })
            .collect();
        let side = |policy: &PreparedPolicy<'_>, setup: &'a Setup| {
            let kind = policy.param_kind.as_ref();
            let objects = kind.map_or_else(Vec::new, |kind| objects(setup, kind));
            let selected = objects.into_iter().filter_map(|value| {
                let object = admission::Object::new(value);
                let mut references = references.iter();
                let is_selected = references.any(|reference| selects(reference, &object));
                let name = match object.namespace() {
                    "" => object.name().to_owned(),
                    namespace => format!("{namespace}/{}", object.name()),
                };
                is_selected.then_some((name, value))
            });
            selected.collect()
        };
        let ([old, new], [old_setup, new_setup]) = (policies, setups);
        Self {
            sides: [side(old, old_setup), side(new, new_setup)],
        }
    }

    /// Returns the name of each object that differs, with its old and new version.
    pub(super) fn changed(&self) -> Vec<(String, [Option<Value>; 2])> {
        let [old, new] = &self.sides;
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let versions = names.into_iter().map(|name| {
            let objects = [old, new].map(|side| side.get(name).map(|it| without_server_fields(it)));
            (name.clone(), objects)
        });
        versions.filter(|(_, [old, new])| old != new).collect()
    }
}

/// Returns the objects of `kind` in a cluster and in files. An object in a file replaces the object of the cluster.
fn objects<'a>(setup: &'a Setup, kind: &Gvk) -> Vec<&'a Value> {
    let cluster = setup.cluster_inputs.as_ref();
    let cluster = cluster.and_then(|it| it.params.get(kind)?.as_ref().ok());
    let files = setup.input.objects_of_kind(kind).map(|it| &it.value);
    cluster.into_iter().flatten().chain(files).collect()
}

fn selects(
    (reference, selector): &(&ParamRef, Option<Selector>),
    object: &admission::Object,
) -> bool {
    let is_named = |name: &String| name == object.name();
    let is_in = |namespace: &String| namespace == object.namespace();
    reference.name.as_ref().is_none_or(is_named)
        && reference.namespace.as_ref().is_none_or(is_in)
        && selector
            .as_ref()
            .is_none_or(|it| it.matches(object.labels()))
}

fn without_server_fields(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.retain(|field, _| !SERVER_FIELDS.contains(&field.as_str()));
    }
    object
}
