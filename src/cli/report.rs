//! Policies and their status as plain structs, and the documented shape of `-o json|yaml`.
//!
//! Takes API objects; knows no cluster, no clock and no terminal. What the status of a policy is
//! worth is decided here, once, for the table, for programs and for the exit status alike.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    ParamKind, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

use super::controller::ControllerReport;
use super::error::CliError;
use super::exit::Exit;
use super::yaml_text;
use crate::policy::subject::SubjectKind;
use crate::status::compute::DesiredStatus;
use crate::status::exclusion::Exclusion;

/// The kind of most policies.
const VALIDATING: &str = "ValidatingAdmissionPolicy";

/// The condition that sums up the others; only vap-status-controller writes it.
const READY: &str = "Ready";

/// The condition that says that waiting for Ready is in vain; there only while it is True.
const STALLED: &str = "Stalled";

/// The condition types of ours in the order in which to read them; others follow by name.
const ORDER: [&str; 8] = [
    READY,
    "Compiled",
    "TypeChecked",
    "ResourcesMatched",
    "ParamsResolved",
    "Bound",
    "ProbesPassed",
    STALLED,
];

/// Output of `kubectl vap status -o json`.
///
/// The shape is stable: fields may be added, none is removed or changes its meaning while
/// `apiVersion` stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `StatusReport`.
    pub kind: &'static str,
    /// When the controller was last in step with the cluster; null where nobody looked.
    pub controller: Option<ControllerReport>,
    /// How many policies are in which state.
    pub summary: Summary,
    /// In order of name, or of the names that were given.
    pub policies: Vec<PolicyReport>,
    /// The gaps: parts of the cluster that a judgement needs, and that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
    /// The policies that were deleted, while changes are watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
}

/// How many policies are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All policies listed.
    pub total: usize,
    /// Those of [`State::Ready`].
    pub ready: usize,
    /// Those of [`State::NotReady`].
    pub not_ready: usize,
    /// Those of [`State::Unknown`].
    pub unknown: usize,
    /// Those of [`State::Stale`].
    pub stale: usize,
    /// Those of [`State::NoStatus`].
    pub no_status: usize,
    /// Those of [`State::Excluded`].
    pub excluded: usize,
    /// Those that were judged by the plugin.
    pub checked_by_plugin: usize,
}

/// Who has judged a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Judge {
    /// vap-status-controller, by what it has written.
    #[serde(rename = "controller")]
    Controller,
    /// The plugin, against the cluster's schemas.
    #[serde(rename = "kubectl-vap")]
    Plugin,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    /// `ValidatingAdmissionPolicy` or `MutatingAdmissionPolicy`.
    pub kind: &'static str,
    /// `metadata.name`.
    pub name: String,
    /// State that the status reports, unless it is outdated, or that the plugin has found.
    pub state: State,
    /// Who has found the state; null where nobody has.
    pub checked_by: Option<Judge>,
    /// State by what the controller has written.
    pub written_state: State,
    /// `metadata.generation`.
    pub generation: i64,
    /// The generation that the conditions are about; null without a status.
    pub observed_generation: Option<i64>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `spec.failurePolicy`, with the API server's default.
    pub failure_policy: String,
    /// `spec.paramKind` as `<apiVersion> <kind>`; null without one.
    pub param_kind: Option<String>,
    /// True if types have been checked, by whomever: `status.typeChecking` is there.
    pub type_checking_completed: bool,
    /// All of `status.conditions`, ours first.
    pub conditions: Vec<ConditionReport>,
    /// All of `status.typeChecking.expressionWarnings`.
    pub expression_warnings: Vec<WarningReport>,
}

/// States of a policy, derived from its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// `Ready` is True.
    Ready,
    /// `Ready` is False.
    NotReady,
    /// `Ready` is Unknown.
    Unknown,
    /// `Ready` is of an earlier generation than the policy.
    Stale,
    /// There is no `Ready`: vap-status-controller has not looked at the policy.
    NoStatus,
    /// There is no `Ready`, and there will be none: the options of vap-status-controller leave the policy alone, by
    /// what its Lease says.
    Excluded,
}

impl State {
    /// The state that the condition `Ready` reports.
    fn of(ready: &ConditionReport) -> Self {
        match ready.status.as_str() {
            "True" => Self::Ready,
            "False" => Self::NotReady,
            _ => Self::Unknown,
        }
    }
}

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionReport {
    /// `Ready`, `Compiled` and so on.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word in CamelCase.
    pub reason: String,
    /// Human-readable.
    pub message: String,
    /// Since when `status` is what it is; null where the plugin has judged.
    pub last_transition_time: Option<Timestamp>,
    /// The generation it is about.
    pub observed_generation: Option<i64>,
}

