//! The format library: validates strings against named formats.

pub mod formats;
pub mod validation;

pub use formats::Format;

use super::args::{Result, opaque, strings, text};
use super::costs::{self, NOMINAL};
use crate::version::{V1_31, V1_35};
use Sig::{List, Optional, String};
use cel::cost::Costs;
use cel::cost::measure::{matching_cost, size_at};
use cel::decls::{OverloadRow, Sig, Source};
use cel::value::{EvalBudget, Value};

use super::types::NAMED_FORMAT;

const SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/format.go, formatLibraryDecls").since(V1_31);
const CONSTANTS_SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/format.go, ConstantFormats").since(V1_31);

const VALIDATE: OverloadRow = OverloadRow::member(
    "validate",
    "format-validate",
    &[NAMED_FORMAT, String],
    Optional(&List(&String)),
    costs::validated(validation_cost),
    SOURCE,
)
.evaluated_by(validate);

/// The functions that look up a format by name and validate a string.
pub static ROWS: &[OverloadRow] = &[
    VALIDATE.evaluated_by(validate_characters).before(V1_35),
    VALIDATE.since(V1_35),
    OverloadRow::global(
        "format.named",
        "format-named",
        &[String],
        Optional(&NAMED_FORMAT),
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(named),
];

/// The functions without arguments that return a format, such as `format.uuid()`.
pub static CONSTANTS: &[OverloadRow] = &[
    OverloadRow::global(
        "format.dns1123Label",
        "format.dns1123Label",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::DNS1123_LABEL.value())),
    OverloadRow::global(
        "format.dns1123Subdomain",
        "format.dns1123Subdomain",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::DNS1123_SUBDOMAIN.value())),
    OverloadRow::global(
        "format.dns1035Label",
        "format.dns1035Label",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::DNS1035_LABEL.value())),
    OverloadRow::global(
        "format.qualifiedName",
        "format.qualifiedName",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::QUALIFIED_NAME.value())),
    OverloadRow::global(
        "format.dns1123LabelPrefix",
        "format.dns1123LabelPrefix",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::DNS1123_LABEL_PREFIX.value())),
    OverloadRow::global(
        "format.dns1123SubdomainPrefix",
        "format.dns1123SubdomainPrefix",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::DNS1123_SUBDOMAIN_PREFIX.value())),
    OverloadRow::global(
        "format.dns1035LabelPrefix",
        "format.dns1035LabelPrefix",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::DNS1035_LABEL_PREFIX.value())),
    OverloadRow::global(
        "format.labelValue",
        "format.labelValue",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::LABEL_VALUE.value())),
    OverloadRow::global(
        "format.uri",
        "format.uri",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::URI.value())),
    OverloadRow::global(
        "format.uuid",
        "format.uuid",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::UUID.value())),
    OverloadRow::global(
        "format.byte",
        "format.byte",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::BYTE.value())),
    OverloadRow::global(
        "format.date",
        "format.date",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::DATE.value())),
    OverloadRow::global(
        "format.datetime",
        "format.datetime",
        &[],
        NAMED_FORMAT,
        Costs::ONE,
        CONSTANTS_SOURCE,
    )
    .evaluated_by(|_, _| Ok(formats::DATETIME.value())),
];

fn validate(_: &EvalBudget, args: &[Value]) -> Result {
    let format: &Format = opaque(args, 0)?;
    Ok(optional_list(format.messages(text(args, 1)?)))
}

/// Returns a CEL optional that contains the list `messages`, or no value if the list is empty.
fn optional_list(messages: Vec<std::string::String>) -> Value {
    if messages.is_empty() {
        Value::none()
    } else {
        Value::some(strings(messages))
    }
}

/// Validates like Kubernetes before 1.35, whose messages say "characters" although the limit is in
/// bytes.
///
/// Source: k8s.io/apimachinery 0.34 `pkg/util/validation/validation.go`, `MaxLenError`.
fn validate_characters(_: &EvalBudget, args: &[Value]) -> Result {
    let format: &Format = opaque(args, 0)?;
    let messages = format.messages(text(args, 1)?).into_iter();
    let messages = messages.map(|message| validation::with_older_wording(&message));
    Ok(optional_list(messages.collect()))
}

/// Returns the cost of validating a string. The cost is that of matching a regular expression, as in upstream.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.CallCost`.
fn validation_cost(args: &[Value]) -> u64 {
    match args.first().and_then(Value::downcast::<Format>) {
        Some(format) => matching_cost(size_at(args, 1), format.pattern_len),
        None => 1,
    }
}

fn named(_: &EvalBudget, args: &[Value]) -> Result {
    let format = formats::named(text(args, 0)?);
    Ok(format.map_or_else(Value::none, |format| Value::some(format.value())))
}
