//! Proposes corrections for expressions that select a field of a value without fields, or an undefined field of
//! `request`.

use std::ops::Range;

use super::proposal::{Context, MAX_SHOWN, Proposal};
use super::sizes::path;
use crate::cel::syntax::token::Kind;
use crate::cel::types::Type;
use crate::cli::check::suggestion;
use crate::cli::check::tokens::TokenText;
use crate::library::environment::base_env;
use crate::policy::expressions::Role;
use crate::version::KubernetesVersion;

/// Proposes a replacement for a selection from a value without fields. `n` is the dot.
pub(super) fn selection(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
    operand: &Type,
) -> Option<Proposal> {
    let receiver = source.receiver(n)?;
    let root = source.word(receiver.start)?;
    if *operand == Type::Null {
        return null_variable(context, source, &receiver, root);
    }
    if let Some(proposal) = length(source, n).or_else(|| label_key(context, source, n)) {
        return Some(proposal);
    }
    let field = source.word(n + 1)?;
    if source.kind(n + 2) != Some(Kind::OpenParen) && is_method(operand, field) {
        let bytes = source.bytes(&(n + 1..n + 2))?;
        return Some(Proposal::edit(bytes, format!("{field}()")));
    }
    if *operand == Type::String
        && context.role != Role::MatchCondition
        && matches!(field, "labels" | "annotations")
        && matches!(
            source.source(&receiver),
            Some(
                "object.metadata.namespace" | "oldObject.metadata.namespace" | "request.namespace"
            )
        )
    {
        let bytes = source.bytes(&(receiver.start..n + 2))?;
        let proposal = Proposal::edit(bytes, format!("namespaceObject.metadata.{field}"));
        return Some(proposal.with_reason("the namespace here is only a name"));
    }
    matches!(operand, Type::List(_)).then(|| {
        let list = source.source(&receiver).filter(|it| it.len() <= MAX_SHOWN);
        let list = list.unwrap_or("list");
        Proposal::hint(format!(
            "a list has no fields: select the field of each item, as in `{list}.all(x, x.{field} ...)` or `{list}.exists(x, x.{field} ...)`"
        ))
    })
}

/// Returns true if the type has a member function `name` without arguments, such as `isLoopback()` of an IP address.
fn is_method(type_: &Type, name: &str) -> bool {
    let mut functions = base_env(KubernetesVersion::NEWEST).library().functions();
    let function = functions.find(|function| function.name == name);
    function.is_some_and(|function| {
        let mut overloads = function.overloads.iter();
        overloads.any(|it| it.is_member() && matches!(&*it.args, [only] if only == type_))
    })
}

/// Proposes to add the missing parentheses of a method of an authorization decision. `n` is the dot.
pub(super) fn decision_method(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let name = source.word(n + 1)?;
    matches!(name, "allowed" | "reason" | "errored" | "error").then_some(())?;
    let bytes = source.bytes(&(n + 1..n + 2))?;
    Some(Proposal::edit(bytes, format!("{name}()")))
}

/// Returns a hint about a macro over an optional list or a string. `n` is the dot before the last name of the list or
/// string.
pub(super) fn range_of_macro(source: &TokenText<'_>, n: usize, range: &Type) -> Option<Proposal> {
    let is_text = *range == Type::String;
    (is_text || range.optional_value().is_some()).then_some(())?;
    let receiver = source.receiver(n)?;
    let n_name = n + 1 + usize::from(source.kind(n + 1)? == Kind::Question);
    let list = source.source(&(receiver.start..n_name + 1));
    let list = list.filter(|it| it.len() <= MAX_SHOWN)?;
    if is_text {
        return Some(Proposal::hint(format!(
            "this value is a string: write `{list}.split(',')` for values that are separated by commas"
        )));
    }
    Some(Proposal::hint(format!(
        "this value is an optional: write `{list}.orValue([])`; for an absent list, `exists` is then false, and `all` \
         is true"
    )))
}

/// Proposes `labels['a.b/c']` for `labels.a.b/c`. `n` is a token of the key.
pub(super) fn label_key(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
) -> Option<Proposal> {
    let is_map = |at: usize| {
        let is_field = at > 0 && source.kind(at - 1) == Some(Kind::Dot);
        let is_quantities = || {
            let chain = source.receiver(at + 1)?;
            Some((context.is_collection)(&path(source, &chain)?))
        };
        is_field
            && match source.word(at) {
                Some("labels" | "annotations" | "matchLabels" | "nodeSelector") => true,
                Some(
                    "hard" | "used" | "limits" | "requests" | "capacity" | "allocatable" | "data",
                ) => is_quantities() == Some(true),
                _ => false,
            }
    };
    let is_part = |at: usize| {
        matches!(
            source.kind(at),
            Some(Kind::Ident | Kind::Dot | Kind::Slash | Kind::Minus)
        )
    };
    let start = (0..n)
        .rev()
        .take_while(|at| is_part(*at))
        .filter(|at| is_map(*at))
        .last()?
        + 1;
    let mut end = start;
    while is_part(end) && source.is_adjacent(end - 1) {
        end += 1;
    }
    (source.kind(start)? == Kind::Dot && n < end).then_some(())?;
    let key = source.source(&(start + 1..end))?;
    let is_test = start
        .checked_sub(2)
        .and_then(|dot| source.receiver(dot))
        .and_then(|map| map.start.checked_sub(2))
        .is_some_and(|at| source.word(at) == Some("has"));
    let is_key = key.contains(['.', '-']) && !key.ends_with(['.', '/', '-']);
    // A label key cannot contain a call.
    let is_call = source.kind(end) == Some(Kind::OpenParen);
    (is_key && !is_test && !is_call).then(|| {
        let bytes = source.bytes(&(start..end))?;
        Some(Proposal::edit(bytes, format!("['{key}']")))
    })?
}

