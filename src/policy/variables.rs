//! Which variables a policy's expressions read.

use crate::cel::ast::{Ast, Expr, Literal};

use super::expressions::PolicyExpression;

/// The names of the variables that `ast` reads as `variables.<name>`, also optionally.
pub(super) fn read_by(ast: &Ast) -> Vec<&str> {
    let is_variables = |id| matches!(ast.expr(id), Expr::Ident(name) if name.trim_start_matches('.') == "variables");
    ast.iter()
        .filter_map(|(_, expr)| match expr {
            Expr::Select { operand, field, .. } if is_variables(*operand) => Some(&**field),
            Expr::Call { args, .. } => match &**args {
                [operand, field] if is_variables(*operand) => match ast.expr(*field) {
                    Expr::Literal(Literal::String(name)) => Some(&**name),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// Whether the variable that `name` stands for at run time, the last one declared so, reaches itself.
pub(super) fn reads_itself(name: &str, variables: &[&PolicyExpression]) -> bool {
    let mut visited: Vec<&str> = Vec::new();
    let mut pending = vec![name];
    while let Some(next) = pending.pop() {
        let last = variables
            .iter()
            .rev()
            .find(|v| v.name.as_deref() == Some(next));
        let Some(Ok(ast)) = last.map(|variable| variable.parsed()) else {
            continue;
        };
        for read in read_by(ast) {
            if read == name {
                return true;
            }
            if !visited.contains(&read) {
                visited.push(read);
                pending.push(read);
            }
        }
    }
    false
}
