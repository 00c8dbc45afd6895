//! The minor versions of Kubernetes: the newest that is known, and those that expressions need.
//!
//! A row has the version that introduced it. An API server judges new expressions by the environment of the
//! version before its own, so that a policy outlives a rollback: what 1.34 introduced can be written since
//! 1.35. What is stored already is judged by the environment of its own version.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`baseOpts`, `DefaultCompatibilityVersion`),
//! `environment.go` (`EnvSet`).

use cel::ast::ExprId;
use cel::checker::{CheckedAst, Reference};
use cel::decls::Version;

/// The version whose answers are reproduced.
pub const LATEST: Version = Version::new(1, 36);

/// The first version with policies in a stable API.
pub const OLDEST: Version = Version::new(1, 30);

pub(super) const V1_27: Version = Version::new(1, 27);
pub(super) const V1_28: Version = Version::new(1, 28);
pub(super) const V1_29: Version = Version::new(1, 29);
pub(super) const V1_30: Version = Version::new(1, 30);
pub(super) const V1_31: Version = Version::new(1, 31);
pub(super) const V1_32: Version = Version::new(1, 32);
pub(super) const V1_33: Version = Version::new(1, 33);
pub(super) const V1_34: Version = Version::new(1, 34);

/// The macros that were introduced after the first version: the name, the number of arguments without the
/// receiver, and that version.
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

/// The first version whose API server takes new expressions with what `introduced` introduced.
#[must_use]
pub const fn usable_since(introduced: Version) -> Version {
    Version::new(introduced.major, introduced.minor.saturating_add(1))
}

/// A function or macro that an expression uses and that an older version does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooNew {
    /// The call; of a macro, the expression that it was expanded to.
    pub at: ExprId,
    /// The name of the function or macro.
    pub name: String,
    /// Whether it is a macro.
    pub is_macro: bool,
    /// The version that introduced it.
    pub introduced: Version,
}

/// The calls in `checked` that an API server of `version` would not take in a new expression, in the order of
/// their places.
///
/// A call counts by the oldest of the overloads that its arguments allow.
#[must_use]
pub fn too_new(checked: &CheckedAst, version: Version) -> Vec<TooNew> {
    let ast = checked.ast();
    let is_missing = |introduced| usable_since(introduced) > version;
    let macros = ast.macros().iter().filter_map(|call| {
        let is_called = |name: &str, n_args| (name, n_args) == (&call.function, call.n_args);
        let known = MACROS
            .iter()
            .find(|(name, n_args, _)| is_called(name, *n_args));
        let introduced = known.map(|(.., introduced)| *introduced)?;
        is_missing(introduced).then(|| TooNew {
            at: call.at,
            name: call.function.to_string(),
            is_macro: true,
            introduced,
        })
    });
    let mut found: Vec<TooNew> = macros.collect();
    let functions = ast.descendants(ast.root()).into_iter().filter_map(|at| {
        let Some(Reference::Function {
            name, overloads, ..
        }) = checked.reference(at)
        else {
            return None;
        };
        let introduced = overloads.iter().map(|row| row.source.introduced).min()?;
        // What a macro expands to is named by the macro.
        let is_hidden = name.contains('@');
        (is_missing(introduced) && !is_hidden).then(|| TooNew {
            at,
            name: (*name).to_owned(),
            is_macro: false,
            introduced,
        })
    });
    found.extend(functions);
    found.sort_by_key(|call| (ast.offset(call.at), call.at));
    found
}
