//! Finds message expressions whose value the API server ignores.

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;

use super::model::Lint;
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::rule::Rule;

/// Maximum number of concatenated strings.
const MAX_PARTS: usize = 256;

/// Returns a lint for each message expression whose value always contains a line break. The API server ignores such a
/// value. Line breaks at its start and end do not count, because the API server trims them.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/validator.go`, `validator.Validate`.
pub(super) fn find(policy: &CompiledPolicy) -> Vec<Lint> {
    let expressions = policy.expressions().iter();
    let messages = expressions.filter(|it| it.role == Role::MessageExpression);
    let lints = messages.filter_map(|expression| {
        let ast = expression.parsed().ok()?;
        let id = line_break(ast)?;
        Some(Lint {
            rule: Rule::IgnoredMessage,
            field_ref: expression.field_ref.clone(),
            location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
            message: "the message has a line break, so the API server ignores it".to_owned(),
            fix: Some(
                "write the message in one line; until then, users see the field `message`, or the expression if \
                 `message` is not set"
                    .into(),
            ),
            is_harmless: false,
        })
    });
    lints.collect()
}

/// Returns the first string literal with a line break that every value of the expression contains.
fn line_break(ast: &Ast) -> Option<ExprId> {
    let mut parts = Vec::new();
    let mut open = vec![ast.root()];
    while let Some(id) = open.pop() {
        match (ast.global_call(id), ast.expr(id)) {
            (Some(("_+_", operands)), _) => open.extend(operands.iter().rev()),
            (
                _,
                Expr::Call {
                    function,
                    target: Some(target),
                    ..
                },
            ) if &**function == "format" => parts.push(*target),
            _ => parts.push(id),
        }
        if parts.len() > MAX_PARTS {
            return None;
        }
    }
    let (first, last) = (parts.first().copied(), parts.last().copied());
    parts.into_iter().find(|id| {
        let Expr::Literal(Literal::String(text)) = ast.expr(*id) else {
            return false;
        };
        let text = if Some(*id) == first {
            text.trim_start()
        } else {
            text
        };
        let text = if Some(*id) == last {
            text.trim_end()
        } else {
            text
        };
        text.contains('\n')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_inside_messages_are_found() {
        for (text, is_found) in [
            (r"'a\nb'", true),
            (r"'a\n' + object.metadata.name", true),
            (r"'a' + object.metadata.name + '\nb'", true),
            (r"'a %s\nb'.format([object.metadata.name])", true),
            (r"'\na\n'", false),
            (r"'a' + object.metadata.name + '\n'", false),
            (r"object.metadata.name == 'a' ? 'a\nb' : 'c'", false),
            (r"'a\\nb'", false),
        ] {
            let (ast, _) = cel::syntax::parse(text);
            assert_eq!(line_break(&ast.unwrap()).is_some(), is_found, "{text}");
        }
    }
}
