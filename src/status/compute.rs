//! The status of a policy, computed from what was observed.
//!
//! [`compute`] is pure. Three rules hold throughout:
//!
//! - A verdict needs evidence: what could not be looked at is Unknown, never True or False.
//! - What cannot be looked at *now* does not overwrite what was found for the same generation: a
//!   restart or a pause of the API server must not make a condition flap.
//! - A message states what follows for requests.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;

use super::bindings::BindingsState;
use super::condition::{self, ConditionStatus, ConditionType, Reason};
use super::out_of_date::Staleness;
pub(crate) use super::params::unserved;
pub use super::params::{MissingParams, NotServed, ParamKindState, ParamsState, Sought};
use super::probes::ProbesState;
use super::ready::{ready, stalled, standing_stalled};
use super::stalled::Remedy;
use super::type_checked::{type_checked, uncompiled};
use super::verdict::{Effect, Evidence, Verdict};
use super::warnings::Warning;
use super::{bindings, definition, matched, out_of_date, params, probes, warnings};
use crate::policy::analysis::{BEYOND, TypeCheck, UncheckedKind};
use crate::policy::compile::{CompileFinding, CompileFindingKind};
use crate::policy::consequence::Consequence;
use crate::policy::fails_closed;
use crate::policy::matching::{Matches, UnservedResource};
use crate::policy::subject::SubjectKind;
use crate::policy::webhooks;
use crate::probe::sample;
use crate::schema::Gvk;

/// The observations about a policy.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The policy, with the status that it has now; of a mutating one what it shares with validating ones.
    pub policy: &'a ValidatingAdmissionPolicy,
    /// The sort of it. Where one that is no ValidatingAdmissionPolicy has no probes, no condition tells of that.
    pub subject: SubjectKind,
    /// Its expressions, without regard to schemas.
    pub compiled: Checked<'a, Compiled<'a>>,
    /// The resources that its rules match.
    pub matches: Checked<'a, &'a Matched>,
    /// The outcome of type checking.
    pub types: Checked<'a, Types<'a>>,
    /// Its paramKind.
    pub params: ParamKindState,
    /// Its bindings.
    pub bindings: BindingsState,
    /// Its probes.
    pub probes: ProbesState,
    /// The conditions that count for `Ready`.
    pub ready_requires: &'a BTreeSet<ConditionType>,
    /// Signs that conditions may be out of date.
    pub staleness: Staleness<'a>,
}

impl Observed<'_> {
    /// The effect of the policy on requests.
    pub(super) fn effect(&self) -> Effect {
        Effect {
            fails_closed: fails_closed(self.policy),
            subject: self.subject,
        }
    }
}

/// The outcome of a check that may have broken off.
#[derive(Clone, Debug)]
pub enum Checked<'a, T> {
    /// It ran to its end.
    Done(T),
    /// It panicked: an error of ours.
    Panicked,
    /// It was ended, since it took too long.
    DeadlineExceeded(Deadline<'a>),
}

/// A check that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline<'a> {
    /// The time limit.
    pub limit: Duration,
    /// The step of the check that was not finished.
    pub step: CheckStep,
    /// The field that was worked on, `spec.validations[0].expression`; `None` if it was none in particular.
    pub field: Option<&'a str>,
}

/// A step of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStep {
    /// Matching the rules with the resources that the cluster serves.
    Matching,
    /// Compiling the expressions.
    Compiling,
    /// Checking the types of the expressions.
    TypeChecking,
}

impl<T> Checked<'_, T> {
    /// The value. The error is the status of a check without one.
    pub(super) fn done(&self) -> Result<&T, Verdict> {
        match self {
            Self::Done(value) => Ok(value),
            Self::Panicked => Err(Verdict::broken_off()),
            Self::DeadlineExceeded(deadline) => Err(Verdict::deadline_exceeded(*deadline)),
        }
    }
}

/// The outcome of compiling.
#[derive(Clone, Copy, Debug)]
pub struct Compiled<'a> {
    /// The expressions in trouble.
    pub findings: &'a [CompileFinding],
    /// How many expressions there are.
    pub n_expressions: usize,
}

/// The outcome of type checking.
#[derive(Clone, Copy, Debug)]
pub struct Types<'a> {
    /// The outcome of type checking.
    pub outcome: &'a Typed,
    /// Group versions whose schemas are published and could not be had now, with the reason.
    pub waiting: &'a [(String, String)],
}

