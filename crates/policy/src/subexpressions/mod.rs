//! Lists the subexpressions whose values are shown to users, in source order. Nodes that only exist because of a macro
//! expansion are omitted.

pub mod conditions;
mod counterfactuals;
mod nearest;

use std::fmt::Write as _;

use cel::ast::{Ast, Comprehension, Expr, ExprId, Literal};

pub use counterfactuals::{Counterfactuals, Variables, counterfactuals, deciding_element};
pub use nearest::keep_nearest;

/// Maximum length of a subexpression's source, in characters.
const MAX_TEXT: usize = 100;

/// Maximum nesting of subexpressions.
const MAX_DEPTH: usize = 60;

/// A subexpression whose value is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subexpression {
    /// The node in the AST.
    pub id: ExprId,
    /// The source. It is generated from the AST, and cut if it is long.
    pub text: String,
    /// The nesting depth. It is 0 for the whole expression.
    pub depth: usize,
    /// The role of the subexpression in its parent.
    pub role: SubexpressionRole,
}

/// The role of a subexpression in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubexpressionRole {
    /// The whole expression, which has no parent.
    Whole,
    /// An operand of `&&` or `||`.
    Term,
    /// The condition of `?:`.
    Condition,
    /// The condition that a macro evaluates for each element.
    Test,
    /// Any other role.
    Other,
}

/// Returns the condition that a macro evaluates for each element, and true for `all` or false for `exists`. `None` for
/// other macros.
pub(crate) fn quantifier(ast: &Ast, fold: &Comprehension) -> Option<(bool, ExprId)> {
    let Expr::Call { function, args, .. } = ast.expr(fold.loop_step) else {
        return None;
    };
    let [accu, test] = &**args else {
        return None;
    };
    let is_accu = matches!(ast.expr(*accu), Expr::Ident(name) if **name == *fold.accu_var);
    let is_all = match &**function {
        "_&&_" => true,
        "_||_" => false,
        _ => return None,
    };
    is_accu.then_some((is_all, *test))
}

/// Returns the subexpressions of `ast`. The first is the whole expression.
#[must_use]
pub fn subexpressions(ast: &Ast) -> Vec<Subexpression> {
    let mut subexpressions = Vec::new();
    walk(
        ast,
        ast.root(),
        (0, SubexpressionRole::Whole),
        &mut subexpressions,
    );
    subexpressions
}

fn walk(
    ast: &Ast,
    id: ExprId,
    (depth, role): (usize, SubexpressionRole),
    subexpressions: &mut Vec<Subexpression>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let is_shown = !matches!(ast.expr(id), Expr::Literal(_) | Expr::Unspecified);
    if is_shown {
        subexpressions.push(Subexpression {
            id,
            text: text(ast, id),
            depth,
            role,
        });
    }
    let below = |id, role| (id, role);
    let children: Vec<(ExprId, SubexpressionRole)> = match ast.expr(id) {
        Expr::Call {
            function,
            target,
            args,
        } => {
            let all = target.iter().chain(&**args).copied();
            match (&**function, &**args) {
                ("_&&_" | "_||_", _) => all.map(|id| below(id, SubexpressionRole::Term)).collect(),
                ("_?_:_", [condition, truthy, falsy]) => vec![
                    below(*condition, SubexpressionRole::Condition),
                    below(*truthy, SubexpressionRole::Other),
                    below(*falsy, SubexpressionRole::Other),
                ],
                _ => all.map(|id| below(id, SubexpressionRole::Other)).collect(),
            }
        }
        // A path such as `object.spec` is listed as a whole, without its operands.
        Expr::Select { operand, .. } if ast.qualified_name(*operand).is_none() => {
            vec![below(*operand, SubexpressionRole::Other)]
        }
        Expr::List { elements, .. } => {
            let elements = elements.iter();
            elements
                .map(|id| below(*id, SubexpressionRole::Other))
                .collect()
        }
        Expr::Map(entries) => {
            let entries = entries.iter();
            entries
                .map(|entry| below(entry.value, SubexpressionRole::Other))
                .collect()
        }
        Expr::Struct { fields, .. } => {
            let fields = fields.iter();
            fields
                .map(|field| below(field.value, SubexpressionRole::Other))
                .collect()
        }
        Expr::Comprehension(fold) => {
            let mut below = vec![below(fold.iter_range, SubexpressionRole::Other)];
            let is_accu =
                |id: ExprId| matches!(ast.expr(id), Expr::Ident(name) if *name == fold.accu_var);
            if let Expr::Call { function, args, .. } = ast.expr(fold.loop_step) {
                // An operand that mentions the accumulator is part of the macro's expansion. The other operands are the
                // condition or the collected value.
                let role = match &**function {
                    "_&&_" | "_||_" | "_?_:_" => SubexpressionRole::Test,
                    _ => SubexpressionRole::Other,
                };
                let tests = args.iter().filter(|id| !is_accu(**id));
                let tests = tests.filter(|id| !mentions(ast, **id, &fold.accu_var, 0));
                below.extend(tests.map(|id| match ast.expr(*id) {
                    // The macro expansion wraps the collected value in a list.
                    Expr::List { elements, .. } if role == SubexpressionRole::Other => {
                        (elements.first().copied().unwrap_or(*id), role)
                    }
                    _ => (*id, role),
                }));
            }
            below
        }
        _ => Vec::new(),
    };
    for (id, role) in children {
        walk(ast, id, (depth + 1, role), subexpressions);
    }
}

