//! Times in flags, with their units.

use std::time::Duration;

/// Parses a time with its unit: `500ms`, `10s`, `2m`.
///
/// # Errors
///
/// A message for a text that is not a time, or a time of less than 100 ms.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: u32 = number
        .parse()
        .map_err(|_| format!("`{text}` is not a duration such as `10s` or `2m`"))?;
    let unit = match unit {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        _ => {
            return Err(format!(
                "`{text}` needs one of the units ms, s and m, as in `10s`"
            ));
        }
    };
    let duration = unit.saturating_mul(number);
    if duration < Duration::from_millis(100) {
        return Err(format!("`{text}` is too short, at least 100ms"));
    }
    Ok(duration)
}
