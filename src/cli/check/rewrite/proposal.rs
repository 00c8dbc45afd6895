//! Proposals and the context of an expression.

use std::ops::Range;

use crate::cel::syntax::token::Kind;
use crate::cel::types::Type;
use crate::cli::check::tokens::TokenText;
use crate::cli::text::cut;
use crate::policy::RequestPolicy;
use crate::policy::expressions::Role;
use crate::policy::matching;

/// Maximum width of source that a hint quotes, in columns.
pub(super) const MAX_SHOWN: usize = 100;

/// A hint and, if there is exactly one correction, the edit of the expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) help: String,
    /// The replaced bytes of the expression, and the replacement.
    pub(crate) edit: Option<(Range<usize>, String)>,
}

impl Proposal {
    pub(crate) fn hint(help: impl Into<String>) -> Self {
        Self {
            help: help.into(),
            edit: None,
        }
    }

    /// Proposes to replace `bytes` with `text`.
    pub(crate) fn edit(bytes: Range<usize>, text: String) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let shown = if text.contains('\n') {
            words.join(" ")
        } else {
            text.clone()
        };
        Self {
            help: format!("write `{}`", cut(&shown, MAX_SHOWN)),
            edit: Some((bytes, text)),
        }
    }

    pub(crate) fn with_reason(mut self, reason: &str) -> Self {
        self.help = format!("{reason}: {}", self.help);
        self
    }
}

/// The expression with a problem.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) policy: &'a RequestPolicy,
    pub(crate) role: Role,
    pub(crate) text: &'a str,
    /// Returns true if a path, such as `object.metadata.labels`, is certainly a list or a map.
    pub(crate) is_collection: &'a dyn Fn(&str) -> bool,
    /// Returns true if the schemas declare a path, such as `object.metadata.name`.
    pub(crate) is_declared: &'a dyn Fn(&str) -> bool,
}

impl Context<'_> {
    /// Returns true if each rule of the policy matches requests with this operation, and no others. False without
    /// rules.
    pub(super) fn has_only(&self, operation: &str) -> bool {
        let constraints = self.policy.match_constraints.iter();
        let mut rules = constraints
            .flat_map(|it| it.resource_rules.iter().flatten())
            .peekable();
        let is_only = |name: &String| name == operation;
        rules.peek().is_some()
            && rules.all(|rule| {
                let operations = rule.operations.as_deref().unwrap_or_default();
                let mut resources = rule.resources.iter().flatten();
                !operations.is_empty()
                    && operations.iter().all(is_only)
                    && resources.all(|name| matching::may_have_operation(name, operation))
            })
    }
}

pub(super) fn is_named(type_: &Type, name: &str) -> bool {
    type_.to_string().ends_with(name)
}

pub(super) fn is_quantity(type_: &Type) -> bool {
    is_named(type_, ".Quantity")
}

pub(super) fn is_decision(type_: &Type) -> bool {
    is_named(type_, ".Decision")
}

/// Returns true for an object, a list or a map.
pub(super) fn is_object_like(type_: &Type) -> bool {
    matches!(type_, Type::Struct(_) | Type::List(_) | Type::Map(_))
}

/// Returns the content of a string literal. `None` if the literal contains escape sequences.
pub(crate) fn string_content<'t>(source: &TokenText<'t>, tokens: &Range<usize>) -> Option<&'t str> {
    (tokens.len() == 1 && source.kind(tokens.start)? == Kind::String).then_some(())?;
    let text = source.source(tokens)?;
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let content = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!content.contains(['\\', quote])).then_some(content)
}

/// Proposes a call of the function `name` with the operand.
pub(super) fn wrap(source: &TokenText<'_>, tokens: &Range<usize>, name: &str) -> Option<Proposal> {
    let text = source.source(tokens)?;
    Some(Proposal::edit(
        source.bytes(tokens)?,
        format!("{name}({text})"),
    ))
}
