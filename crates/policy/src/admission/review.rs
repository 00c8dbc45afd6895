//! Evaluates a request with a policy, its bindings and their params, and combines the results into a decision.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/dispatcher.go`, `Dispatch`.

use std::collections::BTreeMap;

use super::binding::Binding;
use super::failure::FailurePolicy;
use super::namespace::Namespace;
use super::object::Object;
use super::outcome::{
    Action, AuditAnnotationAction, BindingMatch, Decision, DefinitionMatch, DeniedBy, Evaluation,
    EvaluationResult, ReviewOutcome, Status,
};
use super::request::AdmissionRequest;
use super::rules::namespace_not_found;
use super::text::{cut, go_json_list, go_quote, push_go_json};
use super::{Admission, ReviewContext, params};
use cel::value::{EvalBudget, Exceeded};
use kubernetes::library::limits::MAX_AUDIT_ANNOTATION_VALUE_LENGTH;
use kubernetes::schema::{Gvk, Gvr};

/// The key of the audit annotation that lists failed validations.
///
/// Source: `dispatcher.go`, `publishValidationFailureAnnotation`.
const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// The first denial, which is reported to the client.
#[derive(Debug)]
struct Denial {
    binding: Option<String>,
    message: String,
    reason: String,
    by: DeniedBy,
}

struct Review<'a> {
    admission: &'a Admission,
    request: &'a AdmissionRequest,
    outcome: ReviewOutcome,
    denial: Option<Denial>,
    /// The distinct values of each audit annotation, by key.
    published: BTreeMap<String, Vec<String>>,
    /// The audited failures of validations, as JSON objects.
    failures: Vec<String>,
    /// The memory limit on the strings of all evaluations. Each evaluation also has its own memory limit.
    texts: EvalBudget,
    /// The exceeded limit of this crate, if any.
    exceeded: Option<Exceeded>,
}

pub(super) fn review(
    admission: &Admission,
    request: &AdmissionRequest,
    bindings: &[Binding],
    context: &ReviewContext<'_>,
) -> ReviewOutcome {
    let mut review = Review {
        admission,
        request,
        outcome: ReviewOutcome::default(),
        denial: None,
        published: BTreeMap::new(),
        failures: Vec::new(),
        texts: EvalBudget::default(),
        exceeded: None,
    };
    if let Err(status) = review.run(bindings, context) {
        review.note_error(&status.cause);
        review.outcome.denial = Some(status);
        return review.outcome;
    }
    review.finish()
}

