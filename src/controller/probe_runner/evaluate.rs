//! Evaluates the cases of a policy's probes, on separate threads and with time limits.
//!
//! Policies and probes are untrusted. Slow and quick evaluations use different threads, so that slow evaluations do not
//! delay quick ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::context::Context;
use super::super::probes::{EvaluationSlot, Given};
use super::authorization::{AccessReviews, Next};
use super::inputs::PackedParams;
use super::rights::Rights;
use super::target::{self, PackedDefinitions, PreparedPolicy, WithDefinitions};
use crate::cel::interrupt::Interrupt;
use crate::cluster::blocking;
use crate::controller::cluster::schemas::Schemas;
use crate::controller::process::memory::{self, mebibytes};
use crate::controller::subjects::params::Unavailable;
use crate::controller::subjects::probe::Probe;
use crate::controller::subjects::store::Entry;
use crate::policy::admission::mutation::KindsOf;
use crate::policy::admission::{Admission, Authorizer, Binding, ParamList, ParamSource};
use crate::policy::subject::SubjectId;
use crate::probe::api::{CaseOutcome, CaseStatus};
use crate::probe::custom_resource::{self, Definition};
use crate::probe::mutation::MutationInputs;
use crate::probe::run::{self, CaseResult, RunContext, Runner};
use crate::schema::Builtin;
use crate::schema::crd::Crd;
use crate::schema::rest_mapper::RestMapper;

/// How long a canceled evaluation may continue before its delay is logged.
const MAX_ENDING: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Task {
    pub(super) entry: Entry,
    /// The CustomResourceDefinitions of the custom resources in the cases. Mutations need them.
    pub(super) definitions: Result<PackedDefinitions, Unavailable>,
    /// The CustomResourceDefinition that the probes test. `None` if the probes test another kind of target.
    pub(super) definition: Result<Option<Definition>, Unavailable>,
    pub(super) probes: Vec<Arc<Probe>>,
    /// The cluster inputs that each probe is allowed to use.
    pub(super) rights: Vec<Rights>,
    pub(super) bindings: Result<Vec<Binding>, Unavailable>,
    pub(super) params: Result<PackedParams, Unavailable>,
    pub(super) namespaces: Given,
    pub(super) mapper: Arc<RestMapper>,
    pub(super) schemas: Schemas,
}

impl Task {
    /// The memory of the parsed params and definitions, in bytes.
    fn shared_bytes(&self) -> usize {
        let params = self
            .params
            .as_ref()
            .map_or(0, |params| params.unpacked_bytes);
        let definitions = self.definitions.as_ref();
        params.saturating_add(definitions.map_or(0, |definitions| definitions.unpacked_bytes))
    }

    /// Returns the memory of the parsed probe, params and definitions, in bytes.
    fn bytes_with(&self, probe: &Probe) -> usize {
        let shared_bytes = match self.shared_bytes() {
            n_bytes if n_bytes <= memory::MAX_EVALUATION => n_bytes,
            // If the params and definitions exceed the limit, the params are not parsed. Then only the definitions
            // count.
            _ => self
                .definitions
                .as_ref()
                .map_or(0, |definitions| definitions.unpacked_bytes),
        };
        shared_bytes.saturating_add(probe.spec.unpacked_bytes)
    }

