//! CEL, the Common Expression Language: parser, type checker, cost estimator and evaluator with a cost limit.
//!
//! Structure, pass order and names are those of cel-go v0.26, which the API server uses (`k8s.io/apiserver`
//! v0.36.3), so that results can be compared one to one. The crate does not depend on Kubernetes, JSON,
//! clocks or I/O.
//!
//! An expression passes through up to five steps:
//!
//! | step | input | output |
//! |---|---|---|
//! | [`syntax::parse`] | a source string | an [`ast::Ast`], or syntax errors |
//! | [`checker::check`] | the AST and an environment ([`env::Env`]) | the AST with types, and diagnostics |
//! | [`estimate::estimate`] | the checked AST, and the sizes of variables if known | the minimum and maximum cost of an evaluation |
//! | [`eval::Program::plan`] | the checked AST | a program that can be evaluated repeatedly |
//! | [`eval::Program::eval`] | variable values and limits | a value or an error, and the actual cost |
//!
//! # Declare, check, evaluate
//!
//! An environment combines a [`Library`](env::Library) of functions and types with typed variables.
//!
//! ```
//! use std::sync::Arc;
//! use cel::decls::Variable;
//! use cel::env::Env;
//! use cel::eval::{Limits, PlainRuntime, Program};
//! use cel::types::Type;
//! use cel::value::{EvalBudget, Value};
//! use cel::{checker, stdlib, syntax};
//!
//! let env = Env::new(Arc::new(stdlib::library())).extend([
//!     Variable::new("name", Type::String),
//!     Variable::new("ports", Type::list(Type::Int)),
//! ]);
//! let text = "name.startsWith('web-') && ports.all(p, p > 1023)";
//! let (ast, diagnostics) = syntax::parse(text);
//! let ast = Arc::new(ast.ok_or_else(|| diagnostics.render(text))?);
//! let (checked, diagnostics) = checker::check(&ast, text, &env);
//! assert!(diagnostics.is_empty());
//! assert_eq!(checked.output_type(), Type::Bool);
//!
//! let program = Program::plan(&checked, &env, &PlainRuntime).map_err(|error| error.to_string())?;
//! let activation = [
//!     ("name", Value::string("web-1")),
//!     ("ports", Value::list([Value::Int(8080), Value::Int(80)])),
//! ];
//! let evaluation = program.eval(&activation, Limits::from_cost(1_000));
//! assert_eq!(evaluation.result.map_err(|error| error.message().to_owned())?.as_bool(), Some(false));
//! # Ok::<(), String>(())
//! ```
//!
//! # Diagnostics
//!
//! Diagnostics are data: a code, a location, a message with cel-go's wording, and an optional hint.
//!
//! ```
//! # use std::sync::Arc;
//! # use cel::decls::Variable;
//! # use cel::env::Env;
//! # use cel::types::Type;
//! # use cel::{checker, stdlib, syntax};
//! use cel::diagnostic::Code;
//!
//! let env = Env::new(Arc::new(stdlib::library())).extend([Variable::new("name", Type::String)]);
//! let text = "name + 1 == nme";
//! let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
//! let (_, diagnostics) = checker::check(&ast, text, &env);
//! let codes: Vec<Code> = diagnostics.as_slice().iter().map(|diagnostic| diagnostic.kind.code()).collect();
//! assert_eq!(codes, [Code::NoMatchingOverload, Code::UndeclaredReference]);
//! let overload = &diagnostics.as_slice()[0];
//! assert_eq!((overload.location.line, overload.location.column), (1, 5));
//! assert_eq!(
//!     overload.to_string(),
//!     "found no matching overload for '_+_' applied to '(string, int)'"
//! );
//!
//! let (ast, diagnostics) = syntax::parse("name ==");
//! assert!(ast.is_none());
//! assert_eq!(diagnostics.as_slice()[0].kind.code(), Code::Syntax);
//! # Ok::<(), &str>(())
//! ```
//!
//! # Costs, estimated and measured
//!
//! A cost unit is about 50 ns of work. A [`SizeEstimator`](cost::SizeEstimator) supplies the sizes of
//! variables to an estimate. An evaluation measures its cost and stops when it exceeds the limit.
//!
//! ```
//! # use std::sync::Arc;
//! # use cel::decls::Variable;
//! # use cel::env::Env;
//! # use cel::eval::{Limits, PlainRuntime, Program};
//! # use cel::types::Type;
//! # use cel::value::Value;
//! # use cel::{checker, stdlib, syntax};
//! use cel::cost::{AstNode, SizeEstimate, SizeEstimator, UnknownSizes};
//! use cel::estimate::{CostOptions, estimate};
//!
//! /// Lists have at most 10 elements.
//! struct ShortLists;
//!
//! impl SizeEstimator for ShortLists {
//!     fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
//!         matches!(node.type_(), Type::List(_)).then_some(SizeEstimate::new(0, 10))
//!     }
//! }
//!
//! let env = Env::new(Arc::new(stdlib::library()))
//!     .extend([Variable::new("ports", Type::list(Type::Int))]);
//! let text = "ports.all(p, p > 1023)";
//! let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
//! let (checked, _) = checker::check(&ast, text, &env);
//! let options = CostOptions::default();
//! assert_eq!(estimate(&checked, &UnknownSizes, options).max, u64::MAX);
//! assert_eq!(estimate(&checked, &ShortLists, options).max, 52);
//!
//! let program = Program::plan(&checked, &env, &PlainRuntime).map_err(|_| "no program")?;
//! let ports = [("ports", Value::list(vec![Value::Int(8080); 1_000]))];
//! let evaluation = program.eval(&ports, Limits::from_cost(100));
//! let error = evaluation.result.err().ok_or("no error")?;
//! assert_eq!(error.message(), "operation cancelled: actual cost limit exceeded");
//! assert!(evaluation.cost > 100);
//! # Ok::<(), &str>(())
//! ```
//!
//! # Custom functions
//!
//! A function has one row per overload ([`decls::OverloadRow`]), with the overload's signature, costs and
//! implementation.
//!
//! ```
//! # use std::sync::Arc;
//! # use cel::env::Env;
//! # use cel::eval::{Limits, PlainRuntime, Program};
//! # use cel::{checker, stdlib, syntax};
//! use cel::cost::Costs;
//! use cel::decls::{OverloadRow, Sig, Source};
//! use cel::value::{EvalBudget, EvalError, Value};
//!
//! static ROWS: &[OverloadRow] = &[OverloadRow::member(
//!     "shouted",
//!     "string_shouted",
//!     &[Sig::String],
//!     Sig::String,
//!     Costs::fixed(2),
//!     Source::new("the documentation of this package"),
//! )
//! .evaluated_by(shouted)];
//!
//! fn shouted(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
//!     match args {
//!         [Value::String(text)] => Ok(Value::string(text.to_uppercase())),
//!         _ => Err(EvalError::no_such_overload()),
//!     }
//! }
//!
//! let mut library = stdlib::library();
//! library.add_overloads(ROWS);
//! let env = Env::new(Arc::new(library));
//! let text = "'hello'.shouted() + '!'";
//! let ast = Arc::new(syntax::parse(text).0.ok_or("a syntax error")?);
//! let (checked, diagnostics) = checker::check(&ast, text, &env);
//! assert!(diagnostics.is_empty());
//! let program = Program::plan(&checked, &env, &PlainRuntime).map_err(|_| "no program")?;
//! let evaluation = program.eval(&[], Limits::from_cost(100));
//! assert_eq!(evaluation.result.map_err(|_| "an error")?.as_str(), Some("HELLO!"));
//! # Ok::<(), &str>(())
//! ```
//!
//! # Bounds
//!
//! Source strings, trees, patterns and values are untrusted. The parser bounds the length of the source, the number of
//! nodes and their depth. Deep recursion continues on a larger stack ([`stack`]). Comparisons of values are limited by
//! an [`EvalBudget`](value::EvalBudget). Estimates and checks take time linear in the size of the tree and can be
//! stopped early by an [`interrupt`].

pub mod ast;
pub mod ast_validators;
pub mod base64;
pub mod bounds;
pub mod checker;
pub mod cost;
pub mod decls;
pub mod diagnostic;
pub mod env;
pub mod estimate;
pub mod eval;
pub mod ext;
pub mod go_text;
pub mod interrupt;
pub mod message;
mod names;
pub mod number_format;
pub mod source;
pub mod stack;
pub mod stdlib;
pub mod syntax;
pub mod temporal;
pub mod types;
pub mod validators;
pub mod value;
pub mod version;
mod zone;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
