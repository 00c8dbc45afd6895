//! The semver library: semantic versions.

mod value;

use value::IDENTIFIER;
pub use value::{Semver, SemverError};

use std::cmp::Ordering;

use super::args::{Result, failed, opaque, text};
use super::costs::{NOMINAL, PARSED};
use crate::version::V1_33;
use Sig::{Bool, Int, String};
use cel::decls::{OverloadRow, Sig, Source};
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Hashed, Opaque, Value};

use super::types::SEMVER;

const SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/semverlib.go, semverLibType.declarations")
        .since(V1_33);

/// The functions of version 0 of the library.
pub static VERSION_0: &[OverloadRow] = &[
    OverloadRow::global(
        "semver",
        "string_to_semver",
        &[String],
        SEMVER,
        PARSED,
        SOURCE,
    )
    .evaluated_by(semver),
    OverloadRow::global(
        "isSemver",
        "is_semver_string",
        &[String],
        Bool,
        PARSED,
        SOURCE,
    )
    .evaluated_by(is_semver),
    OverloadRow::member(
        "isGreaterThan",
        "semver_is_greater_than",
        &[SEMVER, SEMVER],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_greater_than),
    OverloadRow::member(
        "isLessThan",
        "semver_is_less_than",
        &[SEMVER, SEMVER],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(is_less_than),
    OverloadRow::member(
        "compareTo",
        "semver_compare_to",
        &[SEMVER, SEMVER],
        Int,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(compare_to),
    OverloadRow::member("major", "semver_major", &[SEMVER], Int, NOMINAL, SOURCE)
        .evaluated_by(major),
    OverloadRow::member("minor", "semver_minor", &[SEMVER], Int, NOMINAL, SOURCE)
        .evaluated_by(minor),
    OverloadRow::member("patch", "semver_patch", &[SEMVER], Int, NOMINAL, SOURCE)
        .evaluated_by(patch),
];

/// The functions that version 1 of the library adds. Their second argument determines whether the input is normalized.
pub static VERSION_1: &[OverloadRow] = &[
    OverloadRow::global(
        "semver",
        "string_bool_to_semver",
        &[String, Bool],
        SEMVER,
        PARSED,
        SOURCE,
    )
    .evaluated_by(semver),
    OverloadRow::global(
        "isSemver",
        "is_semver_string_bool",
        &[String, Bool],
        Bool,
        PARSED,
        SOURCE,
    )
    .evaluated_by(is_semver),
];

impl Opaque for Semver {
    fn type_(&self) -> Type {
        SEMVER.to_type()
    }

    fn equals(&self, other: &Value) -> std::result::Result<bool, EvalError> {
        match other.downcast::<Self>() {
            Some(other) => Ok(self.compare(other).is_eq()),
            None => Err(EvalError::no_such_overload()),
        }
    }

    fn heap_size(&self) -> usize {
        Self::heap_size(self)
    }

    fn text(&self) -> Option<std::string::String> {
        Some(self.to_string())
    }

    fn hashed(&self) -> Hashed {
        Hashed::Never
    }

    fn native_type(&self) -> &'static str {
        "semver.Version"
    }

    fn go_type(&self) -> &'static str {
        "cel.Semver"
    }
}

/// Parses the first argument as a semantic version. If the second argument is true, normalizes the input first.
fn parse(
    budget: &EvalBudget,
    args: &[Value],
) -> std::result::Result<std::result::Result<Semver, SemverError>, EvalError> {
    let text = text(args, 0)?;
    // An upper bound for the memory of the identifiers: an identifier with its dot has at least two characters, and the
    // capacity of the list is at most twice its length.
    budget.reserve(text.len().saturating_mul(IDENTIFIER))?;
    Ok(match args.get(1) {
        Some(Value::Bool(true)) => Semver::parse_normalized(text),
        _ => Semver::parse(text),
    })
}

fn semver(budget: &EvalBudget, args: &[Value]) -> Result {
    parse(budget, args)?.map(Value::opaque).map_err(failed)
}

fn is_semver(budget: &EvalBudget, args: &[Value]) -> Result {
    parse(budget, args).map(|parsed| parsed.is_ok().into())
}

fn compare(args: &[Value]) -> std::result::Result<Ordering, EvalError> {
    let (left, right): (&Semver, &Semver) = (opaque(args, 0)?, opaque(args, 1)?);
    Ok(left.compare(right))
}

fn is_greater_than(_: &EvalBudget, args: &[Value]) -> Result {
    compare(args).map(|order| order.is_gt().into())
}

fn is_less_than(_: &EvalBudget, args: &[Value]) -> Result {
    compare(args).map(|order| order.is_lt().into())
}

fn compare_to(_: &EvalBudget, args: &[Value]) -> Result {
    compare(args).map(|order| (order as i64).into())
}

/// Converts a component of a version to a CEL `int`. Large values wrap around, as in upstream.
fn number(value: u64) -> Value {
    value.cast_signed().into()
}

fn major(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|version: &Semver| number(version.major))
}

fn minor(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|version: &Semver| number(version.minor))
}

fn patch(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|version: &Semver| number(version.patch))
}