    /// Returns the memory that the evaluation needs, in bytes. Probes are parsed one after the other, so only the
    /// largest one counts. Probes above the limit do not count, since they are not evaluated.
    fn needed_bytes(&self) -> usize {
        let probes = self.probes.iter().map(|probe| self.bytes_with(probe));
        let probes = probes.filter(|n_bytes| *n_bytes <= memory::MAX_EVALUATION);
        probes.max().unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub(super) struct Evaluated {
    pub(super) cases: Vec<Vec<CaseStatus>>,
    /// True if an input is temporarily unavailable, so a retry may succeed.
    pub(super) is_transient: bool,
    /// True if the limits of time or memory prevented the evaluation of a case.
    pub(super) is_late: bool,
    /// True if a case needed a permission check by the API server.
    pub(super) has_asked: bool,
    /// The duration of the evaluation, including permission checks, but without waiting for a thread.
    pub(super) took: Duration,
}

/// The results of each probe's cases. A case without a result is `None`.
type Cases = Vec<Vec<Option<CaseStatus>>>;

/// Evaluates all cases of `subject` within the limits of `place`.
pub(super) async fn evaluate(
    context: &Arc<Context>,
    subject: Task,
    place: &EvaluationSlot,
) -> Evaluated {
    let is_transient = [
        subject.definitions.as_ref().err(),
        subject.definition.as_ref().err(),
        subject.bindings.as_ref().err(),
        subject.params.as_ref().err(),
    ];
    let is_transient = is_transient
        .into_iter()
        .flatten()
        .any(|why| why.is_transient)
        || subject.namespaces.is_transient();
    let job = Arc::new(Job {
        context: Arc::clone(context),
        subject,
        questions: Arc::default(),
        is_cancelled: Arc::default(),
    });
    // Dropping this future cancels the evaluation.
    let _cancelling = CancelOnDrop(Arc::clone(&job.is_cancelled));
    let mut cases: Cases = job.subject.probes.iter().map(|_| Vec::new()).collect();
    let mut evaluated = Evaluated {
        is_transient,
        ..Evaluated::default()
    };
    if job.subject.needed_bytes() > place.max_bytes {
        // Probes that exceed a limit are evaluated again in the slow lane, which has a higher memory limit.
        evaluated.is_late = true;
        evaluated.cases = job.filled(&cases, "it is waiting for memory");
        return evaluated;
    }
    let mut left = place.limit;
    let why = loop {
        let Some(round) = job
            .round(std::mem::take(&mut cases), place, &mut left)
            .await
        else {
            break "the evaluation failed with an internal error in vap-status-controller; see its log"
                .to_owned();
        };
        cases = round;
        let is_open = cases.iter().flatten().any(Option::is_none);
        if !is_open {
            break String::new();
        }
        if job.is_cancelled.load(Ordering::Relaxed) {
            evaluated.is_late = true;
            break format!(
                "not evaluated: the probes of the policy take longer than {} s in total; use fewer or smaller cases, \
                 or cheaper expressions",
                place.limit.as_secs()
            );
        }
        let limiter = &context.probe_runner.access_limiter;
        match (job.questions)
            .ask(&context.client, limiter, job.id())
            .await
        {
            Next::Again => {}
            Next::End(why) => {
                evaluated.is_transient |= why.is_transient;
                break why.text;
            }
        }
    };
    evaluated.has_asked = job.questions.has_requests();
    evaluated.took = place.limit.saturating_sub(left) + job.questions.waited();
    evaluated.cases = job.filled(&cases, &why);
    evaluated
}

#[derive(Debug)]
struct Job {
    context: Arc<Context>,
    subject: Task,
    questions: Arc<AccessReviews>,
    is_cancelled: Arc<AtomicBool>,
}

/// Cancels an evaluation whose result is no longer needed.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Job {
    /// Evaluates the cases without a result, within the time `left`. Subtracts the elapsed time from `left`. Returns
    /// `None` if the evaluation panicked.
    async fn round(
        self: &Arc<Self>,
        cases: Cases,
        place: &EvaluationSlot,
        left: &mut Duration,
    ) -> Option<Cases> {
        // The wait cannot fail, since the semaphore is never closed.
        let permit = Arc::clone(&place.permit).acquire_owned().await.ok()?;
        let (started, begun) = oneshot::channel();
        let job = Arc::clone(self);
        let cases = Mutex::new(cases);
        let work = blocking::run(blocking::Kind::Probes, move || {
            let _permit = permit;
            started.send(()).ok();
            let mut cases = cases.into_inner().unwrap_or_else(PoisonError::into_inner);
            let is_cancelled = Arc::clone(&job.is_cancelled);
            // Compiling the policy also counts against the time limit. An interrupt keeps the existing results.
            let interrupt = Interrupt::new(move || is_cancelled.load(Ordering::Relaxed));
            interrupt.run(|| job.run(&mut cases)).ok();
            cases
        });
        let mut work = tokio::spawn(work);
        // Waiting for a free thread does not count against the time limit.
        drop(begun.await);
        let begin = Instant::now();
        let outcome = match tokio::time::timeout(*left, &mut work).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.is_cancelled.store(true, Ordering::Relaxed);
                loop {
                    match tokio::time::timeout(MAX_ENDING, &mut work).await {
                        Ok(outcome) => break outcome,
                        Err(_) => self.log_failure(),
                    }
                }
            }
        };
        *left = left.saturating_sub(begin.elapsed());
        match outcome.and_then(std::convert::identity) {
            Ok(cases) => Some(cases),
            Err(error) => {
                if error.is_panic() {
                    self.context.metrics.check_panicked();
                    tracing::error!(
                        policy = self.id().to_string(),
                        "the evaluation of this policy's probes panicked, which is a bug; please report it"
                    );
                }
                None
            }
        }
    }

    fn id(&self) -> &SubjectId {
        &self.subject.entry.id
    }

    fn log_failure(&self) {
        if self.context.log_throttle.is_due("probes do not end") {
            tracing::error!(
                policy = self.id().to_string(),
                "the evaluation of this policy's probes was canceled but is still running, which is a bug; please report it"
            );
        }
    }

    /// Evaluates the cases without a result. Must run on a blocking thread.
    fn run(&self, cases: &mut Cases) {
        let subject = &self.subject;
        match &subject.definition {
            Ok(None) => {}
            Ok(Some(definition)) => return self.run_definition(definition, cases),
            Err(why) => {
                let cases = subject.probes.iter().zip(cases);
                return cases.for_each(|(probe, cases)| pending(probe, cases, &why.text));
            }
        }
        match Shared::new(subject) {
            Ok(shared) => self.run_within(&shared, cases),
            Err(why) => {
                let cases = subject.probes.iter().zip(cases);
                cases.for_each(|(probe, cases)| pending(probe, cases, &why));
            }
        }
    }

    /// Evaluates the cases without a result, for probes that test a policy or webhook. `shared` contains the parsed
    /// objects that all probes use.
    fn run_within(&self, shared: &Shared, cases: &mut Cases) {
        let subject = &self.subject;
        let ready = PreparedPolicy::new(&self.context, &subject.entry);
        let param_kind = subject.entry.subject.param_kind();
        let Shared {
            definitions,
            params,
            n_bytes: shared_bytes,
        } = shared;
        let schemas = WithDefinitions::new(&subject.schemas, definitions);
        let kinds = match &ready {
            PreparedPolicy::Mutating(_) => Builtin::load(ready.admission().version()).ok(),
            PreparedPolicy::Validating(_) => None,
        };
        let kinds = kinds.map(|builtin| KindsOf::new(builtin, &schemas));
        let mutating = match (&ready, &kinds) {
            (PreparedPolicy::Mutating(policy), Some(kinds)) => Some(MutationInputs {
                policy,
                kinds,
                schemas: &schemas,
            }),
            _ => None,
        };
        let authorizer: Arc<dyn Authorizer> = Arc::clone(&self.questions) as Arc<dyn Authorizer>;
        let run_context = RunContext {
            admission: ready.admission(),
            param_kind: param_kind.as_ref(),
            bindings: subject.bindings.as_deref().map_err(|why| why.text.clone()),
            params: match params {
                Ok(list) => Ok(list as &dyn ParamSource),
                Err(why) => Err(why.clone()),
            },
            namespaces: &subject.namespaces,
            authorizer: Ok(authorizer),
            mapper: &subject.mapper,
            schemas: &schemas,
            rejection: None,
            kind: subject.entry.kind(),
            mutating,
            records: None,
        };
        let is_cancelled = || self.is_cancelled.load(Ordering::Relaxed);
        let probes = subject.probes.iter().zip(&subject.rights);
        for ((probe, rights), cases) in probes.zip(cases) {
            cases.resize(probe.spec.n_cases, None);
            if is_cancelled() || cases.iter().all(Option::is_some) {
                continue;
            }
            if let Some(why) = too_large(shared_bytes.saturating_add(probe.spec.unpacked_bytes)) {
                pending(probe, cases, &why);
                continue;
            }
            let cancelled = Some(Arc::clone(&self.is_cancelled));
            let is_webhooks = subject.entry.kind().is_webhooks();
            let webhook = is_webhooks.then(|| {
                target::webhook(
                    &subject.entry,
                    probe,
                    self.context.snapshot().server.version,
                )
            });
            let webhook = match webhook.transpose() {
                Ok(webhook) => webhook,
                Err(why) => {
                    pending(probe, cases, &why);
                    continue;
                }
            };
            let refused = rights.denied_namespaces();
            let refused = refused.map(|(names, why)| Given::refused(names, why));
            let namespaces = refused.as_ref().unwrap_or(&subject.namespaces);
            let run_context = limited(&run_context, rights, namespaces, webhook.as_ref());
            // Only one probe is parsed at a time, to save memory.
            let spec = probe.spec.unpack();
            let runner = Runner::new(&spec, &run_context, cancelled);
            let open = spec.cases.iter().zip(cases);
            for (case, outcome) in open.filter(|(_, outcome)| outcome.is_none()) {
                if is_cancelled() {
                    break;
                }
                let result = runner.run(case);
                let failure = namespaces.take_failure();
                let is_open = self.questions.take_pending();
                if is_cancelled() || is_open {
                    continue;
                }
                *outcome = Some(match failure {
                    Some(why) => run::pending(case, &why).status,
                    None => {
                        let is_evaluated = is_evaluated(&result, &run_context);
                        rights.published(case, result, is_evaluated)
                    }
                });
            }
        }
    }

    /// Evaluates the cases without a result, for probes that test a CustomResourceDefinition.
    fn run_definition(&self, definition: &Definition, cases: &mut Cases) {
        let mut runner = custom_resource::Runner::new(definition);
        for (probe, cases) in self.subject.probes.iter().zip(cases) {
            cases.resize(probe.spec.n_cases, None);
            let spec = probe.spec.unpack();
            let open = spec.cases.iter().zip(cases);
            for (case, outcome) in open.filter(|(_, outcome)| outcome.is_none()) {
                if self.is_cancelled.load(Ordering::Relaxed) {
                    return;
                }
                *outcome = Some(runner.run(case).status);
            }
        }
    }

    /// Returns the results of all cases. Cases without a result become pending, for the reason `why`.
    fn filled(&self, cases: &Cases, why: &str) -> Vec<Vec<CaseStatus>> {
        let probes = self.subject.probes.iter().enumerate();
        let of_probe = |(n, probe): (usize, &Arc<Probe>)| {
            let outcomes = cases.get(n);
            let names = probe.spec.case_names().into_iter().enumerate();
            names
                .map(|(n, name)| {
                    let outcome = outcomes.and_then(|outcomes| outcomes.get(n)?.clone());
                    outcome.unwrap_or_else(|| run::pending_status(name, why))
                })
                .collect()
        };
        probes.map(of_probe).collect()
    }
}

