//! Parses the expected conditions in the annotations of sample policies, and compares the actual conditions with them.

use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The annotation with the expected conditions: `<type>=<status>/<reason>`, separated by spaces.
pub const EXPECT: &str = "samples.vap-status.dev/expect";
/// The annotation with the expected conditions after the live change. If absent, the conditions must not change.
pub const EXPECT_LATE: &str = "samples.vap-status.dev/expect-late";

/// The time of a check in the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After the samples are installed.
    First,
    /// After the live change.
    Late,
}

/// One expected condition of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    type_: String,
    status: String,
    reason: String,
}

impl Expectation {
    /// Returns true if `Ready` is expected to be True.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.type_ == "Ready" && self.status == "True"
    }

    fn is_met_by(&self, condition: &Condition, generation: Option<i64>) -> bool {
        condition.type_ == self.type_
            && condition.status == self.status
            && condition.reason == self.reason
            && condition.observed_generation == generation
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}/{}", self.type_, self.status, self.reason)
    }
}

/// Parses the value of an annotation.
///
/// # Errors
/// Returns an error if the value is empty or malformed.
pub fn parse(text: &str) -> Result<Vec<Expectation>> {
    let mut expectations = Vec::new();
    for word in text.split_whitespace() {
        let parts = word.split_once('=').and_then(|(type_, rest)| {
            let (status, reason) = rest.split_once('/')?;
            Some((type_, status, reason))
        });
        let Some((type_, status @ ("True" | "False" | "Unknown"), reason)) = parts else {
            bail!("`{word}` does not have the form <type>=True|False|Unknown/<reason>");
        };
        ensure!(
            !type_.is_empty() && !reason.is_empty(),
            "`{word}` lacks a type or a reason"
        );
        expectations.push(Expectation {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
        });
    }
    ensure!(!expectations.is_empty(), "nothing is expected");
    Ok(expectations)
}

/// Returns the expected conditions of a sample.
///
/// # Errors
/// Returns an error if the annotation is missing or malformed.
pub fn expectations(
    policy: &ValidatingAdmissionPolicy,
    moment: Moment,
) -> Result<Vec<Expectation>> {
    let name = name(policy);
    let annotation = |key: &str| policy.metadata.annotations.as_ref()?.get(key);
    let late = match moment {
        Moment::First => None,
        Moment::Late => annotation(EXPECT_LATE),
    };
    let text = late
        .or_else(|| annotation(EXPECT))
        .with_context(|| format!("{name} has no annotation {EXPECT}"))?;
    parse(text).with_context(|| format!("annotation {EXPECT} of {name}"))
}

/// Describes each expected condition that the policy does not have. The conditions must be of the policy's current
/// generation.
///
/// # Errors
/// Returns an error like [`expectations`].
pub fn differences(policy: &ValidatingAdmissionPolicy, moment: Moment) -> Result<Vec<String>> {
    let conditions = policy
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let generation = policy.metadata.generation;
    let mut lines = Vec::new();
    for expectation in expectations(policy, moment)? {
        let condition = conditions
            .iter()
            .find(|condition| condition.type_ == expectation.type_);
        let is = match condition {
            Some(condition) if expectation.is_met_by(condition, generation) => continue,
            Some(condition) if condition.observed_generation == generation => {
                format!(
                    "is {}/{}: {}",
                    condition.status, condition.reason, condition.message
                )
            }
            Some(_) => "is of another generation".to_owned(),
            None => "is not there".to_owned(),
        };
        lines.push(format!("{}: want {expectation}, {is}", name(policy)));
    }
    Ok(lines)
}

/// Returns the policy's name.
#[must_use]
pub fn name(policy: &ValidatingAdmissionPolicy) -> &str {
    policy.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(observed: i64) -> ValidatingAdmissionPolicy {
        serde_json::from_value(json!({
            "metadata": {"name": "sample", "generation": 2, "annotations": {
                EXPECT: "Ready=False/ParamKindNotFound",
                EXPECT_LATE: "Ready=True/Ready Compiled=True/AllExpressionsCompile",
            }},
            "status": {"conditions": [{
                "type": "Ready", "status": "False", "reason": "ParamKindNotFound",
                "message": "it is not served", "lastTransitionTime": "2026-03-01T12:00:00Z",
                "observedGeneration": observed,
            }]},
        }))
        .unwrap()
    }

    #[test]
    fn unexpected_or_outdated_conditions_are_reported() {
        let none: [String; 0] = [];
        assert_eq!(differences(&sample(2), Moment::First).unwrap(), none);
        assert_eq!(
            differences(&sample(1), Moment::First).unwrap(),
            ["sample: want Ready=False/ParamKindNotFound, is of another generation"]
        );
        assert_eq!(
            differences(&sample(2), Moment::Late).unwrap(),
            [
                "sample: want Ready=True/Ready, is False/ParamKindNotFound: it is not served",
                "sample: want Compiled=True/AllExpressionsCompile, is not there",
            ]
        );
    }

    #[test]
    fn malformed_annotation_is_an_error() {
        for text in [
            "",
            "Ready",
            "Ready=True",
            "Ready=Yes/Ready",
            "=True/Ready",
            "Ready=True/",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let mut silent = sample(2);
        silent.metadata.annotations = None;
        assert!(differences(&silent, Moment::First).is_err());
    }
}
