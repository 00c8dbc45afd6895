//! The quantity library: quantities such as `1.5Gi`.

mod amount;
mod decimal;
mod value;

pub use value::{Quantity, QuantityError};

use std::cmp::Ordering;

use super::args::{Result, opaque, text};
use super::costs::{NOMINAL, PARSED};
use crate::version::{V1_28, V1_37};
use Sig::{Bool, Double, Int, String};
use cel::decls::{OverloadRow, Sig, Source};
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Exceeded, Opaque, Value};

use super::types::QUANTITY;

const SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/quantity.go, quantityLibraryDecls").since(V1_28);

const ADD: OverloadRow = sum_row("add", "quantity_add", &[QUANTITY, QUANTITY]);

const ADD_INT: OverloadRow = sum_row("add", "quantity_add_int", &[QUANTITY, Int]);

const SUB: OverloadRow = sum_row("sub", "quantity_sub", &[QUANTITY, QUANTITY]);

const SUB_INT: OverloadRow = sum_row("sub", "quantity_sub_int", &[QUANTITY, Int]);

/// Conversion, comparison and arithmetic of quantities.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global(
        "quantity",
        "string_to_quantity",
        &[String],
        QUANTITY,
        PARSED,
        SOURCE,
    )
    .evaluated_by(quantity),
    OverloadRow::global(
        "isQuantity",
        "is_quantity_string",
        &[String],
        Bool,
        PARSED,
        SOURCE,
    )
    .evaluated_by(is_quantity),
    OverloadRow::global("sign", "quantity_sign", &[QUANTITY], Int, NOMINAL, SOURCE)
        .evaluated_by(sign),
    OverloadRow::member(
        "isGreaterThan",
        "quantity_is_greater_than",
        &[QUANTITY, QUANTITY],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_greater_than),
    OverloadRow::member(
        "isLessThan",
        "quantity_is_less_than",
        &[QUANTITY, QUANTITY],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_less_than),
    OverloadRow::member(
        "compareTo",
        "quantity_compare_to",
        &[QUANTITY, QUANTITY],
        Int,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(compare_to),
    OverloadRow::member(
        "asApproximateFloat",
        "quantity_get_float",
        &[QUANTITY],
        Double,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(as_approximate_float),
    OverloadRow::member(
        "asInteger",
        "quantity_get_int",
        &[QUANTITY],
        Int,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(as_integer),
    OverloadRow::member(
        "isInteger",
        "quantity_is_integer",
        &[QUANTITY],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_integer),
    ADD.evaluated_by(add_in_place).before(V1_37),
    ADD_INT.evaluated_by(add_in_place).before(V1_37),
    SUB.evaluated_by(sub_in_place).before(V1_37),
    SUB_INT.evaluated_by(sub_in_place).before(V1_37),
    ADD.evaluated_by(add).since(V1_37),
    ADD_INT.evaluated_by(add).since(V1_37),
    SUB.evaluated_by(sub).since(V1_37),
    SUB_INT.evaluated_by(sub).since(V1_37),
];

impl Opaque for Quantity {
    fn type_(&self) -> Type {
        QUANTITY.to_type()
    }

    /// Returns an error if `other` is a result of `add` or `sub`. Upstream's equality does not support the Go type of
    /// such a result.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/quantity.go`, `Quantity.Equal`.
    fn equals(&self, other: &Value) -> std::result::Result<bool, EvalError> {
        match other.downcast::<Self>() {
            Some(other) if !other.is_sum() => self.is_equal(other).map_err(failed),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    fn heap_size(&self) -> usize {
        Self::heap_size(self)
    }

    fn text(&self) -> Option<std::string::String> {
        Some(self.to_string())
    }

    fn native_type(&self) -> &'static str {
        "*resource.Quantity"
    }

    fn go_type(&self) -> &'static str {
        if self.is_sum() {
            "*cel.Quantity"
        } else {
            "cel.Quantity"
        }
    }
}

/// Converts a quantity error to an evaluation error. An error about too many digits ends the evaluation. Upstream does
/// not limit the number of digits, so the result of the expression is unknown.
fn failed(error: QuantityError) -> EvalError {
    match error {
        QuantityError::TooLong => Exceeded::QuantityDigits.into(),
        error => EvalError::new(error.to_string()),
    }
}

fn quantity(_: &EvalBudget, args: &[Value]) -> Result {
    Quantity::parse(text(args, 0)?)
        .map(Value::opaque)
        .map_err(failed)
}

fn is_quantity(_: &EvalBudget, args: &[Value]) -> Result {
    match Quantity::parse(text(args, 0)?) {
        Err(error @ QuantityError::TooLong) => Err(failed(error)),
        parsed => Ok(parsed.is_ok().into()),
    }
}

fn sign(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|quantity: &Quantity| quantity.sign().into())
}

fn compare(budget: &EvalBudget, args: &[Value]) -> std::result::Result<Ordering, EvalError> {
    let (left, right): (&Quantity, &Quantity) = (opaque(args, 0)?, opaque(args, 1)?);
    let before = Quantity::heap_size(left);
    let order = left.compare(right);
    // The comparison may have converted `left` to the decimal representation. This representation needs more memory.
    let grown = Quantity::heap_size(left).saturating_sub(before);
    budget.allocate(grown)?;
    order.map_err(failed)
}

fn is_greater_than(budget: &EvalBudget, args: &[Value]) -> Result {
    compare(budget, args).map(|order| order.is_gt().into())
}

fn is_less_than(budget: &EvalBudget, args: &[Value]) -> Result {
    compare(budget, args).map(|order| order.is_lt().into())
}

fn compare_to(budget: &EvalBudget, args: &[Value]) -> Result {
    compare(budget, args).map(|order| (order as i64).into())
}

fn as_approximate_float(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|quantity: &Quantity| quantity.as_approximate_float().into())
}

