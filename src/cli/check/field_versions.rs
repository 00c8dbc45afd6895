//! Hints about the Kubernetes versions that have a field that the target version lacks.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cel::diagnostic::{Candidates, UndefinedField};
use crate::cel::types::FieldTypes as _;
use crate::schema::resolver::{Resolution, SchemaResolver as _};
use crate::schema::{Builtin, DeclField, DeclKind, DeclType, Gvk};
use crate::version::KubernetesVersion;

/// Returns a hint about the versions in which objects of the kind `gvk` have the undeclared field. `builtin` are the
/// APIs of the target version. `None` if no supported version has the field, or if the kind is not built in.
pub(super) fn hint(builtin: &Builtin, gvk: &Gvk, undefined: &UndefinedField) -> Option<String> {
    let Candidates::Declared(fields) = &undefined.candidates else {
        return None;
    };
    let names = fields.field_names();
    let own = root(builtin, gvk)?;
    let is_parent = |type_: &DeclType| {
        // The interpreter also lists fields without a type; the checker omits these fields. `names` may be the list of
        // the interpreter or that of the checker.
        names == type_.field_names()
            || type_
                .declared_fields()
                .iter()
                .map(|field| &*field.name)
                .eq(names.iter().copied())
    };
    let is_field = |type_: &DeclType| {
        type_
            .declared_fields()
            .iter()
            .any(|field| field.name == undefined.name)
    };
    let versions = builtin.versions_that_add_property(&undefined.name).ok()?;
    let versions = versions.into_iter().filter(|version| {
        let other = Builtin::load(*version)
            .ok()
            .and_then(|builtin| root(builtin, gvk));
        other.is_some_and(|other| {
            let mut compared = BTreeSet::new();
            has_pair((&own, &other), (&is_parent, &is_field), &mut compared)
        })
    });
    let versions: Vec<KubernetesVersion> = versions.collect();
    let (first, last) = (versions.first()?, versions.last()?);
    let range = if last.is_newest() {
        format!("Kubernetes {first} and later have")
    } else if first.is_oldest() {
        format!("Kubernetes {last} and earlier have")
    } else if first == last {
        format!("only Kubernetes {first} has")
    } else {
        format!("only Kubernetes {first} to {last} have")
    };
    Some(format!("{range} this field;"))
}

fn root(builtin: &Builtin, gvk: &Gvk) -> Option<Arc<DeclType>> {
    match builtin.resolve(gvk) {
        Resolution::Found(type_) => Some(type_),
        Resolution::NotFound | Resolution::Unavailable(_) => None,
    }
}

type Predicate<'a> = &'a dyn Fn(&DeclType) -> bool;

type Pair = (*const DeclType, *const DeclType);

/// Returns true if, at some path, the type in `own` satisfies the first predicate and the type in `other` satisfies the
/// second predicate. `compared` contains the pairs that were already visited.
fn has_pair(
    (own, other): (&Arc<DeclType>, &Arc<DeclType>),
    predicates: (Predicate<'_>, Predicate<'_>),
    compared: &mut BTreeSet<Pair>,
) -> bool {
    if !compared.insert((Arc::as_ptr(own), Arc::as_ptr(other))) {
        return false;
    }
    match (&own.kind, &other.kind) {
        (DeclKind::List(own), DeclKind::List(other))
        | (DeclKind::Map(own), DeclKind::Map(other)) => {
            has_pair((own, other), predicates, compared)
        }
        (DeclKind::Object(_), DeclKind::Object(_)) => {
            let (is_own, is_other) = predicates;
            let same_field = |field: &DeclField| {
                let mut fields = other.declared_fields().iter();
                fields.find(|other| other.name == field.name)
            };
            is_own(own) && is_other(other)
                || own.declared_fields().iter().any(|field| {
                    same_field(field).is_some_and(|other| {
                        has_pair((&field.type_, &other.type_), predicates, compared)
                    })
                })
        }
        _ => false,
    }
}
