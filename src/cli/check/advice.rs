//! Hints about expressions that the API server rejects, derived from their syntax.

use std::ops::Range;

use super::rewrite::Proposal;
use super::tokens::{AND, RELATION, TokenText};
use crate::cel::ast::{Ast, Expr, ExprId, Literal};
use crate::cel::source::{Location, SourceMap};
use crate::cel::syntax;
use crate::cel::syntax::token::Kind;
use crate::cli::text::is_word;
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::{PolicyExpression, Role};
use crate::policy::reads::variable;
use crate::policy::rule::Rule;
use crate::version::KubernetesVersion;

/// Maximum length of source quoted in a hint, in bytes.
const MAX_SHOWN: usize = 100;

/// Maximum number of syntax nodes to parse in an argument of `has()`.
const MAX_NODES: usize = 1_000;

/// Maximum number of `has(` occurrences to examine before the location of an error.
const MAX_CALLS: usize = 20;

/// Returns a hint for the finding of `rule` at `location` of `expression`.
pub(super) fn advice(
    policy: &CompiledPolicy,
    expression: &PolicyExpression,
    (rule, location): (Rule, Location),
) -> Option<String> {
    match (rule, expression.parsed()) {
        (Rule::Syntax, Err(_)) => operator_word_advice(&expression.text, location),
        (Rule::NoMatchingOverload, Ok(ast)) => {
            let byte = SourceMap::new(&expression.text).byte(location)?;
            let offset = expression.text.get(..byte)?.chars().count();
            let is_at = |id: ExprId| usize::try_from(ast.offset(id)) == Ok(offset);
            if ast
                .macros()
                .iter()
                .any(|it| is_at(it.at) && &*it.function == "filter")
            {
                return Some(
                    "the condition of `filter()` must be a bool: add a comparison, or test with `has()` that a field is \
                     present"
                        .to_owned(),
                );
            }
            let mut at_location = ast.iter().filter(|(id, _)| is_at(*id));
            at_location.find_map(|(_, expr)| call_advice(policy, ast, expr))
        }
        (Rule::ResultType, Ok(ast)) => result_type_advice(expression, ast),
        (Rule::InvalidLiteral, Ok(ast)) => {
            let byte = SourceMap::new(&expression.text).byte(location)?;
            let offset = expression.text.get(..byte)?.chars().count();
            pattern_advice(ast, offset)
        }
        _ => None,
    }
}

/// Suggests the CEL operator for an operator of another language, such as `&&` for `and`, at the location of a syntax
/// error.
fn operator_word_advice(text: &str, location: Location) -> Option<String> {
    let (part, operator) = operator_correction(text, location)?;
    let wrong: String = text.chars().skip(part.start).take(part.len()).collect();
    Some(format!("write `{operator}` for `{}`", wrong.trim()))
}

/// Operators of other languages, each with the equivalent CEL operator.
const OPERATORS: [(&str, &str); 9] = [
    ("=<", "<="),
    ("=>", ">="),
    ("and", "&&"),
    ("or", "||"),
    ("===", "=="),
    ("!==", "!="),
    ("<>", "!="),
    ("&", "&&"),
    ("|", "||"),
];

/// Returns a hint for an expression whose lines YAML has joined, if the rest of the expression is now part of a `//`
/// comment. The syntax error is at `location`.
pub(super) fn comment_advice(text: &str, location: Location) -> Option<String> {
    let source = TokenText::new(text);
    let last = source.len().checked_sub(1)?;
    let end = source.bytes(&(last..last + 1))?.end;
    let comment = text.get(end..)?.trim_start();
    let is_at_end = SourceMap::new(text)
        .byte(location)
        .is_none_or(|at| at >= end);
    (is_at_end && comment.starts_with("//")).then(|| {
        "the YAML style `>` joins lines, so the rest of the expression becomes part of the comment: write `|` instead"
            .to_owned()
    })
}

