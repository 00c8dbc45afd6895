//! Finds validations that contradict their message, such as `x < 5` with the message `at most 5`.
//!
//! Messages are prose, so only a few phrases next to a literal of the expression are recognized. The expression may
//! have guards such as `!has(x) ||`, but no other conditions: in `x < 5 || has(y)`, the first operand may be the
//! condition of the message `with at least 5, y is required`.

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;

use super::path::{self, Operator};
use super::positions::{Elements, conjuncts};
use super::prose::{DENIALS, OTHERS, plain_words, words_of};
use super::quantifiers::excluded;
use super::{Lint, denials};
use crate::compile::CompiledPolicy;
use crate::comprehensions::{ComprehensionKind, comprehension_kind};
use crate::expressions::Role;
use crate::reads::{Attribute, Input, is_input};
use crate::rule::Rule;

/// Maximum number of tests of an expression.
const MAX_TESTS: usize = 64;

/// Phrases before a number, each with the comparison that they claim. A longer phrase comes before its parts.
const BEFORE: [(&str, Operator); 42] = [
    ("must not be greater than", Operator::LessOrEqual),
    ("must not be higher than", Operator::LessOrEqual),
    ("must not be larger than", Operator::LessOrEqual),
    ("must not be more than", Operator::LessOrEqual),
    ("must not be above", Operator::LessOrEqual),
    ("must not exceed", Operator::LessOrEqual),
    ("cannot exceed", Operator::LessOrEqual),
    ("may not exceed", Operator::LessOrEqual),
    ("not exceed", Operator::LessOrEqual),
    ("no more than", Operator::LessOrEqual),
    ("not more than", Operator::LessOrEqual),
    ("a maximum of", Operator::LessOrEqual),
    ("at most", Operator::LessOrEqual),
    ("must not be less than", Operator::GreaterOrEqual),
    ("must not be lower than", Operator::GreaterOrEqual),
    ("must not be smaller than", Operator::GreaterOrEqual),
    ("must not be fewer than", Operator::GreaterOrEqual),
    ("must not be below", Operator::GreaterOrEqual),
    ("no less than", Operator::GreaterOrEqual),
    ("no fewer than", Operator::GreaterOrEqual),
    ("not less than", Operator::GreaterOrEqual),
    ("not fewer than", Operator::GreaterOrEqual),
    ("a minimum of", Operator::GreaterOrEqual),
    ("at least", Operator::GreaterOrEqual),
    ("must be greater than or equal to", Operator::GreaterOrEqual),
    ("must be less than or equal to", Operator::LessOrEqual),
    ("must be less than", Operator::Less),
    ("must be lower than", Operator::Less),
    ("must be smaller than", Operator::Less),
    ("must be fewer than", Operator::Less),
    ("must be below", Operator::Less),
    ("must have less than", Operator::Less),
    ("must have fewer than", Operator::Less),
    ("must be greater than", Operator::Greater),
    ("must be higher than", Operator::Greater),
    ("must be larger than", Operator::Greater),
    ("must be more than", Operator::Greater),
    ("must have more than", Operator::Greater),
    ("must be <=", Operator::LessOrEqual),
    ("must be >=", Operator::GreaterOrEqual),
    ("must be <", Operator::Less),
    ("must be >", Operator::Greater),
];

/// Maximum number of words of a message such as `at most 5 replicas`.
const MAX_SHORT: usize = 6;

/// Words that indicate a message about the allowed objects.
const REQUIREMENTS: [&str; 13] = [
    "allowed",
    "can",
    "cannot",
    "may",
    "must",
    "need",
    "needs",
    "permitted",
    "require",
    "required",
    "requires",
    "shall",
    "should",
];

/// Words that indicate a message about exceptions or denied values. Phrases of such a message are ignored, because they
/// may describe the denied values.
const EXCEPTIONS: [&str; 22] = [
    "allowed",
    "but",
    "deny",
    "denied",
    "disallowed",
    "either",
    "except",
    "exception",
    "forbidden",
    "if",
    "instead",
    "only",
    "or",
    "other",
    "permitted",
    "prohibited",
    "rejected",
    "unless",
    "when",
    "where",
    "with",
    "without",
];

