//! Parses probes leniently, and stores them in compact form.
//!
//! A probe contains arbitrary objects, and the API server accepts deeper nesting than this parser. A probe that cannot
//! be parsed must not stop the watch. So only the necessary metadata is parsed with the watch event. The spec is parsed
//! separately from its JSON.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBindingSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::packed::{Packed, hash};
use crate::controller::process::memory;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::probe::api::{
    AuthorizerSource, BindingSource, Case, PolicyProbe, PolicyProbeSpec, PolicyProbeStatus, Source,
    Target,
};
use crate::probe::{run, target};
use crate::schema::{GroupVersion, Gvk};
use crate::status::condition::ConditionType;

/// A received probe after parsing and before storage.
#[derive(Clone, Debug)]
pub(crate) struct ParsedProbe {
    /// The probe. It has no cases if its spec is invalid.
    object: PolicyProbe,
    /// Why the probe cannot be evaluated. `None` if it can.
    problem: Option<String>,
}

impl Deref for ParsedProbe {
    type Target = PolicyProbe;

    fn deref(&self) -> &PolicyProbe {
        &self.object
    }
}

/// A stored probe: its spec as JSON, and facts that are available without parsing the JSON.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// The name, uid, generation, resource version and creation time.
    pub(crate) metadata: ObjectMeta,
    /// The spec. It has no cases if the spec is invalid or the probe is rejected.
    pub(crate) spec: Arc<StoredSpec>,
    pub(crate) status: Option<Arc<StoredStatus>>,
    /// Why the probe cannot be evaluated. `None` if it can.
    pub(crate) problem: Option<String>,
    /// The size of a probe that the memory limits reject, in bytes. `None` if the probe is stored.
    rejected_bytes: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct StoredSpec {
    /// The object that the probe tests, which is usually a policy.
    pub(crate) subject: SubjectId,
    /// The field `policyName`. Empty if the probe has a target.
    pub(crate) policy_name: String,
    /// The object that the probe tests. `None` if it is a ValidatingAdmissionPolicy.
    pub(crate) target: Option<Target>,
    pub(crate) params: Source,
    pub(crate) bindings: BindingSource,
    /// The source of responses to authorization checks.
    pub(crate) authorizer: AuthorizerSource,
    pub(crate) inline_bindings: Vec<ValidatingAdmissionPolicyBindingSpec>,
    pub(crate) n_cases: usize,
    /// The API groups of the kinds in the cases.
    pub(crate) groups: Box<[String]>,
    /// The group versions of the sample objects.
    pub(crate) group_versions: Box<[GroupVersion]>,
    /// The kinds of `object` and `oldObject` in the cases.
    pub(crate) kinds: Box<[Gvk]>,
    /// The namespaces of requests without a `namespaceObject`.
    pub(crate) namespaces: Box<[String]>,
    /// The memory of the parsed spec, in bytes.
    pub(crate) unpacked_bytes: usize,
    /// The size of the stored spec, in bytes.
    stored_bytes: usize,
    /// A hash of the spec's JSON.
    pub(crate) hash: u64,
    packed: Packed<PolicyProbeSpec>,
}

impl StoredSpec {
    pub(crate) fn new(mut spec: PolicyProbeSpec) -> Self {
        let packed = Packed::new(&spec);
        let text = std::str::from_utf8(packed.json()).unwrap_or_default();
        let unpacked_bytes = memory::unpacked_bytes(text);
        let objects = spec.cases.iter().flat_map(|case| {
            let request = &case.request;
            request.object.iter().chain(&request.old_object)
        });
        let kinds: BTreeSet<Gvk> = objects.map(crate::policy::admission::kind_of).collect();
        let namespaces = spec.cases.iter().filter_map(namespace_of);
        let namespaces: BTreeSet<String> = namespaces.map(str::to_owned).collect();
        let mut stored = Self {
            n_cases: spec.cases.len(),
            groups: run::groups(&spec).into_iter().collect(),
            group_versions: run::group_versions(&spec).into_iter().collect(),
            kinds: kinds.into_iter().collect(),
            namespaces: namespaces.into_iter().collect(),
            unpacked_bytes,
            stored_bytes: 0,
            hash: hash(packed.json()),
            inline_bindings: std::mem::take(&mut spec.inline_bindings),
            subject: subject(&spec),
            policy_name: spec.policy_name,
            target: spec.target,
            params: spec.params,
            bindings: spec.bindings,
            authorizer: spec.authorizer,
            packed,
        };
        stored.stored_bytes = stored.count_bytes();
        stored
    }

