//! Generates the changed code of candidates: guards, defaults and renamed variables.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value as Json;

use super::candidates::{Candidate, Origin, ProposedDefault, is_boolean};
use super::guard::{self, OptionalChain};
use crate::expressions::Role;
use crate::runtime_errors::failure_sites::{FailureSite, SitesByNode};
use crate::subexpressions;
use crate::subexpressions::conditions::{self, Condition};
use crate::suggestion::Effect;
use cel::ast::{Expr, ExprId};
use cel::syntax::lexer;
use cel::syntax::token::Kind;

/// Maximum length of a condition in a message, in bytes.
const MAX_SHOWN: usize = 80;

/// The variables that are declared everywhere in an expression, unlike macro variables.
const DECLARED: [&str; 6] = [
    "object",
    "oldObject",
    "namespaceObject",
    "params",
    "request",
    "variables",
];

/// Returns the condition with the guards `tests`, in two forms. If one of the tests is false, the first form is false,
/// and the second form is true.
pub(super) fn guards(
    origin: &Origin<'_>,
    condition: &Condition,
    tests: &[String],
) -> Vec<Candidate> {
    let Some(plain) = origin.text.get(condition.bytes.clone()) else {
        return Vec::new();
    };
    let (all, none) = (tests.join(" && "), guard::negated(tests));
    // `||` and `?:` bind less tightly than `&&`.
    let is_loose = matches!(
        origin.ast.global_call(condition.id),
        Some(("_||_" | "_?_:_", _))
    );
    let is_ternary = matches!(origin.ast.global_call(condition.id), Some(("_?_:_", _)));
    let grouped = |is_grouped: bool, text: &str| {
        if is_grouped {
            format!("({text})")
        } else {
            text.to_owned()
        }
    };
    // A condition is written out if it is negated or is only a part of the expression, because `...` would be
    // ambiguous.
    let is_negated = origin.ast.iter().any(|(id, _)| {
        let is_negation = matches!(origin.ast.global_call(id), Some(("!_", _)));
        is_negation && id != condition.id && origin.ast.descendants(id).contains(&condition.id)
    });
    let is_part = condition.id != origin.ast.root();
    let is_shown = (is_negated || is_part) && plain.len() <= MAX_SHOWN;
    let rest = if is_shown { plain } else { "..." };
    let conjunction = format!("{all} && {}", grouped(is_loose, plain));
    let disjunction = format!("{none} || {}", grouped(is_ternary, plain));
    vec![
        Candidate {
            shown: format!("{all} && {}", grouped(is_loose, rest)),
            bytes: condition.bytes.clone(),
            replacement: conjunction,
            default: None,
            is_exact: true,
            intent: None,
        },
        Candidate {
            shown: condition.disjunction(&format!(
                "{none} || {}",
                grouped(is_ternary && is_shown, rest)
            )),
            bytes: condition.bytes.clone(),
            replacement: condition.disjunction(&disjunction),
            default: None,
            is_exact: true,
            intent: None,
        },
    ]
}

/// Returns the call of `orValue()` on the node `id`, and the source of its argument.
pub(super) fn or_value(origin: &Origin<'_>, id: ExprId) -> Option<(ExprId, String)> {
    let (call, argument) = origin.ast.iter().find_map(|(call, expr)| match expr {
        Expr::Call {
            function,
            target: Some(target),
            args,
        } if &**function == "orValue" && *target == id => Some((call, *args.first()?)),
        _ => None,
    })?;
    Some((call, subexpressions::text(origin.ast, argument)))
}

/// Returns guards of the whole expression if a second chain in it reads the absent value. Chains that start at a macro
/// variable are excluded, because the variable is declared only within the macro.
pub(super) fn guards_of_whole(
    origin: &Origin<'_>,
    sites_by_node: &SitesByNode<'_>,
    (site, chain): (&FailureSite, &OptionalChain),
    condition: &Condition,
) -> Vec<Candidate> {
    let mut sites = sites_by_node.values().flatten();
    let is_shared = sites.any(|other| {
        other.node.index == site.node.index && other.path == site.path && other.chain != site.chain
    });
    let n_tests = chain.test_nodes.iter().position(|id| *id == site.node.id);
    let tests = n_tests.and_then(|n| chain.tests.get(..=n));
    let whole = conditions::whole(origin.ast, origin.text);
    let (Some(tests), Some(whole)) = (tests, whole) else {
        return Vec::new();
    };
    let is_declared = DECLARED.contains(&&*chain.base_name);
    let is_nested = whole.bytes != condition.bytes && is_boolean(origin, whole.id);
    // Another operand of `||` may be true for an absent value. A guard of the whole expression would change this
    // result.
    let is_alternative = is_alternative(origin, site.node.id)
        && !is_read_by_all(origin, whole.id, sites_by_node, site);
    if !is_shared || !is_declared || !is_nested || is_alternative {
        return Vec::new();
    }
    guards(origin, &whole, tests)
}