/// Returns true if the text between the tokens `n - 1` and `n` is a bitwise operator, and one of its operands is a
/// number.
pub(super) fn is_bitwise(source: &TokenText<'_>, n: usize) -> bool {
    let between = || {
        let before = n.checked_sub(1)?;
        let (start, end) = (
            source.bytes(&(before..n))?.end,
            source.bytes(&(n..n + 1))?.start,
        );
        Some((before, source.text.get(start..end)?.trim()))
    };
    between().is_some_and(|(before, operator)| {
        let is_number = |n: usize| source.kind(n) == Some(Kind::Int);
        let is_operand = |n: usize| {
            let ends = source.kind(n).is_some_and(Kind::closes_bracket);
            ends || matches!(source.kind(n), Some(Kind::Int | Kind::Ident))
        };
        // In `a < 3 & b > 4`, `&` joins two comparisons, so it is not bitwise.
        let is_of_comparison = || {
            let is_compared = |side: Option<Range<usize>>| {
                let mut tokens = side.into_iter().flatten();
                tokens.any(|n| source.kind(n).is_some_and(|kind| kind.relation().is_some()))
            };
            is_compared(source.left(n, AND)) && is_compared(source.right(n, AND))
        };
        let is_logical = matches!(operator, "&" | "|") && is_of_comparison();
        matches!(operator, "&" | "|" | "^" | "<<" | ">>")
            && is_operand(before)
            && (is_number(before) || is_number(n))
            && !is_logical
    })
}

/// Returns the range, in code points, of an operator of another language at the location of a syntax error. Also
/// returns the CEL operator that replaces it.
pub(super) fn operator_correction(
    text: &str,
    location: Location,
) -> Option<(Range<usize>, &'static str)> {
    let byte = SourceMap::new(text).byte(location)?;
    // The parser reports the operator, a part of it, or the word after it.
    let is_symbol = |c: char| matches!(c, '=' | '!' | '<' | '>' | '&' | '|');
    let token = |at: usize| {
        let is_part: &dyn Fn(char) -> bool = match text.get(at..)?.chars().next()? {
            c if is_symbol(c) => &is_symbol,
            c if is_word(c) => &is_word,
            _ => return None,
        };
        let before = text.get(..at)?;
        let start = before.trim_end_matches(is_part).len();
        let rest = text.get(start..)?;
        let end = start + rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        Some(start..end)
    };
    let before = text.get(..byte)?.trim_end();
    let last = before.char_indices().next_back().map(|(at, _)| at);
    let after = text.get(byte..)?;
    let next = byte + (after.len() - after.trim_start().len());
    [Some(next), last].into_iter().flatten().find_map(|at| {
        let part = token(at)?;
        let word = text.get(part.clone())?;
        // The operator may be a part of a longer operator that CEL lacks, such as `+=` or `=~`.
        let is_other = |c: char| matches!(c, '+' | '-' | '*' | '/' | '%' | '~' | ':');
        let is_after = |c: char| matches!(c, '*' | '/' | '%' | '~');
        let rest = text.get(part.end..)?;
        if text.get(..part.start)?.ends_with(is_other) || rest.starts_with(is_after) {
            return None;
        }
        let operator = if word == "=" {
            "=="
        } else if matches!(word, "&" | "|") && is_bitwise_at(text, part.end) {
            return None;
        } else {
            let mut rows = OPERATORS.iter();
            rows.find(|(wrong, _)| word.eq_ignore_ascii_case(wrong))?.1
        };
        let offset = |byte: usize| Some(text.get(..byte)?.chars().count());
        Some((offset(part.start)?..offset(part.end)?, operator))
    })
}

/// Returns true if the operator that ends at byte `end` is bitwise.
fn is_bitwise_at(text: &str, end: usize) -> bool {
    let source = TokenText::new(text);
    let mut tokens = 0..source.len();
    let next = tokens.find(|n| {
        let bytes = source.bytes(&(*n..n + 1));
        bytes.is_some_and(|bytes| bytes.start >= end)
    });
    next.is_some_and(|n| is_bitwise(&source, n))
}

/// Suggests `['b-c']` for the key in `a.b-c`, which CEL parses as a subtraction. `name` is the operand at `location`,
/// here `c`.
pub(super) fn dashed_key_advice(text: &str, location: Location, name: &str) -> Option<String> {
    let byte = SourceMap::new(text).byte(location)?;
    let first = text.get(..byte)?.strip_suffix('-')?;
    let rest = text.get(byte..)?.strip_prefix(name)?;
    let end = rest
        .find(|c: char| !is_word(c) && c != '-')
        .unwrap_or(rest.len());
    let more = rest.get(..end)?;
    let parts = first.trim_end_matches(|c: char| is_word(c) || c == '-');
    let first = first.strip_prefix(parts)?;
    (parts.ends_with('.') && !first.is_empty() && first.len() <= MAX_SHOWN)
        .then(|| format!("write `['{first}-{name}{more}']` for a key with a dash"))
}