    /// Parses the spec. This needs [`Self::unpacked_bytes`] of memory.
    pub(crate) fn unpack(&self) -> PolicyProbeSpec {
        self.packed.unpack()
    }

    /// Returns the names of the cases. Does not parse their other fields into memory.
    pub(crate) fn case_names(&self) -> Vec<String> {
        #[derive(Default, Deserialize)]
        struct Names {
            #[serde(default)]
            cases: Vec<Name>,
        }
        #[derive(Deserialize)]
        struct Name {
            name: String,
        }
        let names: Names = serde_json::from_slice(self.packed.json()).unwrap_or_default();
        names.cases.into_iter().map(|case| case.name).collect()
    }

    fn count_bytes(&self) -> usize {
        let texts = self.groups.iter().chain(&self.namespaces);
        let of_texts: usize = texts.map(|text| text.len() + 32).sum();
        let of_kinds = self
            .kinds
            .iter()
            .map(|gvk| gvk.group.len() + gvk.version.len() + gvk.kind.len());
        let of_kinds: usize = of_kinds.map(|n_bytes| n_bytes + 96).sum();
        let versions = self.group_versions.iter();
        let of_versions = versions.map(|gv| gv.group.len() + gv.version.len() + 64);
        let of_bindings = if self.inline_bindings.is_empty() {
            0
        } else {
            let text = serde_json::to_string(&self.inline_bindings).unwrap_or_default();
            memory::unpacked_bytes(&text)
        };
        memory::PROBE_OVERHEAD
            + self.packed.json().len()
            + self.n_cases * memory::SHORT_RESULT
            + of_texts
            + of_kinds
            + of_versions.sum::<usize>()
            + of_bindings
    }
}

/// The stored data of a probe's status.
#[derive(Debug, PartialEq)]
pub(crate) struct StoredStatus {
    /// The condition of the controller, as a list of at most one item.
    pub(crate) conditions: Vec<Condition>,
    /// A hash of the whole status.
    hash: u64,
}

/// The maximum length of a condition's message, in bytes. A condition with a longer message is not from the controller.
const MAX_CONDITION_MESSAGE: usize = 4 << 10;

impl StoredStatus {
    fn new(status: PolicyProbeStatus) -> Self {
        let hash = hash_of(&status);
        let mut conditions = status.conditions;
        conditions.retain(|condition| condition.message.len() <= MAX_CONDITION_MESSAGE);
        conditions.truncate(1);
        Self { conditions, hash }
    }

    /// Returns true if the status equals `desired`.
    pub(crate) fn is(&self, desired: &PolicyProbeStatus) -> bool {
        self.hash == hash_of(desired)
    }
}

fn hash_of(status: &PolicyProbeStatus) -> u64 {
    hash(&serde_json::to_vec(status).unwrap_or_default())
}

impl Probe {
    /// Returns a copy of the probe with the problem `why`, unless it already has a problem.
    pub(crate) fn with_problem(&self, why: &str) -> Arc<Self> {
        let problem = self.problem.clone().or_else(|| Some(why.to_owned()));
        Arc::new(Self {
            problem,
            ..self.clone()
        })
    }

    /// Returns a copy of the probe with the problem `why` and without its spec, which exceeds the memory limits.
    pub(crate) fn rejected(&self, why: String) -> Self {
        let spec = StoredSpec::new(PolicyProbeSpec {
            policy_name: self.spec.policy_name.clone(),
            target: self.spec.target.clone(),
            ..PolicyProbeSpec::default()
        });
        Self {
            spec: Arc::new(spec),
            problem: Some(why),
            rejected_bytes: Some(self.stored_bytes()),
            ..self.clone()
        }
    }

    /// Returns the size that a rejected probe would have if it were stored, in bytes. `None` if the probe is stored.
    pub(crate) fn rejected_bytes(&self) -> Option<usize> {
        self.rejected_bytes
    }

    /// Returns the size of the stored probe, in bytes. It is 0 for a rejected probe.
    pub(crate) fn stored_bytes(&self) -> usize {
        match self.rejected_bytes {
            Some(_) => 0,
            None => self.spec.stored_bytes,
        }
    }