/// Returns true if the expression `id` is a chain of `||` each of whose operands fails for the absent value of `site`.
fn is_read_by_all(
    origin: &Origin<'_>,
    id: ExprId,
    sites_by_node: &SitesByNode<'_>,
    site: &FailureSite,
) -> bool {
    let mut open = vec![id];
    while let Some(operand) = open.pop() {
        if let Some(("_||_", args)) = origin.ast.global_call(operand) {
            open.extend(args);
            continue;
        }
        let mut nodes = origin.ast.descendants(operand).into_iter();
        let fails = |id: ExprId| {
            let sites = sites_by_node.get(&(site.node.index, id.index()));
            let mut sites = sites.into_iter().flatten();
            sites.any(|other| other.cause == site.cause && other.path == site.path)
        };
        // The operands of `&&` and `?:` are not always evaluated.
        let is_plain = !matches!(origin.ast.global_call(operand), Some(("_&&_" | "_?_:_", _)));
        if !is_plain || !nodes.any(fails) {
            return false;
        }
    }
    true
}

/// Returns true if the node `id` is in an operand of `||` or `?:`.
pub(super) fn is_alternative(origin: &Origin<'_>, id: ExprId) -> bool {
    origin.ast.iter().any(|(call, _)| {
        matches!(origin.ast.global_call(call), Some(("_||_" | "_?_:_", _)))
            && origin.ast.descendants(call).contains(&id)
    })
}

/// Proposes optional selections in the chain, and a call of `orValue()` with the default. An existing `orValue()` keeps
/// its argument. With optional selections, the argument has an effect.
pub(super) fn with_default(
    origin: &Origin<'_>,
    (chain, id): (&OptionalChain, ExprId),
    condition: Option<&Condition>,
    default: Option<ProposedDefault>,
) -> Option<Candidate> {
    let bytes = conditions::chain_range(origin.ast, origin.text, (chain.base, id))?;
    let (bytes, mut replacement, default) = match or_value(origin, id) {
        Some((call, argument)) => {
            let all = conditions::chain_range(origin.ast, origin.text, (chain.base, call))?;
            let rest = origin.text.get(bytes.end..all.end)?;
            // Without a `?`, the argument never had an effect. The effect of the candidate is known only if the
            // argument equals the default.
            let default = match default {
                Some(ProposedDefault::Known(default)) if default.literal == argument => {
                    Some(default)
                }
                _ => None,
            };
            (all, format!("{}{rest}", chain.optional_text), default)
        }
        None => {
            let (literal, default) = match default? {
                ProposedDefault::Known(default) => (default.literal.clone(), Some(default)),
                ProposedDefault::Any(literal) => (literal, None),
            };
            let replacement = format!("{}.orValue({literal})", chain.optional_text);
            (bytes, replacement, default)
        }
    };
    // A condition must be boolean, but fields have the type `dyn` when the policy is created. A comparison makes the
    // condition boolean.
    let is_condition = matches!(origin.role, Role::Validation | Role::MatchCondition);
    let is_whole = condition
        .is_some_and(|condition| condition.bytes == bytes && condition.id == origin.ast.root());
    if is_condition && is_whole {
        replacement.push_str(" == true");
    }
    // The other operands of a concatenation also affect the decision.
    let is_part = default.as_ref().is_some_and(|it| it.literal == "[]")
        && origin.ast.iter().any(|(call, _)| {
            matches!(origin.ast.global_call(call), Some(("_+_", args)) if args.contains(&id))
        });
    Some(Candidate {
        shown: replacement.clone(),
        bytes,
        replacement,
        default,
        is_exact: true,
        intent: is_part.then_some(Effect::Evaluated),
    })
}