/// Returns the lints of the validations of `policy` that have a message.
pub(super) fn find(policy: &CompiledPolicy) -> Vec<Lint> {
    let validations = policy.policy().validations.iter();
    // The literal of a messageExpression replaces the message.
    let messages = validations.map(|it| {
        let literal = it.message_expression.as_deref().and_then(literal_of);
        literal.or_else(|| it.message.clone())
    });
    let messages: Vec<Option<String>> = messages.collect();
    let expressions = policy.expressions().iter();
    let of_role = expressions.filter(|it| it.role == Role::Validation);
    let variables = policy.variables();
    let lints = of_role.zip(messages).filter_map(|(expression, message)| {
        let (ast, message) = (expression.parsed().ok()?, &*message?);
        let (id, problem) = contradiction(ast, message)
            .or_else(|| contradiction_of_variable(ast, &variables, message))?;
        Some(Lint {
            rule: Rule::ContradictingMessage,
            field_ref: expression.field_ref.clone(),
            location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
            message: problem,
            fix: Some("correct the expression or the message: the expression must be true for allowed objects".into()),
            is_harmless: false,
        })
    });
    lints.collect()
}

/// Returns the string if the source of an expression is a string literal.
fn literal_of(text: &str) -> Option<String> {
    let (ast, _) = cel::syntax::parse(text);
    let ast = ast?;
    path::string(ast.expr(ast.root())).map(str::to_owned)
}

/// Returns the problem if the whole expression is a variable whose expression contradicts the message.
fn contradiction_of_variable(
    ast: &Ast,
    variables: &[(String, &Ast)],
    message: &str,
) -> Option<(ExprId, String)> {
    let Expr::Select {
        operand,
        field,
        test_only: false,
    } = ast.expr(ast.root())
    else {
        return None;
    };
    let is_of_variables = is_input(ast, *operand, Input::Variables);
    let mut declared = variables.iter().filter(|(name, _)| *name == **field);
    let (name, body) = declared.next().filter(|_| is_of_variables)?;
    let (_, problem) = contradiction(body, message)?;
    let problem = problem.replacen("the expression", &format!("`variables.{name}`"), 1);
    Some((ast.root(), problem))
}

/// Returns the test that contradicts the message, and the problem.
pub(super) fn contradiction(ast: &Ast, message: &str) -> Option<(ExprId, String)> {
    let words = message.to_lowercase();
    let tests = required_tests(ast)?;
    let bounds = tests.iter().filter_map(|id| bound(ast, *id));
    let bounds: Vec<Bound> = bounds.collect();
    for bound in &bounds {
        let is_same = |other: &&Bound| other.number == bound.number;
        let Some((phrase, claim)) = claim(&words, &bound.number) else {
            continue;
        };
        if bounds.iter().filter(is_same).count() > 1 || bound.operator == claim {
            continue;
        }
        let problem = format!(
            "the message says `{phrase} {}`, but the expression tests `{} {}`",
            bound.number,
            bound.operator.symbol(),
            bound.number,
        );
        return Some((bound.id, problem));
    }
    let of_only = match &*tests {
        [only] => inverted_equality(ast, *only, message, &words)
            .or_else(|| inverted_inequality(ast, *only, &words))
            .or_else(|| inverted_exists(ast, *only, &words))
            .or_else(|| other_limit(ast, bounds.first()?, &words)),
        _ => None,
    };
    of_only.or_else(|| denials::contradiction(ast, &tests, &words))
}

