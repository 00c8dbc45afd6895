//! Overload resolution of calls.
//!
//! Source: cel-go `checker/checker.go` (`checkCall`, `resolveOverload`).

use super::Reference;
use super::infer::Checker;
use super::substitution::{instantiate, is_exact};
use crate::ast::ExprId;
use crate::decls::Function;
use crate::diagnostic::DiagnosticKind;
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn check_call(
        &mut self,
        id: ExprId,
        name: &str,
        target: Option<ExprId>,
        args: &[ExprId],
    ) {
        if name == "_?._" {
            self.check_opt_select(id, target, args);
            return;
        }
        for &arg in args {
            self.check(arg);
        }
        let env = self.env;
        let Some(target) = target else {
            match env.lookup_function(name.strip_prefix('.').unwrap_or(name)) {
                Some(function) => self.resolve_call(id, function, None, args, false),
                None => {
                    self.report_undeclared(id, name);
                    self.set_type(id, Type::Error);
                }
            }
            return;
        };
        // `a.b.c()` calls the function `a.b.c` if it is declared, otherwise `c` with the receiver `a.b`.
        if self.may_be_qualified(target)
            && let Some(prefix) = self.ast.qualified_name(target)
        {
            let qualified = format!("{}.{name}", prefix.strip_prefix('.').unwrap_or(&prefix));
            if let Some(function) = env.lookup_function(&qualified) {
                self.resolve_call(id, function, None, args, true);
                return;
            }
        }
        self.check(target);
        match env.lookup_function(name) {
            Some(function) => self.resolve_call(id, function, Some(target), args, false),
            None => {
                self.set_type(id, Type::Error);
                self.report_undeclared(id, name);
            }
        }
    }

    fn resolve_call(
        &mut self,
        id: ExprId,
        function: &Function,
        target: Option<ExprId>,
        args: &[ExprId],
        namespaced: bool,
    ) {
        let arg_types: Vec<Type> = target
            .iter()
            .chain(args)
            .map(|&arg| self.type_of(arg))
            .collect();
        if matches!(function.name, "_&&_" | "_||_") {
            self.resolve_logical(id, function, args, &arg_types);
            return;
        }
        let mut overloads = Vec::new();
        let mut result: Option<Type> = None;
        for overload in &function.overloads {
            if overload.is_member() != target.is_some() {
                continue;
            }
            let variables: Vec<_> = overload
                .type_params
                .iter()
                .map(|&param| (param, self.substitution.new_variable()))
                .collect();
            if overload.args.len() != arg_types.len() {
                continue;
            }
            let (matches, declared_result) = if variables.is_empty() {
                (
                    self.substitution
                        .is_assignable_list(&arg_types, &overload.args),
                    overload.result.clone(),
                )
            } else {
                let candidates: Vec<_> = overload
                    .args
                    .iter()
                    .map(|arg| instantiate(arg, &variables))
                    .collect();
                (
                    self.substitution
                        .is_assignable_list(&arg_types, &candidates),
                    instantiate(&overload.result, &variables),
                )
            };
            if !matches {
                continue;
            }
            overloads.push(overload.row);
            let overload_result = self.substitution.resolve(&declared_result);
            result = Some(match result {
                None => overload_result,
                Some(first) if !first.is_dyn() && !is_exact(&overload_result, &first) => Type::Dyn,
                Some(first) => first,
            });
        }
        match result {
            Some(type_) => {
                self.set_type(id, type_);
                let overloads = overloads.into();
                self.set_reference(
                    id,
                    Reference::Function {
                        name: function.name,
                        overloads,
                        namespaced,
                    },
                );
            }
            None => {
                let resolved = arg_types.iter();
                let resolved = resolved.map(|arg| self.substitution.resolve_to_dyn(arg));
                let kind = DiagnosticKind::NoMatchingOverload {
                    function: function.name.into(),
                    is_member: target.is_some(),
                    args: resolved.collect(),
                };
                self.report(id, kind);
                self.set_type(id, Type::Error);
            }
        }
    }

    /// Checks `&&` and `||`. Each operand that is not a bool is reported separately.
    fn resolve_logical(
        &mut self,
        id: ExprId,
        function: &Function,
        args: &[ExprId],
        arg_types: &[Type],
    ) {
        let mut type_ = Type::Bool;
        for (&arg, arg_type) in args.iter().zip(arg_types) {
            if !self.substitution.is_assignable(arg_type, &Type::Bool) {
                self.report_mismatch(arg, &Type::Bool, arg_type);
                type_ = Type::Error;
            }
        }
        if type_ == Type::Bool {
            let overloads = function
                .overloads
                .iter()
                .map(|overload| overload.row)
                .collect();
            self.set_reference(
                id,
                Reference::Function {
                    name: function.name,
                    overloads,
                    namespaced: false,
                },
            );
        }
        self.set_type(id, type_);
    }
}
