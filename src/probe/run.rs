//! Running a probe: each request through the policy, and what was decided against what must be.

mod asked;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use super::api::{
    AuthorizerSource, BindingSource, Case, CaseOutcome, CaseStatus, Decision, Expect,
    PolicyProbeSpec, Request, Samples, Source,
};
use super::validation::Violation;
use super::{difference, prepare, sample, webhook};
use crate::policy::admission::{
    Admission, AdmissionRequest, Authorizer, Binding, Equivalent, NamespaceSource, Object,
    Operation, ParamList, ParamSource, Recorder, Recording, ReviewContext, ReviewOutcome, UserInfo,
};
use crate::policy::exempt;
use crate::schema::resolver::SchemaResolver;
use crate::schema::rest_mapper::RestMapper;
use crate::schema::{GroupVersion, Gvk, Gvr};
use asked::Asked;
pub(crate) use asked::case_namespaces;

/// The name of the binding that `bindings: Implied` stands for.
const IMPLIED: &str = "implied";

/// The sort of object that an API server asks about the requests of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A `ValidatingAdmissionPolicy`.
    Policy,
    /// A webhook of a configuration, as a policy with its rules, selectors and match conditions and without
    /// validations: what is known is whether it is called.
    Webhook,
}

impl TargetKind {
    /// Reports whether no API server asks it about `resource`.
    fn is_exempt(self, resource: &Gvr) -> bool {
        match self {
            Self::Policy => exempt::is_exempt(resource),
            Self::Webhook => exempt::is_exempt_from_webhooks(resource),
        }
    }

    /// The name in messages.
    const fn noun(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Webhook => "webhook",
        }
    }

    /// Why a request was decided so, in a sentence.
    #[must_use]
    pub fn explain(self, outcome: &ReviewOutcome) -> String {
        match self {
            Self::Policy => difference::explain(outcome),
            Self::Webhook => webhook::explain(outcome),
        }
    }

    fn difference(
        self,
        expect: &Expect,
        policy: &str,
        bindings: &[Binding],
        outcome: &ReviewOutcome,
    ) -> Option<String> {
        match self {
            Self::Policy => difference::of(expect, policy, bindings, outcome),
            Self::Webhook => webhook::difference(expect, outcome),
        }
    }
}

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
    /// The sort of object that the policy stands for.
    pub target: TargetKind,
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
    /// The faults of the sample objects, by their fields in the probe, for which nothing was evaluated:
    /// `request.object.spec` is one of the case, `spec.inlineParams[0]` one of the probe.
    pub invalid: Vec<Violation>,
    /// The parts of the expressions that were evaluated, where they are recorded.
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
        let noun = self.setting.target.noun();
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
        if let Some(why) = self.setting.refusal {
            return self.refused(case, why);
        }
        match &self.prepared {
            Ok(prepared) => prepared.run(case, request, self.setting, self.is_cancelled.as_ref()),
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
        status: CaseStatus {
            name: case.name.clone(),
            outcome: CaseOutcome::Pending,
            difference: Some(why.to_owned()),
            ..CaseStatus::default()
        },
        outcome: None,
        invalid: Vec::new(),
        recording: Recording::new(),
    }
}

/// A case that fails before anything is decided.
fn failed(case: &Case, why: &str) -> CaseResult {
    let mut result = pending(case, why);
    result.status.outcome = CaseOutcome::Failed;
    result
}

