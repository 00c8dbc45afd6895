//! Evaluating the cases of a policy's probes: apart from everything else, and not for ever.
//!
//! What a policy and its probes hold is a stranger's. Sets that are quick have a place of their own, so that
//! those that are not keep nobody waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::super::blocking;
use super::super::context::Context;
use super::super::params::Unavailable;
use super::super::probe::Probe;
use super::super::schemas::Schemas;
use super::super::store::Entry;
use super::asking::{Next, Questions};
use super::namespaces::Given;
use super::rights::Rights;
use super::target::{self, Ready, WithDefinitions};
use crate::policy;
use crate::policy::admission::mutation::KindsOf;
use crate::policy::admission::{Admission, Authorizer, Binding, ParamList, ParamSource};
use crate::probe::api::{CaseOutcome, CaseStatus};
use crate::probe::custom_resource::{self, Definition};
use crate::probe::mutation::Mutating;
use crate::probe::run::{self, CaseResult, Runner, Setting, Target};
use crate::schema::crd::Crd;
use crate::schema::rest_mapper::RestMapper;
use crate::status::compute::Subject;

/// How long a cancelled evaluation may go on before that is said.
const MAX_ENDING: Duration = Duration::from_secs(30);

/// Where the probes of a policy are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// First of all, for a short time.
    Quick,
    /// Where that was not enough.
    Slow,
}

impl Lane {
    /// The name of the task that works on it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Quick => "probes",
            Self::Slow => "slow-probes",
        }
    }

    /// How many policies are worked on at once, most of them waiting for the API server.
    pub(super) const fn concurrency(self) -> usize {
        match self {
            Self::Quick => 16,
            Self::Slow => 4,
        }
    }
}

/// The slots: one evaluation at a time in each lane.
#[derive(Debug)]
pub(super) struct EvaluationSlots {
    pub(super) quick: EvaluationSlot,
    pub(super) slow: EvaluationSlot,
}

/// A slot in which the probes of one policy are evaluated at a time.
#[derive(Debug)]
pub(super) struct EvaluationSlot {
    permit: Arc<Semaphore>,
    /// How long the evaluation of all probes of a policy may take.
    pub(super) limit: Duration,
}

impl EvaluationSlot {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            permit: Arc::new(Semaphore::new(1)),
            limit,
        }
    }
}

impl Default for EvaluationSlots {
    fn default() -> Self {
        Self {
            quick: EvaluationSlot::new(Duration::from_secs(1)),
            slow: EvaluationSlot::new(Duration::from_secs(10)),
        }
    }
}

impl EvaluationSlots {
    pub(super) fn of(&self, lane: Lane) -> &EvaluationSlot {
        match lane {
            Lane::Quick => &self.quick,
            Lane::Slow => &self.slow,
        }
    }
}

/// Inputs of the evaluation of a policy's probes.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) entry: Entry,
    /// The CustomResourceDefinitions that it takes to mutate the objects of the cases.
    pub(super) definitions: Result<Vec<Crd>, Unavailable>,
    /// The CustomResourceDefinition itself, where the probes are about one.
    pub(super) definition: Result<Option<Definition>, Unavailable>,
    pub(super) probes: Vec<Arc<Probe>>,
    /// Cluster inputs of each probe.
    pub(super) rights: Vec<Rights>,
    pub(super) bindings: Result<Vec<Binding>, Unavailable>,
    pub(super) params: Result<ParamList, Unavailable>,
    pub(super) namespaces: Given,
    pub(super) mapper: Arc<RestMapper>,
    pub(super) schemas: Schemas,
}

/// Results of the cases.
#[derive(Debug, Default)]
pub(super) struct Evaluated {
    /// Those of each probe.
    pub(super) cases: Vec<Vec<CaseStatus>>,
    /// True if something is unavailable now that may be available in a moment.
    pub(super) is_transient: bool,
    /// True if the time was over before the last case.
    pub(super) is_late: bool,
    /// True if the API server was asked for permissions.
    pub(super) has_asked: bool,
    /// How long that took, without waiting for others.
    pub(super) took: Duration,
}

/// Results of the cases so far.
type Cases = Vec<Vec<Option<CaseStatus>>>;

