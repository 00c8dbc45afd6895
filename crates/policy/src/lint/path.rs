//! Paths: strings that identify a field of the request. Expressions with equal paths denote the same field.

use std::fmt::Write as _;

use crate::reads::{Attribute, Key};
use cel::ast::{Ast, Expr, ExprId, Literal};

/// Returns the path of the expression `id`, such as `object.spec.replicas`. `None` for other expressions. Optional
/// selections, `has()` and `dyn()` have no path.
///
/// Subexpressions with the same path have the same value. This does not hold for paths that start with a macro
/// variable, because several macros can declare the same name.
pub(super) fn path(ast: &Ast, id: ExprId) -> Option<String> {
    let attribute = Attribute::new(ast, id);
    let Expr::Ident(name) = ast.expr(attribute.operand) else {
        return None;
    };
    let mut path = name.trim_start_matches('.').to_owned();
    for qualifier in &attribute.qualifiers {
        if qualifier.is_optional || qualifier.is_test {
            return None;
        }
        let _ = match qualifier.key {
            Key::Field(name) => write!(path, ".{name}"),
            Key::Literal(key) => write!(path, "[{key:?}]"),
            Key::Index(index) => write!(path, "[{index}]"),
            Key::Computed(_) => return None,
        };
    }
    (!attribute.is_dynamic).then_some(path)
}

/// A comparison of a path with a literal. The path is the left operand, such as `object.spec.replicas` or
/// `object.spec.containers.size()`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison<'a> {
    pub(super) path: String,
    pub(super) operator: Operator,
    pub(super) literal: &'a Literal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// Returns the operator of a CEL function such as `_==_`. `None` for other functions.
    pub(super) fn from_function(function: &str) -> Option<Self> {
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

    /// Returns the source of the operator, such as `<`.
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    /// Returns the operator for exchanged operands: `>` for `<`.
    pub(super) fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }

    pub(super) fn is_ordering(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }
}

/// Returns the operator and the operands if `id` is a comparison. `None` for other expressions.
pub(super) fn operands(ast: &Ast, id: ExprId) -> Option<(Operator, ExprId, ExprId)> {
    let (function, args) = ast.global_call(id)?;
    let [left, right] = args else { return None };
    Some((Operator::from_function(function)?, *left, *right))
}

/// Returns the operator, the other operand and the literal if `id` compares an expression with a literal. For a literal
/// on the left, the operator is flipped.
pub(crate) fn with_literal(ast: &Ast, id: ExprId) -> Option<(Operator, ExprId, &Literal)> {
    let (operator, left, right) = operands(ast, id)?;
    match (ast.expr(left), ast.expr(right)) {
        (Expr::Literal(_), Expr::Literal(_)) => None,
        (_, Expr::Literal(literal)) => Some((operator, left, literal)),
        (Expr::Literal(literal), _) => Some((operator.flipped(), right, literal)),
        _ => None,
    }
}

/// Returns the comparison if `id` compares a path, or the size of a path, with a literal. `None` for other expressions.
pub(super) fn comparison(ast: &Ast, id: ExprId) -> Option<Comparison<'_>> {
    let (operator, other, literal) = with_literal(ast, id)?;
    let path = match measured(ast, other) {
        Some(operand) => format!("{}.size()", path(ast, operand)?),
        None => path(ast, other)?,
    };
    Some(Comparison {
        path,
        operator,
        literal,
    })
}

/// A comparison of a path with strings, such as `object.kind == 'Pod'` or `object.kind in ['Pod', 'Job']`.
pub(super) struct NameTest<'a> {
    pub(super) path: String,
    /// The string literals.
    pub(super) names: Vec<&'a str>,
    /// `Equal` for `in`.
    pub(super) operator: Operator,
    /// False if the list has elements that are not string literals.
    pub(super) is_complete: bool,
}

impl<'a> NameTest<'a> {
    /// `None` if `id` is a different expression.
    pub(super) fn new(ast: &'a Ast, id: ExprId) -> Option<Self> {
        if let Some(("@in", [element, list])) = ast.global_call(id) {
            let Expr::List { elements, .. } = ast.expr(*list) else {
                return None;
            };
            let names: Vec<&str> = elements
                .iter()
                .filter_map(|id| string(ast.expr(*id)))
                .collect();
            return Some(Self {
                path: path(ast, *element)?,
                is_complete: names.len() == elements.len(),
                names,
                operator: Operator::Equal,
            });
        }
        let compared = comparison(ast, id)?;
        let Literal::String(name) = compared.literal else {
            return None;
        };
        (!compared.operator.is_ordering()).then(|| Self {
            path: compared.path,
            names: vec![&**name],
            operator: compared.operator,
            is_complete: true,
        })
    }
}

/// Returns the value of a string literal.
pub(crate) fn string(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(Literal::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns the operand of a call of `size()`.
pub(super) fn measured(ast: &Ast, id: ExprId) -> Option<ExprId> {
    let Expr::Call {
        function,
        target,
        args,
    } = ast.expr(id)
    else {
        return None;
    };
    let mut operands = target.iter().chain(args);
    let operand = operands.next().filter(|_| &**function == "size")?;
    operands.next().is_none().then_some(*operand)
}
