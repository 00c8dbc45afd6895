//! Runs a conformance test: parses and checks the expression, compares its type, and evaluates it.
//!
//! Source: cel-go `conformance/conformance_test.go`, `conformanceTest`.

use std::fmt;
use std::sync::Arc;

use vap_status_controller::cel::ast::{Ast, AstBuilder, Expr};
use vap_status_controller::cel::checker::{self, CheckedAst};
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::diagnostic::Diagnostics;
use vap_status_controller::cel::env::{Env, Library};
use vap_status_controller::cel::eval::{Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::runtime::KubernetesRuntime;

use super::eval;
use super::suite::{Declaration, Expected, Test};
use super::value::Value;

/// The reason why a test fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The engine does not support a feature that the test needs.
    NotSupported(&'static str),
    /// The expression cannot be parsed.
    Parse(String),
    /// The expression does not type-check.
    Check(String),
    /// The checker deduces a type that is not the expected one.
    Type {
        /// The expected type.
        expected: String,
        /// The actual type.
        actual: String,
    },
    /// The evaluation has a result that is not the expected one.
    Result {
        /// The expected result.
        expected: String,
        /// The actual result.
        actual: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSupported(what) => write!(f, "not supported: {what}"),
            Self::Parse(text) => write!(f, "cannot be parsed: {text}"),
            Self::Check(text) => write!(f, "does not type-check: {text}"),
            Self::Type { expected, actual } => {
                write!(f, "is of type {actual}, expected {expected}")
            }
            Self::Result { expected, actual } => {
                write!(f, "has the result {actual}, expected {expected}")
            }
        }
    }
}

/// The completed stages of a passed test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletedSteps {
    /// The expression was type-checked.
    pub checked: bool,
    /// The test expects a type, and the checker deduced this type.
    pub deduced: bool,
    /// The expression was evaluated.
    pub evaluated: bool,
}

/// Runs `test`. Returns the completed stages.
///
/// If a test expects a value but no type, the value must belong to the deduced type. If the test disables the check,
/// check errors are ignored, because names are then resolved during the evaluation.
///
/// # Errors
/// Returns the reason if the test fails.
pub fn run(test: &Test) -> Result<CompletedSteps, Failure> {
    if test.disable_macros {
        return Err(Failure::NotSupported("parsing without macros"));
    }
    let env = environment(test);
    let ast = Arc::new(in_container(&parse(&test.expr)?, &test.container, &env));
    let (checked, found) = checker::check(&ast, &test.expr, &env);
    if !test.disable_check && !found.is_empty() {
        return Err(Failure::Check(messages(&found)));
    }
    let mut passed = CompletedSteps {
        checked: !test.disable_check,
        ..CompletedSteps::default()
    };
    if !test.disable_check {
        compare_type(test, &checked.output_type())?;
        passed.deduced = matches!(test.expected, Expected::Typed(_, _));
    }
    let wanted = match &test.expected {
        _ if test.check_only => return Ok(passed),
        Expected::Value(value) | Expected::Typed(_, Some(value)) => Some(value),
        Expected::Typed(_, None) => return Ok(passed),
        Expected::Error => None,
        Expected::Unknown => return Err(Failure::NotSupported("expected unknown values")),
    };
    evaluate(test, &checked, &env, wanted)?;
    passed.evaluated = true;
    Ok(passed)
}

fn compare_type(test: &Test, actual: &Type) -> Result<(), Failure> {
    let expected = match &test.expected {
        Expected::Typed(expected, _) if expected == actual => return Ok(()),
        Expected::Value(value) if value.is_of(actual) => return Ok(()),
        Expected::Error | Expected::Unknown => return Ok(()),
        Expected::Typed(expected, _) => expected.to_string(),
        Expected::Value(value) => format!("the type of {value:?}"),
    };
    Err(Failure::Type {
        expected,
        actual: actual.to_string(),
    })
}

/// Evaluates an expression and compares the result with the expected one. If the test has no expected value, the
/// evaluation must fail.
///
/// Planning folds constants, so the expected error may occur while the expression is planned.
fn evaluate(
    test: &Test,
    checked: &CheckedAst,
    env: &Env,
    wanted: Option<&Value>,
) -> Result<(), Failure> {
    let bindings = eval::bindings(test)?;
    let outcome = match Program::plan(checked, env, &KubernetesRuntime) {
        Ok(program) => {
            let evaluation = program.eval(&bindings, Limits::from_cost(u64::MAX));
            evaluation.result.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match (wanted, &outcome) {
        (None, Err(_)) => return Ok(()),
        (Some(wanted), Ok(value)) if eval::is_expected(wanted, value) => return Ok(()),
        _ => {}
    }
    Err(Failure::Result {
        expected: wanted.map_or_else(|| "an error".to_owned(), |value| format!("{value:?}")),
        actual: outcome.map_or_else(|error| error, |value| format!("{value:?}")),
    })
}

fn parse(text: &str) -> Result<Ast, Failure> {
    let (ast, found) = syntax::parse(text);
    ast.ok_or_else(|| Failure::Parse(messages(&found)))
}

/// Returns the tree with fully qualified names. A name is replaced if it refers to a declaration in `container` or in a
/// parent of `container`.
///
/// The checker only supports the empty container, because Kubernetes uses no other.
///
/// Source: cel-go `common/containers/container.go`, `ResolveCandidateNames`.
fn in_container(ast: &Ast, container: &str, env: &Env) -> Ast {
    let mut builder = AstBuilder::with_capacity(ast.len());
    for (id, expr) in ast.iter() {
        let mut expr = expr.clone();
        if let Expr::Struct { type_name, .. } = &mut expr {
            if let Some(full_name) = full_name(type_name, container, env) {
                *type_name = full_name.into();
            }
        } else if let Some(name) = ast.qualified_name(id)
            && let Some(full_name) = full_name(&name, container, env)
        {
            expr = Expr::Ident(full_name.into());
        }
        builder.add(ast.offset(id), expr);
    }
    builder.build(ast.root())
}

/// Returns the full name of the declaration of `name` in `container`, or in its nearest parent with such a declaration.
fn full_name(name: &str, container: &str, env: &Env) -> Option<String> {
    let mut prefix = container;
    while !prefix.is_empty() && !name.starts_with('.') {
        let candidate = format!("{prefix}.{name}");
        if env.lookup_ident(&candidate).is_some() {
            return Some(candidate);
        }
        prefix = prefix.rsplit_once('.').map_or("", |(around, _)| around);
    }
    None
}

/// Returns the environment of Kubernetes with the declarations of the test.
fn environment(test: &Test) -> Env {
    let base = base_env(crate::version::get());
    let mut library = Library::clone(base.library());
    let mut variables = Vec::new();
    for declaration in &test.declarations {
        match declaration {
            Declaration::Variable(name, type_) => {
                variables.push(Variable::new(name.as_str(), type_.clone()));
            }
            Declaration::Overload(overload) => library.add_overload(overload.clone()),
        }
    }
    Env::new(Arc::new(library)).extend(variables)
}

fn messages(found: &Diagnostics) -> String {
    let messages: Vec<_> = found.as_slice().iter().map(ToString::to_string).collect();
    messages.join("; ")
}
