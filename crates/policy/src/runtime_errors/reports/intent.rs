//! Finds expressions in which a default or a guard would have an effect that the author probably does not intend.

use cel::ast::{Ast, Comprehension, Expr, ExprId, Literal};
use cel::source::SourceMap;

use super::candidates::Candidate;
use super::guard::{self, OptionalChain};
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::lint::path::with_literal;
use crate::reads;
use crate::subexpressions::conditions::chain_range;
use crate::subexpressions::{self, quantifier};
use crate::suggestion::Effect;

/// Fields that add something to the object. If such a field is absent, a policy has nothing to check.
const ADDITIVE: [&str; 20] = [
    "add",
    "annotations",
    "binaryData",
    "data",
    "env",
    "envFrom",
    "ephemeralContainers",
    "externalIPs",
    "finalizers",
    "hostAliases",
    "initContainers",
    "labels",
    "resourceClaims",
    "stringData",
    "subjects",
    "sysctls",
    "tolerations",
    "volumeDevices",
    "volumeMounts",
    "volumes",
];

/// Maximum length, in bytes, of the code after a chain. Advice does not repeat longer code.
const MAX_REST: usize = 60;

/// Maximum nesting of searched conditions.
const MAX_DEPTH: usize = 50;

/// Returns true if the expression requires something of each element of the list or map `id`, with `all(x, condition)`
/// or `!exists(x, !condition)`.
///
/// Both are true for an empty list. The author of a prohibition, such as `object.spec.volumes.all(v, !has(v.nfs))`,
/// intends to allow empty lists. The author of a requirement, such as `object.spec.tls.all(t, t.secretName != '')`, may
/// intend to require at least one element.
pub(super) fn is_required(ast: &Ast, id: ExprId, field: Option<&str>) -> bool {
    let is_additive = field.is_some_and(|field| ADDITIVE.contains(&field));
    !is_additive
        && ast.iter().any(|(fold_id, expr)| match expr {
            Expr::Comprehension(fold) => {
                fold.iter_range == id && requires(ast, fold, is_negated(ast, fold_id))
            }
            _ => false,
        })
}

/// Returns true if the list or map `id` is the range of `!list.all(x, condition)`, which is false for a list without
/// elements.
///
/// In a match condition, the policy is therefore skipped if the list is empty. The author may have intended
/// `!list.exists(x, condition)`.
pub(super) fn is_negated_all(ast: &Ast, id: ExprId) -> bool {
    ast.iter().any(|(fold_id, expr)| match expr {
        Expr::Comprehension(fold) if fold.iter_range == id => {
            matches!(quantifier(ast, fold), Some((true, _))) && is_negated(ast, fold_id)
        }
        _ => false,
    })
}

/// Like [`is_required`], but for the value of a variable, in all expressions that read the variable.
pub(super) fn is_variable_required(
    policy: &CompiledPolicy,
    variable: &str,
    field: Option<&str>,
) -> bool {
    let asts = policy
        .expressions()
        .iter()
        .filter_map(|it| it.parsed().ok());
    let mut reads = asts.flat_map(|ast| ast.iter().map(move |(id, _)| (ast, id)));
    reads.any(|(ast, id)| {
        reads::variable(ast, id).is_some_and(|name| name == variable) && is_required(ast, id, field)
    })
}

/// Phrases in messages that require an explicit value, even if the default of an absent field is allowed.
const REQUESTS_OF_VALUES: [&str; 5] = [
    "explicit",
    "must set",
    "must be set",
    "must specify",
    "must be specified",
];

/// Returns true if the expression with index `n` is a validation whose message asks for an explicit value, as in
/// `privileged must be set to false`.
pub(super) fn asks_for_value(policy: &CompiledPolicy, n: usize) -> bool {
    let is_validation = |it: &&PolicyExpression| it.role == Role::Validation;
    let expressions = policy.expressions();
    if !expressions.get(n).as_ref().is_some_and(is_validation) {
        return false;
    }
    let n_before = expressions.iter().take(n).filter(is_validation).count();
    let validation = policy.policy().validations.get(n_before);
    let message = validation.and_then(|it| it.message.as_deref());
    let message = message.unwrap_or_default().to_lowercase();
    REQUESTS_OF_VALUES
        .iter()
        .any(|phrase| message.contains(phrase))
}

fn requires(ast: &Ast, fold: &Comprehension, is_negated: bool) -> bool {
    match quantifier(ast, fold) {
        Some((true, test)) => !is_negated && !prohibits(ast, test, 0),
        Some((false, test)) => is_negated && prohibits(ast, test, 0),
        None => false,
    }
}

/// Returns true if the node is within an odd number of negations.
fn is_negated(ast: &Ast, id: ExprId) -> bool {
    let negations = ast.iter().filter(|(negation, _)| {
        matches!(ast.global_call(*negation), Some(("!_", _)))
            && ast.descendants(*negation).contains(&id)
    });
    negations.count() % 2 == 1
}