/// Suggests a replacement for a call of `has()` whose argument is not a field selection, such as `'b' in a` for
/// `has(a['b'])`.
pub(super) fn has_proposal(text: &str, location: Location) -> Option<Proposal> {
    let byte = SourceMap::new(text).byte(location)?;
    let argument = argument_of_has(text, byte)?;
    if argument.len() > MAX_SHOWN {
        return None;
    }
    let (ast, _) = syntax::parse_within(
        argument,
        KubernetesVersion::NEWEST.behavior().language,
        &mut MAX_NODES.clone(),
    );
    let ast = ast?;
    // `argument` is a slice of `text`, so the difference between their addresses is its byte offset.
    let start = argument.as_ptr() as usize - text.as_ptr() as usize;
    let replacement = |new: String| {
        let source = TokenText::new(text);
        let call = source.at(start - "has(".len())?;
        let tokens = call..source.close(call + 1)? + 1;
        let new = source.in_place_of(&tokens, new, RELATION);
        Some(Proposal::edit(source.bytes(&tokens)?, new))
    };
    let argument = argument.trim();
    match ast.expr(ast.root()) {
        Expr::Call {
            function,
            target: None,
            args,
        } if &**function == "_[_]" => {
            let [_, key] = &**args else { return None };
            let bracket = byte_of(argument, usize::try_from(ast.offset(ast.root())).ok()?)?;
            let container = argument.get(..bracket)?.trim();
            match ast.expr(*key) {
                Expr::Literal(Literal::Int(n)) => replacement(format!("size({container}) > {n}")),
                _ => {
                    let key = argument.get(bracket..)?.strip_prefix('[')?;
                    let key = key.trim_end().strip_suffix(']')?.trim();
                    replacement(format!("{key} in {container}"))
                }
            }
        }
        Expr::Call {
            function,
            target: None,
            ..
        } if &**function == "@in" => {
            let proposal = replacement(argument.to_owned())?;
            Some(Proposal {
                help: format!("remove has(): `{argument}` is already a test"),
                ..proposal
            })
        }
        Expr::Call {
            function,
            target: None,
            ..
        } if matches!(&**function, "_?._" | "_[?_]") => {
            replacement(format!("{argument}.hasValue()"))
        }
        // A label key without quotes, such as `labels.app.kubernetes.io/name`, which CEL parses as a division.
        Expr::Call {
            function,
            target: None,
            ..
        } if &**function == "_/_" => {
            let (map, key) = [".labels.", ".annotations."].into_iter().find_map(|map| {
                let (before, key) = argument.split_once(map)?;
                Some((format!("{before}{}", map.trim_end_matches('.')), key))
            })?;
            let is_of_key = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            let is_key = key.chars().all(is_of_key) && key.matches('/').count() == 1;
            is_key.then(|| replacement(format!("'{key}' in {map}")))?
        }
        // A path in quotes, as in `has('object.spec')`.
        Expr::Literal(Literal::String(path)) => {
            let is_of_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let is_path = path.contains('.') && path.chars().all(is_of_path);
            is_path.then(|| replacement(format!("has({path})")))?
        }
        Expr::Ident(name) => {
            // CRD rules and admission webhooks have other names for `oldObject` and `object`.
            let name = match &**name {
                "oldSelf" | "old" => "oldObject",
                "self" | "newObject" => "object",
                name => name,
            };
            Some(Proposal::hint(format!(
                "has() requires a field selection: write `{name} != null`"
            )))
        }
        _ => None,
    }
}

/// Returns the argument of the innermost call of `has()` that contains byte `at`. `None` if there is no such call, or
/// if the argument is too long.
fn argument_of_has(text: &str, at: usize) -> Option<&str> {
    const CALL: &str = "has(";
    let mut before = text.get(..at)?;
    // A call that ends before `at` does not contain it, so the search continues with the previous call.
    for _ in 0..MAX_CALLS {
        let open = before.rfind(CALL)? + CALL.len();
        if at - open > MAX_SHOWN {
            return None;
        }
        let end = end_of_argument(text, open)?;
        if at < end {
            return text.get(open..end);
        }
        before = before.get(..open - CALL.len())?;
    }
    None
}

