//! Runs probes: evaluates the policy for each request, and compares the decision with the expected one.

mod request;
mod review_request;
mod target;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::api::{
    AuthorizerSource, BindingSource, Case, CaseOutcome, CaseStatus, PolicyProbeSpec, Request,
    Samples, Source,
};
use super::contradiction::contradictions;
use super::decision::{CaseDecision, ObjectMutation};
use super::mutation;
use super::validation::Violation;
use super::{prepare, sample};
use crate::defaulting::Stage;
use crate::policy::admission::{
    Admission, Authorizer, Binding, NamespaceSource, Object, ParamList, ParamSource, Recorder,
    Recording, ReviewContext, ReviewOutcome, TextLimits,
};
use crate::policy::exempt;
use crate::policy::subject::SubjectKind;
use crate::schema::Gvk;
use crate::schema::resolver::SchemaResolver;
use crate::schema::rest_mapper::RestMapper;
use crate::validation_rules::PathStep;
pub use request::{admission_request, equivalents, group_versions, groups, user_info};
use review_request::ReviewRequest;
pub(crate) use review_request::case_namespaces;
pub use target::explain;

/// The name of the generated binding for `bindings: Implied`.
const IMPLIED: &str = "implied";

/// The policy under test, and the cluster state for its cases.
#[derive(Clone)]
pub struct RunContext<'a> {
    /// The compiled policy.
    pub admission: &'a Admission,
    /// The paramKind of the policy.
    pub param_kind: Option<&'a Gvk>,
    /// The bindings of the policy, or the reason why they are unknown.
    pub bindings: Result<&'a [Binding], String>,
    /// The objects of the paramKind, or the reason why they are unknown.
    pub params: Result<&'a dyn ParamSource, String>,
    /// The existing namespaces, for cases without a `namespaceObject`.
    pub namespaces: &'a dyn NamespaceSource,
    /// The authorizer for `authorizer: FromCluster`, or the reason why it is not available.
    pub authorizer: Result<Arc<dyn Authorizer>, String>,
    /// The served resources, which determine kinds and scopes.
    pub mapper: &'a RestMapper,
    /// The schemas against which sample objects are validated.
    pub schemas: &'a dyn SchemaResolver,
    /// The reason why the API server rejects the policy, if any. All cases then fail.
    pub rejection: Option<&'a str>,
    /// The kind of the subject from which `admission` was compiled.
    pub kind: SubjectKind,
    /// The mutations. `None` unless `kind` is `MutatingAdmissionPolicy`.
    pub mutating: Option<mutation::MutationInputs<'a>>,
    /// The limits for recording the values of all subexpressions. `None` if no values are recorded.
    pub records: Option<TextLimits>,
}

impl std::fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext")
            .field("policy", &self.admission.name())
            .finish_non_exhaustive()
    }
}

/// The result of a case, with the details of its evaluation.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The result in the status of the probe.
    pub status: CaseStatus,
    /// The actual decision, if the case was evaluated.
    pub outcome: Option<ReviewOutcome>,
    /// The object before and after the mutations. `None` unless the policy is a mutating policy.
    pub mutated: Option<Box<ObjectMutation>>,
    /// The violations in the objects of the case and the probe. A case with violations is not evaluated. Paths such as
    /// `request.object.spec` are relative to the case. Paths such as `spec.inlineParams[0]` are relative to the probe.
    pub invalid: Vec<Violation>,
    /// The values of the evaluated subexpressions. Empty unless `RunContext::records` is set.
    pub recording: Recording,
    /// The failing rules of a CustomResourceDefinition. If no rule failed, the first rules that were true.
    pub rules: Vec<EvaluatedRule>,
    /// The number of failing rules that are not in `rules`.
    pub n_more_rules: usize,
}

/// A rule of a CustomResourceDefinition that was evaluated for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluatedRule {
    /// The version of the CustomResourceDefinition.
    pub version: String,
    /// The path of the validated value.
    pub path: Vec<PathStep>,
    /// The index of the rule among the rules of its schema.
    pub rule_index: usize,
    /// The source of the rule.
    pub expression: String,
    /// The error, if the rule failed.
    pub error: Option<String>,
    /// The values of the evaluated subexpressions. The rule counts as the expression with index 0.
    pub recording: Recording,
}

