//! Evaluates mutating policies in cases, and compares the mutated object with the expected object.
//!
//! The object is first prepared as the API server prepares objects before mutations. Then the mutations are applied for
//! each binding of the policy. Other policies, webhooks and validation rules are not evaluated. If the result is
//! unknown, the functions return the reason as an error.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating`.

mod expected;
pub mod patch;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::api::{Case, Expect, Samples};
use super::decision::CaseDecision;
use super::difference::{self, has_applied};
use super::sample;
use crate::custom_resource::{RULES_NOT_CHECKED, Validator};
use crate::defaulting::Decoding;
use crate::merge::Types;
use crate::policy::admission::mutation::{
    BoundPolicy, Kinds, MutatingAdmission, MutationContext, MutationOutcome, mutate,
};
use crate::policy::admission::{
    AdmissionRequest, Binding, DeniedBy, Operation, ReviewContext, ReviewOutcome, Status,
};
use crate::schema::Gvk;
use crate::schema::resolver::SchemaResolver;
use crate::version::KubernetesVersion;

pub use super::decision::ObjectMutation;

/// A mutating policy, and the data for evaluating it.
#[derive(Clone, Copy)]
pub struct MutationInputs<'a> {
    /// The compiled policy.
    pub policy: &'a MutatingAdmission,
    /// The types and defaults of kinds, which are needed to apply a mutation.
    pub kinds: &'a dyn Kinds,
    /// The schemas against which the mutated object is validated.
    pub schemas: &'a dyn SchemaResolver,
}

impl fmt::Debug for MutationInputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutationInputs")
            .field("policy", &self.policy.name())
            .finish_non_exhaustive()
    }
}

/// The outcome of a request for a mutating policy.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The match results, evaluations, errors and denial.
    pub review: ReviewOutcome,
    /// The object before and after the mutations.
    pub mutated: ObjectMutation,
    /// The cost of the mutations, in CEL cost units.
    pub cost: u64,
}

/// Mutates the object of a case, and compares the result with the expectation. Returns an error if the outcome is
/// unknown.
pub(super) fn decide(
    mutating: &MutationInputs<'_>,
    (case, samples): (&Case, Samples),
    input: (&AdmissionRequest, Option<&Value>),
    bindings: &[Binding],
    context: &ReviewContext<'_>,
) -> Result<CaseDecision, String> {
    let outcome = outcome(mutating, input, (bindings, samples), context)?;
    let (request, _) = input;
    let mut decided = CaseDecision::new(outcome.review);
    if decided.outcome.not_evaluated_reason.is_some() {
        return Ok(decided);
    }
    let mut mutated = outcome.mutated;
    let completed = |object: Value| {
        let completed = mutating.kinds.completed(&request.gvk, object);
        let (Ok(object) | Err((object, _))) = completed;
        plain(mutating.kinds, &request.gvk, object)
    };
    decided.difference =
        expected::difference(&case.expect, &decided.outcome, &mut mutated, &completed);
    decided.mutated = Some(Box::new(mutated));
    decided.cost = outcome.cost;
    Ok(decided)
}

/// Mutates the object of a request. The object must already be prepared for the mutation stage.
///
/// # Errors
/// Returns the reason why the outcome is unknown.
pub fn outcome(
    mutating: &MutationInputs<'_>,
    (request, object): (&AdmissionRequest, Option<&Value>),
    (bindings, samples): (&[Binding], Samples),
    context: &ReviewContext<'_>,
) -> Result<Outcome, String> {
    let kinds = mutating.kinds;
    if request.operation == Operation::Delete {
        let why = "API servers never evaluate a mutating policy for a DELETE".to_owned();
        return Ok(Outcome {
            review: ReviewOutcome::not_evaluated(why),
            mutated: ObjectMutation {
                before: Value::Null,
                after: None,
                expected: None,
                steps: Vec::new(),
            },
            cost: 0,
        });
    }
    let bound = [BoundPolicy {
        policy: mutating.policy,
        bindings,
        params: context.params.clone(),
    }];
    let outcome = together(&bound, kinds, (request, object), context)?;
    let cost = (outcome.steps.iter()).fold(0, |sum: u64, step| sum.saturating_add(step.cost));
    let mut review = outcome.reviews.into_iter().next().unwrap_or_default();
    review.denial = outcome.denial;
    review.errors = outcome.errors;
    let evaluations = review.evaluations.iter();
    let conditions = evaluations.filter_map(|evaluation| evaluation.match_conditions.as_ref());
    let ignored = conditions.filter_map(|conditions| conditions.ignored.clone());
    review.errors.extend(ignored.collect::<Vec<_>>());
    let plain = |object: &Value| plain(kinds, &request.gvk, object.clone());
    let mut mutated = ObjectMutation {
        before: object.map(plain).unwrap_or_default(),
        after: outcome.object.as_ref().map(plain),
        expected: None,
        steps: outcome.steps,
    };
    if review.denial.is_none()
        && let Some(after) = &mutated.after
        && let Some(denial) = misplaced(after, request)
    {
        review.errors.push(denial.cause.clone());
        review.denial = Some(denial);
    }
    if review.denial.is_none()
        && let Some(after) = &mutated.after
        && let Some(denial) = invalid((&mutated.before, after), request, samples, mutating)
    {
        review.errors.push(denial.cause.clone());
        review.denial = Some(denial);
    }
    if review.denial.is_some() {
        mutated.after = None;
    }
    Ok(Outcome {
        review,
        mutated,
        cost,
    })
}