/// A case that fails because objects of it, or of its probe, are none that the API server takes.
fn invalid(case: &Case, invalid: Vec<Violation>) -> CaseResult {
    let texts = invalid
        .iter()
        .map(|violation| format!("{}: {}", violation.field_ref, violation.message));
    let texts: Vec<String> = texts.collect();
    CaseResult {
        invalid,
        ..failed(
            case,
            &format!("the API server refuses the object: {}", texts.join("; ")),
        )
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
        faults.extend(invalid_samples(&case.request, self.samples, setting));
        if !faults.is_empty() {
            return CaseRequest(Err(Box::new(invalid(case, faults))));
        }
        let (mapper, schemas) = (setting.mapper, setting.schemas);
        let prepared = prepare::objects(&case.request, self.samples, mapper, schemas);
        let request = prepared.and_then(|prepared| {
            let request = admission_request(&prepared, setting.mapper)?;
            Ok(Box::new(Asked::new(prepared.into_owned(), request)))
        });
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
        let request = match asked.as_kind(to, setting.schemas) {
            Ok(request) => request,
            Err(why) => return pending(case, &why),
        };
        let recorder = setting.records.then(|| Arc::new(Recorder::default()));
        let result = |outcome: ReviewOutcome| CaseResult {
            status: judge(case, setting, &self.bindings, &outcome),
            outcome: Some(outcome),
            invalid: Vec::new(),
            recording: recorder
                .as_ref()
                .map(|recorder| recorder.take())
                .unwrap_or_default(),
        };
        if setting.target.is_exempt(&request.gvr) {
            return result(ReviewOutcome::not_asked(format!(
                "no API server asks a {} about {}",
                setting.target.noun(),
                exempt::name(&request.gvr)
            )));
        }
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
        let admission = setting.admission;
        let mut outcome = admission.review(&request, &self.bindings, &context);
        // A client is warned once of each thing.
        // Source: `k8s.io/apiserver` `pkg/endpoints/filters/warning.go`, `AddWarning`.
        let mut told = BTreeSet::new();
        outcome.warnings.retain(|text| told.insert(text.clone()));
        result(outcome)
    }
}

