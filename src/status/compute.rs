//! Computes the status of a policy from observations.
//!
//! [`compute`] is a pure function. It follows three rules:
//!
//! - A condition with unreadable inputs is Unknown.
//! - If inputs are *temporarily* unavailable, the stored condition for the current generation is retained. A restart of
//!   the controller or an outage of the API server therefore does not change conditions.
//! - The message of a condition states the effect on requests.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;

use super::bindings::BindingsState;
use super::condition::{self, ConditionStatus, ConditionType, Reason};
pub(crate) use super::params::unserved;
pub use super::params::{MissingParams, NotServed, ParamKindState, ParamLookup, ParamsState};
use super::probes::ProbesState;
use super::ready::{ready, retained_stalled, stalled};
use super::staleness::Staleness;
use super::stalled::Remedy;
use super::type_checked::{type_checked, uncompiled};
use super::unknown_fields::UnknownFields;
use super::verdict::{Effect, Evidence, Verdict};
use super::warnings::Warning;
use super::{bindings, definition, matched, params, probes, staleness, unknown_fields, warnings};
use crate::policy::analysis::{BEYOND, TypeCheck, UncheckedKind};
use crate::policy::compile::{CompileFinding, CompileFindingKind};
use crate::policy::consequence::Consequence;
use crate::policy::matching::{Matches, UnservedResource};
use crate::policy::subject::SubjectKind;
use crate::policy::webhooks;
use crate::policy::{RequestPolicy, fails_closed};
use crate::probe::sample;
use crate::schema::Gvk;
use crate::version::{ClusterVersion, KubernetesVersion};

/// The observations that determine the status of a policy.
#[derive(Clone, Debug)]
pub struct Observations<'a> {
    /// The policy. Contains only the shared fields if the policy is a MutatingAdmissionPolicy. `None` for webhook
    /// configurations and CustomResourceDefinitions.
    pub policy: Option<&'a RequestPolicy>,
    /// The generation of the policy.
    pub generation: i64,
    /// The version of the API servers.
    pub server: ClusterVersion,
    /// The fields of the policy and of its bindings that the controller does not know.
    pub unknown_fields: UnknownFields,
    /// The current status in the cluster.
    pub status: Option<&'a ValidatingAdmissionPolicyStatus>,
    /// The kind of the policy. Policies of kinds other than ValidatingAdmissionPolicy have the condition `ProbesPassed`
    /// only if they have probes.
    pub subject: SubjectKind,
    /// The outcome of compiling the expressions, without schemas.
    pub compiled: StepOutcome<'a, CompileSummary<'a>>,
    /// The resources that the policy's rules match.
    pub matches: StepOutcome<'a, &'a MatchSummary>,
    /// The outcome of type checking.
    pub types: StepOutcome<'a, TypeObservations<'a>>,
    /// The state of the paramKind.
    pub params: ParamKindState,
    /// The state of the bindings.
    pub bindings: BindingsState,
    /// The state of the probes.
    pub probes: ProbesState,
    /// The conditions that must not be False for `Ready` to be True.
    pub ready_requires: &'a BTreeSet<ConditionType>,
    /// The inputs for `staleness::note`, which adds a note to a condition that may be out of date.
    pub staleness: Staleness<'a>,
}

impl Observations<'_> {
    /// Returns the properties that determine the policy's effect on requests.
    pub(super) fn effect(&self) -> Effect {
        Effect {
            fails_closed: self.policy.is_none_or(fails_closed),
            subject: self.subject,
        }
    }
}

/// The outcome of a check that may have panicked or timed out.
#[derive(Clone, Debug)]
pub enum StepOutcome<'a, T> {
    /// The check completed.
    Done(T),
    /// The check panicked because of a bug in vap-status-controller.
    Panicked,
    /// The check exceeded its time limit.
    DeadlineExceeded(Deadline<'a>),
}

/// The details of a check that exceeded its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline<'a> {
    /// The time limit.
    pub limit: Duration,
    /// The aborted step.
    pub step: CheckStep,
    /// The field that was being checked, such as `spec.validations[0].expression`. `None` if the step has no field.
    pub field: Option<&'a str>,
}

/// A step in checking a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStep {
    /// Matching the rules with the served resources.
    Matching,
    /// Compiling the expressions.
    Compiling,
    /// Checking the types of the expressions.
    TypeChecking,
}

