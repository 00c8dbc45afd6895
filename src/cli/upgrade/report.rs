//! The changes of an upgrade, and the documented format of `-o json`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::check::finding::{Finding, Severity, WitnessShape};
use crate::cli::exit::Exit;
use crate::policy::runtime_errors::Witness;

/// Output of `kubectl vap upgrade-check -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `UpgradeReport`.
    pub kind: &'static str,
    /// The version before the upgrade, such as `1.36.4`.
    pub from: String,
    /// The version after the upgrade.
    pub to: String,
    /// The version of the schemas with which the new version is evaluated. The old version has its own schemas.
    pub schemas: String,
    /// The address of the API server, if a cluster was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The counts of policies, requests and changes.
    pub summary: UpgradeSummary,
    /// The changes, sorted by class (the most important class first) and then by policy.
    pub changes: Vec<Change>,
    /// The policies for which an effect of the upgrade is possible but unknown.
    pub undecided: Vec<Undecided>,
    /// The policies that are not compared, because the old version or both versions reject them.
    pub rejected: Vec<Undecided>,
    /// The CustomResourceDefinitions and webhook configurations whose expressions are not evaluated. The rules for
    /// creating them are compared.
    pub not_compared: Vec<NotCompared>,
    /// The first 100 probe cases and objects that could not be evaluated.
    pub unread: Vec<Unevaluated>,
    /// Problems with the input, and data of the cluster that could not be read.
    pub findings: Vec<Finding>,
}

/// The counts of an upgrade report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeSummary {
    /// The policies of the input.
    pub policies: usize,
    /// The policies with a change of the classes DENIES, ADMITS, ERRORS, REFUSED, MUTATES or COSTS.
    pub changed: usize,
    /// The policies that have only changes of the classes TAKEN, AUDIT or TEXT, and are not undecided.
    pub informed: usize,
    /// The policies that have no change and were compared for at least one request.
    pub unchanged: usize,
    /// The policies for which an effect of the upgrade is possible but unknown. They have no change, or only changes of
    /// the classes AUDIT and TEXT.
    pub undecided: usize,
    /// The policies that both versions reject. They are not evaluated.
    pub rejected: usize,
    /// The evaluations of policies under both versions. A request that several policies match counts for each of them.
    pub comparisons: u64,
    /// The generated requests among them.
    pub generated: u64,
    /// The cases of probes that were read.
    pub cases: u64,
    /// The objects that were read.
    pub objects: u64,
    /// The probe cases and objects that could not be evaluated.
    pub unread: u64,
    /// Findings that are errors.
    pub errors: usize,
}

/// The effect of a change, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Class {
    /// A request is denied that was admitted before.
    Denies,
    /// A request is admitted that was denied before, or a validating webhook is no longer called.
    Admits,
    /// An evaluation fails in only one version, and the decision is the same.
    Errors,
    /// The new version rejects the policy when it is created or changed.
    Refused,
    /// A mutating policy changes the object differently, or a mutating webhook is no longer called.
    Mutates,
    /// The estimated cost is near a limit only in the new version.
    Costs,
    /// The new version accepts the policy, and the old version rejects it.
    Taken,
    /// The audit annotations or warnings differ.
    Audit,
    /// The text of a message differs.
    Text,
}

impl Class {
    /// Returns the name in the output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Denies => "DENIES",
            Self::Admits => "ADMITS",
            Self::Errors => "ERRORS",
            Self::Refused => "REFUSED",
            Self::Mutates => "MUTATES",
            Self::Costs => "COSTS",
            Self::Taken => "TAKEN",
            Self::Audit => "AUDIT",
            Self::Text => "TEXT",
        }
    }

    /// Returns true if the class changes requests or policies, so the exit status is 1.
    #[must_use]
    pub const fn matters(self) -> bool {
        !matches!(self, Self::Taken | Self::Audit | Self::Text)
    }
}