    /// Returns the creation time that the API server has set, in seconds.
    pub(crate) fn created_at(&self) -> i64 {
        let time = self.metadata.creation_timestamp.as_ref();
        time.map_or(0, |time| time.0.as_second())
    }
}

impl From<ParsedProbe> for Probe {
    fn from(ParsedProbe { object, problem }: ParsedProbe) -> Self {
        Self {
            metadata: object.metadata,
            spec: Arc::new(StoredSpec::new(object.spec)),
            status: object.status.map(StoredStatus::new).map(Arc::new),
            problem,
            rejected_bytes: None,
        }
    }
}

impl From<PolicyProbe> for Probe {
    fn from(object: PolicyProbe) -> Self {
        ParsedProbe {
            object,
            problem: None,
        }
        .into()
    }
}

impl<'de> Deserialize<'de> for Probe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ParsedProbe::deserialize(deserializer).map(Self::from)
    }
}

/// Returns the name of the namespace that must be read to evaluate `case`.
///
/// `None` if the request has a `namespaceObject`. If neither the request nor its objects name a namespace, this is
/// `default`, since the object may be namespaced.
pub(crate) fn namespace_of(case: &Case) -> Option<&str> {
    let request = &case.request;
    if request.namespace_object.is_some() {
        return None;
    }
    let object = request.object.as_ref().or(request.old_object.as_ref());
    let text = |pointer| {
        let text = object?.pointer(pointer)?.as_str()?;
        (!text.is_empty()).then_some(text)
    };
    let is_namespace = text("/kind") == Some("Namespace");
    let named = request.namespace.as_deref().filter(|name| !name.is_empty());
    let of_object = || text("/metadata/namespace");
    let itself = || {
        let name = request.name.as_deref().or_else(|| text("/metadata/name"));
        name.filter(|_| is_namespace)
    };
    named.or_else(of_object).or_else(itself).or(Some("default"))
}

/// A received probe. Fields that may be invalid are unparsed JSON.
#[derive(Deserialize)]
struct Received {
    #[serde(default, deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    #[serde(default)]
    status: Option<Box<RawValue>>,
}

/// The parsed fields of the metadata. `managedFields` are omitted, since they nest as deeply as the spec.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    #[serde(deserialize_with = "or_default")]
    name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    uid: Option<String>,
    #[serde(deserialize_with = "or_default")]
    generation: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    resource_version: Option<String>,
    #[serde(deserialize_with = "or_default")]
    creation_timestamp: Option<Time>,
}

/// Deserializes a value. Null and values of a different type become the default value.
fn or_default<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(text.get()).unwrap_or_default())
}

impl From<Metadata> for ObjectMeta {
    fn from(metadata: Metadata) -> Self {
        Self {
            name: metadata.name,
            uid: metadata.uid,
            generation: metadata.generation,
            resource_version: metadata.resource_version,
            creation_timestamp: metadata.creation_timestamp,
            ..Self::default()
        }
    }
}

/// Returns the subject that a probe tests. For a target of an unsupported kind, returns a policy that never exists: one
/// with an empty name.
fn subject(spec: &PolicyProbeSpec) -> SubjectId {
    let Some(target) = &spec.target else {
        return SubjectId::policy(&*spec.policy_name);
    };
    match SubjectKind::from_kind(&target.kind) {
        None | Some(SubjectKind::ValidatingAdmissionPolicy) => SubjectId::policy(""),
        Some(kind) => SubjectId::new(kind, &*target.name),
    }
}

/// Sets the bindings that the `target` of `spec` implies.
///
/// If the spec sets a field that the target does not allow, returns a message about the first such field. `text` is the
/// JSON of the spec, which shows which fields are set.
fn aim(spec: &mut PolicyProbeSpec, target: &Target, text: &str) -> Option<String> {
    let given: BTreeMap<String, IgnoredNull> = serde_json::from_str(text).unwrap_or_default();
    let has = |field: &str| {
        given
            .get(field)
            .is_some_and(|IgnoredNull(is_null)| !is_null)
    };
    let mut faults = target::violations(target, has);
    faults.extend(target::disallowed_expectations(spec, target));
    let kind = target::kind_of(target);
    if let Some(bindings) = kind.and_then(target::implied_bindings) {
        spec.bindings = bindings;
    }
    let fault = faults.first()?;
    Some(format!("{}: {}", fault.field_ref, fault.message))
}

