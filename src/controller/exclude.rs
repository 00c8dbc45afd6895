//! Policies that are none of our business: those of the platform's vendor, by name or label.
//!
//! They are neither judged nor written, and no series is exported about them. A policy that becomes one, or
//! that an earlier run has judged, loses what we wrote once: a status that nobody keeps current must not
//! stand.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};

use super::FIELD_MANAGER;
use super::apply::Written;
use super::clear;
use super::context::Context;
use super::origin::Origin;
use super::reconcile::{Done, Failure};
use crate::policy::admission::Selector;
use crate::telemetry::metrics::Outcome;

/// Which policies are left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusion {
    names: Vec<NamePattern>,
    selector: Option<Selector>,
}

/// A name in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(String);

/// A label selector as kubectl writes it; an empty one selects nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPattern(Option<Selector>);

/// A policy that is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excluded {
    /// Whether its status has something of ours.
    pub(crate) has_ours: bool,
}

impl FromStr for NamePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '*');
        if text.chars().all(is_valid) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "`{text}` is no name of a policy, nor one in which `*` stands for any text"
            ))
        }
    }
}

impl NamePattern {
    fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
            return false;
        };
        let parts: Vec<&str> = parts.collect();
        let Some((last, between)) = parts.split_last() else {
            return rest.is_empty();
        };
        let mut rest = rest;
        for part in between {
            let Some((_, after)) = rest.split_once(part) else {
                return false;
            };
            rest = after;
        }
        rest.ends_with(last)
    }
}

impl FromStr for LabelPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self(None));
        }
        let requirements = requirements(text).map(requirement);
        let selector = LabelSelector {
            match_expressions: Some(requirements.collect::<Result<_, _>>()?),
            match_labels: None,
        };
        let selector = Selector::new(&selector)
            .map_err(|error| format!("`{text}` is no label selector: {error}"))?;
        Ok(Self(Some(selector)))
    }
}

/// The requirements of a selector: what commas part outside of parentheses.
fn requirements(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.split(move |c: char| {
        match c {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ => {}
        }
        c == ',' && !is_inside
    })
}

/// Reads one requirement.
///
/// Source: apimachinery `pkg/labels/selector.go`, `Parse` (the grammar; `<` and `>` are not for labels of
/// objects).
fn requirement(text: &str) -> Result<LabelSelectorRequirement, String> {
    let text = text.trim();
    let made = |key: &str, operator: &str, values: Option<Vec<&str>>| {
        let values = values.map(|values| values.iter().map(|it| it.trim().to_owned()).collect());
        Ok(LabelSelectorRequirement {
            key: key.trim().to_owned(),
            operator: operator.to_owned(),
            values,
        })
    };
    if let Some(key) = text.strip_prefix('!') {
        return made(key, "DoesNotExist", None);
    }
    if let Some((key, value)) = text.split_once("!=") {
        return made(key, "NotIn", Some(vec![value]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return made(key, "In", Some(vec![value]));
    }
    if let Some((left, values)) = text.split_once('(') {
        let values = values.strip_suffix(')').map(|values| values.split(','));
        let mut words = left.split_whitespace();
        if let (Some(values), Some(key), Some(operator), None) =
            (values, words.next(), words.next(), words.next())
        {
            match operator {
                "in" => return made(key, "In", Some(values.collect())),
                "notin" => return made(key, "NotIn", Some(values.collect())),
                _ => {}
            }
        }
    } else if !text.is_empty() && !text.contains(char::is_whitespace) {
        return made(text, "Exists", None);
    }
    Err(format!(
        "`{text}` is no requirement of a label selector, such as `vendor=example`, `vendor in (a,b)`, \
         `vendor` or `!vendor`"
    ))
}

impl Exclusion {
    /// What these options leave alone.
    #[must_use]
    pub fn new(names: &[NamePattern], selector: Option<&LabelPattern>) -> Self {
        // An environment variable that is empty gives one empty name.
        let names = names.iter().filter(|name| !name.0.is_empty());
        Self {
            names: names.cloned().collect(),
            selector: selector.and_then(|pattern| pattern.0.clone()),
        }
    }

    /// Whether the policy is left alone; it must have its labels and its managed fields still.
    pub(crate) fn excluded(&self, policy: &ValidatingAdmissionPolicy) -> Option<Excluded> {
        let metadata = &policy.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let none = std::collections::BTreeMap::new();
        let labels = metadata.labels.as_ref().unwrap_or(&none);
        let is_excluded = self.names.iter().any(|pattern| pattern.matches(name))
            || (self.selector.as_ref()).is_some_and(|selector| selector.matches(labels));
        is_excluded.then(|| Excluded {
            has_ours: has_ours(metadata),
        })
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the status has fields that we applied.
pub(super) fn has_ours(metadata: &ObjectMeta) -> bool {
    metadata.managed_fields.iter().flatten().any(|entry| {
        entry.manager.as_deref() == Some(FIELD_MANAGER)
            && entry.subresource.as_deref() == Some("status")
    })
}

/// Leaves a policy alone: it has no series and nothing of ours in its status; its probes wait.
///
/// # Errors
/// Where the API server does not take what has to be written.
pub(crate) async fn leave(
    context: &Arc<Context>,
    policy: &ValidatingAdmissionPolicy,
    excluded: Excluded,
) -> Result<Done, Failure> {
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    context.metrics.remove_policy(name);
    context.admissions.forget(name);
    // Its probes are told so.
    context.prober.add(name);
    let outcome = if !excluded.has_ours {
        Outcome::Unchanged
    } else if let Some(deadline) = context.leadership.may_write() {
        let policies = context.policies();
        let cleared = deadline.within(clear::clear(&policies, &policy.metadata, true));
        match cleared.await? {
            Written::Applied(written) => {
                context.metrics.status_written();
                tracing::info!(policy = name, "cleared the status of an excluded policy");
                context.store.put(*written, Origin::Answered);
                Outcome::Applied
            }
            Written::Conflict => Outcome::Conflict,
            Written::Gone => Outcome::Deleted,
        }
    } else {
        Outcome::Observed
    };
    Ok(Done {
        outcome,
        is_waiting: outcome == Outcome::Conflict,
    })
}

#[cfg(test)]
mod tests;
