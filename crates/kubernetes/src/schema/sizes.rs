//! Sizes of JSON values, and limits on the conversion of schemas.
//!
//! A size is a number of bytes in JSON, or a number of elements.
//!
//! Differs: size arithmetic saturates here. In upstream, it wraps around.
//!
//! Source: apiserver `pkg/cel/limits.go`, `pkg/apis/cel/config.go`, `pkg/cel/common/schemas.go`.

/// The maximum size of a request (`MaxRequestSizeBytes`), in bytes.
pub const MAX_REQUEST_SIZE_BYTES: i64 = 3 * 1024 * 1024;
/// The maximum JSON length of a duration (`MaxDurationSizeJSON`), in bytes.
pub const MAX_DURATION_SIZE_BYTES: i64 = 32;
/// The maximum JSON length of a timestamp with quotation marks (`MaxDatetimeSizeJSON`), in bytes.
pub const MAX_DATETIME_SIZE_BYTES: i64 = 32;
/// The minimum JSON length of a duration, `"0"` (`MinDurationSizeJSON`), in bytes.
pub const MIN_DURATION_SIZE_BYTES: i64 = 3;
/// The JSON length of a date with quotation marks (`JSONDateSize`), in bytes.
pub const DATE_SIZE_BYTES: i64 = 12;
/// The minimum JSON length of a timestamp (`MinDatetimeSizeJSON`), in bytes.
pub const MIN_DATETIME_SIZE_BYTES: i64 = 21;
/// The JSON length of an empty string (`MinStringSize`), in bytes.
pub const MIN_STRING_SIZE_BYTES: i64 = 2;
/// The JSON length of `true` (`MinBoolSize`), in bytes.
pub const MIN_BOOL_SIZE_BYTES: i64 = 4;
/// The JSON length of `0` (`MinNumberSize`), in bytes.
pub const MIN_NUMBER_SIZE_BYTES: i64 = 1;
/// The JSON length of an empty list, map or object, in bytes.
pub const MIN_COMPOSITE_SIZE_BYTES: i64 = 2;
/// The minimum JSON length of a dynamically typed value, in bytes.
pub const MIN_DYN_SIZE_BYTES: i64 = 1;

/// The maximum number of nested levels in a type. A deeper schema is an error.
///
/// Types are converted, compared and dropped recursively, so the depth needs a limit.
pub const MAX_DEPTH: u16 = 128;
/// The maximum number of schemas in a document. A document with more schemas is an error.
pub const MAX_SCHEMAS: u32 = 500_000;
/// The maximum number of schemas converted for one reference cycle, including repeated conversions.
///
/// As in upstream, a schema in a cycle is converted once per path through the cycle. The number of paths may be
/// exponential.
pub const MAX_PARTS_OF_CYCLE: u32 = 50_000;
/// The maximum number of schemas converted for all cycles of a document.
pub const MAX_PARTS_OF_CYCLES: u32 = 1_000_000;

/// Returns the length of the longest string that fits into a request, in bytes.
///
/// Source: `estimateMaxStringLengthPerRequest`.
#[must_use]
pub const fn max_string_length() -> i64 {
    length_within(MAX_REQUEST_SIZE_BYTES)
}

/// Returns the maximum length of a string that fits into `n_bytes` of JSON with its quotation marks.
#[must_use]
pub const fn length_within(n_bytes: i64) -> i64 {
    n_bytes.saturating_sub(2)
}

/// Returns the maximum number of list items in a request. Each item has at least `min_size` bytes.
///
/// Source: `estimateMaxArrayItemsFromMinSize`.
#[must_use]
pub fn max_items(min_size: i64) -> i64 {
    items_within(MAX_REQUEST_SIZE_BYTES, min_size)
}

/// Returns the maximum number of list items in `n_bytes` of JSON. Each item has at least `min_size` bytes and a comma.
#[must_use]
pub fn items_within(n_bytes: i64, min_size: i64) -> i64 {
    length_within(n_bytes) / min_size.max(0).saturating_add(1)
}

/// Returns the maximum number of map entries in a request. Each value has at least `min_size` bytes.
///
/// Source: `estimateMaxAdditionalPropertiesFromMinSize`.
#[must_use]
pub fn max_entries(min_size: i64) -> i64 {
    entries_within(MAX_REQUEST_SIZE_BYTES, min_size)
}

/// Returns the maximum number of map entries in `n_bytes` of JSON. Each value has at least `min_size` bytes.
#[must_use]
pub fn entries_within(n_bytes: i64, min_size: i64) -> i64 {
    length_within(n_bytes) / min_size.max(0).saturating_add(6)
}

/// Returns the maximum number of bytes in a string of `max_length` code points.
///
/// Source: `estimateMaxElementsFromMaxLength`.
#[must_use]
pub fn max_bytes(max_length: i64) -> i64 {
    max_length.max(0).saturating_mul(4)
}
