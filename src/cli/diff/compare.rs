//! Finds the differences between two decisions for one request, and the parts of the policy that cause them.
//!
//! Old and new validations with equal expressions are compared, regardless of their positions. The remaining
//! validations are compared by position.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::Validation;
use serde::Serialize;

use crate::cli::audit::PolicyResult;
use crate::cli::unified;
use crate::policy::RequestPolicy;
use crate::policy::admission::code_of;

/// The maximum length of the summary of a mutation, in characters.
const MAX_CHANGE: usize = 300;

/// The prefix of the audit annotation that lists the failed validations. All other annotations come from policies.
const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/";

/// The result of a validation that is not evaluated, for example because there are no params.
const NOT_EVALUATED: &str = "not evaluated";

/// The default reason of a validation.
const DEFAULT_REASON: &str = "Invalid";

/// The cause of a difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The part of the policy that causes the difference.
    pub kind: CauseKind,
    /// The field of the old version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_field: Option<String>,
    /// The field of the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_field: Option<String>,
    /// The old result: `true`, `false`, `error`, `not evaluated`, `not matched`, `no binding`, the name of a match condition that is false, or the
    /// reason why the API server rejects the policy.
    pub old: String,
    /// The new result, in the notation of `old`.
    pub new: String,
    /// For a mutation: the unified diff between the objects that the two versions return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Cause {
    /// Creates a cause without fields.
    fn new(kind: CauseKind, old: String, new: String) -> Self {
        Self {
            kind,
            old_field: None,
            new_field: None,
            old,
            new,
            diff: None,
        }
    }

    fn with_fields(self, old_field: Option<String>, new_field: Option<String>) -> Self {
        Self {
            old_field,
            new_field,
            ..self
        }
    }
}

/// The part of a policy that causes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum CauseKind {
    /// The policy as a whole: it exists in only one version, or the API server rejects one of its versions.
    Policy,
    /// The match constraints or bindings.
    Constraints,
    /// A match condition.
    MatchCondition,
    /// A validation that both versions have, possibly with a changed expression.
    Validation,
    /// A new validation.
    ValidationAdded,
    /// A removed validation.
    ValidationRemoved,
    /// The message of a validation.
    Message,
    /// The reason of a validation, which determines the HTTP status code.
    Reason,
    /// Another failure: params, audit annotations, or the policy as a whole.
    Failure,
    /// The actions of the bindings.
    Actions,
    /// The failurePolicy.
    FailurePolicy,
    /// The change that a mutating policy makes to the object.
    Mutation,
    /// The value of an audit annotation.
    AuditAnnotation,
}

/// A part of the response or of the audit event that differs although the decision is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The message of the denial.
    Message,
    /// The reason of the denial, and with it the HTTP status code.
    Reason,
    /// The warnings for the client.
    Warning,
    /// The mutated object.
    Mutation,
    /// The annotations of the audit event.
    AuditAnnotation,
    /// An error that only the metrics of the API server count.
    Error,
}

impl Part {
    /// Returns the noun that messages use.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Reason => "reason",
            Self::Warning => "warning",
            Self::Mutation => "mutation",
            Self::AuditAnnotation => "audit annotation",
            Self::Error => "error",
        }
    }
}

/// A difference between the decisions of two versions for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) effect: Effect,
    /// The parts that differ, if the decision is the same.
    pub(super) parts: BTreeSet<Part>,
    pub(super) causes: Vec<Cause>,
}

/// The effect of a difference on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Effect {
    /// The request is denied, and was allowed before.
    Denied,
    /// The request is allowed, and was denied before.
    Allowed,
    /// The decision is the same, with other reasons or messages.
    Same,
}

/// Maps each validation of the old version to its counterpart in the new version.
#[derive(Debug, Default)]
pub(super) struct ValidationPairs {
    /// For each old validation, the index of its counterpart. `None` if the validation was removed.
    new_of: Vec<Option<usize>>,
    n_new: usize,
}

