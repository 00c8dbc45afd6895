//! Checking one policy: compile, match, fetch the schemas that are needed, type-check.
//!
//! The content of a policy is untrusted: the work runs on threads of its own, within the time limits of its lane
//! ([`super::lanes`]), and a panic in it affects only this policy. The outcome is stored with all of its inputs, so
//! that an unchanged policy is not checked again.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use tokio::time::Instant;

use super::admission_cache::AdmissionCache;
use super::blocking;
use super::cluster_snapshot::ClusterSnapshot;
use super::context::Context;
use super::generation::Generation;
use super::lanes::Lane;
use super::match_cache::MatchCache;
use super::openapi::Index;
use super::schemas::{Asked, Missing, Schemas};
use super::store::{Body, Entry};
use crate::cel::interrupt::{self, Interrupt};
use crate::policy;
use crate::policy::admission::Admission;
use crate::policy::analysis::{Profile, TypeCheck, kinds_to_check, type_check_matched};
use crate::policy::compile::{CompileFinding, CompiledPolicy};
use crate::policy::matching::{self, RuleMatches, describing};
use crate::policy::subject::SubjectId;
use crate::policy::webhooks;
use crate::schema::GroupVersion;
use crate::schema::rest_mapper::RestMapper;
use crate::status::compute::{CheckStep, Deadline, Matched, Typed};
use crate::telemetry::Metrics;

/// Result of checking one generation of a policy.
#[derive(Debug)]
pub(crate) struct CheckResult {
    generation: Generation,
    /// The revision of the resources that it was matched with, where it was.
    revision: Option<u64>,
    /// The documents that it asked for, by group version; policies that ask for the same share them.
    group_versions: Arc<BTreeSet<GroupVersion>>,
    /// A hash of their addresses at that time.
    addresses: u64,
    /// The documents of them that could not be had.
    missing: Vec<Missing>,
    pub(crate) outcome: CheckOutcome,
}

/// How a check ended.
#[derive(Debug)]
pub(crate) enum CheckOutcome {
    /// It ran to its end.
    Done {
        findings: Vec<CompileFinding>,
        n_expressions: usize,
        matched: Matched,
        typed: Typed,
        /// Documents that could not be had, with the reason.
        waiting: Vec<(String, String)>,
    },
    /// It panicked; what its rules match may be known.
    Panicked { matched: Option<Matched> },
    /// It exceeded its deadline.
    DeadlineExceeded {
        /// The step that was not finished.
        late: LateStep,
        /// The findings of compiling with the number of expressions, unless that was not finished.
        compiled: Option<(Vec<CompileFinding>, usize)>,
        /// The matches of the rules, unless these were not matched.
        matched: Option<Matched>,
    },
}

/// A step of a check that was not finished in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateStep {
    step: CheckStep,
    late: Late,
}

/// Work that was not finished in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// The field that was worked on.
    field: Option<String>,
    limit: Duration,
    /// The lane in which it is to be tried again. `None` if it is not.
    next: Option<Lane>,
    is_stuck: bool,
}

impl Late {
    /// The same as of `step`.
    pub(super) const fn of(self, step: CheckStep) -> LateStep {
        LateStep { step, late: self }
    }
}

impl LateStep {
    /// The deadline as the status reports it.
    pub(crate) fn deadline(&self) -> Deadline<'_> {
        Deadline {
            limit: self.late.limit,
            step: self.step,
            field: self.late.field.as_deref(),
        }
    }

    /// Has the policy `entry` checked in another lane, or notes that its check ends here. Returns true if it is checked
    /// again.
    pub(super) fn defer(&self, context: &Context, entry: &Entry) -> bool {
        let Late {
            next,
            is_stuck,
            field,
            limit,
        } = &self.late;
        if let Some(next) = next {
            context.lanes.defer(&entry.id, entry.generation(), *next);
            return true;
        }
        let generation = entry.generation();
        context.lanes.exceeded(&entry.id, generation, *is_stuck);
        context.metrics.check_deadline_exceeded();
        tracing::warn!(
            policy = %entry.id,
            field,
            limit = limit.as_secs(),
            "the check of this policy exceeded its time limit; its conditions are Unknown"
        );
        false
    }
}

