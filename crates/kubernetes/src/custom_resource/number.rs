//! Validates numbers like Go, including Go's number conversions and rounding errors.
//!
//! Source: kube-openapi `pkg/validation/validate/validator.go` (`numberValidator`), `values.go`; go-openapi/swag
//! `convert.go`.

use serde_json::{Number, Value as Json};

use super::outcome::Fault;
use super::schema::{Bound, Schema};
use super::value::{Place, invalid};
use crate::validation_rules::FieldErrorKind;
use cel::value::format_double;

/// Returns the JSON type and the format that upstream derives from a value.
pub(super) fn type_of(data: &Json) -> (&'static str, &'static str) {
    match data {
        Json::Null => ("null", ""),
        Json::Bool(_) => ("boolean", ""),
        Json::String(_) => ("string", ""),
        Json::Number(number) if number.is_i64() => ("integer", "int64"),
        Json::Number(_) => ("number", "float64"),
        Json::Array(_) => ("array", ""),
        Json::Object(_) => ("object", ""),
    }
}

/// A JSON number as decoded by Go: an `int64` if possible, otherwise a `float64`.
#[derive(Clone, Copy)]
enum Go {
    Int(i64),
    Double(f64),
}

impl Go {
    fn new(number: &Number) -> Self {
        match number.as_i64() {
            Some(value) => Self::Int(value),
            None => Self::Double(number.as_f64().unwrap_or_default()),
        }
    }

    /// Formats the number for error messages. If `is_int` is false, formats integers as doubles.
    fn shown(self, is_int: bool) -> String {
        match self {
            Self::Int(value) if is_int => value.to_string(),
            value => format_double(value.double()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as in upstream")]
    const fn double(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Double(value) => value,
        }
    }
}

/// Converts a double to an integer like Go on amd64, the usual platform of API servers. Values out of range become
/// `i64::MIN`.
#[expect(clippy::cast_possible_truncation, reason = "as in upstream")]
fn to_int(value: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// Source: go-openapi/swag `convert.go`, `IsFloat64AJSONInteger`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "as in upstream"
)]
fn is_json_integer(value: f64) -> bool {
    const MAX: f64 = 9_007_199_254_740_991.0;
    if !value.is_finite() || value.abs() > MAX {
        return false;
    }
    let whole = to_int(value) as u64 as f64;
    if value == whole || value == to_int(value) as f64 {
        return true;
    }
    if whole == 0.0 {
        return false;
    }
    let difference = (value - whole).abs();
    difference / (value.abs() + whole.abs()).min(f64::MAX) < 1e-9
}

/// Returns true if upstream treats the number as an integer. A tiny fraction, such as one from a rounding error, is
/// ignored.
pub(super) fn is_whole(data: &Json) -> bool {
    data.as_f64().is_some_and(is_json_integer)
}

/// Returns true if `data` equals the enum value `value` after Go has converted `data` to the type of `value`.
///
/// Source: kube-openapi `pkg/validation/validate/validator.go`, `basicCommonValidator.Validate`.
pub(super) fn is_converted(data: &Json, value: &Json) -> bool {
    match (data, value) {
        (Json::Null, _) => false,
        (Json::Number(data), Json::Number(value)) => match (Go::new(data), Go::new(value)) {
            (Go::Int(data), Go::Int(value)) => data == value,
            (Go::Double(data), Go::Int(value)) => to_int(data) == value,
            #[expect(clippy::float_cmp, reason = "as in upstream")]
            (data, Go::Double(value)) => data.double() == value,
        },
        // Go converts an integer to a string with one character, whose code point is the integer.
        (Json::Number(data), Json::String(value)) => data.as_i64().is_some_and(|data| {
            let c = u32::try_from(data).ok().and_then(char::from_u32);
            let mut chars = value.chars();
            chars.next() == Some(c.unwrap_or(char::REPLACEMENT_CHARACTER)) && chars.next().is_none()
        }),
        (Json::Array(_) | Json::Object(_), Json::Array(_) | Json::Object(_)) => {
            super::value::identity(data) == super::value::identity(value)
        }
        _ => data == value,
    }
}

/// The type and format of a schema, which limit the range of numbers. Both are empty if the schema has several types or
/// no type.
struct Range<'s> {
    type_: &'s str,
    format: &'s str,
}

impl<'s> Range<'s> {
    fn new(schema: &'s Schema) -> Self {
        let type_ = match schema.only_type() {
            type_ @ ("integer" | "number") => type_,
            _ => "",
        };
        Self {
            type_,
            format: schema
                .format
                .as_deref()
                .filter(|_| !type_.is_empty())
                .unwrap_or_default(),
        }
    }