impl Review<'_> {
    /// Evaluates the policy for all bindings.
    ///
    /// # Errors
    ///
    /// Returns a status if the request must be rejected regardless of other results.
    fn run(&mut self, bindings: &[Binding], context: &ReviewContext<'_>) -> Result<(), Status> {
        let matched = self.admission.matches(self.request, context.namespaces);
        self.outcome.definition = DefinitionMatch {
            matched: matched.as_ref().ok().cloned().flatten(),
            error: matched.as_ref().err().cloned(),
            unmatched: None,
        };
        let (gvr, gvk) = match matched {
            Err(error) => {
                self.configuration_error(&error, None);
                return Ok(());
            }
            Ok(None) => return Ok(()),
            Ok(Some(matched)) => matched,
        };
        if self.admission.has_param_kind()
            && let Err(error) = &context.params
        {
            self.configuration_error(error, None);
            return Ok(());
        }
        for binding in bindings {
            let matches = self
                .admission
                .binding_matches(binding, self.request, context.namespaces);
            self.outcome.bindings.push(BindingMatch {
                name: binding.name().to_owned(),
                matches: matches == Ok(true),
                error: matches.as_ref().err().cloned(),
                unmatched: None,
            });
            match matches {
                Err(error) => self.configuration_error(&error, Some(binding)),
                Ok(false) => {}
                Ok(true) => self.evaluate(binding, (&gvr, &gvk), context)?,
            }
            if self.exceeded.is_some() {
                return Ok(());
            }
        }
        self.publish();
        Ok(())
    }

    /// Evaluates the policy with each params object of `binding`.
    fn evaluate(
        &mut self,
        binding: &Binding,
        matched: (&Gvr, &Gvk),
        context: &ReviewContext<'_>,
    ) -> Result<(), Status> {
        let source = context.params.as_ref().ok().copied();
        let params = match self.admission.collect_params(binding, source, self.request) {
            Ok(params) => params,
            Err(error) => {
                self.configuration_error(&error, Some(binding));
                return Ok(());
            }
        };
        let namespace = self.namespace(context)?;
        for params in &params {
            let (params, namespace) = (params.as_ref(), namespace.as_ref());
            let evaluation = self.evaluate_one(binding, matched, params, namespace, context);
            // The strings of decisions are copied into warnings, errors or the denial, so they are charged twice.
            let n_bytes = evaluation.text_len().saturating_mul(2);
            let _ = self
                .texts
                .allocate(n_bytes.saturating_add(size_of::<Evaluation>()));
            self.exceeded = evaluation.exceeded.or(self.texts.exceeded());
            if self.exceeded.is_some() {
                return Ok(());
            }
            self.act(binding, &evaluation);
            self.outcome.evaluations.push(evaluation);
        }
        Ok(())
    }

    fn evaluate_one(
        &self,
        binding: &Binding,
        matched: (&Gvr, &Gvk),
        params: Option<&Object>,
        namespace: Option<&Namespace>,
        context: &ReviewContext<'_>,
    ) -> Evaluation {
        let evaluation = self
            .admission
            .evaluate(self.request, matched, params, namespace, context);
        Evaluation {
            binding: Some(binding.name().to_owned()),
            ..evaluation
        }
    }

    /// Returns the namespace of the request. `None` for a request about a Namespace or a cluster-scoped object.
    fn namespace(&self, context: &ReviewContext<'_>) -> Result<Option<Namespace>, Status> {
        let gvk = &self.request.gvk;
        let is_namespace = gvk.group.is_empty() && gvk.version == "v1" && gvk.kind == "Namespace";
        let name = &self.request.namespace;
        if is_namespace || name.is_empty() {
            return Ok(None);
        }
        let namespace = context.namespaces.namespace(name);
        let message = || namespace_not_found(name);
        namespace.map(Some).ok_or_else(|| Status {
            code: 404,
            reason: "NotFound".to_owned(),
            cause: message(),
            message: message(),
            binding: None,
            by: DeniedBy::Error,
        })
    }

    /// Applies the validationActions of `binding` to the denying decisions, and collects the audit annotations.
    fn act(&mut self, binding: &Binding, evaluation: &Evaluation) {
        let conditions = evaluation.match_conditions.as_ref();
        if let Some(ignored) = conditions.and_then(|conditions| conditions.ignored.as_ref()) {
            self.note_error(ignored);
        }
        for (n, decision) in evaluation.decisions.iter().enumerate() {
            let by = if decision.evaluation == EvaluationResult::Error {
                self.note_error(&decision.message);
                DeniedBy::Error
            } else {
                DeniedBy::Validation
            };
            if decision.action == Action::Admit {
                continue;
            }
            for action in binding.validation_actions() {
                match &**action {
                    "Deny" => self.deny(Some(binding), (&decision.message, &decision.reason), by),
                    "Audit" => {
                        let behavior = self.admission.version().behavior();
                        if self.failures.len() < behavior.max_audited_failures {
                            let failure = validation_failure(binding, n, decision);
                            self.failures.push(failure);
                        }
                    }
                    "Warn" => self.outcome.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        self.admission.name(),
                        binding.name(),
                        decision.message
                    )),
                    _ => {}
                }
            }
        }
        for annotation in &evaluation.audit_annotations {
            if !annotation.error.is_empty() {
                self.note_error(&annotation.error);
            }
            match annotation.action {
                AuditAnnotationAction::Publish => {
                    let value = cut(&annotation.value, MAX_AUDIT_ANNOTATION_VALUE_LENGTH);
                    let values = self.published.entry(annotation.key.clone()).or_default();
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                AuditAnnotationAction::Error => {
                    self.deny(Some(binding), (&annotation.error, ""), DeniedBy::Error);
                }
                AuditAnnotationAction::Exclude => {}
            }
        }
    }

    fn publish(&mut self) {
        let failures = std::mem::take(&mut self.failures);
        if !failures.is_empty() {
            let value = format!("[{}]", failures.join(","));
            let annotations = &mut self.outcome.audit_annotations;
            annotations.insert(VALIDATION_FAILURE.to_owned(), value);
        }
        for (key, values) in std::mem::take(&mut self.published) {
            let key = format!("{}/{key}", self.admission.name());
            let annotations = &mut self.outcome.audit_annotations;
            annotations.entry(key).or_insert_with(|| values.join(", "));
        }
    }

    /// Applies the failure policy to an error in the configuration of the policy or of `binding`.
    fn configuration_error(&mut self, error: &str, binding: Option<&Binding>) {
        self.note_error(error);
        let by = if error == params::NOT_FOUND {
            DeniedBy::NoParams
        } else {
            DeniedBy::Error
        };
        let message = match self.admission.failure_policy() {
            FailurePolicy::Ignore => return,
            FailurePolicy::Fail if binding.is_none() => {
                format!("failed to configure policy: {error}")
            }
            FailurePolicy::Fail => format!("failed to configure binding: {error}"),
            FailurePolicy::Unknown(other) => format!("unrecognized failure policy: '{other}'"),
        };
        self.deny(binding, (&message, ""), by);
    }

    fn note_error(&mut self, error: &str) {
        let errors = &mut self.outcome.errors;
        if !errors.iter().any(|known| known == error) {
            errors.push(error.to_owned());
        }
    }

    fn deny(&mut self, binding: Option<&Binding>, (message, reason): (&str, &str), by: DeniedBy) {
        self.denial.get_or_insert_with(|| Denial {
            binding: binding.map(|binding| binding.name().to_owned()),
            message: message.to_owned(),
            reason: reason.to_owned(),
            by,
        });
    }

    fn finish(mut self) -> ReviewOutcome {
        if let Some(exceeded) = self.exceeded {
            self.outcome.exceed(exceeded);
            return self.outcome;
        }
        self.outcome.denial = self.denial.take().map(|denial| {
            let policy = self.admission.name();
            let with = match &denial.binding {
                Some(binding) => format!(" with binding '{binding}'"),
                None => String::new(),
            };
            let message = &denial.message;
            let message =
                format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {message}");
            let reason = if denial.reason.is_empty() {
                "Invalid".to_owned()
            } else {
                denial.reason
            };
            Status {
                code: code_of(&reason),
                reason,
                message: forbidden(self.request, &message),
                cause: denial.message,
                binding: denial.binding,
                by: denial.by,
            }
        });
        self.outcome
    }
}