/// The resources that rules match, without the names of all of them: a wildcard matches hundreds of resources,
/// and there may be hundreds of policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// How many served resources that the policy is asked about.
    pub n_resources: usize,
    /// How many of them are matched by a wildcard only.
    pub n_by_wildcard: usize,
    /// The served resources that no policy is asked about.
    pub exempt: Vec<String>,
    /// The resources that rules name and nothing serves.
    pub unserved: Vec<UnservedResource>,
    /// Group versions that a rule touches and that could not be discovered, with the reason.
    pub incomplete: Vec<(String, String)>,
    /// Group versions that a rule touches and that have not been discovered for some time, be their resources known
    /// from before or not.
    pub undiscovered: Vec<String>,
    /// The same of each webhook of a configuration, by its name: then all of the above is of all together.
    pub webhooks: Box<[(String, Self)]>,
}

impl Matched {
    /// Matches of the webhooks of a configuration, each by its name.
    #[must_use]
    pub fn of_webhooks(webhooks: Vec<(String, Self)>) -> Self {
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

impl From<&Matches> for Matched {
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

/// The outcome of type checking, without the names of all that was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// The warnings.
    pub warnings: Box<[Warning]>,
    /// How many kinds that rules match by name were checked.
    pub n_checked: usize,
    /// The kinds that rules match by name and that were not checked.
    pub unchecked: Vec<UncheckedKind>,
    /// The kinds that rules match by wildcards only.
    pub by_wildcard: Box<TypedByWildcard>,
    /// The kind of the params with whether its schema was found, where there is a paramKind.
    pub params: Option<(Gvk, bool)>,
    /// True if something beside Kubernetes itself has a say in the schemas of these kinds.
    pub has_foreign_kinds: bool,
}

/// The outcome for the kinds that rules match by wildcards only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedByWildcard {
    /// How many were checked.
    pub n_checked: usize,
    /// Those that were not checked.
    pub unchecked: Vec<UncheckedKind>,
    /// True if there are more than are checked for one policy. There may be thousands, which each CRD changes.
    pub has_more: bool,
}

impl Typed {
    /// The outcomes for the webhooks of a configuration, in their order, as one; a kind that several of them match
    /// counts once.
    #[must_use]
    pub fn of_webhooks(webhooks: Vec<TypeCheck>) -> Self {
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
        let add = |known: &mut Vec<UncheckedKind>, kinds: Vec<UncheckedKind>| {
            for kind in kinds {
                if !known.contains(&kind) {
                    known.push(kind);
                }
            }
        };
        for (n, webhook) in webhooks.into_iter().enumerate() {
            let webhook = Self::from(webhook);
            warnings.extend(webhook.warnings.into_iter().map(|mut warning| {
                warning.field_ref = webhooks::of_field(n, &warning.field_ref);
                warning
            }));
            add(&mut all.unchecked, webhook.unchecked);
            let by_wildcard = *webhook.by_wildcard;
            let known = &mut *all.by_wildcard;
            add(&mut known.unchecked, by_wildcard.unchecked);
            known.has_more |= by_wildcard.has_more;
            all.has_foreign_kinds |= webhook.has_foreign_kinds;
        }
        all.warnings = warnings.into();
        all
    }
}

impl From<TypeCheck> for Typed {
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
            by_wildcard: Box::new(TypedByWildcard {
                n_checked: outcome.by_wildcard.checked.len(),
                unchecked,
                has_more,
            }),
            params: outcome.params,
        }
    }
}

/// The status that a policy should have.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredStatus {
    /// The generation that was looked at.
    pub observed_generation: i64,
    /// The warnings, within bounds.
    pub expression_warnings: Vec<ExpressionWarning>,
    /// How many of them are about types, and not about expressions that do not compile.
    pub n_type_warnings: usize,
    /// Our conditions.
    pub conditions: Vec<Condition>,
    /// True if one of them is as it was, since its verdict cannot be given anew now.
    pub is_kept: bool,
}