fn mentions(ast: &Ast, id: ExprId, name: &str, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return true;
    }
    if matches!(ast.expr(id), Expr::Ident(ident) if **ident == *name) {
        return true;
    }
    let mut is_mentioned = false;
    let mut look = |child| is_mentioned |= mentions(ast, child, name, depth + 1);
    match ast.expr(id) {
        // All macros use the same accumulator name, so the body of an inner macro cannot mention the outer accumulator.
        Expr::Comprehension(fold) if *fold.accu_var == *name => {
            look(fold.iter_range);
            look(fold.accu_init);
        }
        _ => ast.for_each_child(id, look),
    }
    is_mentioned
}

/// Returns the source of the subexpression `id`. It is generated from the AST, and cut if it is long.
#[must_use]
pub fn text(ast: &Ast, id: ExprId) -> String {
    let mut out = String::new();
    write(ast, id, &mut out, 0);
    if out.chars().count() > MAX_TEXT {
        let mut short: String = out.chars().take(MAX_TEXT).collect();
        short.push('…');
        return short;
    }
    out
}

fn write(ast: &Ast, id: ExprId, out: &mut String, depth: usize) {
    if depth > MAX_DEPTH || out.len() > MAX_TEXT * 4 {
        out.push('…');
        return;
    }
    match ast.expr(id) {
        Expr::Unspecified => out.push('…'),
        Expr::Literal(literal) => write_literal(literal, out),
        Expr::Ident(name) => out.push_str(name),
        Expr::Select {
            operand,
            field,
            test_only,
        } => {
            out.push_str(if *test_only { "has(" } else { "" });
            operand_of(ast, *operand, out, depth);
            out.push('.');
            out.push_str(field);
            out.push_str(if *test_only { ")" } else { "" });
        }
        Expr::List { elements, .. } => {
            out.push('[');
            write_list(ast, elements, out, depth);
            out.push(']');
        }
        Expr::Map(_) => out.push_str("{…}"),
        Expr::Struct { type_name, .. } => {
            out.push_str(type_name);
            out.push_str("{…}");
        }
        Expr::Comprehension(fold) => {
            let name = ast.macros().iter().find(|call| call.at == id);
            operand_of(ast, fold.iter_range, out, depth);
            out.push('.');
            out.push_str(name.map_or("…", |call| &call.function));
            out.push('(');
            out.push_str(&fold.iter_var);
            out.push_str(", …)");
        }
        Expr::Call {
            function,
            target,
            args,
        } => write_call(ast, (function, *target, args), out, depth),
    }
}

fn write_list(ast: &Ast, ids: &[ExprId], out: &mut String, depth: usize) {
    for (n, id) in ids.iter().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        write(ast, *id, out, depth + 1);
    }
}

fn write_literal(literal: &Literal, out: &mut String) {
    match literal {
        Literal::Null => out.push_str("null"),
        Literal::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Literal::Int(value) => out.push_str(&value.to_string()),
        Literal::Uint(value) => {
            let _ = write!(out, "{value}u");
        }
        Literal::Double(value) => {
            let _ = write!(out, "{value:?}");
        }
        Literal::String(text) => {
            let escaped = text.replace('\\', "\\\\").replace('\'', "\\'");
            out.push('\'');
            out.push_str(&escaped.replace('\n', "\\n"));
            out.push('\'');
        }
        Literal::Bytes(_) => out.push_str("b'…'"),
    }
}

