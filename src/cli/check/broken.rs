//! Assumptions about expressions with a syntax error. They reveal findings about the rest of the expression, and about
//! variables that only this expression reads.
//!
//! An operand of `&&` and `||` with a syntax error is assumed to have no effect on the result. If there are no other
//! operands, the assumed expression evaluates the same variables.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::assumptions::with_variables;
use super::finding::{Assumption, Finding};
use super::policy::PolicyAnalysis;
use super::tokens::TokenText;
use crate::cel::syntax;
use crate::cel::syntax::token::Kind;
use crate::cel::version::Behavior;
use crate::cli::input::Object;
use crate::policy::RequestPolicy;
use crate::policy::expressions::{PolicyExpression, Role};
use crate::policy::rule::Rule;

/// Maximum number of syntax nodes of a part of an expression.
const MAX_NODES: usize = 100_000;

/// The ends of sentences that begin with `continuing as if`.
const AS_IF_OPERAND: &str = "the operand with the error had no effect";
const AS_IF_WHOLE: &str = "the expression evaluated its variables and nothing else";

/// Adds an assumption to the first syntax error of each expression, unless the error has a fix.
pub(super) fn assume(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    findings: &mut [Finding],
) {
    let behavior = analysis.compiled().version().behavior().language;
    let mut fields: HashSet<String> = HashSet::new();
    let fixed = findings.iter().filter(|finding| finding.fix.is_some());
    fields.extend(fixed.filter_map(|finding| finding.field_ref.clone()));
    for finding in findings {
        let Some(field_ref) = &finding.field_ref else {
            continue;
        };
        if finding.rule == Rule::Syntax
            && fields.insert(field_ref.clone())
            && let Some(expression) = analysis.expression(field_ref)
            && let Some(assumption) = assumption(policy, (field_ref, expression), behavior)
        {
            finding.assumption = Some(assumption);
        }
    }
}

fn assumption(
    policy: &Object<RequestPolicy>,
    (field_ref, expression): (&str, &PolicyExpression),
    behavior: Behavior,
) -> Option<Assumption> {
    let text = &*expression.text;
    let source = TokenText::new(text);
    let operand = broken_operand(&source, behavior);
    let (tokens, replacement, as_if) = match operand {
        Some((tokens, value)) => (tokens, value.to_owned(), AS_IF_OPERAND),
        None => {
            let reading = reading_variables(&source, expression.role)?;
            (0..source.len(), reading, AS_IF_WHOLE)
        }
    };
    let bytes = source.bytes(&tokens)?;
    let replaced = text.get(bytes.clone())?.to_owned();
    let n_chars = |byte: usize| Some(text.get(..byte)?.chars().count());
    let part = n_chars(bytes.start)?..n_chars(bytes.end)?;
    let edit = policy.edit_text(field_ref, part, &replacement)?;
    Some(Assumption {
        as_if: Some(as_if),
        condition: (expression.role == Role::MatchCondition)
            .then(|| with_variables(&policy.value, &replaced)),
        replaced: Some(replaced),
        edit,
    })
}

/// Returns the first operand of `&&` or `||` that has a syntax error. Also returns `true` or `false`, whichever lets
/// the other operands determine the result. `None` if no other operand can be parsed.
fn broken_operand(
    source: &TokenText<'_>,
    behavior: Behavior,
) -> Option<(Range<usize>, &'static str)> {
    let parses = |tokens: &Range<usize>| {
        let text = source.source(tokens);
        text.is_some_and(|text| syntax::parses(text, behavior, MAX_NODES))
    };
    let whole = 0..source.len();
    let (mut first, mut has_other) = (None, false);
    for alternative in split(source, &whole, Kind::Or)? {
        let operands = split(source, &alternative, Kind::And)?;
        let n_operands = operands.len();
        let broken: Vec<_> = operands.into_iter().filter(|it| !parses(it)).collect();
        has_other |= broken.len() < n_operands;
        let value = if n_operands > 1 { "true" } else { "false" };
        first = first.or_else(|| Some((broken.into_iter().next()?, value)));
    }
    first.filter(|_| has_other)
}

/// Splits tokens at the operators `&&` or `||` outside of brackets. `None` if the brackets do not match, if an operand
/// is empty, or if the operators are within a conditional.
fn split(
    source: &TokenText<'_>,
    tokens: &Range<usize>,
    operator: Kind,
) -> Option<Vec<Range<usize>>> {
    let (mut operands, mut start, mut n) = (Vec::new(), tokens.start, tokens.start);
    while n < tokens.end {
        let kind = source.kind(n)?;
        if kind == operator {
            operands.push(start..n);
            start = n + 1;
        }
        let before = n.checked_sub(1).and_then(|before| source.kind(before));
        let is_conditional = kind == Kind::Question && before != Some(Kind::Dot);
        n = if kind.opens_bracket() {
            source.close(n)? + 1
        } else if kind.closes_bracket() || is_conditional {
            return None;
        } else {
            n + 1
        };
    }
    operands.push(start..tokens.end);
    let is_complete = operands.iter().all(|operand| operand.start < operand.end);
    is_complete.then_some(operands)
}

/// Returns an expression that has the type of the role and evaluates the variables that the tokens read. `None` if they
/// read no variable.
fn reading_variables(source: &TokenText<'_>, role: Role) -> Option<String> {
    let mut names = BTreeSet::new();
    for n in 0..source.len() {
        let is_variable = source.word(n) == Some("variables")
            && source.kind(n + 1) == Some(Kind::Dot)
            && source.kind(n + 2) == Some(Kind::Ident)
            && n.checked_sub(1).and_then(|before| source.kind(before)) != Some(Kind::Dot);
        if is_variable {
            names.extend(source.word(n + 2));
        }
    }
    let result = match role {
        Role::Validation => "true",
        Role::ApplyConfiguration => "Object{}",
        Role::JsonPatch => "[]",
        Role::MessageExpression | Role::AuditAnnotation => "''",
        // A match condition cannot read variables, and the type of a variable is unknown.
        Role::MatchCondition | Role::Variable => return None,
    };
    let reads = names.iter().map(|name| format!("dyn(variables.{name})"));
    let reads: Vec<_> = reads.collect();
    let list = reads.join(", ");
    (!reads.is_empty()).then(|| format!("[{list}].size() == 0 ? {result} : {result}"))
}
