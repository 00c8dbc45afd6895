//! Implementations of string functions. Indices count code points.
//!
//! Source: cel-go `ext/strings.go`.

use crate::value::{EvalBudget, EvalError, List, count_code_points};

pub(super) fn out_of_range(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

/// Returns the byte index of the code point at `index`. If `index` is the number of code points, returns the length of
/// the string. `None` if `index` is out of range.
fn byte_index(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    text.char_indices()
        .map(|(byte_idx, _)| byte_idx)
        .chain([text.len()])
        .nth(index)
}

/// Returns the number of code points before the byte `byte_idx`.
fn code_point_index(text: &str, byte_idx: usize) -> i64 {
    let before = text.get(..byte_idx).unwrap_or(text);
    i64::try_from(count_code_points(before)).unwrap_or(i64::MAX)
}

/// Returns the code point at `index`, or an empty string at the end.
///
/// Source: cel-go `ext/strings.go`, `charAt`.
pub(super) fn char_at(text: &str, index: i64) -> Result<String, EvalError> {
    let byte_idx = byte_index(text, index).ok_or_else(|| out_of_range(index))?;
    let rest = text.get(byte_idx..).unwrap_or_default();
    Ok(rest.chars().next().map(String::from).unwrap_or_default())
}

/// Returns the index of the first occurrence of `part` in the string at or after `offset`. Returns -1 if there is
/// none.
///
/// Source: cel-go `ext/strings.go`, `indexOfOffset`.
pub(super) fn index_of(text: &str, part: &str, offset: i64) -> Result<i64, EvalError> {
    if part.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let index = byte_index(text, offset).and_then(|from| {
        let byte_idx = text.get(from..)?.find(part)?;
        Some(code_point_index(text, from + byte_idx))
    });
    Ok(index.unwrap_or(-1))
}

/// Returns the index of the last occurrence of `part` in the string that starts at or before `offset`. Returns -1 if
/// there is none.
///
/// Source: cel-go `ext/strings.go`, `lastIndexOf`, `lastIndexOfOffset`.
pub(super) fn last_index_of(text: &str, part: &str, offset: Option<i64>) -> Result<i64, EvalError> {
    let end = || code_point_index(text, text.len());
    if part.is_empty() {
        return Ok(offset.unwrap_or_else(end));
    }
    let Some(offset) = offset else {
        return Ok(text
            .rfind(part)
            .map_or(-1, |byte_idx| code_point_index(text, byte_idx)));
    };
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let Some(from) = byte_index(text, offset).filter(|from| *from < text.len()) else {
        return Ok(-1);
    };
    // Any match that starts at or before `offset` ends at or before this byte index.
    let mut within = from.saturating_add(part.len()).min(text.len());
    while !text.is_char_boundary(within) {
        within -= 1;
    }
    let byte = text.get(..within).and_then(|within| within.rfind(part));
    Ok(byte.map_or(-1, |byte_idx| code_point_index(text, byte_idx)))
}

/// Replaces the first `limit` occurrences of `old` in the string, or all if `limit` is negative.
///
/// # Errors
///
/// Returns an error if the result exceeds `budget`.
///
/// Source: Go `strings.Replace`.
pub(super) fn replace(
    text: &str,
    old: &str,
    new: &str,
    limit: i64,
    budget: &EvalBudget,
) -> Result<String, EvalError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if new.len() > old.len() {
        let n = text.matches(old).take(limit).count();
        let grown = n.saturating_mul(new.len() - old.len());
        let len = grown.saturating_add(text.len());
        budget.reserve_text(len)?;
        // Reserves capacity for the whole result, because growing would need more memory.
        let mut replaced = String::with_capacity(len);
        let mut end = 0;
        for (start, _) in text.match_indices(old).take(limit) {
            replaced.push_str(text.get(end..start).unwrap_or_default());
            replaced.push_str(new);
            end = start + old.len();
        }
        replaced.push_str(text.get(end..).unwrap_or_default());
        return Ok(replaced);
    }
    Ok(text.replacen(old, new, limit))
}

/// Splits a string at `separator` into at most `limit` parts. The last part is the unsplit rest of the string. If
/// `limit` is zero, there are no parts. If it is negative, the number of parts is not limited.
///
/// Source: Go `strings.SplitN`.
pub(super) fn split<'a>(text: &'a str, separator: &str, limit: i64) -> Vec<&'a str> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Vec::new();
    }
    if !separator.is_empty() {
        return text.splitn(limit, separator).collect();
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (part, remainder) = if parts.len() + 1 == limit {
            (rest, "")
        } else {
            rest.split_at_checked(c.len_utf8()).unwrap_or((rest, ""))
        };
        parts.push(part);
        rest = remainder;
    }
    parts
}

/// Returns the code points of a string from `start` up to `end` (exclusive), or up to the end of the string.
///
/// Source: cel-go `ext/strings.go`, `substr`, `substrRange`.
pub(super) fn substring(text: &str, start: i64, end: Option<i64>) -> Result<&str, EvalError> {
    if let Some(end) = end
        && start > end
    {
        let message = format!("invalid substring range. start: {start}, end: {end}");
        return Err(EvalError::new(message));
    }
    let from = byte_index(text, start).ok_or_else(|| out_of_range(start))?;
    let to = match end {
        Some(end) => byte_index(text, end).ok_or_else(|| out_of_range(end))?,
        None => text.len(),
    };
    Ok(text.get(from..to).unwrap_or_default())
}