/// Runs all cases of a probe, in order.
#[must_use]
pub fn run(probe: &PolicyProbeSpec, run_context: &RunContext<'_>) -> Vec<CaseResult> {
    let runner = Runner::new(probe, run_context, None);
    probe.cases.iter().map(|case| runner.run(case)).collect()
}

/// Runs the cases of a probe one by one.
#[derive(Debug)]
pub struct Runner<'a> {
    run_context: &'a RunContext<'a>,
    prepared: Result<PreparedProbe<'a>, String>,
    is_cancelled: Option<Arc<AtomicBool>>,
}

impl<'a> Runner<'a> {
    /// Creates a runner for `probe`. If `is_cancelled` becomes true while a case runs, the case ends early. Its result
    /// must then be ignored.
    #[must_use]
    pub fn new(
        probe: &PolicyProbeSpec,
        run_context: &'a RunContext<'a>,
        is_cancelled: Option<Arc<AtomicBool>>,
    ) -> Self {
        Self {
            run_context,
            prepared: PreparedProbe::new(probe, run_context),
            is_cancelled,
        }
    }

    fn rejected(&self, case: &Case, why: &str) -> CaseResult {
        let noun = self.run_context.kind.row().evaluated;
        failed(case, &format!("the API server rejects the {noun}: {why}"))
    }

    /// Runs one case of the probe.
    #[must_use]
    pub fn run(&self, case: &Case) -> CaseResult {
        if let Some(why) = self.run_context.rejection {
            return self.rejected(case, why);
        }
        match &self.prepared {
            Ok(prepared) => {
                let request = prepared.request(case, self.run_context);
                prepared.run(case, &request, self.run_context, self.is_cancelled.as_ref())
            }
            Err(why) => pending(case, why),
        }
    }

    /// Validates and prepares the request of a case. The result can be reused for all versions of the policy.
    #[must_use]
    pub fn request(&self, case: &Case) -> CaseRequest {
        match &self.prepared {
            Ok(prepared) => prepared.request(case, self.run_context),
            Err(why) => CaseRequest(Err(Box::new(pending(case, why)))),
        }
    }

    /// Runs one case with a prepared request. The request may come from a runner for another version of the policy.
    #[must_use]
    pub fn run_with(&self, case: &Case, request: &CaseRequest) -> CaseResult {
        self.run_prepared(case, request, self.is_cancelled.as_ref())
    }

    /// Runs a case like [`Self::run_with`]. If `is_cancelled` becomes true, the case ends early. Its result must then
    /// be ignored.
    #[must_use]
    pub fn run_until(
        &self,
        case: &Case,
        request: &CaseRequest,
        is_cancelled: &Arc<AtomicBool>,
    ) -> CaseResult {
        self.run_prepared(case, request, Some(is_cancelled))
    }

    fn run_prepared(
        &self,
        case: &Case,
        request: &CaseRequest,
        is_cancelled: Option<&Arc<AtomicBool>>,
    ) -> CaseResult {
        if let Some(why) = self.run_context.rejection {
            return self.rejected(case, why);
        }
        match &self.prepared {
            Ok(prepared) => prepared.run(case, request, self.run_context, is_cancelled),
            Err(why) => pending(case, why),
        }
    }
}

/// The prepared request of a case, or the result if preparation failed.
#[derive(Debug)]
pub struct CaseRequest(Result<Box<ReviewRequest>, Box<CaseResult>>);

/// Returns the result of a case that cannot be evaluated because of `why`.
#[must_use]
pub fn pending(case: &Case, why: &str) -> CaseResult {
    CaseResult {
        status: pending_status(case.name.clone(), why),
        outcome: None,
        mutated: None,
        invalid: Vec::new(),
        recording: Recording::new(),
        rules: Vec::new(),
        n_more_rules: 0,
    }
}

/// Returns the status of a case that cannot be evaluated because of `why`.
#[must_use]
pub fn pending_status(name: String, why: &str) -> CaseStatus {
    CaseStatus {
        name,
        outcome: CaseOutcome::Pending,
        difference: Some(why.to_owned()),
        ..CaseStatus::default()
    }
}

/// Returns the result of a case that fails without being evaluated.
pub(super) fn failed(case: &Case, why: &str) -> CaseResult {
    let mut result = pending(case, why);
    result.status.outcome = CaseOutcome::Failed;
    result
}

