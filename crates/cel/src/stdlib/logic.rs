//! The logical operators and the conditional.

use crate::decls::{Context, OverloadRow, Sig};
use crate::value::{EvalError, Traits, Value};
use Sig::{Bool, Param};

const SOURCE: &str = "cel-go common/stdlib/standard.go, stdFunctions";

const A: Sig = Param("A");

/// `?:`, `&&`, `||`, `!` and the operator that comprehensions use to stop early.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global("_?_:_", "conditional", &[Bool, A, A], A, SOURCE),
    OverloadRow::global("_&&_", "logical_and", &[Bool, Bool], Bool, SOURCE),
    OverloadRow::global("_||_", "logical_or", &[Bool, Bool], Bool, SOURCE),
    OverloadRow::global("!_", "logical_not", &[Bool], Bool, SOURCE)
        .evaluated_as_singleton(negate, Traits::NONE),
    OverloadRow::global(
        "@not_strictly_false",
        "not_strictly_false",
        &[Bool],
        Bool,
        SOURCE,
    ),
];

fn negate(_: &Context, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(EvalError::no_such_overload()),
    }
}
