//! The type checker: infers a type for each expression and resolves identifiers and calls.
//!
//! Takes an [`Ast`] and an [`Env`], and returns a [`CheckedAst`] and diagnostics with cel-go's wording.
//! Checking continues after an error; the failed expression has the error type.
//!
//! Source: cel-go `checker/checker.go`, `checker/errors.go`.

mod infer;
mod overload;
mod substitution;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::substitution::Substitution;
use super::ast::{Ast, ExprId};
use super::decls::{Overload, OverloadRow};
use super::diagnostic::Diagnostics;
use super::env::Env;
use super::source::SourceMap;
use super::stack::{SHALLOW_DEPTH, run_on_deep_stack};
use super::types::Type;
use super::version::Behavior;

/// The declaration that an identifier or call resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A variable or type, by its qualified name.
    Ident(Arc<str>),
    /// A function, with the overloads that match the argument types.
    Function {
        /// The qualified name.
        name: &'static str,
        /// The matching overloads.
        overloads: Box<[&'static OverloadRow]>,
        /// True if the receiver in the syntax tree belongs to the function's name: `optional` in `optional.of(x)`.
        namespaced: bool,
    },
}

/// A checked expression: the AST with side tables indexed by [`ExprId`].
#[derive(Debug)]
pub struct CheckedAst {
    ast: Arc<Ast>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    behavior: Behavior,
}

impl CheckedAst {
    /// Returns the behavior of the release for which the expression was checked.
    #[must_use]
    pub(crate) fn behavior(&self) -> Behavior {
        self.behavior
    }

    /// Returns the underlying AST.
    #[must_use]
    pub fn ast(&self) -> &Arc<Ast> {
        &self.ast
    }

    /// Returns the type of `id`, or `dyn` if `id` was not checked.
    #[must_use]
    pub fn type_of(&self, id: ExprId) -> Type {
        self.known_type(id).cloned().unwrap_or(Type::Dyn)
    }

    /// Returns the type of `id`. `None` if `id` was not checked.
    #[must_use]
    pub fn known_type(&self, id: ExprId) -> Option<&Type> {
        self.types.get(id.index())?.as_ref()
    }

    /// Returns a reference to the type that [`CheckedAst::type_of`] returns.
    #[must_use]
    pub fn type_at(&self, id: ExprId) -> &Type {
        static UNCHECKED: Type = Type::Dyn;
        match self.types.get(id.index()) {
            Some(Some(type_)) => type_,
            _ => &UNCHECKED,
        }
    }

    /// Returns the declaration that the identifier or call `id` resolves to. `None` for other expressions, and if a
    /// name is not declared.
    #[must_use]
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.index())?.as_ref()
    }

    /// Returns true if a subexpression has the unspecified type. Upstream cannot convert this type to protobuf.
    ///
    /// Source: cel-go `common/types/types.go`, `TypeToExprType`.
    #[must_use]
    pub fn has_unspecified(&self) -> bool {
        self.types.iter().flatten().any(Type::is_unspecified)
    }

    /// Returns the type of the whole expression.
    #[must_use]
    pub fn output_type(&self) -> Type {
        self.type_of(self.ast.root())
    }
}

/// Returns true if [`check`] uses a separate thread with a larger stack for `ast`.
#[must_use]
pub fn is_deep(ast: &Ast) -> bool {
    ast.depth() > SHALLOW_DEPTH
}

/// Returns true if a value of the type `receiver` can be the first argument of the overload.
#[must_use]
pub fn accepts_receiver(overload: &Overload, receiver: &Type) -> bool {
    let mut substitution = Substitution::default();
    let params = overload.type_params.iter();
    let variables: Vec<_> = params
        .map(|name| (*name, substitution.new_variable()))
        .collect();
    overload.args.first().is_some_and(|first| {
        let first = substitution::instantiate(first, &variables);
        substitution.is_assignable(receiver, &first)
    })
}

/// Checks `ast`, the result of parsing `text`, in `env`.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use cel::env::Env;
/// use cel::types::Type;
/// use cel::{checker, stdlib, syntax};
///
/// let env = Env::new(Arc::new(stdlib::library()));
/// let check = |text| {
///     let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
///     Ok::<_, &str>(checker::check(&ast, text, &env))
/// };
/// let (checked, diagnostics) = check("[1, 2].map(n, string(n))")?;
/// assert!(diagnostics.is_empty());
/// assert_eq!(checked.output_type(), Type::list(Type::String));
/// let (_, diagnostics) = check("1 + 'a'")?;
/// assert_eq!(
///     diagnostics.render("1 + 'a'"),
///     "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | ..^"
/// );
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn check(ast: &Arc<Ast>, text: &str, env: &Env) -> (CheckedAst, Diagnostics) {
    run_on_deep_stack(is_deep(ast), || infer::Checker::new(ast, text, env).run())
}

/// Source locations for diagnostics. The source is indexed when the first location is requested.
#[derive(Debug)]
struct Places<'a> {
    text: &'a str,
    source: Option<SourceMap>,
}

impl Places<'_> {
    fn location(&mut self, offset: u32) -> super::source::Location {
        self.source
            .get_or_insert_with(|| SourceMap::new(self.text))
            .location(offset)
    }
}
