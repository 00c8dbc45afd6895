//! Finds validations that require what their message denies, such as `list.exists(v, has(v.hostPath))` with the message
//! `hostPath volumes are not allowed`.

use cel::ast::{Ast, Expr, ExprId, Literal};

use super::path::{self, Operator};
use super::positions::{Elements, StringTestKind, conjuncts, string_test};
use super::prose::{DENIALS, OTHERS, plain_words, words_of};
use crate::comprehensions::{ComprehensionKind, comprehension_kind};

/// Phrases within sentences that deny the rest of the sentence.
const PROHIBITIONS: [&str; 11] = [
    "cannot be bound",
    "cannot be used",
    "cannot use",
    "may not be used",
    "may not use",
    "must not be bound",
    "must not be enabled",
    "must not be mounted",
    "must not be set",
    "must not be used",
    "must not use",
];

/// Phrases that deny only the words that follow them.
const PREFIXES: [&str; 9] = [
    "cannot access",
    "cannot read",
    "may not access",
    "may not read",
    "must not access",
    "must not contain",
    "must not grant",
    "must not include",
    "must not read",
];

/// Maximum number of words between a phrase and the denied string, for tests such as `'a' in list`.
const MAX_BETWEEN: usize = 1;

/// Words that indicate a message about objects without the denied value. Used in addition to [`OTHERS`].
const ABSENCE: [&str; 24] = [
    "allowed",
    "change",
    "changes",
    "changing",
    "disabling",
    "empty",
    "explicitly",
    "from",
    "if",
    "invalid",
    "lack",
    "lacking",
    "modifying",
    "or",
    "overriding",
    "removing",
    "some",
    "unknown",
    "unset",
    "untrusted",
    "when",
    "where",
    "with",
    "wrong",
];

/// Minimum length of a literal that a message names, in bytes.
const MIN_LITERAL: usize = 3;

/// A test that must be true.
struct Assertion<'a> {
    id: ExprId,
    /// The tested field.
    field: Option<&'a str>,
    /// The value of a bool field. `None` for other tests.
    value: Option<bool>,
    /// The literal that a string must equal or contain.
    literal: Option<&'a str>,
    /// True for `has()`.
    is_presence: bool,
    /// True if the message must name the literal next to the denial. Otherwise, the literal may be the requirement of
    /// another part of the message, such as `must not use capabilities: drop ALL`.
    is_near: bool,
}

/// Returns the test that requires what the message denies, and the problem. `tests` are the tests that an allowed object
/// must pass, and `words` is the message in lowercase.
pub(super) fn contradiction(ast: &Ast, tests: &[ExprId], words: &str) -> Option<(ExprId, String)> {
    let elements = Elements::new(ast);
    let mut unguarded = tests.iter().filter(|id| !is_guard(ast, **id));
    let of_element = match (unguarded.next(), unguarded.next()) {
        (Some(only), None) => exists_tests(ast, *only),
        _ => None,
    };
    let is_guarded = tests.len() > 1 && of_element.is_some();
    let tests = of_element.unwrap_or_else(|| tests.to_vec());
    let assertions = tests.iter().filter_map(|id| assertion(ast, &elements, *id));
    let mut assertions: Vec<Assertion<'_>> = assertions.collect();
    for assertion in &mut assertions {
        assertion.is_near |= is_guarded;
    }
    inverted_bool(&assertions, words)
        .or_else(|| denied_pair(ast, (&assertions, &tests), words))
        .or_else(|| denied_value(ast, (&assertions, &tests), words))
}

/// Returns true for `has(...)` and `... != null`.
fn is_guard(ast: &Ast, id: ExprId) -> bool {
    let is_not_null = matches!(
        path::with_literal(ast, id),
        Some((Operator::NotEqual, _, Literal::Null))
    );
    is_not_null
        || matches!(
            ast.expr(id),
            Expr::Select {
                test_only: true,
                ..
            }
        )
}

