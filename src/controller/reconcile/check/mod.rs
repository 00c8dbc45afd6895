//! Checks one policy: matches its rules, compiles its expressions, fetches the needed schemas, and checks types.
//!
//! Policies are untrusted. So the work runs on separate threads with time limits
//! ([`crate::controller::subjects::lanes`]), and a panic affects only one policy. The result is stored with its inputs,
//! so an unchanged policy is not checked again.

mod definition;
mod guard;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use self::guard::{Guarded, defer, guard, panicked};
use crate::cel::interrupt;
use crate::controller::cluster::match_cache::MatchCache;
use crate::controller::cluster::schemas::{Missing, SchemaRequest, Schemas};
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::context::Context;
use crate::controller::reconcile::result::{Interrupted, ReconcileError};
use crate::controller::subjects::admission_cache::AdmissionCache;
use crate::controller::subjects::check_result::{CheckOutcome, CheckResult, Lane};
use crate::controller::subjects::store::Entry;
use crate::controller::subjects::subject::Subject;
use crate::policy::admission::Admission;
use crate::policy::analysis::{Profile, TypeCheck, kinds_to_check, type_check_matched};
use crate::policy::compile::{CompileFinding, CompiledPolicy};
use crate::policy::matching::{self, RuleMatches, describing};
use crate::policy::subject::SubjectKind;
use crate::policy::{RequestPolicy, webhooks};
use crate::schema::GroupVersion;
use crate::schema::rest_mapper::RestMapper;
use crate::status::compute::{CheckStep, MatchSummary, TypeSummary};
use crate::telemetry::metrics::Skipped;
use crate::version::KubernetesVersion;

/// A policy or a webhook, after matching and compilation. A webhook is represented as a policy.
struct Part {
    compiled: CompiledPolicy,
    matches: Arc<RuleMatches>,
    /// For a webhook: its index, its name, and the matched resources that are not exempt from webhooks.
    webhook: Option<(usize, String, MatchSummary)>,
}

impl Part {
    fn type_checked(&self, schemas: &Schemas, profile: Profile) -> TypeCheck {
        type_check_matched(&self.compiled, &self.matches, schemas, profile)
    }

    fn findings(&self) -> Vec<CompileFinding> {
        let mut findings = self.compiled.findings().to_vec();
        if let Some((n, _, _)) = &self.webhook {
            for finding in &mut findings {
                finding.field_ref = webhooks::field_of_webhook(*n, &finding.field_ref);
            }
        }
        findings
    }
}

fn typed(parts: &[Part], schemas: &Schemas, profile: Profile) -> TypeSummary {
    match parts {
        [part] if part.webhook.is_none() => TypeSummary::from(part.type_checked(schemas, profile)),
        parts => {
            let parts = parts.iter();
            TypeSummary::from_webhooks(
                parts
                    .map(|part| part.type_checked(schemas, profile))
                    .collect(),
            )
        }
    }
}

