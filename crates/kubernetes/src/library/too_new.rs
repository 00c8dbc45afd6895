//! Finds the functions and macros that an expression uses, but an older API server lacks.

use cel::ast::ExprId;
use cel::checker::{CheckedAst, Reference};
use cel::version::{Availability, Version};

use super::environment::{MACROS, rows_with_id_of};
use crate::version::{CompileMode, KubernetesVersion, first_with, usable_since};

/// A use of a function or macro that an older version lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooNew {
    /// The expression that calls the function. For a macro, the expansion of the macro.
    pub at: ExprId,
    /// The name of the function or macro.
    pub name: String,
    /// True for a macro, false for a function.
    pub is_macro: bool,
    /// True if the version accepts the function or macro in stored expressions.
    pub is_accepted_if_stored: bool,
    /// The first version that accepts the function or macro in new expressions.
    pub usable_since: Version,
}

/// Returns the calls in `checked` that an API server of `version` rejects in a new expression, in source order.
///
/// If several overloads match a call after type checking, the one that was introduced first determines whether the call
/// is rejected.
#[must_use]
pub fn too_new(checked: &CheckedAst, version: KubernetesVersion) -> Vec<TooNew> {
    let ast = checked.ast();
    let stored = version.release_in(CompileMode::Stored);
    let macros = ast.macros().iter().filter_map(|call| {
        let is_called = |name: &str, n_args| (name, n_args) == (&call.function, call.n_args);
        let row = MACROS
            .iter()
            .find(|(name, n_args, _)| is_called(name, *n_args));
        let introduced = row.map(|(.., introduced)| *introduced)?;
        (!version.accepts(introduced)).then(|| TooNew {
            at: call.at,
            name: call.function.to_string(),
            is_macro: true,
            is_accepted_if_stored: introduced <= stored.platform,
            usable_since: usable_since(introduced),
        })
    });
    let mut calls: Vec<TooNew> = macros.collect();
    let functions = ast.descendants(ast.root()).into_iter().filter_map(|at| {
        let Some(Reference::Function {
            name, overloads, ..
        }) = checked.reference(at)
        else {
            return None;
        };
        // Also consider the rows of the same overloads for other releases. They differ only in costs or in the
        // implementation.
        let rows = || overloads.iter().flat_map(|row| rows_with_id_of(row));
        if rows().any(|row| version.has(&row.source.available)) {
            return None;
        }
        let first = rows()
            .map(|row| first_usable(&row.source.available))
            .min()?;
        // Functions with `@` in their names occur only in the expansions of macros. The macro is reported instead.
        let is_hidden = name.contains('@');
        (!is_hidden).then(|| TooNew {
            at,
            name: (*name).to_owned(),
            is_macro: false,
            is_accepted_if_stored: rows().any(|row| row.source.available.includes(stored)),
            usable_since: first,
        })
    });
    calls.extend(functions);
    calls.sort_by_key(|call| (ast.offset(call.at), call.at));
    calls
}

/// Returns the first version whose API server accepts functions with the availability `available` in new expressions.
fn first_usable(available: &Availability) -> Version {
    usable_since(available.since).max(first_with(available.since_cel_go))
}
