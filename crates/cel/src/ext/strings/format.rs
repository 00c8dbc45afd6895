//! Implements `format`: a format string with clauses such as `%d`, and their arguments.
//!
//! [`interpolate`] is generic over the arguments, because a validator also uses it to check literal format strings.
//!
//! Source: cel-go `ext/formatting.go`.

use crate::go_text::quote;
use crate::number_format;
use crate::types::Type;
use crate::value::{EvalBudget, EvalError, List, Map, Value};

/// Conversion of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// `%s`.
    Text,
    /// `%d`.
    Decimal,
    /// `%f`, with the number of fractional digits.
    Fixed(u64),
    /// `%e`, with the precision of the clause. Upstream uses the precision as the width.
    Scientific(u64),
    /// `%b`.
    Binary,
    /// `%x`, or `%X` for digits in upper case.
    Hex {
        /// True for upper-case digits.
        upper: bool,
    },
    /// `%o`.
    Octal,
}

impl Clause {
    /// Returns the error message for an argument whose type is named `given`.
    #[must_use]
    pub fn error_message(self, given: &str) -> String {
        let rule = match self {
            Self::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
                 types, durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("{rule}, was given {given}")
    }
}

/// Memory in bytes per byte of output. It includes a reallocated copy and an escaped copy of the output.
const GROWTH: usize = 4;

/// Memory per map entry being written, in bytes: the copied entry and its formatted key.
const SORTED_ENTRY: usize = 5 * size_of::<Value>();

/// Precision of a clause without an explicit one.
const DEFAULT_PRECISION: u64 = 6;

/// Error of an invalid format string or argument.
pub trait FormatError {
    /// Creates an error that does not concern an argument.
    fn from_message(message: String) -> Self;

    /// Returns the error with `prefix` and a colon before its message.
    #[must_use]
    fn with_prefix(self, prefix: &str) -> Self;
}

impl FormatError for EvalError {
    fn from_message(message: String) -> Self {
        Self::new(message)
    }

    fn with_prefix(self, prefix: &str) -> Self {
        if self.ends_evaluation() {
            return self;
        }
        Self::new(format!("{prefix}: {self}"))
    }
}

/// The arguments of a format string. An implementation formats the arguments or only checks them.
pub trait Arguments {
    /// The error type.
    type Error: FormatError;

    /// Returns the number of arguments.
    fn len(&self) -> usize;

    /// Returns true if there are no arguments.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Called before the argument at `index` is used. The argument may be missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument is missing and the implementation rejects missing arguments.
    fn request(&mut self, index: usize) -> Result<(), Self::Error>;

    /// Formats the argument at `index`, which must exist, according to `clause`.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument cannot be formatted.
    fn write(&mut self, index: usize, clause: Clause) -> Result<String, Self::Error>;
}

/// Returns `format` with each clause replaced by its formatted argument.
///
/// # Errors
///
/// Returns an error if a clause is invalid, or if an argument is missing or cannot be formatted.
///
/// Source: cel-go `ext/formatting.go`, `parseFormatString`.
pub fn interpolate<A: Arguments>(format: &str, arguments: &mut A) -> Result<String, A::Error> {
    let mut text = String::with_capacity(format.len());
    let mut rest = format;
    let mut index = 0;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        arguments.request(index)?;
        if after.is_empty() {
            return Err(A::Error::from_message(
                "unexpected end of string".to_owned(),
            ));
        }
        if index >= arguments.len() {
            return Err(A::Error::from_message(format!(
                "index {index} out of range"
            )));
        }
        let (clause, after) = parse_clause(after).map_err(|message| {
            A::Error::from_message(message).with_prefix("could not parse formatting clause")
        })?;
        let written = arguments
            .write(index, clause)
            .map_err(|error| error.with_prefix("error during formatting"))?;
        text.push_str(&written);
        rest = after;
        index += 1;
    }
    text.push_str(rest);
    Ok(text)
}