/// Returns the tests of one element if the expression `id` is `list.exists(...)`. `None` for other expressions.
fn exists_tests(ast: &Ast, id: ExprId) -> Option<Vec<ExprId>> {
    let Expr::Comprehension(fold) = ast.expr(id) else {
        return None;
    };
    match comprehension_kind(ast, fold) {
        ComprehensionKind::Exists(test) => Some(conjuncts(ast, test)),
        _ => None,
    }
}

fn assertion<'a>(ast: &'a Ast, elements: &Elements, id: ExprId) -> Option<Assertion<'a>> {
    let of_bool = |id: ExprId, operand: ExprId, value: bool| Assertion {
        id,
        field: elements.field(ast, operand),
        value: Some(value),
        literal: None,
        is_presence: false,
        is_near: false,
    };
    if let Some(("!_", [operand])) = ast.global_call(id) {
        let is_field = matches!(
            ast.expr(*operand),
            Expr::Select {
                test_only: false,
                ..
            }
        );
        return is_field.then(|| of_bool(id, *operand, false));
    }
    if let Some((operator, other, Literal::Bool(value))) = path::with_literal(ast, id) {
        return match operator {
            Operator::Equal => Some(of_bool(id, other, *value)),
            Operator::NotEqual => Some(of_bool(id, other, !*value)),
            _ => None,
        };
    }
    if let Some(test) = string_test(ast, id) {
        let is_positive = !matches!(test.kind, StringTestKind::Differs | StringTestKind::In);
        let [(_, literal)] = *test.literals else {
            return None;
        };
        return is_positive.then(|| Assertion {
            id,
            field: elements.field(ast, test.subject),
            value: None,
            literal: Some(literal),
            is_presence: false,
            is_near: false,
        });
    }
    if let Some(("@in", [element, list])) = ast.global_call(id)
        && let Some(literal) = path::string(ast.expr(*element))
    {
        return Some(Assertion {
            id,
            field: elements.field(ast, *list),
            value: None,
            literal: Some(literal),
            is_presence: false,
            is_near: true,
        });
    }
    match ast.expr(id) {
        Expr::Select {
            field, test_only, ..
        } => Some(Assertion {
            id,
            field: Some(field),
            value: (!*test_only).then_some(true),
            literal: None,
            is_presence: *test_only,
            is_near: false,
        }),
        _ => None,
    }
}

/// Returns the problem if the message is `x must be false`, and a test requires that `x` is true, or the reverse.
fn inverted_bool(assertions: &[Assertion<'_>], words: &str) -> Option<(ExprId, String)> {
    let words = plain_words(words);
    let (field, claimed) = match &*words {
        [.., field, "must", "be", "set", "to", value] | [.., field, "must", "be", value] => {
            (*field, value.parse::<bool>().ok()?)
        }
        _ => return None,
    };
    let is_of_field = |it: &&Assertion<'_>| {
        it.field
            .is_some_and(|name| name.to_lowercase() == last_name(field))
    };
    let mut of_field = assertions.iter().filter(is_of_field);
    let required = of_field.find_map(|it| Some((it.id, it.value?)))?;
    (required.1 != claimed).then(|| {
        let problem = format!(
            "the message says `must be {claimed}`, but the expression requires {}",
            required.1
        );
        (required.0, problem)
    })
}

/// Returns the last name of a path in a message.
fn last_name(word: &str) -> &str {
    word.rsplit('.').next().unwrap_or(word)
}