/// Proposes `.size()` for a selection of the length.
fn length(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let field = source.word(n + 1)?;
    let is_call = source.kind(n + 2) == Some(Kind::OpenParen);
    (suggestion::is_length(field) && !is_call).then(|| {
        let bytes = source.bytes(&(n..n + 2))?;
        Some(Proposal::edit(bytes, ".size()".to_owned()))
    })?
}

/// Proposes the variable that is not null in the requests that the rules match.
fn null_variable(
    context: Context<'_>,
    source: &TokenText<'_>,
    receiver: &Range<usize>,
    root: &str,
) -> Option<Proposal> {
    // Only a variable itself is null. A field of `oldObject` may exist where a field of `object` is null.
    (receiver.len() == 1).then_some(())?;
    let bytes = source.bytes(receiver)?;
    let replace = |name: &str, reason: &str| {
        // If the expression already reads the replacement, the new expression would compare the replacement with
        // itself.
        if reads_variable(source, name) {
            return Some(Proposal::hint(format!(
                "{reason}: only UPDATE requests have both `object` and `oldObject`"
            )));
        }
        Some(Proposal::edit(bytes.clone(), name.to_owned()).with_reason(reason))
    };
    match root {
        "object" if context.has_only("DELETE") => replace(
            "oldObject",
            "`object` is null in requests with the operation DELETE",
        ),
        "oldObject" if context.has_only("CREATE") => replace(
            "object",
            "`oldObject` is null in requests with the operation CREATE",
        ),
        "namespaceObject" if context.role == Role::MatchCondition => Some(Proposal::hint(
            "`namespaceObject` is null in match conditions: use a namespaceSelector, or a validation",
        )),
        "object" => Some(Proposal::hint(
            "`object` is null in DELETE requests: write `object == null || ...` to allow them, or read `oldObject`",
        )),
        "oldObject" => Some(Proposal::hint(
            "`oldObject` is null in CREATE requests: write `oldObject == null || ...` to allow them",
        )),
        _ => None,
    }
}

fn reads_variable(source: &TokenText<'_>, name: &str) -> bool {
    (0..source.len()).any(|n| {
        let is_field = n > 0 && source.kind(n - 1) == Some(Kind::Dot);
        source.kind(n) == Some(Kind::Ident) && source.word(n) == Some(name) && !is_field
    })
}

/// Proposes the valid name for a variable whose name contains dashes, such as `variables.max-size`. `n` is the dot before the
/// name.
pub(super) fn dashed_variable(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
) -> Option<Proposal> {
    (source.kind(n)? == Kind::Dot && source.word(n.checked_sub(1)?)? == "variables")
        .then_some(())?;
    let mut end = n + 2;
    while source.kind(end) == Some(Kind::Minus)
        && source.is_adjacent(end - 1)
        && source.is_adjacent(end)
    {
        end += 2;
    }
    let name = source.source(&(n + 1..end)).filter(|it| it.contains('-'))?;
    let valid = name.replace('-', "_");
    let mut variables = context.policy.variables.iter();
    let is_declared = variables.any(|it| it.name == name || it.name == valid);
    let bytes = source.bytes(&(n + 1..end))?;
    is_declared.then(|| Proposal::edit(bytes, valid))
}

/// Proposes the correct path for an undefined field of `request`. `n` is the dot.
pub(super) fn undefined_field(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
    name: &str,
) -> Option<Proposal> {
    if let Some(proposal) = dashed_variable(context, source, n) {
        return Some(proposal);
    }
    let receiver = source.receiver(n)?;
    let whole = receiver.start..n + 2;
    let replace = |text: &str| Some(Proposal::edit(source.bytes(&whole)?, text.to_owned()));
    let add = |text: &str| {
        let receiver = source.source(&receiver)?;
        Some(Proposal::edit(
            source.bytes(&whole)?,
            format!("{receiver}.{text}"),
        ))
    };
    (source.word(n + 1)? == name).then_some(())?;
    match (source.source(&receiver)?, name) {
        // `object` is null in DELETE requests.
        ("request", "object")
            if context.has_only("DELETE") && !reads_variable(source, "oldObject") =>
        {
            replace("oldObject")
        }
        ("request", "object" | "oldObject" | "namespaceObject") => replace(name),
        ("request", "user") => add("userInfo"),
        ("request", "username" | "userName" | "groups" | "uid") if name != "uid" => {
            add(&format!("userInfo.{}", name.to_lowercase()))
        }
        ("request.userInfo" | "request.user", "user" | "name" | "userName") => add("username"),
        // `kind` and `apiVersion` are fields of the object, not of its metadata. In Go, the metadata are the embedded
        // struct `ObjectMeta`.
        (metadata @ ("object.metadata" | "oldObject.metadata"), "kind" | "apiVersion") => replace(
            &format!("{}.{name}", metadata.trim_end_matches(".metadata")),
        ),
        ("object" | "oldObject", "ObjectMeta" | "objectMeta") => add("metadata"),
        _ => length(source, n),
    }
}