/// One warning about an expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningReport {
    /// `spec.validations[0].expression` and the like.
    pub field_ref: String,
    /// Text of the warning, with the lines that point at the mistake.
    pub warning: String,
}

impl StatusReport {
    /// The report about these policies, in their order, where the controller leaves none alone.
    #[must_use]
    pub fn of(policies: &[ValidatingAdmissionPolicy]) -> Self {
        Self::beside(policies, &Exclusion::default())
    }

    /// The same with objects of another kind behind, each with the status that its object holds.
    #[must_use]
    pub(super) fn with_mutating(
        self,
        kind: SubjectKind,
        mutating: &[ValidatingAdmissionPolicy],
        exclusion: &Exclusion,
    ) -> Self {
        let mut of_mutating = Self::beside(mutating, exclusion).policies;
        for policy in &mut of_mutating {
            policy.kind = kind.as_str();
        }
        let mut policies = self.policies;
        policies.extend(of_mutating);
        let all = Self::new(policies);
        Self {
            controller: self.controller,
            gaps: self.gaps,
            deleted: self.deleted,
            ..all
        }
    }

    /// The report about these policies, in their order, where the controller leaves some alone.
    #[must_use]
    pub fn beside(policies: &[ValidatingAdmissionPolicy], exclusion: &Exclusion) -> Self {
        let report = |policy| {
            let mut report = PolicyReport::of(policy);
            if report.state == State::NoStatus && exclusion.excludes(&policy.metadata) {
                report.state = State::Excluded;
                report.written_state = State::Excluded;
            }
            report
        };
        Self::new(policies.iter().map(report).collect())
    }

    /// The names of the policies that the controller has not judged as they are, although it may be meant to.
    pub fn unjudged(&self) -> impl Iterator<Item = &str> {
        let policies = self.policies.iter();
        let unjudged =
            policies.filter(|policy| matches!(policy.state, State::NoStatus | State::Stale));
        let unjudged = unjudged.filter(|policy| policy.kind == VALIDATING);
        unjudged.map(|policy| policy.name.as_str())
    }

    /// The report with what the plugin has found of policies, by name.
    #[must_use]
    pub fn judged(mut self, judged: &BTreeMap<String, DesiredStatus>) -> Self {
        for policy in &mut self.policies {
            if let Some(status) = judged.get(&policy.name)
                && policy.kind == VALIDATING
            {
                policy.judge(status);
            }
        }
        let summary = Self::new(std::mem::take(&mut self.policies));
        Self {
            controller: self.controller,
            gaps: self.gaps,
            deleted: self.deleted,
            ..summary
        }
    }

    /// The report about policies of which reports were made.
    pub(super) fn new(policies: Vec<PolicyReport>) -> Self {
        let mut summary = Summary {
            total: policies.len(),
            ..Summary::default()
        };
        for policy in &policies {
            summary.checked_by_plugin += usize::from(policy.checked_by == Some(Judge::Plugin));
            *match policy.state {
                State::Ready => &mut summary.ready,
                State::NotReady => &mut summary.not_ready,
                State::Unknown => &mut summary.unknown,
                State::Stale => &mut summary.stale,
                State::NoStatus => &mut summary.no_status,
                State::Excluded => &mut summary.excluded,
            } += 1;
        }
        Self {
            api_version: "cli.vap-status.dev/v1alpha1",
            kind: "StatusReport",
            controller: None,
            summary,
            policies,
            gaps: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// A finding is every policy that is not known to be Ready as it stands, but for those that nobody is to judge.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if !self.gaps.is_empty() {
            Exit::WrongUse
        } else if self.summary.ready + self.summary.excluded == self.summary.total {
            Exit::Clean
        } else {
            Exit::Findings
        }
    }

    /// As JSON with a newline at the end.
    pub(crate) fn to_json(&self) -> Result<String, CliError> {
        super::json(self)
    }

    /// As YAML, of the same shape.
    pub(crate) fn to_yaml(&self) -> Result<String, CliError> {
        yaml_text::to_string(self).map_err(|error| CliError::Format {
            format: "yaml",
            reason: error.to_string(),
        })
    }
}

