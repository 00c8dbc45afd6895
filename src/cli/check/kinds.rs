//! Hints about fields that only some of the matched kinds have.

use super::known::Known;
use super::policy::PolicyAnalysis;
use crate::cel::ast::Expr;
use crate::cel::source::{Location, SourceMap};
use crate::policy::expressions::PolicyExpression;
use crate::schema::Gvk;
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::status::message;

/// Maximum number of kinds that a hint lists.
const MAX_KINDS: usize = 3;

/// Returns a hint about the selection at `location` of `expression`, whose field does not exist for `kinds`. `None` if no
/// other matched kind has the field.
pub(super) fn hint(
    (analysis, known): (&PolicyAnalysis, &Known),
    expression: &PolicyExpression,
    location: Location,
    kinds: &[String],
) -> Option<String> {
    let typed = &analysis.typed;
    let mut others = typed
        .checked
        .iter()
        .chain(&typed.by_wildcard.checked)
        .filter(|gvk| !kinds.contains(&message::kind(gvk)))
        .peekable();
    others.peek()?;
    let (root, path) = selected_path(expression, location)?;
    let is_object = matches!(root, "object" | "oldObject");
    if !is_object || !others.any(|gvk| has_field(known, gvk, &path)) {
        return None;
    }
    let names = kinds.iter().filter_map(|kind| kind.split(' ').next_back());
    let names: Vec<&str> = names.collect();
    Some(if names.len() <= MAX_KINDS {
        let names = match names.split_last() {
            Some((last, before)) if !before.is_empty() => {
                format!("{} and {last}", before.join(", "))
            }
            _ => names.concat(),
        };
        format!("the rules match {names} too: test `object.kind` first;")
    } else {
        let n = names.len();
        format!("the rules match {n} kinds without the field: test `object.kind` first;")
    })
}

/// Returns true if the selection at `location` of `expression` is of a field of `params`.
pub(super) fn is_of_params(expression: &PolicyExpression, location: Location) -> bool {
    selected_path(expression, location).is_some_and(|(root, _)| root == "params")
}

/// Returns the variable and the fields from it to the selection at `location`.
fn selected_path(expression: &PolicyExpression, location: Location) -> Option<(&str, Vec<&str>)> {
    let (ast, text) = (expression.parsed().ok()?, &expression.text);
    let byte = SourceMap::new(text).byte(location)?;
    let offset = text.get(..byte)?.chars().count();
    let mut selections = ast.iter().filter(|(id, expr)| {
        usize::try_from(ast.offset(*id)) == Ok(offset) && matches!(expr, Expr::Select { .. })
    });
    let mut next = selections.next()?.1;
    let mut path = Vec::new();
    loop {
        match next {
            Expr::Select { operand, field, .. } => {
                path.push(&**field);
                next = ast.expr(*operand);
            }
            Expr::Ident(name) => {
                path.reverse();
                return Some((name, path));
            }
            _ => return None,
        }
    }
}

/// Returns true if the schema of `gvk` declares the field at `path`.
fn has_field(known: &Known, gvk: &Gvk, path: &[&str]) -> bool {
    let Resolution::Found(root) = known.resolve(gvk) else {
        return false;
    };
    let mut type_ = root;
    for name in path {
        let Some(field) = type_.declared_field(name) else {
            return false;
        };
        type_ = std::sync::Arc::clone(&field.type_);
    }
    true
}