/// Concatenates the strings of `list`, separated by `separator`.
///
/// # Errors
///
/// Returns an error if an element is not a string, or if the result exceeds `budget`.
///
/// Source: cel-go `ext/strings.go`, `joinValSeparator`.
pub(super) fn join(list: &List, separator: &str, budget: &EvalBudget) -> Result<String, EvalError> {
    let mut len = 0_usize;
    for (n, element) in list.iter().enumerate() {
        budget.step()?;
        if n > 0 {
            len = len.saturating_add(separator.len());
        }
        let Some(text) = element.as_str() else {
            let shown = element.to_go_string();
            return Err(EvalError::new(format!("join: invalid input: {shown}")));
        };
        len = len.saturating_add(text.len());
        budget.reserve_text(len)?;
    }
    let mut joined = String::with_capacity(len);
    for (n, element) in list.iter().enumerate() {
        if n > 0 {
            joined.push_str(separator);
        }
        joined.push_str(element.as_str().unwrap_or_default());
    }
    Ok(joined)
}

/// Formats a string as a CEL literal.
///
/// Source: cel-go `ext/strings.go`, `quote`.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    const OUT_OF_MEMORY: &str = "the evaluation needs more than 32 MiB of memory";

    #[track_caller]
    fn fails<T: std::fmt::Debug>(result: Result<T, EvalError>, expected: &str) {
        assert_eq!(result.unwrap_err().message(), expected);
    }

    #[test]
    fn char_at_counts_code_points() {
        assert_eq!(char_at("t\u{e9}s", 1).unwrap(), "\u{e9}");
        assert_eq!(char_at("t\u{e9}s", 3).unwrap(), "");
        fails(char_at("t\u{e9}s", 4), "index out of range: 4");
        fails(char_at("tes", -1), "index out of range: -1");
    }

    #[test]
    fn index_of_counts_code_points() {
        let index = |text, part, offset| index_of(text, part, offset).unwrap();
        assert_eq!(index("ta\u{a9}o\u{a9}\u{3b1}T", "\u{a9}", 3), 4);
        assert_eq!(index("ta", "a", 2), -1);
        assert_eq!(index("ta", "a", 99), -1);
        assert_eq!(index("ta", "", -7), -7);
        fails(index_of("ta", "a", -1), "index out of range: -1");
    }

    #[test]
    fn last_index_of_counts_code_points() {
        let index = |text, part, offset| last_index_of(text, part, offset).unwrap();
        assert_eq!(index("ta\u{a9}o\u{a9}\u{3b1}T", "\u{a9}", None), 4);
        assert_eq!(index("ta\u{a9}o\u{a9}\u{3b1}T", "\u{a9}", Some(3)), 2);
        assert_eq!(index("aaa", "aa", Some(1)), 1);
        assert_eq!(index("aaa", "aa", Some(2)), 1);
        assert_eq!(index("aaa", "aa", Some(3)), -1);
        assert_eq!(index("a", "aa", Some(0)), -1);
        assert_eq!(index("a\u{3b1}", "", None), 2);
        assert_eq!(index("a", "", Some(9)), 9);
        assert_eq!(index("", "a", None), -1);
        fails(last_index_of("ta", "a", Some(-1)), "index out of range: -1");
    }

    #[test]
    fn replace_with_limit_replaces_at_most_limit_occurrences() {
        let budget = EvalBudget::default();
        let replaced = |text, old, new, limit| replace(text, old, new, limit, &budget).unwrap();
        assert_eq!(replaced("a\u{e9}", "", "-", -1), "-a-\u{e9}-");
        assert_eq!(replaced("ab", "", "-", 1), "-ab");
        assert_eq!(replaced("aaa", "a", "b", 2), "bba");
        assert_eq!(replaced("aaa", "a", "b", 0), "aaa");
        let long = "a".repeat(1 << 14);
        fails(replace(&long, "", &long, -1, &budget), OUT_OF_MEMORY);
    }

    #[test]
    fn split_with_limit_returns_at_most_limit_parts() {
        assert_eq!(split("a,b,c", ",", -1), ["a", "b", "c"]);
        assert_eq!(split("a,b,c", ",", 2), ["a", "b,c"]);
        assert_eq!(split("a,b,c", ",", 0), [""; 0]);
        assert_eq!(split("", ",", -1), [""]);
        assert_eq!(split("", "", -1), [""; 0]);
        assert_eq!(split("\u{e9}bc", "", 2), ["\u{e9}", "bc"]);
        assert_eq!(split("\u{e9}bc", "", -1), ["\u{e9}", "b", "c"]);
    }

    #[test]
    fn substring_counts_code_points() {
        assert_eq!(substring("t\u{e9}st", 1, Some(3)).unwrap(), "\u{e9}s");
        assert_eq!(substring("t\u{e9}st", 4, None).unwrap(), "");
        fails(substring("t\u{e9}st", 5, None), "index out of range: 5");
        fails(substring("test", 0, Some(5)), "index out of range: 5");
        fails(
            substring("test", 3, Some(1)),
            "invalid substring range. start: 3, end: 1",
        );
    }

    #[test]
    fn join_concatenates_strings() {
        let list = List::new(vec!["a".into(), "b".into()]);
        let budget = EvalBudget::default();
        assert_eq!(join(&list, ", ", &budget).unwrap(), "a, b");
        let list = List::new(vec!["a".into(), Value::Int(7)]);
        fails(join(&list, "", &budget), "join: invalid input: 7");
        let long = Value::from("a".repeat(1 << 20));
        fails(join(&List::new(vec![long; 65]), "", &budget), OUT_OF_MEMORY);
    }

    #[test]
    fn quoted_string_has_escaped_characters() {
        assert_eq!(quoted("a\"\\\n\u{200b}\0"), "\"a\\\"\\\\\\n\u{200b}\0\"");
    }
}
