//! A probe as the API server tells it.
//!
//! The API server takes objects that nest deeper than we read them, and a probe holds any object that its
//! author likes. One that cannot be read must not stop the watch of the others, so that the spec is taken
//! as text first, and of the metadata only what is needed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::followed::Followed;
use crate::probe::api::{PolicyProbe, PolicyProbeSpec, PolicyProbeStatus, Target};
use crate::probe::target;
use crate::status::condition::ConditionType;

/// A probe, and why its spec cannot be read, if it cannot.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// The probe. It has no cases where it cannot be read.
    object: PolicyProbe,
    /// Why its spec cannot be read.
    pub(crate) problem: Option<String>,
}

impl Deref for Probe {
    type Target = PolicyProbe;

    fn deref(&self) -> &PolicyProbe {
        &self.object
    }
}

impl Probe {
    /// The same probe, which cannot be evaluated for this reason, or for its own.
    pub(crate) fn with_problem(&self, why: &str) -> Arc<Self> {
        let problem = self.problem.clone().or_else(|| Some(why.to_owned()));
        Arc::new(Self {
            object: self.object.clone(),
            problem,
        })
    }
}

impl From<PolicyProbe> for Probe {
    fn from(object: PolicyProbe) -> Self {
        Self {
            object,
            problem: None,
        }
    }
}

/// The object with what may be unreadable as text.
#[derive(Deserialize)]
struct Received {
    #[serde(default, deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    #[serde(default)]
    status: Option<Box<RawValue>>,
}

/// The parts of the metadata that are read: `managedFields` nest as deep as the spec does.
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
}

/// A value, or the default where there is null or anything else in its place.
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
            ..Self::default()
        }
    }
}

/// Makes `spec` one of the object that its target names, by the key of that; gives what of it does not go together.
///
/// The text of the spec is given too: what a field says by its absence is lost in `spec`.
fn aim(spec: &mut PolicyProbeSpec, target: &Target, text: &str) -> Option<String> {
    let given: BTreeMap<String, IgnoredNull> = serde_json::from_str(text).unwrap_or_default();
    let has = |field: &str| {
        given
            .get(field)
            .is_some_and(|IgnoredNull(is_null)| !is_null)
    };
    let mut faults = target::faults(target, has);
    faults.extend(target::unfit(spec, target));
    spec.policy_name = match Followed::of_kind(&target.kind) {
        Some(followed) => followed.key(&target.name),
        None => target.key(),
    };
    let kind = target::kind_of(target);
    if let Some(bindings) = kind.and_then(target::implied_bindings) {
        spec.bindings = bindings;
    }
    let fault = faults.first()?;
    Some(format!("{}: {}", fault.field_ref, fault.message))
}

/// A field, as far as it is there: true where it is null.
struct IgnoredNull(bool);

impl<'de> Deserialize<'de> for IgnoredNull {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(text.get() == "null"))
    }
}

/// The parts of a spec that are read in any case.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outline {
    #[serde(deserialize_with = "or_default")]
    policy_name: String,
}

/// Fields that hold what an author likes, where null is a value.
const OPAQUE: [&str; 6] = [
    "object",
    "patch",
    "oldObject",
    "options",
    "namespaceObject",
    "inlineParams",
];

/// The spec; an error says why it cannot be read.
///
/// The API server takes null for absence. So does this, where the spec cannot be read otherwise.
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

/// The status, each part as far as it can be read.
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

/// The status as far as it is ours; what cannot be read of it is written anew.
///
/// Conditions of others stay in the cluster, and are none of ours.
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

impl From<Received> for Probe {
    fn from(received: Received) -> Self {
        let text = received.spec.as_deref().map_or("{}", RawValue::get);
        let (spec, problem) = match spec_of(text) {
            Ok(mut spec) => {
                let target = spec.target.clone();
                let problem = target.and_then(|target| aim(&mut spec, &target, text));
                (spec, problem)
            }
            Err(error) => {
                let outline: Outline = serde_json::from_str(text).unwrap_or_default();
                let spec = PolicyProbeSpec {
                    policy_name: outline.policy_name,
                    ..PolicyProbeSpec::default()
                };
                (spec, Some(format!("its spec cannot be read: {error}")))
            }
        };
        let mut object = PolicyProbe::new("", spec);
        object.metadata = received.metadata.into();
        let status = received.status.as_deref();
        object.status = status.and_then(|status| status_of(status.get()));
        Self { object, problem }
    }
}

