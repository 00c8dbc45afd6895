//! The report of `kubectl vap status`, which is also the documented format of `-o json|yaml`.
//!
//! The state of a policy is derived here from its status, for all output formats and the exit status.

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
use crate::status::condition::ConditionType;
use crate::status::exclusion::Exclusion;

const VALIDATING: &str = "ValidatingAdmissionPolicy";

/// The type of the condition that summarizes the others. Only vap-status-controller writes it.
const READY: &str = "Ready";

/// The type of the condition for policies that only an edit can make Ready. It exists only while it is True.
const STALLED: &str = "Stalled";

/// Output of `kubectl vap status -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `StatusReport`.
    pub kind: &'static str,
    /// The version that the API server reports, such as `v1.36.3`; null if it was not read.
    pub kubernetes_version: Option<String>,
    /// The state of the controller; null if it was not read.
    pub controller: Option<ControllerReport>,
    /// The number of policies by state.
    pub summary: Summary,
    /// The policies, sorted by name, or in the order of the names in the arguments.
    pub policies: Vec<PolicyReport>,
    /// The cluster data that an evaluation needs but that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
    /// The policies that were deleted, with `--watch`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
}

/// The number of policies by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All policies listed.
    pub total: usize,
    /// Policies in [`State::Ready`].
    pub ready: usize,
    /// Policies in [`State::NotReady`].
    pub not_ready: usize,
    /// Policies in [`State::Unknown`].
    pub unknown: usize,
    /// Policies in [`State::Stale`].
    pub stale: usize,
    /// Policies in [`State::NoStatus`].
    pub no_status: usize,
    /// Policies in [`State::Excluded`].
    pub excluded: usize,
    /// Policies that the plugin evaluated.
    pub checked_by_plugin: usize,
}

/// The source of a policy's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StatusSource {
    /// The conditions of vap-status-controller.
    #[serde(rename = "controller")]
    Controller,
    /// An evaluation by the plugin, with the schemas of the cluster.
    #[serde(rename = "kubectl-vap")]
    Plugin,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    /// `ValidatingAdmissionPolicy`, or another kind that the controller watches, such as `MutatingAdmissionPolicy`.
    pub kind: &'static str,
    /// `metadata.name`.
    pub name: String,
    /// The state according to the current status, or to the plugin's evaluation.
    pub state: State,
    /// The source of the state; null if there is none.
    pub checked_by: Option<StatusSource>,
    /// The state according to the controller's conditions.
    pub written_state: State,
    /// `metadata.generation`.
    pub generation: i64,
    /// The generation of the conditions; null without a status.
    pub observed_generation: Option<i64>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `spec.failurePolicy`, with the API server's default.
    pub failure_policy: String,
    /// `spec.paramKind` as `<apiVersion> <kind>`; null without one.
    pub param_kind: Option<String>,
    /// True if `status.typeChecking` is set, by any controller.
    pub type_checking_completed: bool,
    /// All of `status.conditions`, first those of vap-status-controller.
    pub conditions: Vec<ConditionReport>,
    /// All of `status.typeChecking.expressionWarnings`.
    pub expression_warnings: Vec<WarningReport>,
}

/// The state of a policy, derived from its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// `Ready` is True.
    Ready,
    /// `Ready` is False.
    NotReady,
    /// `Ready` is Unknown.
    Unknown,
    /// `Ready` is for an earlier generation of the policy.
    Stale,
    /// There is no `Ready`: vap-status-controller has not evaluated the policy.
    NoStatus,
    /// There is no `Ready`, because the options of vap-status-controller exclude the policy, according to its Lease.
    Excluded,
}

impl State {
    fn from_ready(ready: &ConditionReport) -> Self {
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
    /// The type of the condition, such as `Ready` or `Compiled`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word in CamelCase.
    pub reason: String,
    /// Human-readable.
    pub message: String,
    /// The time of the last change of `status`; null if the plugin evaluated the policy.
    pub last_transition_time: Option<Timestamp>,
    /// The generation of the policy for which the condition was computed.
    pub observed_generation: Option<i64>,
}

/// One warning about an expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningReport {
    /// The field, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The message of the warning, with the lines that point at the error.
    pub warning: String,
}

