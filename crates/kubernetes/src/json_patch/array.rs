//! Parses and resolves the list indices of JSON patches.
//!
//! Source: `json-patch.v4` `patch.go`, `partialArray`; Go `strconv/atoi.go`, `Atoi`.

use cel::go_text;

use super::node::Node;

/// Parses the index `key` and returns the position of its item. Negative indices count from the end.
pub(super) fn position(items: &[Node], key: &str) -> Result<usize, String> {
    let index = atoi(key)?;
    within(index, items.len()).ok_or_else(|| invalid(index))
}

/// Inserts a value before the item at the index `key`. If `key` is `-`, appends the value.
pub(super) fn add(items: &mut Vec<Node>, key: &str, value: Node) -> Result<(), String> {
    if key == "-" {
        items.push(value);
        return Ok(());
    }
    let index = atoi(key)
        .map_err(|error| format!("value was not a proper array index: '{key}': {error}"))?;
    let position = within(index, items.len().saturating_add(1)).ok_or_else(|| invalid(index))?;
    items.insert(position, value);
    Ok(())
}

fn invalid(index: i64) -> String {
    format!("Unable to access invalid index: {index}: invalid index referenced")
}

/// Converts an index to a position in a list of `len` items. Negative indices count from the end. Returns `None` if the
/// index is out of range.
fn within(index: i64, len: usize) -> Option<usize> {
    let at = if index < 0 {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
    } else {
        usize::try_from(index).ok()?
    };
    (at < len).then_some(at)
}

fn atoi(text: &str) -> Result<i64, String> {
    let error = |reason| {
        Err(format!(
            "strconv.Atoi: parsing {}: {reason}",
            go_text::quote(text)
        ))
    };
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() {
        return error("invalid syntax");
    }
    let mut magnitude = 0_u64;
    for c in digits.chars() {
        let Some(digit) = c.to_digit(10) else {
            return error("invalid syntax");
        };
        let next = magnitude
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(digit.into()));
        match next {
            Some(next) => magnitude = next,
            None => return error("value out of range"),
        }
    }
    let number = if is_negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    };
    match number {
        Some(number) => Ok(number),
        None => error("value out of range"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoi_agrees_with_go() {
        assert_eq!(atoi("+07"), Ok(7));
        assert_eq!(atoi("-9223372036854775808"), Ok(i64::MIN));
        for text in ["", "-", "+", "1_0", "0x1", " 1", "\u{661}"] {
            assert!(
                atoi(text).unwrap_err().ends_with("invalid syntax"),
                "{text}"
            );
        }
        for text in ["9223372036854775808", "99999999999999999999999x"] {
            assert!(
                atoi(text).unwrap_err().ends_with("value out of range"),
                "{text}"
            );
        }
    }

    #[test]
    fn negative_list_index_counts_from_the_end() {
        for (index, expected) in [
            (0, Some(0)),
            (1, Some(1)),
            (2, Some(2)),
            (3, None),
            (-1, Some(2)),
            (-3, Some(0)),
            (-4, None),
        ] {
            assert_eq!(within(index, 3), expected, "{index}");
        }
        assert_eq!(within(0, 0), None);
    }
}