/// True if a field is null. Other values are skipped without parsing.
struct IgnoredNull(bool);

impl<'de> Deserialize<'de> for IgnoredNull {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(text.get() == "null"))
    }
}

/// The fields of a spec that are parsed even if other fields are invalid.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outline {
    #[serde(deserialize_with = "or_default")]
    policy_name: String,
    #[serde(deserialize_with = "or_default")]
    target: Option<Target>,
}

/// Returns an error message if a spec needs too much memory.
fn too_large(text: &str) -> Option<String> {
    let n_bytes = memory::unpacked_bytes(text);
    (n_bytes > memory::MAX_OBJECT).then(|| {
        format!(
            "the probe needs {} of memory, but the limit is {}: split it or use smaller objects",
            memory::mebibytes(n_bytes),
            memory::mebibytes(memory::MAX_OBJECT)
        )
    })
}

/// Fields with arbitrary content, in which null is a value.
const OPAQUE: [&str; 6] = [
    "object",
    "patch",
    "oldObject",
    "options",
    "namespaceObject",
    "inlineParams",
];

/// Parses a spec.
///
/// If the spec is invalid, parses it again without null fields. The API server treats a null field as missing.
fn spec_of(text: &str) -> Result<PolicyProbeSpec, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        let Ok(mut value) = serde_json::from_str::<Value>(text) else {
            return Err(error);
        };
        drop_nulls(&mut value);
        PolicyProbeSpec::deserialize(&value).map_err(|_| error)
    })
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            let read = fields.iter_mut();
            read.filter(|(name, _)| !OPAQUE.contains(&name.as_str()))
                .for_each(|(_, field)| drop_nulls(field));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The status of a probe. Invalid fields have their default values.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReceivedStatus {
    #[serde(deserialize_with = "or_default")]
    observed_generation: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    policy_generation: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    summary: Option<String>,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Box<RawValue>>,
    #[serde(deserialize_with = "or_default")]
    cases: Vec<Box<RawValue>>,
}

/// Parses the fields of the status that the controller writes. Omits invalid fields, so that the controller writes them
/// again.
///
/// Also omits conditions of other clients, which remain in the cluster.
fn status_of(text: &str) -> Option<PolicyProbeStatus> {
    let received: ReceivedStatus = serde_json::from_str(text).ok()?;
    let conditions = received.conditions.iter();
    let conditions = conditions.filter_map(|text| serde_json::from_str(text.get()).ok());
    let cases = received.cases.iter();
    Some(PolicyProbeStatus {
        observed_generation: received.observed_generation,
        policy_generation: received.policy_generation,
        summary: received.summary,
        conditions: conditions
            .filter(|condition: &Condition| condition.type_ == ConditionType::Ready.as_str())
            .collect(),
        cases: cases
            .filter_map(|text| serde_json::from_str(text.get()).ok())
            .collect(),
    })
}

impl From<Received> for ParsedProbe {
    fn from(received: Received) -> Self {
        let text = received.spec.as_deref().map_or("{}", RawValue::get);
        let outline = || serde_json::from_str::<Outline>(text).unwrap_or_default();
        let (spec, problem) =
            match too_large(text).map_or_else(|| spec_of(text).map_err(Some), |_| Err(None)) {
                Ok(mut spec) => {
                    let target = spec.target.clone();
                    let problem = target.and_then(|target| aim(&mut spec, &target, text));
                    (spec, problem)
                }
                Err(error) => {
                    let Outline {
                        policy_name,
                        target,
                    } = outline();
                    let mut spec = PolicyProbeSpec {
                        policy_name,
                        ..PolicyProbeSpec::default()
                    };
                    match error {
                        Some(error) => (spec, Some(format!("its spec cannot be parsed: {error}"))),
                        None => {
                            if let Some(target) = target {
                                spec.target = Some(target.clone());
                                aim(&mut spec, &target, text);
                            }
                            (spec, too_large(text))
                        }
                    }
                }
            };
        let mut object = PolicyProbe::new("", spec);
        object.metadata = received.metadata.into();
        let status = received.status.as_deref();
        object.status = status.and_then(|status| status_of(status.get()));
        Self { object, problem }
    }
}