/// Returns the tests that an allowed object must pass, except guards. `None` if the expression has other conditions.
fn required_tests(ast: &Ast) -> Option<Vec<ExprId>> {
    let mut tests = Vec::new();
    let mut open = vec![ast.root()];
    while let Some(id) = open.pop() {
        if tests.len() > MAX_TESTS {
            return None;
        }
        let operands = conjuncts(ast, id);
        if operands.len() > 1 {
            open.extend(operands);
            continue;
        }
        if let Some(("_||_", alternatives)) = ast.global_call(id) {
            let is_guard = |id: &ExprId| guard(ast, *id).is_some();
            let (guards, others): (Vec<ExprId>, Vec<ExprId>) =
                alternatives.iter().copied().partition(is_guard);
            let [only] = *others else { return None };
            // The other operand must read the guarded value.
            let mut guarded = guards.into_iter().filter_map(|id| guard(ast, id));
            if !guarded.all(|guarded| reads(ast, only, &guarded)) {
                return None;
            }
            open.push(only);
        } else if let Expr::Comprehension(fold) = ast.expr(id)
            && let ComprehensionKind::All(test) = comprehension_kind(ast, fold)
        {
            open.push(test);
        } else if matches!(ast.global_call(id), Some(("_?_:_", _))) {
            return None;
        } else {
            tests.push(id);
        }
    }
    Some(tests)
}

/// The value that a guard tests.
enum Guarded {
    Request,
    Path(String),
}

/// Returns the guarded value if the operand of `||` is a guard: `!has(x)`, `x == null`, or a test of the operation or
/// kind.
fn guard(ast: &Ast, id: ExprId) -> Option<Guarded> {
    if let Some(("!_", [tested])) = ast.global_call(id) {
        return match ast.expr(*tested) {
            Expr::Select {
                operand,
                field,
                test_only: true,
            } => Some(Guarded::Path(format!(
                "{}.{field}",
                path::path(ast, *operand)?
            ))),
            _ => None,
        };
    }
    let (_, other, literal) = path::with_literal(ast, id)?;
    if matches!(literal, Literal::Null) {
        return path::path(ast, other).map(Guarded::Path);
    }
    let attribute = Attribute::new(ast, other);
    let fields: Vec<&str> = attribute.fields().collect();
    let is_root = |input| is_input(ast, attribute.operand, input);
    let is_of_request = is_root(Input::Request)
        && matches!(
            &*fields,
            ["operation" | "kind" | "resource" | "subResource", ..]
        )
        || is_root(Input::Object) && fields == ["kind"];
    is_of_request.then_some(Guarded::Request)
}

/// Returns true if the expression `id` reads the guarded path, or a field below it.
fn reads(ast: &Ast, id: ExprId, guarded: &Guarded) -> bool {
    let Guarded::Path(guarded) = guarded else {
        return true;
    };
    let mut nodes = ast.descendants(id).into_iter();
    nodes.any(|id| path::path(ast, id).is_some_and(|path| path == *guarded))
}

/// A required comparison of a value with a number or quantity.
struct Bound {
    id: ExprId,
    operator: Operator,
    /// The number as it appears in messages.
    number: String,
    /// The compared expression and the integer. `None` for a quantity.
    limit: Option<(ExprId, i64)>,
}

fn bound(ast: &Ast, id: ExprId) -> Option<Bound> {
    if let Some(("!_", [operand])) = ast.global_call(id) {
        let bound = bound(ast, *operand)?;
        let operator = match bound.operator {
            Operator::Less => Operator::GreaterOrEqual,
            Operator::LessOrEqual => Operator::Greater,
            Operator::Greater => Operator::LessOrEqual,
            Operator::GreaterOrEqual => Operator::Less,
            Operator::Equal | Operator::NotEqual => return None,
        };
        return Some(Bound { operator, ..bound });
    }
    if let Some((operator, other, literal)) = path::with_literal(ast, id) {
        let (number, limit) = match literal {
            Literal::Int(number) => (number.to_string(), Some((other, *number))),
            Literal::Uint(number) => (number.to_string(), None),
            _ => return None,
        };
        // `a.compareTo(b) > 0` compares a and b.
        let is_comparison = matches!(
            ast.expr(other),
            Expr::Call { function, .. } if &**function == "compareTo"
        );
        let is_bound = operator.is_ordering() && !is_comparison;
        return is_bound.then_some(Bound {
            id,
            operator,
            number,
            limit,
        });
    }
    let Expr::Call {
        function,
        target: Some(_),
        args,
    } = ast.expr(id)
    else {
        return None;
    };
    let operator = match &**function {
        "isGreaterThan" => Operator::Greater,
        "isLessThan" => Operator::Less,
        _ => return None,
    };
    let [argument] = &**args else { return None };
    let ("quantity", [text]) = ast.global_call(*argument)? else {
        return None;
    };
    match ast.expr(*text) {
        Expr::Literal(Literal::String(text)) => Some(Bound {
            id,
            operator,
            number: text.to_string(),
            limit: None,
        }),
        _ => None,
    }
}

