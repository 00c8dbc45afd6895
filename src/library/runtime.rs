//! What the API server's environment adds to planning and evaluation: compiled patterns, and the costs of
//! its functions.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`ProgramOptions`), `pkg/cel/library/regex.go`
//! (`FindRegexOptimization`, `FindAllRegexOptimization`), `pkg/cel/library/cost.go`.

use crate::cel::decls::Context;
use crate::cel::eval::{Runtime, Specialized};
use crate::cel::regex::Program;
use crate::cel::value::{EvalError, Value};

/// The run-time options of the API server.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubernetesRuntime;

impl Runtime for KubernetesRuntime {
    fn specialize(
        &self,
        function: &str,
        _overload: &str,
        args: &[Option<&Value>],
    ) -> Result<Option<Specialized>, EvalError> {
        if !matches!(function, "matches" | "find" | "findAll") {
            return Ok(None);
        }
        let Some(Some(Value::String(pattern))) = args.get(1) else {
            return Ok(None);
        };
        let program = Program::new(pattern).map_err(|error| EvalError::new(error.to_string()))?;
        Ok(Some(match function {
            "matches" => Box::new(move |_: &Context, args: &[Value]| {
                let text = text_of(args)?;
                Ok(program.is_match(text).into())
            }),
            "find" => Box::new(move |_: &Context, args: &[Value]| {
                let text = text_of(args)?;
                Ok(Value::from(program.find(text).unwrap_or_default()))
            }),
            _ => Box::new(move |_: &Context, args: &[Value]| find_all(&program, args)),
        }))
    }

    fn presence_test_has_cost(&self) -> bool {
        false
    }
}

/// The text in which a pattern is looked for.
fn text_of(args: &[Value]) -> Result<&str, EvalError> {
    match args {
        [Value::String(text), ..] => Ok(text),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Source: k8s.io/apiserver `pkg/cel/library/regex.go`, `FindAllRegexOptimization`.
fn find_all(program: &Program, args: &[Value]) -> Result<Value, EvalError> {
    let text = text_of(args)?;
    let limit = match args {
        [_, _] => None,
        // A negative number is no limit.
        [_, _, Value::Int(limit)] => usize::try_from(*limit).ok(),
        _ => return Err(EvalError::no_such_overload()),
    };
    let found: Vec<Value> = program
        .find_all(text, limit)
        .into_iter()
        .map(Value::from)
        .collect();
    Ok(Value::list(found))
}
