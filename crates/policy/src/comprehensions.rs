//! Recognizes the macro from which a comprehension was expanded.

use cel::ast::{Ast, Comprehension, Expr, ExprId, Literal};

/// A macro with the nodes of its arguments.
pub(crate) enum ComprehensionKind {
    All(ExprId),
    Exists(ExprId),
    ExistsOne(ExprId),
    /// `filter` or `map`. The first node is the filter condition, if there is one. The second node becomes an element
    /// of the result.
    FilterMap(Option<ExprId>, ExprId),
    Bind,
    Other,
}

/// Returns the macro from which `fold` was expanded.
pub(crate) fn comprehension_kind(ast: &Ast, fold: &Comprehension) -> ComprehensionKind {
    let is_accu = |id: ExprId| matches!(ast.expr(id), Expr::Ident(name) if *name == fold.accu_var);
    if matches!(ast.expr(fold.iter_range), Expr::List { elements, .. } if elements.is_empty()) {
        return ComprehensionKind::Bind;
    }
    let Expr::Call { function, args, .. } = ast.expr(fold.loop_step) else {
        return ComprehensionKind::Other;
    };
    match (&**function, &**args) {
        ("_&&_", [accu, test]) if is_accu(*accu) => ComprehensionKind::All(*test),
        ("_||_", [accu, test]) if is_accu(*accu) => ComprehensionKind::Exists(*test),
        ("_?_:_", [test, then, otherwise]) if is_accu(*otherwise) => {
            match appended_element(ast, *then, &is_accu) {
                Some(element) => ComprehensionKind::FilterMap(Some(*test), element),
                None if matches!(ast.expr(fold.accu_init), Expr::Literal(Literal::Int(0))) => {
                    ComprehensionKind::ExistsOne(*test)
                }
                None => ComprehensionKind::Other,
            }
        }
        _ => match appended_element(ast, fold.loop_step, &is_accu) {
            Some(element) => ComprehensionKind::FilterMap(None, element),
            None => ComprehensionKind::Other,
        },
    }
}

/// Returns the element in `accumulator + [element]`. `None` if the node `id` has a different structure.
fn appended_element(ast: &Ast, id: ExprId, is_accu: &dyn Fn(ExprId) -> bool) -> Option<ExprId> {
    let Expr::Call { function, args, .. } = ast.expr(id) else {
        return None;
    };
    let [accu, list] = &**args else { return None };
    match ast.expr(*list) {
        Expr::List { elements, .. } if **function == *"_+_" && is_accu(*accu) => {
            match &**elements {
                [element] => Some(*element),
                _ => None,
            }
        }
        _ => None,
    }
}