impl<T> StepOutcome<'_, T> {
    /// Returns the result of a completed check, or the Unknown verdict of an aborted one.
    pub(super) fn done(&self) -> Result<&T, Verdict> {
        match self {
            Self::Done(value) => Ok(value),
            Self::Panicked => Err(Verdict::internal_error()),
            Self::DeadlineExceeded(deadline) => Err(Verdict::deadline_exceeded(*deadline)),
        }
    }
}

/// A summary of the compilation of a policy.
#[derive(Clone, Copy, Debug)]
pub struct CompileSummary<'a> {
    /// The findings about expressions.
    pub findings: &'a [CompileFinding],
    /// The number of expressions.
    pub n_expressions: usize,
}

/// A summary of type-checking a policy.
#[derive(Clone, Copy, Debug)]
pub struct TypeObservations<'a> {
    /// The warnings and the number of checked kinds.
    pub outcome: &'a TypeSummary,
    /// Group versions with temporarily unavailable schemas, and the reasons.
    pub waiting: &'a [(String, String)],
}

/// A summary of the resources that rules match. It contains counts instead of lists, because a wildcard matches
/// hundreds of resources and a cluster may contain hundreds of policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSummary {
    /// The number of matched resources that are served and not exempt.
    pub n_resources: usize,
    /// The number of resources in `n_resources` that only a wildcard matches.
    pub n_by_wildcard: usize,
    /// The matched resources that are exempt from admission policies.
    pub exempt: Vec<String>,
    /// The resources that rules list by name but that are not served.
    pub unserved: Vec<UnservedResource>,
    /// The matched group versions that could not be discovered, and the reasons.
    pub incomplete: Vec<(String, String)>,
    /// The matched group versions whose discovery has failed for more than a minute. Their resources may come from an
    /// earlier discovery.
    pub undiscovered: Vec<String>,
    /// The name and summary of each webhook, for a webhook configuration. The other fields then contain totals.
    pub webhooks: Box<[(String, Self)]>,
}

impl MatchSummary {
    /// Combines the summaries of a configuration's webhooks.
    #[must_use]
    pub fn from_webhooks(webhooks: Vec<(String, Self)>) -> Self {
        let mut all = Self::default();
        for (_, webhook) in &webhooks {
            all.n_resources = all.n_resources.saturating_add(webhook.n_resources);
            all.n_by_wildcard = all.n_by_wildcard.saturating_add(webhook.n_by_wildcard);
            all.exempt.extend_from_slice(&webhook.exempt);
            all.unserved.extend_from_slice(&webhook.unserved);
            all.incomplete.extend_from_slice(&webhook.incomplete);
            all.undiscovered.extend_from_slice(&webhook.undiscovered);
        }
        all.undiscovered.sort();
        all.undiscovered.dedup();
        all.webhooks = webhooks.into();
        all
    }
}

impl From<&Matches> for MatchSummary {
    fn from(matches: &Matches) -> Self {
        Self {
            n_resources: matches.resources.len(),
            n_by_wildcard: matches
                .resources
                .iter()
                .filter(|resource| resource.by_wildcard)
                .count(),
            exempt: matches
                .exempt
                .iter()
                .map(|exempt| exempt.resource.clone())
                .collect(),
            unserved: matches.unserved.clone(),
            incomplete: matches.incomplete.clone(),
            undiscovered: matches.undiscovered.clone(),
            webhooks: Box::default(),
        }
    }
}

/// A summary of the type checking of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeSummary {
    /// The warnings. Each expression has at most one.
    pub warnings: Box<[Warning]>,
    /// The number of checked kinds that rules match by name.
    pub n_checked: usize,
    /// The unchecked kinds that rules match by name, and the reasons.
    pub unchecked: Vec<UncheckedKind>,
    /// The kinds that only wildcards match.
    pub by_wildcard: Box<WildcardTypeSummary>,
    /// The paramKind. The boolean is true if its schema was found.
    pub params: Option<(Gvk, bool)>,
    /// True if any of the kinds, checked or not, is not built into Kubernetes.
    pub has_foreign_kinds: bool,
}

/// A summary of type-checking the kinds that only wildcards match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WildcardTypeSummary {
    /// The number of checked kinds.
    pub n_checked: usize,
    /// The unchecked kinds. Kinds beyond the limit per policy are omitted.
    pub unchecked: Vec<UncheckedKind>,
    /// True if the rules match more kinds than the limit per policy. The exact number is omitted, because each new CRD
    /// would change the status.
    pub has_more: bool,
}