/// Returns the byte offset of the parenthesis that closes the argument at byte `open`. `None` if the argument is too
/// long.
fn end_of_argument(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    for (n, c) in text.get(open..)?.char_indices().take(2 * MAX_SHOWN) {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if c == '\\' => is_escaped = true,
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None => match c {
                '\'' | '"' => quote = Some(c),
                '(' => depth += 1,
                ')' if depth == 0 => return Some(open + n),
                ')' => depth -= 1,
                _ => {}
            },
        }
    }
    None
}

/// Returns the byte offset of the code point with index `n`, or the end of the text.
pub(super) fn byte_of(text: &str, n: usize) -> Option<usize> {
    let starts = text.char_indices().map(|(byte, _)| byte);
    starts.chain([text.len()]).nth(n)
}

/// Suggests functions in place of operators on quantities, versions and optionals, such as `compareTo()` for `<`.
fn call_advice(policy: &CompiledPolicy, ast: &Ast, expr: &Expr) -> Option<String> {
    let Expr::Call {
        function,
        target,
        args,
    } = expr
    else {
        return None;
    };
    let mut operands = target.iter().chain(args);
    if let Some(operator) = comparison(function) {
        let constructor = operands.find_map(|id| comparable(policy, ast, *id))?;
        return Some(format!(
            "write `{constructor}(a).compareTo({constructor}(b)) {operator} 0`, or isLessThan() or isGreaterThan()"
        ));
    }
    match &**function {
        "_+_" | "_-_" if operands.any(|id| comparable(policy, ast, *id) == Some("quantity")) => {
            let name = if &**function == "_+_" { "add" } else { "sub" };
            Some(format!("write `quantity(a).{name}(quantity(b))`"))
        }
        "_*_" | "_/_" if operands.any(|id| comparable(policy, ast, *id) == Some("quantity")) => {
            Some(
                "quantities have no `*` and `/`: convert each with `asApproximateFloat()`, and compare the numbers"
                    .to_owned(),
            )
        }
        "_?_:_" | "!_" | "_&&_" | "_||_" if operands.any(|id| is_optional(ast, *id)) => {
            Some("an optional is not a bool: unwrap it with `.orValue(false)`".to_owned())
        }
        "_?_:_" => branches_advice(ast, args),
        operator => operator_advice(operator),
    }
}

/// Returns a hint about the branches of `?:`, whose types differ. If a branch is the text for a denial, suggests the
/// field `message`.
fn branches_advice(ast: &Ast, args: &[ExprId]) -> Option<String> {
    let [_, truthy, falsy] = args else {
        return None;
    };
    Some(match (ast.expr(*truthy), ast.expr(*falsy)) {
        (Expr::Literal(Literal::Bool(true)), Expr::Literal(Literal::String(_))) => {
            "write only the condition, and the text in `message` or `messageExpression`".to_owned()
        }
        (Expr::Literal(Literal::String(_)), Expr::Literal(Literal::Bool(true))) => {
            "write only the negated condition, and the text in `message` or `messageExpression`"
                .to_owned()
        }
        (Expr::List { .. }, Expr::Literal(Literal::Null))
        | (Expr::Literal(Literal::Null), Expr::List { .. }) => {
            "the values after `?` and `:` must have the same type: write `[]`, an empty list, for `null`"
                .to_owned()
        }
        _ => "the values after `?` and `:` must have the same type: convert one, as in `string(a)`"
            .to_owned(),
    })
}

/// Returns a hint with the operand types that an operator accepts.
fn operator_advice(operator: &str) -> Option<String> {
    let operator_text = match operator {
        "_+_" => "+",
        "_-_" => "-",
        "_*_" => "*",
        "_/_" => "/",
        "_%_" => {
            let advice = "`%` accepts two values of type `int`, or two of type `uint`: convert them, as in `int(a) % int(b)`";
            return Some(advice.to_owned());
        }
        "@in" => {
            let advice = "`in` searches the items of a list or the keys of a map; to search a comma-separated string, write `a in b.split(',')`";
            return Some(advice.to_owned());
        }
        "_[_]" => {
            let advice = "`[]` accepts a list and an index, or a map and a key; for a string, use `charAt()` or `substring()`";
            return Some(advice.to_owned());
        }
        "_&&_" | "_||_" | "!_" => {
            return Some(
                "`&&`, `||` and `!` accept only bools: add a comparison, as in `a != ''`"
                    .to_owned(),
            );
        }
        _ => return None,
    };
    Some(format!(
        "`{operator_text}` requires operands of the same type: convert one, as in `string(a)`, `int(a)` or `double(a)`"
    ))
}