/// Returns true if the condition prohibits something, or is true for elements that it does not concern.
fn prohibits(ast: &Ast, id: ExprId, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let is_prohibition = |id: &ExprId| prohibits(ast, *id, depth + 1);
    match (ast.global_call(id), ast.expr(id)) {
        (Some(("_||_", args)), _) => args.iter().any(is_prohibition),
        (Some(("_&&_", args)), _) => args.iter().all(is_prohibition),
        (Some(("!_" | "_<_" | "_<=_", _)), _) => true,
        // `x != ''` requires a value, so it prohibits nothing.
        (Some(("_!=_", args)), _) => !args.iter().any(|arg| is_empty(ast, *arg)),
        (Some(("_==_", args)), _) => args
            .iter()
            .any(|arg| matches!(ast.expr(*arg), Expr::Literal(Literal::Bool(false)))),
        (_, Expr::Comprehension(fold)) => {
            matches!(quantifier(ast, fold), Some((true, test)) if prohibits(ast, test, depth + 1))
        }
        _ => false,
    }
}

fn is_empty(ast: &Ast, id: ExprId) -> bool {
    match ast.expr(id) {
        Expr::Literal(Literal::String(text)) => text.is_empty(),
        Expr::Literal(Literal::Null) => true,
        Expr::Literal(Literal::Int(n)) => *n == 0,
        _ => false,
    }
}

/// Returns advice if the expression reads the chain only if its value is absent, as in `has(x) || x == 1` and `!has(x)
/// && x == 1`. `id` is the node that fails.
pub(super) fn inverted_guard(ast: &Ast, id: ExprId, chain: &OptionalChain) -> Option<String> {
    let texts = |id: ExprId| subexpressions::text(ast, id);
    ast.iter().find_map(|(_, expr)| {
        let Expr::Call { function, args, .. } = expr else {
            return None;
        };
        let [left, right] = &**args else { return None };
        let negation = match &**function {
            "_||_" => "",
            "_&&_" => "!",
            _ => return None,
        };
        let is_of = |test: &&String| {
            texts(*left) == format!("{negation}{test}") && ast.descendants(*right).contains(&id)
        };
        let test = chain.tests.iter().find(is_of)?;
        let operator = if negation.is_empty() { "||" } else { "&&" };
        Some(format!(
            "the test is inverted: `{negation}{test} {operator} ...` evaluates the rest only if the value is absent; write \
             `{test} && ...` to deny such requests, or `!{test} || ...` to allow them"
        ))
    })
}

/// Returns advice if `id` is the operand of a presence test, as `object.spec` is in `has(object.spec.a)`. The advice
/// adds presence tests for the parts of `id` that may be absent. A default for `id` would have to contain the tested
/// field.
pub(super) fn nested_test(ast: &Ast, id: ExprId, chain: &OptionalChain) -> Option<String> {
    let (test, field) = ast.iter().find_map(|(test, expr)| match expr {
        Expr::Select {
            operand,
            field,
            test_only: true,
        } if *operand == id => Some((test, field)),
        _ => None,
    })?;
    let tests = chain.tests.join(" && ");
    let text = format!("{tests} && has({}.{field})", chain.text);
    let is_operand = ast.iter().any(|(call, _)| {
        matches!(ast.global_call(call), Some((operator, args))
            if args.contains(&test) && !matches!(operator, "_&&_" | "_||_" | "_?_:_"))
    });
    Some(if is_operand {
        format!("write `({text})`")
    } else {
        format!("write `{text}`")
    })
}

/// Returns the operator and the number if the node `id` is compared with a literal. For a literal on the left, the operator
/// is flipped.
pub(super) fn compared_number(ast: &Ast, id: ExprId) -> Option<(&'static str, String)> {
    ast.iter().find_map(|(call, _)| {
        let (operator, operand, literal) = with_literal(ast, call)?;
        let number = match literal {
            Literal::Int(number) => number.to_string(),
            Literal::Uint(number) => number.to_string(),
            Literal::Double(number) => number.to_string(),
            _ => return None,
        };
        (operand == id).then(|| (operator.symbol(), number))
    })
}

/// Returns a new expression for a variable whose expression reads the chain `id`. The result of the new expression is
/// an optional: the optional chain itself, or a call of `optMap()` with the rest of the old expression.
pub(super) fn optional_variable(
    ast: &Ast,
    text: &str,
    id: ExprId,
    chain: &OptionalChain,
) -> String {
    let optional = &chain.optional_text;
    let rest = || {
        let of_chain = chain_range(ast, text, (chain.base, id))?;
        let rest = text.get(of_chain.end..)?.trim_end();
        let is_of_value = rest.starts_with('.') && of_chain.start == 0;
        let is_plain = !rest.contains("&&") && !rest.contains("||") && !rest.contains('\n');
        (is_of_value && is_plain && rest.len() <= MAX_REST).then_some(rest)
    };
    match rest() {
        Some(rest) => format!("{optional}.optMap(v, v{rest})"),
        None => optional.clone(),
    }
}