fn write_call(
    ast: &Ast,
    (function, target, args): (&str, Option<ExprId>, &[ExprId]),
    out: &mut String,
    depth: usize,
) {
    match (function, target, args) {
        ("_?_:_", None, [condition, truthy, falsy]) => {
            operand_of(ast, *condition, out, depth);
            out.push_str(" ? ");
            operand_of(ast, *truthy, out, depth);
            out.push_str(" : ");
            operand_of(ast, *falsy, out, depth);
        }
        ("_[_]" | "_[?_]", None, [operand, index]) => {
            operand_of(ast, *operand, out, depth);
            out.push_str(if function == "_[_]" { "[" } else { "[?" });
            write(ast, *index, out, depth + 1);
            out.push(']');
        }
        ("_?._", None, [operand, field]) => {
            operand_of(ast, *operand, out, depth);
            out.push_str(".?");
            match ast.expr(*field) {
                Expr::Literal(Literal::String(name)) => out.push_str(name),
                _ => out.push('…'),
            }
        }
        ("!_" | "-_", None, [arg]) => {
            out.push_str(function.trim_end_matches('_'));
            operand_of(ast, *arg, out, depth);
        }
        (operator, None, args) if operator.starts_with('_') || operator == "@in" => {
            let word = match operator {
                "@in" | "_in_" => "in",
                other => other.trim_matches('_'),
            };
            for (n, arg) in args.iter().enumerate() {
                if n > 0 {
                    out.push(' ');
                    out.push_str(word);
                    out.push(' ');
                }
                operand_of(ast, *arg, out, depth);
            }
        }
        (name, target, args) => {
            if let Some(target) = target {
                operand_of(ast, target, out, depth);
                out.push('.');
            }
            out.push_str(name);
            out.push('(');
            write_list(ast, args, out, depth);
            out.push(')');
        }
    }
}

/// Writes an operand. An operand that is itself an operation is put in parentheses.
fn operand_of(ast: &Ast, id: ExprId, out: &mut String, depth: usize) {
    let is_operation = matches!(
        ast.expr(id),
        Expr::Call { function, target: None, args }
            if args.len() > 1
                && (function.starts_with('_') || **function == *"@in")
                && !matches!(&**function, "_[_]" | "_[?_]" | "_?._")
    );
    if is_operation {
        out.push('(');
    }
    write(ast, id, out, depth + 1);
    if is_operation {
        out.push(')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cel::syntax;

    #[track_caller]
    fn check(expression: &str, expected: &[(&str, SubexpressionRole)]) {
        let (ast, _) = syntax::parse(expression);
        let ast = ast.unwrap();
        let actual = subexpressions(&ast);
        let actual: Vec<(&str, SubexpressionRole)> = actual
            .iter()
            .map(|part| (part.text.as_str(), part.role))
            .collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn subexpressions_exclude_nodes_of_macro_expansions() {
        check(
            "a.b == 1 && has(a.c)",
            &[
                ("(a.b == 1) && has(a.c)", SubexpressionRole::Whole),
                ("a.b == 1", SubexpressionRole::Term),
                ("a.b", SubexpressionRole::Other),
                ("has(a.c)", SubexpressionRole::Term),
            ],
        );
        check(
            "a.all(x, x.b ? !x.c : 'd' in x)",
            &[
                ("a.all(x, …)", SubexpressionRole::Whole),
                ("a", SubexpressionRole::Other),
                ("x.b ? !x.c : ('d' in x)", SubexpressionRole::Test),
                ("x.b", SubexpressionRole::Condition),
                ("!x.c", SubexpressionRole::Other),
                ("x.c", SubexpressionRole::Other),
                ("'d' in x", SubexpressionRole::Other),
                ("x", SubexpressionRole::Other),
            ],
        );
        check(
            "a.all(x, x.b.exists(y, y))",
            &[
                ("a.all(x, …)", SubexpressionRole::Whole),
                ("a", SubexpressionRole::Other),
                ("x.b.exists(y, …)", SubexpressionRole::Test),
                ("x.b", SubexpressionRole::Other),
                ("y", SubexpressionRole::Test),
            ],
        );
        check(
            "a.map(x, [x.b])",
            &[
                ("a.map(x, …)", SubexpressionRole::Whole),
                ("a", SubexpressionRole::Other),
                ("[x.b]", SubexpressionRole::Other),
                ("x.b", SubexpressionRole::Other),
            ],
        );
    }

    #[test]
    fn literals_are_written_as_in_source() {
        for text in [
            "[1u]",
            "[1.5]",
            "[2.0]",
            "[-3]",
            "[true, false, null]",
            "['a', 'it\\'s', 'a\\\\b', 'a\\nb']",
        ] {
            check(text, &[(text, SubexpressionRole::Whole)]);
        }
        check("[b'ab']", &[("[b'…']", SubexpressionRole::Whole)]);
        check(
            "a[b] + -c",
            &[
                ("a[b] + -c", SubexpressionRole::Whole),
                ("a[b]", SubexpressionRole::Other),
                ("a", SubexpressionRole::Other),
                ("b", SubexpressionRole::Other),
                ("-c", SubexpressionRole::Other),
                ("c", SubexpressionRole::Other),
            ],
        );
    }
}