/// Applies several mutating policies to one request, as an API server does.
///
/// # Errors
/// Returns the reason why the outcome is unknown.
pub fn together(
    bound: &[BoundPolicy<'_>],
    kinds: &dyn Kinds,
    (request, object): (&AdmissionRequest, Option<&Value>),
    context: &ReviewContext<'_>,
) -> Result<MutationOutcome, String> {
    for bound_policy in bound {
        let matched = bound_policy
            .policy
            .admission()
            .matched_kind(request, context.namespaces);
        if let Some(matched) = matched
            && matched != request.gvk
            && !kinds.is_custom(&request.gvk)
        {
            return Err(format!(
                "the policy matches {} as {}, and conversion of mutated objects is not supported",
                request.gvk.kind,
                matched.api_version()
            ));
        }
    }
    let kinds = RecordingKinds {
        kinds,
        missing: Mutex::default(),
    };
    let mut mutation_context =
        MutationContext::new(&kinds, context.namespaces, Arc::clone(&context.authorizer));
    mutation_context
        .is_cancelled
        .clone_from(&context.is_cancelled);
    mutation_context.recorder.clone_from(&context.recorder);
    let outcome = mutate(request, object, bound, &mutation_context);
    if let Some(exceeded) = outcome.exceeded {
        return Err(exceeded.to_string());
    }
    if let Some(gvk) = kinds.missing().first() {
        return Err(format!(
            "the schema of {} {} is unknown, so the mutation cannot be applied; add its CustomResourceDefinition",
            gvk.api_version(),
            gvk.kind
        ));
    }
    if !outcome.unknown.is_empty() {
        return Err(format!(
            "the object after a mutation is unknown: {}",
            outcome.unknown.join("; ")
        ));
    }
    let invocations = outcome
        .reviews
        .iter()
        .map(|review| review.evaluations.len());
    if invocations.sum::<usize>() > 1 {
        // The API server iterates over Go maps of policies, bindings and params, so their order is undefined. Therefore
        // the result must be the same in reverse order.
        mutation_context.is_reversed = true;
        mutation_context.recorder = None;
        let reversed = mutate(request, object, bound, &mutation_context);
        if let Some(exceeded) = reversed.exceeded {
            return Err(exceeded.to_string());
        }
        let sorted = |outcome: &MutationOutcome| -> BTreeSet<String> {
            outcome.errors.iter().cloned().collect()
        };
        let is_equivalent = outcome.object == reversed.object
            && outcome.denial.is_some() == reversed.denial.is_some()
            && sorted(&outcome) == sorted(&reversed);
        if !is_equivalent {
            return Err(
                "the outcome depends on the order of policies, bindings and params, which is undefined in an API server"
                    .to_owned(),
            );
        }
    }
    Ok(outcome)
}

/// Removes null fields from an object of a built-in kind. Go decodes them as absent fields.
fn plain(kinds: &dyn Kinds, gvk: &Gvk, object: Value) -> Value {
    if kinds.is_custom(gvk) {
        object
    } else {
        without_nulls(&object)
    }
}

/// Records each kind whose types were requested but are unknown.
struct RecordingKinds<'a> {
    kinds: &'a dyn Kinds,
    missing: Mutex<BTreeSet<Gvk>>,
}

impl RecordingKinds<'_> {
    fn missing(&self) -> BTreeSet<Gvk> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.clone()
    }
}