/// Evaluates all cases of `subject`.
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
    // Whatever ends this ends the evaluation too.
    let _cancelling = CancelOnDrop(Arc::clone(&job.is_cancelled));
    let mut cases: Cases = job.subject.probes.iter().map(|_| Vec::new()).collect();
    let mut evaluated = Evaluated {
        is_transient,
        ..Evaluated::default()
    };
    let mut left = place.limit;
    let why = loop {
        let Some(round) = job
            .round(std::mem::take(&mut cases), place, &mut left)
            .await
        else {
            break "the evaluation broke off on an error of vap-status-controller; its log has the \
                   details"
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
                "not evaluated: the probes of the policy take longer than {} s together; give it fewer \
                 or smaller cases, or expressions that cost less",
                place.limit.as_secs()
            );
        }
        let limiter = &context.probe_runner.access_limiter;
        match (job.questions)
            .ask(&context.client, limiter, job.name())
            .await
        {
            Next::Again => {}
            Next::End(why) => {
                evaluated.is_transient |= why.is_transient;
                break why.text;
            }
        }
    };
    evaluated.has_asked = job.questions.are_there();
    evaluated.took = place.limit.saturating_sub(left) + job.questions.waited();
    evaluated.cases = job.filled(&cases, &why);
    evaluated
}

/// An evaluation in progress.
#[derive(Debug)]
struct Job {
    context: Arc<Context>,
    subject: Task,
    questions: Arc<Questions>,
    is_cancelled: Arc<AtomicBool>,
}

/// Cancels an evaluation that nobody waits for any more.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Job {
    /// Evaluates the cases that have come to nothing so far, within what is `left` of the time; `None`
    /// where that panicked.
    async fn round(
        self: &Arc<Self>,
        cases: Cases,
        place: &EvaluationSlot,
        left: &mut Duration,
    ) -> Option<Cases> {
        // The semaphore is never closed.
        let permit = Arc::clone(&place.permit).acquire_owned().await.ok()?;
        let (started, begun) = oneshot::channel();
        let job = Arc::clone(self);
        let cases = Mutex::new(cases);
        let work = blocking::run(blocking::Kind::Probes, move || {
            let _permit = permit;
            started.send(()).ok();
            let mut cases = cases.into_inner().unwrap_or_else(PoisonError::into_inner);
            job.run(&mut cases);
            cases
        });
        let mut work = tokio::spawn(work);
        // A thread may have to be waited for, which is no fault of these probes.
        drop(begun.await);
        let begin = Instant::now();
        let outcome = match tokio::time::timeout(*left, &mut work).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.is_cancelled.store(true, Ordering::Relaxed);
                loop {
                    match tokio::time::timeout(MAX_ENDING, &mut work).await {
                        Ok(outcome) => break outcome,
                        Err(_) => self.complain(),
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
                        policy = self.name(),
                        "the probes of this policy panicked; please report it"
                    );
                }
                None
            }
        }
    }

    fn name(&self) -> &str {
        &self.subject.entry.key
    }

    fn complain(&self) {
        if self.context.log_throttle.is_due("probes do not end") {
            tracing::error!(
                policy = self.name(),
                "the evaluation of this policy's probes was cancelled but does not end; please report it"
            );
        }
    }

    /// Evaluates the cases that have come to nothing so far. Runs on a thread that may block.
    fn run(&self, cases: &mut Cases) {
        let subject = &self.subject;
        let policy = &subject.entry.policy;
        match &subject.definition {
            Ok(None) => {}
            Ok(Some(definition)) => return self.run_definition(definition, cases),
            Err(why) => {
                let cases = subject.probes.iter().zip(cases);
                return cases.for_each(|(probe, cases)| pending(probe, cases, &why.text));
            }
        }
        let ready = Ready::new(&self.context, &subject.entry);
        let param_kind = policy::param_kind(policy);
        let definitions = match &subject.definitions {
            Ok(definitions) => definitions.as_slice(),
            Err(why) => {
                let cases = subject.probes.iter().zip(cases);
                return cases.for_each(|(probe, cases)| pending(probe, cases, &why.text));
            }
        };
        let schemas = WithDefinitions::new(&subject.schemas, definitions);
        let kinds = match ready {
            Ready::Mutating(_) => target::builtin(),
            Ready::Deciding(_) => None,
        };
        let kinds = kinds.map(|builtin| KindsOf::new(builtin, &schemas));
        let target = match (&ready, &kinds) {
            (Ready::Mutating(policy), Some(kinds)) => Target::Mutating(Mutating {
                policy,
                kinds,
                schemas: &schemas,
            }),
            _ => Target::Policy,
        };
        let authorizer: Arc<dyn Authorizer> = Arc::clone(&self.questions) as Arc<dyn Authorizer>;
        let text = |why: &Unavailable| why.text.clone();
        let setting = Setting {
            admission: ready.admission(),
            param_kind: param_kind.as_ref(),
            bindings: subject.bindings.as_deref().map_err(text),
            params: match &subject.params {
                Ok(list) => Ok(list as &dyn ParamSource),
                Err(why) => Err(text(why)),
            },
            namespaces: &subject.namespaces,
            authorizer: Ok(authorizer),
            mapper: &subject.mapper,
            schemas: &schemas,
            refusal: None,
            target,
            records: false,
        };
        let is_cancelled = || self.is_cancelled.load(Ordering::Relaxed);
        let probes = subject.probes.iter().zip(&subject.rights);
        for ((probe, rights), cases) in probes.zip(cases) {
            cases.resize(probe.spec.cases.len(), None);
            if is_cancelled() || cases.iter().all(Option::is_some) {
                continue;
            }
            let cancelled = Some(Arc::clone(&self.is_cancelled));
            let webhook = match subject.entry.subject() {
                Subject::Webhooks => match target::webhook(&subject.entry, probe) {
                    Ok(webhook) => Some(webhook),
                    Err(why) => {
                        pending(probe, cases, &why);
                        continue;
                    }
                },
                Subject::Validating | Subject::Mutating | Subject::Definition => None,
            };
            let refused = rights.refused_namespaces();
            let refused = refused.map(|(names, why)| Given::refused(names, why));
            let namespaces = refused.as_ref().unwrap_or(&subject.namespaces);
            let setting = limited(&setting, rights, namespaces, webhook.as_ref());
            let runner = Runner::new(&probe.spec, &setting, cancelled);
            let open = probe.spec.cases.iter().zip(cases);
            for (case, outcome) in open.filter(|(_, outcome)| outcome.is_none()) {
                if is_cancelled() {
                    break;
                }
                let result = runner.run(case);
                let failure = namespaces.take_failure();
                let is_open = self.questions.take_open();
                if is_cancelled() || is_open {
                    continue;
                }
                *outcome = Some(match failure {
                    Some(why) => run::pending(case, &why).status,
                    None => {
                        let is_evaluated = is_evaluated(&result, &setting);
                        rights.published(case, result, is_evaluated)
                    }
                });
            }
        }
    }

    /// The same of cases about a CustomResourceDefinition.
    fn run_definition(&self, definition: &Definition, cases: &mut Cases) {
        let mut runner = custom_resource::Runner::new(definition);
        for (probe, cases) in self.subject.probes.iter().zip(cases) {
            cases.resize(probe.spec.cases.len(), None);
            let open = probe.spec.cases.iter().zip(cases);
            for (case, outcome) in open.filter(|(_, outcome)| outcome.is_none()) {
                if self.is_cancelled.load(Ordering::Relaxed) {
                    return;
                }
                *outcome = Some(runner.run(case).status);
            }
        }
    }

    /// The cases, with those pending because of `why` that have come to nothing.
    fn filled(&self, cases: &Cases, why: &str) -> Vec<Vec<CaseStatus>> {
        let probes = self.subject.probes.iter().enumerate();
        let of_probe = |(n, probe): (usize, &Arc<Probe>)| {
            let outcomes = cases.get(n);
            let cases = probe.spec.cases.iter().enumerate();
            cases
                .map(|(n, case)| {
                    let outcome = outcomes.and_then(|outcomes| outcomes.get(n)?.clone());
                    outcome.unwrap_or_else(|| run::pending(case, why).status)
                })
                .collect()
        };
        probes.map(of_probe).collect()
    }
}

