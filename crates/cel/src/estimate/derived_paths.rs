//! Paths of computed values that are parts of a variable, for `CostOptions::follows_parts`.
//!
//! cel-go has no path for a value read through an optional, such as `a.?list.orValue([])`, and none for a
//! concatenation, a conditional or a filtered list. Their sizes, or those of their elements, are then unknown. With the
//! option, these values have the path of the part that they contain.

use super::Coster;
use super::facts::{EntrySize, is_scalar};
use crate::ast::{Ast, Comprehension, Expr, ExprId, Literal};
use crate::cost::{PathStep, SizeEstimate, SizeEstimator};

/// Maximum length of a number, boolean, time or duration as a string.
const MAX_SCALAR_TEXT: u64 = 40;

/// Functions that return the parts of a string.
const PARTS: [&str; 2] = ["split", "findAll"];

impl Coster<'_> {
    /// Sets the path and the size of a call whose value is a part of a variable. The costs of the operands must already
    /// be computed.
    pub(super) fn follow_call(
        &mut self,
        id: ExprId,
        function: &str,
        target: Option<ExprId>,
        args: &[ExprId],
    ) {
        if !self.options.follows_parts {
            return;
        }
        match (function, target, args) {
            ("_?._", None, [operand, field]) => {
                if let Expr::Literal(Literal::String(field)) = self.ast.expr(*field) {
                    let step = self.field_step(*operand, PathStep::Field(field.clone()));
                    self.extend_path(id, *operand, step);
                }
            }
            ("_[_]" | "_[?_]", None, [operand, _]) => {
                if let Some(text) = self.divided(*operand) {
                    let part = SizeEstimate::new(0, self.size_or_unknown(text).max);
                    self.set_size(id, Some(part));
                    return;
                }
                let step = match self.is_list(*operand) {
                    Some(true) => PathStep::Items,
                    Some(false) => PathStep::Values,
                    None => return,
                };
                self.extend_path(id, *operand, step);
            }
            ("orValue" | "or", Some(value), [default]) => {
                let sizes = self.size(value).zip(self.size(*default));
                self.set_size(id, sizes.map(|(value, default)| value.union(default)));
                self.set_path(id, self.path_of(value).or(self.path_of(*default)));
            }
            ("value", Some(value), []) => self.copy_part(id, value),
            ("optional.of" | "optional.ofNonZeroValue", _, [value]) => self.copy_part(id, *value),
            ("string", None, [value]) if is_scalar(self.checked.type_at(*value)) => {
                self.set_size(id, Some(SizeEstimate::new(1, MAX_SCALAR_TEXT)));
            }
            (function, Some(text), _) if PARTS.contains(&function) => {
                // All parts together are at most as large as the text.
                let n_parts = self.size_or_unknown(id).max.max(1);
                let part = self.size_or_unknown(text).max.div_ceil(n_parts);
                let part = SizeEstimate::new(0, part);
                self.set_entry(id, Some(EntrySize::for_elements(part)));
            }
            ("_?_:_" | "_+_", None, [.., one, other]) => {
                self.set_path(id, self.path_of(*one).or(self.path_of(*other)));
            }
            _ => {}
        }
    }

    /// Sets the path of a filtered list to the path of the whole list.
    pub(super) fn follow_filter(&mut self, id: ExprId, fold: &Comprehension) {
        if self.options.follows_parts && is_filter(self.ast, fold) {
            self.set_path(id, self.path_of(fold.iter_range));
        }
    }

    /// Sets the path of the value of `cel.bind` and `optMap`.
    pub(super) fn follow_bind(&mut self, id: ExprId, fold: &Comprehension) {
        if self.options.follows_parts {
            self.copy_part(id, fold.result);
        }
    }

    /// Returns the string whose parts are the elements of the list `id`. `None` for other expressions.
    pub(super) fn divided(&self, id: ExprId) -> Option<ExprId> {
        match self.ast.expr(id) {
            Expr::Call {
                function, target, ..
            } if PARTS.contains(&&**function) => *target,
            _ => None,
        }
    }

    fn copy_part(&mut self, id: ExprId, part: ExprId) {
        self.set_path(id, self.path_of(part));
        self.copy_sizes(id, part);
    }

    /// Returns `field`, or the step to a value if `operand` is known to be a map.
    pub(super) fn field_step(&self, operand: ExprId, field: PathStep) -> PathStep {
        if self.options.follows_parts && self.is_list(operand) == Some(false) {
            PathStep::Values
        } else {
            field
        }
    }

    /// Returns true for a list and false for a map, according to the estimator. `None` for other values, and if the
    /// type is unknown.
    pub(super) fn is_list(&self, id: ExprId) -> Option<bool> {
        if !self.options.follows_parts {
            return None;
        }
        self.sizes.is_list(self.path(id))
    }
}

/// Returns true if `fold` is the expansion of the macro `filter`.
#[must_use]
pub fn is_filter(ast: &Ast, fold: &Comprehension) -> bool {
    let takes =
        |id| appended(ast, fold, id).is_some_and(|element| is_ident(ast, element, &fold.iter_var));
    is_empty_list(ast, fold.accu_init)
        && is_ident(ast, fold.result, &fold.accu_var)
        && matches!(call(ast, fold.loop_step, "_?_:_"), Some([_, then, otherwise])
            if takes(*then) && is_ident(ast, *otherwise, &fold.accu_var))
}

/// Returns the expression for each element if `fold` is the expansion of the macro `map`, with or without a filter.
#[must_use]
pub fn mapped(ast: &Ast, fold: &Comprehension) -> Option<ExprId> {
    if !is_empty_list(ast, fold.accu_init) || !is_ident(ast, fold.result, &fold.accu_var) {
        return None;
    }
    match call(ast, fold.loop_step, "_?_:_") {
        Some([_, then, _]) => appended(ast, fold, *then),
        _ => appended(ast, fold, fold.loop_step),
    }
}

/// Returns the element that `id` appends to the accumulator, as in `accu + [element]`.
fn appended(ast: &Ast, fold: &Comprehension, id: ExprId) -> Option<ExprId> {
    let Some([accu, elements]) = call(ast, id, "_+_") else {
        return None;
    };
    match ast.expr(*elements) {
        Expr::List { elements, .. } if is_ident(ast, *accu, &fold.accu_var) => match &**elements {
            [element] => Some(*element),
            _ => None,
        },
        _ => None,
    }
}

fn is_ident(ast: &Ast, id: ExprId, name: &str) -> bool {
    matches!(ast.expr(id), Expr::Ident(ident) if **ident == *name)
}

fn is_empty_list(ast: &Ast, id: ExprId) -> bool {
    matches!(ast.expr(id), Expr::List { elements, .. } if elements.is_empty())
}

fn call<'a>(ast: &'a Ast, id: ExprId, name: &str) -> Option<&'a [ExprId]> {
    match ast.expr(id) {
        Expr::Call { function, args, .. } if **function == *name => Some(args),
        _ => None,
    }
}