fn as_integer(_: &EvalBudget, args: &[Value]) -> Result {
    opaque::<Quantity>(args, 0)?
        .as_integer()
        .map(Value::Int)
        .ok_or(EvalError::fixed("cannot convert value to integer"))
}

fn is_integer(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|quantity: &Quantity| quantity.as_integer().is_some().into())
}

/// Converts the second argument, a quantity or an integer, to a quantity.
fn operand(args: &[Value]) -> std::result::Result<Quantity, EvalError> {
    match args.get(1) {
        Some(Value::Int(value)) => Ok((*value).into()),
        _ => opaque(args, 1).cloned(),
    }
}

/// Declares an overload that returns a sum or difference of quantities.
const fn sum_row(function: &'static str, id: &'static str, args: &'static [Sig]) -> OverloadRow {
    OverloadRow::member(function, id, args, QUANTITY, NOMINAL, SOURCE)
}

/// Adds like Kubernetes before 1.37: if the receiver is in the decimal representation, it also becomes the sum.
fn add_in_place(_: &EvalBudget, args: &[Value]) -> Result {
    let sum = opaque::<Quantity>(args, 0)?.plus_in_place(&operand(args)?);
    sum.map(Value::opaque).map_err(failed)
}

/// Subtracts like Kubernetes before 1.37: if the receiver is in the decimal representation, it also becomes the
/// difference.
fn sub_in_place(_: &EvalBudget, args: &[Value]) -> Result {
    let difference = opaque::<Quantity>(args, 0)?.minus_in_place(&operand(args)?);
    difference.map(Value::opaque).map_err(failed)
}

fn add(_: &EvalBudget, args: &[Value]) -> Result {
    let sum = opaque::<Quantity>(args, 0)?.plus(&operand(args)?);
    sum.map(Value::opaque).map_err(failed)
}

fn sub(_: &EvalBudget, args: &[Value]) -> Result {
    let difference = opaque::<Quantity>(args, 0)?.minus(&operand(args)?);
    difference.map(Value::opaque).map_err(failed)
}