impl ValidationPairs {
    pub(super) fn new(old: Option<&RequestPolicy>, new: Option<&RequestPolicy>) -> Self {
        let (old, new) = (validations(old), validations(new));
        let mut taken = vec![false; new.len()];
        let mut new_of: Vec<Option<usize>> = vec![None; old.len()];
        let mut by_expression: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (n, validation) in new.iter().enumerate().rev() {
            by_expression
                .entry(validation.expression.trim())
                .or_default()
                .push(n);
        }
        for (new_index, validation) in new_of.iter_mut().zip(old) {
            let same = by_expression.get_mut(validation.expression.trim());
            *new_index = same.and_then(Vec::pop);
            if let Some(is_taken) = new_index.and_then(|n| taken.get_mut(n)) {
                *is_taken = true;
            }
        }
        for (n, new_index) in new_of.iter_mut().enumerate() {
            if new_index.is_none()
                && let Some(is_taken) = taken.get_mut(n)
                && !*is_taken
            {
                *is_taken = true;
                *new_index = Some(n);
            }
        }
        Self {
            new_of,
            n_new: new.len(),
        }
    }

    /// Returns the index of the counterpart of the old validation with the index `n`.
    pub(super) fn counterpart(&self, n: usize) -> Option<usize> {
        self.new_of.get(n).copied().flatten()
    }
}

fn validations(policy: Option<&RequestPolicy>) -> &[Validation] {
    policy.map_or(&[], |policy| &policy.validations)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ValidationResult {
    result: &'static str,
    messages: Vec<String>,
    /// The distinct reasons of the violations.
    reasons: BTreeSet<String>,
    /// The actions of the bindings for which the validation is false, by the name of the binding.
    actions: BTreeMap<Option<String>, BTreeSet<String>>,
}

impl ValidationResult {
    fn new(result: &'static str, messages: Vec<String>) -> Self {
        Self {
            result,
            messages,
            reasons: BTreeSet::new(),
            actions: BTreeMap::new(),
        }
    }

    /// Returns true if the validation passed or was not evaluated.
    fn is_silent(&self) -> bool {
        matches!(self.result, "true" | NOT_EVALUATED)
    }
}

/// The decision of one version of a policy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'a> {
    Absent,
    /// The API server rejects the version, for this reason.
    Rejected(&'a str),
    /// The version has no binding, although the other version has one.
    Unbound,
    NotMatched,
    Evaluated(&'a PolicyResult),
}

impl<'a> Side<'a> {
    fn result(self) -> Option<&'a PolicyResult> {
        match self {
            Self::Evaluated(result) => Some(result),
            Self::Absent | Self::Rejected(_) | Self::Unbound | Self::NotMatched => None,
        }
    }

    fn is_denied(self) -> bool {
        self.result().is_some_and(|result| result.denied)
    }

    /// Returns true if the version allows the request without violations, errors or changes.
    fn is_silent(self) -> bool {
        let is_silent = |it: &PolicyResult| {
            it.violations.is_empty() && it.errors.is_empty() && !it.denied && it.patch.is_none()
        };
        self.result().is_none_or(is_silent)
    }

    /// Returns the audit annotations of the policy by key, without the annotations for failed validations.
    fn annotations(self) -> BTreeMap<&'a str, &'a str> {
        let all = self.result().map(|result| &result.audit_annotations);
        let all = all.into_iter().flatten();
        all.filter(|(key, _)| !key.starts_with(VALIDATION_FAILURE))
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }

    fn describe(self) -> String {
        match self {
            Self::Absent => "absent".to_owned(),
            Self::Rejected(why) => format!("the API server rejects the policy: {why}"),
            Self::Unbound => "no binding".to_owned(),
            Self::NotMatched => "not matched".to_owned(),
            Self::Evaluated(result) => match &result.excluded_by {
                Some(name) => format!("excluded by `{name}`"),
                None => "matched".to_owned(),
            },
        }
    }

    /// Returns the result of the validation with the index `n`. `None` if the version was not evaluated.
    fn validation_result(self, n: usize) -> Option<ValidationResult> {
        let result = self.result()?;
        if !result.is_evaluated {
            return Some(ValidationResult::new(NOT_EVALUATED, Vec::new()));
        }
        let field = field(n);
        let violations = || result.violations.iter().filter(|it| it.field_ref == field);
        let mut messages: Vec<String> = violations().map(|it| it.message.clone()).collect();
        if !messages.is_empty() {
            messages.dedup();
            let reason = |reason: &str| match reason {
                "" => DEFAULT_REASON.to_owned(),
                reason => reason.to_owned(),
            };
            return Some(ValidationResult {
                reasons: violations().map(|it| reason(&it.reason)).collect(),
                actions: violations()
                    .map(|it| {
                        let actions = it.validation_actions.iter().cloned();
                        (it.binding.clone(), actions.collect())
                    })
                    .collect(),
                ..ValidationResult::new("false", messages)
            });
        }
        let mut errors = result.errors.iter().filter(|it| it.field_ref == field);
        Some(match errors.next() {
            Some(error) => ValidationResult::new("error", vec![error.message.clone()]),
            None => ValidationResult::new("true", messages),
        })
    }

    /// Returns the messages of the errors that do not belong to a validation, by field.
    fn other_errors(self) -> BTreeMap<&'a str, &'a str> {
        let errors = self.result().map_or(&[][..], |result| &result.errors);
        let errors = errors
            .iter()
            .filter(|it| !it.field_ref.starts_with("spec.validations["));
        errors
            .map(|it| (it.field_ref.as_str(), it.message.as_str()))
            .collect()
    }
}

fn field(n: usize) -> String {
    format!("spec.validations[{n}].expression")
}

/// Returns the difference between two decisions, or `None` if they are equal. `failure_policies` contains the
/// failurePolicy of each version.
pub(super) fn compare(
    old: Side<'_>,
    new: Side<'_>,
    pairs: &ValidationPairs,
    failure_policies: [&str; 2],
) -> Option<Difference> {
    if old.is_silent() && new.is_silent() && old.annotations() == new.annotations() {
        return None;
    }
    let effect = match (old.is_denied(), new.is_denied()) {
        (false, true) => Effect::Denied,
        (true, false) => Effect::Allowed,
        _ => Effect::Same,
    };
    let mut causes = causes(old, new, pairs);
    if causes.is_empty() {
        if effect == Effect::Same {
            return None;
        }
        let [was, is] = failure_policies;
        causes.push(if was == is {
            let denies = |side: Side<'_>| {
                let verb = if side.is_denied() {
                    "denies"
                } else {
                    "does not deny"
                };
                verb.to_owned()
            };
            Cause::new(CauseKind::Actions, denies(old), denies(new))
        } else {
            Cause::new(CauseKind::FailurePolicy, was.to_owned(), is.to_owned())
        });
    }
    let parts = match effect {
        Effect::Same => parts(old, new, &causes),
        Effect::Denied | Effect::Allowed => BTreeSet::new(),
    };
    Some(Difference {
        effect,
        parts,
        causes,
    })
}