/// Returns the phrase of the message before `number`, and the comparison that it claims. `None` if the message may be
/// about exceptions or denied values.
fn claim(message: &str, number: &str) -> Option<(&'static str, Operator)> {
    let number = number.to_lowercase();
    let is_of_exceptions = words_of(message).any(|word| EXCEPTIONS.contains(&word));
    if is_of_exceptions && !has_plain_permission(message) {
        return None;
    }
    let mut places = message.match_indices(&*number).filter(|(at, _)| {
        let before = message.get(..*at).unwrap_or_default().chars().next_back();
        let after = message.get(at + number.len()..).unwrap_or_default();
        let mut after = after.chars();
        let (first, second) = (after.next(), after.next());
        let continues = first.is_some_and(char::is_alphanumeric)
            || first == Some('.') && second.is_some_and(|c| c.is_ascii_digit());
        before.is_some_and(char::is_whitespace) && !continues
    });
    let (at, _) = places.next().filter(|_| places.next().is_none())?;
    let before = message.get(..at)?.trim_end();
    let (phrase, operator) = BEFORE.into_iter().find(|it| before.ends_with(it.0))?;
    let is_short = before == phrase && message.split_whitespace().count() <= MAX_SHORT;
    (is_short || is_requirement(message)).then_some((phrase, operator))
}

/// Returns true if the message describes allowed objects. Returns false if it describes the denied object.
fn is_requirement(message: &str) -> bool {
    words_of(message).any(|word| REQUIREMENTS.contains(&word))
}

/// Returns true if the only word about exceptions is `allowed` in `are allowed` or `is allowed`.
fn has_plain_permission(message: &str) -> bool {
    let mut words = words_of(message);
    let exceptions = words.clone().filter(|word| EXCEPTIONS.contains(word));
    let n = exceptions.count();
    let is_negated = words.any(|word| matches!(word, "not" | "no" | "never"));
    let permissions = ["are allowed", "is allowed", "are permitted", "is permitted"];
    n == 1 && !is_negated && permissions.iter().any(|it| message.contains(it))
}

/// Returns the problem if the only test is `x == 'a'`, and the message denies `a`.
fn inverted_equality(
    ast: &Ast,
    id: ExprId,
    message: &str,
    words: &str,
) -> Option<(ExprId, String)> {
    let (Operator::Equal, _, Literal::String(text)) = path::with_literal(ast, id)? else {
        return None;
    };
    let (before, after) = message.split_once(&**text)?;
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let is_part = is_word(before.chars().next_back()) || is_word(after.chars().next());
    let after = after.to_lowercase();
    let denial = DENIALS.iter().find(|denial| after.contains(**denial))?;
    let rest = words.replacen(denial, "", 1);
    let is_of_others = words_of(&rest).any(|word| OTHERS.contains(&word));
    (text.len() > 2 && !is_part && !is_of_others).then(|| {
        let problem =
            format!("the expression requires `{text}`, but the message says `{denial}` about it");
        (id, problem)
    })
}