/// Returns the JSON object that describes a failed validation in the audit annotation.
///
/// Source: `dispatcher.go`, `ValidationFailureValue`.
fn validation_failure(binding: &Binding, n: usize, decision: &Decision) -> String {
    let mut value = String::from("{\"message\":");
    push_go_json(&mut value, &decision.message);
    value.push_str(",\"policy\":");
    push_go_json(&mut value, binding.policy_name());
    value.push_str(",\"binding\":");
    push_go_json(&mut value, binding.name());
    let actions = go_json_list(binding.validation_actions());
    value + &format!(",\"expressionIndex\":{n},\"validationActions\":{actions}}}")
}

/// Returns the HTTP status code of a reason.
///
/// Source: `policy_decision.go`, `reasonToCode`.
#[must_use]
pub fn code_of(reason: &str) -> u16 {
    match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    }
}

/// Returns the message that the client receives for a rejected request.
///
/// Source: `k8s.io/apiserver` `pkg/admission/errors.go`, `NewForbidden`; apimachinery
/// `pkg/api/errors/errors.go`, `NewForbidden`.
fn forbidden(request: &AdmissionRequest, message: &str) -> String {
    let resource = &request.gvr.resource;
    if resource.is_empty() {
        return format!("forbidden: {message}");
    }
    let object = request.object.as_ref();
    let names = [
        request.name.as_str(),
        object.map(Object::name).unwrap_or_default(),
        object.map(Object::generate_name).unwrap_or_default(),
        "Unknown",
    ];
    let name = names.into_iter().find(|name| !name.is_empty());
    let name = go_quote(name.unwrap_or_default());
    match request.gvr.group.as_str() {
        "" => format!("{resource} {name} is forbidden: {message}"),
        group => format!("{resource}.{group} {name} is forbidden: {message}"),
    }
}
