//! Validators that run after the type checker. As in the API server, they reject some well-typed literals, such as
//! the argument of `duration('x')`.
//!
//! Source: cel-go `cel/validator.go` (`ValidateHomogeneousAggregateLiterals`,
//! `ValidateDurationLiterals`, `ValidateTimestampLiterals`, `ValidateRegexLiterals`), `ext/formatting.go`
//! (`stringFormatValidator`), in the order of `k8s.io/apiserver` `pkg/cel/environment/base.go`.

mod format;

use super::ast::{Ast, Expr, ExprId, Literal, MapEntry, is_optional};
use super::checker::{CheckedAst, Reference};
use super::diagnostic::{Code, DiagnosticKind, Diagnostics};
use super::env::Env;
use super::interrupt::{checkpoint, checkpoint_of};
use super::source::SourceMap;
use super::types::Type;
use super::validators::{self, Validator};

/// Number of expressions visited per checkpoint of an [`Interrupt`](crate::interrupt::Interrupt).
const EXPRESSIONS_OF_CHECKPOINT: usize = 64;

/// Runs the validators of `env` on `checked`, in order, and adds their errors to `diagnostics`. `text` is the source
/// of `checked`.
pub fn validate(checked: &CheckedAst, env: &Env, text: &str, diagnostics: &mut Diagnostics) {
    let mut validation = Validation {
        checked,
        ast: checked.ast(),
        text,
        source: None,
        diagnostics,
        exempt: Vec::new(),
    };
    for validator in env.library().validators() {
        match validator {
            Validator::HomogeneousLiterals => {
                validation.check_aggregates(env.library().homogeneous_exempt());
            }
            Validator::Duration => {
                validation.check_literals("duration", validators::is_valid_duration_literal);
            }
            Validator::Timestamp => {
                validation.check_literals("timestamp", validators::is_valid_timestamp_literal);
            }
            Validator::Matches => {
                validation.check_literals("matches", validators::is_valid_matches_literal);
            }
            Validator::StringFormat if !checked.behavior().validates_formats => {}
            Validator::StringFormat => {
                for (id, message) in format::mistakes(checked) {
                    validation.report_literal(id, message);
                }
            }
        }
    }
}

struct Validation<'a> {
    checked: &'a CheckedAst,
    ast: &'a Ast,
    text: &'a str,
    source: Option<SourceMap>,
    diagnostics: &'a mut Diagnostics,
    /// For each expression, true if an enclosing call accepts heterogeneous literals.
    exempt: Vec<bool>,
}

impl Validation<'_> {
    fn report(&mut self, id: ExprId, kind: DiagnosticKind) {
        let source = self.source.get_or_insert_with(|| SourceMap::new(self.text));
        let location = source.location(self.ast.offset(id));
        self.diagnostics.report_at(kind, location, id);
    }

    fn report_literal(&mut self, id: ExprId, message: String) {
        let code = Code::InvalidLiteral;
        self.report(
            id,
            DiagnosticKind::Other {
                code,
                message,
                correction: None,
            },
        );
    }

    fn report_mismatch(&mut self, id: ExprId, expected: &Type, actual: &Type) {
        let (expected, actual) = (expected.clone(), actual.clone());
        self.report(id, DiagnosticKind::MixedLiteral { expected, actual });
    }

    /// Reports each literal that is the first argument of a call of `function` and that `is_valid` rejects. The
    /// receiver does not count as an argument.
    ///
    /// Source: cel-go `cel/validator.go`, `formatValidator.Validate`.
    fn check_literals(&mut self, function: &str, is_valid: fn(&Literal) -> bool) {
        let ast = self.ast;
        checkpoint_of(ast.len() / EXPRESSIONS_OF_CHECKPOINT);
        for (id, expr) in ast.iter() {
            let Expr::Call { args, .. } = expr else {
                continue;
            };
            let Some(Reference::Function { name, .. }) = self.checked.reference(id) else {
                continue;
            };
            let Some(&arg) = args.first() else { continue };
            if *name == function
                && let Expr::Literal(literal) = ast.expr(arg)
                && !is_valid(literal)
            {
                let message = format!("invalid {function} argument");
                self.report_literal(arg, message);
            }
        }
    }

    /// Reports list literals whose elements have different types, and map literals whose keys or values have different
    /// types. Skips literals within calls of the functions in `exempt`.
    fn check_aggregates(&mut self, exempt: &[&str]) {
        let ast = self.ast;
        let is_aggregate = |expr: &Expr| matches!(expr, Expr::List { .. } | Expr::Map(_));
        if !ast.iter().any(|(_, expr)| is_aggregate(expr)) {
            return;
        }
        checkpoint_of(ast.len() / EXPRESSIONS_OF_CHECKPOINT);
        self.exempt = exempt_expressions(self.checked, exempt);
        for id in ast.descendants(ast.root()) {
            self.check_aggregate(id);
        }
    }

    fn check_aggregate(&mut self, id: ExprId) {
        let ast = self.ast;
        match ast.expr(id) {
            Expr::List {
                elements,
                optional_indices,
            } if !self.is_exempt(id) => {
                self.check_list(elements, optional_indices);
            }
            Expr::Map(entries) if !self.is_exempt(id) => self.check_map(entries),
            _ => {}
        }
    }

    fn check_list(&mut self, elements: &[ExprId], optional_indices: &[u32]) {
        let mut first: Option<Type> = None;
        for (n, &element) in elements.iter().enumerate() {
            checkpoint();
            let optional = is_optional(optional_indices, n);
            let type_ = self.part_type(element, optional);
            match &first {
                None => first = Some(type_),
                Some(first) if !is_equivalent(first, &type_) => {
                    let first = first.clone();
                    self.report_mismatch(element, &first, &type_);
                    return;
                }
                Some(_) => {}
            }
        }
    }

    fn check_map(&mut self, entries: &[MapEntry]) {
        let mut first: Option<(Type, Type)> = None;
        for entry in entries {
            checkpoint();
            let key = self.checked.type_of(entry.key);
            let value = self.part_type(entry.value, entry.optional);
            let Some((first_key, first_value)) = first.clone() else {
                first = Some((key, value));
                continue;
            };
            if !is_equivalent(&first_key, &key) {
                self.report_mismatch(entry.key, &first_key, &key);
            }
            if !is_equivalent(&first_value, &value) {
                self.report_mismatch(entry.value, &first_value, &value);
            }
        }
    }

    /// Returns the type of a list element or a map value. For an optional element or value (`?`), returns the type of
    /// the contained value.
    fn part_type(&self, id: ExprId, optional: bool) -> Type {
        let type_ = self.checked.type_of(id);
        match type_.optional_value() {
            Some(value) if optional => value.clone(),
            _ => type_,
        }
    }

    fn is_exempt(&self, id: ExprId) -> bool {
        self.exempt.get(id.index()).copied().unwrap_or(false)
    }
}

