//! Inputs of size estimators and cost estimates: expressions and calls.
//!
//! Source: cel-go `checker/cost.go`, `AstNode`, `CallEstimate`.

use super::path::{NO_PATHS, Path};
use super::size::{CostEstimate, SizeEstimate};
use crate::ast::{Expr, Literal};
use crate::types::{Primitive, Type};

/// An expression, as passed to a [`SizeEstimator`].
#[derive(Clone, Copy, Debug)]
pub struct AstNode<'a> {
    pub(crate) path: Path<'a>,
    pub(crate) type_: &'a Type,
    /// The expression. `None` for the elements of a list and for the keys of a map.
    pub(crate) expr: Option<&'a Expr>,
    pub(crate) computed_size: Option<SizeEstimate>,
    /// The size that the cost functions of the standard library use. Unlike `computed_size`, it may come from the
    /// estimator or from the type in every release.
    pub(crate) size: Option<SizeEstimate>,
    /// The size of the list elements or map keys, computed from the expression. If they are lists, maps or
    /// objects, this is their JSON size. Set only for [`bounds`](crate::bounds).
    pub(crate) items_size: Option<SizeEstimate>,
}

impl<'a> AstNode<'a> {
    /// Creates a node with a known type and, optionally, a known size.
    #[must_use]
    pub fn from_type(type_: &'a Type, computed_size: Option<SizeEstimate>) -> Self {
        Self {
            path: NO_PATHS.path(None),
            type_,
            expr: None,
            computed_size,
            size: computed_size,
            items_size: None,
        }
    }

    /// Returns the path from a declared variable to the value.
    #[must_use]
    pub fn path(&self) -> Path<'a> {
        self.path
    }

    /// Returns the type.
    #[must_use]
    pub fn type_(&self) -> &'a Type {
        self.type_
    }

    /// Returns the size that was computed from the expression, without an estimator. `None` if it is unknown.
    #[must_use]
    pub fn computed_size(&self) -> Option<SizeEstimate> {
        self.computed_size
    }

    /// Returns the literal. `None` if the expression is not a literal.
    #[must_use]
    pub fn literal(&self) -> Option<&'a Literal> {
        match self.expr {
            Some(Expr::Literal(literal)) => Some(literal),
            _ => None,
        }
    }

    /// Returns the elements of a list or the keys of a map. `None` if the type has no parameters.
    #[must_use]
    pub fn items(&self) -> Option<AstNode<'a>> {
        let type_ = match self.type_ {
            Type::List(elem) | Type::Type(Some(elem)) => elem,
            Type::Map(entry) => &entry.0,
            Type::Opaque(opaque) => opaque.params.first()?,
            _ => return None,
        };
        Some(AstNode {
            path: self.path.to_items(),
            type_,
            expr: None,
            computed_size: self.items_size,
            size: self.items_size,
            items_size: None,
        })
    }

    /// Returns true if the type is string or bytes, or a wrapper of either.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(
            self.type_,
            Type::String | Type::Bytes | Type::Wrapper(Primitive::String | Primitive::Bytes)
        )
    }
}

/// The receiver and the arguments of a call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The receiver.
    pub target: Option<&'a AstNode<'a>>,
    /// The arguments.
    pub args: &'a [AstNode<'a>],
}

/// Estimated cost of a call, and the size of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost, excluding the arguments.
    pub cost: CostEstimate,
    /// The size of the result, for strings, bytes, lists and maps.
    pub result_size: Option<SizeEstimate>,
}

impl CallEstimate {
    /// Creates an estimate without a result size.
    #[must_use]
    pub const fn from_cost(cost: CostEstimate) -> Self {
        Self {
            cost,
            result_size: None,
        }
    }

    /// Returns this estimate with `cost` added.
    #[must_use]
    pub(crate) const fn with(self, cost: CostEstimate) -> Self {
        Self {
            cost: self.cost.plus(cost),
            ..self
        }
    }

    /// Creates an estimate with a result size.
    #[must_use]
    pub const fn sized(cost: CostEstimate, result_size: SizeEstimate) -> Self {
        Self {
            cost,
            result_size: Some(result_size),
        }
    }
}

/// Supplies the sizes of variables, their fields and their elements.
pub trait SizeEstimator: Sync {
    /// Returns the size of `node`. `None` if it is unknown.
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate>;
}

/// An estimator that does not know any sizes.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn estimate_size(&self, _node: &AstNode<'_>) -> Option<SizeEstimate> {
        None
    }
}

/// Returns the computed size of `node`. If there is none, returns the size from `sizes`, or [`SizeEstimate::UNKNOWN`]
/// if `sizes` does not know it.
///
/// Source: cel-go `ext/sets.go`, `estimateSize`; k8s.io/apiserver `pkg/cel/library/cost.go`, `sizeEstimate`.
pub fn size_of(sizes: &dyn SizeEstimator, node: &AstNode<'_>) -> SizeEstimate {
    node.computed_size
        .or_else(|| sizes.estimate_size(node))
        .unwrap_or(SizeEstimate::UNKNOWN)
}
