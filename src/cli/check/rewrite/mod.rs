//! Proposes the CEL expression that an author probably intended with an expression of the wrong type, such as
//! `x in list` for `list.contains(x)`.
//!
//! A proposal with an edit is unambiguous. It requires that the original expression cannot be evaluated, or has only
//! one possible result.

mod calls;
mod engines;
mod functions;
mod literals;
mod modules;
mod predicates;
pub(super) mod presence;
mod proposal;
mod relations;
mod results;
mod selection;
mod sizes;
mod times;
pub(super) mod type_tests;
mod undeclared;

use std::ops::Range;

use self::calls::{MemberCall, alternatives, call, conversion, decision, has_name, item_of_list};
use self::functions::global_call;
use self::literals::{format_verbs, json_patch, literal, quantity, type_name};
pub(super) use self::proposal::{Context, Proposal, string_content};
use self::proposal::{is_decision, is_named, is_object_like, is_quantity, wrap};
use self::relations::{chained, quantity_of_variable};
use self::results::{appended, result_type};
use self::selection::{decision_method, range_of_macro, selection, undefined_field};
use self::sizes::{path, size_of_collection};
use self::times::{seconds, time_difference, time_sum};
use self::undeclared::undeclared;
use super::tokens::TokenText;
use crate::cel::diagnostic::{Candidates, DiagnosticKind};
use crate::cel::source::{Location, SourceMap};
use crate::cel::syntax::token::Kind;
use crate::cel::types::Type;
use crate::cel::value::Value;
use crate::cli::text::names_hint;
use crate::policy::RequestPolicy;
use crate::policy::compile::Issue;
use crate::policy::expressions::Role;
use crate::policy::rule::Rule;