/// Parses the clause at the start of the string, which must not be empty. Returns the clause and the rest of the
/// string.
///
/// Source: cel-go `ext/formatting.go`, `parseFormattingClause`, `parsePrecision`.
fn parse_clause(text: &str) -> Result<(Clause, &str), String> {
    let (precision, rest) = match text.strip_prefix('.') {
        Some(after) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = after.strip_suffix(rest).unwrap_or_default();
            (parse_precision(digits, rest)?, rest)
        }
        None => (DEFAULT_PRECISION, text),
    };
    let clause = match rest.as_bytes().first() {
        Some(b's') => Clause::Text,
        Some(b'd') => Clause::Decimal,
        Some(b'f') => Clause::Fixed(precision),
        Some(b'e') => Clause::Scientific(precision),
        Some(b'b') => Clause::Binary,
        Some(b'x') => Clause::Hex { upper: false },
        Some(b'X') => Clause::Hex { upper: true },
        Some(b'o') => Clause::Octal,
        // Upstream shows the byte as the character with this code point, even if the byte is part of a longer
        // character.
        Some(byte) => {
            let verb = char::from(*byte);
            return Err(format!("unrecognized formatting clause \"{verb}\""));
        }
        None => return Err("unexpected end of string".to_owned()),
    };
    Ok((clause, rest.get(1..).unwrap_or_default()))
}

fn parse_precision(digits: &str, after: &str) -> Result<u64, String> {
    let error = |reason: &str| Err(format!("error while parsing precision: {reason}"));
    if after.is_empty() {
        return error("could not find end of precision specifier");
    }
    let reason = match digits.parse::<i64>() {
        Ok(precision) => return Ok(precision.unsigned_abs()),
        Err(_) if digits.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    let digits = quote(digits);
    error(&format!(
        "error while converting precision to integer: strconv.Atoi: parsing {digits}: {reason}"
    ))
}

/// Formats the elements of `list` according to `format`.
///
/// # Errors
///
/// Returns an error if a clause is invalid, or if an element is missing or cannot be formatted. Also returns an error
/// if the result exceeds `budget`.
pub(super) fn format(format: &str, list: &List, budget: &EvalBudget) -> Result<String, EvalError> {
    let mut values = Values {
        list,
        n_written: format.len(),
        budget,
    };
    interpolate(format, &mut values)
}

/// The elements of a list as arguments.
struct Values<'a> {
    list: &'a List,
    /// Length of the format string and of the formatted arguments, in bytes.
    n_written: usize,
    budget: &'a EvalBudget,
}

impl Arguments for Values<'_> {
    type Error = EvalError;

    fn len(&self) -> usize {
        self.list.len()
    }

    fn request(&mut self, index: usize) -> Result<(), EvalError> {
        if index < self.list.len() {
            return Ok(());
        }
        Err(EvalError::new(format!("index {index} out of range")))
    }

    fn write(&mut self, index: usize, clause: Clause) -> Result<String, EvalError> {
        let value = self.list.get(index).unwrap_or(Value::Null);
        // Reserves memory for the output so far, its reallocation, and copies of the argument.
        let len = match &value {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let room = self.n_written.saturating_mul(GROWTH);
        self.budget
            .reserve(len.saturating_mul(GROWTH).saturating_add(room))?;
        let written = write(&value, clause, room, self.budget)?;
        self.n_written = self.n_written.saturating_add(written.len());
        self.budget.reserve(self.n_written.saturating_mul(GROWTH))?;
        Ok(written)
    }
}

