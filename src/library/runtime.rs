//! What the API server's environment adds to planning and evaluation: costs, and patterns that are known
//! before an evaluation.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`ProgramOptions`), `pkg/cel/library/regex.go`
//! (`FindRegexOptimization`, `FindAllRegexOptimization`), `pkg/cel/library/cost.go`.

use std::sync::Arc;

use super::args::{failed, strings, text};
use super::cost_runtime;
use crate::cel::eval::{CallCost, Runtime, Specialized};
use crate::cel::regex::{Program, compiled};
use crate::cel::value::{EvalError, Value};

/// The environment of the API server.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubernetesRuntime;

impl Runtime for KubernetesRuntime {
    fn call_cost(&self, function: &str, overload: &str) -> Option<CallCost> {
        cost_runtime::call_cost(function, overload)
    }

    /// Source: cel-go `interpreter/optimizations.go`, `MatchesRegexOptimization`; k8s.io/apiserver
    /// `pkg/cel/library/regex.go`, `FindRegexOptimization`, `FindAllRegexOptimization`.
    fn specialize(
        &self,
        function: &str,
        _overload: &str,
        args: &[Option<&Value>],
    ) -> Result<Option<Specialized>, EvalError> {
        let specialize: fn(Arc<Program>) -> Specialized = match function {
            "matches" => {
                |program| Box::new(move |_, args| Ok(program.is_match(text(args, 0)?).into()))
            }
            "find" => |program| {
                Box::new(move |_, args| Ok(program.find(text(args, 0)?).unwrap_or_default().into()))
            },
            "findAll" => |program| Box::new(move |_, args| find_all(&program, args)),
            _ => return Ok(None),
        };
        let Some(Some(Value::String(pattern))) = args.get(1) else {
            return Ok(None);
        };
        compiled(pattern).map(specialize).map(Some).map_err(failed)
    }

    fn presence_test_has_cost(&self) -> bool {
        false
    }
}

/// The matches of a pattern; the third argument is the greatest number of them, if it is not less than zero.
pub(super) fn find_all(program: &Program, args: &[Value]) -> Result<Value, EvalError> {
    let limit = match args.get(2) {
        None => None,
        Some(Value::Int(limit)) => usize::try_from(*limit).ok(),
        Some(_) => return Err(EvalError::no_such_overload()),
    };
    Ok(strings(program.find_all(text(args, 0)?, limit)))
}