impl CheckResult {
    /// The result of judging a CustomResourceDefinition, which depends on nothing beside.
    pub(crate) fn of_definition(entry: &Entry, outcome: CheckOutcome) -> Self {
        let group_versions = Arc::default();
        Self {
            generation: entry.generation(),
            revision: None,
            addresses: addresses(&group_versions, &Index::default()),
            group_versions,
            missing: Vec::new(),
            outcome,
        }
    }

    /// Reports whether it is about this very generation of the policy.
    pub(crate) fn is_of(&self, generation: &Generation) -> bool {
        self.generation == *generation
    }

    /// Reports whether a check of `entry` in `snapshot` would have the same result.
    pub(crate) fn holds_for(&self, entry: &Entry, snapshot: &ClusterSnapshot) -> bool {
        self.is_of(&entry.generation())
            && self.missing.iter().all(Missing::is_still_missing)
            && self.is_current_in(snapshot)
    }

    /// Reports whether everything that the result depends on is unchanged in `snapshot`.
    pub(crate) fn is_current_in(&self, snapshot: &ClusterSnapshot) -> bool {
        self.revision
            .is_none_or(|revision| revision == snapshot.revision)
            && self.addresses == addresses(&self.group_versions, &snapshot.index)
    }

    /// The group versions whose schemas it depends on.
    pub(crate) fn group_versions(&self) -> &Arc<BTreeSet<GroupVersion>> {
        &self.group_versions
    }

    /// Reports whether its messages suggest resources in place of those that are not served.
    pub(crate) fn has_suggestions(&self) -> bool {
        match &self.outcome {
            CheckOutcome::Done { matched, .. } => !matched.unserved.is_empty(),
            CheckOutcome::Panicked { matched } | CheckOutcome::DeadlineExceeded { matched, .. } => {
                let matched = matched.as_ref();
                matched.is_some_and(|matched| !matched.unserved.is_empty())
            }
        }
    }
}

/// A policy, or a webhook that is read as one, compiled and matched.
struct Part {
    compiled: CompiledPolicy,
    matches: Arc<RuleMatches>,
    /// The name and the place of a webhook, with what of its matches API servers ask webhooks about.
    webhook: Option<(usize, String, Matched)>,
}

impl Part {
    fn type_checked(&self, schemas: &Schemas, profile: Profile) -> TypeCheck {
        type_check_matched(&self.compiled, &self.matches, schemas, profile)
    }

    fn findings(&self) -> Vec<CompileFinding> {
        let mut findings = self.compiled.findings().to_vec();
        if let Some((n, _, _)) = &self.webhook {
            for finding in &mut findings {
                finding.field_ref = webhooks::of_field(*n, &finding.field_ref);
            }
        }
        findings
    }
}

/// The outcome of type checking all parts.
fn typed(parts: &[Part], schemas: &Schemas, profile: Profile) -> Typed {
    match parts {
        [part] if part.webhook.is_none() => Typed::from(part.type_checked(schemas, profile)),
        parts => {
            let parts = parts.iter();
            Typed::of_webhooks(
                parts
                    .map(|part| part.type_checked(schemas, profile))
                    .collect(),
            )
        }
    }
}

/// The matches of the rules of all parts.
fn matched(parts: &[Unmatched<'_>]) -> Matched {
    match parts {
        [
            Unmatched {
                webhook: None,
                matches,
                ..
            },
        ] => Matched::from(matches.matches()),
        parts => Matched::of_webhooks(
            parts
                .iter()
                .filter_map(|part| part.webhook.as_ref())
                .map(|(_, name, matched)| (name.clone(), matched.clone()))
                .collect(),
        ),
    }
}

/// A policy compiled and matched, or the webhooks of a configuration.
struct Examined {
    parts: Vec<Part>,
    group_versions: BTreeSet<GroupVersion>,
    /// Its type check, if its schemas were there already.
    checked: Option<TypeChecked>,
}

/// How a type check ended.
enum TypeChecked {
    Done(Typed),
    Panicked,
    Interrupted,
}

impl TypeChecked {
    /// Checks the types of all parts. A panic or an interruption ends nothing else.
    fn run(parts: &[Part], schemas: &Schemas, profile: Profile) -> Self {
        match catch_unwind(AssertUnwindSafe(|| typed(parts, schemas, profile))) {
            Ok(typed) => Self::Done(typed),
            Err(payload) if interrupt::is_interruption(payload.as_ref()) => Self::Interrupted,
            Err(_) => Self::Panicked,
        }
    }
}

/// The outcome of a check in a lane.
pub(crate) enum Checked {
    /// The result.
    Result(Box<CheckResult>),
    /// Schemas are being read; the policy is put into the queue when they are there.
    Pending,
    /// It took too long for the lane, and is checked in another one.
    Deferred,
}

/// One check of a policy.
struct Check<'a> {
    context: &'a Context,
    entry: &'a Entry,
    snapshot: &'a ClusterSnapshot,
    lane: Lane,
    profile: Profile,
}