/// Source: cel-go `ext/formatting.go`, `stringFormatter`.
fn write(
    value: &Value,
    clause: Clause,
    in_use: usize,
    budget: &EvalBudget,
) -> Result<String, EvalError> {
    match clause {
        Clause::Text => return any_text(value, in_use, budget),
        Clause::Decimal => match value {
            Value::Int(value) => return Ok(value.to_string()),
            Value::Uint(value) => return Ok(value.to_string()),
            _ => {}
        },
        Clause::Fixed(precision) => {
            if let Some(value) = double_of(value) {
                return Ok(number_format::fixed(value, precision));
            }
        }
        Clause::Scientific(width) => {
            if let Some(value) = double_of(value) {
                return Ok(number_format::scientific(value, width));
            }
        }
        Clause::Binary => match value {
            Value::Int(value) => return Ok(signed(*value, format!("{:b}", value.unsigned_abs()))),
            Value::Uint(value) => return Ok(format!("{value:b}")),
            Value::Bool(value) => return Ok(u8::from(*value).to_string()),
            _ => {}
        },
        Clause::Hex { upper } => {
            if let Some(hex) = hex_of(value) {
                return Ok(if upper { hex.to_ascii_uppercase() } else { hex });
            }
        }
        Clause::Octal => match value {
            Value::Int(value) => return Ok(signed(*value, format!("{:o}", value.unsigned_abs()))),
            Value::Uint(value) => return Ok(format!("{value:o}")),
            _ => {}
        },
    }
    Err(EvalError::new(
        clause.error_message(&value.type_().type_name()),
    ))
}

fn signed(value: i64, magnitude: String) -> String {
    if value < 0 {
        format!("-{magnitude}")
    } else {
        magnitude
    }
}

fn hex_of(value: &Value) -> Option<String> {
    let of_bytes = |bytes: &[u8]| {
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits
            .filter_map(|digit| char::from_digit(digit.into(), 16))
            .collect()
    };
    Some(match value {
        Value::Int(value) => signed(*value, format!("{:x}", value.unsigned_abs())),
        Value::Uint(value) => format!("{value:x}"),
        Value::String(text) => of_bytes(text.as_bytes()),
        Value::Bytes(bytes) => of_bytes(bytes),
        _ => return None,
    })
}

/// Returns the value of a double, or of one of the strings `NaN`, `Infinity` and `-Infinity`. `None` for other
/// values.
fn double_of(value: &Value) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Formats any value. `in_use` is the memory in bytes that the surrounding output requires.
///
/// Source: cel-go `ext/formatting.go`, `FormatString`.
fn any_text(value: &Value, in_use: usize, budget: &EvalBudget) -> Result<String, EvalError> {
    match value {
        Value::List(_) => nested_text(value, in_use, budget),
        Value::Map(map) if map.is_plain() => nested_text(value, in_use, budget),
        other => text_of(other),
    }
}

