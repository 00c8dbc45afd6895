//! CEL, the Common Expression Language, with a type checker, cost estimates and a bound on what an evaluation costs.
//!
//! The structure, the pass order and the names are cel-go's, which the API server runs (v0.26 under
//! `k8s.io/apiserver` v0.36.3), so that every answer can be compared with its answer. The package
//! deliberately knows nothing of Kubernetes, JSON objects, clocks or I/O.
//!
//! An expression goes from text to value in five steps, of which each can be the last:
//!
//! | step | takes | gives |
//! |---|---|---|
//! | [`syntax::parse`] | a text | a tree ([`ast::Ast`]), or what is wrong |
//! | [`checker::check`] | the tree and an environment ([`env::Env`]) | the tree with types, and findings |
//! | [`estimate::estimate`] | the checked tree, and the sizes of variables if they are known | the least and the most that an evaluation costs |
//! | [`eval::Program::plan`] | the checked tree | a program, to be evaluated often |
//! | [`eval::Program::eval`] | values for the variables, and a limit | a value or an error, and what it cost |
//!
//! # Declare, check, evaluate
//!
//! An environment is a [`Library`](env::Library) of functions and types, and variables with their types.
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
//! let (ast, found) = syntax::parse(text);
//! let ast = Arc::new(ast.ok_or_else(|| found.render(text))?);
//! let (checked, found) = checker::check(&ast, text, &env);
//! assert!(found.is_empty());
//! assert_eq!(checked.output_type(), Type::Bool);
//!
//! let program = Program::plan(&checked, &env, &PlainRuntime).map_err(|error| error.to_string())?;
//! let activation = [
//!     ("name", Value::string("web-1")),
//!     ("ports", Value::list([Value::Int(8080), Value::Int(80)])),
//! ];
//! let evaluation = program.eval(&activation, Limits::of_cost(1_000));
//! assert_eq!(evaluation.result.map_err(|error| error.message().to_owned())?.as_bool(), Some(false));
//! # Ok::<(), String>(())
//! ```
//!
//! # What is wrong with an expression
//!
//! Findings are data: a code, a place, a message in cel-go's words, and a hint where there is one.
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
//! let (_, found) = checker::check(&ast, text, &env);
//! let codes: Vec<Code> = found.as_slice().iter().map(|finding| finding.code).collect();
//! assert_eq!(codes, [Code::NoMatchingOverload, Code::UndeclaredReference]);
//! let overload = &found.as_slice()[0];
//! assert_eq!((overload.location.line, overload.location.column), (1, 5));
//! assert_eq!(
//!     overload.message,
//!     "found no matching overload for '_+_' applied to '(string, int)'"
//! );
//!
//! let (ast, found) = syntax::parse("name ==");
//! assert!(ast.is_none());
//! assert_eq!(found.as_slice()[0].code, Code::Syntax);
//! # Ok::<(), &str>(())
//! ```
//!
//! # Costs, before and during an evaluation
//!
//! A cost unit is about 50 ns of work. An estimate depends on the sizes of variables, which a
//! [`SizeEstimator`](cost::SizeEstimator) may know; an evaluation counts, and ends at its limit.
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
//! let evaluation = program.eval(&ports, Limits::of_cost(100));
//! let error = evaluation.result.err().ok_or("no error")?;
//! assert_eq!(error.message(), "operation cancelled: actual cost limit exceeded");
//! assert!(evaluation.cost > 100);
//! # Ok::<(), &str>(())
//! ```
//!
//! # A function of one's own
//!
//! A function is a row for each of its overloads ([`decls::OverloadRow`]): signature, costs and implementation.
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
//! let (checked, found) = checker::check(&ast, text, &env);
//! assert!(found.is_empty());
//! let program = Program::plan(&checked, &env, &PlainRuntime).map_err(|_| "no program")?;
//! let evaluation = program.eval(&[], Limits::of_cost(100));
//! assert_eq!(evaluation.result.map_err(|_| "an error")?.as_str(), Some("HELLO!"));
//! # Ok::<(), &str>(())
//! ```
//!
//! # Bounds
//!
//! Texts, trees, patterns and results may come from strangers: the parser bounds the length of a text, the number
//! of nodes and their depth; what recurses goes on on a larger stack where it is deep ([`stack`]); comparisons
//! count as work. An estimate and a check take time in proportion to the tree, and an [`interrupt`] ends them early.

pub mod ast;
pub mod ast_validators;
pub mod base64;
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
mod zone;