impl Kinds for RecordingKinds<'_> {
    fn types(&self, gvk: &Gvk) -> Option<Arc<Types>> {
        let types = self.kinds.types(gvk);
        if types.is_none() {
            let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
            missing.insert(gvk.clone());
        }
        types
    }

    fn is_custom(&self, gvk: &Gvk) -> bool {
        self.kinds.is_custom(gvk)
    }

    fn read(&self, gvk: &Gvk, object: &Value, decoding: Decoding) -> Result<Value, String> {
        self.kinds.read(gvk, object, decoding)
    }

    fn completed(&self, gvk: &Gvk, object: Value) -> Result<Value, (Value, String)> {
        self.kinds.completed(gvk, object)
    }
}

/// Returns the denial if mutations moved the object to another namespace.
///
/// Source: `k8s.io/apiserver` `pkg/registry/rest/meta.go` (`EnsureObjectNamespaceMatchesRequestNamespace`, called by
/// `BeforeCreate` and `BeforeUpdate` after all mutations).
fn misplaced(after: &Value, request: &AdmissionRequest) -> Option<Status> {
    let namespace = after.pointer("/metadata/namespace").and_then(Value::as_str);
    let namespace = namespace.unwrap_or_default();
    let is_namespaces = request.gvr.group.is_empty() && request.gvr.resource == "namespaces";
    if namespace.is_empty()
        || request.namespace.is_empty()
        || is_namespaces
        || namespace == request.namespace
    {
        return None;
    }
    let cause =
        "the namespace of the provided object does not match the namespace sent on the request";
    Some(Status {
        code: 400,
        reason: "BadRequest".to_owned(),
        message: cause.to_owned(),
        cause: cause.to_owned(),
        binding: None,
        by: DeniedBy::Error,
    })
}

/// Returns the denial if mutations made the object invalid. For example, a required field is missing.
fn invalid(
    (before, after): (&Value, &Value),
    request: &AdmissionRequest,
    samples: Samples,
    mutating: &MutationInputs<'_>,
) -> Option<Status> {
    if before == after {
        return None;
    }
    let version = mutating.policy.admission().version();
    let errors = |object| errors(object, request, (samples, version), mutating.schemas);
    let old_errors = errors(before);
    let mut new_errors = errors(after);
    new_errors.retain(|error| !old_errors.contains(error));
    if new_errors.is_empty() {
        return None;
    }
    let cause = format!(
        "the API server rejects the object after the mutations: {}",
        new_errors.join("; ")
    );
    Some(Status {
        code: 422,
        reason: "Invalid".to_owned(),
        message: cause.clone(),
        cause,
        binding: None,
        by: DeniedBy::Error,
    })
}

/// Returns the validation errors of an object. A custom resource is validated against its definition, a built-in object
/// against its schema.
fn errors(
    object: &Value,
    request: &AdmissionRequest,
    (samples, version): (Samples, KubernetesVersion),
    schemas: &dyn SchemaResolver,
) -> Vec<String> {
    let gvk = &request.gvk;
    if request.subresource.is_empty()
        && let Some((crd, _)) = schemas.custom(gvk)
        && let Ok(validator) = Validator::new(crd.definition(), &gvk.version, version)
    {
        return match validator.validate_mutated(object, &request.namespace) {
            Ok(verdict) => (verdict.errors.iter())
                .filter(|error| error.detail != RULES_NOT_CHECKED)
                .map(ToString::to_string)
                .collect(),
            Err(error) => vec![error.to_string()],
        };
    }
    let violations = sample::violations(object, gvk, schemas, samples, "").into_iter();
    // The API server prunes unknown fields without an error.
    let violations = violations.filter(|violation| !violation.message.starts_with(sample::UNKNOWN));
    let mut errors: Vec<String> = violations
        .map(|violation| {
            let field = violation.field_ref.trim_start_matches('.');
            format!("{field}: {}", violation.message)
        })
        .collect();
    if request.operation == Operation::Create && request.subresource.is_empty() && !is_named(object)
    {
        errors.push("metadata.name: Required value: name or generateName is required".to_owned());
    }
    errors
}

/// Returns true if the object has a name or a name prefix (`metadata.generateName`).
///
/// Source: apimachinery `pkg/api/validation/objectmeta.go` (`ValidateObjectMetaAccessor`).
fn is_named(object: &Value) -> bool {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    ["/metadata/name", "/metadata/generateName"]
        .into_iter()
        .any(|pointer| text(pointer).is_some_and(|text| !text.is_empty()))
}

