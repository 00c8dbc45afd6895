//! A probe as the API server tells it.
//!
//! The API server takes objects that nest deeper than we read them, and a probe holds any object that its
//! author likes. One that cannot be read must not stop the watch of the others, so that the spec is taken
//! as text first, and of the metadata only what is needed.

use std::borrow::Cow;
use std::ops::Deref;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::probe::api::{PolicyProbe, PolicyProbeSpec};

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
    #[serde(default)]
    metadata: Metadata,
    spec: Box<RawValue>,
    #[serde(default)]
    status: Option<Box<RawValue>>,
}

/// What is read of the metadata: `managedFields` nest as deep as the spec does.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    uid: Option<String>,
    generation: Option<i64>,
    resource_version: Option<String>,
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

/// What is read of a spec in any case.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    #[serde(default)]
    policy_name: String,
}

impl From<Received> for Probe {
    fn from(received: Received) -> Self {
        let text = received.spec.get();
        let (spec, problem) = match serde_json::from_str(text) {
            Ok(spec) => (spec, None),
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
        // The status is ours; one that we cannot read is written anew.
        object.status = received
            .status
            .and_then(|status| serde_json::from_str(status.get()).ok());
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
}