impl StatusReport {
    /// Creates the report on policies. No policy counts as excluded.
    #[must_use]
    pub fn from_policies(policies: &[ValidatingAdmissionPolicy]) -> Self {
        Self::with_exclusion(policies, &Exclusion::default())
    }

    /// Appends objects of an opt-in kind, which are represented as validating policies with their status.
    #[must_use]
    pub(super) fn with_opt_in_kind(
        self,
        kind: SubjectKind,
        others: &[ValidatingAdmissionPolicy],
        exclusion: &Exclusion,
    ) -> Self {
        let mut added = Self::with_exclusion(others, exclusion).policies;
        for policy in &mut added {
            policy.kind = kind.as_str();
        }
        let mut policies = self.policies;
        policies.extend(added);
        let all = Self::new(policies);
        Self {
            controller: self.controller,
            gaps: self.gaps,
            deleted: self.deleted,
            ..all
        }
    }

    /// Creates the report on policies. A policy without a status is [`State::Excluded`] if `exclusion` selects it.
    #[must_use]
    pub fn with_exclusion(policies: &[ValidatingAdmissionPolicy], exclusion: &Exclusion) -> Self {
        let report = |policy| {
            let mut report = PolicyReport::new(policy);
            if report.state == State::NoStatus && exclusion.excludes(&policy.metadata) {
                report.state = State::Excluded;
                report.written_state = State::Excluded;
            }
            report
        };
        Self::new(policies.iter().map(report).collect())
    }

    /// Returns the names of the validating policies whose status is missing or stale. Excluded policies are omitted.
    pub fn without_current_status(&self) -> impl Iterator<Item = &str> {
        let policies = self.policies.iter();
        let selected =
            policies.filter(|policy| matches!(policy.state, State::NoStatus | State::Stale));
        let selected = selected.filter(|policy| policy.kind == VALIDATING);
        selected.map(|policy| policy.name.as_str())
    }

