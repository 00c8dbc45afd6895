//! Logical operators and the conditional operator.

use super::costs::{CONDITIONAL, LOGIC};
use crate::cost::{Costs, ResultOf};
use crate::decls::{Operator, OverloadRow, Sig, Source};
use crate::value::{EvalBudget, EvalError, Traits, Value};
use Sig::{Bool, Param};

const SOURCE: Source = Source::new("cel-go common/stdlib/standard.go, stdFunctions");

const A: Sig = Param("A");

/// `?:`, `&&`, `||`, `!` and `@not_strictly_false`, which ends a comprehension early.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global(
        "_?_:_",
        "conditional",
        &[Bool, A, A],
        A,
        CONDITIONAL,
        SOURCE,
    )
    .evaluated_as(Operator::Conditional)
    .with_result_of(ResultOf::Operands),
    OverloadRow::global("_&&_", "logical_and", &[Bool, Bool], Bool, LOGIC, SOURCE)
        .evaluated_as(Operator::And),
    OverloadRow::global("_||_", "logical_or", &[Bool, Bool], Bool, LOGIC, SOURCE)
        .evaluated_as(Operator::Or),
    OverloadRow::global("!_", "logical_not", &[Bool], Bool, Costs::ONE, SOURCE)
        .evaluated_as_singleton(negate, Traits::NONE),
    OverloadRow::global(
        "@not_strictly_false",
        "not_strictly_false",
        &[Bool],
        Bool,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_as(Operator::NotStrictlyFalse),
];

fn negate(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(EvalError::no_such_overload()),
    }
}
