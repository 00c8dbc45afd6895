//! Validates the fields of policies, bindings and webhook configurations as the API server does. Other modules decode
//! the objects and compile their expressions.
//!
//! - `table` lists the constraints, such as required fields, enumerations and sizes.
//! - `walk` checks a document against the constraints.
//! - `syntax` contains the formats of names.
//! - `special` and `webhook` contain constraints that need a function of their own.
//! - `size` contains the limits of a whole object.

mod size;
mod special;
mod syntax;
mod table;
mod walk;
mod webhook;

use goyaml::Node;

use super::finding::{Finding, Severity};
use super::policy::object_finding;
use crate::cli::input::Object;
use crate::policy::rule::Rule;

/// The consequence of a violation, as part of a hint.
const CONSEQUENCE: &str = "the API server rejects the object";

/// Maximum number of findings per rule and document. A document may have a million invalid items.
const MAX_FINDINGS: usize = 20;

/// Returns a finding for each constraint of the API server that a policy violates.
#[must_use]
pub fn policy<T>(policy: &Object<T>) -> Vec<Finding> {
    check(policy, table::POLICY)
}

/// Returns a finding for each constraint of the API server that a binding violates.
#[must_use]
pub fn binding<T>(binding: &Object<T>) -> Vec<Finding> {
    check(binding, table::BINDING)
}

/// Returns a finding for each constraint of the API server that a mutating policy violates.
#[must_use]
pub fn mutating_policy<T>(policy: &Object<T>) -> Vec<Finding> {
    check(policy, table::MUTATING_POLICY)
}

/// Returns a finding for each constraint of the API server that a binding of a mutating policy violates.
#[must_use]
pub fn mutating_binding<T>(binding: &Object<T>) -> Vec<Finding> {
    check(binding, table::MUTATING_BINDING)
}

/// Returns a finding for each constraint of the API server that a webhook configuration violates.
#[must_use]
pub fn webhooks<T>(configuration: &Object<T>) -> Vec<Finding> {
    check(configuration, table::WEBHOOKS)
}

fn check<T>(object: &Object<T>, rows: &[table::Row]) -> Vec<Finding> {
    let mut violations = Violations::default();
    walk::walk(&object.document.node, rows, &mut violations);
    size::check(&object.document.node, &mut violations);
    let violations = violations.0.into_iter();
    violations
        .map(|violation| violation_finding(object, violation))
        .collect()
}

#[derive(Clone, Debug)]
struct Violation {
    /// The severity: an error, or a note if the violation only matters when the object is created.
    severity: Severity,
    rule: Rule,
    /// The path of the field, such as `spec.validations[0].message`.
    field_ref: String,
    /// The byte range of the invalid key of a map. `None` for an invalid value.
    key: Option<std::ops::Range<usize>>,
    message: String,
    /// A hint about how to correct the value.
    advice: Option<String>,
    /// The replacement of the value, if there is exactly one fix. An item of a list can be replaced with several items.
    meant: Vec<String>,
    /// The list and the index of an item whose removal is the only fix.
    removed: Option<(String, usize)>,
}

/// Collects violations, up to a limit per rule.
#[derive(Debug, Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, rule: Rule, field_ref: &str, message: String, advice: Option<String>) {
        self.push(Violation {
            severity: Severity::Error,
            rule,
            field_ref: field_ref.to_owned(),
            key: None,
            message,
            advice,
            meant: Vec::new(),
            removed: None,
        });
    }

    /// Sets the fix of the last violation if it is about `field_ref`.
    fn set_meant(&mut self, field_ref: &str, meant: &[&str]) {
        let last = self.0.last_mut();
        if let Some(last) = last.filter(|last| last.field_ref == field_ref) {
            last.meant = meant.iter().map(|&value| value.to_owned()).collect();
        }
    }

    /// Sets the removal of the item `n` of `list` as the fix of the last violation if it is about `field_ref`.
    fn set_removed(&mut self, field_ref: &str, (list, n): (&str, usize)) {
        let last = self.0.last_mut();
        if let Some(last) = last.filter(|last| last.field_ref == field_ref) {
            last.removed = Some((list.to_owned(), n));
        }
    }

    fn push(&mut self, violation: Violation) {
        let same = self.0.iter().filter(|known| known.rule == violation.rule);
        if same.count() < MAX_FINDINGS {
            self.0.push(violation);
        }
    }

    fn has(&self, field_ref: &str) -> bool {
        self.0
            .iter()
            .any(|violation| violation.field_ref == field_ref)
    }
}

fn violation_finding<T>(object: &Object<T>, violation: Violation) -> Finding {
    let node = object.document.node.nearest(&violation.field_ref);
    let (place, length) = match &violation.key {
        Some(key) => (object.place_of_bytes(key), key.len().max(1)),
        None => (object.place_of(node), length(object, node, violation.rule)),
    };
    let mut finding = object_finding(
        object,
        violation.severity,
        violation.rule,
        &violation.message,
        place,
    );
    finding.location.length = length;
    let (document, source) = (&object.document, &object.source);
    let meant: Vec<&str> = violation.meant.iter().map(String::as_str).collect();
    finding.fix = match &meant[..] {
        [] => None,
        [meant] => document.edit_value(source, node, meant),
        items => document.edit_into_items(source, node, items),
    };
    if let Some((list, n)) = &violation.removed {
        let list = document.node.nearest(list);
        finding.fix = document.edit_without_item(source, list, *n);
    }
    finding.field_ref = Some(violation.field_ref);
    finding.rejected = true;
    finding.help = Some(help(violation.advice.as_deref()));
    finding
}

/// Returns the correction of the name of an object. `None` if the name is valid, or has no correction.
pub(super) fn valid_name(name: &str) -> Option<String> {
    let form = syntax::Form::Subdomain;
    form.violated(name).and_then(|_| form.meant(name))
}

/// Appends the consequence of a violation to a hint.
pub(super) fn help(advice: Option<&str>) -> String {
    match advice {
        Some(advice) if advice.ends_with('?') => format!("{advice} {CONSEQUENCE}"),
        Some(advice) => format!("{advice}; {CONSEQUENCE}"),
        None => CONSEQUENCE.to_owned(),
    }
}

/// Returns the number of code points to mark in the source. If a field is missing, only the first code point of its
/// nearest existing ancestor is marked.
fn length<T>(object: &Object<T>, node: &Node, rule: Rule) -> usize {
    if rule == Rule::Required && node.as_str().is_none() {
        1
    } else {
        object.length_of(node)
    }
}

#[cfg(test)]
mod tests;
