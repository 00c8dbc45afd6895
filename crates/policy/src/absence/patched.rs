//! Places and mends of mutations that cannot be applied, by the words of the error.

use cel::ast::{Ast, Expr, ExprId, Literal};
use kubernetes::library::mutation::{JSON_PATCH, OBJECT};

/// The node of the expression that `error` is about.
pub(super) fn place(ast: &Ast, error: &str) -> Option<ExprId> {
    if let Some((_, rest)) = error.split_once("unexpected type name \"") {
        let (name, _) = rest.split_once('"')?;
        return literals(ast, name).next();
    }
    let patches: Vec<ExprId> = literals(ast, JSON_PATCH).collect();
    if !patches.is_empty() {
        return patch(ast, &patches, error);
    }
    let mut objects = literals(ast, OBJECT);
    let path = field_path(error)?;
    let first = objects.next()?;
    let all = std::iter::once(first).chain(objects);
    let reached = all.map(|object| deepest(ast, object, &path, 0));
    let (_, id) = reached.max_by_key(|(depth, id)| (*depth, std::cmp::Reverse(id.index())))?;
    Some(id)
}

/// The help for `error`.
pub(super) fn mend(error: &str) -> Option<&'static str> {
    Some(if error.contains("may not mutate atomic") {
        "an ApplyConfiguration cannot set what is replaced as a whole; a JSONPatch can"
    } else if error.contains("no corresponding type for") {
        "an ApplyConfiguration cannot be applied to this subresource; a JSONPatch can"
    } else if error.starts_with("JSON Patch: ") && error.contains("missing") {
        "test for it with has() or `in` first, and add the map or list around it where it is absent; in a key, `/` is \
         written `~1`, as jsonpatch.escapeKey() does"
    } else {
        return None;
    })
}

/// The literals of the type `name`.
fn literals<'a>(ast: &'a Ast, name: &'a str) -> impl Iterator<Item = ExprId> + 'a {
    ast.iter().filter_map(move |(id, expr)| match expr {
        Expr::Struct { type_name, .. } => {
            (type_name.strip_prefix('.').unwrap_or(type_name) == name).then_some(id)
        }
        _ => None,
    })
}

/// The patch whose path the error names, or the only one.
fn patch(ast: &Ast, patches: &[ExprId], error: &str) -> Option<ExprId> {
    let path = |id: &ExprId| {
        let Expr::Struct { fields, .. } = ast.expr(*id) else {
            return None;
        };
        let field = fields.iter().find(|field| &*field.field == "path")?;
        match ast.expr(field.value) {
            Expr::Literal(Literal::String(text)) => Some((text.to_string(), field.value)),
            _ => None,
        }
    };
    let named = patches.iter().filter_map(path);
    let named = named.filter(|(text, _)| !text.is_empty() && error.contains(text.as_str()));
    let named = named.max_by_key(|(text, _)| text.len()).map(|(_, id)| id);
    match patches {
        _ if named.is_some() => named,
        [only] => path(only).map(|(_, id)| id).or(Some(*only)),
        _ => None,
    }
}

/// The path of a field that an error of structured-merge-diff names, `.spec.ports[0].name`; elements are left out.
fn field_path(error: &str) -> Option<Vec<String>> {
    let mut words = error.split_whitespace();
    let path = words.find(|word| word.starts_with('.') && word.len() > 1)?;
    let path = path.trim_end_matches([':', ',']);
    let mut names = Vec::new();
    for part in path.split('.').skip(1) {
        let (name, rest) = part.split_once('[').unwrap_or((part, ""));
        names.push(name.to_owned());
        // Keys of elements may have points.
        if !rest.is_empty() && !rest.ends_with(']') {
            break;
        }
    }
    Some(names)
}

/// The place of the last field of `path` that is written in the literal at `id`, and how many of them are.
fn deepest(ast: &Ast, id: ExprId, path: &[String], depth: usize) -> (usize, ExprId) {
    let here = (depth, id);
    let Some((name, rest)) = path.split_first() else {
        return here;
    };
    match ast.expr(id) {
        Expr::Struct { fields, .. } => {
            let field = fields.iter().find(|field| *field.field == **name);
            field.map_or(here, |field| {
                let below = deepest(ast, field.value, rest, depth.saturating_add(1));
                if below.1 == field.value {
                    (below.0, field.id)
                } else {
                    below
                }
            })
        }
        Expr::Map(entries) => {
            let is_it = |key: ExprId| matches!(ast.expr(key), Expr::Literal(Literal::String(text)) if **text == **name);
            let entry = entries.iter().find(|entry| is_it(entry.key));
            entry.map_or(here, |entry| {
                let below = deepest(ast, entry.value, rest, depth.saturating_add(1));
                if below.1 == entry.value {
                    (below.0, entry.key)
                } else {
                    below
                }
            })
        }
        Expr::List { elements, .. } => {
            let all = elements.iter().map(|id| deepest(ast, *id, path, depth));
            all.filter(|found| found.0 > depth)
                .max_by_key(|found| found.0)
                .unwrap_or(here)
        }
        _ => here,
    }
}
