//! Running a probe: each request through the policy, and what was decided against what must be.

mod asked;
mod request;
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
use super::decided::{Decided, Mutated};
use super::mutation;
use super::validation::Violation;
use super::{prepare, sample};
use crate::defaulting::Stage;
use crate::policy::admission::{
    Admission, Authorizer, Binding, NamespaceSource, Object, ParamList, ParamSource, Recorder,
    Recording, ReviewContext, ReviewOutcome,
};
use crate::policy::exempt;
use crate::policy::subject::SubjectKind;
use crate::schema::Gvk;
use crate::schema::resolver::SchemaResolver;
use crate::schema::rest_mapper::RestMapper;
use crate::validation_rules::PathStep;
use asked::Asked;
pub(crate) use asked::case_namespaces;
pub use request::{admission_request, equivalents, group_versions, groups, user_info};
pub use target::explain;

/// The name of the binding that `bindings: Implied` stands for.
const IMPLIED: &str = "implied";

/// Environment in which a probe is run.
#[derive(Clone)]
pub struct Setting<'a> {
    /// The policy.
    pub admission: &'a Admission,
    /// The kind of its params.
    pub param_kind: Option<&'a Gvk>,
    /// Its bindings; an error says why they are not known.
    pub bindings: Result<&'a [Binding], String>,
    /// The objects of its paramKind; an error says why they are not known.
    pub params: Result<&'a dyn ParamSource, String>,
    /// The namespaces that exist.
    pub namespaces: &'a dyn NamespaceSource,
    /// Who answers for `authorizer: FromCluster`; an error says why nobody does.
    pub authorizer: Result<Arc<dyn Authorizer>, String>,
    /// Resources that are served.
    pub mapper: &'a RestMapper,
    /// The types of kinds, for the sample objects.
    pub schemas: &'a dyn SchemaResolver,
    /// Why the API server refuses the policy, if it does: then no case can pass.
    pub refusal: Option<&'a str>,
    /// The kind of the subject that `admission` was compiled from.
    pub kind: SubjectKind,
    /// The mutations, if the kind is `MutatingAdmissionPolicy`.
    pub mutating: Option<mutation::Mutating<'a>>,
    /// True to record the values of all parts of the expressions.
    pub records: bool,
}

impl std::fmt::Debug for Setting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting")
            .field("policy", &self.admission.name())
            .finish_non_exhaustive()
    }
}

/// Result of a case, with everything that led to it.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// Result as reported in the status of the probe.
    pub status: CaseStatus,
    /// Actual decision; `None` where the case could not be evaluated.
    pub outcome: Option<ReviewOutcome>,
    /// The object before and after mutations, where the probe is about them.
    pub mutated: Option<Box<Mutated>>,
    /// The faults of the sample objects, by their fields in the probe, for which nothing was evaluated:
    /// `request.object.spec` is one of the case, `spec.inlineParams[0]` one of the probe.
    pub invalid: Vec<Violation>,
    /// The parts of the expressions that were evaluated, where they are recorded.
    pub recording: Recording,
    /// The rules of a CustomResourceDefinition that decided; where none did, the first that were true.
    pub rules: Vec<EvaluatedRule>,
    /// How many more rules decided than are in `rules`.
    pub n_more_rules: usize,
}

/// A rule of a CustomResourceDefinition that was evaluated for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluatedRule {
    /// The version of the definition.
    pub version: String,
    /// The path to the value.
    pub place: Vec<PathStep>,
    /// The index of the rule among those of its schema.
    pub n: usize,
    /// The expression.
    pub expression: String,
    /// The error that it came to.
    pub error: Option<String>,
    /// The parts that were evaluated, as those of an expression with the index 0.
    pub recording: Recording,
}

/// Runs all cases of a probe, in order.
#[must_use]
pub fn run(probe: &PolicyProbeSpec, setting: &Setting<'_>) -> Vec<CaseResult> {
    let runner = Runner::new(probe, setting, None);
    probe.cases.iter().map(|case| runner.run(case)).collect()
}