fn without_nulls(object: &Value) -> Value {
    match object {
        Value::Object(fields) => {
            let set = fields.iter().filter(|(_, field)| !field.is_null());
            set.map(|(name, field)| (name.clone(), without_nulls(field)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Describes how the outcome of a mutating policy differs from `expect`, if it differs. Does not compare the object.
pub(super) fn difference(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
    if expect.error.is_some() {
        return difference::error(expect, outcome, explain);
    }
    if outcome.denial.is_some() {
        return Some(format!(
            "the request is denied: {}; expect `error` if this is intended",
            explain(outcome)
        ));
    }
    if let Some(error) = outcome.errors.first() {
        return Some(format!(
            "the policy failed, but the request is not denied: {error}; expect `error` if this is intended"
        ));
    }
    match (expect.applies, applies(outcome)) {
        (Some(false), true) => Some("expected the policy not to apply, but it does".to_owned()),
        (Some(true), false) => Some(format!(
            "expected the policy to apply: {}",
            explain(outcome)
        )),
        (None, false) => Some(format!(
            "the policy does not apply: {}; expect `applies: false` if this is intended",
            explain(outcome)
        )),
        _ => None,
    }
}

/// Returns true if the mutations were evaluated for at least one binding and param.
pub(super) fn applies(outcome: &ReviewOutcome) -> bool {
    outcome.evaluations.iter().any(has_applied)
}

/// Returns the reason of the outcome as a clause without a period.
pub(super) fn explain(outcome: &ReviewOutcome) -> String {
    if outcome.denial.is_none() && applies(outcome) {
        return "the mutations were evaluated".to_owned();
    }
    difference::explain(outcome)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Builtin;
    use crate::version::KubernetesVersion;

    #[test]
    fn validation_errors_of_built_in_object_omit_unknown_fields() {
        let schemas = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
        let errors_of = |object: &Value, operation, subresource: &str| {
            let request = AdmissionRequest {
                operation,
                gvk: Gvk::new("apps", "v1", "Deployment"),
                subresource: subresource.into(),
                ..AdmissionRequest::default()
            };
            errors(
                object,
                &request,
                (Samples::Partial, KubernetesVersion::DEFAULT),
                schemas,
            )
        };
        let unnamed = "metadata.name: Required value: name or generateName is required";
        let deployment = |metadata: Value, spec: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
        let named = deployment(json!({"name": "a"}), json!({"extra": 1}));
        let none: [&str; 0] = [];
        assert_eq!(errors_of(&named, Operation::Create, ""), none);
        for metadata in [json!({}), json!({"name": ""}), json!({"generateName": ""})] {
            let object = deployment(metadata, json!({}));
            assert_eq!(errors_of(&object, Operation::Create, ""), [unnamed]);
            assert_eq!(errors_of(&object, Operation::Update, ""), none);
            assert_eq!(errors_of(&object, Operation::Create, "scale"), none);
        }
        let generated = deployment(json!({"generateName": "a-"}), json!({}));
        assert_eq!(errors_of(&generated, Operation::Create, ""), none);
        let mistyped = deployment(json!({"name": "a"}), json!({"replicas": "x", "extra": 1}));
        let errors = errors_of(&mistyped, Operation::Create, "");
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].starts_with("spec.replicas: "), "{errors:?}");
    }

    #[test]
    fn null_fields_are_removed_and_null_items_are_retained() {
        for (object, expected) in [
            (json!(null), json!(null)),
            (
                json!({"a": null, "b": {"c": null, "d": 0}}),
                json!({"b": {"d": 0}}),
            ),
            (json!([null, {"a": null}, "x"]), json!([null, {}, "x"])),
            (json!({"a": [], "b": false}), json!({"a": [], "b": false})),
        ] {
            assert_eq!(without_nulls(&object), expected);
        }
    }

    #[test]
    fn differences_by_denial_or_error_or_missing_mutation_are_described() {
        let expects = |applies| Expect {
            applies,
            ..Expect::default()
        };
        let failed = ReviewOutcome {
            errors: vec!["odd".to_owned()],
            ..ReviewOutcome::default()
        };
        for applies in [None, Some(true), Some(false)] {
            assert_eq!(
                difference(&expects(applies), &failed).as_deref(),
                Some(
                    "the policy failed, but the request is not denied: odd; expect `error` if this is intended"
                )
            );
        }
        let idle = ReviewOutcome::default();
        assert!(!applies(&idle));
        assert_eq!(difference(&expects(Some(false)), &idle), None);
        let text = difference(&expects(Some(true)), &idle).unwrap();
        assert!(text.starts_with("expected the policy to apply: "), "{text}");
        let text = difference(&expects(None), &idle).unwrap();
        assert!(text.starts_with("the policy does not apply: "), "{text}");
        let end = "; expect `applies: false` if this is intended";
        assert!(text.ends_with(end), "{text}");
    }
}
