//! Properties of built-in kinds, derived from the table of defaults.

use super::table::{Rule, Shape, Table, Type};
use crate::schema::{Gvk, connect_options};

fn creates(gvk: &Gvk, is: impl Fn(&Rule) -> bool) -> bool {
    let kind = Table::get().ok().and_then(|table| table.kind(gvk));
    kind.is_some_and(|kind| kind.create.iter().any(is))
}

fn is_at(rule: &Rule, place: &str) -> bool {
    rule.at.len() == 1 && rule.at.first().is_some_and(|step| step.field == place)
}

/// Returns true if the API server maintains `metadata.generation` for the kind.
#[must_use]
pub fn has_generation(gvk: &Gvk) -> bool {
    creates(gvk, |rule| {
        is_at(rule, "metadata") && rule.field == "generation"
    })
}

/// Returns true if the API server serializes an unset field as null. Such a field is a list, map or pointer without
/// `omitempty`, or a time without `omitzero`. In `path`, `None` is an element of a list or map.
#[must_use]
pub fn is_null_unset<'a>(gvk: &Gvk, path: impl IntoIterator<Item = Option<&'a str>>) -> bool {
    let Ok(table) = Table::get() else {
        return false;
    };
    let Some(kind) = table.kind(gvk) else {
        return connect_options::is_null_unset(gvk, path);
    };
    let mut next = Next::Struct(kind.root);
    let mut is_null = false;
    for step in path {
        let type_ = match (next, step) {
            (Next::Struct(n), Some(name)) => {
                let mut fields = table.fields(n).iter();
                let Some(field) = fields.find(|field| field.0 == name) else {
                    return false;
                };
                let type_ = Type(&field.1);
                is_null = match type_.shape() {
                    Shape::List(_) | Shape::Map(_) | Shape::Pointer(_) => field.2 == 0,
                    Shape::Time | Shape::MicroTime => field.2 < 2,
                    _ => false,
                };
                type_
            }
            (Next::Of(type_), _) => {
                is_null = false;
                type_
            }
            (Next::Struct(_), None) => return false,
        };
        let within = match type_.shape() {
            Shape::Pointer(inner) => inner,
            _ => type_,
        };
        next = match within.shape() {
            Shape::Struct(n) => Next::Struct(n),
            Shape::List(inner) | Shape::Map(inner) => Next::Of(inner),
            _ => Next::Of(Type("?")),
        };
    }
    is_null
}

/// The type in which the next element of a path is looked up.
#[derive(Clone, Copy)]
enum Next<'a> {
    Struct(usize),
    /// The type of the elements of a list or map.
    Of(Type<'a>),
}

/// Returns true if a write to the main resource cannot change the status.
pub(super) fn resets_status(gvk: &Gvk) -> bool {
    creates(gvk, |rule| is_at(rule, "status"))
}