/// A probe whose cases are run one by one.
#[derive(Debug)]
pub struct Runner<'a> {
    setting: &'a Setting<'a>,
    prepared: Result<Prepared<'a>, String>,
    is_cancelled: Option<Arc<AtomicBool>>,
}

impl<'a> Runner<'a> {
    /// Makes a probe ready to be run in `setting`.
    ///
    /// Where `is_cancelled` is set while a case is run, that ends soon, and what it came to says nothing.
    #[must_use]
    pub fn new(
        probe: &PolicyProbeSpec,
        setting: &'a Setting<'a>,
        is_cancelled: Option<Arc<AtomicBool>>,
    ) -> Self {
        Self {
            setting,
            prepared: Prepared::new(probe, setting),
            is_cancelled,
        }
    }

    fn refused(&self, case: &Case, why: &str) -> CaseResult {
        let noun = self.setting.kind.row().evaluated;
        failed(case, &format!("the API server refuses the {noun}: {why}"))
    }

    /// Runs one of the probe's cases.
    #[must_use]
    pub fn run(&self, case: &Case) -> CaseResult {
        if let Some(why) = self.setting.refusal {
            return self.refused(case, why);
        }
        match &self.prepared {
            Ok(prepared) => {
                let request = prepared.request(case, self.setting);
                prepared.run(case, &request, self.setting, self.is_cancelled.as_ref())
            }
            Err(why) => pending(case, why),
        }
    }

    /// The request of a case, checked and completed: what of a case is the same for all versions of a policy.
    #[must_use]
    pub fn request(&self, case: &Case) -> CaseRequest {
        match &self.prepared {
            Ok(prepared) => prepared.request(case, self.setting),
            Err(why) => CaseRequest(Err(Box::new(pending(case, why)))),
        }
    }

    /// Runs one of the probe's cases, whose request a runner of another version of the policy has made.
    #[must_use]
    pub fn run_with(&self, case: &Case, request: &CaseRequest) -> CaseResult {
        self.run_prepared(case, request, self.is_cancelled.as_ref())
    }

    /// As [`Self::run_with`], but the case ends soon after `is_cancelled` is set, and its result means nothing then.
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
        if let Some(why) = self.setting.refusal {
            return self.refused(case, why);
        }
        match &self.prepared {
            Ok(prepared) => prepared.run(case, request, self.setting, is_cancelled),
            Err(why) => pending(case, why),
        }
    }
}

/// The request of a case with complete objects, or what comes of the case without asking.
#[derive(Debug)]
pub struct CaseRequest(Result<Box<Asked>, Box<CaseResult>>);

/// A case that could not be evaluated.
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

/// The status of a case, by its name, that could not be evaluated because of `why`.
#[must_use]
pub fn pending_status(name: String, why: &str) -> CaseStatus {
    CaseStatus {
        name,
        outcome: CaseOutcome::Pending,
        difference: Some(why.to_owned()),
        ..CaseStatus::default()
    }
}

/// A case that fails before anything is decided.
pub(super) fn failed(case: &Case, why: &str) -> CaseResult {
    let mut result = pending(case, why);
    result.status.outcome = CaseOutcome::Failed;
    result
}

/// A case that fails because objects of it, or of its probe, are none that the API server takes.
pub(super) fn invalid(case: &Case, invalid: Vec<Violation>) -> CaseResult {
    let texts = invalid
        .iter()
        .map(|violation| format!("{}: {}", violation.field_ref, violation.message));
    let texts: Vec<String> = texts.collect();
    let fields = invalid.iter().map(|violation| &*violation.field_ref);
    let why = format!("{}: {}", fault(fields), texts.join("; "));
    CaseResult {
        invalid,
        ..failed(case, &why)
    }
}

/// The fault of a case whose objects are wrong in these fields.
#[must_use]
pub fn fault<'a>(mut fields: impl Iterator<Item = &'a str>) -> &'static str {
    if fields.all(|field| field.contains("expect.")) {
        "no object can be as it is expected"
    } else {
        "the API server refuses the object"
    }
}

