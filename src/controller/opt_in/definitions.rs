//! CustomResourceDefinitions that are followed: those with rules, and those that probes name.
//!
//! They are many and large, and are watched anyway for what is served. So there is no watch of their own, and nothing of
//! them is kept but their identity, whether they have rules, and a hash of their spec. A definition is read once more
//! when it is judged or when its probes are decided, which is when it changes and when the controller starts.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::Request;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::super::check::{self, CheckOutcome, CheckResult, Guarded};
use super::super::context::Context;
use super::super::crds::{CustomResourceDefinition, Spec, Status};
use super::super::error::{Error, within};
use super::super::event_source::EventSource;
use super::super::lanes::Lane;
use super::super::memory;
use super::super::reconcile::ReconcileError;
use super::super::store::{Body, Entry};
use super::OptInState;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::status::compute::{CheckStep, Matched};
use crate::status::definition::RuleFindings;
use crate::telemetry::metrics::{ErrorReason, Skipped};
use crate::validation_rules;

/// How long reading a definition may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The keyword of rules, as it stands in JSON.
const KEYWORD: &str = "\"x-kubernetes-validations\"";

/// The kind.
const DEFINITIONS: SubjectKind = SubjectKind::CustomResourceDefinition;

/// The part of a definition that tells whether it is to be judged, and judged anew.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Rules {
    /// True if a version has a rule.
    pub(crate) has_some: bool,
    /// A hash of the spec.
    hash: u64,
}

impl Rules {
    fn of(spec: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(spec.as_bytes());
        Self {
            has_some: spec.contains(KEYWORD) && has_rules(spec),
            hash: hasher.finish(),
        }
    }
}

/// Reports whether a spec has rules, and not just the word somewhere. Of one that cannot be read they are told to be
/// unknown when it is judged.
fn has_rules(spec: &str) -> bool {
    if memory::unpacked_bytes(spec) > memory::MAX_TYPED_OBJECT {
        return true;
    }
    let spec = serde_json::from_str::<Value>(spec);
    spec.map_or(true, |spec| {
        let mut definition = serde_json::Map::new();
        definition.insert("spec".to_owned(), spec);
        validation_rules::has_rules(&Value::Object(definition))
    })
}

/// A definition as the watch reads it, with its rules where they are looked for.
pub(crate) trait ReadDefinition: Resource<DynamicType = ()> + DeserializeOwned {
    /// The parts.
    fn parts(self) -> (CustomResourceDefinition, Option<Rules>);
}

impl ReadDefinition for CustomResourceDefinition {
    fn parts(self) -> (CustomResourceDefinition, Option<Rules>) {
        (self, None)
    }
}

/// A definition with its rules.
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
            rules: Rules::of(text),
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

/// The place where the watch of definitions puts those that are followed.
pub(crate) struct Listener<'a> {
    context: &'a Context,
    state: &'a OptInState,
    listed: BTreeSet<String>,
    /// Those of the list that cannot be read exist.
    unreadable: BTreeSet<String>,
}

impl<'a> Listener<'a> {
    /// A listener, where definitions are followed.
    pub(crate) fn new(context: &'a Context) -> Option<Self> {
        let is_watched = context.settings.followed.contains(&DEFINITIONS);
        let state = context.opt_in.of(DEFINITIONS).filter(|_| is_watched)?;
        Some(Self {
            context,
            state,
            listed: BTreeSet::new(),
            unreadable: BTreeSet::new(),
        })
    }

    /// A list begins.
    pub(crate) fn begin(&mut self) {
        self.listed.clear();
        self.unreadable.clear();
    }

    /// The list has one of that name that cannot be read.
    pub(crate) fn keep(&mut self, name: &str) {
        self.listed.insert(name.to_owned());
        self.unreadable.insert(name.to_owned());
    }

    /// There is a definition.
    pub(crate) fn put(&mut self, metadata: &ObjectMeta, rules: Rules, from: EventSource) {
        let name = metadata.name.as_deref().unwrap_or_default();
        let id = SubjectId::new(DEFINITIONS, name);
        if from == EventSource::Listed {
            self.listed.insert(name.to_owned());
        }
        let shared = ValidatingAdmissionPolicy {
            metadata: metadata.clone(),
            ..ValidatingAdmissionPolicy::default()
        };
        let body = Body::Definition(rules);
        let is_new = self
            .context
            .store
            .put_opt_in(id.clone(), shared, body, from);
        if is_new {
            self.context.queue.add(&id);
        }
    }