    /// Replaces the status of each validating policy in `statuses`, which maps names to statuses that the plugin has
    /// computed.
    #[must_use]
    pub fn with_plugin_statuses(mut self, statuses: &BTreeMap<String, DesiredStatus>) -> Self {
        for policy in &mut self.policies {
            if let Some(status) = statuses.get(&policy.name)
                && policy.kind == VALIDATING
            {
                policy.apply_plugin_status(status);
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

    pub(super) fn new(policies: Vec<PolicyReport>) -> Self {
        let mut summary = Summary {
            total: policies.len(),
            ..Summary::default()
        };
        for policy in &policies {
            summary.checked_by_plugin +=
                usize::from(policy.checked_by == Some(StatusSource::Plugin));
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
            kubernetes_version: None,
            controller: None,
            summary,
            policies,
            gaps: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// Returns the exit status. Each policy that is not Ready is a finding, except for excluded policies.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if !self.gaps.is_empty() {
            Exit::Failed
        } else if self.summary.ready + self.summary.excluded == self.summary.total {
            Exit::Clean
        } else {
            Exit::Findings
        }
    }

    pub(crate) fn to_json(&self) -> Result<String, CliError> {
        super::output::json(self)
    }

    pub(crate) fn to_yaml(&self) -> Result<String, CliError> {
        yaml_text::to_string(self).map_err(|error| CliError::Format {
            format: "yaml",
            reason: error.to_string(),
        })
    }
}

impl PolicyReport {
    /// Creates the report on a policy.
    #[must_use]
    pub fn new(policy: &ValidatingAdmissionPolicy) -> Self {
        let metadata = &policy.metadata;
        let spec = policy.spec.as_ref();
        let none = ValidatingAdmissionPolicyStatus::default();
        let status = policy.status.as_ref().unwrap_or(&none);
        let generation = metadata.generation.unwrap_or(0);

        let mut conditions: Vec<_> = status
            .conditions
            .iter()
            .flatten()
            .map(ConditionReport::new)
            .collect();
        conditions.sort_by(|left, right| left.sort_key().cmp(&right.sort_key()));
        let ready = conditions.iter().find(|condition| condition.type_ == READY);
        // Upstream's controller also updates `status.observedGeneration`, possibly before vap-status-controller has
        // evaluated the change. Therefore, the generation in the condition takes precedence.
        let observed_generation = ready
            .and_then(|ready| ready.observed_generation)
            .or(status.observed_generation);
        let state = match ready {
            None => State::NoStatus,
            Some(_) if observed_generation.is_some_and(|observed| observed < generation) => {
                State::Stale
            }
            Some(ready) => State::from_ready(ready),
        };
        let is_current = matches!(state, State::Ready | State::NotReady | State::Unknown);

        Self {
            kind: VALIDATING,
            name: metadata.name.clone().unwrap_or_default(),
            state,
            checked_by: is_current.then_some(StatusSource::Controller),
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

    /// Returns the displayed name: `NAME` for a validating policy, and for example `mutatingadmissionpolicy/NAME` for
    /// another kind.
    #[must_use]
    pub fn shown_name(&self) -> String {
        if self.kind == VALIDATING {
            self.name.clone()
        } else {
            format!("{}/{}", self.kind.to_ascii_lowercase(), self.name)
        }
    }

    /// Replaces the conditions of vap-status-controller with the conditions of the plugin's evaluation. Conditions of
    /// other controllers remain.
    fn apply_plugin_status(&mut self, status: &DesiredStatus) {
        let is_other =
            |condition: &ConditionReport| ConditionType::from_name(&condition.type_).is_none();
        self.conditions.retain(is_other);
        let conditions = status.conditions.iter().map(|condition| ConditionReport {
            last_transition_time: None,
            ..ConditionReport::new(condition)
        });
        self.conditions.extend(conditions);
        self.conditions
            .sort_by(|left, right| left.sort_key().cmp(&right.sort_key()));
        self.observed_generation = Some(self.generation);
        self.checked_by = Some(StatusSource::Plugin);
        self.state = self.ready().map_or(State::Unknown, State::from_ready);
        self.type_checking_completed = true;
        let warnings = status.expression_warnings.iter();
        let warnings = warnings.map(|warning| WarningReport {
            field_ref: warning.field_ref.clone(),
            warning: warning.warning.clone(),
        });
        self.expression_warnings = warnings.collect();
    }

    /// Returns the condition of this type.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&ConditionReport> {
        self.conditions
            .iter()
            .find(|condition| condition.type_ == type_)
    }

    /// Returns the condition that summarizes the others.
    #[must_use]
    pub fn ready(&self) -> Option<&ConditionReport> {
        self.condition(READY)
    }
}

impl ConditionReport {
    fn new(condition: &Condition) -> Self {
        Self {
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            last_transition_time: Some(condition.last_transition_time.0),
            observed_generation: condition.observed_generation,
        }
    }

    /// Returns true if this is the condition that summarizes the others.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.type_ == READY
    }

    /// Returns true if this is the condition `Stalled`, for which True is a problem.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.type_ == STALLED
    }

    fn sort_key(&self) -> (usize, &str) {
        condition_order(&self.type_)
    }
}

/// Returns the sort key of a condition type: the types of vap-status-controller in a fixed order, then all others by
/// name.
pub(crate) fn condition_order(type_: &str) -> (usize, &str) {
    let position = ConditionType::from_name(type_).map(ConditionType::display_position);
    (position.unwrap_or(usize::MAX), type_)
}

/// Formats a paramKind as `<apiVersion> <kind>`.
fn param_kind(kind: &ParamKind) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{} {}", part(&kind.api_version), part(&kind.kind))
}