/// A change of a policy.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The index of the policy. `None` for a binding.
    #[serde(skip)]
    pub(super) index: Option<usize>,
    /// The effect.
    pub class: Class,
    /// The name of the policy. The name of a mutating policy has the prefix `MutatingAdmissionPolicy/`. If a version
    /// rejects another object: `binding`, `CustomResourceDefinition` or `webhook configuration`, and its name.
    pub policy: String,
    /// The file and line of the policy; absent for a policy of a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The binding for which generated requests were evaluated; absent if the policy has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// The field, such as `spec.validations[0].expression`; absent for the policy as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Other fields with an error, for the classes REFUSED and TAKEN.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_fields: Vec<String>,
    /// The part of the expression that is affected; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// The result of the old version: `true`, `false`, `error`, `not matched`, `accepted`, `rejected`, a cost, or another
    /// value.
    pub old: String,
    /// The message of the old version; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_message: Option<String>,
    /// The result of the new version.
    pub new: String,
    /// The message of the new version; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_message: Option<String>,
    /// The failurePolicy of the policy, `Fail` or `Ignore`.
    pub failure_policy: String,
    /// The cause. Absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// How to write the policy for both versions; absent if there is no known fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// True if `kubectl vap check --fix` applies the fix.
    pub fixable: bool,
    /// The number of probe cases and objects with this change.
    pub requests: u64,
    /// The first 100 probe cases and objects with this change.
    pub subjects: Vec<Subject>,
    /// A generated request with this change.
    #[schemars(with = "Option<WitnessShape>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Box<Witness>>,
}

/// The cause of a change.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The first release with the change, such as `Kubernetes 1.37 (cel-go 0.28)`.
    pub since: String,
    /// The identifier of the change; absent if the change is not in the table of `docs/versions.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<&'static str>,
    /// The change, as Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'static str>,
    /// The upstream file and symbol with the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'static str>,
}

/// A probe case or an object for which a result differs.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// An object such as `Deployment team/web`, or a case such as `probe replicas, case many`.
    pub name: String,
    /// The file and line, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A policy for which an effect of the upgrade is possible but unknown, or that is not compared.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undecided {
    /// The index of the policy in the input.
    #[serde(skip)]
    pub index: usize,
    /// The name of the policy.
    pub policy: String,
    /// The file and line of the policy; absent for a policy of a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The reason why the effect is unknown, or why the policy is not compared.
    pub reason: String,
    /// True if the new version does not serve a resource in the rules. The policy certainly loses requests.
    pub unserved: bool,
}

/// An object whose expressions are not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotCompared {
    /// The kind, such as `CustomResourceDefinition`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The file and line.
    pub place: String,
    /// The part that is not evaluated.
    pub reason: String,
}

/// A probe case or an object that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Unevaluated {
    /// The name of the case or object, with its file and line if known.
    pub name: String,
    /// The reason why it could not be evaluated.
    pub reason: String,
}

impl UpgradeReport {
    /// Returns 2 if the input has an error or nothing was compared, 1 for changes of requests or policies, and otherwise
    /// 0. With `is_strict`, returns 2 instead of 0 if a policy is undecided.
    #[must_use]
    pub fn exit(&self, is_strict: bool) -> Exit {
        let has_change = self.changes.iter().any(|change| change.class.matters())
            || self.undecided.iter().any(|it| it.unserved);
        if self.summary.errors > 0 || self.is_empty() {
            Exit::Failed
        } else if has_change {
            Exit::Findings
        } else if is_strict && !self.undecided.is_empty() {
            Exit::Failed
        } else {
            Exit::Clean
        }
    }

    /// Returns true if no policy was evaluated for any request, and there is no change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summary.comparisons == 0 && self.changes.is_empty()
    }

    pub(super) fn count_errors(&mut self) {
        let is_error = |finding: &&Finding| finding.severity == Severity::Error;
        self.summary.errors = self.findings.iter().filter(is_error).count();
    }
}