/// Returns the parts of the response and of the audit event that differ.
fn parts(old: Side<'_>, new: Side<'_>, causes: &[Cause]) -> BTreeSet<Part> {
    let denial = |side: Side<'_>| side.result().and_then(|it| it.denial.clone());
    let [was, is] = [denial(old), denial(new)];
    let message = [&was, &is].map(|it| it.as_ref().map(|it| &it.message));
    let reason = [&was, &is].map(|it| it.as_ref().map(|it| &it.reason));
    let warnings = [old, new].map(|it| it.result().map_or(&[][..], |it| &it.warnings));
    let changes = [old, new].map(|it| it.result().and_then(|it| it.change.as_ref()));
    let visible = [
        (Part::Message, message[0] != message[1]),
        (Part::Reason, reason[0] != reason[1]),
        (Part::Warning, warnings[0] != warnings[1]),
        (Part::Mutation, changes[0] != changes[1]),
        (
            Part::AuditAnnotation,
            old.annotations() != new.annotations(),
        ),
    ];
    let visible = visible.into_iter().filter(|(_, differs)| *differs);
    let mut parts: BTreeSet<Part> = visible.map(|(part, _)| part).collect();
    // The audit annotation that lists the failed validations repeats their messages. It is compared only if no other
    // part differs.
    let failures = [old, new].map(|it| it.result().map(|it| &it.audit_annotations));
    if parts.is_empty() && failures[0] != failures[1] {
        parts.insert(Part::AuditAnnotation);
    }
    if parts.is_empty() {
        parts.extend(causes.iter().filter_map(|cause| match cause.kind {
            CauseKind::Message => Some(Part::Message),
            CauseKind::Reason => Some(Part::Reason),
            CauseKind::Failure => Some(Part::Error),
            _ => None,
        }));
    }
    parts
}

