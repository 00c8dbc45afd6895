//! Finds residue of templates in strings: `{{ ... }}` of Helm, Kyverno and other tools, and `${...}` or `{...}` with a
//! CEL variable in a message. The API server does not replace such placeholders.

use cel::ast::{Expr, Literal};
use cel::source::SourceMap;

use super::Lint;
use crate::compile::CompiledPolicy;
use crate::rule::Rule;

/// Maximum length of a reported template expression, in bytes.
const MAX_SHOWN: usize = 60;

pub(super) fn find(policy: &CompiledPolicy) -> Vec<Lint> {
    let mut lints = Vec::new();
    for (n, validation) in policy.policy().validations.iter().enumerate() {
        let message = validation.message.as_deref().unwrap_or_default();
        if let Some(residue) = residue(message).or_else(|| placeholder(message)) {
            lints.push(Lint {
                rule: Rule::TemplateResidue,
                field_ref: format!("spec.validations[{n}].message"),
                location: None,
                message: format!(
                    "users see `{residue}` in the message: the API server does not replace it"
                ),
                fix: Some(
                    "for a message with values of the request, use a messageExpression".into(),
                ),
                is_harmless: false,
            });
        }
    }
    for expression in policy.expressions() {
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        for (id, expr) in ast.iter() {
            if let Expr::Literal(Literal::String(text)) = expr
                && let Some(residue) = residue(text)
            {
                lints.push(Lint {
                    rule: Rule::TemplateResidue,
                    field_ref: expression.field_ref.clone(),
                    location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
                    message: format!(
                        "the string contains `{residue}`: the API server does not replace it"
                    ),
                    fix: Some("render the template first, or write the value".into()),
                    is_harmless: false,
                });
            }
        }
    }
    lints
}

/// Returns the first `{{ ... }}` in `text`. `None` if it contains no letter, is too long or contains a `"`.
fn residue(text: &str) -> Option<&str> {
    let start = text.find("{{")?;
    let rest = text.get(start..)?;
    let end = rest.find("}}")? + 2;
    let residue = rest.get(..end)?;
    let has_name = residue.chars().any(char::is_alphabetic);
    (has_name && residue.len() <= MAX_SHOWN && !residue.contains('"')).then_some(residue)
}

/// The variables that a placeholder may begin with.
const VARIABLES: [&str; 6] = [
    "object.",
    "oldObject.",
    "request.",
    "params.",
    "variables.",
    "namespaceObject.",
];

/// Returns the first placeholder in a message: an expression in `{...}` or `${...}`, such as `${object.metadata.name}`.
fn placeholder(message: &str) -> Option<&str> {
    message.match_indices('{').find_map(|(open, _)| {
        let rest = message.get(open..)?;
        let close = rest.find('}')?;
        let expression = rest.get(1..close)?.trim_start();
        let is_expression = VARIABLES.iter().any(|name| expression.starts_with(name));
        let start = if message.get(..open)?.ends_with('$') {
            open - 1
        } else {
            open
        };
        let placeholder = message.get(start..=open + close)?;
        (is_expression && placeholder.len() <= MAX_SHOWN).then_some(placeholder)
    })
}