/// Returns the result of a case with invalid objects. The case fails.
pub(super) fn invalid(case: &Case, invalid: Vec<Violation>) -> CaseResult {
    let texts = invalid
        .iter()
        .map(|violation| format!("{}: {}", violation.field_ref, violation.message));
    let texts: Vec<String> = texts.collect();
    let fields = invalid.iter().map(|violation| &*violation.field_ref);
    let why = format!("{}: {}", invalid_message(fields), texts.join("; "));
    CaseResult {
        invalid,
        ..failed(case, &why)
    }
}

/// Returns the beginning of the message about violations in `fields`. It states that the expectation cannot be met, or
/// that the API server rejects an object. The caller appends the violations.
#[must_use]
pub fn invalid_message<'a>(mut fields: impl Iterator<Item = &'a str>) -> &'static str {
    if fields.all(|field| field.contains("expect.")) {
        "no object can match the expectation"
    } else {
        "the API server rejects the object"
    }
}

/// The state that all cases of a probe share.
#[derive(Debug)]
struct PreparedProbe<'a> {
    bindings: Vec<Binding>,
    params: Params<'a>,
    asks_cluster: Option<Arc<dyn Authorizer>>,
    samples: Samples,
    invalid_params: Vec<Violation>,
}

enum Params<'a> {
    Given(Result<&'a dyn ParamSource, String>),
    Inline(ParamList),
}

impl std::fmt::Debug for Params<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Given(_) => "Given",
            Self::Inline(_) => "Inline",
        })
    }
}

impl<'a> PreparedProbe<'a> {
    fn new(probe: &PolicyProbeSpec, run_context: &RunContext<'a>) -> Result<Self, String> {
        let bindings = match probe.bindings {
            BindingSource::FromCluster => run_context.bindings.clone()?.to_vec(),
            BindingSource::Inline => probe
                .inline_bindings
                .iter()
                .enumerate()
                .map(|(n, spec)| inline_binding(&format!("inline-{n}"), spec.clone()))
                .collect(),
            BindingSource::Implied => {
                vec![implied_binding(
                    run_context.admission.name(),
                    run_context.param_kind,
                )]
            }
        };
        let params = match probe.params {
            Source::FromCluster => Params::Given(run_context.params.clone()),
            Source::Inline => Params::Inline(inline_params(&probe.inline_params, run_context)),
        };
        let asks_cluster = match probe.authorizer {
            AuthorizerSource::Inline => None,
            AuthorizerSource::FromCluster => Some(run_context.authorizer.clone()?),
        };
        Ok(Self {
            bindings,
            params,
            asks_cluster,
            samples: probe.samples,
            invalid_params: invalid_params(probe, run_context),
        })
    }

    fn request(&self, case: &Case, run_context: &RunContext<'_>) -> CaseRequest {
        let mut violations = self.invalid_params.clone();
        violations.extend(contradictions(&case.request));
        violations.extend(invalid_samples(&case.request, self.samples, run_context));
        violations.extend(invalid_expected(case, run_context));
        if !violations.is_empty() {
            return CaseRequest(Err(Box::new(invalid(case, violations))));
        }
        let (mapper, schemas) = (run_context.mapper, run_context.schemas);
        let stage = target::stage(run_context.kind);
        let version = run_context.admission.version();
        let sample = (self.samples, stage);
        let prepared = prepare::objects(&case.request, version, sample, mapper, schemas);
        let request =
            prepared.and_then(|prepared| Ok(Box::new(ReviewRequest::new(prepared, mapper)?)));
        CaseRequest(request.map_err(|why| Box::new(pending(case, &why))))
    }

