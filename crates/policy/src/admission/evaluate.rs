//! Evaluates a policy for a request, with at most one params object.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/validator.go`, `Validate`;
//! `pkg/admission/plugin/webhook/matchconditions/matcher.go`, `Match`.

use std::sync::Arc;

use super::ReviewContext;
use super::failure::FailurePolicy;
use super::message;
use super::namespace::Namespace;
use super::object::Object;
use super::outcome::{
    Action, AuditAnnotation, AuditAnnotationAction, ConditionsMatch, Decision, Evaluation,
    EvaluationResult,
};
use super::program::Programs;
use super::request::AdmissionRequest;
use super::scope::{Inputs, Scope};
use super::stage::{self, Evaluated};
use super::text::aggregate;
use super::trace::Trace;
use super::visible;
use crate::compile::CompiledPolicy;
use cel::value::{EvalBudget, Value};
use kubernetes::library::limits::RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS;
use kubernetes::schema::{Gvk, Gvr};

#[derive(Debug)]
pub(super) struct Evaluator {
    failure_policy: FailurePolicy,
    validations: Vec<Validation>,
    programs: Arc<Programs>,
}

#[derive(Debug)]
struct Validation {
    /// The reason of a denial, `Invalid` by default.
    reason: String,
    /// The message of a denial. A valid result of the message expression replaces it.
    message: String,
}

pub(super) enum Conditions {
    Met,
    /// The match conditions end the evaluation of the policy with these decisions.
    End(Vec<Decision>),
}

impl Evaluator {
    pub(super) fn new(compiled: &CompiledPolicy) -> Self {
        let policy = compiled.policy();
        let validations = policy.validations.iter();
        Self {
            failure_policy: FailurePolicy::new(policy.failure_policy.as_deref()),
            validations: validations
                .map(|validation| Validation {
                    reason: validation
                        .reason
                        .clone()
                        .unwrap_or_else(|| "Invalid".to_owned()),
                    message: message::fixed(validation.message.as_deref(), &validation.expression),
                })
                .collect(),
            programs: Arc::new(Programs::new(compiled)),
        }
    }

    pub(super) fn programs(&self) -> &Arc<Programs> {
        &self.programs
    }

    pub(super) fn evaluate(
        &self,
        request: &AdmissionRequest,
        matched: (&Gvr, &Gvk),
        params: Option<&Object>,
        namespace: Option<&Namespace>,
        context: &ReviewContext<'_>,
        trace: Option<&Arc<Trace>>,
    ) -> Evaluation {
        let budget = Arc::new(EvalBudget::cancelled_by(context.is_cancelled.clone()));
        let seen = (params, namespace);
        let evaluation = self.evaluate_within(&budget, request, matched, seen, context, trace);
        match budget.exceeded() {
            None => evaluation,
            // If a limit of this crate is exceeded, the API server's decision is unknown. The failure policy does not
            // apply.
            exceeded => Evaluation {
                params: evaluation.params,
                costs: evaluation.costs,
                exceeded,
                ..Evaluation::default()
            },
        }
    }