/// Formats a value that is neither a list nor a map.
fn text_of(value: &Value) -> Result<String, EvalError> {
    match value {
        Value::Null => Ok("null".to_owned()),
        Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::Timestamp(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Type(_) => match value.convert_to(&Type::String) {
            Ok(Value::String(text)) => Ok(text.to_string()),
            Ok(_) => Err(EvalError::no_such_overload()),
            Err(error) => {
                let error = quote(error.message());
                Err(EvalError::new(format!(
                    "could not convert argument {error} to string"
                )))
            }
        },
        Value::List(_)
        | Value::Map(_)
        | Value::Optional(_)
        | Value::Opaque(_)
        | Value::Error(_) => Err(EvalError::new(
            Clause::Text.error_message(&value.type_().type_name()),
        )),
    }
}

/// Formats an element as a CEL literal. The element must not contain other values.
///
/// Source: cel-go `ext/formatting.go`, `clauseForType`, `quoteForCEL`.
fn part_text(value: &Value) -> Result<String, EvalError> {
    Ok(match value {
        Value::Timestamp(_) => format!("timestamp({})", quote(&text_of(value)?)),
        Value::Duration(_) => format!("duration({})", quote(&text_of(value)?)),
        Value::Double(number) if number.is_nan() => "\"NaN\"".to_owned(),
        Value::Double(number) if number.is_infinite() => {
            let sign = if *number < 0.0 { '-' } else { '+' };
            format!("\"{sign}Inf\"")
        }
        Value::Double(number) => format!("{number:.6}"),
        Value::String(text) => quote(text),
        Value::Bytes(_) => format!("b{}", quote(&text_of(value)?)),
        Value::Map(_) | Value::Optional(_) | Value::Opaque(_) | Value::Error(_) => {
            return Err(no_function("", value));
        }
        _ => text_of(value)?,
    })
}

fn no_function(about: &str, value: &Value) -> EvalError {
    let name = value.type_().type_name();
    EvalError::new(format!("no formatting function for {about}{name}"))
}

/// A list or map being formatted, and the number of elements formatted so far.
struct Open {
    parts: Parts,
    n_written: usize,
}

enum Parts {
    Elements(List),
    /// Entries in the order of their formatted keys.
    Entries(std::vec::IntoIter<(String, Value)>),
}

/// Formats a list or map with its contents, without recursion because values may be deeply nested.
///
/// Source: cel-go `ext/formatting.go`, `formatList`, `formatMap`.
fn nested_text(value: &Value, in_use: usize, budget: &EvalBudget) -> Result<String, EvalError> {
    let mut text = String::new();
    let mut open = Vec::new();
    begin(value, &mut text, &mut open, budget)?;
    while let Some(innermost) = open.last_mut() {
        budget.reserve(text.len().saturating_mul(GROWTH).saturating_add(in_use))?;
        let (end, next) = match &mut innermost.parts {
            Parts::Elements(list) => (
                ']',
                list.get(innermost.n_written).map(|value| (None, value)),
            ),
            Parts::Entries(entries) => ('}', entries.next().map(|(key, value)| (Some(key), value))),
        };
        let Some((key, value)) = next else {
            text.push(end);
            open.pop();
            continue;
        };
        if innermost.n_written > 0 {
            text.push_str(", ");
        }
        innermost.n_written += 1;
        if let Some(key) = key {
            text.push_str(&key);
            text.push(':');
        }
        begin(&value, &mut text, &mut open, budget)?;
    }
    Ok(text)
}

/// Formats an element that contains no other values. For a list or map, writes the opening bracket
/// and adds the value to `open`.
fn begin(
    value: &Value,
    text: &mut String,
    open: &mut Vec<Open>,
    budget: &EvalBudget,
) -> Result<(), EvalError> {
    budget.step()?;
    let parts = match value {
        Value::List(list) => {
            text.push('[');
            Parts::Elements(list.clone())
        }
        Value::Map(map) if map.is_plain() => {
            text.push('{');
            Parts::Entries(sorted_entries(map, budget)?.into_iter())
        }
        _ => {
            let len = match value {
                Value::String(text) => text.len(),
                Value::Bytes(bytes) => bytes.len(),
                _ => 0,
            };
            budget.reserve(len.saturating_add(text.len()).saturating_mul(GROWTH))?;
            text.push_str(&part_text(value)?);
            return Ok(());
        }
    };
    open.push(Open {
        parts,
        n_written: 0,
    });
    Ok(())
}

fn sorted_entries(map: &Map, budget: &EvalBudget) -> Result<Vec<(String, Value)>, EvalError> {
    budget.allocate(map.len().saturating_mul(SORTED_ENTRY))?;
    let mut entries = Vec::with_capacity(map.len());
    for (key, value) in map.entries()? {
        let name = match &key {
            Value::String(text) => {
                budget.allocate(text.len().saturating_mul(GROWTH))?;
                quote(text)
            }
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) => text_of(&key)?,
            _ => return Err(no_function("map key of type ", &key)),
        };
        // An object with a schema may list a key that a lookup does not find. Formatting such an object fails.
        if map.source().is_some() && map.find(&key)?.is_none() {
            return Err(EvalError::new(format!("could not find key: {name}")));
        }
        entries.push((name, value));
    }
    entries.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(clauses: &str, args: Vec<Value>, expected: &str) {
        let actual = format(clauses, &List::new(args), &EvalBudget::default());
        let actual = actual.unwrap_or_else(|error| error.to_string());
        assert_eq!(actual, expected, "{clauses}");
    }

    #[test]
    fn formatted_numbers_agree_with_upstream() {
        let hex = vec![Value::Int(-255), Value::Int(255), Value::Uint(26)];
        check("%x %X %x", hex, "-ff FF 1a");
        check(
            "%x|%x",
            vec!["h\u{e9}".into(), Value::bytes(*b"\xff\x01")],
            "68c3a9|ff01",
        );
        check(
            "%o %b %b",
            vec![Value::Int(-8), Value::Int(-5), true.into()],
            "-10 -101 1",
        );
        check("%d%%", vec![Value::Uint(u64::MAX)], "18446744073709551615%");
        check(
            "%.2f %.0f",
            vec![1234.567.into(), "NaN".into()],
            "1,234.57 NaN",
        );
        check(
            "%b",
            vec![Value::Int(i64::MIN)],
            &format!("-1{}", "0".repeat(63)),
        );
    }

    #[test]
    fn string_clause_of_format_agrees_with_upstream() {
        let list = Value::list(vec![
            Value::Int(1),
            "a\n".into(),
            1.5.into(),
            Value::bytes(*b"x"),
            Value::Null,
            Value::Duration(5_400_000_000_000),
            f64::INFINITY.into(),
        ]);
        let written = r#"[1, "a\n", 1.500000, b"x", null, duration("5400s"), "+Inf"]"#;
        check("%s", vec![list], written);
        let entries = [("b", Value::Int(2)), ("a", Value::list(vec![]))];
        let map = Value::map(entries.map(|(key, value)| (key.into(), value))).unwrap();
        check("%s %s", vec![map, 1e9.into()], r#"{"a":[], "b":2} 1e+09"#);
    }

    #[test]
    fn invalid_clause_or_argument_of_format_fails() {
        let one = || vec![Value::Int(1)];
        check("%s %s", one(), "index 1 out of range");
        check("%", one(), "unexpected end of string");
        check("%", vec![], "index 0 out of range");
        let clause = "could not parse formatting clause: ";
        check(
            "%q",
            one(),
            &format!("{clause}unrecognized formatting clause \"q\""),
        );
        check(
            "%\u{e9}",
            one(),
            &format!("{clause}unrecognized formatting clause \"\u{c3}\""),
        );
        let precision = format!("{clause}error while parsing precision: ");
        check(
            "%.5",
            one(),
            &format!("{precision}could not find end of precision specifier"),
        );
        let atoi = format!(
            "{precision}error while converting precision to integer: strconv.Atoi: parsing "
        );
        check("%.f", one(), &format!("{atoi}\"\": invalid syntax"));
        let large = "9".repeat(20);
        check(
            &format!("%.{large}f"),
            one(),
            &format!("{atoi}\"{large}\": value out of range"),
        );
        check(
            "%f",
            one(),
            "error during formatting: fixed-point clause can only be used on doubles, was given int",
        );
        check(
            "%s",
            vec![Value::bytes(*b"\xff")],
            "error during formatting: could not convert argument \"invalid UTF-8 in bytes, cannot \
             convert to string\" to string",
        );
        check(
            "%s",
            vec![Value::list(vec![Value::none()])],
            "error during formatting: no formatting function for optional_type",
        );
    }

    #[test]
    fn long_value_exceeds_memory_but_deep_value_is_formatted() {
        let long = Value::from("a".repeat(1 << 20));
        check(
            &"%s".repeat(65),
            vec![long; 65],
            "the evaluation needs more than 32 MiB of memory",
        );
        let deep = (0..100_000).fold(Value::Null, |inner, _| Value::list(vec![inner]));
        let written = format("%s", &List::new(vec![deep]), &EvalBudget::default()).unwrap();
        assert_eq!(written.len(), 200_004);
    }
}