    /// The list is whole.
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

    /// One of that name is gone.
    pub(crate) fn delete(&mut self, name: &str) {
        let id = SubjectId::new(DEFINITIONS, name);
        self.listed.remove(name);
        self.unreadable.remove(name);
        self.state.set_gone(name);
        self.context.store.remove(&id);
        self.context.queue.add(&id);
    }
}

/// The definition of that name as the API server has it.
///
/// # Errors
/// Where it cannot be read.
pub(crate) async fn read(context: &Context, name: &str) -> Result<Option<Value>, Error> {
    let Some(text) = read_text(context, name).await? else {
        return Ok(None);
    };
    let n_bytes = memory::unpacked_bytes(&text);
    if n_bytes > memory::MAX_TYPED_OBJECT {
        return Err(Error::Decode(format!(
            "it needs {} of memory, and {} are the limit",
            memory::mebibytes(n_bytes),
            memory::mebibytes(memory::MAX_TYPED_OBJECT)
        )));
    }
    let value = serde_json::from_str(&text).map_err(|error| Error::Decode(error.to_string()))?;
    Ok(Some(value))
}

/// The definition of that name as text.
///
/// # Errors
/// If it cannot be read.
pub(crate) async fn read_text(context: &Context, name: &str) -> Result<Option<Box<str>>, Error> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        items: Vec<Box<RawValue>>,
    }
    // A list of one: definitions may be listed, and need not be permitted to be got.
    let params = kube::api::ListParams::default().fields(&format!("metadata.name={name}"));
    let request = Request::new(CustomResourceDefinition::url_path(&(), None)).list(&params);
    let request = request.map_err(kube::Error::BuildRequest)?;
    let list = within(TIMEOUT, context.client.request::<List>(request)).await?;
    let item = list.items.into_iter().next_back();
    Ok(item.map(Box::<str>::from))
}

/// Reports whether `definition` is that of `entry`, and of its generation.
pub(crate) fn is_of(definition: &Value, entry: &Entry) -> bool {
    let metadata = &entry.policy.metadata;
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
    let generation = definition.pointer("/metadata/generation");
    text("/metadata/uid") == metadata.uid.as_deref()
        && generation.and_then(Value::as_i64) == metadata.generation
}

/// Checks the rules of the definition `entry`, within the limits of `lane`. Returns the reason if there is no result yet; a
/// notification follows.
///
/// # Errors
/// Where it cannot be read, or the process ends.
pub(crate) async fn judge(
    context: &Context,
    entry: &Entry,
    lane: Lane,
) -> Result<Result<Arc<CheckResult>, Skipped>, ReconcileError> {
    let name = entry.policy.metadata.name.as_deref().unwrap_or_default();
    let found = if entry.has_rules() {
        let definition = match read(context, name).await {
            Ok(Some(definition)) if is_of(&definition, entry) => Ok(definition),
            Ok(_) => return Ok(Err(Skipped::ObjectChanged)),
            Err(error) if error.reason() == ErrorReason::Decode => Err(error.to_string()),
            Err(error) => return Err(ReconcileError::Unread(error)),
        };
        context.metrics.policy_compiled();
        let judged = move || match definition {
            Ok(definition) => findings(&definition),
            Err(why) => RuleFindings::unreadable(&why),
        };
        let start = Instant::now();
        let found = check::guard(context, &entry.id, lane, judged).await?;
        if let Guarded::Done(..) = found {
            context.lanes.finished(&entry.id, start.elapsed());
        }
        found.value()
    } else {
        Ok(Some(RuleFindings::default()))
    };
    let outcome = match found {
        Ok(Some(found)) => CheckOutcome::Done {
            findings: found.compiled,
            n_expressions: found.n_expressions,
            matched: Matched::default(),
            typed: found.typed,
            waiting: Vec::new(),
        },
        Ok(None) => CheckOutcome::Panicked { matched: None },
        Err(late) => {
            let late = late.of(CheckStep::Compiling);
            if late.defer(context, entry) {
                return Ok(Err(Skipped::CheckDeferred));
            }
            CheckOutcome::DeadlineExceeded {
                late,
                compiled: None,
                matched: Some(Matched::default()),
            }
        }
    };
    let result = Arc::new(CheckResult::of_definition(entry, outcome));
    context.store.note(&entry.id, &result);
    Ok(Ok(result))
}

