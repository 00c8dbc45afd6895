//! Parses durations in command-line flags.

use std::time::Duration;

/// Parses a duration with a unit, such as `500ms`, `10s` or `2m`. The minimum is 100 ms.
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
        return Err(format!("`{text}` is too short; the minimum is 100ms"));
    }
    Ok(duration)
}
