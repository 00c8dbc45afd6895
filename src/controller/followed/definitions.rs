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

use super::super::check::{self, CheckOutcome, CheckResult};
use super::super::context::Context;
use super::super::crds::{CustomResourceDefinition, Spec, Status};
use super::super::error::{Error, within};
use super::super::event_source::EventSource;
use super::super::reconcile::Failure;
use super::super::store::{Body, Entry};
use super::{Followed, FollowedState};
use crate::status::compute::Matched;
use crate::status::definition::RuleFindings;
use crate::telemetry::metrics::ErrorReason;
use crate::validation_rules;

/// How long reading a definition may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The keyword of rules, as it stands in JSON.
const KEYWORD: &str = "\"x-kubernetes-validations\"";

/// The kind.
const DEFINITIONS: Followed = Followed::CustomResourceDefinitions;

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
    state: &'a FollowedState,
    listed: BTreeSet<String>,
    /// Those of the list that cannot be read exist.
    unreadable: BTreeSet<String>,
}

impl<'a> Listener<'a> {
    /// A listener, where definitions are followed.
    pub(crate) fn new(context: &'a Context) -> Option<Self> {
        let is_followed = context.settings.followed.contains(&DEFINITIONS);
        is_followed.then(|| Self {
            context,
            state: context.followed.of(DEFINITIONS),
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
        self.listed.insert(DEFINITIONS.key(name));
        self.unreadable.insert(DEFINITIONS.key(name));
    }

    /// There is a definition.
    pub(crate) fn put(&mut self, metadata: &ObjectMeta, rules: Rules, from: EventSource) {
        let key = DEFINITIONS.key(metadata.name.as_deref().unwrap_or_default());
        if from == EventSource::Listed {
            self.listed.insert(key.clone());
        }
        let shared = ValidatingAdmissionPolicy {
            metadata: metadata.clone(),
            ..ValidatingAdmissionPolicy::default()
        };
        let body = Body::Definition(rules);
        if self.context.store.put_followed(&key, shared, body, from) {
            self.context.queue.add(&key);
        }
    }

    /// The list is whole.
    pub(crate) fn end(&mut self) {
        let context = self.context;
        let is_one = |key: &str| super::of_key(key) == Some(DEFINITIONS);
        for gone in context.store.retain_among(is_one, &self.listed) {
            context.queue.add(&gone);
        }
        self.listed.clear();
        let unreadable = std::mem::take(&mut self.unreadable);
        self.state.set_policies_listed(unreadable);
        context.touch_followed();
    }

    /// One of that name is gone.
    pub(crate) fn delete(&mut self, name: &str) {
        let key = DEFINITIONS.key(name);
        self.listed.remove(&key);
        self.unreadable.remove(&key);
        self.state.set_gone(&key);
        self.context.store.remove(&key);
        self.context.queue.add(&key);
    }
}

/// The definition of that name as the API server has it.
///
/// # Errors
/// Where it cannot be read.
pub(crate) async fn read(context: &Context, name: &str) -> Result<Option<Value>, Error> {
    // A list of one: definitions may be listed, and need not be permitted to be got.
    let params = kube::api::ListParams::default().fields(&format!("metadata.name={name}"));
    let request = Request::new(CustomResourceDefinition::url_path(&(), None)).list(&params);
    let request = request.map_err(kube::Error::BuildRequest)?;
    let mut list = within(TIMEOUT, context.client.request::<Value>(request)).await?;
    let items = list.get_mut("items").and_then(Value::as_array_mut);
    Ok(items.and_then(Vec::pop))
}

/// Reports whether `definition` is that of `entry`, and of its generation.
pub(crate) fn is_of(definition: &Value, entry: &Entry) -> bool {
    let metadata = &entry.policy.metadata;
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
    let generation = definition.pointer("/metadata/generation");
    text("/metadata/uid") == metadata.uid.as_deref()
        && generation.and_then(Value::as_i64) == metadata.generation
}

/// Judges the rules of the definition `entry`; nothing where it is another by now, of which the watch tells.
///
/// # Errors
/// Where it cannot be read, or the process ends.
pub(crate) async fn judge(
    context: &Context,
    entry: &Entry,
) -> Result<Option<Arc<CheckResult>>, Failure> {
    let name = entry.policy.metadata.name.as_deref().unwrap_or_default();
    let found = if entry.has_rules() {
        let definition = match read(context, name).await {
            Ok(Some(definition)) if is_of(&definition, entry) => Ok(definition),
            Ok(_) => return Ok(None),
            Err(error) if error.reason() == ErrorReason::Decode => Err(error.to_string()),
            Err(error) => return Err(Failure::Unread(error)),
        };
        context.metrics.policy_compiled();
        let judged = move || match definition {
            Ok(definition) => findings(&definition),
            Err(why) => RuleFindings::unreadable(&why),
        };
        check::guard(&entry.key, &context.metrics, judged).await?
    } else {
        Some(RuleFindings::default())
    };
    let outcome = match found {
        Some(found) => CheckOutcome::Done {
            findings: found.compiled,
            n_expressions: found.n_expressions,
            matched: Matched::default(),
            typed: found.typed,
            waiting: Vec::new(),
        },
        None => CheckOutcome::Panicked { matched: None },
    };
    let result = Arc::new(CheckResult::of_definition(entry, outcome));
    context.store.note(&entry.key, &result);
    Ok(Some(result))
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