fn findings(definition: &Value) -> RuleFindings {
    let verdict = validation_rules::judge(definition);
    let of_schemas = if verdict.is_partial {
        validation_rules::schema_errors(definition)
    } else {
        Vec::new()
    };
    RuleFindings::new(&verdict, &of_schemas)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::testing::{Reply, client, paths};
    use super::super::super::tests::settings;
    use super::*;
    use crate::telemetry::Metrics;

    fn definition(name: &str, generation: i64, rules: &Value) -> Value {
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

    fn read_with_rules(value: &Value) -> WithRules {
        serde_json::from_str(&value.to_string()).unwrap()
    }

    #[test]
    fn with_its_rules_a_definition_is_read_as_without() {
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
            assert_eq!(super::super::super::crds::Crd::from(with), without.into());
        }
        // What one form cannot read the other cannot either.
        let odd = json!({"spec": {"versions": 7}}).to_string();
        serde_json::from_str::<WithRules>(&odd).unwrap_err();
        serde_json::from_str::<CustomResourceDefinition>(&odd).unwrap_err();
    }

    #[test]
    fn the_spec_alone_tells_what_is_to_be_judged() {
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
        // Of what nests too deeply it is not known, which is told when it is judged.
        let deep = format!(
            "{}{KEYWORD}:1{}",
            "{\"a\":".repeat(200) + "{",
            "}".repeat(201)
        );
        assert!(Rules::of(&deep).has_some);
    }

    /// The entry of the definition that the watch has told of.
    fn entry(context: &Context, value: &Value) -> Entry {
        let (definition, rules) = read_with_rules(value).parts();
        let mut listener = Listener::new(context).unwrap();
        listener.put(&definition.metadata, rules.unwrap(), EventSource::Watched);
        let name = definition.metadata.name.unwrap();
        context
            .store
            .get(&SubjectId::new(DEFINITIONS, name))
            .unwrap()
    }

    async fn judged(
        stored: Value,
        told: &Value,
    ) -> (Result<Arc<CheckResult>, Skipped>, Vec<String>) {
        let (client, log) = client(move |_| Some(Reply::json(&json!({"items": [stored]}))));
        let mut settings = settings();
        settings.followed = [DEFINITIONS].into();
        let context = Context::new(client, settings, Arc::new(Metrics::new()));
        let entry = entry(&context, told);
        let result = judge(&context, &entry, Lane::Quick).await.unwrap();
        if result.is_ok() {
            // It holds as long as the definition does, whatever is served.
            let entry = context.store.get(&entry.id).unwrap();
            let known = entry.result.as_ref().unwrap();
            assert!(known.holds_for(&entry, &context.snapshot()));
        }
        (result, paths(&log))
    }

    #[tokio::test]
    async fn the_generation_that_was_told_of_is_judged() {
        let sound = json!([{"rule": "true"}]);
        let value = definition("a", 2, &sound);
        let (result, asked) = judged(value.clone(), &value).await;
        let Ok(CheckOutcome::Done { n_expressions, .. }) = result.as_ref().map(|it| &it.outcome)
        else {
            panic!("{result:?}")
        };
        assert_eq!(*n_expressions, 1);
        assert_eq!(asked.len(), 1);
        assert!(
            asked[0].contains("fieldSelector=metadata.name%3Da"),
            "{asked:?}"
        );
        let (result, _) = judged(definition("a", 3, &sound), &value).await;
        assert_eq!(result.unwrap_err(), Skipped::ObjectChanged);
        let (result, _) = judged(definition("b", 2, &sound), &value).await;
        assert_eq!(result.unwrap_err(), Skipped::ObjectChanged);
    }

    #[tokio::test]
    async fn one_without_rules_is_not_asked_for() {
        let value = definition("a", 2, &json!([]));
        let (result, asked) = judged(value.clone(), &value).await;
        assert!(result.is_ok());
        assert_eq!(asked, Vec::<String>::new());
    }
}
