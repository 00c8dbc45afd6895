//! Recognizes the macros of the evaluated expressions.

use super::SymbolicEvaluator;
use crate::comprehensions;
pub(crate) use crate::comprehensions::ComprehensionKind;
use cel::ast::Comprehension;

/// Returns the macro from which `fold` was expanded. `index` is the index of its expression.
pub(crate) fn comprehension_kind(
    evaluator: &SymbolicEvaluator<'_>,
    index: usize,
    fold: &Comprehension,
) -> ComprehensionKind {
    evaluator
        .ast(index)
        .map_or(ComprehensionKind::Other, |ast| {
            comprehensions::comprehension_kind(ast, fold)
        })
}
