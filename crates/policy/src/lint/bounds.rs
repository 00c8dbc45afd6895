//! Finds contradictory comparisons such as `a < 1 && a > 2` or `a in ['x'] && a == 'y'`, and exhaustive ones such as
//! `a > 1 || a < 2`. Also finds contradictory tests such as `a.startsWith('x') && a.startsWith('y')`.

use std::collections::BTreeMap;

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;

use super::Lint;
use super::path::{self, Comparison, Operator};
use super::positions::conjuncts;
use super::texts::{self, Contradiction, TestResult};
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::rule::Rule;

/// Maximum number of checked operands in a chain of `&&` or `||`.
const MAX_OPERANDS: usize = 256;

/// A chain of `&&` or `||` whose result is constant.
#[derive(Debug, PartialEq)]
pub(super) struct Constant {
    /// The first operand that, together with the operands before it, makes the chain constant.
    pub(super) at: ExprId,
    /// The index of the operand `at` in the chain.
    n: usize,
    /// The constant result of the chain.
    pub(super) value: bool,
    /// The path that the operands compare.
    pub(super) path: String,
    /// True if the author may have meant the other operator, `||` for `&&` or the reverse.
    pub(super) may_mean_other_operator: bool,
}

/// Returns the chains of `&&` and `||` in `ast` whose result is constant.
pub(super) fn constants(ast: &Ast) -> Vec<Constant> {
    let mut constants = Vec::new();
    for (function, operands) in chains(ast) {
        let operands: Vec<_> = operands.into_iter().map(|id| (ast, id)).collect();
        constants.extend(constant(&operands, function == "_||_"));
    }
    constants
}

/// Returns the outermost chains of `&&` and `||` in `ast`, each with its operands. Chains with more than `MAX_OPERANDS`
/// operands are left out.
pub(super) fn chains(ast: &Ast) -> Vec<(&str, Vec<ExprId>)> {
    let mut chains = Vec::new();
    let mut inner = vec![false; ast.len()];
    // Parents have higher ids than their operands, so the reverse order visits parents first.
    let ids: Vec<ExprId> = ast.iter().map(|(id, _)| id).collect();
    for id in ids.into_iter().rev() {
        let Some(function) = logical(ast, id) else {
            continue;
        };
        if inner.get(id.index()).copied().unwrap_or(true) {
            continue;
        }
        let mut operands = Vec::new();
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            match ast.expr(next) {
                Expr::Call {
                    function: other,
                    target: None,
                    args,
                } if **other == *function && operands.len() <= MAX_OPERANDS => {
                    if let Some(inner) = inner.get_mut(next.index()) {
                        *inner = true;
                    }
                    open.extend(args.iter().rev());
                }
                _ => operands.push(next),
            }
        }
        if operands.len() <= MAX_OPERANDS {
            chains.push((function, operands));
        }
    }
    chains
}

/// Returns a lint if no request passes two of the validations of `policy`, as with `a > 5` and `a < 3`.
pub(super) fn contradictory_validations(policy: &CompiledPolicy) -> Option<Lint> {
    let expressions = policy.expressions().iter().enumerate();
    let validations = expressions.filter_map(|(n, expression)| {
        let is_checked = expression.role == Role::Validation && policy.compiles(n);
        Some((
            expression,
            &**expression.parsed().ok().filter(|_| is_checked)?,
        ))
    });
    let mut operands: Vec<(&Ast, ExprId)> = Vec::new();
    let mut of_operand = Vec::new();
    for (expression, ast) in validations {
        for id in conjuncts(ast, ast.root()) {
            operands.push((ast, id));
            of_operand.push(expression);
        }
        if operands.len() > MAX_OPERANDS {
            return None;
        }
        let Some(contradiction) = constant(&operands, false) else {
            continue;
        };
        // A contradiction within one validation has a finding of its own, so it is not reported again.
        let own = operands.iter().zip(&of_operand);
        let own = own.filter(|(_, other)| std::ptr::eq(**other, expression));
        let own: Vec<_> = own.map(|(operand, _)| *operand).collect();
        if constant(&own, false).is_some() {
            return None;
        }
        let expression = of_operand.get(contradiction.n)?;
        return Some(Lint {
            rule: Rule::Lockout,
            field_ref: expression.field_ref.clone(),
            location: Some(SourceMap::new(&expression.text).location(ast.offset(contradiction.at))),
            message: format!(
                "another validation also tests `{}`, and no request passes both validations, so every request that \
                 the rules match \
                 is denied",
                contradiction.path
            ),
            fix: Some(
                "if one of the two tests suffices, write them in one validation with `||`".into(),
            ),
            is_harmless: false,
        });
    }
    None
}

