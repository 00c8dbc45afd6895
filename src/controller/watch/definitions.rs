//! CustomResourceDefinitions as subjects (`--follow customresourcedefinitions`). A CRD is checked if it has validation
//! rules or is the target of a probe.
//!
//! CRDs are always watched to detect changes of served resources, so this module has no separate watch. CRDs are large.
//! So the controller stores only their identity, whether they have rules, and a hash of their spec. A CRD is read again
//! for its check and for the evaluation of its probes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::controller::cluster::crds::{CustomResourceDefinition, Spec, Status};
use crate::controller::context::Context;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::opt_in::OptInState;
use crate::controller::subjects::rules::Rules;
use crate::controller::subjects::subject::Subject;
use crate::policy::subject::{SubjectId, SubjectKind};

const DEFINITIONS: SubjectKind = SubjectKind::CustomResourceDefinition;

/// A CRD as the watch deserializes it, with the data about its rules if CRDs are subjects.
pub(crate) trait ReadDefinition: Resource<DynamicType = ()> + DeserializeOwned {
    /// Returns the CRD, and the data about its rules if CRDs are subjects.
    fn parts(self) -> (CustomResourceDefinition, Option<Rules>);
}

impl ReadDefinition for CustomResourceDefinition {
    fn parts(self) -> (CustomResourceDefinition, Option<Rules>) {
        (self, None)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "DefinitionObject")]
pub(crate) struct WithRules {
    definition: CustomResourceDefinition,
    rules: Rules,
}

#[derive(Deserialize)]
struct DefinitionObject {
    #[serde(default)]
    metadata: Option<ObjectMeta>,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    #[serde(default)]
    status: Option<Status>,
}

impl TryFrom<DefinitionObject> for WithRules {
    type Error = serde_json::Error;

    fn try_from(object: DefinitionObject) -> Result<Self, Self::Error> {
        let text = object.spec.as_deref().map_or("null", RawValue::get);
        let spec: Option<Spec> = serde_json::from_str(text)?;
        Ok(Self {
            rules: Rules::new(text),
            definition: CustomResourceDefinition {
                metadata: object.metadata.unwrap_or_default(),
                spec: spec.unwrap_or_default(),
                status: object.status,
            },
        })
    }
}

impl ReadDefinition for WithRules {
    fn parts(self) -> (CustomResourceDefinition, Option<Rules>) {
        (self.definition, Some(self.rules))
    }
}

impl Resource for WithRules {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        CustomResourceDefinition::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        CustomResourceDefinition::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        CustomResourceDefinition::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        CustomResourceDefinition::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.definition.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.definition.metadata
    }
}

/// Handles events of the watch of CRDs if CRDs are subjects.
pub(crate) struct Listener<'a> {
    context: &'a Context,
    state: &'a OptInState,
    listed: BTreeSet<String>,
    /// Names of listed CRDs that cannot be parsed.
    unreadable: BTreeSet<String>,
}

impl<'a> Listener<'a> {
    /// Creates the handler. Returns `None` if CRDs are not subjects.
    pub(crate) fn new(context: &'a Context) -> Option<Self> {
        let is_watched = context.settings.followed.contains(&DEFINITIONS);
        let state = context.opt_in.state(DEFINITIONS).filter(|_| is_watched)?;
        Some(Self {
            context,
            state,
            listed: BTreeSet::new(),
            unreadable: BTreeSet::new(),
        })
    }

    pub(crate) fn begin(&mut self) {
        self.listed.clear();
        self.unreadable.clear();
    }

    /// Records that the list contains the CRD `name`, which cannot be parsed.
    pub(crate) fn keep(&mut self, name: &str) {
        self.listed.insert(name.to_owned());
        self.unreadable.insert(name.to_owned());
    }

    /// Stores and queues a CRD from a list or a watch event.
    pub(crate) fn put(&mut self, metadata: &ObjectMeta, rules: Rules, from: EventSource) {
        let name = metadata.name.as_deref().unwrap_or_default();
        let id = SubjectId::new(DEFINITIONS, name);
        if from == EventSource::Listed {
            self.listed.insert(name.to_owned());
        }
        let subject = Subject::CustomResourceDefinition(rules);
        let store = &self.context.store;
        let is_new = store.put_opt_in(id.clone(), metadata, subject, from);
        if is_new {
            self.context.queue.add(&id);
        }
    }

    /// Handles the end of a list: removes CRDs that are not in the list.
    pub(crate) fn end(&mut self) {
        let context = self.context;
        for gone in context.store.retain(DEFINITIONS, &self.listed) {
            context.queue.add(&gone);
        }
        self.listed.clear();
        let unreadable = std::mem::take(&mut self.unreadable);
        self.state.set_policies_listed(unreadable);
        context.touch_opt_in();
    }

