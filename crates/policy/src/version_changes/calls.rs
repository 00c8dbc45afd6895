//! Recognizes calls and types in checked expressions.

use cel::ast::{Expr, ExprId};
use cel::checker::CheckedAst;
use cel::types::Type;

/// Returns the function, the receiver and the arguments of a call.
pub(super) fn call(checked: &CheckedAst, id: ExprId) -> Option<(&str, Option<ExprId>, &[ExprId])> {
    match checked.ast().expr(id) {
        Expr::Call {
            function,
            target,
            args,
        } => Some((function, *target, args)),
        _ => None,
    }
}

/// Returns the arguments of a call of the function `namespace.name`. The parser represents the namespace as a receiver.
pub(super) fn qualified_call<'a>(
    checked: &'a CheckedAst,
    id: ExprId,
    namespace: &str,
    names: &[&str],
) -> Option<&'a [ExprId]> {
    let (function, target, args) = call(checked, id)?;
    let is_namespace = checked.ast().qualified_name(target?).as_deref() == Some(namespace);
    (is_namespace && names.contains(&function)).then_some(args)
}

/// Returns true if `id` is a call of one of `functions` with a receiver.
pub(super) fn is_method(checked: &CheckedAst, id: ExprId, functions: &[&str]) -> bool {
    call(checked, id)
        .is_some_and(|(function, target, _)| target.is_some() && functions.contains(&function))
}

/// Returns true if the static type of `id` is a type of a library, such as a quantity.
pub(super) fn is_library_value(checked: &CheckedAst, id: ExprId) -> bool {
    matches!(checked.type_at(id), Type::Struct(type_) if type_.name.contains('.'))
}