impl<'de> Deserialize<'de> for ParsedProbe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Received::deserialize(deserializer).map(Self::from)
    }
}

impl Resource for Probe {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        PolicyProbe::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        PolicyProbe::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        PolicyProbe::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        PolicyProbe::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
impl Probe {
    /// Returns the probe without its status.
    pub(crate) fn object(&self) -> PolicyProbe {
        let mut object = PolicyProbe::new("", self.spec.unpack());
        object.metadata = self.metadata.clone();
        object
    }

    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut PolicyProbe)) {
        let mut object = self.object();
        edit(&mut object);
        *self = Self {
            status: self.status.clone(),
            problem: self.problem.clone(),
            ..object.into()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(object: &str) -> ParsedProbe {
        let text = format!(
            r#"{{"metadata": {{"name": "p", "managedFields": [{{"fieldsV1": {object}}}]}}, "status": {{"summary": "0/1"}}, "spec": {{
                "cases": [{{"name": "c", "request": {{"object": {object}}},
                "expect": {{"decision": "Deny"}}}}], "policyName": "a"}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn valid_probe_is_parsed_completely() {
        let probe = read(r#"{"kind": "Deployment"}"#);
        assert_eq!(probe.problem, None);
        assert_eq!(probe.spec.policy_name, "a");
        assert_eq!(probe.spec.cases.len(), 1);
        assert_eq!(probe.metadata.name.as_deref(), Some("p"));
        assert_eq!(
            probe.status.as_ref().unwrap().summary.as_deref(),
            Some("0/1")
        );
    }

    #[test]
    fn probe_nested_too_deeply_has_problem_and_retains_policy() {
        let depth = 9000;
        let probe = read(&format!(
            "{}1{}",
            r#"{"a":"#.repeat(depth),
            "}".repeat(depth)
        ));
        let problem = probe.problem.as_deref().unwrap();
        assert!(
            problem.starts_with("its spec cannot be parsed: recursion limit exceeded"),
            "{problem}"
        );
        assert_eq!(probe.spec.policy_name, "a");
        assert_eq!(probe.metadata.name.as_deref(), Some("p"));
        assert!(probe.status.is_some());
    }
    fn object(spec: &str, rest: &str) -> ParsedProbe {
        let text = format!(r#"{{"metadata": {{"name": "p"}}, "spec": {spec}{rest}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn null_field_in_spec_is_absent() {
        let spec = r#"{"policyName": "a", "params": null, "inlineParams": null, "bindings": null,
            "inlineBindings": null, "authorizer": null,
            "cases": [{"name": "c", "request": {"operation": null, "dryRun": null, "userInfo": null,
                "authorizer": null, "object": {"data": null}}, "expect": {"decision": "Deny",
                "warnings": null, "auditAnnotations": null}}]}"#;
        let probe = object(spec, "");
        assert_eq!(probe.problem, None);
        let [case] = probe.spec.cases.as_slice() else {
            panic!("{:?}", probe.spec.cases)
        };
        // In sample objects, null is a value.
        assert_eq!(case.request.object, Some(serde_json::json!({"data": null})));
    }

    #[test]
    fn probe_with_target_has_subject_of_target() {
        let spec = r#"{"target": {"kind": "MutatingAdmissionPolicy", "name": "m"}, "cases": [
            {"name": "c", "request": {"object": {}}, "expect": {"object": {"a": null}, "patch": [
                {"op": "add", "path": "/a", "value": null}]}}]}"#;
        let probe = object(spec, "");
        assert_eq!(probe.problem, None);
        assert_eq!(probe.spec.policy_name, "");
        assert_eq!(
            Probe::from(probe.clone()).spec.subject,
            SubjectId::new(SubjectKind::MutatingAdmissionPolicy, "m")
        );
        assert_eq!(
            probe.spec.cases[0].expect.object,
            Some(serde_json::json!({"a": null}))
        );
    }

    #[test]
    fn field_not_allowed_for_target_is_problem() {
        let table = [
            (r#""policyName": null"#, r#"{"applies": true}"#, None),
            (
                r#""policyName": "a""#,
                r#"{"applies": true}"#,
                Some("spec.policyName: is allowed for ValidatingAdmissionPolicies"),
            ),
            (
                r#""params": null"#,
                r#"{"decision": "Allow"}"#,
                Some("spec.cases[0].expect.decision: a mutating policy has no validations"),
            ),
        ];
        for (field, expect, wanted) in table {
            let probe = object(
                &format!(
                    r#"{{"target": {{"kind": "MutatingAdmissionPolicy", "name": "m"}}, {field},
                        "cases": [{{"name": "c", "request": {{}}, "expect": {expect}}}]}}"#
                ),
                "",
            );
            let problem = probe.problem.as_deref();
            match wanted {
                Some(wanted) => assert!(problem.unwrap().starts_with(wanted), "{problem:?}"),
                None => assert_eq!(problem, None),
            }
        }
        let spec = r#"{"target": {"kind": "ConfigMap", "name": "m"}, "cases": []}"#;
        let problem = object(spec, "").problem.unwrap();
        assert!(
            problem.starts_with("spec.target.kind: is `ConfigMap`, but must be one of"),
            "{problem}"
        );
    }

    #[test]
    fn invalid_spec_is_problem_of_probe() {
        let table = [
            ("null", "", "missing field `cases`"),
            ("[]", "", "invalid"),
            (r#"{"policyName": 7, "cases": []}"#, "", "invalid type"),
            (
                r#"{"policyName": "a", "cases": null}"#,
                "a",
                "null, expected a sequence",
            ),
            (
                r#"{"policyName": "a", "cases": [null]}"#,
                "a",
                "invalid type: null",
            ),
            (
                r#"{"policyName": "a", "bindings": "Later", "cases": []}"#,
                "a",
                "unknown variant `Later`",
            ),
            (
                r#"{"policyName": "a", "cases": [{"name": "c", "request": {}, "expect": {"decision": "Maybe"}}]}"#,
                "a",
                "unknown variant `Maybe`",
            ),
        ];
        for (spec, policy, why) in table {
            let probe = object(spec, "");
            let problem = probe.problem.as_deref().unwrap();
            assert!(problem.contains(why), "{spec}: {problem}");
            assert_eq!(probe.spec.policy_name, policy, "{spec}");
            assert_eq!(probe.metadata.name.as_deref(), Some("p"));
        }
        let without: ParsedProbe = serde_json::from_str(r#"{"metadata": {"name": "p"}}"#).unwrap();
        assert!(without.problem.is_some());
    }

    #[test]
    fn invalid_metadata_fields_are_defaults() {
        for metadata in ["null", "7", "{}", r#"{"name": 7, "generation": "x"}"#] {
            let text = format!(r#"{{"metadata": {metadata}, "spec": {{}}}}"#);
            let probe: ParsedProbe = serde_json::from_str(&text).unwrap();
            assert_eq!(probe.metadata.name, None, "{metadata}");
        }
        let text = r#"{"metadata": {"name": "p", "generation": null, "uid": {}}}"#;
        let probe: ParsedProbe = serde_json::from_str(text).unwrap();
        assert_eq!(probe.metadata.name.as_deref(), Some("p"));
    }

    #[test]
    fn invalid_status_fields_and_other_conditions_are_omitted() {
        let of = |status: &str| {
            let spec = r#"{"policyName": "a", "cases": []}"#;
            object(spec, &format!(r#", "status": {status}"#))
                .status
                .clone()
        };
        assert_eq!(of("null"), None);
        assert_eq!(of("7"), None);
        let nulls =
            r#"{"cases": null, "conditions": null, "summary": null, "observedGeneration": null}"#;
        assert_eq!(of(nulls), Some(PolicyProbeStatus::default()));
        let mixed = r#"{"summary": "1/2", "observedGeneration": "x",
            "cases": [{"name": "a", "outcome": "Passed"}, {"name": "b", "outcome": "Later"}, null],
            "conditions": [null, {"type": "Theirs", "status": "True", "lastTransitionTime": null},
                {"type": "Ready", "status": "True", "reason": "ProbesPassed", "message": "m",
                 "lastTransitionTime": "1970-01-01T00:00:00Z"}]}"#;
        let status = of(mixed).unwrap();
        assert_eq!(status.summary.as_deref(), Some("1/2"));
        assert_eq!(status.observed_generation, None);
        assert_eq!(status.cases.len(), 1);
        let [ready] = status.conditions.as_slice() else {
            panic!("{:?}", status.conditions)
        };
        assert_eq!(ready.type_, "Ready");
    }
}
