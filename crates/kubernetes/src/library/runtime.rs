//! What the API server's environment adds to planning and evaluation: costs, and patterns that are known
//! before an evaluation.
//!
//! Source: k8s.io/apiserver `pkg/cel/environment/base.go` (`ProgramOptions`), `pkg/cel/library/regex.go`
//! (`FindRegexOptimization`, `FindAllRegexOptimization`), `pkg/cel/library/cost.go`.

use std::borrow::Cow;
use std::sync::Arc;

use super::args::{failed, strings};
use super::cost_runtime;
use cel::eval::{CallCost, Runtime, Specialized};
use cel::value::{EvalError, Value};
use regexp::{Program, compiled};

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
                |program| Box::new(move |_, args| Ok(program.is_match(&subject(args)?).into()))
            }
            "find" => |program| {
                Box::new(move |_, args| {
                    Ok(program.find(&subject(args)?).unwrap_or_default().into())
                })
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
    Ok(strings(program.find_all(&subject(args)?, limit)))
}

/// The text that a pattern is looked for in: whatever wraps a Go string, if the pattern is a constant.
///
/// Source: cel-go `common/types/types.go`, `Type.Value`; `common/types/optional.go`, `Optional.Value`.
fn subject(args: &[Value]) -> Result<Cow<'_, str>, EvalError> {
    fn wrapped(value: &Value) -> Option<Cow<'_, str>> {
        match value {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Type(of) => Some(Cow::Owned(of.type_name())),
            Value::Optional(optional) => wrapped(optional.get()?),
            _ => None,
        }
    }
    args.first()
        .and_then(wrapped)
        .ok_or(EvalError::no_such_overload())
}
