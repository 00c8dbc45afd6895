//! Compares two decisions for one request: the differences, and the parts of the policy that cause them.
//!
//! Old and new validations with equal expressions are compared, regardless of their positions. The remaining
//! validations are compared by position.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::Validation;
use serde::Serialize;

use crate::cli::audit::PolicyResult;
use crate::policy::RequestPolicy;

/// The maximum length of the summary of a mutation, in characters.
const MAX_CHANGE: usize = 300;

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
    /// The old result: `true`, `false`, `error`, `not matched`, the name of a match condition that is false, or the
    /// reason why the API server rejects the policy.
    pub old: String,
    /// The new result, in the same notation.
    pub new: String,
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
    /// Another failure: params, audit annotations, or the policy as a whole.
    Failure,
    /// The actions of the bindings, or failurePolicy.
    Actions,
    /// The change that a mutating policy makes to the object.
    Mutation,
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
}

fn validations(policy: Option<&RequestPolicy>) -> &[Validation] {
    policy.map_or(&[], |policy| &policy.validations)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ValidationResult {
    result: &'static str,
    messages: Vec<String>,
}

/// The decision of one version of a policy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'a> {
    Absent,
    /// The API server rejects the version, for this reason.
    Rejected(&'a str),
    NotMatched,
    Evaluated(&'a PolicyResult),
}

impl<'a> Side<'a> {
    fn result(self) -> Option<&'a PolicyResult> {
        match self {
            Self::Evaluated(result) => Some(result),
            Self::Absent | Self::Rejected(_) | Self::NotMatched => None,
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

    fn describe(self) -> String {
        match self {
            Self::Absent => "absent".to_owned(),
            Self::Rejected(why) => format!("the API server rejects the policy: {why}"),
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
        let field = field(n);
        let violations = result.violations.iter().filter(|it| it.field_ref == field);
        let mut messages: Vec<String> = violations.map(|it| it.message.clone()).collect();
        if !messages.is_empty() {
            messages.dedup();
            return Some(ValidationResult {
                result: "false",
                messages,
            });
        }
        let mut errors = result.errors.iter().filter(|it| it.field_ref == field);
        Some(match errors.next() {
            Some(error) => ValidationResult {
                result: "error",
                messages: vec![error.message.clone()],
            },
            None => ValidationResult {
                result: "true",
                messages,
            },
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

/// Returns the effect and the causes of a difference, or `None` if the decisions are equal.
pub(super) fn compare(
    old: Side<'_>,
    new: Side<'_>,
    pairs: &ValidationPairs,
) -> Option<(Effect, Vec<Cause>)> {
    if old.is_silent() && new.is_silent() {
        return None;
    }
    let effect = match (old.is_denied(), new.is_denied()) {
        (false, true) => Effect::Denied,
        (true, false) => Effect::Allowed,
        _ => Effect::Same,
    };
    let causes = causes(old, new, pairs);
    if !causes.is_empty() {
        return Some((effect, causes));
    }
    (effect != Effect::Same).then(|| {
        let cause = Cause {
            kind: CauseKind::Actions,
            old_field: None,
            new_field: None,
            old: if old.is_denied() {
                "denies"
            } else {
                "does not deny"
            }
            .to_owned(),
            new: if new.is_denied() {
                "denies"
            } else {
                "does not deny"
            }
            .to_owned(),
        };
        (effect, vec![cause])
    })
}

/// Returns the difference between the mutations of two versions. `None` if both change the object in the same way.
fn mutation<'a>(old: Side<'a>, new: Side<'a>) -> Option<Cause> {
    let change = |side: Side<'a>| side.result().and_then(|it| it.change.as_deref());
    let (old, new) = (change(old), change(new));
    (old != new).then(|| Cause {
        kind: CauseKind::Mutation,
        old_field: None,
        new_field: None,
        old: mutation_summary(old),
        new: mutation_summary(new),
    })
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
    let whole = |kind| {
        vec![Cause {
            kind,
            old_field: None,
            new_field: None,
            old: old.describe(),
            new: new.describe(),
        }]
    };
    let excluded = |side: Side<'_>| side.result().and_then(|it| it.excluded_by.clone());
    match (old, new) {
        (Side::Absent | Side::Rejected(_), _) | (_, Side::Absent | Side::Rejected(_)) => {
            return whole(CauseKind::Policy);
        }
        (Side::NotMatched, _) | (_, Side::NotMatched) => return whole(CauseKind::Constraints),
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
            if before.result != "true" {
                causes.push(Cause {
                    kind: CauseKind::ValidationRemoved,
                    old_field: Some(field(n)),
                    new_field: None,
                    old: before.result.to_owned(),
                    new: "absent".to_owned(),
                });
            }
            continue;
        };
        if let Some(is_taken) = taken.get_mut(m) {
            *is_taken = true;
        }
        let Some(now) = new.validation_result(m) else {
            continue;
        };
        let (kind, was, is) = if before.result != now.result {
            (
                CauseKind::Validation,
                before.result.to_owned(),
                now.result.to_owned(),
            )
        } else if before.messages != now.messages {
            let all = |result: &ValidationResult| result.messages.join("; ");
            (CauseKind::Message, all(&before), all(&now))
        } else {
            continue;
        };
        causes.push(Cause {
            kind,
            old_field: Some(field(n)),
            new_field: Some(field(m)),
            old: was,
            new: is,
        });
    }
    for (m, _) in taken.iter().enumerate().filter(|(_, is_taken)| !**is_taken) {
        if let Some(now) = new.validation_result(m)
            && now.result != "true"
        {
            causes.push(Cause {
                kind: CauseKind::ValidationAdded,
                old_field: None,
                new_field: Some(field(m)),
                old: "absent".to_owned(),
                new: now.result.to_owned(),
            });
        }
    }
    causes.extend(mutation(old, new));
    let (before, now) = (old.other_errors(), new.other_errors());
    for name in before
        .keys()
        .chain(now.keys().filter(|name| !before.contains_key(*name)))
    {
        let message =
            |errors: &BTreeMap<&str, &str>| errors.get(name).copied().unwrap_or("none").to_owned();
        if before.get(name) != now.get(name) {
            causes.push(Cause {
                kind: CauseKind::Failure,
                old_field: before.contains_key(name).then(|| (*name).to_owned()),
                new_field: now.contains_key(name).then(|| (*name).to_owned()),
                old: message(&before),
                new: message(&now),
            });
        }
    }
    causes
}