    fn run(
        &self,
        case: &Case,
        request: &CaseRequest,
        run_context: &RunContext<'_>,
        is_cancelled: Option<&Arc<AtomicBool>>,
    ) -> CaseResult {
        let review_request = match &request.0 {
            Ok(review_request) => review_request,
            Err(result) => return (**result).clone(),
        };
        let namespaces = review_request.namespaces(run_context.namespaces);
        let to = (run_context.admission).matched_kind(&review_request.request, &namespaces);
        if to.is_some()
            && let Err(why) = review_request.check_readable_fields(run_context.admission)
        {
            return pending(case, &why);
        }
        let request = match review_request.as_kind(to.clone(), run_context.schemas) {
            Ok(request) => request,
            Err(why) => return pending(case, &why),
        };
        if target::is_exempt(
            (run_context.kind, run_context.admission.name()),
            &request.gvr,
            run_context.admission.version(),
        ) {
            let verb = if run_context.kind.is_webhooks() {
                "call"
            } else {
                "evaluate"
            };
            let outcome = ReviewOutcome::not_evaluated(format!(
                "API servers never {verb} a {} for {}",
                run_context.kind.row().evaluated,
                exempt::name(&request.gvr)
            ));
            return self.result(
                case,
                run_context,
                CaseDecision::new(outcome),
                Recording::new(),
            );
        }
        let recorder = run_context
            .records
            .map(|limits| Arc::new(Recorder::new(limits)));
        let authorizer = (self.asks_cluster.as_ref()).unwrap_or(&review_request.authorizer);
        let none = ParamList::default();
        let mut context = ReviewContext::new(&none, &namespaces, Arc::clone(authorizer));
        context.is_cancelled = is_cancelled.cloned();
        context.recorder.clone_from(&recorder);
        if run_context.param_kind.is_some() {
            context.params = match &self.params {
                Params::Given(given) => given.clone(),
                Params::Inline(list) => Ok(list),
            };
            if let Err(why) = &context.params {
                return pending(case, why);
            }
        }
        let decided = match &run_context.mutating {
            None => {
                let outcome = run_context
                    .admission
                    .review(&request, &self.bindings, &context);
                Ok(CaseDecision::new(outcome))
            }
            Some(mutating) => {
                let object = review_request.object();
                let case = (case, self.samples);
                mutation::decide(mutating, case, (&request, object), &self.bindings, &context)
            }
        };
        let mut decided = match decided {
            Ok(decided) => decided,
            Err(why) => return pending(case, &why),
        };
        if let Some(exceeded) = decided.outcome.exceeded {
            return pending(case, &exceeded.to_string());
        }
        context.recorder = None;
        if target::stage(run_context.kind) == Stage::Validation
            && let Err(why) = review_request.check_generated_names(
                run_context,
                (&self.bindings, to),
                &context,
                &decided.outcome,
            )
        {
            return pending(case, &why);
        }
        decided.note_unmatched(
            (run_context.admission, &self.bindings),
            &request,
            &namespaces,
        );
        let recording = recorder.map(|recorder| recorder.take());
        self.result(case, run_context, decided, recording.unwrap_or_default())
    }

    fn result(
        &self,
        case: &Case,
        run_context: &RunContext<'_>,
        mut decided: CaseDecision,
        recording: Recording,
    ) -> CaseResult {
        // The API server sends each warning only once.
        // Source: `k8s.io/apiserver` `pkg/endpoints/filters/warning.go`, `AddWarning`.
        let mut sent = BTreeSet::new();
        (decided.outcome.warnings).retain(|text| sent.insert(text.clone()));
        CaseResult {
            status: case_status(case, run_context, &self.bindings, &decided),
            outcome: Some(decided.outcome),
            mutated: decided.mutated,
            invalid: Vec::new(),
            recording,
            rules: Vec::new(),
            n_more_rules: 0,
        }
    }
}

/// Returns the object and the old object of a request, with kind and field path.
pub(super) fn objects(request: &Request) -> impl Iterator<Item = (&Value, Gvk, &'static str)> {
    let objects = [
        (&request.object, "request.object"),
        (&request.old_object, "request.oldObject"),
    ];
    objects.into_iter().filter_map(|(object, path)| {
        let object = object.as_ref()?;
        Some((object, Object::new(object).gvk().clone(), path))
    })
}

fn invalid_samples(
    request: &Request,
    samples: Samples,
    run_context: &RunContext<'_>,
) -> Vec<Violation> {
    let object_violations = objects(request).map(|(object, gvk, path)| {
        sample::violations(object, &gvk, run_context.schemas, samples, path)
    });
    let namespace = request.namespace_object.as_ref().map(|namespace| {
        let gvk = Gvk::new("", "v1", "Namespace");
        let path = "request.namespaceObject";
        sample::violations(namespace, &gvk, run_context.schemas, samples, path)
    });
    object_violations.chain(namespace).flatten().collect()
}