impl Check<'_> {
    fn result(
        &self,
        group_versions: BTreeSet<GroupVersion>,
        missing: Vec<Missing>,
        outcome: CheckOutcome,
    ) -> Checked {
        // The rules may not have been matched.
        let has_matched = !matches!(
            outcome,
            CheckOutcome::DeadlineExceeded { matched: None, .. }
        );
        Checked::Result(Box::new(CheckResult {
            generation: self.entry.generation(),
            revision: has_matched.then_some(self.snapshot.revision),
            addresses: addresses(&group_versions, &self.snapshot.index),
            group_versions: self.context.schemas.shared(group_versions),
            missing,
            outcome,
        }))
    }

    /// Matches and compiles the policy, and checks its types if its schemas are loaded.
    ///
    /// The second value is the matches of its rules, which are known even if the rest takes too long or panics.
    async fn examine(&self) -> Result<(Guarded<Examined>, Option<Matched>), Interrupted> {
        let context = self.context;
        let id = &self.entry.id;
        let has_probes = (context.probes.of(id)).is_some_and(|probes| !probes.is_empty());
        let admissions = has_probes.then(|| Arc::clone(&context.admissions));
        let (subject, mapper) = (self.entry.clone(), Arc::clone(&self.snapshot.mapper));
        let (cached, index) = (context.schemas.clone(), Arc::clone(&self.snapshot.index));
        let match_cache = Arc::clone(&context.match_cache);
        let profile = self.profile;
        let matched_early: Arc<Mutex<Option<Matched>>> = Arc::default();
        let matched_slot = Arc::clone(&matched_early);
        let work = move || {
            let unmatched = match_parts(&subject, &mapper, &match_cache);
            let matched = matched(&unmatched);
            *matched_slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(matched);
            let (parts, group_versions) =
                compile_parts(unmatched, (&subject, &mapper), profile, admissions);
            // They are mostly loaded, and this thread can continue.
            let schemas = cached.loaded(&subject.id, &group_versions, &index);
            let checked = schemas.map(|schemas| TypeChecked::run(&parts, &schemas, profile));
            Examined {
                parts,
                group_versions,
                checked,
            }
        };
        let examined = guard(context, id, self.lane, work).await?;
        let matched = matched_early.lock();
        let matched = matched.unwrap_or_else(PoisonError::into_inner).take();
        Ok((examined, matched))
    }
}

