//! Properties of expressions computed by the estimator: paths, sizes, and the sizes of list elements and map
//! entries.
//!
//! Source: cel-go `checker/cost.go` (`coster.exprPaths`, `computedSizes`, `computedEntrySizes`,
//! `localVar`).

use std::sync::Arc;

use super::Coster;
use crate::ast::{Expr, ExprId, Literal};
use crate::cost::{AstNode, Path, PathId, PathStep, SizeEstimate};
use crate::types::{Primitive, Type};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) path: Option<PathId>,
    pub(super) size: Option<SizeEstimate>,
    pub(super) entry: Option<EntrySize>,
}

/// Sizes of the elements of a list or the entries of a map.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntrySize {
    pub(super) is_list: bool,
    /// The size of the keys or indices.
    pub(super) key: SizeEstimate,
    /// The size of the values or elements.
    pub(super) value: SizeEstimate,
}

impl EntrySize {
    /// Returns the entry sizes of a list whose elements have the size `value`.
    pub(super) fn for_elements(value: SizeEstimate) -> Self {
        Self {
            is_list: true,
            key: SizeEstimate::fixed(1),
            value,
        }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            is_list: self.is_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// A comprehension variable.
#[derive(Debug)]
pub(super) struct LocalVariable {
    pub(super) name: Arc<str>,
    pub(super) path: Option<PathId>,
    pub(super) size: Option<SizeEstimate>,
    pub(super) entry: Option<EntrySize>,
}

impl Coster<'_> {
    pub(super) fn local(&self, name: &str) -> Option<&LocalVariable> {
        self.scopes
            .iter()
            .rev()
            .find(|variable| *variable.name == *name)
    }

    /// Returns the comprehension variable that `id` refers to. `None` if it refers to none.
    pub(super) fn local_of(&self, id: ExprId) -> Option<&LocalVariable> {
        match self.ast.expr(id) {
            Expr::Ident(name) => self.local(self.resolved_name(id).unwrap_or(name)),
            _ => None,
        }
    }

    pub(super) fn facts(&self, id: ExprId) -> Facts {
        self.facts.get(id.index()).copied().unwrap_or_default()
    }

    pub(super) fn path_of(&self, id: ExprId) -> Option<PathId> {
        match self.local_of(id) {
            Some(variable) => variable.path,
            None => self.facts(id).path,
        }
    }

    pub(super) fn path(&self, id: ExprId) -> Path<'_> {
        self.paths.path(self.path_of(id))
    }

    pub(super) fn set_path(&mut self, id: ExprId, path: Option<PathId>) {
        if let Some(facts) = self.facts.get_mut(id.index()) {
            facts.path = path;
        }
    }

    pub(super) fn extend_path(&mut self, id: ExprId, operand: ExprId, step: PathStep) {
        let before = self.path_of(operand);
        let path = self.paths.add(before, step);
        self.set_path(id, Some(path));
    }

    pub(super) fn set_size(&mut self, id: ExprId, size: Option<SizeEstimate>) {
        if let Some(facts) = self.facts.get_mut(id.index()) {
            facts.size = size.or(facts.size);
        }
    }

    pub(super) fn entry(&self, id: ExprId) -> Option<EntrySize> {
        if !self.behavior.estimates_local_sizes {
            return None;
        }
        let own = self.facts(id).entry;
        own.or_else(|| self.local_of(id)?.entry)
    }

    pub(super) fn set_entry(&mut self, id: ExprId, entry: Option<EntrySize>) {
        if let Some(facts) = self.facts.get_mut(id.index()) {
            facts.entry = entry.or(facts.entry);
        }
    }

    pub(super) fn copy_sizes(&mut self, id: ExprId, from: ExprId) {
        let (size, entry) = (self.size(from), self.entry(from));
        self.set_size(id, size);
        self.set_entry(id, entry);
    }

    pub(super) fn size_or_unknown(&self, id: ExprId) -> SizeEstimate {
        self.size(id).unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// Returns the size of `id` from the first source that knows it. The order is: the computed size, the literal,
    /// the estimator, the type, and the container over which a comprehension variable iterates.
    ///
    /// Source: cel-go `checker/cost.go`, `computeSize`.
    pub(super) fn size(&self, id: ExprId) -> Option<SizeEstimate> {
        let expr = self.ast.expr(id);
        self.derived_size(id)
            .or_else(|| {
                let node = AstNode {
                    path: self.path(id),
                    type_: self.checked.type_at(id),
                    expr: Some(expr),
                    computed_size: None,
                    size: None,
                    items_size: None,
                };
                self.sizes.estimate_size(&node)
            })
            .or_else(|| {
                let type_ = self.checked.type_at(id);
                let is_scalar = is_scalar(type_)
                    || self.behavior.estimates_local_sizes
                        && type_.optional_value().is_some_and(is_scalar_optional);
                is_scalar.then_some(SizeEstimate::fixed(1))
            })
            .or_else(|| self.local_of(id)?.size)
    }

    /// Returns the size of `id` if it is known without using the estimator or the type.
    fn derived_size(&self, id: ExprId) -> Option<SizeEstimate> {
        let size = self.facts(id).size;
        size.or_else(|| literal_size(self.ast.expr(id)))
    }

    pub(super) fn node(&self, id: ExprId) -> AstNode<'_> {
        let size = self.size(id);
        AstNode {
            path: self.path(id),
            type_: self.checked.type_at(id),
            expr: Some(self.ast.expr(id)),
            computed_size: if self.behavior.estimates_local_sizes {
                size
            } else {
                self.derived_size(id)
            },
            size,
            items_size: None,
        }
    }
}

/// Source: cel-go `checker/cost.go`, `computeExprSize`.
fn literal_size(expr: &Expr) -> Option<SizeEstimate> {
    let size = match expr {
        Expr::Literal(Literal::String(text)) => text.chars().count(),
        Expr::Literal(Literal::Bytes(bytes)) => bytes.len(),
        Expr::Literal(_) => 1,
        Expr::List { elements, .. } => elements.len(),
        Expr::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(SizeEstimate::fixed(u64::try_from(size).unwrap_or(u64::MAX)))
}

/// Returns true if all values of the type have the same size.
///
/// Source: cel-go `checker/cost.go`, `isScalar`.
pub(super) fn is_scalar(type_: &Type) -> bool {
    matches!(
        type_,
        Type::Bool
            | Type::Double
            | Type::Duration
            | Type::Int
            | Type::Timestamp
            | Type::Uint
            | Type::Wrapper(Primitive::Bool | Primitive::Double | Primitive::Int | Primitive::Uint)
    )
}

/// Returns true if all values of an optional that contains `type_` have the same size.
fn is_scalar_optional(type_: &Type) -> bool {
    is_scalar(type_) || type_.optional_value().is_some_and(is_scalar_optional)
}
