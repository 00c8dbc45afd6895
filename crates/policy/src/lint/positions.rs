//! Finds the conditions that an expression consists of, the comparisons of strings with literals, and the fields from
//! which the strings come.

use std::collections::HashMap;

use cel::ast::{Ast, Expr, ExprId};

use super::path::{self, Operator};
use crate::comprehensions::{ComprehensionKind, comprehension_kind};
use crate::reads::Attribute;

/// Maximum number of nodes of an analyzed expression.
const MAX_NODES: usize = 20_000;

/// Maximum number of nested macros between a macro variable and the field from which its value comes.
const MAX_LISTS: usize = 8;

/// Returns the conditions that `ast` consists of, outermost first. The second value is false for a condition within a
/// negation: if such a condition becomes true, the whole expression may become false. Conditions that affect the result
/// in a different way, as in `filter()`, are left out.
pub(super) fn conditions(ast: &Ast) -> Vec<(ExprId, bool)> {
    let mut conditions = Vec::new();
    let mut open = vec![(ast.root(), true)];
    while let Some((id, sign)) = open.pop() {
        if conditions.len() >= MAX_NODES {
            break;
        }
        conditions.push((id, sign));
        match ast.expr(id) {
            Expr::Call {
                function,
                target: None,
                args,
            } => match (&**function, &**args) {
                ("!_", [operand]) => open.push((*operand, !sign)),
                ("_&&_" | "_||_", operands) => {
                    open.extend(operands.iter().rev().map(|id| (*id, sign)));
                }
                ("_?_:_", [_, then, otherwise]) => {
                    open.extend([(*otherwise, sign), (*then, sign)]);
                }
                _ => {}
            },
            Expr::Comprehension(fold) => match comprehension_kind(ast, fold) {
                ComprehensionKind::All(test) | ComprehensionKind::Exists(test) => {
                    open.push((test, sign));
                }
                ComprehensionKind::Bind => open.push((fold.result, sign)),
                _ => {}
            },
            _ => {}
        }
    }
    conditions
}

/// Returns the operands of the outermost chain of `&&` in the expression `id`. If `id` is a different expression,
/// returns only `id`.
pub(super) fn conjuncts(ast: &Ast, id: ExprId) -> Vec<ExprId> {
    let mut conjuncts = Vec::new();
    let mut open = vec![id];
    while let Some(next) = open.pop() {
        match ast.global_call(next) {
            Some(("_&&_", operands)) if conjuncts.len() < MAX_NODES => {
                open.extend(operands.iter().rev());
            }
            _ => conjuncts.push(next),
        }
    }
    conjuncts
}

/// The list or map over which a macro iterates, by the index of each node that uses the macro's variable.
#[derive(Debug, Default)]
pub(super) struct Elements(HashMap<usize, ExprId>);

impl Elements {
    pub(super) fn new(ast: &Ast) -> Self {
        let mut lists = HashMap::new();
        if ast.len() > MAX_NODES {
            return Self::default();
        }
        let folds = ast.iter().filter_map(|(_, expr)| match expr {
            Expr::Comprehension(fold) if fold.iter_var2.is_none() => Some(fold),
            _ => None,
        });
        // Outer macros have higher ids, so the reverse order visits them first. If an inner macro declares the variable
        // name of an outer macro, the list of the inner macro replaces the list of the outer macro.
        let folds: Vec<_> = folds.collect();
        for fold in folds.into_iter().rev() {
            for id in ast.descendants(fold.loop_step) {
                if matches!(ast.expr(id), Expr::Ident(name) if *name == fold.iter_var) {
                    lists.insert(id.index(), fold.iter_range);
                }
            }
        }
        Self(lists)
    }

    /// Returns the list or map if `id` is a macro variable that denotes one of its elements or keys.
    pub(super) fn list(&self, id: ExprId) -> Option<ExprId> {
        self.0.get(&id.index()).copied()
    }

    /// Returns the name of the field that the string `id` comes from: `image` for `c.image.lowerAscii()`, and `hosts` for
    /// an element of `object.spec.?hosts.orValue([])`.
    pub(super) fn field<'a>(&self, ast: &'a Ast, mut id: ExprId) -> Option<&'a str> {
        for _ in 0..MAX_LISTS {
            match ast.expr(id) {
                Expr::Call {
                    function,
                    target: Some(target),
                    ..
                } if matches!(
                    &**function,
                    "orValue" | "lowerAscii" | "upperAscii" | "trim" | "value"
                ) =>
                {
                    id = *target;
                    continue;
                }
                Expr::Call {
                    function,
                    target: None,
                    args,
                } if &**function == "_+_" => {
                    id = *args.first()?;
                    continue;
                }
                _ => {}
            }
            let attribute = Attribute::new(ast, id);
            if let Some(qualifier) = attribute
                .qualifiers
                .iter()
                .rev()
                .find_map(|it| it.key.name())
            {
                return Some(qualifier);
            }
            id = self.list(attribute.operand)?;
        }
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringTestKind {
    Equals,
    Differs,
    In,
    StartsWith,
    EndsWith,
    Contains,
}

/// A comparison of a string with literals.
#[derive(Clone, Debug)]
pub(super) struct StringTest<'a> {
    pub(super) kind: StringTestKind,
    pub(super) subject: ExprId,
    /// The literals, with their nodes. For `In`, these are the list elements that are literals.
    pub(super) literals: Vec<(ExprId, &'a str)>,
}

impl StringTest<'_> {
    /// Returns the end of a message: the result of the test if `literal` never matches.
    pub(super) fn result_of_mismatch(&self, literal: &str) -> String {
        match (self.kind, self.literals.len()) {
            (StringTestKind::Differs, _) => "this is always true".to_owned(),
            (StringTestKind::In, 2..) => format!("`{literal}` never matches"),
            _ => "this is always false".to_owned(),
        }
    }
}

/// Returns the test if `id` compares a string with literals. `None` for other expressions.
pub(super) fn string_test(ast: &Ast, id: ExprId) -> Option<StringTest<'_>> {
    let text = |id: ExprId| Some((id, path::string(ast.expr(id))?));
    if let Some(("@in", [subject, list])) = ast.global_call(id) {
        let Expr::List { elements, .. } = ast.expr(*list) else {
            return None;
        };
        return Some(StringTest {
            kind: StringTestKind::In,
            subject: *subject,
            literals: elements.iter().filter_map(|id| text(*id)).collect(),
        });
    }
    if let Some((operator, left, right)) = path::operands(ast, id) {
        let kind = match operator {
            Operator::Equal => StringTestKind::Equals,
            Operator::NotEqual => StringTestKind::Differs,
            _ => return None,
        };
        let (subject, literal) = match (text(left), text(right)) {
            (None, Some(literal)) => (left, literal),
            (Some(literal), None) => (right, literal),
            _ => return None,
        };
        return Some(StringTest {
            kind,
            subject,
            literals: vec![literal],
        });
    }
    let Expr::Call {
        function,
        target: Some(subject),
        args,
    } = ast.expr(id)
    else {
        return None;
    };
    let kind = match &**function {
        "startsWith" => StringTestKind::StartsWith,
        "endsWith" => StringTestKind::EndsWith,
        "contains" => StringTestKind::Contains,
        _ => return None,
    };
    let [argument] = &**args else { return None };
    Some(StringTest {
        kind,
        subject: *subject,
        literals: vec![text(*argument)?],
    })
}