/// Applies the candidate to all occurrences of the chain in the expression. `None` if there is only one occurrence, if
/// the chain starts at a macro variable, or if one of the occurrences is a presence test.
pub(super) fn at_all_places(
    origin: &Origin<'_>,
    chain: &OptionalChain,
    candidate: &Candidate,
) -> Option<Candidate> {
    let text = origin.text.get(candidate.bytes.clone())?;
    if !DECLARED.contains(&&*chain.base_name) {
        return None;
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let places = origin.text.match_indices(text).filter(|(start, _)| {
        let before = origin
            .text
            .get(..*start)
            .and_then(|it| it.chars().next_back());
        let after = origin
            .text
            .get(start + text.len()..)
            .and_then(|it| it.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
    });
    let starts: Vec<usize> = places.map(|(start, _)| start).collect();
    if starts.len() < 2 {
        return None;
    }
    // A default must not replace the operand of `has()`.
    let is_test = |start: &usize| {
        origin
            .text
            .get(..*start)
            .is_some_and(|it| it.ends_with("has("))
    };
    if starts.iter().any(is_test) {
        return None;
    }
    let places: Vec<_> = starts.iter().map(|at| *at..at + text.len()).collect();
    let (bytes, replacement) = replaced(origin.text, &places, &candidate.replacement)?;
    Some(Candidate {
        bytes,
        replacement,
        ..candidate.clone()
    })
}

/// Combines `changes` into a candidate with the default of `one`. `None` if the changed parts overlap.
pub(super) fn combined(
    origin: &Origin<'_>,
    one: &Candidate,
    mut changes: Vec<Candidate>,
) -> Option<Candidate> {
    changes.sort_by_key(|change| change.bytes.start);
    let bytes = changes.first()?.bytes.start..changes.last()?.bytes.end;
    let mut replacement = String::new();
    let mut at = bytes.start;
    for change in &changes {
        replacement.push_str(origin.text.get(at..change.bytes.start)?);
        replacement.push_str(&change.replacement);
        at = change.bytes.end;
    }
    let shown: BTreeSet<&str> = changes.iter().map(|change| &*change.shown).collect();
    let shown: Vec<&str> = shown.into_iter().collect();
    Some(Candidate {
        shown: shown.join("` and `"),
        bytes,
        replacement,
        ..one.clone()
    })
}

/// Replaces the code in `places` with `new`. Returns the range from the first to the last place, and its new text.
/// `None` if there are no places.
fn replaced(text: &str, places: &[Range<usize>], new: &str) -> Option<(Range<usize>, String)> {
    let bytes = places.first()?.start..places.last()?.end;
    let mut replacement = String::new();
    let mut at = bytes.start;
    for place in places {
        replacement.push_str(text.get(at..place.start)?);
        replacement.push_str(new);
        at = place.end;
    }
    Some((bytes, replacement))
}

/// Replaces the variable `name` with `other`.
pub(super) fn renamed(origin: &Origin<'_>, (name, other): (&str, &str)) -> Option<Candidate> {
    let tokens = lexer::tokens(origin.text).all;
    let mut places = Vec::new();
    let mut before = None;
    for token in &tokens {
        let text = token.text(origin.text);
        let is_variable = token.kind == Kind::Ident && before != Some(Kind::Dot);
        // If the expression already reads `other`, the renamed expression might compare this variable with itself.
        if is_variable && text == other {
            return None;
        }
        if is_variable && text == name {
            places.push(token.start as usize..token.end as usize);
        }
        before = Some(token.kind);
    }
    let (bytes, replacement) = replaced(origin.text, &places, other)?;
    Some(Candidate {
        shown: other.to_owned(),
        bytes,
        replacement,
        default: None,
        is_exact: true,
        intent: None,
    })
}

/// Returns the CEL literal of a scalar, or of an empty list or map. `None` for other values.
pub(super) fn literal(value: &Json) -> Option<String> {
    Some(match value {
        Json::Bool(value) => value.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => guard::quote(text)?,
        Json::Array(items) if items.is_empty() => "[]".to_owned(),
        Json::Object(fields) if fields.is_empty() => "{}".to_owned(),
        _ => return None,
    })
}
