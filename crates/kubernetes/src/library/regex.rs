//! Searches by regular expression.

use std::sync::Arc;

use super::args::{Result, failed, text};
use super::runtime;
use Sig::{Int, List, String};
use cel::decls::{Context, OverloadRow, Sig};
use cel::value::{EvalError, Value};
use regexp::{Program, compiled};

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/regex.go, regexLibraryDecls";

/// The first match, and all matches.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "find",
        "string_find_string",
        &[String, String],
        String,
        SOURCE,
    )
    .evaluated_by(find),
    OverloadRow::member(
        "findAll",
        "string_find_all_string",
        &[String, String],
        List(&String),
        SOURCE,
    )
    .evaluated_by(find_all),
    OverloadRow::member(
        "findAll",
        "string_find_all_string_int",
        &[String, String, Int],
        List(&String),
        SOURCE,
    )
    .evaluated_by(find_all),
];

/// The pattern that is the second argument.
fn program(args: &[Value]) -> std::result::Result<Arc<Program>, EvalError> {
    compiled(text(args, 1)?).map_err(|error| failed(format!("Illegal regex: {error}")))
}

fn find(_: &Context, args: &[Value]) -> Result {
    let text = text(args, 0)?;
    Ok(program(args)?.find(text).unwrap_or_default().into())
}

fn find_all(_: &Context, args: &[Value]) -> Result {
    text(args, 0)?;
    let program = program(args)?;
    runtime::find_all(&program, args)
}
