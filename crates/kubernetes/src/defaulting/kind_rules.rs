//! Rules of the table about a kind as a whole.

use super::table::{Rule, Table};
use crate::schema::Gvk;

fn creates(gvk: &Gvk, is: impl Fn(&Rule) -> bool) -> bool {
    let kind = Table::get().ok().and_then(|table| table.kind(gvk));
    kind.is_some_and(|kind| kind.create.iter().any(is))
}

fn is_at(rule: &Rule, place: &str) -> bool {
    rule.at.len() == 1 && rule.at.first().is_some_and(|step| step.field == place)
}

/// Reports whether the API server counts the changes of objects of one of Kubernetes' own kinds in
/// `metadata.generation`.
#[must_use]
pub fn has_generation(gvk: &Gvk) -> bool {
    creates(gvk, |rule| {
        is_at(rule, "metadata") && rule.field == "generation"
    })
}

/// Reports whether the status of such an object is written apart from the rest.
pub(super) fn resets_status(gvk: &Gvk) -> bool {
    creates(gvk, |rule| is_at(rule, "status"))
}
