//! The changes of an upgrade, and the documented format of `-o json`.

use serde::Serialize;

use crate::cli::check::finding::{Finding, Severity};
use crate::cli::diff::report::{Subject, Unread};
use crate::cli::exit::Exit;

/// Output of `kubectl vap upgrade-check -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `UpgradeReport`.
    pub kind: &'static str,
    /// The version before the upgrade.
    pub from: String,
    /// The version after the upgrade.
    pub to: String,
    /// The version whose schemas are used for both versions.
    pub schemas: String,
    /// The number of policies.
    pub policies: usize,
    /// The number of requests for which both versions were evaluated.
    pub requests: u64,
    /// The changes, the most important first.
    pub changes: Vec<Change>,
    /// The first 100 subjects that could not be read or evaluated.
    pub unread: Vec<Unread>,
    /// Problems with the input, and data of the cluster that could not be read.
    pub findings: Vec<Finding>,
}

/// The effect of a change, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Class {
    /// A request is denied that was allowed before.
    Denies,
    /// A request is allowed that was denied before.
    Admits,
    /// An evaluation fails now, and the decision is the same.
    Errors,
    /// The new API server rejects the policy when it is created or updated.
    Refused,
    /// The new API server accepts the policy, the old one rejects it.
    Taken,
    /// Another difference of an evaluation with the same decision.
    Result,
    /// A message.
    Text,
}

impl Class {
    /// Returns the name in the output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denies => "DENIES",
            Self::Admits => "ADMITS",
            Self::Errors => "ERRORS",
            Self::Refused => "REFUSED",
            Self::Taken => "TAKEN",
            Self::Result => "RESULT",
            Self::Text => "TEXT",
        }
    }
}

/// A change of a policy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The effect.
    pub class: Class,
    /// The name of the policy.
    pub policy: String,
    /// The field, such as `spec.validations[0].expression`; absent for the policy as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The result on the old version.
    pub from: String,
    /// The result on the new version.
    pub to: String,
    /// The problem, if `check` reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The source of the change: `evaluation` or `check`.
    pub source: &'static str,
    /// The first 100 requests that show the change.
    pub subjects: Vec<Subject>,
}

impl UpgradeReport {
    /// Returns 0 without changes, 1 with changes, and 2 if the input has an error or no policy.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let has_error = (self.findings.iter()).any(|it| it.severity == Severity::Error);
        if has_error || self.policies == 0 {
            Exit::Failed
        } else if self.changes.is_empty() {
            Exit::Clean
        } else {
            Exit::Findings
        }
    }
}