/// Returns the problem if the only test is `x != 'a'`, and the message is `x must be a` or `only a is allowed`.
fn inverted_inequality(ast: &Ast, id: ExprId, words: &str) -> Option<(ExprId, String)> {
    let (Operator::NotEqual, other, literal) = path::with_literal(ast, id)? else {
        return None;
    };
    let value = match literal {
        Literal::Int(number) => number.to_string(),
        Literal::String(text) if text.len() > 2 => text.to_lowercase(),
        _ => return None,
    };
    let field = Elements::new(ast).field(ast, other)?.to_lowercase();
    let words = plain_words(words);
    let is_claimed = match &*words {
        [.., of, "must", "be", last] => *of == field && *last == value,
        ["only", .., last, "is" | "are", "allowed" | "permitted"] => {
            *last == value && words.len() <= MAX_SHORT
        }
        _ => false,
    };
    // The last three words: `must be` and the value, or the value and `is allowed`.
    let claim = words.last_chunk::<3>().filter(|_| is_claimed)?.join(" ");
    let problem = format!("the message says `{claim}`, but the expression denies this value");
    Some((id, problem))
}

/// Returns the problem if the limit that the message states for a field differs from the limit in the only test of the
/// expression, as in `at most 10 replicas` for `replicas <= 5`. The name of the field must follow the number or precede
/// the phrase, because a number that refers to something else may differ from the limit.
fn other_limit(ast: &Ast, bound: &Bound, words: &str) -> Option<(ExprId, String)> {
    let (other, limit) = bound.limit.filter(|it| ast.global_call(it.0).is_none())?;
    let field = Elements::new(ast).field(ast, other)?.to_lowercase();
    let parts = plain_words(words);
    let has_digit = |word: &&&str| word.contains(|c: char| c.is_ascii_digit());
    let mut numbers = parts.iter().filter(has_digit);
    let number = numbers.next().filter(|_| numbers.next().is_none())?;
    let stated: i64 = number.parse().ok()?;
    let (phrase, claim) = claim(words, number)?;
    let (before, after) = words.split_once(phrase)?;
    let unit = plain_words(after);
    let unit = unit.get(1..).unwrap_or_default();
    let subject = plain_words(before);
    let subject = subject.as_slice();
    let subject = subject.strip_suffix(&["must", "be"]).unwrap_or(subject);
    let singular = field.strip_suffix('s').unwrap_or(&field);
    let is_field = |word: Option<&&str>| word.is_some_and(|it| *it == field || *it == singular);
    let is_of_field = is_field(unit.first()) || unit.is_empty() && is_field(subject.last());
    let (tested, claimed) = (inclusive(bound.operator, limit)?, inclusive(claim, stated)?);
    (is_of_field && tested != claimed).then(|| {
        let problem = format!(
            "the message says `{phrase} {number}`, but the expression tests `{} {limit}`",
            bound.operator.symbol(),
        );
        (bound.id, problem)
    })
}

/// Returns a flag and an integer for an inclusive limit. The flag is true for an upper limit. The integer is the
/// largest or smallest one that passes the comparison.
fn inclusive(operator: Operator, limit: i64) -> Option<(bool, i64)> {
    match operator {
        Operator::LessOrEqual => Some((true, limit)),
        Operator::Less => Some((true, limit.checked_sub(1)?)),
        Operator::GreaterOrEqual => Some((false, limit)),
        Operator::Greater => Some((false, limit.checked_add(1)?)),
        Operator::Equal | Operator::NotEqual => None,
    }
}

/// Verbs after `must` that express a requirement for each image. Verbs such as `include` may express a requirement for
/// the list of images.
const IMAGE_VERBS: [&str; 7] = ["be", "come", "end", "have", "match", "start", "use"];