    /// Removes the CRD `name`, which was deleted.
    pub(crate) fn delete(&mut self, name: &str) {
        let id = SubjectId::new(DEFINITIONS, name);
        self.listed.remove(name);
        self.unreadable.remove(name);
        self.state.set_unavailable(name);
        self.context.store.remove(&id);
        self.context.queue.add(&id);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controller::cluster::crds::Crd;
    use crate::controller::subjects::rules::KEYWORD;

    pub(crate) fn definition(name: &str, generation: i64, rules: &Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "uid": name, "generation": generation, "resourceVersion": generation.to_string()},
            "spec": {
                "group": "example.com", "names": {"kind": "Widget", "plural": "widgets"}, "scope": "Cluster",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "description": "of \"x-kubernetes-validations\"",
                    "properties": {"spec": {"type": "object", "x-kubernetes-validations": rules}}}}}],
            },
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        })
    }

    pub(crate) fn read_with_rules(value: &Value) -> WithRules {
        serde_json::from_str(&value.to_string()).unwrap()
    }

    #[test]
    fn crd_read_with_rules_equals_crd_read_without_rules() {
        let rules = json!([{"rule": "self.a == 1"}]);
        for value in [
            definition("a", 1, &rules),
            json!({"metadata": null, "spec": null, "status": null}),
            json!({}),
        ] {
            let (with, rules) = read_with_rules(&value).parts();
            let (without, none) = serde_json::from_value::<CustomResourceDefinition>(value)
                .unwrap()
                .parts();
            assert_eq!(none, None);
            assert!(rules.is_some());
            assert_eq!(with.metadata, without.metadata);
            assert_eq!(Crd::from(with), without.into());
        }
        // `WithRules` and `CustomResourceDefinition` both reject a number as `versions`.
        let odd = json!({"spec": {"versions": 7}}).to_string();
        serde_json::from_str::<WithRules>(&odd).unwrap_err();
        serde_json::from_str::<CustomResourceDefinition>(&odd).unwrap_err();
    }

    #[test]
    fn crd_rules_are_equal_if_spec_is_equal() {
        let rules = |value: &Value| read_with_rules(value).parts().1.unwrap();
        let some = definition("a", 1, &json!([{"rule": "true"}]));
        assert!(rules(&some).has_some);
        assert!(!rules(&definition("a", 1, &json!([]))).has_some);
        let mut seen = some.clone();
        seen["status"] = json!({"conditions": []});
        seen["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(rules(&some), rules(&seen));
        let other = definition("a", 1, &json!([{"rule": "false"}]));
        assert_ne!(rules(&some), rules(&other));
        // A schema may nest too deeply to be parsed. Then the CRD counts as having rules, and its check reports the
        // problem.
        let deep = format!(
            "{}{KEYWORD}:1{}",
            "{\"a\":".repeat(200) + "{",
            "}".repeat(201)
        );
        assert!(Rules::new(&deep).has_some);
    }

    #[tokio::test(start_paused = true)]
    async fn listener_stores_listed_definitions_and_removes_others() {
        let new_context = |followed: &[SubjectKind]| {
            let (client, _) = crate::cluster::testing::client(|_| None);
            let settings = crate::controller::context::Settings {
                followed: followed.iter().copied().collect(),
                ..crate::controller::tests::settings()
            };
            Context::new(
                client,
                settings,
                std::sync::Arc::new(crate::telemetry::Metrics::new()),
            )
        };
        assert!(Listener::new(&new_context(&[])).is_none());
        let context = new_context(&[DEFINITIONS]);
        let state = context.opt_in.state(DEFINITIONS).unwrap();
        let id = |name: &str| SubjectId::new(DEFINITIONS, name);
        let stored = || {
            let mut ids = context.store.ids();
            ids.sort();
            ids
        };
        let queued = async || {
            let mut ids = BTreeSet::new();
            let second = std::time::Duration::from_secs(1);
            while let Ok(id) = tokio::time::timeout(second, context.queue.next()).await {
                context.queue.done(&id);
                ids.insert(id);
            }
            ids
        };
        let put = |listener: &mut Listener<'_>, name: &str, generation: i64, from| {
            let definition = definition(name, generation, &json!([{"rule": "true"}]));
            let (definition, rules) = read_with_rules(&definition).parts();
            listener.put(&definition.metadata, rules.unwrap(), from);
        };
        let object = json!({"metadata": {"name": "odd", "resourceVersion": "1"}});
        state.put(serde_json::from_value(object).unwrap(), EventSource::Listed);
        state.set_objects_listed();

        let mut listener = Listener::new(&context).unwrap();
        listener.begin();
        listener.keep("odd");
        put(&mut listener, "a", 1, EventSource::Listed);
        put(&mut listener, "b", 1, EventSource::Listed);
        assert!(!state.is_known());
        listener.end();
        assert!(state.is_known());
        assert_eq!(stored(), [id("a"), id("b")]);
        assert_eq!(queued().await, [id("a"), id("b"), id("odd")].into());
        // The unreadable CRD exists, so its status object remains until the CRD is deleted.
        assert!(state.orphan("odd").is_none());
        listener.delete("odd");
        assert!(state.orphan("odd").is_some());
        assert_eq!(queued().await, [id("odd")].into());

        // An event that does not change the spec queues nothing.
        put(&mut listener, "a", 1, EventSource::Watched);
        put(&mut listener, "b", 2, EventSource::Watched);
        assert_eq!(queued().await, [id("b")].into());
        listener.delete("b");
        assert_eq!(stored(), [id("a")]);
        assert_eq!(queued().await, [id("b")].into());

        // The names from an interrupted list are discarded.
        listener.begin();
        put(&mut listener, "a", 1, EventSource::Listed);
        listener.keep("odd");
        listener.begin();
        put(&mut listener, "c", 1, EventSource::Listed);
        listener.end();
        assert_eq!(stored(), [id("c")]);
        assert!(state.orphan("odd").is_some());
        assert_eq!(queued().await, [id("a"), id("c"), id("odd")].into());
    }
}