/// Returns the problem if the message denies a field or a string that one of the tests requires, and no other test
/// reads the field of that test.
fn denied_value(
    ast: &Ast,
    (assertions, tests): (&[Assertion<'_>], &[ExprId]),
    words: &str,
) -> Option<(ExprId, String)> {
    let denial = denial(words)?;
    let message = words;
    let words = plain_words(words);
    let is_named = |name: &str, is_near: bool| {
        let name = name
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase();
        let is_name = |word: &&str| last_name(word) == name || **word == *name;
        let is_near = is_near || PREFIXES.contains(&denial);
        name.len() >= MIN_LITERAL
            && if is_near {
                near(message, denial).iter().any(is_name)
            } else {
                words.iter().any(is_name)
            }
    };
    let mut denied = assertions.iter().filter_map(|assertion| {
        let name = match (assertion.literal, assertion.value) {
            (Some(literal), _) => literal,
            (None, Some(false)) => return None,
            (None, _) => assertion.field?,
        };
        let is_guard = assertion.is_presence
            && tests
                .iter()
                .any(|id| *id != assertion.id && reads_field(ast, *id, name));
        let is_dropped = assertion.field == Some("drop");
        (is_named(name, assertion.is_near) && !is_guard && !is_dropped)
            .then_some((assertion.id, name))
    });
    let (id, name) = denied.next()?;
    let problem =
        format!("the expression requires `{name}`, but the message says `{denial}` about it");
    Some((id, problem))
}

/// Returns the phrase that denies what a message is about. `None` if the message may be about other values.
fn denial(words: &str) -> Option<&'static str> {
    let end = words.trim_end_matches(|c: char| !c.is_alphanumeric());
    let at_end = DENIALS.iter().find(|it| end.ends_with(**it));
    let mut within = PROHIBITIONS.iter().chain(&PREFIXES);
    let denial = at_end.or_else(|| within.find(|it| words.contains(**it)))?;
    let rest = words.replacen(denial, "", 1);
    let mut of_others = words_of(&rest);
    let is_of_others = of_others.any(|word| OTHERS.contains(&word) || ABSENCE.contains(&word));
    (!is_of_others).then_some(denial)
}

/// Returns the words next to a denial: those after it, or those before a denial at the end of the message. Words in other
/// clauses are left out.
fn near<'w>(message: &'w str, denial: &str) -> Vec<&'w str> {
    let Some((before, after)) = message.split_once(denial) else {
        return Vec::new();
    };
    let is_end = |c: char| matches!(c, '.' | ',' | ':' | ';' | '(');
    let is_at_end = after.chars().all(|c| !c.is_alphanumeric());
    let clause = if is_at_end {
        before.rsplit(is_end).next()
    } else {
        after.split(is_end).next()
    };
    let mut words = plain_words(clause.unwrap_or_default());
    if is_at_end {
        words.reverse();
    }
    words.truncate(MAX_BETWEEN + 1);
    words
}

/// Returns true if the expression selects or tests a field `name`.
fn reads_field(ast: &Ast, id: ExprId, name: &str) -> bool {
    let mut nodes = ast.descendants(id).into_iter();
    nodes.any(|id| match ast.expr(id) {
        Expr::Select { field, .. } => **field == *name,
        Expr::Literal(Literal::String(text)) => **text == *name,
        _ => false,
    })
}

/// Returns the problem if the message denies two strings next to each other, but the expression only denies one of them, and
/// requires the other. An example is `a.kind == 'Role' && a.name != 'admin'` with `the Role admin must not be used`.
fn denied_pair(
    ast: &Ast,
    (assertions, tests): (&[Assertion<'_>], &[ExprId]),
    words: &str,
) -> Option<(ExprId, String)> {
    let denial = denial(words)?;
    let [one, other] = tests else { return None };
    let differs = [one, other].into_iter().find_map(|id| {
        let test = string_test(ast, *id).filter(|it| it.kind == StringTestKind::Differs)?;
        test.literals.first().map(|(_, literal)| *literal)
    })?;
    let required = assertions.iter().find(|it| it.literal.is_some())?;
    let literal = required.literal?;
    let (denied, named) = (differs.to_lowercase(), literal.to_lowercase());
    let words = plain_words(words);
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let is_pair =
        pairs.any(|(a, b)| (*a == named && *b == denied) || (*a == denied && *b == named));
    is_pair.then(|| {
        let problem = format!(
            "the message says `{denial}` about `{literal}` `{differs}`, but the expression requires `{literal}`"
        );
        (required.id, problem)
    })
}