fn matched(parts: &[Unmatched<'_>]) -> MatchSummary {
    match parts {
        [
            Unmatched {
                webhook: None,
                matches,
                ..
            },
        ] => MatchSummary::from(matches.matches()),
        parts => MatchSummary::from_webhooks(
            parts
                .iter()
                .filter_map(|part| part.webhook.as_ref())
                .map(|(_, name, matched)| (name.clone(), matched.clone()))
                .collect(),
        ),
    }
}

/// The parts of a policy or webhook configuration, after matching and compilation.
struct Examined {
    parts: Vec<Part>,
    group_versions: BTreeSet<GroupVersion>,
    /// The result of the type check. `None` if a schema was not cached.
    checked: Option<TypeChecked>,
}

enum TypeChecked {
    Done(TypeSummary),
    Panicked,
    Interrupted,
}

impl TypeChecked {
    /// Checks the types of all parts. Returns a panic or an interruption as a value, so that the results of earlier
    /// steps are kept.
    fn run(parts: &[Part], schemas: &Schemas, profile: Profile) -> Self {
        match catch_unwind(AssertUnwindSafe(|| typed(parts, schemas, profile))) {
            Ok(typed) => Self::Done(typed),
            Err(payload) if interrupt::is_interruption(payload.as_ref()) => Self::Interrupted,
            Err(_) => Self::Panicked,
        }
    }
}

enum Checked {
    Result(Box<CheckResult>),
    /// Schemas are loading. When they are loaded, the policy is queued again.
    Pending,
    /// The check exceeded the limit of its lane. It was queued in the next lane.
    Deferred,
}

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
        // If matching exceeded the time limit, the result does not depend on the served resources.
        let has_matched = !matches!(
            outcome,
            CheckOutcome::DeadlineExceeded { matched: None, .. }
        );
        let group_versions = self.context.schemas.shared(group_versions);
        Checked::Result(Box::new(CheckResult::new(
            self.entry.generation(),
            has_matched.then_some(self.snapshot.revision),
            (group_versions, &self.snapshot.index),
            missing,
            outcome,
        )))
    }

    /// Matches and compiles the policy. Also checks its types if its schemas are cached.
    ///
    /// The second value summarizes the resources that the rules match. It is available even if compilation or the type
    /// check panics or exceeds the time limit.
    async fn examine(&self) -> Result<(Guarded<Examined>, Option<MatchSummary>), Interrupted> {
        let context = self.context;
        let id = &self.entry.id;
        let has_probes = (context.probes.for_policy(id)).is_some_and(|probes| !probes.is_empty());
        let admissions = has_probes.then(|| Arc::clone(&context.admissions));
        let (subject, mapper) = (self.entry.clone(), Arc::clone(&self.snapshot.mapper));
        let (cached, index) = (context.schemas.clone(), Arc::clone(&self.snapshot.index));
        let match_cache = Arc::clone(&context.match_cache);
        let profile = self.profile;
        let matched_early: Arc<Mutex<Option<MatchSummary>>> = Arc::default();
        let matched_slot = Arc::clone(&matched_early);
        let version = self.snapshot.server.version;
        let work = move || {
            let unmatched = match_parts(&subject, (&mapper, version), &match_cache);
            let matched = matched(&unmatched);
            *matched_slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(matched);
            let (parts, group_versions) = compile_parts(
                unmatched,
                (&subject, &mapper),
                (profile, version),
                admissions,
            );
            // Usually all schemas are cached. Then the type check continues on this thread.
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
/// If the policy has probes, the compiled policy is cached for their evaluation. So it is compiled only once.
async fn check(
    context: &Context,
    entry: &Entry,
    snapshot: &ClusterSnapshot,
    lane: Lane,
) -> Result<Checked, Interrupted> {
    let Context {
        schemas, metrics, ..
    } = context;
    let id = &entry.id;
    // The profile `upstream` applies only to ValidatingAdmissionPolicies, since upstream does not check the types of
    // other kinds.
    let profile = match *entry.subject {
        Subject::ValidatingPolicy(_) => context.settings.profile,
        _ => Profile::Truthful,
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
            let late = late.with_step(step);
            if defer(context, entry, &late) {
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
            let SchemaRequest::Ready(schemas) = asked else {
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
            let late = late.with_step(CheckStep::TypeChecking);
            if defer(context, entry, &late) {
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

/// Checks a policy in `snapshot`, within the limits of `lane`, and stores the result.
///
/// Returns `Skipped` if there is no result yet. Then the policy is queued again later.
pub(crate) async fn check_in(
    context: &Context,
    entry: &Entry,
    snapshot: &ClusterSnapshot,
    lane: Lane,
) -> Result<Result<Arc<CheckResult>, Skipped>, ReconcileError> {
    if entry.kind() == SubjectKind::CustomResourceDefinition {
        return definition::check(context, entry, lane).await;
    }
    let result = match check(context, entry, snapshot, lane).await? {
        Checked::Result(result) => Arc::from(result),
        Checked::Pending => return Ok(Err(Skipped::SchemasLoading)),
        Checked::Deferred => return Ok(Err(Skipped::CheckDeferred)),
    };
    context.store.note(&entry.id, &result);
    // If the cluster has changed during the check, the change did not queue the policy, since the inputs of the new
    // result were not recorded yet.
    if !result.is_current_in(&context.snapshot()) {
        context.queue.add(&entry.id);
    }
    Ok(Ok(result))
}

struct Unmatched<'a> {
    policy: &'a RequestPolicy,
    matches: Arc<RuleMatches>,
    webhook: Option<(usize, String, MatchSummary)>,
}

fn match_parts<'a>(
    entry: &'a Entry,
    (mapper, version): (&Arc<RestMapper>, KubernetesVersion),
    match_cache: &MatchCache,
) -> Vec<Unmatched<'a>> {
    if let Some(policy) = entry.subject.policy() {
        return vec![Unmatched {
            policy,
            matches: match_cache.get(policy, mapper),
            webhook: None,
        }];
    }
    let webhooks = entry.subject.webhooks().iter().enumerate();
    let parts = webhooks.map(|(n, webhook)| {
        let matches = match_cache.get(webhook, mapper);
        let (asked, reviews) =
            matching::webhook_matches_and_reviews(webhook, matches.matches(), version.behavior());
        let mut matched = MatchSummary::from(&asked);
        let by_wildcard = reviews.iter().filter(|review| review.by_wildcard);
        matched.n_resources = matched.n_resources.saturating_add(reviews.len());
        matched.n_by_wildcard = matched.n_by_wildcard.saturating_add(by_wildcard.count());
        let name = webhook.name.clone().unwrap_or_default();
        Unmatched {
            policy: webhook,
            matches,
            webhook: Some((n, name, matched)),
        }
    });
    parts.collect()
}

/// Compiles the parts of `entry` for an API server of `version`. Also returns the group versions whose schemas are needed for the type check.
fn compile_parts(
    unmatched: Vec<Unmatched<'_>>,
    (entry, mapper): (&Entry, &RestMapper),
    (profile, version): (Profile, KubernetesVersion),
    admissions: Option<Arc<AdmissionCache>>,
) -> (Vec<Part>, BTreeSet<GroupVersion>) {
    let mutations = entry.subject.mutations();
    let parts = unmatched.into_iter().map(|part| Part {
        compiled: CompiledPolicy::from_parts(part.policy.clone(), mutations, version),
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
    if let Some(admissions) = admissions
        && matches!(*entry.subject, Subject::ValidatingPolicy(_))
        && admissions.get(entry, version).is_none()
    {
        admissions.put(entry, Admission::from_compiled(compiled));
    }
    let mut group_versions = match profile {
        Profile::Truthful => matches.group_versions().clone(),
        Profile::Upstream => {
            let kinds = kinds_to_check(compiled, mapper, profile);
            describing(&kinds, matches.matches())
        }
    };
    group_versions.extend(entry.subject.param_kind().map(|gvk| gvk.group_version()));
    (parts, group_versions)
}

#[cfg(test)]
mod tests;