/// Returns the problem if the only test is `containers.exists(...)`, and the message begins with `all containers`, `no
/// container`, `every image` or `images must be`.
fn inverted_exists(ast: &Ast, id: ExprId, words: &str) -> Option<(ExprId, String)> {
    let Expr::Comprehension(fold) = ast.expr(id) else {
        return None;
    };
    let ComprehensionKind::Exists(test) = comprehension_kind(ast, fold) else {
        return None;
    };
    // Negative tests are skipped, because another lint reports them.
    if conjuncts(ast, test)
        .iter()
        .all(|id| excluded(ast, *id).is_some())
    {
        return None;
    }
    let list = Elements::new(ast)
        .field(ast, fold.iter_range)?
        .to_lowercase();
    let is_requirement = is_requirement(words);
    let words: Vec<&str> = words.split_whitespace().collect();
    let singular = list.strip_suffix('s').unwrap_or(&list);
    let has_images = list.ends_with("containers");
    let is_image = |word: &str| has_images && matches!(word, "image" | "images");
    let (claim, quantifier) = match &*words {
        [all @ ("all" | "every" | "each" | "no"), noun, rest @ ..] => {
            let of_image = rest.first().filter(|word| is_image(word));
            let is_list = *noun == list || *noun == singular || is_image(noun);
            match (of_image, *noun) {
                (Some(image), "container") => (format!("{all} {noun} {image}"), *all),
                _ if is_list => (format!("{all} {noun}"), *all),
                _ => return None,
            }
        }
        ["container", "images", "must", verb, ..] | ["images", "must", verb, ..]
            if has_images && IMAGE_VERBS.contains(verb) && reads_image(ast, test) =>
        {
            (format!("images must {verb}"), "all")
        }
        _ => return None,
    };
    let advice = match quantifier {
        "no" => "`!exists()` is true if no element passes the test",
        _ => "`all()` is true if all elements pass the test",
    };
    is_requirement.then(|| {
        let problem = format!(
            "the message says `{claim}`, but `exists()` is true if one element passes the test: {advice}"
        );
        (id, problem)
    })
}