fn logical(ast: &Ast, id: ExprId) -> Option<&str> {
    match ast.expr(id) {
        Expr::Call {
            function,
            target: None,
            ..
        } if matches!(&**function, "_&&_" | "_||_") => Some(function),
        _ => None,
    }
}

/// The constraints that the operands of a chain put on one path.
#[derive(Default)]
struct PathConstraints<'a> {
    /// The literal of the first operand `path == literal` in a chain of `&&`, or `path != literal` in a chain of `||`.
    one: Option<&'a Literal>,
    /// The literals of an operand `path in [literals]` in a chain of `&&`.
    among: Option<Vec<&'a Literal>>,
    /// The lower bound on the path, and true if it is inclusive. For a chain of `&&`, this is the tightest bound of all
    /// operands. For a chain of `||`, it is the widest.
    lower: Option<(f64, bool)>,
    /// The upper bound, represented like the lower bound.
    upper: Option<(f64, bool)>,
    /// The tests of the string at the path. Each test has the result that makes a chain of `&&` true, or a chain of
    /// `||` false.
    tests: Vec<TestResult<'a>>,
}

/// Returns the first operand that makes the chain constant. `None` if the result of the chain is not constant.
fn constant(operands: &[(&Ast, ExprId)], is_or: bool) -> Option<Constant> {
    let mut constraints: BTreeMap<String, PathConstraints<'_>> = BTreeMap::new();
    for (n, &(ast, at)) in operands.iter().enumerate() {
        if !is_or && let Some((path, literals)) = membership(ast, at) {
            let of_path = constraints.entry(path.clone()).or_default();
            let is_excluded = of_path.one.is_some_and(|one| excludes(&literals, one));
            of_path.among.get_or_insert(literals);
            if is_excluded {
                return Some(Constant {
                    at,
                    n,
                    value: false,
                    path,
                    may_mean_other_operator: true,
                });
            }
            continue;
        }
        if let Some((path, (test, is_true))) = texts::text_test(ast, at) {
            let result = (test, is_true != is_or);
            let of_path = constraints.entry(path.clone()).or_default();
            let mut tests = of_path.tests.iter();
            if let Some(found) = tests.find_map(|it| texts::contradiction(*it, result)) {
                return Some(Constant {
                    at,
                    n,
                    value: is_or,
                    path,
                    may_mean_other_operator: is_or || found == Contradiction::Exclusive,
                });
            }
            of_path.tests.push(result);
        }
        let Some(Comparison {
            path,
            operator,
            literal,
        }) = path::comparison(ast, at)
        else {
            continue;
        };
        let of_path = constraints.entry(path.clone()).or_default();
        let among = of_path.among.as_deref();
        let decided = match operator {
            Operator::Equal if !is_or && among.is_some_and(|it| excludes(it, literal)) => true,
            Operator::Equal if !is_or => differs(&mut of_path.one, literal),
            Operator::NotEqual if is_or => differs(&mut of_path.one, literal),
            Operator::Equal | Operator::NotEqual => false,
            _ => bounds(of_path, operator, literal, is_or),
        };
        if decided {
            return Some(Constant {
                at,
                n,
                value: is_or,
                path,
                // If one operand requires `true` and the other operand requires `false`, the result is constant with
                // `&&` and with `||`, so the author cannot have meant the other operator.
                may_mean_other_operator: !matches!(literal, Literal::Bool(_)),
            });
        }
    }
    None
}

/// Returns the path and the literals of an expression `path in [literals]`.
fn membership(ast: &Ast, id: ExprId) -> Option<(String, Vec<&Literal>)> {
    let (function, [item, list]) = ast.global_call(id)? else {
        return None;
    };
    let Expr::List { elements, .. } = ast.expr(*list) else {
        return None;
    };
    let literals = elements.iter().map(|id| match ast.expr(*id) {
        Expr::Literal(literal) => Some(literal),
        _ => None,
    });
    let literals: Option<Vec<&Literal>> = literals.collect();
    Some((
        path::path(ast, *item).filter(|_| function == "@in")?,
        literals?,
    ))
}

/// Returns true if all `literals` have the type of `one`, and none is equal to it.
fn excludes(literals: &[&Literal], one: &Literal) -> bool {
    literals.iter().all(|literal| is_other(literal, one))
}

