//! Sizes of serialized values, and the limits of schema conversion.
//!
//! Sizes are in bytes of JSON, or in elements.
//!
//! Differs: arithmetic on sizes saturates, upstream's wraps around.
//!
//! Source: apiserver `pkg/cel/limits.go`, `pkg/apis/cel/config.go`, `pkg/cel/common/schemas.go`.

/// The largest request that the API server accepts (`MaxRequestSizeBytes`), in bytes.
pub const MAX_REQUEST_SIZE_BYTES: i64 = 3 * 1024 * 1024;
/// The longest duration in JSON (`MaxDurationSizeJSON`), in bytes.
pub const MAX_DURATION_SIZE_BYTES: i64 = 32;
/// The longest timestamp in JSON with its quotation marks (`MaxDatetimeSizeJSON`), in bytes.
pub const MAX_DATETIME_SIZE_BYTES: i64 = 32;
/// The shortest duration in JSON, `"0"` (`MinDurationSizeJSON`), in bytes.
pub const MIN_DURATION_SIZE_BYTES: i64 = 3;
/// A date in JSON (`JSONDateSize`), in bytes.
pub const DATE_SIZE_BYTES: i64 = 12;
/// The shortest timestamp in JSON (`MinDatetimeSizeJSON`), in bytes.
pub const MIN_DATETIME_SIZE_BYTES: i64 = 21;
/// The empty string in JSON (`MinStringSize`), in bytes.
pub const MIN_STRING_SIZE_BYTES: i64 = 2;
/// `true` in JSON (`MinBoolSize`), in bytes.
pub const MIN_BOOL_SIZE_BYTES: i64 = 4;
/// `0` in JSON (`MinNumberSize`), in bytes.
pub const MIN_NUMBER_SIZE_BYTES: i64 = 1;
/// An empty list, map or object in JSON, in bytes.
pub const MIN_COMPOSITE_SIZE_BYTES: i64 = 2;
/// The minimum size of a dynamically typed value, in bytes.
pub const MIN_DYN_SIZE_BYTES: i64 = 1;

/// The maximum depth of types, in levels. Deeper schemas are errors.
///
/// It bounds the recursion of conversions, comparisons and drops of types.
pub const MAX_DEPTH: u16 = 128;
/// The maximum number of schemas in one document. A document with more is an error.
pub const MAX_SCHEMAS: u32 = 500_000;
/// The maximum number of schema parts converted for one cycle of references.
///
/// A schema within a cycle is converted once for each path into the cycle, as in upstream, and the number of paths may
/// be exponential.
pub const MAX_PARTS_OF_CYCLE: u32 = 50_000;
/// The maximum number of schema parts converted for all cycles of a document.
pub const MAX_PARTS_OF_CYCLES: u32 = 1_000_000;

/// Returns the maximum length of a string in a request.
///
/// Source: `estimateMaxStringLengthPerRequest`.
#[must_use]
pub const fn max_string_length() -> i64 {
    length_within(MAX_REQUEST_SIZE_BYTES)
}

/// Returns the maximum length of a string in `n_bytes`, without its quotes.
#[must_use]
pub const fn length_within(n_bytes: i64) -> i64 {
    n_bytes.saturating_sub(2)
}

/// Returns the maximum number of list items in a request, if an item has at least `min_size` bytes.
///
/// Source: `estimateMaxArrayItemsFromMinSize`.
#[must_use]
pub fn max_items(min_size: i64) -> i64 {
    items_within(MAX_REQUEST_SIZE_BYTES, min_size)
}

/// Returns the maximum number of list items in `n_bytes`, each with a comma.
#[must_use]
pub fn items_within(n_bytes: i64, min_size: i64) -> i64 {
    length_within(n_bytes) / min_size.max(0).saturating_add(1)
}

/// Returns the maximum number of map entries in a request, if a value has at least `min_size` bytes.
///
/// Source: `estimateMaxAdditionalPropertiesFromMinSize`.
#[must_use]
pub fn max_entries(min_size: i64) -> i64 {
    entries_within(MAX_REQUEST_SIZE_BYTES, min_size)
}

/// Returns the maximum number of map entries in `n_bytes`, each with a key.
#[must_use]
pub fn entries_within(n_bytes: i64, min_size: i64) -> i64 {
    length_within(n_bytes) / min_size.max(0).saturating_add(6)
}

/// Returns the maximum size of a string with `max_length` code points, in bytes.
///
/// Source: `estimateMaxElementsFromMaxLength`.
#[must_use]
pub fn max_bytes(max_length: i64) -> i64 {
    max_length.max(0).saturating_mul(4)
}