fn reads_image(ast: &Ast, id: ExprId) -> bool {
    let is_image =
        |id: ExprId| matches!(ast.expr(id), Expr::Select { field, .. } if **field == *"image");
    ast.descendants(id).into_iter().any(is_image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradiction_of_a_variable_is_found() {
        let (body, _) = cel::syntax::parse("object.roleRef.name == 'cluster-admin'");
        let body = body.unwrap();
        let variables = [("isAdmin".to_owned(), &body)];
        for (expression, expected) in [
            ("variables.isAdmin", true),
            ("!variables.isAdmin", false),
            ("variables.other", false),
            ("object.isAdmin", false),
        ] {
            let (ast, _) = cel::syntax::parse(expression);
            let message = "binding cluster-admin is not allowed";
            let problem = contradiction_of_variable(&ast.unwrap(), &variables, message);
            assert_eq!(problem.is_some(), expected, "{expression}");
        }
    }

    fn is_found(expression: &str, message: &str) -> bool {
        let (ast, _) = cel::syntax::parse(expression);
        contradiction(&ast.unwrap(), message).is_some()
    }

    #[test]
    fn contradictions_are_found() {
        for (expression, message) in [
            (
                "object.spec.replicas < 100",
                "at most 100 replicas are allowed",
            ),
            ("object.spec.replicas > 10", "At most 10 replicas"),
            ("!(object.spec.replicas <= 10)", "no more than 10 replicas"),
            (
                "!has(object.spec.replicas) || object.spec.replicas > 2",
                "at least 2 replicas",
            ),
            (
                "has(object.x) && object.x.size() < 5",
                "x must have at least 5 items",
            ),
            ("object.spec.replicas >= 5", "replicas must be less than 5"),
            (
                "request.operation == 'DELETE' || object.spec.a.all(a, a.b < 5)",
                "b must be at least 5",
            ),
            (
                "quantity(object.a).isGreaterThan(quantity('2Gi'))",
                "at most 2Gi of memory",
            ),
            (
                "object.spec.type == 'LoadBalancer'",
                "type LoadBalancer is not allowed",
            ),
            (
                "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, c.image == 'a')",
                "all containers must use a",
            ),
            (
                "object.subjects.exists(s, s.name == 'a')",
                "No subject may be a",
            ),
            (
                "object.spec.containers.exists(c, c.image.startsWith('a/'))",
                "every image must come from a",
            ),
            (
                "object.spec.containers.exists(c, c.image.startsWith('a/'))",
                "All container images must come from a",
            ),
            (
                "object.spec.containers.exists(c, c.image.contains('@sha256:'))",
                "images must be pinned by digest",
            ),
            (
                "object.spec.?replicas.orValue(1) <= 5",
                "at most 10 replicas",
            ),
            ("object.spec.replicas < 100", "no more than 10 replicas"),
            ("object.spec.replicas < 3", "at most 30 replicas"),
            ("object.spec.replicas <= 5", "replicas must be <= 10"),
            ("object.spec.replicas < 10", "replicas must be <= 10"),
            ("object.spec.replicas >= 5", "replicas must be at least 2"),
            (
                "object.spec.?replicas.orValue(1) != 3",
                "replicas must be 3",
            ),
            (
                "object.metadata.?namespace.orValue('') != 'prod'",
                "only namespace prod is allowed",
            ),
        ] {
            assert!(is_found(expression, message), "{expression}: {message}");
        }
    }

    #[test]
    fn sound_validations_have_no_finding() {
        for (expression, message) in [
            (
                "object.spec.replicas <= 100",
                "at most 100 replicas are allowed",
            ),
            (
                "object.spec.replicas < 3 || has(object.spec.x)",
                "at least 3 replicas need x",
            ),
            (
                "object.spec.replicas < 3 || !has(object.spec.x)",
                "at least 3 replicas must not set x",
            ),
            (
                "object.spec.replicas < 3",
                "at least 3 replicas are not allowed",
            ),
            (
                "object.spec.replicas < 3",
                "policies with at least 3 replicas are denied",
            ),
            ("object.spec.replicas < 3", "at most 30 pods"),
            ("object.spec.replicas < 3", "at most 3.5 replicas"),
            (
                "object.a >= 1 && object.a <= 5",
                "a must be at least 1 and at most 5",
            ),
            ("object.a == 5", "at most 5"),
            ("object.a.compareTo(quantity('1')) < 0", "at least 0"),
            ("object.a ? object.b < 3 : object.c < 5", "at least 3"),
            (
                "object.spec.type == 'ClusterIP'",
                "types other than ClusterIP are not allowed",
            ),
            (
                "object.spec.type == 'ClusterIP'",
                "only ClusterIP is allowed",
            ),
            (
                "object.spec.type == 'ClusterIP'",
                "non-ClusterIP services are not allowed",
            ),
            (
                "object.spec.type != 'LoadBalancer'",
                "type LoadBalancer is not allowed",
            ),
            (
                "object.spec.ports.exists(p, p.name == 'a')",
                "all containers must have a port a",
            ),
            (
                "object.spec.containers.exists(c, c.image.startsWith('a/'))",
                "images must include a",
            ),
            (
                "object.spec.containers.exists(c, c.name == 'a')",
                "containers must include a",
            ),
            (
                "params.prefixes.exists(p, object.spec.image.startsWith(p))",
                "every image must have an allowed prefix",
            ),
            ("object.spec.replicas < 11", "at most 10 replicas"),
            ("object.spec.replicas > 1", "replicas must be at least 2"),
            (
                "object.spec.timeoutSeconds <= 300",
                "timeoutSeconds must not exceed 5 minutes",
            ),
            ("object.spec.seconds <= 300", "at most 5 minutes"),
            (
                "object.spec.replicas <= 5",
                "at most 10 replicas in production, and at most 5 elsewhere",
            ),
            ("object.spec.replicas <= 5", "at most 10 pods"),
            (
                "object.spec.replicas + object.spec.spare <= 5",
                "at most 3 replicas",
            ),
            ("object.spec.replicas != 3", "replicas must be set"),
            ("object.spec.type != 'NodePort'", "type must be ClusterIP"),
            (
                "object.metadata.namespace != 'prod'",
                "only admins in namespace prod may do this",
            ),
        ] {
            assert!(!is_found(expression, message), "{expression}: {message}");
        }
    }
}