impl DesiredStatus {
    /// Reports whether `live` says all of this already. Conditions of others do not matter.
    #[must_use]
    pub fn is_met_by(&self, live: Option<&ValidatingAdmissionPolicyStatus>) -> bool {
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

    /// The conditions of `live` without a `Stalled` of ours that does not hold any more; `None` where there is none.
    #[must_use]
    pub fn without_stale(&self, live: &[Condition]) -> Option<Vec<Condition>> {
        let is_stale = !self.says(ConditionType::Stalled) && is_stalled_by_us(live);
        let is_kept = |condition: &&Condition| condition.type_ != ConditionType::Stalled.as_str();
        is_stale.then(|| live.iter().filter(is_kept).cloned().collect())
    }

    fn says(&self, type_: ConditionType) -> bool {
        condition::find(&self.conditions, type_).is_some()
    }
}

/// Reports whether a `Stalled` stands that has a reason of ours. One with another reason is not ours to remove.
fn is_stalled_by_us(live: &[Condition]) -> bool {
    let stalled = condition::find(live, ConditionType::Stalled);
    let reason = stalled.and_then(|stalled| Reason::from_name(&stalled.reason));
    reason.is_some_and(|reason| reason.remedy() != Remedy::Elsewhere)
}

/// Returns the verdict of one condition. `None` for conditions that sum up the others.
fn verdict_of(
    type_: ConditionType,
    observed: &Observed<'_>,
    uncompiled: &BTreeSet<&str>,
) -> Option<Verdict> {
    Some(match type_ {
        ConditionType::Compiled => compiled(observed),
        ConditionType::ResourcesMatched => matched::verdict(observed),
        ConditionType::ParamsResolved => params::verdict(&observed.params, observed.effect()),
        ConditionType::TypeChecked => type_checked(observed, uncompiled),
        ConditionType::ProbesPassed => probes::verdict(&observed.probes),
        ConditionType::Bound => bindings::verdict(&observed.bindings, observed.effect()),
        ConditionType::Ready | ConditionType::Stalled => return None,
    })
}

/// The status of a policy at `now`.
#[must_use]
pub fn compute(observed: &Observed<'_>, now: Timestamp) -> DesiredStatus {
    let generation = observed.policy.metadata.generation.unwrap_or_default();
    let live = observed.policy.status.as_ref();
    let live_conditions = live
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let uncompiled = uncompiled(observed);
    let types = ConditionType::ALL.into_iter();
    let types = types.filter(|type_| type_.exists_for(observed.subject));
    let found: Vec<(ConditionType, Verdict)> = types
        .filter_map(|type_| Some((type_, verdict_of(type_, observed, &uncompiled)?)))
        .collect();
    let keeps_warnings = found.iter().any(|(type_, verdict)| {
        *type_ == ConditionType::TypeChecked
            && standing(verdict, *type_, live_conditions, generation).is_some()
    });
    let parts = found.into_iter().map(|(type_, verdict)| {
        let kept = standing(&verdict, type_, live_conditions, generation);
        let is_kept = kept.is_some();
        let mut verdict = kept.unwrap_or(verdict);
        let note = out_of_date::note(observed, type_, &verdict, is_kept);
        // A note from before stands as long as what it is on does.
        verdict.note = note.or(verdict.note);
        (type_, verdict, is_kept)
    });
    let parts: Vec<(ConditionType, Verdict, bool)> = parts.collect();
    let is_kept = parts.iter().any(|(_, _, is_kept)| *is_kept);
    let parts = parts.into_iter();
    let parts: Vec<(ConditionType, Verdict)> =
        parts.map(|(type_, verdict, _)| (type_, verdict)).collect();
    let ready = (ConditionType::Ready, ready(&parts, observed.ready_requires));

    let stalled = if keeps_warnings {
        // What the warnings rest on cannot be looked at now: nor can it be told whether they last.
        standing_stalled(live_conditions, generation, &parts).or_else(|| stalled(&parts, observed))
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
            let message = out_of_date::join(message, note.as_deref());
            condition::condition(*type_, *status, *reason, &message, generation, now)
        })
        .collect();
    let types: Vec<String> = ours.iter().map(|ours| ours.type_.clone()).collect();
    let is_without_probes =
        observed.subject != SubjectKind::ValidatingAdmissionPolicy && observed.probes.is_none();
    let merged = condition::merge(live_conditions, ours);
    let expression_warnings = if keeps_warnings {
        live_warnings(live)
    } else {
        found_warnings(observed)
    };
    let is_of_types =
        |warning: &&ExpressionWarning| !uncompiled.contains(warning.field_ref.as_str());
    DesiredStatus {
        observed_generation: generation,
        is_kept,
        n_type_warnings: expression_warnings.iter().filter(is_of_types).count(),
        expression_warnings,
        // What we do not say any more is left out of what is applied, which removes it.
        conditions: ConditionType::WRITTEN
            .into_iter()
            .filter(|type_| types.iter().any(|said| said == type_.as_str()))
            .filter(|type_| !(is_without_probes && *type_ == ConditionType::ProbesPassed))
            .filter_map(|type_| condition::find(&merged, type_).cloned())
            .collect(),
    }
}

