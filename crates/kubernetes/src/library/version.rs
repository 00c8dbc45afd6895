//! The supported Kubernetes versions, and the version that an expression requires.
//!
//! Each overload row has the version that introduced it. An API server checks new expressions with the environment of
//! the previous version, so that a policy survives a rollback. For example, additions of 1.34 are available in new
//! expressions since 1.35. Stored expressions are checked with the environment of the server's own version.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`baseOpts`, `DefaultCompatibilityVersion`),
//! `environment.go` (`EnvSet`).

use cel::ast::ExprId;
use cel::checker::{CheckedAst, Reference};
use cel::decls::Version;

/// The newest supported version. This crate reproduces the behavior of this version.
pub const LATEST: Version = Version::new(1, 36);

/// The oldest supported version, the first with policies in a stable API.
pub const OLDEST: Version = Version::new(1, 30);

pub(super) const V1_27: Version = Version::new(1, 27);
pub(super) const V1_28: Version = Version::new(1, 28);
pub(super) const V1_29: Version = Version::new(1, 29);
pub(super) const V1_30: Version = Version::new(1, 30);
pub(super) const V1_31: Version = Version::new(1, 31);
pub(super) const V1_32: Version = Version::new(1, 32);
pub(super) const V1_33: Version = Version::new(1, 33);
pub(super) const V1_34: Version = Version::new(1, 34);

/// The macros introduced after version 1.0: the name, the number of arguments without the receiver, and the version
/// that introduced the macro.
pub static MACROS: &[(&str, usize, Version)] = &[
    ("optMap", 2, V1_28),
    ("optFlatMap", 2, V1_28),
    ("all", 3, V1_32),
    ("exists", 3, V1_32),
    ("existsOne", 3, V1_32),
    ("exists_one", 3, V1_32),
    ("transformList", 3, V1_32),
    ("transformList", 4, V1_32),
    ("transformMap", 3, V1_32),
    ("transformMap", 4, V1_32),
    ("transformMapEntry", 3, V1_32),
    ("transformMapEntry", 4, V1_32),
    ("sortBy", 2, V1_34),
];

/// Returns the first version whose API server accepts features introduced in `introduced` in new expressions.
#[must_use]
pub const fn usable_since(introduced: Version) -> Version {
    Version::new(introduced.major, introduced.minor.saturating_add(1))
}

/// A use of a function or macro that an older version lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooNew {
    /// The expression that calls the function. For a macro, the expansion of the macro.
    pub at: ExprId,
    /// The name of the function or macro.
    pub name: String,
    /// True for a macro, false for a function.
    pub is_macro: bool,
    /// The version that introduced the function or macro.
    pub introduced: Version,
}

/// Returns the calls in `checked` that an API server of `version` rejects in a new expression, in source order.
///
/// If several overloads match a call after type checking, the overload that was introduced first determines the version
/// of the call.
#[must_use]
pub fn too_new(checked: &CheckedAst, version: Version) -> Vec<TooNew> {
    let ast = checked.ast();
    let is_missing = |introduced| usable_since(introduced) > version;
    let macros = ast.macros().iter().filter_map(|call| {
        let is_called = |name: &str, n_args| (name, n_args) == (&call.function, call.n_args);
        let row = MACROS
            .iter()
            .find(|(name, n_args, _)| is_called(name, *n_args));
        let introduced = row.map(|(.., introduced)| *introduced)?;
        is_missing(introduced).then(|| TooNew {
            at: call.at,
            name: call.function.to_string(),
            is_macro: true,
            introduced,
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
        let introduced = overloads.iter().map(|row| row.source.introduced).min()?;
        // Functions with `@` in their names only occur in the expansions of macros. The macro is reported instead.
        let is_hidden = name.contains('@');
        (is_missing(introduced) && !is_hidden).then(|| TooNew {
            at,
            name: (*name).to_owned(),
            is_macro: false,
            introduced,
        })
    });
    calls.extend(functions);
    calls.sort_by_key(|call| (ast.offset(call.at), call.at));
    calls
}