    /// Returns an error if the type and format of the schema cannot represent `value`.
    ///
    /// Source: kube-openapi `pkg/validation/validate/values.go`, `IsValueValidAgainstRange`.
    fn fault(&self, value: Go, what: &str, place: &Place<'_>) -> Option<Fault> {
        let text = match value {
            Go::Int(value) => value.to_string(),
            Go::Double(value) => value.to_string(),
        };
        let is_held = match (self.type_, self.format) {
            ("integer", "int32") => text.parse::<i32>().is_ok(),
            ("integer", _) => text.parse::<i64>().is_ok(),
            ("number", "float") => text.parse::<f32>().is_ok_and(f32::is_finite),
            _ => true,
        };
        if is_held {
            return None;
        }
        let format = match self.format {
            "" => "(default format)".to_owned(),
            format => format!("with format {format}"),
        };
        let (type_, path) = (self.type_, place.text());
        Some(Fault::without_path(format!(
            "{what} value must be of type {type_} {format} in {path}"
        )))
    }
}

/// Validates a number against its type, `multipleOf`, `minimum` and `maximum`, in upstream's order.
pub(super) fn faults(schema: &Schema, number: &Number, place: &Place<'_>) -> Vec<Fault> {
    if schema.types.is_empty()
        && schema.multiple_of.is_none()
        && schema.maximum.is_none()
        && schema.minimum.is_none()
    {
        return Vec::new();
    }
    let range = Range::new(schema);
    let value = Go::new(number);
    let mut faults: Vec<Fault> = range.fault(value, "Checked", place).into_iter().collect();
    // If the schema's type cannot represent the factor or bound, upstream computes with doubles.
    let fault = |detail: String, is_fit: bool| invalid(&place.text(), value.shown(is_fit), &detail);
    if let Some(factor) = schema.multiple_of {
        let unfit = range.fault(Go::Double(factor), "MultipleOf", place);
        let is_fit = unfit.is_none();
        faults.extend(unfit);
        match (value, is_fit) {
            (Go::Int(value), true) => faults.extend(int_multiple(value, to_int(factor), place)),
            _ => faults.extend(multiple(value.double(), factor, place)),
        }
    }
    if let Some(minimum) = schema.minimum {
        let unfit = range.fault(Go::Double(minimum.at), "Minimum boundary", place);
        let is_fit = unfit.is_none();
        faults.extend(unfit);
        faults.extend(beyond(value, minimum, is_fit, false).map(|detail| fault(detail, is_fit)));
    }
    if let Some(maximum) = schema.maximum {
        let unfit = range.fault(Go::Double(maximum.at), "Maximum boundary", place);
        let is_fit = unfit.is_none();
        faults.extend(unfit);
        faults.extend(beyond(value, maximum, is_fit, true).map(|detail| fault(detail, is_fit)));
    }
    faults
}

/// Returns an error message if `value` is less than the minimum `bound`, or greater than the maximum `bound`. If
/// `is_fit` is true, an integer is compared as an integer, otherwise as a double.
fn beyond(value: Go, bound: Bound, is_fit: bool, is_maximum: bool) -> Option<String> {
    let Bound { at, is_exclusive } = bound;
    let (ordering, text) = match value {
        Go::Int(value) if is_fit => {
            let at = to_int(at);
            (Some(value.cmp(&at)), at.to_string())
        }
        value => (value.double().partial_cmp(&at), format_double(at)),
    };
    let is_beyond = match ordering? {
        std::cmp::Ordering::Equal => is_exclusive,
        std::cmp::Ordering::Greater => is_maximum,
        std::cmp::Ordering::Less => !is_maximum,
    };
    let than = match (is_maximum, is_exclusive) {
        (true, true) => "less than",
        (true, false) => "less than or equal to",
        (false, true) => "greater than",
        (false, false) => "greater than or equal to",
    };
    is_beyond.then(|| format!("should be {than} {text}"))
}

fn not_positive(factor: &str, place: &Place<'_>) -> Fault {
    let path = place.text();
    let text = format!("factor MultipleOf declared for {path} must be positive: {factor}");
    Fault::new(
        &path,
        FieldErrorKind::Invalid,
        Some(factor.to_owned()),
        text,
    )
}

fn int_multiple(value: i64, factor: i64, place: &Place<'_>) -> Option<Fault> {
    if factor <= 0 {
        return Some(not_positive(&factor.to_string(), place));
    }
    let is_multiple = value.checked_rem(factor) == Some(0);
    (!is_multiple).then(|| not_multiple(&factor.to_string(), value.to_string(), place))
}

fn multiple(value: f64, factor: f64, place: &Place<'_>) -> Option<Fault> {
    if factor <= 0.0 {
        return Some(not_positive(&format_double(factor), place));
    }
    let quotient = if factor < 1.0 {
        1.0 / factor * value
    } else {
        value / factor
    };
    let is_multiple = is_json_integer(quotient);
    (!is_multiple).then(|| not_multiple(&format_double(factor), format_double(value), place))
}

fn not_multiple(factor: &str, value: String, place: &Place<'_>) -> Fault {
    invalid(
        &place.text(),
        value,
        &format!("should be a multiple of {factor}"),
    )
}
