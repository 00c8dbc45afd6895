//! The type checker: a parsed expression and an environment in, types and references out.
//!
//! Takes an [`Ast`] and an [`Env`]; gives a [`CheckedAst`] with a type for each expression, and the
//! findings in cel-go's words. The check goes on after an error, whose expression is of the error type.
//!
//! Source: cel-go `checker/checker.go`, `checker/errors.go`.

mod infer;
mod overload;
mod substitution;

use std::sync::Arc;

use super::ast::{Ast, ExprId};
use super::decls::OverloadRow;
use super::diagnostic::Diagnostics;
use super::env::Env;
use super::source::SourceMap;
use super::stack::{SHALLOW_DEPTH, run_on_deep_stack};
use super::types::Type;

/// Declaration that an expression was resolved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A variable or type, by its full name.
    Ident(Arc<str>),
    /// A function, by its full name, with all overloads that the arguments allow.
    Function {
        /// The name of the function.
        name: &'static str,
        /// The rows of the overloads.
        overloads: Box<[&'static OverloadRow]>,
        /// True if the apparent receiver is a part of the function's name.
        namespaced: bool,
    },
}

/// A checked expression: the tree with its side tables.
#[derive(Debug)]
pub struct CheckedAst {
    ast: Arc<Ast>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
}

impl CheckedAst {
    /// The tree.
    #[must_use]
    pub fn ast(&self) -> &Arc<Ast> {
        &self.ast
    }

    /// The type of `id`; `dyn` where the check has not come by.
    #[must_use]
    pub fn type_of(&self, id: ExprId) -> Type {
        self.known_type(id).cloned().unwrap_or(Type::Dyn)
    }

    /// The type of `id`, if the check has come by.
    #[must_use]
    pub fn known_type(&self, id: ExprId) -> Option<&Type> {
        self.types.get(id.index())?.as_ref()
    }

    /// [`CheckedAst::type_of`], by reference.
    #[must_use]
    pub fn type_at(&self, id: ExprId) -> &Type {
        static UNCHECKED: Type = Type::Dyn;
        match self.types.get(id.index()) {
            Some(Some(type_)) => type_,
            _ => &UNCHECKED,
        }
    }

    /// Returns the declaration that `id` was resolved to.
    #[must_use]
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.index())?.as_ref()
    }

    /// Reports whether a part of the expression is of no type, as upstream cannot hand on.
    ///
    /// Source: cel-go `common/types/types.go`, `TypeToExprType`.
    #[must_use]
    pub fn has_unspecified(&self) -> bool {
        self.types.iter().flatten().any(Type::is_unspecified)
    }

    /// The type of the whole expression.
    #[must_use]
    pub fn output_type(&self) -> Type {
        self.type_of(self.ast.root())
    }
}

/// Reports whether checking `ast` needs so much stack that it is done on a thread of its own.
#[must_use]
pub fn is_deep(ast: &Ast) -> bool {
    ast.depth() > SHALLOW_DEPTH
}

/// Checks `ast`, which was parsed from `text`, in `env`.
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
/// let (checked, found) = check("[1, 2].map(n, string(n))")?;
/// assert!(found.is_empty());
/// assert_eq!(checked.output_type(), Type::list(Type::String));
/// let (_, found) = check("1 + 'a'")?;
/// assert_eq!(
///     found.render("1 + 'a'"),
///     "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | ..^"
/// );
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn check(ast: &Arc<Ast>, text: &str, env: &Env) -> (CheckedAst, Diagnostics) {
    run_on_deep_stack(is_deep(ast), || infer::Checker::new(ast, text, env).run())
}

/// Where an expression is, for findings; the lines are indexed only if there are any.
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