/// Returns true if expressions of the policy were evaluated for a case.
fn is_evaluated(result: &CaseResult, run_context: &RunContext<'_>) -> bool {
    // This includes pending cases of mutating policies, since their reason may quote the mutated object.
    let is_mutated = run_context.mutating.is_some()
        && run_context.params.is_ok()
        && result.status.outcome == CaseOutcome::Pending;
    result.outcome.is_some() || is_mutated
}

/// Returns `run_context` without the cluster inputs that the probe is not allowed to use.
fn limited<'a>(
    run_context: &RunContext<'a>,
    rights: &Rights,
    namespaces: &'a Given,
    webhook: Option<&'a Admission>,
) -> RunContext<'a> {
    let mut run_context = RunContext {
        namespaces,
        ..run_context.clone()
    };
    if let Some(why) = rights.params_denial() {
        run_context.params = Err(why.to_owned());
    }
    if let Some(admission) = webhook {
        run_context.admission = admission;
    }
    run_context
}

/// The parsed objects that all probes of a policy share.
struct Shared {
    definitions: Vec<Crd>,
    params: Result<ParamList, String>,
    /// The memory that the parsed objects need, in bytes.
    n_bytes: usize,
}

impl Shared {
    /// Parses the params and definitions of `subject`.
    ///
    /// # Errors
    /// Returns an error message if the definitions are unavailable or too large.
    fn new(subject: &Task) -> Result<Self, String> {
        let text = |why: &Unavailable| why.text.clone();
        let definitions = subject.definitions.as_ref().map_err(text)?;
        within_limit(definitions.unpacked_bytes, "CustomResourceDefinitions")?;
        let params = subject.params.as_ref().map_err(text);
        let params = params.and_then(|params| {
            within_limit(subject.shared_bytes(), "params")?;
            params.unpack()
        });
        Ok(Self {
            definitions: definitions.unpack()?,
            n_bytes: match &params {
                Ok(_) => subject.shared_bytes(),
                Err(_) => definitions.unpacked_bytes,
            },
            params,
        })
    }
}

