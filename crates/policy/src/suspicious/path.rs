//! Paths: expressions that name a place in a request, and compare as text.

use cel::ast::{Ast, Expr, ExprId, Literal};

/// The path that `id` is, `object.spec.replicas`; `None` where it is something else.
///
/// Two parts of one expression with the same path have the same value, as long as no comprehension lies between.
pub(super) fn of(ast: &Ast, id: ExprId) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = id;
    loop {
        match ast.expr(at) {
            Expr::Ident(name) => {
                let mut path = name.trim_start_matches('.').to_owned();
                path.extend(parts.into_iter().rev());
                return Some(path);
            }
            Expr::Select {
                operand,
                field,
                test_only: false,
            } => {
                parts.push(format!(".{field}"));
                at = *operand;
            }
            Expr::Call {
                function,
                target: None,
                args,
            } if &**function == "_[_]" => {
                let [container, index] = &**args else {
                    return None;
                };
                match ast.expr(*index) {
                    Expr::Literal(Literal::String(key)) => parts.push(format!("[{key:?}]")),
                    Expr::Literal(Literal::Int(index)) => parts.push(format!("[{index}]")),
                    _ => return None,
                }
                at = *container;
            }
            _ => return None,
        }
    }
}

/// A comparison of a path with a literal, the path on the left.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison<'a> {
    pub(super) path: String,
    pub(super) operator: Operator,
    pub(super) literal: &'a Literal,
}

/// An operator that compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// The operator of a function, `_==_`.
    pub(super) fn of(function: &str) -> Option<Self> {
        Some(match function {
            "_==_" => Self::Equal,
            "_!=_" => Self::NotEqual,
            "_<_" => Self::Less,
            "_<=_" => Self::LessOrEqual,
            "_>_" => Self::Greater,
            "_>=_" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The operator with the sides exchanged.
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }

    /// Reports whether it asks for an order.
    pub(super) fn is_ordering(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }
}

/// The operands of a binary operator, and which it is.
pub(super) fn operands(ast: &Ast, id: ExprId) -> Option<(Operator, ExprId, ExprId)> {
    let (function, args) = ast.global_call(id)?;
    let [left, right] = args else { return None };
    Some((Operator::of(function)?, *left, *right))
}

/// The comparison of something with a literal that `id` is: the operator, the other side and the literal.
pub(super) fn with_literal(ast: &Ast, id: ExprId) -> Option<(Operator, ExprId, &Literal)> {
    let (operator, left, right) = operands(ast, id)?;
    match (ast.expr(left), ast.expr(right)) {
        (Expr::Literal(_), Expr::Literal(_)) => None,
        (_, Expr::Literal(literal)) => Some((operator, left, literal)),
        (Expr::Literal(literal), _) => Some((operator.flipped(), right, literal)),
        _ => None,
    }
}

/// The comparison of a path with a literal that `id` is.
pub(super) fn comparison(ast: &Ast, id: ExprId) -> Option<Comparison<'_>> {
    let (operator, other, literal) = with_literal(ast, id)?;
    Some(Comparison {
        path: of(ast, other)?,
        operator,
        literal,
    })
}
