//! Decisions of an admission and their reasons, with the API server's messages.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/policy_decision.go`, `interface.go`.

use std::collections::BTreeMap;

use super::rules::Unmatched;
use cel::value::Exceeded;
use kubernetes::schema::{Gvk, Gvr};

/// The outcome of reviewing a request with a policy and its bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewOutcome {
    /// The reason why the policy was not evaluated at all. Set by callers that skip the review, never by a review.
    pub not_asked: Option<String>,
    /// The match of the policy's constraints.
    pub definition: DefinitionMatch,
    /// The match of each binding, in order. Empty if the policy does not match.
    pub bindings: Vec<BindingMatch>,
    /// The evaluations, one for each of the params of each matching binding.
    pub evaluations: Vec<Evaluation>,
    /// The status of the denial. `None` if the request is allowed.
    pub denial: Option<Status>,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The annotations of the audit event.
    pub audit_annotations: BTreeMap<String, String>,
    /// The errors of the policy and its bindings, including those that failurePolicy `Ignore` drops.
    pub errors: Vec<String>,
    /// The limit that an evaluation exceeded, if any. Then there is no decision, because that of an API server is
    /// unknown.
    pub exceeded: Option<Exceeded>,
}

impl ReviewOutcome {
    /// Returns the outcome if the policy is not evaluated for the request.
    #[must_use]
    pub fn not_asked(why: String) -> Self {
        Self {
            not_asked: Some(why),
            ..Self::default()
        }
    }

    /// Returns true if the request is allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none() && self.exceeded.is_none()
    }

    /// Removes all results, because an evaluation has exceeded a limit.
    pub(super) fn exceed(&mut self, exceeded: Exceeded) {
        *self = Self {
            definition: std::mem::take(&mut self.definition),
            bindings: std::mem::take(&mut self.bindings),
            exceeded: Some(exceeded),
            ..Self::default()
        };
    }
}

/// The status of a denied request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The reason. `Invalid` if the policy has none.
    pub reason: String,
    /// The whole message for the client.
    pub message: String,
    /// The policy's part of the message.
    pub cause: String,
    /// The binding that denied the request, if any.
    pub binding: Option<String>,
    /// The cause of the denial.
    pub by: DeniedBy,
}

/// Causes of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedBy {
    /// A false validation.
    Validation,
    /// A binding without params.
    NoParams,
    /// An error.
    Error,
}

/// The result of matching a request with the constraints of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionMatch {
    /// The resource and kind as which the request is evaluated, if the constraints match.
    pub matched: Option<(Gvr, Gvk)>,
    /// The error that prevented matching.
    pub error: Option<String>,
    /// The reason why the constraints do not match, if requested.
    pub unmatched: Option<Unmatched>,
}

/// The result of matching a request with a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingMatch {
    /// The name of the binding.
    pub name: String,
    /// True if it matches.
    pub matches: bool,
    /// The error that prevented matching.
    pub error: Option<String>,
    /// The reason why the binding does not match, if requested.
    pub unmatched: Option<Unmatched>,
}

/// An evaluation of a policy, with one of the params.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The binding, if any.
    pub binding: Option<String>,
    /// The namespace and name of the params, `default/limits`. `None` without params.
    pub params: Option<String>,
    /// The result of the match conditions, if the policy has any.
    pub match_conditions: Option<ConditionsMatch>,
    /// The decisions, in the order of the validations, or a single one if the whole stage failed.
    pub decisions: Vec<Decision>,
    /// The audit annotations, in the order of the policy.
    pub audit_annotations: Vec<AuditAnnotation>,
    /// The costs of the stages.
    pub costs: Costs,
    /// The limit that the evaluation exceeded, if any. Then there are no decisions.
    pub exceeded: Option<Exceeded>,
}

impl Evaluation {
    /// Returns the total length of its strings, in bytes.
    pub(super) fn text_len(&self) -> usize {
        let of_decisions = self.decisions.iter().map(|decision| {
            let texts = decision.message.len().saturating_add(decision.reason.len());
            texts.saturating_add(size_of::<Decision>())
        });
        let of_annotations = self.audit_annotations.iter().map(|annotation| {
            let texts = annotation
                .value
                .len()
                .saturating_add(annotation.error.len());
            texts.saturating_add(size_of::<AuditAnnotation>())
        });
        of_decisions
            .chain(of_annotations)
            .fold(0, usize::saturating_add)
    }
}

/// The result of the match conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionsMatch {
    /// True if the validations are evaluated.
    pub matches: bool,
    /// The name of the condition that is false.
    pub failed_condition: Option<String>,
    /// The error that counts as a failure.
    pub error: Option<String>,
    /// The error that failurePolicy `Ignore` drops.
    pub ignored: Option<String>,
}

/// The action taken on a request because of one validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// No action.
    Admit,
    /// The validation actions of the binding.
    Deny,
}

impl Action {
    /// Returns `admit` or `deny`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Deny => "deny",
        }
    }
}

/// The result of evaluating a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationResult {
    /// The validation is true.
    Admit,
    /// The validation failed with an error.
    Error,
    /// The validation is not true.
    Deny,
}

impl EvaluationResult {
    /// Returns `admit`, `error` or `deny`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Error => "error",
            Self::Deny => "deny",
        }
    }
}

/// The decision of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The action taken.
    pub action: Action,
    /// The result of evaluating the validation.
    pub evaluation: EvaluationResult,
    /// The message. Empty if the validation is true.
    pub message: String,
    /// The reason in the policy. Empty for errors.
    pub reason: String,
}

impl Decision {
    /// Returns the decision of a true validation.
    #[must_use]
    pub fn admit() -> Self {
        Self {
            action: Action::Admit,
            evaluation: EvaluationResult::Admit,
            message: String::new(),
            reason: String::new(),
        }
    }
}

/// The action taken on an audit annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditAnnotationAction {
    /// It is published.
    Publish,
    /// The request is denied because the annotation has no value.
    Error,
    /// It is left out.
    Exclude,
}

impl AuditAnnotationAction {
    /// Returns `publish`, `error` or `exclude`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Error => "error",
            Self::Exclude => "exclude",
        }
    }
}

/// The outcome of an audit annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAnnotation {
    /// The key, without the policy's name.
    pub key: String,
    /// The action taken.
    pub action: AuditAnnotationAction,
    /// The value to publish.
    pub value: String,
    /// The error, if there is no value.
    pub error: String,
}

/// The costs of the stages of an evaluation. `None` for a stage that did not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// The match conditions.
    pub match_conditions: Option<StageCost>,
    /// The validations.
    pub validations: Option<StageCost>,
    /// The message expressions.
    pub messages: Option<StageCost>,
    /// The audit annotations.
    pub audit_annotations: Option<StageCost>,
}

impl Costs {
    /// Returns true if a stage exceeded its budget.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let stages = [
            &self.match_conditions,
            &self.validations,
            &self.messages,
            &self.audit_annotations,
        ];
        let mut stages = stages.into_iter().flatten();
        stages.any(|stage| stage.used.is_err())
    }

    /// Returns the known cost of all stages, in cost units.
    #[must_use]
    pub fn used(&self) -> u64 {
        [
            &self.match_conditions,
            &self.validations,
            &self.messages,
            &self.audit_annotations,
        ]
        .into_iter()
        .flatten()
        .filter_map(|stage| stage.used.as_ref().ok())
        .fold(0, |sum, used| sum.saturating_add(*used))
    }
}

/// The budget of a stage and its use, in cost units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// The budget.
    pub budget: u64,
    /// The cost used, or the error of the stage.
    pub used: Result<u64, String>,
}