impl TypeSummary {
    /// Combines the outcomes of a configuration's webhooks. A kind that several webhooks match counts once.
    #[must_use]
    pub fn from_webhooks(webhooks: Vec<TypeCheck>) -> Self {
        let kinds = webhooks.iter().flat_map(|webhook| &webhook.checked);
        let named: BTreeSet<Gvk> = kinds.cloned().collect();
        let kinds = webhooks
            .iter()
            .flat_map(|webhook| &webhook.by_wildcard.checked);
        let by_wildcard: BTreeSet<&Gvk> = kinds.filter(|kind| !named.contains(kind)).collect();
        let mut all = Self {
            n_checked: named.len(),
            ..Self::default()
        };
        all.by_wildcard.n_checked = by_wildcard.len();
        let mut warnings = Vec::new();
        let add = |unchecked: &mut Vec<UncheckedKind>, kinds: Vec<UncheckedKind>| {
            for kind in kinds {
                if !unchecked.contains(&kind) {
                    unchecked.push(kind);
                }
            }
        };
        for (n, webhook) in webhooks.into_iter().enumerate() {
            let webhook = Self::from(webhook);
            warnings.extend(webhook.warnings.into_iter().map(|mut warning| {
                warning.field_ref = webhooks::field_of_webhook(n, &warning.field_ref);
                warning
            }));
            add(&mut all.unchecked, webhook.unchecked);
            let by_wildcard = *webhook.by_wildcard;
            let total = &mut *all.by_wildcard;
            add(&mut total.unchecked, by_wildcard.unchecked);
            total.has_more |= by_wildcard.has_more;
            all.has_foreign_kinds |= webhook.has_foreign_kinds;
        }
        all.warnings = warnings.into();
        all
    }
}

impl From<TypeCheck> for TypeSummary {
    fn from(outcome: TypeCheck) -> Self {
        let unchecked = outcome.unchecked.iter();
        let unchecked = unchecked.chain(&outcome.by_wildcard.unchecked);
        let mut kinds = (outcome.checked.iter())
            .chain(&outcome.by_wildcard.checked)
            .chain(unchecked.map(|unchecked| &unchecked.gvk))
            .chain(outcome.params.iter().map(|(gvk, _)| gvk));
        let has_foreign_kinds = kinds.any(|gvk| !sample::is_own_group(&gvk.group));
        let mut unchecked = outcome.by_wildcard.unchecked;
        let n_unchecked = unchecked.len();
        unchecked.retain(|kind| kind.reason != BEYOND);
        let has_more = unchecked.len() < n_unchecked;
        unchecked.shrink_to_fit();
        Self {
            has_foreign_kinds,
            warnings: warnings::warnings(&outcome.findings).into(),
            n_checked: outcome.checked.len(),
            unchecked: outcome.unchecked,
            by_wildcard: Box::new(WildcardTypeSummary {
                n_checked: outcome.by_wildcard.checked.len(),
                unchecked,
                has_more,
            }),
            params: outcome.params,
        }
    }
}

/// The computed status of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredStatus {
    /// The generation of the checked policy.
    pub observed_generation: i64,
    /// The warnings, truncated to the size limits.
    pub expression_warnings: Vec<ExpressionWarning>,
    /// The number of type warnings. Warnings about expressions that do not compile are not counted.
    pub n_type_warnings: usize,
    /// The conditions that this controller writes.
    pub conditions: Vec<Condition>,
    /// True if a condition cannot currently be recomputed and is therefore retained.
    pub has_retained: bool,
}

impl DesiredStatus {
    /// Returns true if `live` equals this status, ignoring conditions of other controllers.
    #[must_use]
    pub fn is_satisfied_by(&self, live: Option<&ValidatingAdmissionPolicyStatus>) -> bool {
        let Some(live) = live else { return false };
        let Some(type_checking) = live.type_checking.as_ref() else {
            return false;
        };
        let live_conditions = live.conditions.as_deref().unwrap_or_default();
        live.observed_generation == Some(self.observed_generation)
            && type_checking
                .expression_warnings
                .as_deref()
                .unwrap_or_default()
                == self.expression_warnings
            && self
                .conditions
                .iter()
                .all(|condition| live_conditions.contains(condition))
            && self.without_stale(live_conditions).is_none()
    }