/// Returns the difference between the mutations of two versions. `None` if both versions make the same change to the
/// object.
fn mutation<'a>(old: Side<'a>, new: Side<'a>) -> Option<Cause> {
    let change = |side: Side<'a>| side.result().and_then(|it| it.change.as_deref());
    let (was, is) = (change(old), change(new));
    if was == is {
        return None;
    }
    let objects = |side: Side<'a>| side.result().and_then(|it| it.mutation.as_ref());
    let (of_old, of_new) = (objects(old), objects(new));
    // Both versions receive the same object. A version without a mutation returns this object.
    let before = of_old.or(of_new).map(|[before, _]| before);
    let after = |objects: Option<&'a [_; 2]>| objects.map(|[_, after]| after).or(before);
    let diff = after(of_old).zip(after(of_new));
    let diff = diff.map(|(old, new)| unified::from_objects(("old", "new"), old, new));
    Some(Cause {
        diff: diff.filter(|diff| !diff.is_empty()),
        ..Cause::new(
            CauseKind::Mutation,
            mutation_summary(was),
            mutation_summary(is),
        )
    })
}

/// Returns the differences between the audit annotations of two versions.
fn annotations(old: Side<'_>, new: Side<'_>) -> Vec<Cause> {
    let (old, new) = (old.annotations(), new.annotations());
    let keys: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let differing = keys.into_iter().filter(|key| old.get(key) != new.get(key));
    let value = |annotations: &BTreeMap<&str, &str>, key: &str| {
        annotations.get(key).copied().unwrap_or("none").to_owned()
    };
    let causes = differing.map(|key| {
        let name = key.rsplit('/').next().unwrap_or(key);
        let field = |annotations: &BTreeMap<&str, &str>| {
            let has_key = annotations.contains_key(key);
            has_key.then(|| format!("spec.auditAnnotations[{name}]"))
        };
        Cause::new(
            CauseKind::AuditAnnotation,
            value(&old, key),
            value(&new, key),
        )
        .with_fields(field(&old), field(&new))
    });
    causes.collect()
}

/// Returns the changed lines of an object as one line.
pub(in crate::cli) fn mutation_summary(change: Option<&str>) -> String {
    let Some(change) = change else {
        return "unchanged".to_owned();
    };
    let lines = change
        .lines()
        .skip(2)
        .filter(|line| !line.starts_with([' ', '@']));
    let lines: Vec<String> = lines
        .map(|line| {
            let (sign, rest) = line.split_at_checked(1).unwrap_or((line, ""));
            format!("{sign}{}", rest.trim())
        })
        .collect();
    let text = lines.join(", ");
    if text.chars().count() <= MAX_CHANGE {
        return text;
    }
    let short: String = text.chars().take(MAX_CHANGE).collect();
    format!("{short}…")
}

