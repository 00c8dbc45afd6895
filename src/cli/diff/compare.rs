//! Two decisions about one request beside each other: what differs, and because of which part of the policy.
//!
//! Validations are the same where their expressions are, wherever they stand; of those that are left, where they stand
//! at the same place.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};
use serde::Serialize;

use crate::cli::audit::PolicyResult;

/// The longest text about the change of an object, in characters.
const MAX_CHANGE: usize = 300;

/// Where a difference comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// Part of the policy.
    pub kind: CauseKind,
    /// The field of the old policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_field: Option<String>,
    /// The field of the new policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_field: Option<String>,
    /// Former result: `true`, `false`, `error`, `not asked`, the name of a match condition that is false, or why the API
    /// server refuses the policy.
    pub old: String,
    /// Present result.
    pub new: String,
}

/// Parts of a policy that differences come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum CauseKind {
    /// The policy is there in one version alone, or the API server refuses one of them.
    Policy,
    /// The match constraints or bindings.
    Constraints,
    /// A match condition.
    MatchCondition,
    /// A validation that both have, or whose expression was changed.
    Validation,
    /// A validation that is new.
    ValidationAdded,
    /// A validation that is gone.
    ValidationRemoved,
    /// The message of a validation.
    Message,
    /// Anything else that fails: params, audit annotations, the policy as a whole.
    Failure,
    /// The actions of the bindings, or failurePolicy.
    Actions,
    /// The change of the object by a mutating policy.
    Mutation,
}

/// The effect of a difference on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Effect {
    /// It is denied, and was not.
    Denied,
    /// It is allowed, and was not.
    Allowed,
    /// The decision is the same, for other reasons or with other words.
    Same,
}

/// Which validation of the new policy each of the old one has become.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// For each of the old ones, the new one.
    new_of: Vec<Option<usize>>,
    n_new: usize,
}

impl Pairs {
    pub(super) fn new(
        old: Option<&ValidatingAdmissionPolicy>,
        new: Option<&ValidatingAdmissionPolicy>,
    ) -> Self {
        let (old, new) = (validations(old), validations(new));
        let mut taken = vec![false; new.len()];
        let mut new_of: Vec<Option<usize>> = vec![None; old.len()];
        let mut by_text: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (n, validation) in new.iter().enumerate().rev() {
            by_text
                .entry(validation.expression.trim())
                .or_default()
                .push(n);
        }
        for (of_old, validation) in new_of.iter_mut().zip(old) {
            let same = by_text.get_mut(validation.expression.trim());
            *of_old = same.and_then(Vec::pop);
            if let Some(is_taken) = of_old.and_then(|n| taken.get_mut(n)) {
                *is_taken = true;
            }
        }
        for (n, of_old) in new_of.iter_mut().enumerate() {
            if of_old.is_none()
                && let Some(is_taken) = taken.get_mut(n)
                && !*is_taken
            {
                *is_taken = true;
                *of_old = Some(n);
            }
        }
        Self {
            new_of,
            n_new: new.len(),
        }
    }
}

fn validations(policy: Option<&ValidatingAdmissionPolicy>) -> &[Validation] {
    let spec = policy.and_then(|policy| policy.spec.as_ref());
    spec.and_then(|spec| spec.validations.as_deref())
        .unwrap_or_default()
}

/// Result of a validation, with its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Came {
    to: &'static str,
    messages: Vec<String>,
}

