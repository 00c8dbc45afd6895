//! Policies that are excluded by name or label, such as policies of the platform vendor.
//!
//! The controller reads the exclusion from its command-line options, and copies it to annotations of its Lease. The
//! plugin reads the annotations to distinguish an excluded policy from a policy that has no status yet.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};

use crate::policy::admission::Selector;

/// The Lease annotation with the comma-separated name patterns.
pub const NAMES_ANNOTATION: &str = "vap-status.dev/exclude-names";

/// The Lease annotation with the label selector.
pub const SELECTOR_ANNOTATION: &str = "vap-status.dev/exclude-selector";

/// The patterns of excluded policies. A policy is excluded if its name or its labels match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusion {
    names: Vec<NamePattern>,
    selector: Option<LabelPattern>,
}

/// A name pattern in which `*` matches any sequence of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(String);

/// A label selector in the syntax of kubectl. An empty selector matches no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPattern {
    text: String,
    selector: Option<Selector>,
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
                "`{text}` is not a valid policy name or name pattern (`*` matches any characters)"
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
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self {
                text: String::new(),
                selector: None,
            });
        }
        let requirements = requirements(text).map(requirement);
        let selector = LabelSelector {
            match_expressions: Some(requirements.collect::<Result<_, _>>()?),
            match_labels: None,
        };
        let selector = Selector::new(&selector)
            .map_err(|error| format!("`{text}` is not a valid label selector: {error}"))?;
        Ok(Self {
            text: text.to_owned(),
            selector: Some(selector),
        })
    }
}

/// Splits a selector at the commas outside of parentheses.
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

/// Parses one requirement of a label selector. A `LabelSelector` does not support the operators `<` and `>`.
///
/// Source: apimachinery `pkg/labels/selector.go`, `Parse`.
fn requirement(text: &str) -> Result<LabelSelectorRequirement, String> {
    let text = text.trim();
    let new = |key: &str, operator: &str, values: Option<Vec<&str>>| {
        let trim = |value: &&str| value.trim().to_owned();
        let values = values.map(|values| values.iter().map(trim).collect());
        Ok(LabelSelectorRequirement {
            key: key.trim().to_owned(),
            operator: operator.to_owned(),
            values,
        })
    };
    if let Some(key) = text.strip_prefix('!') {
        return new(key, "DoesNotExist", None);
    }
    if let Some((key, value)) = text.split_once("!=") {
        return new(key, "NotIn", Some(vec![value]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return new(key, "In", Some(vec![value]));
    }
    if let Some((left, values)) = text.split_once('(') {
        let values = values.strip_suffix(')').map(|values| values.split(','));
        let mut words = left.split_whitespace();
        if let (Some(values), Some(key), Some(operator), None) =
            (values, words.next(), words.next(), words.next())
        {
            match operator {
                "in" => return new(key, "In", Some(values.collect())),
                "notin" => return new(key, "NotIn", Some(values.collect())),
                _ => {}
            }
        }
    } else if !text.is_empty() && !text.contains(char::is_whitespace) {
        return new(text, "Exists", None);
    }
    Err(format!(
        "`{text}` is not a valid requirement of a label selector; examples are `vendor=example`, \
         `vendor in (a,b)`, `vendor` and `!vendor`"
    ))
}

impl Exclusion {
    /// Creates the exclusion from options.
    #[must_use]
    pub fn new(names: &[NamePattern], selector: Option<&LabelPattern>) -> Self {
        // An empty environment variable becomes one empty pattern.
        let names = names.iter().filter(|name| !name.0.is_empty());
        Self {
            names: names.cloned().collect(),
            selector: selector
                .filter(|pattern| pattern.selector.is_some())
                .cloned(),
        }
    }

    /// Parses the annotations of a Lease. Ignores annotations that cannot be parsed.
    #[must_use]
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Self {
        let names = annotations.get(NAMES_ANNOTATION).into_iter();
        let names = names.flat_map(|names| names.split(','));
        let names: Vec<NamePattern> = names.filter_map(|name| name.parse().ok()).collect();
        let selector = annotations.get(SELECTOR_ANNOTATION);
        let selector = selector.and_then(|selector| selector.parse().ok());
        Self::new(&names, selector.as_ref())
    }

    /// Writes the exclusion to the annotations of a Lease. Replaces an earlier exclusion.
    pub fn annotate(&self, annotations: &mut BTreeMap<String, String>) {
        let names: Vec<&str> = self.names.iter().map(|name| name.0.as_str()).collect();
        let selector = self.selector.as_ref();
        for (annotation, text) in [
            (NAMES_ANNOTATION, names.join(",")),
            (
                SELECTOR_ANNOTATION,
                selector
                    .map(|selector| selector.text.clone())
                    .unwrap_or_default(),
            ),
        ] {
            if text.is_empty() {
                annotations.remove(annotation);
            } else {
                annotations.insert(annotation.to_owned(), text);
            }
        }
    }

    /// Returns true if the policy is excluded. `policy` must contain the labels.
    #[must_use]
    pub fn excludes(&self, policy: &ObjectMeta) -> bool {
        let name = policy.name.as_deref().unwrap_or_default();
        let none = BTreeMap::new();
        let labels = policy.labels.as_ref().unwrap_or(&none);
        let selector = self.selector.as_ref();
        let selector = selector.and_then(|pattern| pattern.selector.as_ref());
        self.names.iter().any(|pattern| pattern.matches(name))
            || selector.is_some_and(|selector| selector.matches(labels))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
