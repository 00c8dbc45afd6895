//! The outcome of an admission: decisions, reasons, and the API server's messages.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/policy_decision.go`, `interface.go`.

use std::collections::BTreeMap;

use super::rules::Unmatched;
use cel::value::Exceeded;
use kubernetes::schema::{Gvk, Gvr};

/// The outcome of evaluating a request with a policy and its bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewOutcome {
    /// The reason why the policy was not evaluated. `review` leaves it empty; callers set it if they do not call
    /// `review`.
    pub not_evaluated_reason: Option<String>,
    /// The result of matching the policy's constraints.
    pub definition: DefinitionMatch,
    /// The result of matching each binding, in order. Empty if the policy does not match.
    pub bindings: Vec<BindingMatch>,
    /// The evaluations, one for each matching binding and each of its params objects.
    pub evaluations: Vec<Evaluation>,
    /// The status of the rejected request. `None` if the request is allowed or if there is no decision.
    /// [`ReviewOutcome::is_allowed`] distinguishes these cases.
    pub denial: Option<Status>,
    /// The warnings that the client receives.
    pub warnings: Vec<String>,
    /// The annotations of the request's audit event.
    pub audit_annotations: BTreeMap<String, String>,
    /// The errors of the policy and its bindings. They include errors that failurePolicy `Ignore` hides, but not those of
    /// message expressions, which the API server only logs.
    pub errors: Vec<String>,
    /// The exceeded limit of this crate, if any. In this case there is no decision, because the API server's decision
    /// is unknown.
    pub exceeded: Option<Exceeded>,
}

impl ReviewOutcome {
    /// Returns the outcome of a policy that is not evaluated for the reason `why`.
    #[must_use]
    pub fn not_evaluated(why: String) -> Self {
        Self {
            not_evaluated_reason: Some(why),
            ..Self::default()
        }
    }

    /// Returns true if the request is allowed. Returns false if there is no decision.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.denial.is_none() && self.exceeded.is_none()
    }

    /// Removes all results after an evaluation exceeded a limit of this crate.
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
    /// The reason, such as `Invalid` (the default).
    pub reason: String,
    /// The complete message that the client receives.
    pub message: String,
    /// The part of the message that comes from the policy.
    pub cause: String,
    /// The binding that denied the request, if any.
    pub binding: Option<String>,
    /// The type of the cause.
    pub by: DeniedBy,
}

/// The types of causes of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedBy {
    /// A validation is false.
    Validation,
    /// The params of a binding were not found.
    NoParams,
    /// An error occurred.
    Error,
}

/// The result of matching a request with the constraints of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionMatch {
    /// The resource and kind for which the request is evaluated. `None` if the constraints do not match.
    pub matched: Option<(Gvr, Gvk)>,
    /// The error that prevented matching the constraints.
    pub error: Option<String>,
    /// The constraint that does not match. `review` leaves it `None`; callers may set it.
    pub unmatched: Option<Unmatched>,
}

/// The result of matching a request with a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingMatch {
    /// The name of the binding.
    pub name: String,
    /// True if the binding matches.
    pub matches: bool,
    /// The error that prevented matching the binding.
    pub error: Option<String>,
    /// The constraint that does not match. `review` leaves it `None`; callers may set it.
    pub unmatched: Option<Unmatched>,
}

/// One evaluation of a policy, with at most one params object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The name of the binding. `None` if the policy is evaluated without a binding.
    pub binding: Option<String>,
    /// The namespace and name of the params, such as `default/limits`. `None` without params.
    pub params: Option<String>,
    /// The result of the match conditions. `None` if the policy has none.
    pub match_conditions: Option<ConditionsMatch>,
    /// The decisions, in the order of the validations. If the validations were not evaluated, there is at most one
    /// decision.
    pub decisions: Vec<Decision>,
    /// The audit annotations, in the order of the policy.
    pub audit_annotations: Vec<AuditAnnotation>,
    /// The costs of the stages.
    pub costs: Costs,
    /// The exceeded limit of this crate, if any. In this case there are no decisions.
    pub exceeded: Option<Exceeded>,
}

impl Evaluation {
    /// Returns the approximate size of the decisions and audit annotations, in bytes.
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
    /// True if all conditions are true. The validations are evaluated in this case.
    pub matches: bool,
    /// The name of the first condition that is false.
    pub failed_condition: Option<String>,
    /// The error of a condition under failurePolicy `Fail`. It denies the request.
    pub error: Option<String>,
    /// The error of a condition under failurePolicy `Ignore`. It does not deny the request.
    pub ignored: Option<String>,
}

/// The action that results from one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The decision does not deny the request.
    Admit,
    /// The decision denies the request, so the validationActions of the binding apply.
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
    /// The validation is false, or its result is not a boolean.
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

/// The result of one validation for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The action taken.
    pub action: Action,
    /// The result of evaluating the validation.
    pub evaluation: EvaluationResult,
    /// The message. Empty if the validation is true.
    pub message: String,
    /// The reason from the policy. Empty for errors.
    pub reason: String,
}

impl Decision {
    /// Returns the decision for a validation that is true.
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

/// The action for an audit annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditAnnotationAction {
    /// The annotation is published.
    Publish,
    /// The annotation has an error that denies the request.
    Error,
    /// The annotation is omitted.
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

/// The result of an audit annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAnnotation {
    /// The key, without the name of the policy.
    pub key: String,
    /// The action taken.
    pub action: AuditAnnotationAction,
    /// The value to publish. Empty if there is none.
    pub value: String,
    /// The error. Empty if there is none.
    pub error: String,
}

/// The costs of the stages of an evaluation. The cost is `None` for a stage that did not run.
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

    /// Returns the total cost, in cost units, of the stages that ended without an error.
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

/// The budget and the used cost of a stage, in cost units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// The budget. For messages, the part of the budget that the validations did not use.
    pub budget: u64,
    /// The used cost, or the error that ended the stage.
    pub used: Result<u64, String>,
}