    fn evaluate_within(
        &self,
        budget: &Arc<EvalBudget>,
        request: &AdmissionRequest,
        (gvr, gvk): (&Gvr, &Gvk),
        (params, namespace): (Option<&Object>, Option<&Namespace>),
        context: &ReviewContext<'_>,
        trace: Option<&Arc<Trace>>,
    ) -> Evaluation {
        let mut evaluation = Evaluation {
            params: params.map(Object::namespaced_name),
            ..Evaluation::default()
        };
        let reads = self.programs.inputs;
        let behavior = self.programs.version.behavior();
        let go = behavior.reads_go_values;
        let object = |object: &Option<Object>| {
            let object = object.as_ref();
            object.map_or(Value::Null, |object| object.seen_as(gvk, go))
        };
        let mut shared = Arc::new(Inputs {
            object: object(&request.object),
            old_object: object(&request.old_object),
            params: params.map_or(Value::Null, |params| params.value_as_params(go)),
            request: Value::Null,
            namespace: Value::Null,
            authorizer: None,
            budget: Arc::clone(budget),
            is_cancelled: context.is_cancelled.clone(),
            trace: trace.map(Arc::clone),
            recorder: context.recorder.clone(),
        });
        // The inputs differ slightly between the stages, so they are updated in place before each stage.
        let inputs = Arc::make_mut(&mut shared);
        if reads.request {
            // In match conditions, `request.resource` is the resource that the client requested, even if the rules
            // match an equivalent resource.
            inputs.request = visible::request(request, &request.gvr, gvk, go);
        }
        if reads.authorizer {
            inputs.authorizer = Some(visible::authorizer(request, &context.authorizer));
        }
        let scope = |inputs: &Arc<Inputs>| Scope::new(&self.programs, Arc::clone(inputs));
        if !self.programs.match_conditions.is_empty()
            && let Conditions::End(decisions) =
                self.match_conditions(&|| scope(&shared), &mut evaluation)
        {
            evaluation.decisions = decisions;
            return evaluation;
        }
        let inputs = Arc::make_mut(&mut shared);
        if reads.request && *gvr != request.gvr {
            inputs.request = visible::request(request, gvr, gvk, go);
        }
        inputs.namespace = namespace.map_or(Value::Null, |namespace| namespace.visible(&behavior));
        let validations = self.programs.validations.iter().map(Some);
        let validated = stage::run(validations, || scope(&shared), context.budget);
        evaluation.costs.validations = Some(validated.cost);
        let (results, remaining) = match (validated.evaluated, validated.remaining) {
            (Ok(results), Some(remaining)) => (results, remaining),
            (outcome, _) => {
                let error = outcome.err().unwrap_or_default();
                evaluation.decisions = vec![self.failure_policy.decision(error)];
                return evaluation;
            }
        };
        if trace.is_some() {
            // Only a trace needs the results of mutations. Each mutation is evaluated for the original object, not for
            // the result of the previous mutation.
            for (_, mutation) in &self.programs.mutations {
                let mutation = [Some(mutation)].into_iter();
                let _ = stage::run(mutation, || scope(&shared), context.budget);
            }
        }
        // Later stages have no value for `authorizer`, although their environment may declare it.
        Arc::make_mut(&mut shared).authorizer = None;
        let messages = self.programs.messages.iter().map(Option::as_ref);
        let messages = stage::run(messages, || scope(&shared), remaining);
        evaluation.costs.messages = Some(messages.cost);
        evaluation.decisions = self.decisions(results, messages.evaluated);
        let annotations = self.programs.audit_annotations.iter();
        let annotations = annotations.map(|(_, expression)| Some(expression));
        if !self.programs.audit_annotations.is_empty() {
            Arc::make_mut(&mut shared).namespace =
                namespace.map_or(Value::Null, |namespace| namespace.whole(&behavior));
        }
        let annotated = stage::run(annotations, || scope(&shared), context.budget);
        evaluation.costs.audit_annotations = Some(annotated.cost);
        match annotated.evaluated {
            Ok(results) => evaluation.audit_annotations = self.audit_annotations(results),
            Err(error) => evaluation.decisions = vec![self.failure_policy.decision(error)],
        }
        evaluation
    }

