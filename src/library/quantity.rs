//! Quantities such as `1.5Gi`.

mod amount;
mod decimal;
mod value;

pub use value::{Quantity, QuantityError};

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, Double, Int, String};

use super::types::QUANTITY;

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/quantity.go, quantityLibraryDecls";

/// Conversion, comparison and arithmetic of quantities.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::global(
        "quantity",
        "string_to_quantity",
        &[String],
        QUANTITY,
        SOURCE,
    ),
    OverloadRow::global("isQuantity", "is_quantity_string", &[String], Bool, SOURCE),
    OverloadRow::global("sign", "quantity_sign", &[QUANTITY], Int, SOURCE),
    OverloadRow::member(
        "isGreaterThan",
        "quantity_is_greater_than",
        &[QUANTITY, QUANTITY],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "isLessThan",
        "quantity_is_less_than",
        &[QUANTITY, QUANTITY],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "compareTo",
        "quantity_compare_to",
        &[QUANTITY, QUANTITY],
        Int,
        SOURCE,
    ),
    OverloadRow::member(
        "asApproximateFloat",
        "quantity_get_float",
        &[QUANTITY],
        Double,
        SOURCE,
    ),
    OverloadRow::member("asInteger", "quantity_get_int", &[QUANTITY], Int, SOURCE),
    OverloadRow::member(
        "isInteger",
        "quantity_is_integer",
        &[QUANTITY],
        Bool,
        SOURCE,
    ),
    OverloadRow::member(
        "add",
        "quantity_add",
        &[QUANTITY, QUANTITY],
        QUANTITY,
        SOURCE,
    ),
    OverloadRow::member(
        "add",
        "quantity_add_int",
        &[QUANTITY, Int],
        QUANTITY,
        SOURCE,
    ),
    OverloadRow::member(
        "sub",
        "quantity_sub",
        &[QUANTITY, QUANTITY],
        QUANTITY,
        SOURCE,
    ),
    OverloadRow::member(
        "sub",
        "quantity_sub_int",
        &[QUANTITY, Int],
        QUANTITY,
        SOURCE,
    ),
];