/// Decision of a policy in one of its versions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'a> {
    /// It is not there.
    Absent,
    /// The API server refuses it, for this reason.
    Refused(&'a str),
    /// It is not asked.
    NotAsked,
    /// It decided this.
    Asked(&'a PolicyResult),
}

impl<'a> Side<'a> {
    fn result(self) -> Option<&'a PolicyResult> {
        match self {
            Self::Asked(result) => Some(result),
            Self::Absent | Self::Refused(_) | Self::NotAsked => None,
        }
    }

    fn is_denied(self) -> bool {
        self.result().is_some_and(|result| result.denied)
    }

    /// Reports whether nothing is said of the request.
    fn is_silent(self) -> bool {
        let is_silent = |it: &PolicyResult| {
            it.violations.is_empty() && it.errors.is_empty() && !it.denied && it.patch.is_none()
        };
        self.result().is_none_or(is_silent)
    }

    fn words(self) -> String {
        match self {
            Self::Absent => "absent".to_owned(),
            Self::Refused(why) => format!("the API server refuses it: {why}"),
            Self::NotAsked => "not asked".to_owned(),
            Self::Asked(result) => match &result.excluded_by {
                Some(name) => format!("left out by `{name}`"),
                None => "asked".to_owned(),
            },
        }
    }

    /// Result of the validation at `n`.
    fn came_to(self, n: usize) -> Option<Came> {
        let result = self.result()?;
        let field = field(n);
        let violations = result.violations.iter().filter(|it| it.field_ref == field);
        let mut messages: Vec<String> = violations.map(|it| it.message.clone()).collect();
        if !messages.is_empty() {
            messages.dedup();
            return Some(Came {
                to: "false",
                messages,
            });
        }
        let mut errors = result.errors.iter().filter(|it| it.field_ref == field);
        Some(match errors.next() {
            Some(error) => Came {
                to: "error",
                messages: vec![error.message.clone()],
            },
            None => Came {
                to: "true",
                messages,
            },
        })
    }

    /// The failures that are of no validation.
    fn others(self) -> BTreeMap<&'a str, &'a str> {
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

/// How two decisions differ, and why; nothing where they do not.
pub(super) fn compare(old: Side<'_>, new: Side<'_>, pairs: &Pairs) -> Option<(Effect, Vec<Cause>)> {
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

/// The difference of what two versions of a mutating policy change.
fn mutation(old: Side<'_>, new: Side<'_>) -> Option<Cause> {
    let change = |side: Side<'_>| side.result().and_then(|it| it.change.clone());
    let (old, new) = (change(old), change(new));
    (old != new).then(|| Cause {
        kind: CauseKind::Mutation,
        old_field: None,
        new_field: None,
        old: mutation_words(old),
        new: mutation_words(new),
    })
}

/// The change of an object in one line: the lines that are other.
fn mutation_words(change: Option<String>) -> String {
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

fn causes(old: Side<'_>, new: Side<'_>, pairs: &Pairs) -> Vec<Cause> {
    let whole = |kind| {
        vec![Cause {
            kind,
            old_field: None,
            new_field: None,
            old: old.words(),
            new: new.words(),
        }]
    };
    let excluded = |side: Side<'_>| side.result().and_then(|it| it.excluded_by.clone());
    match (old, new) {
        (Side::Absent | Side::Refused(_), _) | (_, Side::Absent | Side::Refused(_)) => {
            return whole(CauseKind::Policy);
        }
        (Side::NotAsked, _) | (_, Side::NotAsked) => return whole(CauseKind::Constraints),
        (Side::Asked(_), Side::Asked(_)) if excluded(old) != excluded(new) => {
            return whole(CauseKind::MatchCondition);
        }
        (Side::Asked(_), Side::Asked(_)) => {}
    }
    let mut found = Vec::new();
    let mut taken = vec![false; pairs.n_new];
    for (n, of_new) in pairs.new_of.iter().enumerate() {
        let Some(before) = old.came_to(n) else {
            continue;
        };
        let Some(m) = *of_new else {
            if before.to != "true" {
                found.push(Cause {
                    kind: CauseKind::ValidationRemoved,
                    old_field: Some(field(n)),
                    new_field: None,
                    old: before.to.to_owned(),
                    new: "absent".to_owned(),
                });
            }
            continue;
        };
        if let Some(is_taken) = taken.get_mut(m) {
            *is_taken = true;
        }
        let Some(now) = new.came_to(m) else { continue };
        let (kind, was, is) = if before.to != now.to {
            (
                CauseKind::Validation,
                before.to.to_owned(),
                now.to.to_owned(),
            )
        } else if before.messages != now.messages {
            let all = |came: &Came| came.messages.join("; ");
            (CauseKind::Message, all(&before), all(&now))
        } else {
            continue;
        };
        found.push(Cause {
            kind,
            old_field: Some(field(n)),
            new_field: Some(field(m)),
            old: was,
            new: is,
        });
    }
    for (m, _) in taken.iter().enumerate().filter(|(_, is_taken)| !**is_taken) {
        if let Some(now) = new.came_to(m)
            && now.to != "true"
        {
            found.push(Cause {
                kind: CauseKind::ValidationAdded,
                old_field: None,
                new_field: Some(field(m)),
                old: "absent".to_owned(),
                new: now.to.to_owned(),
            });
        }
    }
    found.extend(mutation(old, new));
    let (before, now) = (old.others(), new.others());
    for name in before
        .keys()
        .chain(now.keys().filter(|name| !before.contains_key(*name)))
    {
        let came = |of: &BTreeMap<&str, &str>| of.get(name).copied().unwrap_or("none").to_owned();
        if before.get(name) != now.get(name) {
            found.push(Cause {
                kind: CauseKind::Failure,
                old_field: before.contains_key(name).then(|| (*name).to_owned()),
                new_field: now.contains_key(name).then(|| (*name).to_owned()),
                old: came(&before),
                new: came(&now),
            });
        }
    }
    found
}