impl PolicyReport {
    /// The report about one policy.
    #[must_use]
    pub fn of(policy: &ValidatingAdmissionPolicy) -> Self {
        let metadata = &policy.metadata;
        let spec = policy.spec.as_ref();
        let none = ValidatingAdmissionPolicyStatus::default();
        let status = policy.status.as_ref().unwrap_or(&none);
        let generation = metadata.generation.unwrap_or(0);

        let mut conditions: Vec<_> = status
            .conditions
            .iter()
            .flatten()
            .map(ConditionReport::of)
            .collect();
        conditions.sort_by(|left, right| left.place().cmp(&right.place()));
        let ready = conditions.iter().find(|condition| condition.type_ == READY);
        // Upstream's controller raises `status.observedGeneration` as well, and before ours has
        // looked at the change: what the condition itself says comes first.
        let observed_generation = ready
            .and_then(|ready| ready.observed_generation)
            .or(status.observed_generation);
        let state = match ready {
            None => State::NoStatus,
            Some(_) if observed_generation.is_some_and(|observed| observed < generation) => {
                State::Stale
            }
            Some(ready) => State::of(ready),
        };
        let is_judged = matches!(state, State::Ready | State::NotReady | State::Unknown);

        Self {
            kind: VALIDATING,
            name: metadata.name.clone().unwrap_or_default(),
            state,
            checked_by: is_judged.then_some(Judge::Controller),
            written_state: state,
            generation,
            observed_generation,
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            failure_policy: spec
                .and_then(|spec| spec.failure_policy.clone())
                .unwrap_or_else(|| "Fail".to_owned()),
            param_kind: spec
                .and_then(|spec| spec.param_kind.as_ref())
                .map(param_kind),
            type_checking_completed: status.type_checking.is_some(),
            conditions,
            expression_warnings: status
                .type_checking
                .iter()
                .filter_map(|checking| checking.expression_warnings.as_ref())
                .flatten()
                .map(|warning| WarningReport {
                    field_ref: warning.field_ref.clone(),
                    warning: warning.warning.clone(),
                })
                .collect(),
        }
    }

    /// The name as it is shown, where there are policies of both kinds.
    #[must_use]
    pub fn shown_name(&self) -> String {
        if self.kind == VALIDATING {
            self.name.clone()
        } else {
            format!("{}/{}", self.kind.to_ascii_lowercase(), self.name)
        }
    }

    /// Takes what the plugin has found in the place of what the controller has written, or has not. Conditions of
    /// others stay.
    fn judge(&mut self, status: &DesiredStatus) {
        let is_other = |condition: &ConditionReport| !ORDER.contains(&condition.type_.as_str());
        self.conditions.retain(is_other);
        let found = status.conditions.iter().map(|condition| ConditionReport {
            last_transition_time: None,
            ..ConditionReport::of(condition)
        });
        self.conditions.extend(found);
        self.conditions
            .sort_by(|left, right| left.place().cmp(&right.place()));
        self.observed_generation = Some(self.generation);
        self.checked_by = Some(Judge::Plugin);
        self.state = self.ready().map_or(State::Unknown, State::of);
        self.type_checking_completed = true;
        let warnings = status.expression_warnings.iter();
        let warnings = warnings.map(|warning| WarningReport {
            field_ref: warning.field_ref.clone(),
            warning: warning.warning.clone(),
        });
        self.expression_warnings = warnings.collect();
    }

    /// The condition of this type.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&ConditionReport> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    }

    /// The condition that sums up the others.
    #[must_use]
    pub fn ready(&self) -> Option<&ConditionReport> {
        self.condition(READY)
    }
}

impl ConditionReport {
    /// The report about one condition.
    fn of(condition: &Condition) -> Self {
        Self {
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            last_transition_time: Some(condition.last_transition_time.0),
            observed_generation: condition.observed_generation,
        }
    }

    /// Reports whether this is the condition that sums up the others.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.type_ == READY
    }

    /// Reports whether this is the condition that says that waiting is in vain, whose True is nothing good.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.type_ == STALLED
    }

    /// Where it stands among others.
    fn place(&self) -> (usize, &str) {
        place(&self.type_)
    }
}

/// Where a condition type stands among others: ours in their order, then all others by name.
pub(crate) fn place(type_: &str) -> (usize, &str) {
    let position = ORDER.iter().position(|known| *known == type_);
    (position.unwrap_or(ORDER.len()), type_)
}

/// A paramKind in one line.
fn param_kind(kind: &ParamKind) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{} {}", part(&kind.api_version), part(&kind.kind))
}
