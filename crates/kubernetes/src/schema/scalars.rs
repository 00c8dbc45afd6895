//! Converts schemas of strings, and of values that are an integer or a string.
//!
//! Source: apiserver `pkg/cel/common/schemas.go` (`SchemaDeclType`).

use serde_json::Value;

use super::decl_type::{DeclKind, DeclType};
use super::raw::{Format, Schema};
use super::sizes;

/// Returns true if the schema allows both integers and strings, regardless of its `type`.
///
/// Source: apiserver `pkg/cel/openapi/extensions.go`, `isXIntOrString`.
pub(super) fn is_int_or_string(schema: &Schema) -> bool {
    schema.int_or_string || schema.format == Format::IntOrString
}

/// Returns the type of a value that is an integer or a string. The maximum size of this type is that of the string.
pub(super) fn int_or_string(schema: &Schema) -> DeclType {
    let mut type_ = DeclType::scalar(DeclKind::IntOrString);
    type_.max_elements = max_length(schema).map_or(sizes::max_string_length(), sizes::max_bytes);
    type_
}

fn max_length(schema: &Schema) -> Option<i64> {
    schema.details()?.max_length
}

pub(super) fn string(schema: &Schema) -> DeclType {
    let max_length = max_length(schema);
    let (kind, min_size, max_elements) = match schema.format {
        Format::Byte => (
            DeclKind::Bytes,
            sizes::MIN_STRING_SIZE_BYTES,
            max_length.map_or(sizes::max_string_length(), |max| max.max(0)),
        ),
        Format::Duration => (
            DeclKind::Duration,
            sizes::MIN_DURATION_SIZE_BYTES,
            sizes::MAX_DURATION_SIZE_BYTES,
        ),
        Format::Date => (
            DeclKind::Timestamp,
            sizes::DATE_SIZE_BYTES,
            sizes::DATE_SIZE_BYTES,
        ),
        Format::DateTime => (
            DeclKind::Timestamp,
            sizes::MIN_DATETIME_SIZE_BYTES,
            sizes::MAX_DATETIME_SIZE_BYTES,
        ),
        Format::None | Format::IntOrString => (
            DeclKind::String,
            sizes::MIN_STRING_SIZE_BYTES,
            max_length.map_or_else(|| longest_of_enum(schema), sizes::max_bytes),
        ),
    };
    let mut type_ = DeclType::scalar(kind);
    type_.min_serialized_size = min_size;
    type_.max_elements = max_elements;
    type_
}

/// Returns the type of a string with at most `max_length` characters, or fewer if the schema in `declared` allows
/// fewer.
///
/// Source: apiextensions-apiserver 0.37 `pkg/apiserver/schema/cel/model/schemas.go`, `cappedLengthStringType`.
pub(super) fn bounded_string(declared: Option<&Schema>, max_length: i64) -> DeclType {
    let declared = declared.and_then(self::max_length);
    let mut type_ = DeclType::scalar(DeclKind::String);
    type_.min_serialized_size = sizes::MIN_STRING_SIZE_BYTES;
    type_.max_elements = sizes::max_bytes(declared.map_or(max_length, |own| own.min(max_length)));
    type_
}

/// Returns the length of the longest string in `enum`. Without `enum`, returns the length of the longest string that
/// fits into a request.
///
/// Source: apiserver `pkg/cel/common/schemas.go`, `estimateMaxStringEnumLength`.
fn longest_of_enum(schema: &Schema) -> i64 {
    let values = schema
        .details()
        .map_or(&[][..], |details| &details.enum_values);
    if values.is_empty() {
        return sizes::max_string_length();
    }
    let longest = values
        .iter()
        .filter_map(Value::as_str)
        .map(str::len)
        .max()
        .unwrap_or(0);
    i64::try_from(longest).unwrap_or(i64::MAX)
}