/// State shared by all cases of a probe.
#[derive(Debug)]
struct Prepared<'a> {
    bindings: Vec<Binding>,
    params: Params<'a>,
    asks_cluster: Option<Arc<dyn Authorizer>>,
    samples: Samples,
    /// The faults of the params of the probe.
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

impl<'a> Prepared<'a> {
    fn new(probe: &PolicyProbeSpec, setting: &Setting<'a>) -> Result<Self, String> {
        let bindings = match probe.bindings {
            BindingSource::FromCluster => setting.bindings.clone()?.to_vec(),
            BindingSource::Inline => probe
                .inline_bindings
                .iter()
                .enumerate()
                .map(|(n, spec)| inline_binding(&format!("inline-{n}"), spec.clone()))
                .collect(),
            BindingSource::Implied => {
                vec![implied_binding(
                    setting.admission.name(),
                    setting.param_kind,
                )]
            }
        };
        let params = match probe.params {
            Source::FromCluster => Params::Given(setting.params.clone()),
            Source::Inline => Params::Inline(inline_params(&probe.inline_params, setting)),
        };
        let asks_cluster = match probe.authorizer {
            AuthorizerSource::Inline => None,
            AuthorizerSource::FromCluster => Some(setting.authorizer.clone()?),
        };
        Ok(Self {
            bindings,
            params,
            asks_cluster,
            samples: probe.samples,
            invalid_params: invalid_params(probe, setting),
        })
    }

    /// The request of a case.
    fn request(&self, case: &Case, setting: &Setting<'_>) -> CaseRequest {
        let mut faults = self.invalid_params.clone();
        faults.extend(contradictions(&case.request));
        faults.extend(invalid_samples(&case.request, self.samples, setting));
        faults.extend(invalid_expected(case, setting));
        if !faults.is_empty() {
            return CaseRequest(Err(Box::new(invalid(case, faults))));
        }
        let (mapper, schemas) = (setting.mapper, setting.schemas);
        let stage = target::stage(setting.kind);
        let prepared = prepare::objects(&case.request, self.samples, stage, mapper, schemas);
        let request = prepared.and_then(|prepared| Ok(Box::new(Asked::new(prepared, mapper)?)));
        CaseRequest(request.map_err(|why| Box::new(pending(case, &why))))
    }