/// Returns true if an earlier operand compares the path with a different literal.
fn differs<'a>(seen: &mut Option<&'a Literal>, literal: &'a Literal) -> bool {
    match seen {
        Some(first) => is_other(first, literal),
        None => {
            *seen = Some(literal);
            false
        }
    }
}

/// Returns true if the literals have the same type and different values.
fn is_other(left: &Literal, right: &Literal) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right) && left != right
}

/// Adds a bound. Returns true if the bounds now exclude every value in a chain of `&&`, or include every value in a
/// chain of `||`.
fn bounds(
    constraints: &mut PathConstraints<'_>,
    operator: Operator,
    literal: &Literal,
    is_or: bool,
) -> bool {
    let Some(value) = number(literal) else {
        return false;
    };
    let includes = matches!(operator, Operator::LessOrEqual | Operator::GreaterOrEqual);
    let is_lower = matches!(operator, Operator::Greater | Operator::GreaterOrEqual);
    let bound = if is_lower {
        &mut constraints.lower
    } else {
        &mut constraints.upper
    };
    // Keeps the tighter bound for a chain of `&&`, and the wider bound for a chain of `||`.
    let is_further = bound.is_none_or(|(before, _)| (value > before) == (is_lower != is_or));
    if is_further {
        *bound = Some((value, includes));
    }
    let (Some((lower, at_lower)), Some((upper, at_upper))) = (constraints.lower, constraints.upper)
    else {
        return false;
    };
    let is_at = (lower - upper).abs() < f64::EPSILON;
    if is_or {
        lower < upper || is_at && (at_lower || at_upper)
    } else {
        lower > upper || is_at && !(at_lower && at_upper)
    }
}

