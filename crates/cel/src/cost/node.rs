//! Subjects of an estimator's answers: expressions and calls.
//!
//! Source: cel-go `checker/cost.go`, `AstNode`, `CallEstimate`.

use super::path::{NO_PATHS, Path};
use super::size::{CostEstimate, SizeEstimate};
use crate::ast::{Expr, Literal};
use crate::types::{Primitive, Type};

/// An expression, for the purpose of estimates.
#[derive(Clone, Copy, Debug)]
pub struct AstNode<'a> {
    pub(crate) path: Path<'a>,
    pub(crate) type_: &'a Type,
    /// The expression, or none for the items of a list.
    pub(crate) expr: Option<&'a Expr>,
    pub(crate) computed_size: Option<SizeEstimate>,
}

impl<'a> AstNode<'a> {
    /// A value that nothing is known of but its type and, perhaps, its size.
    #[must_use]
    pub fn of_type(type_: &'a Type, computed_size: Option<SizeEstimate>) -> Self {
        Self {
            path: NO_PATHS.path(None),
            type_,
            expr: None,
            computed_size,
        }
    }

    /// How the value is reached from a declared variable.
    #[must_use]
    pub fn path(&self) -> Path<'a> {
        self.path
    }

    /// The type.
    #[must_use]
    pub fn type_(&self) -> &'a Type {
        self.type_
    }

    /// The size as far as the expression itself tells.
    #[must_use]
    pub fn computed_size(&self) -> Option<SizeEstimate> {
        self.computed_size
    }

    /// The literal that the expression is.
    #[must_use]
    pub fn literal(&self) -> Option<&'a Literal> {
        match self.expr {
            Some(Expr::Literal(literal)) => Some(literal),
            _ => None,
        }
    }

    /// The items of a list, or the keys of a map; none where the type has no parameters.
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
            computed_size: None,
        })
    }

    /// Reports whether the value is of a string or bytes type, wrapped or not.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(
            self.type_,
            Type::String | Type::Bytes | Type::Wrapper(Primitive::String | Primitive::Bytes)
        )
    }
}

/// The operands of a call of one overload.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The receiver.
    pub target: Option<&'a AstNode<'a>>,
    /// The arguments.
    pub args: &'a [AstNode<'a>],
}

/// Estimate of a call's own cost, and of the size of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost, without that of the arguments.
    pub cost: CostEstimate,
    /// The size of the result, of strings, bytes, lists and maps.
    pub result_size: Option<SizeEstimate>,
}

impl CallEstimate {
    /// A cost, and nothing known of the result's size.
    #[must_use]
    pub const fn of_cost(cost: CostEstimate) -> Self {
        Self {
            cost,
            result_size: None,
        }
    }

    /// This with `cost` added.
    #[must_use]
    pub(crate) const fn with(self, cost: CostEstimate) -> Self {
        Self {
            cost: self.cost.plus(cost),
            ..self
        }
    }

    /// A cost and the size of the result.
    #[must_use]
    pub const fn sized(cost: CostEstimate, result_size: SizeEstimate) -> Self {
        Self {
            cost,
            result_size: Some(result_size),
        }
    }
}

/// Who knows the sizes of variables and of what is reached from them.
pub trait SizeEstimator: Sync {
    /// The size of `node`, or `None` where nothing is known but its type.
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate>;

    /// The answer, and true if another estimator may have another one for the node: one of those that
    /// [`estimate_each`](crate::estimate::estimate_each) gets together.
    fn estimate_varying_size(&self, node: &AstNode<'_>) -> (Option<SizeEstimate>, bool) {
        (self.estimate_size(node), true)
    }
}

/// Knows no sizes.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn estimate_size(&self, _node: &AstNode<'_>) -> Option<SizeEstimate> {
        None
    }
}

/// The size of `node` by itself, or as `sizes` knows it, or unknown.
///
/// Source: cel-go `ext/sets.go`, `estimateSize`; k8s.io/apiserver `pkg/cel/library/cost.go`,
/// `sizeEstimate`.
pub fn size_of(sizes: &dyn SizeEstimator, node: &AstNode<'_>) -> SizeEstimate {
    node.computed_size
        .or_else(|| sizes.estimate_size(node))
        .unwrap_or(SizeEstimate::UNKNOWN)
}