/// The faults of the objects of a request.
fn invalid_samples(request: &Request, samples: Samples, setting: &Setting<'_>) -> Vec<Violation> {
    let objects = [
        (&request.object, "request.object"),
        (&request.old_object, "request.oldObject"),
    ];
    let of_objects = objects.into_iter().filter_map(|(object, path)| {
        let object = object.as_ref()?;
        let gvk = Object::new(object).gvk().clone();
        Some(sample::violations(
            object,
            &gvk,
            setting.schemas,
            samples,
            path,
        ))
    });
    let namespace = request.namespace_object.as_ref().map(|namespace| {
        let gvk = Gvk::new("", "v1", "Namespace");
        let path = "request.namespaceObject";
        sample::violations(namespace, &gvk, setting.schemas, samples, path)
    });
    of_objects.chain(namespace).flatten().collect()
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
    outcome: &ReviewOutcome,
) -> CaseStatus {
    let policy = setting.admission.name();
    let difference = setting
        .target
        .difference(&case.expect, policy, bindings, outcome);
    let cost: u64 = outcome
        .evaluations
        .iter()
        .map(|evaluation| evaluation.costs.used())
        .fold(0, u64::saturating_add);
    CaseStatus {
        name: case.name.clone(),
        outcome: if difference.is_none() {
            CaseOutcome::Passed
        } else {
            CaseOutcome::Failed
        },
        decision: match (outcome.is_allowed(), setting.target) {
            (true, TargetKind::Policy) => Some(Decision::Allow),
            // What a webhook says is not known.
            (true, TargetKind::Webhook) => None,
            (false, _) => Some(Decision::Deny),
        },
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

/// The API groups of the resources and objects that the cases of a probe name: what is served of them
/// decides which requests there are.
#[must_use]
pub fn groups(probe: &PolicyProbeSpec) -> BTreeSet<String> {
    let requests = probe.cases.iter().map(|case| &case.request);
    let of_request = |request: &Request| -> Vec<String> {
        let named = request.resource.iter().map(|named| named.group.clone());
        let objects = [&request.object, &request.old_object].into_iter().flatten();
        let of_object = |object: &Value| {
            let api_version = object.get("apiVersion")?.as_str()?;
            let (group, _) = api_version.split_once('/').unwrap_or_default();
            Some(group.to_owned())
        };
        named.chain(objects.filter_map(of_object)).collect()
    };
    requests.flat_map(of_request).collect()
}

/// The group versions of the sample objects of a probe.
#[must_use]
pub fn group_versions(probe: &PolicyProbeSpec) -> BTreeSet<GroupVersion> {
    let requests = probe.cases.iter().map(|case| &case.request);
    let of_request = |request: &Request| -> Vec<GroupVersion> {
        let objects = [&request.object, &request.old_object].into_iter().flatten();
        let of_objects = objects.map(|object| Object::new(object).gvk().group_version());
        let namespace = request.namespace_object.iter();
        let of_namespace = namespace.map(|_| Gvk::new("", "v1", "Namespace").group_version());
        of_objects.chain(of_namespace).collect()
    };
    requests.flat_map(of_request).collect()
}

/// The request as the API server would see it.
///
/// # Errors
/// Why there is no such request.
pub fn admission_request(
    request: &Request,
    mapper: &RestMapper,
) -> Result<AdmissionRequest, String> {
    let operation = match request.operation.as_deref() {
        None => Operation::Create,
        Some(text) => text.parse()?,
    };
    let object = request.object.as_ref().map(Object::new);
    let old_object = request.old_object.as_ref().map(Object::new);
    let subject = object.as_ref().or(old_object.as_ref());
    let subresource = request.sub_resource.clone().unwrap_or_default();
    let (gvr, gvk, is_namespaced) = resource_of(request, subject, &subresource, mapper)?;
    let text_of = |given: &Option<String>, of: fn(&Object) -> &str| {
        given
            .clone()
            .unwrap_or_else(|| subject.map(of).unwrap_or_default().to_owned())
    };
    let name = text_of(&request.name, Object::name);
    let mut namespace = text_of(&request.namespace, Object::namespace);
    let is_namespace = gvr.group.is_empty() && gvr.resource == "namespaces";
    if is_namespace {
        namespace.clone_from(&name);
    } else if namespace.is_empty() && is_namespaced {
        "default".clone_into(&mut namespace);
    }
    Ok(AdmissionRequest {
        operation,
        equivalents: equivalents(&gvr, &subresource, mapper),
        gvk,
        gvr,
        subresource,
        name,
        namespace,
        object,
        old_object,
        options: options(request, operation).as_ref().map(Object::new),
        dry_run: request.dry_run,
        user_info: user_info(request.user_info.clone()),
    })
}

/// The user as policies see it; `None` is one who is not authenticated.
#[must_use]
pub fn user_info(given: Option<super::api::UserInfo>) -> UserInfo {
    let user = user(given.unwrap_or_default());
    let extra = user.extra.into_iter();
    UserInfo {
        username: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: extra.map(|(key, values)| (key, Some(values))).collect(),
    }
}

/// The options of a request as the API server has them: of their kind, and with the dry run.
///
/// Source: `k8s.io/apiserver` `pkg/endpoints/handlers/{create,update,delete}.go`.
fn options(request: &Request, operation: Operation) -> Option<Value> {
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return request.options.clone(),
    };
    let mut options = request.options.clone().unwrap_or_else(|| json!({}));
    if let Some(fields) = options.as_object_mut() {
        fields
            .entry("apiVersion")
            .or_insert_with(|| "meta.k8s.io/v1".into());
        fields.entry("kind").or_insert_with(|| kind.into());
        if request.dry_run {
            fields.entry("dryRun").or_insert_with(|| json!(["All"]));
        }
    }
    Some(options)
}

/// The user as the API server has it: one who is not authenticated has a name too, and who is has the groups that
/// the API server itself adds.
///
/// Source: `k8s.io/apiserver` `pkg/authentication/request/anonymous/anonymous.go`,
/// `pkg/authentication/group/authenticated_group_adder.go` (`AuthenticateRequest`),
/// `pkg/authentication/serviceaccount/util.go` (`MakeGroupNames`).
fn user(mut user: super::api::UserInfo) -> super::api::UserInfo {
    const ANONYMOUS: &str = "system:anonymous";
    const AUTHENTICATED: &str = "system:authenticated";
    const UNAUTHENTICATED: &str = "system:unauthenticated";
    if user.username.is_empty() {
        ANONYMOUS.clone_into(&mut user.username);
    }
    if user.username == ANONYMOUS {
        if user.groups.is_empty() {
            user.groups = vec![UNAUTHENTICATED.to_owned()];
        }
        return user;
    }
    let account = user.username.strip_prefix("system:serviceaccount:");
    if user.groups.is_empty()
        && let Some((namespace, _)) = account.and_then(|account| account.split_once(':'))
    {
        user.groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
    }
    let is_told = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
    if !user.groups.iter().any(is_told) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// The resource and kind of a request, and whether its objects live in namespaces.
fn resource_of(
    request: &Request,
    subject: Option<&Object>,
    subresource: &str,
    mapper: &RestMapper,
) -> Result<(Gvr, Gvk, bool), String> {
    let of_subject = subject
        .map(|subject| subject.gvk().clone())
        .filter(|gvk| !gvk.kind.is_empty());
    let Some(resource) = &request.resource else {
        let Some(gvk) = of_subject else {
            return Err(
                "the request names no resource, and its object no apiVersion and kind".to_owned(),
            );
        };
        let served = mapper.resources_of_kind(&gvk).next().ok_or_else(|| {
            format!(
                "no resource of kind {} {} is served: its CustomResourceDefinition is missing, or the \
                 request must name its resource",
                gvk.api_version(),
                gvk.kind
            )
        })?;
        let (gvr, namespaced) = (served.gvr.clone(), served.namespaced);
        return Ok((gvr, gvk, namespaced));
    };
    let gvr = Gvr::new(
        resource.group.as_str(),
        resource.version.as_str(),
        resource.resource.as_str(),
    );
    let full = if subresource.is_empty() {
        gvr.clone()
    } else {
        Gvr::new(
            resource.group.as_str(),
            resource.version.as_str(),
            format!("{}/{subresource}", resource.resource),
        )
    };
    let served = mapper.resource(&full);
    let gvk = of_subject
        .or_else(|| served.map(|served| served.gvk.clone()))
        .ok_or_else(|| {
            format!(
                "{} {} is not served, and no object of the request names a kind",
                gvr.group_version(),
                full.resource
            )
        })?;
    Ok((gvr, gvk, served.is_some_and(|served| served.namespaced)))
}

/// Returns the resources that serve the same objects as a resource: itself in the other versions of its
/// group, and the events of the core group, which are those of their own group too.
///
/// Source: `k8s.io/apiserver` `pkg/endpoints/installer.go` (`EquivalentResourceRegistry` is told of each
/// storage), `k8s.io/kubernetes` `pkg/controlplane/instance.go`.
#[must_use]
pub fn equivalents(gvr: &Gvr, subresource: &str, mapper: &RestMapper) -> Vec<Equivalent> {
    const EVENT_GROUPS: [&str; 2] = ["", "events.k8s.io"];
    let is_event = |gvr: &Gvr| gvr.resource == "events" && EVENT_GROUPS.contains(&&*gvr.group);
    mapper
        .resources
        .iter()
        .filter(|served| {
            let other = &served.gvr;
            let (name, other_subresource) = other
                .resource
                .split_once('/')
                .unwrap_or((&other.resource, ""));
            let in_group = other.group == gvr.group || (is_event(gvr) && is_event(other));
            in_group
                && name == gvr.resource
                && other_subresource == subresource
                && (other.group != gvr.group || other.version != gvr.version)
        })
        .map(|served| Equivalent {
            gvr: Gvr::new(
                &*served.gvr.group,
                &*served.gvr.version,
                gvr.resource.as_str(),
            ),
            gvk: served.gvk.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_resources_and_objects_are_told() {
        let probe: PolicyProbeSpec = serde_json::from_value(json!({"policyName": "a", "cases": [
            {"name": "a", "expect": {"decision": "Allow"}, "request": {
                "object": {"apiVersion": "apps/v1", "kind": "Deployment"},
                "oldObject": {"apiVersion": "extensions/v1beta1", "kind": "Deployment"}}},
            {"name": "b", "expect": {"decision": "Allow"}, "request": {
                "resource": {"group": "example.com", "version": "v1", "resource": "limits"},
                "object": {"apiVersion": 7}}},
            {"name": "c", "expect": {"decision": "Allow"}, "request": {
                "object": {"apiVersion": "v1", "kind": "Pod"}}},
        ]}))
        .unwrap();
        let groups: Vec<String> = groups(&probe).into_iter().collect();
        assert_eq!(groups, ["", "apps", "example.com", "extensions"]);
    }
}
