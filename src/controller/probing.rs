//! Running the probes of a policy: what they need is fetched, the cases are evaluated apart from the
//! tasks that answer for our health, and what they came to is written to the probes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace as CoreNamespace;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::FIELD_MANAGER;
use super::bound::{Bindings, bindings_of, param_resource};
use super::context::Context;
use super::error::{Error, within};
use super::origin::Origin;
use super::params::{Key, Listing, Referrer, Unavailable};
use super::probe::Probe;
use super::world::World;
use crate::policy;
use crate::policy::admission::{
    Admission, Authorizer, AuthorizerAnswer, AuthorizerAttributes, AuthorizerDecision, Binding,
    Namespace, Object, ParamList, ParamSource, Selector,
};
use crate::probe::api::{AuthorizerSource, BindingSource, CaseStatus, Source as From};
use crate::probe::run::{self, Setting};
use crate::schema::rest_mapper::ApiResource;
use crate::status::bindings::BindingsState;
use crate::status::message;
use crate::status::probes::{ProbeFacts, ProbesState, probe_status};
use crate::telemetry::metrics::{ErrorReason, ProbeSample, Source};

/// How long one request may take that a probe needs.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The most params that are read for the probes of a policy.
const MAX_PARAMS: usize = 500;

/// The most bytes of params, as JSON, that are read for the probes of a policy: as values they take several
/// times as much memory.
const MAX_PARAMS_BYTES: usize = 4 << 20;

/// How long the probes of a policy may wait for answers about permissions, in all.
const MAX_ASKING: Duration = Duration::from_secs(30);

/// How many answers about permissions are kept while the probes of a policy are evaluated.
const MAX_ANSWERS: usize = 256;

/// What the probes of a policy came to.
#[derive(Debug, Default)]
pub(crate) struct Probed {
    /// Each probe with its cases.
    pub(crate) probes: Vec<(Arc<Probe>, Vec<CaseStatus>)>,
    /// Whether something that they need could not be had now, and may be in a moment.
    pub(crate) is_passing: bool,
}

impl Probed {
    /// What the status of the policy says of them.
    pub(crate) fn state(&self) -> ProbesState {
        let facts = |(probe, cases): &(Arc<Probe>, Vec<CaseStatus>)| ProbeFacts {
            problem: probe.problem.clone(),
            is_passing: self.is_passing,
            ..ProbeFacts::new(name_of(probe), cases)
        };
        ProbesState::Known(self.probes.iter().map(facts).collect())
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |(probe, _): &(Arc<Probe>, _)| name_of(probe).to_owned();
        self.probes.iter().map(name).collect()
    }

    /// What metrics say of them.
    pub(crate) fn samples(&self) -> Vec<ProbeSample> {
        let sample = |(probe, cases): &(Arc<Probe>, Vec<CaseStatus>)| ProbeSample {
            probe: name_of(probe).to_owned(),
            outcomes: crate::probe::api::CaseOutcome::ALL.map(|outcome| {
                let n = cases.iter().filter(|case| case.outcome == outcome).count();
                (outcome.as_str(), n)
            }),
        };
        self.probes.iter().map(sample).collect()
    }
}

fn name_of(probe: &Probe) -> &str {
    probe.metadata.name.as_deref().unwrap_or_default()
}

/// The probes of the policy of that name, or why they are not known.
fn probes_of(context: &Context, policy: &str) -> Result<Vec<Arc<Probe>>, ProbesState> {
    match context.readiness.refusal(Source::Probes) {
        Some(text) => Err(ProbesState::NotPermitted(text)),
        None => context.probes.of(policy).ok_or(ProbesState::Unread),
    }
}