/// Returns a hint about the invalid regular expression at `offset`. `None` if there is no invalid pattern.
fn pattern_advice(ast: &Ast, offset: usize) -> Option<String> {
    let mut at_location = ast
        .iter()
        .filter(|(id, _)| usize::try_from(ast.offset(*id)) == Ok(offset));
    let pattern = at_location.find_map(|(_, expr)| match expr {
        Expr::Literal(Literal::String(text)) => Some(text),
        _ => None,
    })?;
    let is_pattern = ast.iter().any(|(_, expr)| match expr {
        Expr::Call { function, args, .. } if &**function == "matches" => {
            let mut args = args.iter();
            args.any(|id| usize::try_from(ast.offset(*id)) == Ok(offset))
        }
        _ => false,
    });
    let error = is_pattern.then(|| regexp::parse(pattern).err())??;
    let part: String = error.expr.chars().take(MAX_SHOWN).collect();
    if let Some(expression) = expression_of_glob(pattern) {
        let code = error.code;
        return Some(format!(
            "{code}: `{part}`; in a regular expression, `*` repeats the character before it; to match this glob, write `{expression}`"
        ));
    }
    let syntax = "patterns use RE2 syntax, which has no lookaround or backreferences";
    Some(format!("{}: `{part}`; {syntax}", error.code))
}

/// Converts a glob that begins with `*` to a regular expression. `None` if `pattern` is not such a glob.
fn expression_of_glob(pattern: &str) -> Option<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "*-_./:@".contains(c);
    let is_glob = pattern.starts_with('*') && pattern.len() <= MAX_SHOWN;
    // A pattern with `.*` is a regular expression, not a glob.
    let is_glob = is_glob && !pattern.contains(".*") && pattern.chars().all(is_of_name);
    let expression = || pattern.replace('.', "[.]").replace('*', ".*");
    is_glob.then(|| format!("^{}$", expression()))
}

fn comparison(function: &str) -> Option<&'static str> {
    Some(match function {
        "_<_" => "<",
        "_<=_" => "<=",
        "_>_" => ">",
        "_>=_" => ">=",
        _ => return None,
    })
}

/// Returns `quantity` or `semver` if `id` is a call of this function, or a variable whose expression is such a call.
/// Values of these types are compared with functions instead of operators. `None` for other expressions.
fn comparable(policy: &CompiledPolicy, ast: &Ast, id: ExprId) -> Option<&'static str> {
    match ast.expr(id) {
        Expr::Call {
            function,
            target: None,
            ..
        } => ["quantity", "semver"]
            .into_iter()
            .find(|name| *name == &**function),
        Expr::Select {
            test_only: false, ..
        } => {
            let field = variable(ast, id)?;
            let mut variables = policy.expressions().iter().rev();
            let variable = variables.find(|expression| {
                expression.role == Role::Variable && expression.name.as_deref() == Some(field)
            });
            let ast = variable?.parsed().ok()?;
            match ast.expr(ast.root()) {
                Expr::Call { .. } => comparable(policy, ast, ast.root()),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_optional(ast: &Ast, id: ExprId) -> bool {
    matches!(ast.expr(id), Expr::Call { function, .. } if matches!(&**function, "_?._" | "_[?_]"))
}

/// Suggests a comparison, such as `a == true`, for a condition that the compiler does not accept as a bool.
fn result_type_advice(expression: &PolicyExpression, ast: &Ast) -> Option<String> {
    if !matches!(expression.role, Role::Validation | Role::MatchCondition) {
        return None;
    }
    match ast.expr(ast.root()) {
        Expr::Call {
            function,
            target: Some(_),
            args,
        } if &**function == "orValue" => {
            let Expr::Literal(Literal::Bool(_)) = ast.expr(*args.first()?) else {
                return None;
            };
            let text = expression.text.trim();
            Some(if text.len() <= MAX_SHOWN && !text.contains('\n') {
                format!(
                    "the type of this value is only known at evaluation: write `{text} == true`"
                )
            } else {
                "the type of this value is only known at evaluation: append `== true`".to_owned()
            })
        }
        _ if is_optional(ast, ast.root()) => {
            Some("append `.orValue(false) == true`".to_owned())
        }
        Expr::Select {
            test_only: false, ..
        }
        | Expr::Ident(_) => Some(
            "a condition must be a bool: compare the value, as in `a == true` or `a != ''`, or test it with has()"
                .to_owned(),
        ),
        _ => None,
    }
}