/// Returns an error message if `n_bytes`, the memory of a probe and its params, exceeds the limit.
fn too_large(n_bytes: usize) -> Option<String> {
    (n_bytes > memory::MAX_EVALUATION).then(|| {
        format!(
            "the probe and its params need {} of memory, but the limit is {}: use fewer or smaller objects",
            mebibytes(n_bytes),
            mebibytes(memory::MAX_EVALUATION)
        )
    })
}

/// Marks the cases of a probe that have no result as pending, for the reason `why`.
fn pending(probe: &Probe, cases: &mut Vec<Option<CaseStatus>>, why: &str) {
    cases.resize(probe.spec.n_cases, None);
    for (name, outcome) in probe.spec.case_names().into_iter().zip(cases) {
        outcome.get_or_insert_with(|| run::pending_status(name, why));
    }
}

/// Checks that objects of `n_bytes` do not exceed the memory limit of an evaluation. `kind` is the plural name of the
/// objects.
///
/// # Errors
/// Returns an error message if they exceed the limit.
fn within_limit(n_bytes: usize, kind: &str) -> Result<(), String> {
    if n_bytes <= memory::MAX_EVALUATION {
        return Ok(());
    }
    Err(format!(
        "the {kind} of the probes need {} of memory, but the limit is {}: use fewer or smaller objects, or give the \
         probe its own params (params: Inline)",
        mebibytes(n_bytes),
        mebibytes(memory::MAX_EVALUATION)
    ))
}