/// Returns a side table that is true for the expressions within calls of `functions`.
fn exempt_expressions(checked: &CheckedAst, functions: &[&str]) -> Vec<bool> {
    let ast = checked.ast();
    let mut exempt = vec![false; ast.len()];
    let mut pending = Vec::new();
    for (call, _) in ast.iter() {
        if let Some(Reference::Function { name, .. }) = checked.reference(call)
            && functions.contains(name)
        {
            ast.for_each_child(call, |child| pending.push(child));
        }
    }
    while let Some(next) = pending.pop() {
        if let Some(flag) = exempt.get_mut(next.index())
            && !std::mem::replace(flag, true)
        {
            ast.for_each_child(next, |child| pending.push(child));
        }
    }
    exempt
}

/// Returns true if two types are identical up to the names of type parameters.
///
/// Source: cel-go `common/types/types.go`, `Type.IsEquivalentType`.
fn is_equivalent(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Param(_), _) => matches!(right, Type::Param(_)),
        (Type::Wrapper(left), _) => is_equivalent(&left.unwrapped(), right),
        (_, Type::Wrapper(right)) => is_equivalent(left, &right.unwrapped()),
        (Type::List(left), Type::List(right))
        | (Type::Type(Some(left)), Type::Type(Some(right))) => is_equivalent(left, right),
        (Type::Map(left), Type::Map(right)) => {
            is_equivalent(&left.0, &right.0) && is_equivalent(&left.1, &right.1)
        }
        (Type::Opaque(left), Type::Opaque(right)) => {
            left.name == right.name
                && left.params.len() == right.params.len()
                && left
                    .params
                    .iter()
                    .zip(&right.params)
                    .all(|(l, r)| is_equivalent(l, r))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Primitive, TypeParam};

    #[test]
    fn type_equivalence_ignores_wrappers_and_parameter_names() {
        let wrapper = || Type::Wrapper(Primitive::Int);
        let param = |name| Type::Param(TypeParam::Declared(name));
        for (left, right, expected) in [
            (Type::Int, Type::Int, true),
            (Type::Int, Type::Uint, false),
            (wrapper(), Type::Int, true),
            (wrapper(), wrapper(), true),
            (wrapper(), Type::Uint, false),
            (param("A"), param("B"), true),
            (param("A"), Type::Int, false),
            (Type::list(wrapper()), Type::list(Type::Int), true),
            (Type::list(Type::Int), Type::list(Type::Uint), false),
            (Type::list(Type::Int), Type::Int, false),
            (Type::type_of(Type::Int), Type::type_of(wrapper()), true),
            (Type::type_of(Type::Int), Type::type_of(Type::Uint), false),
            (
                Type::map(Type::Int, wrapper()),
                Type::map(Type::Int, Type::Int),
                true,
            ),
            (
                Type::map(Type::Int, Type::Int),
                Type::map(Type::Uint, Type::Int),
                false,
            ),
            (
                Type::map(Type::Int, Type::Int),
                Type::map(Type::Int, Type::Uint),
                false,
            ),
            (Type::optional(wrapper()), Type::optional(Type::Int), true),
            (Type::optional(Type::Int), Type::optional(Type::Uint), false),
            (
                Type::opaque("a", vec![Type::Int]),
                Type::opaque("b", vec![Type::Int]),
                false,
            ),
            (
                Type::opaque("a", vec![Type::Int]),
                Type::opaque("a", vec![Type::Int, Type::Int]),
                false,
            ),
        ] {
            assert_eq!(is_equivalent(&left, &right), expected, "{left} {right}");
            assert_eq!(is_equivalent(&right, &left), expected, "{right} {left}");
        }
    }
}