/// Returns fields of the expected object that its kind does not have. No policy can set such a field, so the case is
/// wrong.
fn invalid_expected(case: &Case, run_context: &RunContext<'_>) -> Vec<Violation> {
    let (Some(expected), Some(object)) = (&case.expect.object, &case.request.object) else {
        return Vec::new();
    };
    let gvk = Object::new(object).gvk().clone();
    sample::unknown_fields(expected, &gvk, run_context.schemas, "expect.object")
}

fn invalid_params(probe: &PolicyProbeSpec, run_context: &RunContext<'_>) -> Vec<Violation> {
    let Some(kind) = run_context
        .param_kind
        .filter(|_| probe.params == Source::Inline)
    else {
        return Vec::new();
    };
    let params = probe.inline_params.iter().enumerate();
    let violations = |(n, param): (usize, &Value)| {
        let path = format!("spec.inlineParams[{n}]");
        sample::violations(param, kind, run_context.schemas, probe.samples, &path)
    };
    params.flat_map(violations).collect()
}

/// Compares the decision of a case with the expectation.
fn case_status(
    case: &Case,
    run_context: &RunContext<'_>,
    bindings: &[Binding],
    decided: &CaseDecision,
) -> CaseStatus {
    let (policy, kind) = (run_context.admission.name(), run_context.kind);
    let outcome = &decided.outcome;
    let difference = target::difference(kind, &case.expect, policy, bindings, outcome)
        .or_else(|| decided.difference.clone());
    let cost: u64 = outcome
        .evaluations
        .iter()
        .map(|evaluation| evaluation.costs.used())
        .fold(decided.cost, u64::saturating_add);
    CaseStatus {
        name: case.name.clone(),
        outcome: if difference.is_none() {
            CaseOutcome::Passed
        } else {
            CaseOutcome::Failed
        },
        decision: target::decision(kind, outcome),
        message: (outcome.denial.as_ref())
            .map(|denial| denial.cause.clone())
            .or_else(|| outcome.not_evaluated_reason.clone()),
        cost_used: Some(i64::try_from(cost).unwrap_or(i64::MAX)),
        difference,
    }
}

fn inline_binding(name: &str, spec: ValidatingAdmissionPolicyBindingSpec) -> Binding {
    let mut binding = ValidatingAdmissionPolicyBinding {
        spec,
        ..ValidatingAdmissionPolicyBinding::default()
    };
    binding.metadata.name = Some(name.to_owned());
    Binding::new(&binding)
}

/// Returns the generated binding for `bindings: Implied`. It has the action Deny, matches all resources and uses all
/// params.
#[must_use]
pub fn implied_binding(policy: &str, param_kind: Option<&Gvk>) -> Binding {
    let spec = ValidatingAdmissionPolicyBindingSpec {
        validation_actions: vec!["Deny".to_owned()],
        policy_name: policy.to_owned(),
        param_ref: param_kind.map(|_| ParamRef {
            selector: Some(LabelSelector::default()),
            parameter_not_found_action: Some("Deny".to_owned()),
            ..ParamRef::default()
        }),
        match_resources: None,
    };
    inline_binding(IMPLIED, spec)
}

/// Returns the inline params of a probe. The default apiVersion and kind are those of the paramKind.
fn inline_params(params: &[Value], run_context: &RunContext<'_>) -> ParamList {
    let kind = run_context.param_kind;
    let object = |param: &Value| {
        let mut param = param.clone();
        if let (Some(kind), Some(fields)) = (kind, param.as_object_mut()) {
            fields
                .entry("apiVersion")
                .or_insert_with(|| kind.api_version().into());
            fields
                .entry("kind")
                .or_insert_with(|| kind.kind.clone().into());
        }
        prepare::store(&mut param);
        Object::new(&param)
    };
    let objects: Vec<Object> = params.iter().map(object).collect();
    let served = kind.and_then(|kind| run_context.mapper.resources_of_kind(kind).next());
    let is_namespaced = served.map_or_else(
        || objects.iter().any(|object| !object.namespace().is_empty()),
        |served| served.namespaced,
    );
    let of_kind = |object: &Object| kind.is_none_or(|kind| object.gvk() == kind);
    ParamList::new(is_namespaced, objects.into_iter().filter(of_kind).collect())
}