/// Runs the probes of `policy`.
///
/// # Errors
/// Why they are not known.
pub(crate) async fn run_probes(
    context: &Arc<Context>,
    policy: &Arc<ValidatingAdmissionPolicy>,
    world: &World,
) -> Result<Probed, ProbesState> {
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    let probes = probes_of(context, name)?;
    if probes.is_empty() {
        context.admissions.forget(name);
        return Ok(Probed::default());
    }
    let facts = Fetched::new(context, policy, &probes, world).await;
    let mut is_passing = facts.is_passing();
    let asks = Arc::new(ClusterAuthorizer::new(context.client.clone()));
    let asked = Arc::clone(&asks);
    let work = {
        let (policy, probes) = (Arc::clone(policy), probes.clone());
        let mapper = Arc::clone(&world.mapper);
        let context = Arc::clone(context);
        move || {
            let admission = admission(&context, &policy);
            let authorizer: Arc<dyn Authorizer> = Arc::clone(&asks) as Arc<dyn Authorizer>;
            let param_kind = policy::param_kind(&policy);
            let params = match &facts.params {
                Ok(list) => Ok(list as &dyn ParamSource),
                Err(why) => Err(why.text.clone()),
            };
            let setting = Setting {
                admission: &admission,
                param_kind: param_kind.as_ref(),
                bindings: match &facts.bindings {
                    Ok(bindings) => Ok(bindings.as_slice()),
                    Err(why) => Err(why.text.clone()),
                },
                params,
                namespaces: &facts.namespaces,
                authorizer: Ok(authorizer),
                mapper: &mapper,
            };
            let run_one = |probe: &Arc<Probe>| {
                let results = run::run_asking(&probe.spec, &setting, &|| asks.take_failure());
                results.into_iter().map(|result| result.status).collect()
            };
            probes.iter().map(run_one).collect::<Vec<Vec<CaseStatus>>>()
        }
    };
    let cases = match tokio::task::spawn_blocking(work).await {
        Ok(cases) => {
            is_passing |= asked.is_passing();
            cases
        }
        Err(error) => {
            if error.is_panic() {
                context.metrics.check_panicked();
                tracing::error!(
                    policy = name,
                    "the probes of this policy panicked; please report it"
                );
            }
            let why = "the evaluation broke off on an error of vap-status-controller; its log has \
                       the details";
            let pending = |probe: &Arc<Probe>| {
                let cases = probe.spec.cases.iter();
                cases.map(|case| run::pending(case, why).status).collect()
            };
            probes.iter().map(pending).collect()
        }
    };
    Ok(Probed {
        probes: probes.into_iter().zip(cases).collect(),
        is_passing,
    })
}

/// The policy, ready to decide: as it was made ready before, where that was of this generation.
fn admission(context: &Context, policy: &ValidatingAdmissionPolicy) -> Arc<Admission> {
    context.admissions.get(policy).unwrap_or_else(|| {
        context.metrics.policy_compiled();
        context.admissions.put(policy, Admission::new(policy))
    })
}

/// The probes of a policy that does not exist; all of their cases wait for it.
///
/// # Errors
/// Why they are not known.
pub(crate) fn probes_without_policy(context: &Context, name: &str) -> Result<Probed, ProbesState> {
    probes_pending(
        context,
        name,
        &format!("there is no ValidatingAdmissionPolicy {name}"),
    )
}

/// The probes of a policy that is not looked at for the reason `why`; all of their cases wait.
///
/// # Errors
/// Why they are not known.
pub(crate) fn probes_pending(
    context: &Context,
    name: &str,
    why: &str,
) -> Result<Probed, ProbesState> {
    let pending = |probe: Arc<Probe>| {
        let cases = probe.spec.cases.iter();
        let cases = cases.map(|case| run::pending(case, why).status).collect();
        (probe, cases)
    };
    let probes = probes_of(context, name)?;
    Ok(Probed {
        probes: probes.into_iter().map(pending).collect(),
        is_passing: false,
    })
}