/// Checks the policy `entry` in `snapshot`, within the limits of `lane`.
///
/// If it has probes, it is prepared for them as well, so that it need not be compiled once more.
pub(crate) async fn check(
    context: &Context,
    entry: &Entry,
    snapshot: &ClusterSnapshot,
    lane: Lane,
) -> Result<Checked, Interrupted> {
    let Context {
        schemas, metrics, ..
    } = context;
    let id = &entry.id;
    // Upstream checks no mutating policies, so that it has no answers about them.
    let profile = match entry.body {
        Some(_) => Profile::Truthful,
        None => context.settings.profile,
    };
    let check = Check {
        context,
        entry,
        snapshot,
        lane,
        profile,
    };
    metrics.policy_compiled();
    let start = Instant::now();
    let (examined, matched) = check.examine().await?;
    let (examined, late) = match examined {
        Guarded::Done(examined, late) => (examined, late),
        Guarded::Panicked => {
            let outcome = CheckOutcome::Panicked { matched: None };
            return Ok(check.result(BTreeSet::new(), Vec::new(), outcome));
        }
        Guarded::Late(late) => {
            let step = match &matched {
                Some(_) => CheckStep::Compiling,
                None => CheckStep::Matching,
            };
            let late = late.of(step);
            if late.defer(context, entry) {
                return Ok(Checked::Deferred);
            }
            let outcome = CheckOutcome::DeadlineExceeded {
                late,
                compiled: None,
                matched,
            };
            return Ok(check.result(BTreeSet::new(), Vec::new(), outcome));
        }
    };
    let Examined {
        parts,
        group_versions,
        checked,
    } = examined;
    let matched = matched.unwrap_or_default();
    let findings: Vec<CompileFinding> = parts.iter().flat_map(Part::findings).collect();
    let n_expressions = parts.iter().map(|part| part.compiled.n_expressions()).sum();

    let mut waiting = Vec::new();
    let mut missing = Vec::new();
    let typed = match checked {
        Some(TypeChecked::Done(typed)) => Guarded::Done(typed, late),
        Some(TypeChecked::Panicked) => {
            panicked(id, metrics);
            Guarded::Panicked
        }
        Some(TypeChecked::Interrupted) => Guarded::Late(late),
        None => {
            let asked = schemas.get(id, &group_versions, &snapshot.index).await;
            let Asked::There(schemas) = asked else {
                return Ok(Checked::Pending);
            };
            for (gv, without) in &schemas.waiting {
                waiting.push((gv.to_string(), without.reason.clone()));
            }
            missing.extend(schemas.guards().cloned());
            let work = move || typed(&parts, &schemas, profile);
            guard(context, id, lane, work).await?
        }
    };
    let outcome = match typed {
        Guarded::Done(typed, _) => {
            context.lanes.finished(id, start.elapsed());
            CheckOutcome::Done {
                findings,
                n_expressions,
                matched,
                typed,
                waiting,
            }
        }
        Guarded::Panicked => CheckOutcome::Panicked {
            matched: Some(matched),
        },
        Guarded::Late(late) => {
            let late = late.of(CheckStep::TypeChecking);
            if late.defer(context, entry) {
                return Ok(Checked::Deferred);
            }
            CheckOutcome::DeadlineExceeded {
                late,
                compiled: Some((findings, n_expressions)),
                matched: Some(matched),
            }
        }
    };
    Ok(check.result(group_versions, missing, outcome))
}

/// A policy or a webhook that is not compiled yet.
struct Unmatched<'a> {
    policy: &'a ValidatingAdmissionPolicy,
    matches: Arc<RuleMatches>,
    webhook: Option<(usize, String, Matched)>,
}

/// Matches the rules of `entry` with the served resources.
fn match_parts<'a>(
    entry: &'a Entry,
    mapper: &Arc<RestMapper>,
    match_cache: &MatchCache,
) -> Vec<Unmatched<'a>> {
    let Some(Body::Webhooks(webhooks)) = &entry.body else {
        return vec![Unmatched {
            policy: &entry.policy,
            matches: match_cache.get(&entry.policy, mapper),
            webhook: None,
        }];
    };
    let webhooks = webhooks.iter().enumerate();
    let parts = webhooks.map(|(n, webhook)| {
        let matches = match_cache.get(webhook, mapper);
        let (asked, reviews) = matching::asked_of_webhook(webhook, matches.matches());
        let mut matched = Matched::from(&asked);
        let by_wildcard = reviews.iter().filter(|review| review.by_wildcard);
        matched.n_resources = matched.n_resources.saturating_add(reviews.len());
        matched.n_by_wildcard = matched.n_by_wildcard.saturating_add(by_wildcard.count());
        let name = webhook.metadata.name.clone().unwrap_or_default();
        Unmatched {
            policy: webhook,
            matches,
            webhook: Some((n, name, matched)),
        }
    });
    parts.collect()
}