    /// Removes an obsolete `Stalled` condition of this controller from `live`. Returns `None` if `live` has none.
    #[must_use]
    pub fn without_stale(&self, live: &[Condition]) -> Option<Vec<Condition>> {
        let has_stalled = condition::find(&self.conditions, ConditionType::Stalled).is_some();
        let is_stale = !has_stalled && is_stalled_by_us(live);
        let is_other = |condition: &&Condition| condition.type_ != ConditionType::Stalled.as_str();
        is_stale.then(|| live.iter().filter(is_other).cloned().collect())
    }
}

/// Returns true if `live` has a `Stalled` condition of this controller. The reason distinguishes it from conditions of
/// other controllers.
fn is_stalled_by_us(live: &[Condition]) -> bool {
    let stalled = condition::find(live, ConditionType::Stalled);
    let reason = stalled.and_then(|stalled| Reason::from_name(&stalled.reason));
    reason.is_some_and(|reason| reason.remedy() != Remedy::Elsewhere)
}

/// Computes the verdict of one condition. Returns `None` for `Ready` and `Stalled`, because they summarize the other
/// conditions.
fn verdict_of(
    type_: ConditionType,
    observed: &Observations<'_>,
    uncompiled: &BTreeSet<&str>,
) -> Option<Verdict> {
    Some(match type_ {
        ConditionType::Compiled => compiled(observed),
        ConditionType::ResourcesMatched => matched::verdict(observed),
        ConditionType::ParamsResolved => params::verdict(&observed.params, observed.effect()),
        ConditionType::TypeChecked => type_checked(observed, uncompiled),
        ConditionType::ProbesPassed => probes_passed(observed),
        ConditionType::Bound => bindings::verdict(&observed.bindings, observed.effect()),
        ConditionType::Ready | ConditionType::Stalled => return None,
    })
}

/// Computes the status of a policy at `now`.
#[must_use]
pub fn compute(observed: &Observations<'_>, now: Timestamp) -> DesiredStatus {
    let (generation, live) = (observed.generation, observed.status);
    let live_conditions = live
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let uncompiled = uncompiled(observed);
    let types = ConditionType::ALL.into_iter();
    let types = types.filter(|type_| type_.exists_for(observed.subject));
    let verdicts: Vec<(ConditionType, Verdict)> = types
        .filter_map(|type_| {
            let verdict = verdict_of(type_, observed, &uncompiled)?;
            let is_known = verdict.status != ConditionStatus::Unknown;
            let unknown = unknown_fields::verdict(type_, observed).filter(|_| is_known);
            Some((type_, unknown.unwrap_or(verdict)))
        })
        .collect();
    let has_unknown_types = verdicts.iter().any(|(type_, verdict)| {
        *type_ == ConditionType::TypeChecked && verdict.reason == Reason::UnknownField
    });
    let retains_warnings = verdicts.iter().any(|(type_, verdict)| {
        *type_ == ConditionType::TypeChecked
            && retained_verdict(verdict, *type_, live_conditions, generation).is_some()
    });
    let parts = verdicts.into_iter().map(|(type_, verdict)| {
        let retained = retained_verdict(&verdict, type_, live_conditions, generation);
        let is_retained = retained.is_some();
        let mut verdict = retained.unwrap_or(verdict);
        let note = staleness::note(observed, type_, &verdict, is_retained);
        // A retained condition also keeps its note.
        verdict.note = note.or(verdict.note);
        (type_, verdict, is_retained)
    });
    let parts: Vec<(ConditionType, Verdict, bool)> = parts.collect();
    let has_retained = parts.iter().any(|(_, _, is_retained)| *is_retained);
    let parts = parts.into_iter();
    let parts: Vec<(ConditionType, Verdict)> =
        parts.map(|(type_, verdict, _)| (type_, verdict)).collect();
    let ready = (ConditionType::Ready, ready(&parts, observed.ready_requires));

    let stalled = if retains_warnings {
        // The warnings are retained, so `Stalled` cannot be recomputed from them.
        retained_stalled(live_conditions, generation, &parts).or_else(|| stalled(&parts, observed))
    } else {
        stalled(&parts, observed)
    };
    let stalled = stalled.map(|verdict| (ConditionType::Stalled, verdict));

    let ours: Vec<Condition> = std::iter::once(&ready)
        .chain(&parts)
        .chain(&stalled)
        .map(|(type_, verdict)| {
            let Verdict {
                status,
                reason,
                message,
                note,
                ..
            } = verdict;
            let message = staleness::join(message, note.as_deref());
            condition::condition(*type_, *status, *reason, &message, generation, now)
        })
        .collect();
    let types: Vec<String> = ours.iter().map(|ours| ours.type_.clone()).collect();
    let is_without_probes =
        observed.subject != SubjectKind::ValidatingAdmissionPolicy && observed.probes.is_none();
    let merged = condition::merge(live_conditions, ours);
    let expression_warnings = if retains_warnings {
        live_warnings(live)
    } else if has_unknown_types {
        Vec::new()
    } else {
        found_warnings(observed)
    };
    let is_of_types =
        |warning: &&ExpressionWarning| !uncompiled.contains(warning.field_ref.as_str());
    DesiredStatus {
        observed_generation: generation,
        has_retained,
        n_type_warnings: expression_warnings.iter().filter(is_of_types).count(),
        expression_warnings,
        // Server-side apply removes conditions of an earlier apply that are not in this list.
        conditions: ConditionType::WRITTEN
            .into_iter()
            .filter(|type_| types.iter().any(|written| written == type_.as_str()))
            .filter(|type_| !(is_without_probes && *type_ == ConditionType::ProbesPassed))
            .filter_map(|type_| condition::find(&merged, type_).cloned())
            .collect(),
    }
}

