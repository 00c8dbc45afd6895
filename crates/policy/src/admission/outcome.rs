//! The decisions of an admission and their reasons, in the words of the API server.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/policy_decision.go`, `interface.go`.

use std::collections::BTreeMap;

use super::rules::Unmatched;
use cel::value::Exceeded;
use kubernetes::schema::{Gvk, Gvr};

/// Everything that reviewing a request by a policy and its bindings came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewOutcome {
    /// Why the policy was not asked at all, where it was not. A review never says so: it is what asking comes
    /// to.
    pub not_asked: Option<String>,
    /// The match of the request with the constraints of the policy.
    pub definition: DefinitionMatch,
    /// The match of each binding, in the order of bindings; empty where the policy does not match.
    pub bindings: Vec<BindingMatch>,
    /// The evaluations, one for each of the params of each binding that matches.
    pub evaluations: Vec<Evaluation>,
    /// Why the request is denied; `None` where it is allowed.
    pub denial: Option<Status>,
    /// The warnings that the client is shown.
    pub warnings: Vec<String>,
    /// The annotations of the audit event.
    pub audit_annotations: BTreeMap<String, String>,
    /// The errors of the policy and its bindings, those too that failurePolicy `Ignore` passes over.
    pub errors: Vec<String>,
    /// The limit that an evaluation has exceeded, if there is one. There is no decision then: whether an API server
    /// allows the request is unknown.
    pub exceeded: Option<Exceeded>,
}

impl ReviewOutcome {
    /// The outcome for a request that the policy is not asked about.
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
    /// The reason, `Invalid` where the policy gives none.
    pub reason: String,
    /// The whole message, as the client is shown it.
    pub message: String,
    /// The policy's own part of the message, without the words around it.
    pub cause: String,
    /// The binding under which the request was denied, where there is one.
    pub binding: Option<String>,
    /// Cause of its denial.
    pub by: DeniedBy,
}

/// Causes of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedBy {
    /// A validation that says no.
    Validation,
    /// A binding for which there are no params.
    NoParams,
    /// An error.
    Error,
}

/// The result of matching a request with the constraints of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionMatch {
    /// Where they match, the resource and kind as which the request is evaluated.
    pub matched: Option<(Gvr, Gvk)>,
    /// Why it could not be told.
    pub error: Option<String>,
    /// The part because of which they do not match, where someone has asked for it.
    pub unmatched: Option<Unmatched>,
}

/// The result of matching a request with a binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingMatch {
    /// The name of the binding.
    pub name: String,
    /// True if it matches.
    pub matches: bool,
    /// Why it could not be told.
    pub error: Option<String>,
    /// The part because of which it does not match, where someone has asked for it.
    pub unmatched: Option<Unmatched>,
}

/// An evaluation of a policy, with one of the params.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The binding, where there is one.
    pub binding: Option<String>,
    /// The namespace and name of the params, `default/limits`; `None` without params.
    pub params: Option<String>,
    /// The outcome of the match conditions, where the policy has some.
    pub match_conditions: Option<ConditionsMatch>,
    /// The decisions in the order of validations; a single one where a stage as a whole failed.
    pub decisions: Vec<Decision>,
    /// The audit annotations, in the order of the policy.
    pub audit_annotations: Vec<AuditAnnotation>,
    /// The costs of the stages.
    pub costs: Costs,
    /// The limit that the evaluation has exceeded, if there is one. There are no decisions then.
    pub exceeded: Option<Exceeded>,
}

impl Evaluation {
    /// Returns the bytes of its texts.
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

/// The outcome of the match conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionsMatch {
    /// True if the validations are evaluated.
    pub matches: bool,
    /// The name of the condition that is false.
    pub failed_condition: Option<String>,
    /// The error that is taken for a failure.
    pub error: Option<String>,
    /// The error that failurePolicy `Ignore` passes over.
    pub ignored: Option<String>,
}

/// The action taken on a request because of one validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Admit,
    /// The validation actions of the binding.
    Deny,
}

impl Action {
    /// `admit` or `deny`.
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
    /// True.
    Admit,
    /// No value: an error.
    Error,
    /// Not true.
    Deny,
}

impl EvaluationResult {
    /// `admit`, `error` or `deny`.
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
    /// The message; empty where the validation is true.
    pub message: String,
    /// The reason that the policy gives; empty for errors.
    pub reason: String,
}

impl Decision {
    /// The decision of a validation that is true.
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
    /// It denies the request, for it has no value.
    Error,
    /// It is left out.
    Exclude,
}

impl AuditAnnotationAction {
    /// `publish`, `error` or `exclude`.
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
    /// Why there is none.
    pub error: String,
}

/// The costs of the stages of an evaluation; `None` for one that did not run.
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
    /// Reports whether a stage ended for what it cost.
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

    /// The cost units that all stages together are known to have used.
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

/// The budget of a stage and what of it was used, in cost units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// The budget.
    pub budget: u64,
    /// The cost used, or why the stage failed.
    pub used: Result<u64, String>,
}