/// Compiles the parts of `entry`. The second value is the group versions whose schemas are needed to check them.
fn compile_parts(
    unmatched: Vec<Unmatched<'_>>,
    (entry, mapper): (&Entry, &RestMapper),
    profile: Profile,
    admissions: Option<Arc<AdmissionCache>>,
) -> (Vec<Part>, BTreeSet<GroupVersion>) {
    let mutations = entry.body.as_ref().and_then(|body| match body {
        Body::Webhooks(_) => None,
        body => Some(body.mutations()),
    });
    let parts = unmatched.into_iter().map(|part| Part {
        compiled: CompiledPolicy::of_parts(part.policy, mutations),
        matches: part.matches,
        webhook: part.webhook,
    });
    let parts: Vec<Part> = parts.collect();
    let all = || parts.iter().flat_map(|part| part.matches.group_versions());
    let [
        Part {
            compiled,
            matches,
            webhook: None,
        },
    ] = parts.as_slice()
    else {
        let group_versions = all().cloned().collect();
        return (parts, group_versions);
    };
    let policy = &*entry.policy;
    if let Some(admissions) = admissions
        && entry.body.is_none()
        && admissions.get(policy).is_none()
    {
        admissions.put(policy, Admission::from_compiled(compiled));
    }
    let mut group_versions = match profile {
        Profile::Truthful => matches.group_versions().clone(),
        Profile::Upstream => {
            let kinds = kinds_to_check(compiled, mapper, profile);
            describing(&kinds, matches.matches())
        }
    };
    group_versions.extend(policy::param_kind(policy).map(|gvk| gvk.group_version()));
    (parts, group_versions)
}

/// A hash of the addresses of documents.
fn addresses(group_versions: &BTreeSet<GroupVersion>, index: &Index) -> u64 {
    let mut hasher = DefaultHasher::new();
    for gv in group_versions {
        index.get(gv).hash(&mut hasher);
    }
    hasher.finish()
}

/// The process ends before the check did.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// How a part of a check ended.
pub(super) enum Guarded<T> {
    /// With a value, which says itself if it was interrupted; that would be reported like this.
    Done(T, Late),
    Panicked,
    /// It was interrupted.
    Late(Late),
}

impl<T> Guarded<T> {
    /// The value, `None` if it panicked. The error is that it was interrupted.
    pub(super) fn value(self) -> Result<Option<T>, Late> {
        match self {
            Self::Done(value, _) => Ok(Some(value)),
            Self::Panicked => Ok(None),
            Self::Late(late) => Err(late),
        }
    }
}

/// Runs a part of a check on a thread of its own, within the limits of `lane`.
pub(super) async fn guard<T: Send + 'static>(
    context: &Context,
    policy: &SubjectId,
    lane: Lane,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Guarded<T>, Interrupted> {
    let metrics = &context.metrics;
    let start = Instant::now();
    let stop: Arc<AtomicBool> = Arc::default();
    let flag = Arc::clone(&stop);
    let interrupt = Interrupt::new(move || flag.load(Ordering::Relaxed));
    let has_yielded = AtomicBool::new(false);
    let is_contended = || {
        let is_contended = blocking::has_waiting_check() || context.queue.len() > 0;
        has_yielded.store(is_contended, Ordering::Relaxed);
        is_contended
    };
    let limit = context.lanes.limit(lane);
    let running = interrupt.clone();
    let work = move || running.run(work);
    let outcome = blocking::run_within(lane.kind(), limit, stop, is_contended, work).await;
    metrics.checked(start.elapsed().as_secs_f64());
    let late = |is_stuck| Late {
        field: interrupt.field(),
        limit: limit.deadline,
        next: match lane {
            _ if is_stuck => None,
            Lane::Quick if has_yielded.load(Ordering::Relaxed) => Some(Lane::Deferred),
            Lane::Quick | Lane::Deferred => Some(Lane::Slow),
            Lane::Slow => None,
        },
        is_stuck,
    };
    match outcome {
        Ok(Some(Ok(value))) => Ok(Guarded::Done(value, late(false))),
        Ok(Some(Err(_))) => Ok(Guarded::Late(late(false))),
        Ok(None) => {
            tracing::error!(
                policy = policy.to_string(),
                field = interrupt.field(),
                "the check of this policy does not end; please report it"
            );
            Ok(Guarded::Late(late(true)))
        }
        Err(error) if error.is_panic() => {
            panicked(policy, metrics);
            Ok(Guarded::Panicked)
        }
        Err(_) => Err(Interrupted),
    }
}

/// Says and counts that a check panicked.
fn panicked(policy: &SubjectId, metrics: &Metrics) {
    metrics.check_panicked();
    tracing::error!(
        policy = policy.to_string(),
        "the check of this policy panicked; please report it"
    );
}

#[cfg(test)]
mod tests;