    fn run(
        &self,
        case: &Case,
        request: &CaseRequest,
        setting: &Setting<'_>,
        is_cancelled: Option<&Arc<AtomicBool>>,
    ) -> CaseResult {
        let asked = match &request.0 {
            Ok(asked) => asked,
            Err(result) => return (**result).clone(),
        };
        let namespaces = asked.namespaces(setting.namespaces);
        let to = (setting.admission).matched_kind(&asked.request, &namespaces);
        if to.is_some()
            && let Err(why) = asked.decides(setting.admission)
        {
            return pending(case, &why);
        }
        let request = match asked.as_kind(to.clone(), setting.schemas) {
            Ok(request) => request,
            Err(why) => return pending(case, &why),
        };
        if target::is_exempt(setting.kind, &request.gvr) {
            let outcome = ReviewOutcome::not_asked(format!(
                "no API server asks a {} about {}",
                setting.kind.row().evaluated,
                exempt::name(&request.gvr)
            ));
            return self.judged(case, setting, Decided::of(outcome), Recording::new());
        }
        let recorder = setting.records.then(|| Arc::new(Recorder::default()));
        let authorizer = (self.asks_cluster.as_ref()).unwrap_or(&asked.authorizer);
        let none = ParamList::default();
        let mut context = ReviewContext::new(&none, &namespaces, Arc::clone(authorizer));
        context.is_cancelled = is_cancelled.cloned();
        context.recorder.clone_from(&recorder);
        if setting.param_kind.is_some() {
            context.params = match &self.params {
                Params::Given(given) => given.clone(),
                Params::Inline(list) => Ok(list),
            };
            if let Err(why) = &context.params {
                return pending(case, why);
            }
        }
        let decided = match &setting.mutating {
            None => {
                let outcome = setting.admission.review(&request, &self.bindings, &context);
                Ok(Decided::of(outcome))
            }
            Some(mutating) => {
                let object = asked.object();
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
        if target::stage(setting.kind) == Stage::Validation
            && let Err(why) =
                asked.is_settled(setting, (&self.bindings, to), &context, &decided.outcome)
        {
            return pending(case, &why);
        }
        decided.note_unmatched((setting.admission, &self.bindings), &request, &namespaces);
        let recording = recorder.map(|recorder| recorder.take());
        self.judged(case, setting, decided, recording.unwrap_or_default())
    }

    /// The result of a case that was decided.
    fn judged(
        &self,
        case: &Case,
        setting: &Setting<'_>,
        mut decided: Decided,
        recording: Recording,
    ) -> CaseResult {
        // A client is warned once of each thing.
        // Source: `k8s.io/apiserver` `pkg/endpoints/filters/warning.go`, `AddWarning`.
        let mut told = BTreeSet::new();
        (decided.outcome.warnings).retain(|text| told.insert(text.clone()));
        CaseResult {
            status: judge(case, setting, &self.bindings, &decided),
            outcome: Some(decided.outcome),
            mutated: decided.mutated,
            invalid: Vec::new(),
            recording,
            rules: Vec::new(),
            n_more_rules: 0,
        }
    }
}

/// The object of a request and that before it, each with its kind and its field.
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

/// The faults of the objects of a request.
fn invalid_samples(request: &Request, samples: Samples, setting: &Setting<'_>) -> Vec<Violation> {
    let of_objects = objects(request).map(|(object, gvk, path)| {
        sample::violations(object, &gvk, setting.schemas, samples, path)
    });
    let namespace = request.namespace_object.as_ref().map(|namespace| {
        let gvk = Gvk::new("", "v1", "Namespace");
        let path = "request.namespaceObject";
        sample::violations(namespace, &gvk, setting.schemas, samples, path)
    });
    of_objects.chain(namespace).flatten().collect()
}

/// The fields of the expected object that its kind does not have: that such a field is absent always holds.
fn invalid_expected(case: &Case, setting: &Setting<'_>) -> Vec<Violation> {
    let (Some(expected), Some(object)) = (&case.expect.object, &case.request.object) else {
        return Vec::new();
    };
    let gvk = Object::new(object).gvk().clone();
    sample::unknown_fields(expected, &gvk, setting.schemas, "expect.object")
}

/// The faults of the params that a probe brings.
fn invalid_params(probe: &PolicyProbeSpec, setting: &Setting<'_>) -> Vec<Violation> {
    let Some(kind) = setting
        .param_kind
        .filter(|_| probe.params == Source::Inline)
    else {
        return Vec::new();
    };
    let params = probe.inline_params.iter().enumerate();
    let of_param = |(n, param): (usize, &Value)| {
        let path = format!("spec.inlineParams[{n}]");
        sample::violations(param, kind, setting.schemas, probe.samples, &path)
    };
    params.flat_map(of_param).collect()
}

/// Holds what was decided against what must be.
fn judge(
    case: &Case,
    setting: &Setting<'_>,
    bindings: &[Binding],
    decided: &Decided,
) -> CaseStatus {
    let (policy, kind) = (setting.admission.name(), setting.kind);
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
            .or_else(|| outcome.not_asked.clone()),
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

/// A binding of the policy that denies, matches all, and takes all params.
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

/// The params of a probe; those that say no apiVersion and kind are of the paramKind.
fn inline_params(params: &[Value], setting: &Setting<'_>) -> ParamList {
    let kind = setting.param_kind;
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
    let served = kind.and_then(|kind| setting.mapper.resources_of_kind(kind).next());
    let is_namespaced = served.map_or_else(
        || objects.iter().any(|object| !object.namespace().is_empty()),
        |served| served.namespaced,
    );
    let of_kind = |object: &Object| kind.is_none_or(|kind| object.gvk() == kind);
    ParamList::new(is_namespaced, objects.into_iter().filter(of_kind).collect())
}
