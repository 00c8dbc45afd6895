//! Evaluates a CEL expression, and prints its type, value and cost: `evaluate EXPRESSION`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints its results"
)]

use std::process::ExitCode;
use std::sync::Arc;

use cel::env::Env;
use cel::eval::{Limits, PlainRuntime, Program};
use cel::{checker, stdlib, syntax};

/// Maximum cost of an evaluation. A unit is about 50 ns of work.
const COST_LIMIT: u64 = 1_000_000;

fn evaluate(text: &str) -> Result<String, String> {
    let env = Env::new(Arc::new(stdlib::library()));
    let (ast, diagnostics) = syntax::parse(text);
    let ast = Arc::new(ast.ok_or_else(|| diagnostics.render(text))?);
    let (checked, diagnostics) = checker::check(&ast, text, &env);
    if !diagnostics.is_empty() {
        return Err(diagnostics.render(text));
    }
    let program =
        Program::plan(&checked, &env, &PlainRuntime).map_err(|error| error.to_string())?;
    let evaluation = program.eval(&[], Limits::from_cost(COST_LIMIT));
    let value = evaluation.result;
    let value = value.map_err(|error| error.message().to_owned())?;
    let (type_, cost) = (checked.output_type(), evaluation.cost);
    Ok(format!("{value:?}\ntype: {type_}\ncost: {cost}"))
}

fn main() -> ExitCode {
    let text = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "1 + 1".to_owned());
    match evaluate(&text) {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