impl<'de> Deserialize<'de> for Probe {
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
        &self.object.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.object.metadata
    }
}

#[cfg(test)]
impl Probe {
    /// The probe, to be made another one.
    pub(crate) fn object_mut(&mut self) -> &mut PolicyProbe {
        &mut self.object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(object: &str) -> Probe {
        let text = format!(
            r#"{{"metadata": {{"name": "p", "managedFields": [{{"fieldsV1": {object}}}]}}, "status": {{"summary": "0/1"}}, "spec": {{
                "cases": [{{"name": "c", "request": {{"object": {object}}},
                "expect": {{"decision": "Deny"}}}}], "policyName": "a"}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_probe_is_read_whole() {
        let probe = read(r#"{"kind": "Deployment"}"#);
        assert_eq!(probe.problem, None);
        assert_eq!(probe.spec.policy_name, "a");
        assert_eq!(probe.spec.cases.len(), 1);
        assert_eq!(probe.meta().name.as_deref(), Some("p"));
        assert_eq!(
            probe.status.as_ref().unwrap().summary.as_deref(),
            Some("0/1")
        );
    }

    #[test]
    fn one_that_nests_too_deep_is_still_a_probe_of_its_policy() {
        let depth = 9000;
        let probe = read(&format!(
            "{}1{}",
            r#"{"a":"#.repeat(depth),
            "}".repeat(depth)
        ));
        let problem = probe.problem.as_deref().unwrap();
        assert!(
            problem.starts_with("its spec cannot be read: recursion limit exceeded"),
            "{problem}"
        );
        assert_eq!(probe.spec.policy_name, "a");
        assert_eq!(probe.meta().name.as_deref(), Some("p"));
        assert!(probe.status.is_some());
    }
    fn object(spec: &str, rest: &str) -> Probe {
        let text = format!(r#"{{"metadata": {{"name": "p"}}, "spec": {spec}{rest}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn null_in_a_spec_is_absence() {
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
        // An object holds what its author likes.
        assert_eq!(case.request.object, Some(serde_json::json!({"data": null})));
    }

    #[test]
    fn a_probe_of_a_target_is_not_taken_for_one_of_a_policy() {
        let spec = r#"{"target": {"kind": "MutatingAdmissionPolicy", "name": "m"}, "cases": [
            {"name": "c", "request": {"object": {}}, "expect": {"object": {"a": null}, "patch": [
                {"op": "add", "path": "/a", "value": null}]}}]}"#;
        let probe = object(spec, "");
        assert_eq!(probe.problem, None);
        assert_eq!(probe.spec.policy_name, "mutatingadmissionpolicies/m");
        assert_eq!(
            probe.spec.cases[0].expect.object,
            Some(serde_json::json!({"a": null}))
        );
    }

    #[test]
    fn what_does_not_go_with_a_target_is_named() {
        let table = [
            (r#""policyName": null"#, r#"{"applies": true}"#, None),
            (
                r#""policyName": "a""#,
                r#"{"applies": true}"#,
                Some("spec.policyName: is for validating policies"),
            ),
            (
                r#""params": null"#,
                r#"{"decision": "Allow"}"#,
                Some("spec.cases[0].expect.decision: a mutating policy validates nothing"),
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
            problem.starts_with("spec.target.kind: is `ConfigMap`, and must be one of"),
            "{problem}"
        );
    }

    #[test]
    fn a_spec_of_any_other_shape_costs_that_probe_alone() {
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
            assert_eq!(probe.meta().name.as_deref(), Some("p"));
        }
        let without: Probe = serde_json::from_str(r#"{"metadata": {"name": "p"}}"#).unwrap();
        assert!(without.problem.is_some());
    }

    #[test]
    fn metadata_of_any_shape_is_read_as_far_as_it_goes() {
        for metadata in ["null", "7", "{}", r#"{"name": 7, "generation": "x"}"#] {
            let text = format!(r#"{{"metadata": {metadata}, "spec": {{}}}}"#);
            let probe: Probe = serde_json::from_str(&text).unwrap();
            assert_eq!(probe.meta().name, None, "{metadata}");
        }
        let text = r#"{"metadata": {"name": "p", "generation": null, "uid": {}}}"#;
        let probe: Probe = serde_json::from_str(text).unwrap();
        assert_eq!(probe.meta().name.as_deref(), Some("p"));
    }

    #[test]
    fn a_status_is_read_as_far_as_it_is_ours() {
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