fn causes(old: Side<'_>, new: Side<'_>, pairs: &ValidationPairs) -> Vec<Cause> {
    let whole = |kind| vec![Cause::new(kind, old.describe(), new.describe())];
    let excluded = |side: Side<'_>| side.result().and_then(|it| it.excluded_by.clone());
    match (old, new) {
        (Side::Absent | Side::Rejected(_), _) | (_, Side::Absent | Side::Rejected(_)) => {
            return whole(CauseKind::Policy);
        }
        (Side::Unbound | Side::NotMatched, _) | (_, Side::Unbound | Side::NotMatched) => {
            return whole(CauseKind::Constraints);
        }
        (Side::Evaluated(_), Side::Evaluated(_)) if excluded(old) != excluded(new) => {
            return whole(CauseKind::MatchCondition);
        }
        (Side::Evaluated(_), Side::Evaluated(_)) => {}
    }
    let mut causes = Vec::new();
    let mut taken = vec![false; pairs.n_new];
    for (n, new_index) in pairs.new_of.iter().enumerate() {
        let Some(before) = old.validation_result(n) else {
            continue;
        };
        let Some(m) = *new_index else {
            if !before.is_silent() {
                let (kind, absent) = (CauseKind::ValidationRemoved, "absent".to_owned());
                let cause = Cause::new(kind, before.result.to_owned(), absent);
                causes.push(cause.with_fields(Some(field(n)), None));
            }
            continue;
        };
        if let Some(is_taken) = taken.get_mut(m) {
            *is_taken = true;
        }
        let Some(now) = new.validation_result(m) else {
            continue;
        };
        let both_denied = old.is_denied() && new.is_denied();
        for cause in validation_causes(&before, &now, both_denied) {
            // Actions belong to bindings, so several validations can have the same change of actions. It is listed
            // once.
            if cause.kind != CauseKind::Actions {
                causes.push(cause.with_fields(Some(field(n)), Some(field(m))));
            } else if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
    }
    for (m, _) in taken.iter().enumerate().filter(|(_, is_taken)| !**is_taken) {
        if let Some(now) = new.validation_result(m)
            && !now.is_silent()
        {
            let (kind, absent) = (CauseKind::ValidationAdded, "absent".to_owned());
            let cause = Cause::new(kind, absent, now.result.to_owned());
            causes.push(cause.with_fields(None, Some(field(m))));
        }
    }
    causes.extend(mutation(old, new));
    causes.extend(annotations(old, new));
    causes.extend(failures(old, new));
    causes
}

/// Returns the differences between the results of a validation in two versions.
fn validation_causes(
    before: &ValidationResult,
    now: &ValidationResult,
    both_denied: bool,
) -> Vec<Cause> {
    if before.is_silent() && now.is_silent() {
        return Vec::new();
    }
    if before.result != now.result {
        let results = [before, now].map(|it| it.result.to_owned());
        let [was, is] = results;
        return vec![Cause::new(CauseKind::Validation, was, is)];
    }
    let mut causes = Vec::new();
    if before.messages != now.messages {
        let [was, is] = [before, now].map(|it| it.messages.join("; "));
        causes.push(Cause::new(CauseKind::Message, was, is));
    }
    // Only a denial contains the reason, so a changed reason has no effect on other requests.
    if before.reasons != now.reasons && both_denied {
        let [was, is] = [before, now].map(|it| {
            let reasons = it.reasons.iter();
            let reasons = reasons.map(|reason| format!("{reason} ({})", code_of(reason)));
            reasons.collect::<Vec<_>>().join(", ")
        });
        causes.push(Cause::new(CauseKind::Reason, was, is));
    }
    // Actions are compared only for a binding with violations in both versions. With violations in only one version,
    // the actions are not the cause.
    for (binding, actions) in &before.actions {
        if let Some(now) = now.actions.get(binding)
            && actions != now
        {
            let [was, is] = [actions, now].map(|actions| {
                let actions: Vec<&str> = actions.iter().map(String::as_str).collect();
                actions.join(", ")
            });
            causes.push(Cause::new(CauseKind::Actions, was, is));
        }
    }
    causes
}

/// Returns the differences between the errors that do not belong to a validation.
fn failures(old: Side<'_>, new: Side<'_>) -> Vec<Cause> {
    let (before, now) = (old.other_errors(), new.other_errors());
    let fields: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
    let differing = fields
        .into_iter()
        .filter(|it| before.get(it) != now.get(it));
    let causes = differing.map(|name| {
        let message =
            |errors: &BTreeMap<&str, &str>| errors.get(name).copied().unwrap_or("none").to_owned();
        let field =
            |errors: &BTreeMap<&str, &str>| errors.contains_key(name).then(|| name.to_owned());
        Cause::new(CauseKind::Failure, message(&before), message(&now))
            .with_fields(field(&before), field(&now))
    });
    causes.collect()
}
