//! Refusals by the API server of a policy, binding or webhook configuration for other reasons than its expressions and its shape:
//! names and labels, what is required, enumerations, duplicates, values that exclude each other, sizes.
//!
//! The rules are the rows of `table`; `walk` holds a document against them, `syntax` has the forms of names, `special`
//! what is not told of one field alone, and `size` how large an object may be.

mod size;
mod special;
mod syntax;
mod table;
mod walk;
mod webhook;

use goyaml::Node;

use super::finding::{Finding, Severity};
use super::policy::finding;
use crate::cli::input::Object;
use crate::policy::rule::Rule;

/// The consequence of what is found here.
const REFUSED: &str = "the API server refuses it";

/// The most findings of one rule about one document, which may have a million of faulty items.
const MAX_FINDINGS: usize = 20;

/// The faults for which the API server refuses a policy.
#[must_use]
pub fn policy<T>(policy: &Object<T>) -> Vec<Finding> {
    check(policy, table::POLICY)
}

/// The faults for which the API server refuses a binding.
#[must_use]
pub fn binding<T>(binding: &Object<T>) -> Vec<Finding> {
    check(binding, table::BINDING)
}

/// The faults for which the API server refuses a mutating policy.
#[must_use]
pub fn mutating_policy<T>(policy: &Object<T>) -> Vec<Finding> {
    check(policy, table::MUTATING_POLICY)
}

/// The faults for which the API server refuses a binding of a mutating policy.
#[must_use]
pub fn mutating_binding<T>(binding: &Object<T>) -> Vec<Finding> {
    check(binding, table::MUTATING_BINDING)
}

/// The faults for which the API server refuses a configuration of webhooks.
#[must_use]
pub fn webhooks<T>(configuration: &Object<T>) -> Vec<Finding> {
    check(configuration, table::WEBHOOKS)
}

fn check<T>(object: &Object<T>, rows: &[table::Row]) -> Vec<Finding> {
    let mut faults = Faults::default();
    walk::walk(&object.document.node, rows, &mut faults);
    size::check(&object.document.node, &mut faults);
    let faults = faults.0.into_iter();
    faults.map(|fault| shown(object, fault)).collect()
}

/// A fault of a field.
#[derive(Clone, Debug)]
struct Fault {
    /// How bad it is: an error, unless it is one only if the object is created.
    severity: Severity,
    rule: Rule,
    /// The field.
    field_ref: String,
    /// The key of a map that it is about, rather than the value.
    key: Option<std::ops::Range<usize>>,
    message: String,
    /// The mend.
    advice: Option<String>,
    /// The text in place of the value, where it is the one mend.
    meant: Option<String>,
}

/// Collects faults, of each rule not too many.
#[derive(Debug, Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, rule: Rule, field_ref: &str, message: String, advice: Option<String>) {
        self.push(Fault {
            severity: Severity::Error,
            rule,
            field_ref: field_ref.to_owned(),
            key: None,
            message,
            advice,
            meant: None,
        });
    }

    /// Adds the text that is the one mend to the last fault, which is about `field_ref`.
    fn set_meant(&mut self, field_ref: &str, meant: Option<&str>) {
        let last = self.0.last_mut();
        if let Some(last) = last.filter(|last| last.field_ref == field_ref) {
            last.meant = meant.map(str::to_owned);
        }
    }

    fn push(&mut self, fault: Fault) {
        let same = self.0.iter().filter(|known| known.rule == fault.rule);
        if same.count() < MAX_FINDINGS {
            self.0.push(fault);
        }
    }

    /// Reports whether something is wrong with the field itself.
    fn has(&self, field_ref: &str) -> bool {
        self.0.iter().any(|fault| fault.field_ref == field_ref)
    }
}

/// A fault with its place.
fn shown<T>(object: &Object<T>, fault: Fault) -> Finding {
    let node = object.document.node.nearest(&fault.field_ref);
    let (place, length) = match &fault.key {
        Some(key) => (object.place_of_bytes(key), key.len().max(1)),
        None => (object.place_of(node), length(object, node, fault.rule)),
    };
    let mut found = finding(object, fault.severity, fault.rule, &fault.message, place);
    found.location.length = length;
    let meant = fault.meant.as_deref();
    found.fix = meant.and_then(|meant| object.document.edit_value(&object.source, node, meant));
    found.field_ref = Some(fault.field_ref);
    found.refused = true;
    found.help = Some(help(fault.advice.as_deref()));
    found
}

/// The mend, and the consequence.
pub(super) fn help(advice: Option<&str>) -> String {
    match advice {
        Some(advice) if advice.ends_with('?') => format!("{advice} {REFUSED}"),
        Some(advice) => format!("{advice}; {REFUSED}"),
        None => REFUSED.to_owned(),
    }
}

/// Length of the mark: something missing is marked where it might stand, at the beginning of what is nearest to it.
fn length<T>(object: &Object<T>, node: &Node, rule: Rule) -> usize {
    if rule == Rule::Required && node.as_str().is_none() {
        1
    } else {
        object.length_of(node)
    }
}

#[cfg(test)]
mod tests;