/// Returns advice if `id` is a value in a compared map literal, as in `list.map(c, {'args': c.args}) == ...`. If the
/// entries of both maps have optional values, each map omits the entries whose value is absent.
pub(super) fn optional_entry(ast: &Ast, id: ExprId, chain: &OptionalChain) -> Option<String> {
    let key = ast.iter().find_map(|(_, expr)| match expr {
        Expr::Map(entries) => {
            let mut entries = entries.iter();
            entries
                .find(|entry| entry.value == id)
                .map(|entry| entry.key)
        }
        _ => None,
    })?;
    let has_map = |side: &ExprId| {
        let mut nodes = ast.descendants(*side).into_iter();
        nodes.any(|id| matches!(ast.expr(id), Expr::Map(_)))
    };
    let is_compared = ast.iter().any(|(call, _)| match ast.global_call(call) {
        Some(("_==_" | "_!=_", sides)) => {
            ast.descendants(call).contains(&id) && sides.iter().all(has_map)
        }
        _ => false,
    });
    let key = subexpressions::text(ast, key);
    is_compared.then(|| {
        format!(
            "write `?{key}: {}` on both sides of the comparison: the entry is omitted if the value is absent",
            chain.optional_text
        )
    })
}

/// Proposes a presence test for the chain `id` in place of its comparison with null. `None` for other expressions, and
/// if the last selection of the chain always has a value.
pub(super) fn presence_test(
    ast: &Ast,
    text: &str,
    id: ExprId,
    chain: &OptionalChain,
) -> Option<Candidate> {
    let is_null = |id: ExprId| matches!(ast.expr(id), Expr::Literal(Literal::Null));
    let (is_equal, null) = ast
        .iter()
        .find_map(|(call, _)| match ast.global_call(call)? {
            (operator @ ("_==_" | "_!=_"), [left, right]) if [left, right].contains(&&id) => {
                let other = if *left == id { *right } else { *left };
                is_null(other).then_some((operator == "_==_", other))
            }
            _ => None,
        })?;
    (chain.test_nodes.last() == Some(&id)).then_some(())?;
    let test = match &*chain.tests {
        [only] => only.clone(),
        _ => format!("{}.hasValue()", chain.optional_text),
    };
    let test = if is_equal {
        guard::negated(&[test])
    } else {
        test
    };
    let of_chain = chain_range(ast, text, (chain.base, id))?;
    let source = SourceMap::new(text);
    let null = source.byte(source.location(ast.offset(null)))?;
    let bytes = of_chain.start.min(null)..of_chain.end.max(null + "null".len());
    Some(Candidate {
        shown: test.clone(),
        bytes,
        replacement: test,
        default: None,
        is_exact: true,
        intent: Some(Effect::Tested),
    })
}

/// Proposes optional selections on both sides of a comparison of `object` and `oldObject`. An absent value is then
/// equal only to another absent value. `id` is the chain with the absent value. `None` for other expressions.
pub(super) fn with_optional_sides(
    ast: &Ast,
    text: &str,
    id: ExprId,
    chain: &OptionalChain,
) -> Option<Candidate> {
    let (name, other_name) = match chain.base_name.as_str() {
        name @ "object" => (name, "oldObject"),
        name @ "oldObject" => (name, "object"),
        _ => return None,
    };
    let (left, right) = ast
        .iter()
        .find_map(|(call, _)| match ast.global_call(call)? {
            ("_==_" | "_!=_", [left, right]) if [left, right].contains(&&id) => {
                Some((*left, *right))
            }
            _ => None,
        })?;
    let other = if left == id { right } else { left };
    let counterpart = |text: &str| {
        text.strip_prefix(name)
            .map(|rest| format!("{other_name}{rest}"))
    };
    if counterpart(&subexpressions::text(ast, id))? != subexpressions::text(ast, other) {
        return None;
    }
    let of_chain = chain_range(ast, text, (chain.base, id))?;
    let of_other = chain_range(ast, text, (base(ast, other)?, other))?;
    let other_text = counterpart(&chain.optional_text)?;
    let (bytes, between, sides) = if left == id {
        let between = of_chain.end..of_other.start;
        (
            of_chain.start..of_other.end,
            between,
            (&chain.optional_text, &other_text),
        )
    } else {
        let between = of_other.end..of_chain.start;
        (
            of_other.start..of_chain.end,
            between,
            (&other_text, &chain.optional_text),
        )
    };
    let replacement = format!("{}{}{}", sides.0, text.get(between)?, sides.1);
    Some(Candidate {
        shown: replacement.clone(),
        bytes,
        replacement,
        default: None,
        is_exact: true,
        intent: Some(Effect::Compared),
    })
}

/// Returns the identifier at the start of a chain of selections and indices.
fn base(ast: &Ast, id: ExprId) -> Option<ExprId> {
    let mut node = id;
    for _ in 0..MAX_DEPTH {
        node = match ast.expr(node) {
            Expr::Ident(_) => return Some(node),
            Expr::Select { operand, .. } => *operand,
            Expr::Call { args, .. } => *args.first()?,
            _ => return None,
        };
    }
    None
}
