//! Proposes CEL functions and operators for module functions of other languages, such as `strings.HasPrefix` of Go and
//! `re.match` of Python.

use std::ops::Range;

use super::functions::{call_of, text_and_pattern};
use super::presence::optional_text;
use super::proposal::{Context, Proposal, string_content};
use crate::cel::syntax::token::Kind;
use crate::cli::check::tokens::{MEMBER, RELATION, TokenText};

/// The CEL expression for a function of a module.
#[derive(Clone, Copy)]
enum Form {
    /// A call of this CEL function. Its argument is the first argument of the other language's function.
    Function(&'static str),
    /// A test whether the first argument, a list, contains the second argument.
    Item,
    /// The sum of two lists or strings.
    Concatenation,
    Equal,
    /// A comparison that ignores case.
    EqualFold,
    /// The first argument. If the first argument is absent, the second argument.
    Default,
    Type(&'static str),
    Hint(&'static str),
}

/// Functions of other languages: the names of the modules, the names of the functions, and the CEL expression.
const FUNCTIONS: [(&[&str], &[&str], Form); 22] = [
    (
        &["strconv"],
        &["Atoi", "ParseInt", "ParseUint"],
        Form::Function("int"),
    ),
    (&["strconv"], &["ParseFloat"], Form::Function("double")),
    (&["strconv"], &["ParseBool"], Form::Function("bool")),
    (
        &["strconv"],
        &["Itoa", "FormatInt", "FormatBool"],
        Form::Function("string"),
    ),
    (
        &["resource"],
        &["MustParse", "ParseQuantity"],
        Form::Function("quantity"),
    ),
    (
        &["units"],
        &["parse", "parse_bytes"],
        Form::Function("quantity"),
    ),
    (&["time"], &["ParseDuration"], Form::Function("duration")),
    (
        &["time", "Date", "datetime"],
        &["Parse", "parse", "strptime", "fromisoformat"],
        Form::Hint("write `timestamp(a)` for a string such as `2026-01-01T00:00:00Z`"),
    ),
    (
        &["Date", "datetime", "time", "metav1"],
        &["now", "now_ns", "Now", "utcnow"],
        Form::Hint("expressions cannot read the current time"),
    ),
    (&["slices", "lo"], &["Contains"], Form::Item),
    (&["array"], &["concat"], Form::Concatenation),
    (&["strings"], &["EqualFold"], Form::EqualFold),
    (&["reflect", "cmp"], &["DeepEqual", "Equal"], Form::Equal),
    (&["ptr", "pointer"], &["Deref"], Form::Default),
    (&["Array"], &["isArray"], Form::Type("list")),
    (
        &["sets", "set"],
        &["New", "NewString"],
        Form::Hint("write a list, as in `a in ['b', 'c']`"),
    ),
    (
        &["glob"],
        &["match"],
        Form::Hint(
            "write `a.startsWith('b')` for the glob `b*`, or `a.matches(...)` with a regular expression",
        ),
    ),
    (
        &["JSON", "json", "yaml"],
        &["parse", "unmarshal", "loads", "Unmarshal", "stringify"],
        Form::Hint(
            "expressions cannot parse JSON: write the values in separate fields, labels or params",
        ),
    ),
    (
        &["Math", "math"],
        &["max", "Max", "min", "Min"],
        Form::Hint("write `[a, b].max()` or `[a, b].min()`"),
    ),
    (
        &["Math", "math"],
        &["abs", "Abs"],
        Form::Hint("write `a < 0 ? -a : a`"),
    ),
    (
        &["Math", "math"],
        &["floor", "ceil", "round", "Floor", "Ceil", "Round"],
        Form::Hint("write `int(a)`, which drops the digits after the point"),
    ),
    (
        &["base64"],
        &[
            "decode",
            "encode",
            "b64decode",
            "b64encode",
            "DecodeString",
            "EncodeToString",
            "is_valid",
        ],
        Form::Hint("expressions cannot encode or decode base64"),
    ),
];

/// The modules of regular expressions.
const PATTERNS: [&str; 5] = ["re", "regex", "regexp", "RegExp", "Pattern"];

/// Proposes the expression for a function of a module of another language, such as `a.startsWith('b')` for
/// `strings.HasPrefix(a, 'b')`. `n` is the name of the module.
pub(super) fn module_function(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
) -> Option<Proposal> {
    let (dot, name, open) = (n + 1, n + 2, n + 3);
    let is_call = source.kind(dot)? == Kind::Dot && source.kind(open)? == Kind::OpenParen;
    let close = source.close(open).filter(|_| is_call)?;
    let whole = n..close + 1;
    let args = source.arguments(open)?;
    let (module, function) = (source.word(n)?, source.word(name)?);
    if PATTERNS.contains(&module) {
        return compiled_pattern(source, n)
            .or_else(|| pattern(source, (module, function), &args, &whole));
    }
    let mut rows = FUNCTIONS.iter();
    let row =
        rows.find(|(modules, names, _)| modules.contains(&module) && names.contains(&function));
    if let Some((_, _, form)) = row {
        return replacement(source, *form, &args, &whole);
    }
    matches!(module, "Object" | "strings" | "fmt" | "_" | "str").then_some(())?;
    if let ("strings", "Contains" | "contains", [text, part]) = (module, function, &*args) {
        let text = format!(
            "{}.contains({})",
            source.receiver_text(text)?,
            source.source(part)?
        );
        return Some(Proposal::edit(source.bytes(&whole)?, text));
    }
    call_of(context, source, function, (&args, &whole))
}

fn replacement(
    source: &TokenText<'_>,
    form: Form,
    args: &[Range<usize>],
    whole: &Range<usize>,
) -> Option<Proposal> {
    let (text, precedence) = match (form, args) {
        (Form::Hint(hint), _) => return Some(Proposal::hint(hint)),
        (Form::Function(name), [first, ..]) => {
            (format!("{name}({})", source.source(first)?), MEMBER)
        }
        (Form::Type(name), [first]) => (
            format!("type({}) == {name}", source.source(first)?),
            RELATION,
        ),
        (Form::Item, [list, item]) => {
            let item = source.operand_text(item, RELATION)?;
            (
                format!("{item} in {}", source.operand_text(list, RELATION)?),
                RELATION,
            )
        }
        (Form::Concatenation, [first, second]) => (
            format!("{} + {}", source.source(first)?, source.source(second)?),
            RELATION + 1,
        ),
        (Form::Equal, [first, second]) => (
            format!(
                "{} == {}",
                source.operand_text(first, RELATION)?,
                source.operand_text(second, RELATION)?
            ),
            RELATION,
        ),
        (Form::Default, [value, default]) => (
            format!(
                "{}.orValue({})",
                optional_text(source.source(value)?)?,
                source.source(default)?
            ),
            MEMBER,
        ),
        (Form::EqualFold, [first, second]) => {
            let lower = |tokens: &Range<usize>| {
                Some(format!("{}.lowerAscii()", source.receiver_text(tokens)?))
            };
            (format!("{} == {}", lower(first)?, lower(second)?), RELATION)
        }
        _ => return None,
    };
    let text = source.in_place_of(whole, text, precedence);
    Some(Proposal::edit(source.bytes(whole)?, text))
}

/// Proposes `x.matches('a')` for `regexp.MustCompile('a').MatchString(x)`. `n` is the name of the module.
fn compiled_pattern(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let function = source.word(n + 2)?;
    matches!(function, "MustCompile" | "compile" | "Compile").then_some(())?;
    searched(source, n, n + 3)
}

/// Proposes `x.matches('a')` for a call that searches `x` for a pattern, such as `re('a').matches(x)`. The pattern is
/// the argument of the call whose parenthesis is at `open`, and the expression begins at `start`.
pub(super) fn searched(source: &TokenText<'_>, start: usize, open: usize) -> Option<Proposal> {
    let close = source.close(open)?;
    let is_test = matches!(
        source.word(close + 2),
        Some("match" | "matches" | "test" | "search" | "MatchString" | "fullmatch")
    );
    let second = close + 3;
    let is_call = source.kind(close + 1)? == Kind::Dot && source.kind(second)? == Kind::OpenParen;
    (is_test && is_call).then_some(())?;
    let end = source.close(second)?;
    let whole = start..end + 1;
    let pattern = open + 1..close;
    let text = second + 1..end;
    if let Some(is_whole) = anchor(source.word(start)?, source.word(close + 2)?) {
        return anchored(source, (&text, &pattern), is_whole, &whole);
    }
    let text = source.receiver_text(&text)?;
    let text = format!("{text}.matches({})", source.source(&pattern)?);
    Some(Proposal::edit(source.bytes(&whole)?, text))
}

/// Returns true for a function that matches the whole string, and false for one that matches at its start. `None` for a
/// function that searches, like all functions of languages other than Python.
fn anchor(module: &str, function: &str) -> Option<bool> {
    match (module, function) {
        ("re", "match") => Some(false),
        ("re", "fullmatch") => Some(true),
        _ => None,
    }
}

fn pattern(
    source: &TokenText<'_>,
    (module, function): (&str, &str),
    args: &[Range<usize>],
    whole: &Range<usize>,
) -> Option<Proposal> {
    let [first, second] = args else { return None };
    matches!(
        function,
        "match" | "search" | "fullmatch" | "MatchString" | "matches"
    )
    .then_some(())?;
    // Rego and Python expect the pattern first.
    let (text, pattern) = text_and_pattern(source, (first, second), true);
    if let Some(is_whole) = anchor(module, function) {
        return anchored(source, (text, pattern), is_whole, whole);
    }
    let text = format!(
        "{}.matches({})",
        source.receiver_text(text)?,
        source.source(pattern)?
    );
    Some(Proposal::edit(source.bytes(whole)?, text))
}

/// Proposes `x.matches('^a')` for `re.match('a', x)` of Python, which matches at the start of the string, and
/// `x.matches('^a$')` for `re.fullmatch('a', x)`.
fn anchored(
    source: &TokenText<'_>,
    (text, pattern): (&Range<usize>, &Range<usize>),
    is_whole: bool,
    whole: &Range<usize>,
) -> Option<Proposal> {
    let end = if is_whole { "$" } else { "" };
    let receiver = source.receiver_text(text)?;
    let literal = source.source(pattern)?;
    // A raw string has no escape sequences, so its content may contain backslashes.
    let raw = literal.strip_prefix(['r', 'R']);
    let content = string_content(source, pattern).or_else(|| {
        let quote = raw?.chars().next()?;
        let content = raw?.strip_prefix(quote)?.strip_suffix(quote)?;
        (!content.starts_with(quote) && !content.ends_with('\\')).then_some(content)
    });
    let Some(content) = content else {
        let anchors = if is_whole {
            "the pattern between `^` and `$`"
        } else {
            "`^` before the pattern"
        };
        return Some(Proposal::hint(format!(
            "write `{receiver}.matches(...)` with {anchors}, because matches() searches for the pattern anywhere"
        )));
    };
    let prefix = if raw.is_some() { "r" } else { "" };
    let quote = literal.get(prefix.len()..prefix.len() + 1)?;
    let content = content.strip_prefix('^').unwrap_or(content);
    let content = content
        .strip_suffix('$')
        .filter(|rest| is_whole && !rest.ends_with('\\'))
        .unwrap_or(content);
    let content = if content.contains('|') {
        format!("(?:{content})")
    } else {
        content.to_owned()
    };
    let call = format!("{receiver}.matches({prefix}{quote}^{content}{end}{quote})");
    Some(Proposal::edit(source.bytes(whole)?, call))
}