/// Writes the statuses of probes that say something else than those that are there. `generation` is that
/// of the policy, `None` where there is none.
///
/// # Errors
/// Where the API server does not take one.
pub(crate) async fn write_statuses(
    context: &Context,
    probed: &Probed,
    generation: Option<i64>,
    now: Timestamp,
) -> Result<(), Error> {
    let api: Api<Probe> = Api::all(context.client.clone());
    for (probe, cases) in &probed.probes {
        let desired = probe_status(probe, cases, probe.problem.as_deref(), generation, now);
        if probe.status.as_ref() == Some(&desired) {
            continue;
        }
        let applied = json!({
            "apiVersion": Probe::api_version(&()),
            "kind": Probe::kind(&()),
            "metadata": {"name": name_of(probe), "uid": probe.metadata.uid},
            "status": desired,
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(&applied);
        let Some(deadline) = context.leadership.may_write() else {
            // Whoever leads writes them.
            return Ok(());
        };
        let written = deadline.within(api.patch_status(name_of(probe), &params, &patch));
        match written.await {
            Ok(written) => {
                context.metrics.status_written();
                for name in context.probes.put(written, Origin::Answered) {
                    context.queue.add(&name);
                }
            }
            Err(error)
                if matches!(
                    error.reason(),
                    ErrorReason::NotFound | ErrorReason::Conflict
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What the cluster says that probes of a policy ask for.
struct Fetched {
    bindings: Result<Vec<Binding>, Unavailable>,
    params: Result<ParamList, Unavailable>,
    namespaces: BTreeMap<String, Namespace>,
}

impl Fetched {
    async fn new(
        context: &Arc<Context>,
        policy: &ValidatingAdmissionPolicy,
        probes: &[Arc<Probe>],
        world: &World,
    ) -> Self {
        let bindings = bindings_of(context, policy).map_err(|state| match state {
            BindingsState::NotPermitted(text) => Unavailable::lasting(text),
            _ => Unavailable::passing("the bindings were not read yet"),
        });
        let params = match param_resource(policy, world) {
            Some(resource) => {
                let name = policy.metadata.name.as_deref().unwrap_or_default();
                params(context, name, resource, probes, bindings.as_ref()).await
            }
            None => match policy::param_kind(policy) {
                Some(gvk) => Err(Unavailable::lasting(format!(
                    "paramKind {} is not served",
                    message::kind(&gvk)
                ))),
                None => Ok(ParamList::default()),
            },
        };
        Self {
            bindings: bindings.map(|all| all.iter().map(|binding| Binding::new(binding)).collect()),
            params,
            namespaces: namespaces(context, probes).await,
        }
    }

    /// Whether something cannot be had now that may be in a moment.
    fn is_passing(&self) -> bool {
        let of_bindings = self.bindings.as_ref().err();
        let of_params = self.params.as_ref().err();
        let causes = of_bindings.into_iter().chain(of_params);
        causes.into_iter().any(|why| why.is_passing)
    }
}

/// The namespaces that requests of `probes` name and do not bring along. Those that cannot be read are
/// left out: a probe then sees a namespace with nothing but its name.
async fn namespaces(context: &Context, probes: &[Arc<Probe>]) -> BTreeMap<String, Namespace> {
    let cases = probes.iter().flat_map(|probe| &probe.spec.cases);
    let named = cases
        .filter(|case| case.request.namespace_object.is_none())
        .filter_map(|case| {
            let of_object = || {
                let object = case
                    .request
                    .object
                    .as_ref()
                    .or(case.request.old_object.as_ref())?;
                object.pointer("/metadata/namespace")?.as_str()
            };
            case.request.namespace.as_deref().or_else(of_object)
        });
    let mut names: BTreeSet<&str> = named.collect();
    names.insert("default");
    let api: Api<CoreNamespace> = Api::all(context.client.clone());
    let mut found = BTreeMap::new();
    for name in names {
        match within(TIMEOUT, api.get_opt(name)).await {
            Ok(Some(namespace)) => {
                let mut value = serde_json::to_value(&namespace).unwrap_or_default();
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("apiVersion".to_owned(), "v1".into());
                    fields.insert("kind".to_owned(), "Namespace".into());
                }
                found.insert(name.to_owned(), Namespace::new(&value));
            }
            Ok(None) => {}
            Err(error) => {
                if context.complaints.are_due("namespaces") {
                    tracing::warn!(
                        namespace = name,
                        %error,
                        "cannot read a namespace that a probe names; it is taken for one without labels"
                    );
                }
            }
        }
    }
    found
}

/// The params that bindings of these probes may take, read from the cluster.
async fn params(
    context: &Arc<Context>,
    policy: &str,
    resource: &ApiResource,
    probes: &[Arc<Probe>],
    bindings: Result<&Bindings, &Unavailable>,
) -> Result<ParamList, Unavailable> {
    let from_cluster = || {
        probes
            .iter()
            .filter(|probe| probe.spec.params == From::FromCluster)
    };
    let mut references: Vec<ParamRef> = Vec::new();
    for probe in from_cluster() {
        match probe.spec.bindings {
            BindingSource::FromCluster => {
                let bindings = bindings.map_err(Unavailable::clone)?;
                let of = |binding: &Arc<ValidatingAdmissionPolicyBinding>| {
                    binding.spec.param_ref.clone()
                };
                references.extend(bindings.iter().filter_map(of));
            }
            BindingSource::Inline => {
                let specs = probe.spec.inline_bindings.iter();
                references.extend(specs.filter_map(|spec| spec.param_ref.clone()));
            }
            BindingSource::Implied => references.push(ParamRef {
                selector: Some(
                    k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector::default(),
                ),
                ..ParamRef::default()
            }),
        }
    }
    if references.is_empty() {
        context.params.forget(policy, Referrer::Probes);
        return Ok(ParamList::new(resource.namespaced, Vec::new()));
    }
    let by = (policy, Referrer::Probes);
    let known = match context.params.referred(context, resource, by, &references) {
        Listing::Known(known) => known,
        Listing::Unread => return Err(Unavailable::passing("the params were not read yet")),
        Listing::Refused(text) => return Err(Unavailable::lasting(text)),
        Listing::Failed(reason) => {
            let text = format!("the params cannot be read now: {reason}");
            return Err(Unavailable::passing(text));
        }
    };
    let mut wanted: BTreeSet<Key> = BTreeSet::new();
    for reference in &references {
        match (&reference.name, &reference.selector) {
            (Some(name), _) => {
                wanted.extend(known.named(name));
            }
            (None, Some(selector)) => {
                if let Ok(selector) = Selector::new(selector) {
                    wanted.extend(known.selected(&selector));
                }
            }
            (None, None) => {}
        }
    }
    if wanted.len() > MAX_PARAMS {
        return Err(Unavailable::lasting(format!(
            "{} params would have to be read, and {MAX_PARAMS} are the limit; give the probe params of \
             its own (params: Inline)",
            wanted.len()
        )));
    }
    let mut objects = Vec::with_capacity(wanted.len());
    let mut n_bytes = 0;
    for key in wanted {
        let Some(object) = context.params.read(context, resource, &key).await? else {
            continue;
        };
        n_bytes += object.n_bytes;
        if n_bytes > MAX_PARAMS_BYTES {
            return Err(Unavailable::lasting(format!(
                "the params are larger than {} MiB together, which is the limit; give the probe params of \
                 its own (params: Inline)",
                MAX_PARAMS_BYTES >> 20
            )));
        }
        objects.push(Object::new(&object.value));
    }
    Ok(ParamList::new(resource.namespaced, objects))
}

/// Answers checks by asking the API server. Used from threads that may block.
struct ClusterAuthorizer {
    client: Client,
    runtime: Handle,
    /// When the answers to all checks of a policy's probes must be there.
    end: Instant,
    state: Mutex<Asked>,
}

/// What came of the questions so far.
#[derive(Default)]
struct Asked {
    answers: Vec<(AuthorizerAttributes, AuthorizerAnswer)>,
    /// Why a check of this case was not answered.
    failure: Option<String>,
    /// Why none is asked any more.
    broken: Option<Unavailable>,
}

impl std::fmt::Debug for ClusterAuthorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterAuthorizer").finish_non_exhaustive()
    }
}

impl ClusterAuthorizer {
    fn new(client: Client) -> Self {
        Self {
            client,
            runtime: Handle::current(),
            end: Instant::now() + MAX_ASKING,
            state: Mutex::default(),
        }
    }

    /// Why a check was not answered since this was asked last.
    fn take_failure(&self) -> Option<String> {
        self.lock().failure.take()
    }

    /// Whether checks that were not answered may be in a moment.
    fn is_passing(&self) -> bool {
        let state = self.lock();
        state.broken.as_ref().is_some_and(|why| why.is_passing)
    }

    /// Asks the API server.
    ///
    /// # Errors
    /// Why it does not answer.
    fn ask(&self, asked: &AuthorizerAttributes) -> Result<AuthorizerAnswer, Unavailable> {
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = review_of(asked);
        let params = PostParams::default();
        let limit = self.end.saturating_duration_since(Instant::now());
        let asked = within(limit.min(TIMEOUT), api.create(&params, &review));
        match self.runtime.block_on(asked) {
            Ok(review) => Ok(answer(review)),
            Err(error) if error.reason() == ErrorReason::Forbidden => {
                Err(Unavailable::lasting(format!(
                    "the API server cannot be asked who may do what ({error}): grant create on \
                     subjectaccessreviews.authorization.k8s.io in the ClusterRole vap-status-controller"
                )))
            }
            Err(error) => Err(Unavailable::passing(format!(
                "the API server does not answer who may do what: {error}"
            ))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authorizer for ClusterAuthorizer {
    fn authorize(&self, asked: &AuthorizerAttributes) -> AuthorizerAnswer {
        let known = {
            let state = self.lock();
            let same = state.answers.iter().find(|(known, _)| known == asked);
            match (&state.broken, same) {
                (_, Some((_, answer))) => Some(Ok(answer.clone())),
                (Some(why), None) => Some(Err(why.clone())),
                (None, None) => None,
            }
        };
        let answered = known.unwrap_or_else(|| self.ask(asked));
        let mut state = self.lock();
        match answered {
            Ok(answer) => {
                if state.answers.len() < MAX_ANSWERS {
                    state.answers.push((asked.clone(), answer.clone()));
                }
                answer
            }
            // Those that follow would fail alike, each after the time that an answer may take.
            Err(why) => {
                let text = why.text.clone();
                state.failure = Some(text.clone());
                state.broken = Some(why);
                AuthorizerAnswer {
                    decision: AuthorizerDecision::NoOpinion,
                    reason: String::new(),
                    error: Some(text),
                }
            }
        }
    }
}

fn review_of(asked: &AuthorizerAttributes) -> SubjectAccessReview {
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let mut spec = SubjectAccessReviewSpec {
        user: text(&asked.user),
        groups: Some(asked.groups.clone()),
        uid: text(&asked.uid),
        extra: (!asked.extra.is_empty()).then(|| asked.extra.clone()),
        ..SubjectAccessReviewSpec::default()
    };
    if asked.path.is_empty() {
        spec.resource_attributes = Some(ResourceAttributes {
            group: text(&asked.group),
            name: text(&asked.name),
            namespace: text(&asked.namespace),
            resource: text(&asked.resource),
            subresource: text(&asked.subresource),
            verb: text(&asked.verb),
            version: text(&asked.version),
            ..ResourceAttributes::default()
        });
    } else {
        spec.non_resource_attributes = Some(NonResourceAttributes {
            path: text(&asked.path),
            verb: text(&asked.verb),
        });
    }
    SubjectAccessReview {
        spec,
        ..SubjectAccessReview::default()
    }
}

fn answer(review: SubjectAccessReview) -> AuthorizerAnswer {
    let status = review.status.unwrap_or_default();
    let decision = match (status.allowed, status.denied) {
        (true, _) => AuthorizerDecision::Allow,
        (false, Some(true)) => AuthorizerDecision::Deny,
        (false, _) => AuthorizerDecision::NoOpinion,
    };
    AuthorizerAnswer {
        decision,
        reason: status.reason.unwrap_or_default(),
        error: status.evaluation_error.filter(|text| !text.is_empty()),
    }
}

/// Whether probes ask the API server for permissions or namespaces, which change without a sign.
pub(crate) fn asks_cluster(probe: &Probe) -> bool {
    probe.spec.authorizer == AuthorizerSource::FromCluster
        || probe
            .spec
            .cases
            .iter()
            .any(|case| case.request.namespace_object.is_none())
}

#[cfg(test)]
mod tests;
