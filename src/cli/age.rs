//! Formats ages as kubectl does.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns the time from `then` to `now` in at most two units. Longer times have a lower precision.
///
/// If `then` is up to one second after `now`, returns `0s`, because clocks differ. If `then` is later, returns
/// `<invalid>`.
///
/// Source: `k8s.io/apimachinery`, `pkg/util/duration`, `HumanDuration`.
#[must_use]
pub fn since(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second());
    let pair = |large: i64, large_name: char, small: i64, small_name: char| {
        let (n_large, n_small) = (seconds / large, seconds % large / small);
        if n_small == 0 {
            format!("{n_large}{large_name}")
        } else {
            format!("{n_large}{large_name}{n_small}{small_name}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => pair(MINUTE, 'm', 1, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => pair(HOUR, 'h', MINUTE, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => pair(DAY, 'd', HOUR, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => pair(YEAR, 'y', DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: i64, expect: &str) {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let then = Timestamp::from_second(1_800_000_000 - seconds).unwrap();
        assert_eq!(since(then, now), expect, "{seconds} s");
    }

    #[test]
    fn age_is_formatted_as_in_kubectl() {
        check(-2, "<invalid>");
        check(-1, "0s");
        check(119, "119s");
        check(120, "2m");
        check(599, "9m59s");
        check(600, "10m");
        check(3 * HOUR - 1, "179m");
        check(3 * HOUR, "3h");
        check(8 * HOUR - 1, "7h59m");
        check(8 * HOUR, "8h");
        check(48 * HOUR, "2d");
        check(8 * DAY - 1, "7d23h");
        check(8 * DAY, "8d");
        check(2 * YEAR, "2y");
        check(3 * YEAR + 5 * DAY, "3y5d");
        check(9 * YEAR, "9y");
    }
}