/// Returns a numeric literal as `f64`. `None` for other types, and for numbers that are not exact as `f64`.
#[expect(clippy::cast_precision_loss, reason = "larger numbers are left out")]
fn number(literal: &Literal) -> Option<f64> {
    /// Integers below this limit are exact as `f64`.
    const EXACT: u64 = 1 << 53;
    match literal {
        Literal::Int(value) if value.unsigned_abs() < EXACT => Some(*value as f64),
        Literal::Uint(value) if *value < EXACT => Some(*value as f64),
        Literal::Double(value) if value.is_finite() => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<(bool, &str)>) {
        let (ast, _) = cel::syntax::parse(text);
        let ast = ast.unwrap();
        let all = constants(&ast);
        let actual = all
            .first()
            .map(|constant| (constant.value, constant.path.as_str()));
        assert_eq!(actual, expect, "{text}");
    }

    #[test]
    fn contradictory_bounds_are_found() {
        let x = "object.spec.x";
        let no = Some((false, x));
        let yes = Some((true, x));
        check("object.spec.x > 5 && object.spec.x < 3", no);
        check("object.spec.x > 5 && true && 5 >= object.spec.x", no);
        check("object.spec.x == 'a' && object.spec.x == 'b'", no);
        check("object.spec.x != 'a' || object.spec.x != 'b'", yes);
        check("object.spec.x <= 5 || object.spec.x >= 5", yes);
        check("object.spec.x < 5 || object.spec.x > 3", yes);
        check("5 < object.spec.x && 3 > object.spec.x", no);
        check("5 <= object.spec.x && 3 >= object.spec.x", no);
        check("5 >= object.spec.x || 5 <= object.spec.x", yes);
        check("object.spec.x > 5u && object.spec.x < 3u", no);
        check("object.spec.x > 2.5 && object.spec.x < 2.4", no);
        check("object.spec.x > 5 && object.spec.x < 5", no);
        check("object.spec.x >= 5 && object.spec.x < 5", no);
        check("object.spec.x > 5 && object.spec.x <= 5", no);
        check("object.spec.x < 5 || object.spec.x >= 5", yes);
        check(
            "object.spec.x > 1 && object.spec.x > 9 && object.spec.x < 7",
            no,
        );
        check(
            "object.spec.x > 9 && object.spec.x > 1 && object.spec.x < 7",
            no,
        );
        check(
            "object.spec.x < 1 || object.spec.x < 9 || object.spec.x > 7",
            yes,
        );
        check(
            "object.spec.x < 9 || object.spec.x < 1 || object.spec.x > 7",
            yes,
        );
        check("[1].all(i, object.spec.x != 1 || object.spec.x != 2)", yes);
        check("object.spec.x in ['a', 'b'] && object.spec.x == 'c'", no);
        check("object.spec.x == 'c' && object.spec.x in ['a', 'b']", no);
    }

    #[test]
    fn contradictory_bounds_of_sizes_are_found() {
        let no = Some((false, "object.a.size()"));
        let yes = Some((true, "object.a.size()"));
        check("object.a.size() > 5 && object.a.size() < 5", no);
        check("size(object.a) > 5 && object.a.size() <= 5", no);
        check("size(object.a) == 1 && size(object.a) == 2", no);
        check("size(object.a) >= 5 || object.a.size() < 6", yes);
        check("size(object.a) > 5 && size(object.b) < 5", None);
        check("size(object.a) > 5 && object.a < 5", None);
        check("size(object.a) > 5 && object.a.size() < 7", None);
        check("[object.a].size() > 5 && [object.a].size() < 5", None);
    }

    #[test]
    fn contradictory_tests_of_strings_are_found() {
        let no = Some((false, "c.image"));
        let yes = Some((true, "c.image"));
        check("c.image.startsWith('a/') && c.image.startsWith('b/')", no);
        check(
            "!c.image.startsWith('a/') || !c.image.startsWith('b/')",
            yes,
        );
        check("c.image != 'a' || !c.image.startsWith('b')", yes);
        check("c.image.endsWith(':latest') && !c.image.contains(':')", no);
        check("!c.image.endsWith(':latest') || c.image.contains(':')", yes);
        check("c.image.contains(':') && c.image == 'a'", no);
        check("c.image == 'a:b' && !c.image.contains(':')", no);
        check("c.image != 'a' && true && c.image == 'a'", no);
        for text in [
            "c.image.startsWith('a/') || c.image.startsWith('b/')",
            "!c.image.startsWith('a/') && !c.image.startsWith('b/')",
            "c.image.startsWith('a/') && c.image.startsWith('a/b/')",
            "c.image.startsWith('a/') && c.image.endsWith('b/')",
            "c.image.startsWith('a/') && c.image.contains('b/')",
            "c.image.startsWith('a/') && !c.image.startsWith('a/b/')",
            "!c.image.contains('@') && !c.image.endsWith(':latest')",
            "c.image.startsWith('a') && c.name.startsWith('b')",
            "c.image.contains('') && c.image != ''",
            "c.image.startsWith(x) && c.image.startsWith('b')",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn satisfiable_bounds_have_no_finding() {
        check("object.spec.x > 3 && object.spec.x < 5", None);
        check("object.spec.x >= 5 && object.spec.x <= 5", None);
        check("object.spec.x < 5 || object.spec.x > 5", None);
        check("3 < object.spec.x && 5 > object.spec.x", None);
        check("5 > object.spec.x || 5 < object.spec.x", None);
        check("object.spec.x > 2.4 && object.spec.x < 2.5", None);
        check("object.spec.?x > 5 && object.spec.?x < 3", None);
        check("object.spec[a] > 5 && object.spec[a] < 3", None);
        check(
            "has(object.spec.x) == true && has(object.spec.x) == false",
            None,
        );
        // These integers are not exact as doubles.
        check(
            "object.spec.x > 9007199254740993 && object.spec.x < 9007199254740993",
            None,
        );
        check(
            "object.spec.x > 1 || object.spec.x > 9 || object.spec.x < 1",
            None,
        );
        check("object.spec.x < 3 || object.spec.x > 5", None);
        check("object.spec.x == 'a' || object.spec.x == 'b'", None);
        check("object.spec.x != 'a' && object.spec.x != 'b'", None);
        check("object.spec.x == 1 && object.spec.y == 2", None);
        check("object.spec.x in ['a', 'b'] && object.spec.x == 'b'", None);
        check("object.spec.x in ['a', 'b'] || object.spec.x == 'c'", None);
        check("object.spec.x in [1, 2] && object.spec.x == 'c'", None);
        check(
            "object.spec.x in object.spec.y && object.spec.x == 'c'",
            None,
        );
        check("object.spec.x == 1 && object.spec.x == 1", None);
        check("object.spec.x == 1 && object.spec.x == 1.0", None);
        check("object.spec.x.f() == 1 && object.spec.x.f() == 2", None);
        check("object.a.all(i, i == 1) && object.b.all(i, i == 2)", None);
        check(
            "object.spec.x > 5 || object.spec.x == 3 && object.spec.x < 4",
            None,
        );
    }
}