/// Returns the stored verdict for `generation` if `verdict` must not replace it. This is the case if the inputs of
/// `verdict` are temporarily unavailable, or if `verdict` has the status of the stored verdict but less detail.
fn retained_verdict(
    verdict: &Verdict,
    type_: ConditionType,
    live: &[Condition],
    generation: i64,
) -> Option<Verdict> {
    if matches!(
        verdict.reason,
        Reason::InternalError | Reason::DeadlineExceeded
    ) {
        return None;
    }
    let last = condition::find(live, type_)?;
    let status = ConditionStatus::from_condition(last);
    if last.observed_generation != Some(generation) || status == ConditionStatus::Unknown {
        return None;
    }
    match verdict.evidence {
        Evidence::Complete | Evidence::Unavailable => return None,
        Evidence::Partial if status != verdict.status => return None,
        Evidence::Partial | Evidence::Pending => {}
    }
    let reason = Reason::from_name(&last.reason)?;
    let (message, note) = staleness::split(&last.message);
    Some(Verdict::new(status, reason, message).with_note(note.map(str::to_owned)))
}

pub(super) fn when_evaluated(consequence: Consequence, effect: Effect) -> &'static str {
    match consequence {
        Consequence::Denied if effect.subject == SubjectKind::CustomResourceDefinition => {
            "objects that the rule validates are rejected"
        }
        Consequence::Denied => {
            "with failurePolicy Fail, a request that reaches the expression is denied"
        }
        Consequence::LetThrough if effect.subject.is_webhooks() => {
            "with failurePolicy Ignore, the webhook is not called for requests that reach the expression"
        }
        Consequence::LetThrough if effect.is_mutating() => {
            "with failurePolicy Ignore, the policy does not change requests that reach the expression"
        }
        Consequence::LetThrough => {
            "with failurePolicy Ignore, the policy does not check requests that reach the expression"
        }
        Consequence::NoAnnotation => {
            "with failurePolicy Ignore, requests that reach the expression get no audit annotation"
        }
        Consequence::OtherMessage => {
            "a denied request gets a different message; no extra request is denied"
        }
        Consequence::Unread => "requests are not affected, since no expression uses the variable",
    }
}

/// Returns the finding with the worst consequence. If several findings have this consequence, returns the first.
pub(super) fn worst<'a, T>(
    findings: impl Iterator<Item = &'a T>,
    consequence: impl Fn(&T) -> Consequence,
) -> Option<&'a T> {
    // `max_by_key` returns the last maximum. The first is needed, so the order is reversed.
    let findings: Vec<&T> = findings.collect();
    findings
        .into_iter()
        .rev()
        .max_by_key(|finding| consequence(finding))
}

