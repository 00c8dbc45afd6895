//! The effects of an upgrade on a request: the differences between the results of a policy under two versions.

use std::collections::{BTreeMap, BTreeSet};

use super::report::Class;
use crate::cli::audit::PolicyResult;
use crate::cli::check::render::count;
use crate::cli::diff::mutation_summary;

/// The field to which the errors of match conditions belong.
const MATCH_CONDITIONS: &str = "spec.matchConditions";

/// The result of a field for a request, such as the result of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FieldResult {
    /// The validation is true, or the field has no error.
    Good,
    /// The validation is false.
    False,
    /// The evaluation failed.
    Error,
    /// The policy does not match the request, or a match condition excludes it.
    NotMatched,
    /// A mutated object, or the audit annotations.
    Other,
}

/// A difference between the results for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) class: Class,
    /// The field, such as `spec.validations[0].expression`. `None` for the policy as a whole.
    pub(super) field: Option<String>,
    /// The results of the old and the new version.
    pub(super) results: [FieldResult; 2],
    /// The messages of the old and the new result; empty for a result without a message.
    pub(super) messages: [String; 2],
}

impl Effect {
    /// Returns the part of the effect that is the same for all requests with the same cause.
    pub(super) fn key(&self) -> (Class, Option<&str>, [FieldResult; 2]) {
        (self.class, self.field.as_deref(), self.results)
    }
}

/// Returns the differences between the results of the old and the new version. A result is `None` if the policy does not
/// match the request.
pub(super) fn effects(results: [Option<&PolicyResult>; 2]) -> Vec<Effect> {
    let denied = results.map(|result| result.is_some_and(|it| it.denied));
    let decision = match denied {
        [false, true] => Some(Class::Denies),
        [true, false] => Some(Class::Admits),
        _ => None,
    };
    let [mut old, mut new] = results.map(fields);
    let fails_to_match = |fields: &BTreeMap<String, (FieldResult, String)>| {
        let conditions = fields.get(MATCH_CONDITIONS);
        conditions.is_some_and(|(result, _)| *result == FieldResult::Error)
    };
    if fails_to_match(&old) != fails_to_match(&new) {
        // After an error of a match condition, a version evaluates no other field, so the other fields cannot be
        // compared.
        for side in [&mut old, &mut new] {
            side.retain(|name, _| name == MATCH_CONDITIONS);
        }
    }
    let mut effects = Vec::new();
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let sides = [old.get(name), new.get(name)];
        let mut side_results = sides.map(|side| side.map_or(FieldResult::Good, |(it, _)| *it));
        for (side_result, result) in side_results.iter_mut().zip(results) {
            let is_matched = result.is_some_and(|result| result.excluded_by.is_none());
            if !is_matched {
                *side_result = FieldResult::NotMatched;
            }
        }
        let messages = sides.map(|side| side.map(|(_, text)| text.clone()).unwrap_or_default());
        let class = if side_results[0] != side_results[1] {
            let is_error = side_results.contains(&FieldResult::Error);
            decision.unwrap_or(if is_error {
                Class::Errors
            } else {
                Class::Audit
            })
        } else if messages[0] != messages[1] {
            Class::Text
        } else {
            continue;
        };
        effects.push(Effect {
            class,
            field: Some(name.clone()).filter(|name| name != "spec"),
            results: side_results,
            messages,
        });
    }
    let is_explained = |class: Class| effects.iter().any(|it: &Effect| it.class == class);
    if let Some(class) = decision.filter(|class| !is_explained(*class)) {
        effects.push(Effect {
            class,
            field: None,
            results: denied.map(|denied| {
                if denied {
                    FieldResult::False
                } else {
                    FieldResult::Good
                }
            }),
            messages: Default::default(),
        });
    }
    let other = |class, field: Option<&str>, messages: [String; 2]| Effect {
        class,
        field: field.map(str::to_owned),
        results: [FieldResult::Other; 2],
        messages,
    };
    let changes = results.map(|it| it.and_then(|it| it.change.as_deref()));
    if changes[0] != changes[1] && decision.is_none() {
        let messages = changes.map(mutation_summary);
        effects.push(other(Class::Mutates, Some("spec.mutations"), messages));
    }
    let is_text_only = effects.iter().all(|it| it.class == Class::Text);
    if is_text_only {
        let [old, new] = results.map(annotations);
        let messages = [differing(&old, &new), differing(&new, &old)];
        if messages[0] != messages[1] {
            effects.push(other(Class::Audit, None, messages));
        }
    }
    effects
}

/// Returns the violations and errors by field, each with its first message.
fn fields(result: Option<&PolicyResult>) -> BTreeMap<String, (FieldResult, String)> {
    let mut fields = BTreeMap::new();
    let Some(result) = result else {
        return fields;
    };
    for violation in &result.violations {
        let entry = fields.entry(violation.field_ref.clone());
        entry.or_insert_with(|| (FieldResult::False, violation.message.clone()));
    }
    for error in &result.errors {
        let entry = fields.entry(error.field_ref.clone());
        entry.or_insert_with(|| (FieldResult::Error, error.message.clone()));
    }
    fields
}

/// Returns the audit annotations without the domains of their keys. A value that is a list of failures is replaced with
/// the number of failures.
fn annotations(result: Option<&PolicyResult>) -> BTreeMap<&str, String> {
    let annotations = result.into_iter().flat_map(|it| &it.audit_annotations);
    let short = annotations.map(|(key, value)| {
        let name = key.rsplit('/').next().unwrap_or(key);
        let failures: Option<Vec<serde_json::Value>> = serde_json::from_str(value).ok();
        let value = failures.map_or_else(|| value.clone(), |it| count(it.len(), "failure"));
        (name, value)
    });
    short.collect()
}

/// Returns the audit annotations that are absent from `others` or have another value in `others`.
fn differing(annotations: &BTreeMap<&str, String>, others: &BTreeMap<&str, String>) -> String {
    let differing = annotations.iter();
    let differing = differing.filter(|(key, value)| others.get(*key) != Some(value));
    let differing: Vec<String> = differing
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    differing.join(", ")
}