/// The verdict that stands in for `verdict`, where that one cannot be told now: the one that was
/// given for the same generation before.
fn standing(
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
    let status = ConditionStatus::of(last);
    if last.observed_generation != Some(generation) || status == ConditionStatus::Unknown {
        return None;
    }
    match verdict.evidence {
        Evidence::Complete | Evidence::Lost => return None,
        Evidence::WithoutDetail if status != verdict.status => return None,
        Evidence::WithoutDetail | Evidence::Awaited => {}
    }
    let reason = Reason::from_name(&last.reason)?;
    let (message, note) = out_of_date::split(&last.message);
    Some(Verdict::new(status, reason, message).with_note(note.map(str::to_owned)))
}

/// The effect on a request of an expression that fails.
pub(super) fn when_evaluated(consequence: Consequence, effect: Effect) -> &'static str {
    match consequence {
        Consequence::Denied if effect.subject == SubjectKind::CustomResourceDefinition => {
            "an object that it is asked about is refused"
        }
        Consequence::Denied => "with failurePolicy Fail a request that reaches it is denied",
        Consequence::LetThrough if effect.subject.is_webhooks() => {
            "with failurePolicy Ignore the webhook is not called about a request that reaches it"
        }
        Consequence::LetThrough if effect.is_mutating() => {
            "with failurePolicy Ignore a request that reaches it is not changed by it"
        }
        Consequence::LetThrough => {
            "with failurePolicy Ignore a request that reaches it is not checked by it"
        }
        Consequence::NoAnnotation => {
            "with failurePolicy Ignore a request that reaches it lacks an audit annotation"
        }
        Consequence::OtherMessage => {
            "a request that is denied gets another message, and none is denied for it"
        }
        Consequence::Unread => "nothing reads it",
    }
}

/// The first of those with the worst consequence.
pub(super) fn worst<'a, T>(
    found: impl Iterator<Item = &'a T>,
    consequence: impl Fn(&T) -> Consequence,
) -> Option<&'a T> {
    // Of several that are equal the last is given.
    let found: Vec<&T> = found.collect();
    found
        .into_iter()
        .rev()
        .max_by_key(|found| consequence(found))
}

/// The condition `Compiled`.
fn compiled(observed: &Observed<'_>) -> Verdict {
    let Compiled {
        findings,
        n_expressions,
    } = match observed.compiled.done() {
        Ok(compiled) => *compiled,
        Err(unknown) => return unknown,
    };
    let of_kind = |kind: CompileFindingKind| {
        let found = || findings.iter().filter(|finding| finding.kind == kind);
        let first = worst(found(), |finding| finding.consequence)?;
        let more = match found().count() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        let message = first.cause.message();
        let headline = message.lines().next().unwrap_or_default();
        let what = format!("{}{more}: {headline}", first.field_ref);
        Some((what, when_evaluated(first.consequence, observed.effect())))
    };
    if let Some((what, consequence)) = of_kind(CompileFindingKind::Failed) {
        return Verdict::new(
            ConditionStatus::False,
            Reason::CompilationFailed,
            format!("does not compile, {consequence}: {what}"),
        );
    }
    if let Some((what, _)) = of_kind(CompileFindingKind::Unsafe) {
        return Verdict::new(
            ConditionStatus::False,
            Reason::UnsafeExpression,
            format!("accepted by the API server, which cannot evaluate it safely: {what}"),
        );
    }
    if let Some((what, _)) = of_kind(CompileFindingKind::Unsupported) {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::UnsupportedExpression,
            format!("uses what vap-status-controller cannot judge: {what}"),
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
    Verdict::new(ConditionStatus::True, Reason::AllExpressionsCompile, text)
}

/// The warnings that type checking gave.
fn found_warnings(observed: &Observed<'_>) -> Vec<ExpressionWarning> {
    match observed.types {
        Checked::Done(Types { outcome, .. }) => warnings::expression_warnings(
            &outcome.warnings,
            warnings::budget_bytes(observed.policy),
        ),
        Checked::Panicked | Checked::DeadlineExceeded(_) => Vec::new(),
    }
}

/// The warnings that stand in the status now.
fn live_warnings(live: Option<&ValidatingAdmissionPolicyStatus>) -> Vec<ExpressionWarning> {
    live.and_then(|status| status.type_checking.as_ref())
        .and_then(|type_checking| type_checking.expression_warnings.clone())
        .unwrap_or_default()
}
