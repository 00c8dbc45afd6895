//! Interns types and names, so that equal types share memory within and across documents.
//!
//! Dozens of documents contain the types of metadata and Pod templates. Convert all documents with the same
//! [`Interner`] to store these types only once.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::decl_type::{DeclField, DeclKind, DeclType, ObjectDecl};

/// A set of interned types and names.
///
/// An interner keeps its types and names in memory. To free memory, drop the interner after loading, or call
/// [`Interner::purge`] regularly.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    types: HashSet<Shallow>,
    names: HashSet<Arc<str>>,
}

impl Interner {
    /// Returns the interned type that equals `type_`. The nested types of `type_` must already be interned.
    pub fn intern(&mut self, type_: DeclType) -> Arc<DeclType> {
        let candidate = Shallow(Arc::new(type_));
        if let Some(Shallow(known)) = self.types.get(&candidate) {
            return Arc::clone(known);
        }
        let type_ = Arc::clone(&candidate.0);
        self.types.insert(candidate);
        type_
    }

    /// Returns the interned string that equals `name`.
    pub fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    /// Removes the types and names that only this interner owns.
    pub fn purge(&mut self) {
        // A removed type may have been the last owner of its nested types, so repeat until no type is removed.
        let mut before = usize::MAX;
        while self.types.len() < before {
            before = self.types.len();
            self.types
                .retain(|Shallow(type_)| Arc::strong_count(type_) > 1);
        }
        self.names.retain(|name| Arc::strong_count(name) > 1);
    }

    /// Returns the number of interned types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Returns true if no types are interned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}

/// A type whose comparison compares nested types by address, so it does not recurse.
#[derive(Clone, Debug)]
struct Shallow(Arc<DeclType>);

impl PartialEq for Shallow {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        a.max_elements == b.max_elements
            && a.min_serialized_size == b.min_serialized_size
            && a.nullable == b.nullable
            && a.has_default == b.has_default
            && a.embedded_resource == b.embedded_resource
            && a.enum_values == b.enum_values
            && same_kind(&a.kind, &b.kind)
    }
}

impl Eq for Shallow {}

impl Hash for Shallow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let type_ = &*self.0;
        type_.max_elements.hash(state);
        type_.min_serialized_size.hash(state);
        std::mem::discriminant(&type_.kind).hash(state);
        match &type_.kind {
            DeclKind::List(elem) | DeclKind::Map(elem) => Arc::as_ptr(elem).hash(state),
            DeclKind::Object(object) => object.name.hash(state),
            _ => {}
        }
        for field in type_.declared_fields() {
            field.name.hash(state);
            Arc::as_ptr(&field.type_).hash(state);
        }
    }
}

fn same_kind(a: &DeclKind, b: &DeclKind) -> bool {
    match (a, b) {
        (DeclKind::List(a), DeclKind::List(b)) | (DeclKind::Map(a), DeclKind::Map(b)) => {
            Arc::ptr_eq(a, b)
        }
        (DeclKind::Object(a), DeclKind::Object(b)) => same_object(a, b),
        (DeclKind::Cel(a), DeclKind::Cel(b)) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && is_plain(a),
    }
}

/// Returns true if the kind has no nested types.
fn is_plain(kind: &DeclKind) -> bool {
    !matches!(
        kind,
        DeclKind::List(_) | DeclKind::Map(_) | DeclKind::Object(_) | DeclKind::Cel(_)
    )
}

fn same_object(a: &ObjectDecl, b: &ObjectDecl) -> bool {
    let same_field = |(a, b): (&DeclField, &DeclField)| {
        a.required == b.required
            && a.has_default == b.has_default
            && a.name == b.name
            && Arc::ptr_eq(&a.type_, &b.type_)
    };
    a.name == b.name
        && a.is_open == b.is_open
        && a.fields().len() == b.fields().len()
        && a.fields().iter().zip(b.fields()).all(same_field)
}