/// The problem of an expression.
#[derive(Clone, Copy)]
pub(super) enum Problem<'a> {
    /// The diagnostic of a rule.
    Diagnostic(Rule, &'a DiagnosticKind),
    /// The expression has this result type, but its role requires another type.
    ResultType(&'a Type),
    /// The operands of a comparison have different types. See [`IncomparableTypes::operands`].
    ///
    /// [`IncomparableTypes::operands`]: crate::policy::analysis::IncomparableTypes::operands
    IncomparableTypes([&'static str; 2]),
    /// A problem of another rule.
    Other(Rule),
}

impl<'a> Problem<'a> {
    /// Returns the problem that `issue` reports. `rule` is the rule of its finding.
    pub(super) fn new(rule: Rule, issue: &Issue<'a>) -> Self {
        match (issue.kind, issue.result_type) {
            (Some(kind), _) => Self::Diagnostic(rule, kind),
            (None, Some(type_)) => Self::ResultType(type_),
            (None, None) => Self::Other(rule),
        }
    }

    pub(super) fn rule(self) -> Rule {
        match self {
            Self::Diagnostic(rule, _) | Self::Other(rule) => rule,
            Self::ResultType(_) => Rule::ResultType,
            Self::IncomparableTypes(_) => Rule::IncomparableTypes,
        }
    }
}

/// Returns the proposal for a problem at `location`.
pub(super) fn proposal(
    context: Context<'_>,
    problem: Problem<'_>,
    location: Location,
) -> Option<Proposal> {
    let source = TokenText::new(context.text);
    if let Problem::ResultType(actual) = problem {
        return result_type(context, &source, actual);
    }
    let byte = SourceMap::new(context.text).byte(location)?;
    let n = source.at(byte)?;
    let kind = match problem {
        Problem::Diagnostic(_, kind) => Some(kind),
        Problem::IncomparableTypes(operands) => {
            return size_of_collection(context, &source, n)
                .or_else(|| field_of_object(context, &source, n, operands))
                .or_else(|| incomparable(&source, n, operands));
        }
        Problem::ResultType(_) | Problem::Other(_) => None,
    };
    let rule = problem.rule();
    match kind {
        Some(DiagnosticKind::NoMatchingOverload { function, args, .. }) => {
            overload(context, &source, n, (function, args))
        }
        Some(DiagnosticKind::NoFieldSelection { operand }) => {
            selection(context, &source, n, operand)
        }
        Some(DiagnosticKind::UndefinedField(undefined)) => {
            undefined_field(context, &source, n, &undefined.name)
        }
        Some(DiagnosticKind::UnresolvedType { name }) if name.ends_with(".Decision") => {
            decision_method(&source, n)
        }
        Some(DiagnosticKind::NotARange { range }) => range_of_macro(&source, n, range),
        Some(DiagnosticKind::UndeclaredReference { name }) => undeclared(context, &source, n, name),
        Some(DiagnosticKind::TypeMismatch { .. } | DiagnosticKind::MixedLiteral { .. })
            if context.role == Role::JsonPatch =>
        {
            json_patch(&source)
        }
        Some(DiagnosticKind::TypeMismatch { actual, .. }) if *actual != Type::Bool => {
            alternatives(&source, n)
                .filter(|_| *actual == Type::String)
                .or_else(|| default_after_or(&source, n))
        }
        Some(DiagnosticKind::FieldTypeMismatch { declared, .. }) => {
            field_value(&source, n, declared)
        }
        Some(DiagnosticKind::Other {
            correction: Some(expected),
            ..
        }) => type_name(&source, n, expected),
        _ if rule == Rule::InvalidLiteral => literal(&source, n).or_else(|| format_verbs(&source)),
        _ if rule == Rule::FailingCall => quantity(&source, n),
        _ => None,
    }
}

/// Returns a hint about an index that denotes any item, such as `[*]` of `JSONPath`. `open` is the bracket.
pub(super) fn any_index(source: &TokenText<'_>, open: usize) -> Option<Proposal> {
    functions::any_index(source, open)
}

/// Returns a hint with the declared fields of a value. `None` if there are none, or too many.
pub(super) fn fields_hint(policy: &RequestPolicy, kind: Option<&DiagnosticKind>) -> Option<String> {
    let Some(DiagnosticKind::UndefinedField(undefined)) = kind else {
        return None;
    };
    let (noun, mut names) = match undefined.candidates {
        Candidates::Elsewhere => {
            let variables = policy.variables.iter();
            ("variable", variables.map(|it| it.name.as_str()).collect())
        }
        _ => ("field", undefined.candidates.names()),
    };
    names_hint(noun, &mut names)
}

/// Proposes a replacement for a call or operation without a matching overload.
fn overload(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
    (function, args): (&str, &[Type]),
) -> Option<Proposal> {
    if source.kind(n)? == Kind::OpenParen {
        return match MemberCall::new(source, n) {
            Some(member) => call(&member, function, args),
            None => conversion(source, n, function, args)
                .or_else(|| global_call(context, source, n, function)),
        };
    }
    match (function, args) {
        ("!_", [operand]) => {
            let tokens = source.right(n + 1, 6)?;
            let is_relation =
                |word: &str| matches!(word, "==" | "!=" | "<" | "<=" | ">" | ">=" | "in");
            if source.word(tokens.end).is_some_and(is_relation) {
                return negated(source, tokens.end, (&Type::Bool, &Type::Dyn));
            }
            condition(source, &tokens, operand)
        }
        ("_&&_" | "_||_", [left, right]) => {
            let (left_tokens, right_tokens) = source.operands(n)?;
            condition(source, &left_tokens, left)
                .or_else(|| condition(source, &right_tokens, right))
        }
        ("@in", [Type::Dyn, Type::String]) => {
            let (left, right) = source.operands(n)?;
            swapped_in(context, source, &left, &right).or_else(|| in_string(source, &left, &right))
        }
        (_, [left, right]) => size_of_collection(context, source, n)
            .or_else(|| negated(source, n, (left, right)))
            .or_else(|| chained(source, n, (left, right)))
            .or_else(|| quantity_of_variable(context, source, n, (left, right)))
            .or_else(|| operator(source, n, function, (left, right))),
        _ => None,
    }
}

/// Returns a hint about `a.b || 'c'`, where other languages use `'c'` as the default value. `n` is a token of one of
/// the operands.
fn default_after_or(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let is_or = |n: usize| source.kind(n) == Some(Kind::Or);
    let or = match n.checked_sub(1) {
        Some(before) if is_or(before) => before,
        _ if matches!(source.kind(n)?, Kind::Dot | Kind::OpenBracket) => source.chain_end(n)?,
        _ => source.chain_end(n + 1)?,
    };
    let literal = or + 1..or + 2;
    let is_bool = matches!(source.kind(literal.start)?, Kind::True | Kind::False);
    (is_or(or) && presence::is_literal(source, &literal) && !is_bool).then_some(())?;
    let chain = source.receiver(or)?;
    let value = presence::optional_text(source.source(&chain)?)?;
    let default = source.source(&literal)?;
    Some(Proposal::hint(format!(
        "`||` accepts only bools: write `{value}.orValue({default})` for a default value"
    )))
}

/// Proposes a condition for an operand that is not a bool.
fn condition(source: &TokenText<'_>, tokens: &Range<usize>, type_: &Type) -> Option<Proposal> {
    let text = source.source(tokens)?;
    let is_chain = source.is_chain(tokens);
    if is_decision(type_) && is_chain {
        return Some(appended(source.bytes(tokens)?, text, ".allowed()"));
    }
    let last = tokens.end.checked_sub(1)?;
    let is_select = last
        .checked_sub(1)
        .is_some_and(|dot| source.kind(dot) == Some(Kind::Dot))
        && source.kind(last)? == Kind::Ident;
    (is_object_like(type_) && is_chain && is_select).then(|| {
        Some(Proposal::edit(
            source.bytes(tokens)?,
            format!("has({text})"),
        ))
    })?
}

/// Returns the literal of type `type_` in a string literal, such as `5` in `'5'`.
fn unquoted<'t>(source: &TokenText<'t>, tokens: &Range<usize>, type_: &Type) -> Option<&'t str> {
    let content = string_content(source, tokens)?;
    let is_literal = match type_ {
        Type::Bool => matches!(content, "true" | "false"),
        Type::Int => content.parse::<i64>().is_ok() && !content.starts_with('+'),
        _ => false,
    };
    is_literal.then_some(content)
}

/// Proposes a call of the function `name`, which converts a string to the type `to`. `None` for a literal that cannot
/// be converted. Only params, labels and annotations contain numbers as strings. Other fields may be quantities or
/// durations, whose conversion would fail.
fn convert(
    source: &TokenText<'_>,
    tokens: &Range<usize>,
    (name, to): (&str, &Type),
) -> Option<Proposal> {
    if let Some(content) = string_content(source, tokens) {
        let converts = Value::from(content).convert_to(to).is_ok();
        return converts.then(|| wrap(source, tokens, name))?;
    }
    let is_number = matches!(to, Type::Int | Type::Double);
    if is_number && !reads_string_values(source, tokens) {
        let text = source.source(tokens)?;
        return Some(Proposal::hint(format!(
            "convert the string: `{name}({text})` if it is a number, `quantity({text})` if it is a quantity such as `1Gi`, \
             `duration({text})` if it is a duration"
        )));
    }
    wrap(source, tokens, name)
}

/// Returns true if the tokens read params, labels, annotations or the data of a `ConfigMap`, whose values are strings.
fn reads_string_values(source: &TokenText<'_>, tokens: &Range<usize>) -> bool {
    let is_first = |n: usize| n == tokens.start;
    tokens.clone().any(|n| match source.word(n) {
        Some("params") => is_first(n),
        Some("labels" | "annotations" | "data") => !is_first(n),
        _ => false,
    })
}

fn operator(
    source: &TokenText<'_>,
    n: usize,
    function: &str,
    (left_type, right_type): (&Type, &Type),
) -> Option<Proposal> {
    let (left, right) = source.operands(n)?;
    let sides = [
        (&left, left_type, right_type),
        (&right, right_type, left_type),
    ];
    let equal = matches!(function, "_==_" | "_!=_");
    if equal && let Some(proposal) = null_of_test(source, n, (left_type, right_type)) {
        return Some(proposal);
    }
    let ordered = matches!(function, "_<_" | "_<=_" | "_>_" | "_>=_");
    if equal || ordered {
        for (tokens, type_, other) in sides {
            if *type_ == Type::String
                && let Some(literal) = unquoted(source, tokens, other)
            {
                return Some(Proposal::edit(source.bytes(tokens)?, literal.to_owned()));
            }
            if equal
                && *other == Type::String
                && tokens.len() == 1
                && is_literal_of(type_, source, tokens)
            {
                let text = source.source(tokens)?;
                return Some(Proposal::edit(source.bytes(tokens)?, format!("'{text}'")));
            }
        }
    }
    if equal {
        return sides.into_iter().find_map(|(tokens, type_, other)| {
            if let (Type::List(item), Type::String) = (type_, other)
                && matches!(**item, Type::String | Type::Dyn)
            {
                let text = if *tokens == left { &right } else { &left };
                let (list, text) = (source.source(tokens)?, source.source(text)?);
                return Some(item_of_list(source, n, text, list));
            }
            if is_decision(type_) {
                return decision(source, n, tokens, other);
            }
            let field = match () {
                () if is_named(type_, "GroupVersionKind") => "kind",
                () if is_named(type_, "GroupVersionResource") => "resource",
                () if has_name(type_) => "name",
                () => return None,
            };
            let text = source.source(tokens)?;
            let is_text = *other == Type::String && source.is_chain(tokens);
            is_text.then(|| {
                Some(Proposal::edit(
                    source.bytes(tokens)?,
                    format!("{text}.{field}"),
                ))
            })?
        });
    }
    if ordered {
        return comparison(source, n, (&left, left_type), (&right, right_type)).or_else(|| {
            sides
                .into_iter()
                .find_map(|(tokens, type_, other)| match (type_, other) {
                    (Type::String, Type::Int) => convert(source, tokens, ("int", other)),
                    (Type::String, Type::Double) => convert(source, tokens, ("double", other)),
                    (Type::String, Type::Duration) => convert(source, tokens, ("duration", other)),
                    (Type::String, Type::Timestamp) => {
                        convert(source, tokens, ("timestamp", other))
                    }
                    (Type::List(_) | Type::Map(_), Type::Int) => wrap(source, tokens, "size"),
                    (Type::Duration, Type::Int) => {
                        let number = if *tokens == left { &right } else { &left };
                        seconds(source, tokens, number)
                    }
                    _ => None,
                })
        });
    }
    arithmetic(source, function, [(&left, left_type), (&right, right_type)])
}

/// Proposes `a` for `a != null`, and `!a` for `a == null`, if `a` is a bool such as `has(b.c)`.
fn null_of_test(
    source: &TokenText<'_>,
    n: usize,
    (left_type, right_type): (&Type, &Type),
) -> Option<Proposal> {
    let (left, right) = source.operands(n)?;
    let is_null = *left_type == Type::Bool && *right_type == Type::Null;
    (is_null && source.is_chain(&left)).then_some(())?;
    let is_equal = source.kind(n)? == Kind::Equals;
    let sign = if is_equal { "!" } else { "" };
    let text = format!("{sign}{}", source.source(&left)?);
    let proposal = Proposal::edit(source.bytes(&(left.start..right.end))?, text);
    Some(proposal.with_reason(if source.word(left.start)? == "has" {
        "has() is true or false, never null"
    } else {
        "a bool is never null"
    }))
}

/// Proposes the correction of `+`, `-`, `in` or `%` with operands of the wrong types.
fn arithmetic(
    source: &TokenText<'_>,
    function: &str,
    [(left, left_type), (right, right_type)]: [(&Range<usize>, &Type); 2],
) -> Option<Proposal> {
    let sides = [
        (left, left_type, right_type),
        (right, right_type, left_type),
    ];
    match (function, left_type, right_type) {
        ("_+_", Type::Map(_), _) | ("_+_", _, Type::Map(_)) => Some(Proposal::hint(
            "`+` does not merge maps; an ApplyConfiguration merges maps, so write only the new entries",
        )),
        ("_+_", ..) => sides.into_iter().find_map(|(tokens, type_, other)| {
            if *other != Type::String {
                return None;
            }
            match type_ {
                Type::Duration | Type::Timestamp => {
                    let text = if tokens == left { right } else { left };
                    time_sum(source, (tokens, type_), text)
                }
                Type::Int | Type::Uint | Type::Double | Type::Bool => {
                    let other_tokens = if tokens == left { right } else { left };
                    // `1 + '2'` may be intended as a sum or as a concatenation, so it gets no edit.
                    let is_number = |text: &str| text.parse::<f64>().is_ok();
                    let is_ambiguous = string_content(source, other_tokens).is_some_and(is_number);
                    (!is_ambiguous).then(|| wrap(source, tokens, "string"))?
                }
                Type::List(item) if matches!(**item, Type::String | Type::Dyn) => {
                    let text = source.receiver_text(tokens)?;
                    let text = format!("{text}.join(', ')");
                    Some(Proposal::edit(source.bytes(tokens)?, text))
                }
                _ => None,
            }
        }),
        ("_-_", Type::String | Type::Timestamp, Type::String)
        | ("_-_", Type::String, Type::Timestamp) => {
            time_difference(source, (left, left_type), (right, right_type))
        }
        ("@in", Type::String | Type::Dyn, Type::String) => in_string(source, left, right),
        ("@in", Type::List(_), Type::List(_)) => {
            let (list, others) = (source.receiver_text(left)?, source.source(right)?);
            Some(Proposal::hint(format!(
                "write `{list}.exists(x, x in {others})` if one item is enough, or `{list}.all(x, x in {others})` if each \
                 item must be in the list"
            )))
        }
        ("_%_", Type::String, _) => {
            let values = source.source(right)?;
            let values = values
                .strip_prefix('(')
                .and_then(|it| it.strip_suffix(')'))
                .unwrap_or(values);
            let text = format!("{}.format([{values}])", source.receiver_text(left)?);
            Some(Proposal::edit(
                source.bytes(&(left.start..right.end))?,
                text,
            ))
        }
        _ => None,
    }
}

/// Proposes `!(x == 'a')` for `!x == 'a'`, where `!` negates only `x`.
fn negated(source: &TokenText<'_>, n: usize, types: (&Type, &Type)) -> Option<Proposal> {
    let (left, right) = source.operands(n)?;
    let is_of_left = source.kind(left.start)? == Kind::Exclamation && *types.0 == Type::Bool;
    let is_of_test = source.word(left.start + 1) == Some("has") && *types.1 == Type::Null;
    if is_of_left && is_of_test {
        let test = source.source(&(left.start + 1..left.end))?;
        return Some(Proposal::hint(format!(
            "has() is true or false, never null: write `{test}` for a present value, or `!{test}` for an absent one"
        )));
    }
    (is_of_left && *types.1 != Type::Bool).then_some(())?;
    let whole = left.start + 1..right.end;
    let text = format!("({})", source.source(&whole)?);
    let help = format!("write `!{text}`");
    let proposal = Proposal::edit(source.bytes(&whole)?, text);
    Some(Proposal { help, ..proposal })
}

/// Proposes to swap the operands of `labels in 'a'`.
fn swapped_in(
    context: Context<'_>,
    source: &TokenText<'_>,
    left: &Range<usize>,
    right: &Range<usize>,
) -> Option<Proposal> {
    let (collection, key) = (source.source(left)?, source.source(right)?);
    string_content(source, right)?;
    (source.is_chain(left) && (context.is_collection)(collection)).then_some(())?;
    let bytes = source.bytes(&(left.start..right.end))?;
    Some(Proposal::edit(bytes, format!("{key} in {collection}")))
}

/// Proposes a list for the string of `x in 'a,b'`. A substring test would accept each part of the string, such as `a` for
/// `admin`.
fn in_string(
    source: &TokenText<'_>,
    left: &Range<usize>,
    right: &Range<usize>,
) -> Option<Proposal> {
    const REASON: &str = "`in` searches lists and maps";
    let (tested, string) = (source.source(left)?, source.source(right)?);
    let inner = string
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'))
        .filter(|_| right.len() == 3);
    if let Some(inner) = inner {
        return Some(Proposal::edit(source.bytes(right)?, format!("[{inner}]")));
    }
    if let Some(map) = string.strip_suffix(".keys") {
        return Some(Proposal::edit(source.bytes(right)?, map.to_owned()));
    }
    let Some(content) = string_content(source, right) else {
        // A constant before `in` is probably a substring to search for in a field. Params are excluded, because they
        // may contain a list of values as one string.
        let is_constant = string_content(source, left).is_some_and(|text| !text.contains(','));
        if is_constant && source.word(right.start) != Some("params") {
            let text = format!("{}.contains({tested})", source.receiver_text(right)?);
            let bytes = source.bytes(&(left.start..right.end))?;
            return Some(Proposal::edit(bytes, text).with_reason(REASON));
        }
        let list = source.receiver_text(right)?;
        return Some(Proposal::hint(format!(
            "{REASON}: write `{tested} in {list}.split(',')` for a string with separators"
        )));
    };
    let separator = [',', ';', '|', ' ']
        .into_iter()
        .find(|it| content.contains(*it));
    let items: Vec<&str> = separator
        .into_iter()
        .flat_map(|separator| content.split(separator))
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect();
    if items.len() < 2 {
        return Some(Proposal::hint(format!(
            "{REASON}: write `{tested} == {string}`, or `{tested} in [{string}]`"
        )));
    }
    let quote = string.chars().next()?;
    let items: Vec<String> = items
        .iter()
        .map(|item| format!("{quote}{item}{quote}"))
        .collect();
    let list = format!("[{}]", items.join(", "));
    Some(Proposal::edit(source.bytes(right)?, list).with_reason(REASON))
}

fn is_literal_of(type_: &Type, source: &TokenText<'_>, tokens: &Range<usize>) -> bool {
    matches!(
        (type_, source.kind(tokens.start)),
        (Type::Bool, Some(Kind::True | Kind::False)) | (Type::Int, Some(Kind::Int))
    )
}

/// Proposes `compareTo()` for an ordered comparison of quantities.
fn comparison(
    source: &TokenText<'_>,
    n: usize,
    (left, left_type): (&Range<usize>, &Type),
    (right, right_type): (&Range<usize>, &Type),
) -> Option<Proposal> {
    let quantity = |tokens: &Range<usize>, type_: &Type| {
        let text = source.source(tokens)?;
        match type_ {
            type_ if is_quantity(type_) => Some(text.to_owned()),
            Type::String => Some(format!("quantity({text})")),
            _ => None,
        }
    };
    (is_quantity(left_type) || is_quantity(right_type)).then_some(())?;
    let receiver = match left_type {
        Type::String => quantity(left, left_type)?,
        _ => source
            .receiver_text(left)
            .filter(|_| is_quantity(left_type))?,
    };
    let text = format!(
        "{receiver}.compareTo({}) {} 0",
        quantity(right, right_type)?,
        source.word(n)?
    );
    Some(Proposal::edit(
        source.bytes(&(left.start..right.end))?,
        text,
    ))
}

/// Proposes the name or the type of an object that is compared with a string, such as `roleRef.name`.
fn field_of_object(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
    operands: [&str; 2],
) -> Option<Proposal> {
    let is_of_types = matches!(operands, ["map", "string"] | ["string", "map"]);
    let is_equality = source.kind(n)? != Kind::In;
    let (left, right) = source.operands(n).filter(|_| is_of_types && is_equality)?;
    let object = if string_content(source, &right).is_some() {
        left
    } else {
        string_content(source, &left)?;
        right
    };
    let path = path(source, &object)?;
    let mut fields = ["name", "type"].into_iter();
    let field = fields.find(|field| (context.is_declared)(&format!("{path}.{field}")))?;
    let text = format!("{}.{field}", source.source(&object)?);
    Some(Proposal::edit(source.bytes(&object)?, text))
}

/// Proposes `a.?b.hasValue()` for `a.?b != null`.
fn optional_and_null(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let (left, right) = source.operands(n)?;
    let is_null = source.kind(right.start)? == Kind::Null && right.len() == 1;
    let (optional, whole) = if is_null {
        (&left, left.start..right.end)
    } else {
        (&right, left.start..right.end)
    };
    let sign = match source.kind(n)? {
        Kind::Equals => "!",
        Kind::NotEquals => "",
        _ => return None,
    };
    let text = format!("{sign}{}.hasValue()", source.receiver_text(optional)?);
    Some(Proposal::edit(source.bytes(&whole)?, text))
}

/// Proposes a correction of a comparison whose operands are never equal because of their `types`.
fn incomparable(source: &TokenText<'_>, n: usize, types: [&str; 2]) -> Option<Proposal> {
    let (left, right) = source.operands(n)?;
    if types.contains(&"null") {
        return optional_and_null(source, n);
    }
    let unwrapped = match types {
        ["optional", _] => Some(&left),
        [_, "optional"] => Some(&right),
        _ => None,
    };
    if let Some(optional) = unwrapped {
        let optional = source.source(optional)?;
        return Some(Proposal::hint(format!(
            "write `{optional}.orValue(...)` with the value to use for an absent field"
        )));
    }
    let is_in = source.kind(n)? == Kind::In;
    let compared = if is_in { &types[..1] } else { &types[..] };
    let has = |type_| compared.contains(&type_);
    let other = if has("bool") {
        Type::Bool
    } else if has("number") {
        Type::Int
    } else if has("string") && (is_in || has("list")) {
        let is_text = |tokens: &Range<usize>| string_content(source, tokens).is_some();
        let (list, item) = if is_text(&right) {
            (&left, &right)
        } else {
            (&right, &left)
        };
        let (list, item) = (source.source(list)?, source.source(item)?);
        // If the operator is `in`, the type error means that the items are objects.
        if is_in {
            return Some(Proposal::hint(format!(
                "compare a field of the items, as in `{list}.exists(x, x.name == {item})`"
            )));
        }
        return Some(item_of_list(source, n, item, list));
    } else {
        return None;
    };
    let operands = [&left, &right];
    let with_quotes = || {
        // A label has the value `'true'`, never `true`.
        let literal = operands.into_iter().find(|tokens| {
            tokens.len() == 1 && has("string") && is_literal_of(&other, source, tokens)
        })?;
        let text = source.source(literal)?;
        Some(Proposal::edit(source.bytes(literal)?, format!("'{text}'")))
    };
    let without_quotes = operands.into_iter().find_map(|tokens| {
        let literal = unquoted(source, tokens, &other)?;
        Some(Proposal::edit(source.bytes(tokens)?, literal.to_owned()))
    });
    without_quotes.or_else(with_quotes)
}

/// Proposes a literal of the type `declared` for the value of a field in an object literal. `n` is the colon after the
/// field name.
fn field_value(source: &TokenText<'_>, n: usize, declared: &str) -> Option<Proposal> {
    let colon = if source.kind(n)? == Kind::Colon {
        n
    } else {
        n + 1
    };
    (source.kind(colon)? == Kind::Colon).then_some(())?;
    let value = source.right(colon + 1, 0)?;
    let type_ = match declared {
        "int" => Type::Int,
        "bool" => Type::Bool,
        "string" if value.len() == 1 => {
            let is_literal = matches!(
                source.kind(value.start)?,
                Kind::Int | Kind::True | Kind::False | Kind::Float
            );
            let text = source.source(&value)?;
            return is_literal
                .then(|| Some(Proposal::edit(source.bytes(&value)?, format!("'{text}'"))))?;
        }
        _ => return None,
    };
    let literal = unquoted(source, &value, &type_)?;
    Some(Proposal::edit(source.bytes(&value)?, literal.to_owned()))
}

#[cfg(test)]
mod tests;