fn compiled(observed: &Observations<'_>) -> Verdict {
    let CompileSummary {
        findings,
        n_expressions,
    } = match observed.compiled.done() {
        Ok(compiled) => *compiled,
        Err(unknown) => return unknown,
    };
    let server = observed.server;
    let first_of_kind = |kind: CompileFindingKind| {
        let of_kind = || findings.iter().filter(|finding| finding.kind == kind);
        let first = worst(of_kind(), |finding| finding.consequence)?;
        let more = match of_kind().count() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        let message = first.cause.message();
        let headline = message.lines().next().unwrap_or_default();
        let detail = format!("{}{more}: {headline}", first.field_ref);
        Some((detail, when_evaluated(first.consequence, observed.effect())))
    };
    if let Some((detail, consequence)) = first_of_kind(CompileFindingKind::Failed) {
        return Verdict::new(
            ConditionStatus::False,
            Reason::CompilationFailed,
            format!("an expression does not compile; {consequence}: {detail}"),
        );
    }
    if let Some((detail, _)) = first_of_kind(CompileFindingKind::Unsafe) {
        return Verdict::new(
            ConditionStatus::False,
            Reason::UnsafeExpression,
            format!(
                "the API server accepts an expression that it cannot evaluate safely: {detail}"
            ),
        );
    }
    if let Some((detail, _)) = first_of_kind(CompileFindingKind::Unsupported) {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::UnsupportedExpression,
            format!(
                "an expression cannot be checked by vap-status-controller{}: {detail}",
                unsupported_version(server)
            ),
        );
    }
    let text = match n_expressions {
        0 if observed.subject == SubjectKind::CustomResourceDefinition => {
            definition::NO_RULES.to_owned()
        }
        0 => "there are no expressions".to_owned(),
        1 => "the expression compiles".to_owned(),
        n => format!("all {n} expressions compile"),
    };
    let text = if server.is_lowest_of_several {
        let version = server.version;
        format!("{text} for Kubernetes {version}, the lowest version of the API servers")
    } else {
        text
    };
    Verdict::new(ConditionStatus::True, Reason::AllExpressionsCompile, text)
}

/// Returns a clause if the version of the API servers is newer than all supported versions.
pub(super) fn unsupported_version(server: ClusterVersion) -> String {
    if server.version.is_too_new() {
        format!(
            ", which supports Kubernetes up to {}, but the API server runs {}",
            KubernetesVersion::NEWEST,
            server.version
        )
    } else {
        String::new()
    }
}

/// Computes the condition `ProbesPassed`. The results of probes are unknown if an expression is unsupported.
fn probes_passed(observed: &Observations<'_>) -> Verdict {
    let verdict = probes::verdict(&observed.probes);
    let is_known = verdict.status != ConditionStatus::Unknown;
    match observed.compiled.done() {
        Ok(compiled) if is_known => {
            let mut findings = compiled.findings.iter();
            // A definition whose schema has errors has findings of the kind `Unsupported`, but its rules are evaluated
            // nevertheless.
            let is_undecided = observed.policy.is_some() || observed.server.version.is_too_new();
            let finding =
                findings.find(|it| it.kind == CompileFindingKind::Unsupported && is_undecided);
            finding.map_or(verdict, |finding| {
                Verdict::new(
                    ConditionStatus::Unknown,
                    Reason::UnsupportedExpression,
                    format!(
                        "the decisions of the probes are unknown, because {} cannot be checked by \
                         vap-status-controller{}",
                        finding.field_ref,
                        unsupported_version(observed.server)
                    ),
                )
            })
        }
        _ => verdict,
    }
}

/// Returns the warnings of the current type check, truncated to the size limits.
fn found_warnings(observed: &Observations<'_>) -> Vec<ExpressionWarning> {
    match observed.types {
        StepOutcome::Done(TypeObservations { outcome, .. }) => warnings::expression_warnings(
            &outcome.warnings,
            warnings::budget_bytes(observed.policy),
        ),
        StepOutcome::Panicked | StepOutcome::DeadlineExceeded(_) => Vec::new(),
    }
}

fn live_warnings(live: Option<&ValidatingAdmissionPolicyStatus>) -> Vec<ExpressionWarning> {
    live.and_then(|status| status.type_checking.as_ref())
        .and_then(|type_checking| type_checking.expression_warnings.clone())
        .unwrap_or_default()
}
