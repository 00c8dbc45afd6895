//! Runs a conformance test: parses, checks, and compares types.
//!
//! Source: cel-go `conformance/conformance_test.go`, `conformanceTest`.

use std::fmt;
use std::sync::Arc;

use vap_status_controller::cel::ast::Ast;
use vap_status_controller::cel::checker::{self, CheckedAst};
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::diagnostic::Diagnostics;
use vap_status_controller::cel::env::{Env, Library};
use vap_status_controller::cel::syntax;
use vap_status_controller::library::environment::{KubernetesVersion, base_env};

use super::suite::{Declaration, Expected, Test};

/// Why a test fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The test asks for something that the engine has no notion of.
    NotSupported(&'static str),
    /// The expression does not parse.
    Parse(String),
    /// The expression does not check.
    Check(String),
    /// The checker gives another type than the test wants.
    Type {
        /// The type that the test wants.
        expected: String,
        /// The type that the checker gives.
        actual: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSupported(what) => write!(f, "not supported: {what}"),
            Self::Parse(text) => write!(f, "does not parse: {text}"),
            Self::Check(text) => write!(f, "does not check: {text}"),
            Self::Type { expected, actual } => {
                write!(f, "is of type {actual}, expected {expected}")
            }
        }
    }
}

/// How far a test was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The expression was type-checked.
    pub checked: bool,
    /// The deduced type is the one that the test names.
    pub deduced: bool,
}

/// Runs `test`.
///
/// A test that names a value and no type must be of a type that has the value.
///
/// # Errors
/// Says why the test fails.
pub fn run(test: &Test) -> Result<Passed, Failure> {
    if test.disable_macros {
        return Err(Failure::NotSupported("parsing without macros"));
    }
    let ast = parse(&test.expr)?;
    if test.disable_check {
        return Ok(Passed::default());
    }
    let checked = check(test, &ast)?;
    let actual = checked.output_type();
    let deduced = match &test.expected {
        Expected::Typed(expected, _) if *expected == actual => true,
        Expected::Value(value) if value.is_of(&actual) => false,
        Expected::Error | Expected::Unknown => false,
        Expected::Typed(expected, _) => {
            return Err(Failure::Type {
                expected: expected.to_string(),
                actual: actual.to_string(),
            });
        }
        Expected::Value(value) => {
            return Err(Failure::Type {
                expected: format!("that of {value:?}"),
                actual: actual.to_string(),
            });
        }
    };
    Ok(Passed {
        checked: true,
        deduced,
    })
}

fn parse(text: &str) -> Result<Arc<Ast>, Failure> {
    let (ast, found) = syntax::parse(text);
    ast.map(Arc::new)
        .ok_or_else(|| Failure::Parse(messages(&found)))
}

fn check(test: &Test, ast: &Arc<Ast>) -> Result<CheckedAst, Failure> {
    let env = environment(test)?;
    let (checked, found) = checker::check(ast, &test.expr, &env);
    if found.is_empty() {
        return Ok(checked);
    }
    Err(Failure::Check(messages(&found)))
}

/// The environment of Kubernetes with the declarations of the test.
///
/// There is one container in Kubernetes, the empty one. A test that sets another is run all the same when
/// no name that it declares lies in it: then both resolve alike.
fn environment(test: &Test) -> Result<Env, Failure> {
    let base = base_env(KubernetesVersion::LATEST);
    let mut library = Library::clone(base.library());
    let mut variables = Vec::new();
    for declaration in &test.declarations {
        match declaration {
            Declaration::Variable(name, type_) => {
                if is_in_container(name, &test.container) {
                    return Err(Failure::NotSupported("a container"));
                }
                variables.push(Variable::new(name.as_str(), type_.clone()));
            }
            Declaration::Overload(overload) => library.add_overload(overload.clone()),
        }
    }
    Ok(Env::new(Arc::new(library)).extend(variables))
}

/// Whether `name` lies in `container` or in one that encloses it.
fn is_in_container(name: &str, container: &str) -> bool {
    container
        .split('.')
        .next()
        .filter(|first| !first.is_empty())
        .is_some_and(|first| {
            name.strip_prefix(first)
                .is_some_and(|rest| rest.starts_with('.'))
        })
}

fn messages(found: &Diagnostics) -> String {
    let messages: Vec<_> = found
        .as_slice()
        .iter()
        .map(|diagnostic| diagnostic.message.as_str())
        .collect();
    messages.join("; ")
}