    pub(super) fn match_conditions(
        &self,
        scope: &dyn Fn() -> Arc<Scope>,
        evaluation: &mut Evaluation,
    ) -> Conditions {
        let conditions = &self.programs.match_conditions;
        let expressions = conditions.iter().map(|(_, expression)| Some(expression));
        let outcome = stage::run(expressions, scope, RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS);
        evaluation.costs.match_conditions = Some(outcome.cost);
        let mut errors = Vec::new();
        match outcome.evaluated {
            Err(error) => errors.push(error),
            Ok(results) => {
                for ((name, _), result) in conditions.iter().zip(results) {
                    match result {
                        Some(Ok(Value::Bool(false))) => {
                            evaluation.match_conditions = Some(ConditionsMatch {
                                failed_condition: Some(name.clone()),
                                ..ConditionsMatch::default()
                            });
                            return Conditions::End(Vec::new());
                        }
                        Some(Err(error)) => errors.push(error),
                        Some(Ok(_)) | None => {}
                    }
                }
            }
        }
        let (conditions_match, end) = match &self.failure_policy {
            FailurePolicy::Fail if !errors.is_empty() => {
                let error = aggregate(&errors);
                let conditions_match = ConditionsMatch {
                    error: Some(error.clone()),
                    ..ConditionsMatch::default()
                };
                (
                    conditions_match,
                    Conditions::End(vec![self.failure_policy.decision(error)]),
                )
            }
            FailurePolicy::Ignore if !errors.is_empty() => {
                let conditions_match = ConditionsMatch {
                    ignored: Some(aggregate(&errors)),
                    ..ConditionsMatch::default()
                };
                (conditions_match, Conditions::End(Vec::new()))
            }
            FailurePolicy::Fail | FailurePolicy::Ignore | FailurePolicy::Unknown(_) => {
                let conditions_match = ConditionsMatch {
                    matches: true,
                    ..ConditionsMatch::default()
                };
                (conditions_match, Conditions::Met)
            }
        };
        evaluation.match_conditions = Some(conditions_match);
        end
    }

    /// Returns the decisions of the validations. `messages` contains the results of their message expressions.
    fn decisions(
        &self,
        results: Vec<Evaluated>,
        messages: Result<Vec<Evaluated>, String>,
    ) -> Vec<Decision> {
        let (mut messages, over_budget) = match messages {
            Ok(messages) => (messages.into_iter(), None),
            Err(error) => (Vec::new().into_iter(), Some(error)),
        };
        self.validations
            .iter()
            .zip(results)
            .map(|(validation, result)| {
                let message = messages.next().flatten();
                match (result, &over_budget) {
                    (Some(Err(error)), _) => self.failure_policy.decision(error),
                    (_, Some(error)) => {
                        let message = format!("failed messageExpression: {error}");
                        self.failure_policy.decision(message)
                    }
                    (Some(Ok(Value::Bool(true))), None) => Decision::admit(),
                    (_, None) => Decision {
                        action: Action::Deny,
                        evaluation: EvaluationResult::Deny,
                        message: message::evaluated(message)
                            .unwrap_or_else(|| validation.message.clone()),
                        reason: validation.reason.clone(),
                    },
                }
            })
            .collect()
    }

    fn audit_annotations(&self, results: Vec<Evaluated>) -> Vec<AuditAnnotation> {
        self.programs
            .audit_annotations
            .iter()
            .zip(results)
            .map(|((key, expression), result)| {
                let annotation = |action, value: &str, error| AuditAnnotation {
                    key: key.clone(),
                    action,
                    value: value.to_owned(),
                    error,
                };
                match result {
                    Some(Err(error)) => {
                        let action = self.failure_policy.audit_annotation_action();
                        annotation(action, "", error)
                    }
                    Some(Ok(Value::String(text))) => match message::trim(&text) {
                        "" => annotation(AuditAnnotationAction::Exclude, "", String::new()),
                        value => annotation(AuditAnnotationAction::Publish, value, String::new()),
                    },
                    Some(Ok(Value::Null)) | None => {
                        annotation(AuditAnnotationAction::Exclude, "", String::new())
                    }
                    Some(Ok(other)) => {
                        let error = format!(
                            "valueExpression '{}' resulted in unsupported return type: {}. Return type \
                             must be either string or null.",
                            expression.text,
                            other.type_().declared_string()
                        );
                        annotation(AuditAnnotationAction::Error, "", error)
                    }
                }
            })
            .collect()
    }
}