/// Returns true if expressions of the policy were evaluated for a case.
fn is_evaluated(result: &CaseResult, setting: &Setting<'_>) -> bool {
    // The reason of a pending case may quote an object after a mutation.
    let is_mutated = matches!(setting.target, Target::Mutating(_))
        && setting.params.is_ok()
        && result.status.outcome == CaseOutcome::Pending;
    result.outcome.is_some() || is_mutated
}

/// Returns what a probe of the policy may use of the cluster: `setting` without params that it must not use.
fn limited<'a>(
    setting: &Setting<'a>,
    rights: &Rights,
    namespaces: &'a Given,
    webhook: Option<&'a Admission>,
) -> Setting<'a> {
    let mut setting = Setting {
        namespaces,
        ..setting.clone()
    };
    if let Some(why) = rights.params_refusal() {
        setting.params = Err(why.to_owned());
    }
    if let Some(admission) = webhook {
        setting.admission = admission;
        setting.target = Target::Webhook;
    }
    setting
}

/// Lets the cases of a probe that have come to nothing wait for `why`.
fn pending(probe: &Probe, cases: &mut Vec<Option<CaseStatus>>, why: &str) {
    cases.resize(probe.spec.cases.len(), None);
    for (case, outcome) in probe.spec.cases.iter().zip(cases) {
        outcome.get_or_insert_with(|| run::pending(case, why).status);
    }
}
