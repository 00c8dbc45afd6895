//! Proposals for literals: durations, format strings, quantities and JSON patches.

use std::fmt::Write as _;
use std::ops::Range;

use super::proposal::{Proposal, string_content};
use crate::cel::syntax::token::Kind;
use crate::cli::check::tokens::TokenText;
use crate::library::mutation::OBJECT;
use crate::library::quantity::Quantity;

/// Proposes a correction of an invalid duration, such as `1d` or `5 minutes`.
pub(super) fn literal(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let content = string_content(source, &(n..n + 1))?;
    let function = source.word(n.checked_sub(2)?)?;
    if function == "timestamp" && is_date(content) {
        let bytes = source.bytes(&(n..n + 1))?;
        let proposal = Proposal::edit(bytes, format!("'{content}T00:00:00Z'"));
        return Some(proposal.with_reason("a timestamp has a time and a zone"));
    }
    let is_call = function == "duration";
    let duration = is_call.then(|| duration(content))?;
    let Some(duration) = duration else {
        let is_number = content.parse::<f64>().is_ok();
        return is_number.then(|| {
            Proposal::hint(format!(
                "a duration has a unit: write `{content}s` for seconds, `{content}m` for minutes or `{content}h` for hours"
            ))
        });
    };
    let bytes = source.bytes(&(n..n + 1))?;
    let proposal = Proposal::edit(bytes, format!("'{duration}'"));
    Some(proposal.with_reason("the units of a duration are h, m, s, ms, us and ns"))
}

/// Returns true for a date such as `2026-01-31`.
fn is_date(text: &str) -> bool {
    let is_digits =
        |part: &str, n: usize| part.len() == n && part.chars().all(|c| c.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    matches!(&*parts, [year, month, day] if is_digits(year, 4) && is_digits(month, 2) && is_digits(day, 2))
}

/// Returns the duration in the format of Go for a text such as `1d`, `5 minutes`, `1 hour 30 min` or `PT5M`.
fn duration(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    // In ISO 8601, `M` means minutes only after the `T`. Before the `T`, it means months.
    let mut rest = match lower.strip_prefix("pt") {
        Some(rest) => rest,
        None => match lower.strip_prefix('p') {
            Some(days) if days.ends_with('d') => days,
            Some(_) => return None,
            None => &lower,
        },
    };
    let mut duration = String::new();
    while !rest.is_empty() {
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
        let n_number = rest.find(|c| !is_of_number(c))?;
        let (number, after) = rest.split_at_checked(n_number)?;
        let after = after.trim_start();
        let n_unit = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = after.split_at_checked(n_unit.unwrap_or(after.len()))?;
        number.parse::<f64>().ok()?;
        let hours = |of_unit: u64| {
            let number: u64 = number.parse().ok()?;
            Some(number.checked_mul(of_unit)?.to_string())
        };
        let same = || number.to_owned();
        let (number, unit) = match unit {
            "w" | "week" | "weeks" => (hours(7 * 24)?, "h"),
            "d" | "day" | "days" => (hours(24)?, "h"),
            "h" | "hr" | "hrs" | "hour" | "hours" => (same(), "h"),
            "m" | "min" | "mins" | "minute" | "minutes" => (same(), "m"),
            "s" | "sec" | "secs" | "second" | "seconds" => (same(), "s"),
            "ms" | "milliseconds" => (same(), "ms"),
            _ => return None,
        };
        let _ = write!(duration, "{number}{unit}");
        rest = after.trim_start();
    }
    (!duration.is_empty()).then_some(duration)
}

/// Proposes the verb `%s` for `{}` in a format string.
pub(super) fn format_verbs(source: &TokenText<'_>) -> Option<Proposal> {
    (2..source.len()).find_map(|n| {
        (source.word(n)? == "format" && source.kind(n - 1)? == Kind::Dot).then_some(())?;
        let receiver = source.receiver(n - 1)?;
        let content = string_content(source, &receiver)?;
        (content.contains("{}") && !content.contains('%')).then_some(())?;
        let text = source.source(&receiver)?.replace("{}", "%s");
        let proposal = Proposal::edit(source.bytes(&receiver)?, text);
        Some(proposal.with_reason("format() uses Go's verbs, such as `%s`"))
    })
}

/// Returns a hint about a quantity with an invalid suffix, such as `4GB`.
pub(super) fn quantity(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let open = if source.kind(n)? == Kind::String {
        n.checked_sub(1)?
    } else {
        n
    };
    let is_call =
        source.kind(open)? == Kind::OpenParen && source.word(open.checked_sub(1)?)? == "quantity";
    let content = string_content(source, &(open + 1..open + 2)).filter(|_| is_call)?;
    let compact: String = content.split_whitespace().collect();
    if compact != content && Quantity::parse(&compact).is_ok() {
        let hint = format!("write `{compact}`: a quantity has no spaces");
        return Some(Proposal::hint(hint));
    }
    let digits = content.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse::<f64>().ok()?;
    let unit = content.strip_prefix(digits)?;
    // In a CPU quantity, the suffix `m` means thousandths.
    let has = |name: &str| {
        let mut tokens = 0..source.len();
        tokens.any(|n| {
            source.word(n) == Some(name)
                || string_content(source, &(n..n + 1)).is_some_and(|it| it == name)
        })
    };
    let is_cpu = has("cpu") && !has("memory");
    let is_lowercase = unit.starts_with('m');
    if is_lowercase && is_cpu {
        let hint = format!("write `{digits}m` for thousandths of a CPU");
        return Some(Proposal::hint(hint));
    }
    let thousandths = if is_lowercase && !has("memory") {
        format!("`{digits}m` for thousandths, ")
    } else {
        String::new()
    };
    let unit = unit.to_uppercase();
    let prefix = unit.chars().next().filter(|c| "KMGTPE".contains(*c))?;
    let decimal = if prefix == 'K' { 'k' } else { prefix };
    Some(Proposal::hint(format!(
        "write {thousandths}`{digits}{decimal}` for powers of 1000, or `{digits}{prefix}i` for powers of 1024"
    )))
}

/// Proposes the type name `expected` for an object literal. `n` is the brace after the name.
pub(super) fn type_name(source: &TokenText<'_>, n: usize, expected: &str) -> Option<Proposal> {
    let name = source.receiver(n)?;
    source.source(&name)?.starts_with(OBJECT).then_some(())?;
    Some(Proposal::edit(source.bytes(&name)?, expected.to_owned()))
}

/// Proposes object literals for the map literals of a JSON patch. The rest of the expression stays unchanged.
pub(super) fn json_patch(source: &TokenText<'_>) -> Option<Proposal> {
    const KEYS: [&str; 4] = ["op", "path", "from", "value"];
    (source.kind(0)? == Kind::OpenBracket && source.kind(1)? == Kind::OpenBrace).then_some(())?;
    let list_end = source.close(0)?;
    (list_end + 1 == source.len()).then_some(())?;
    let whole = source.bytes(&(0..source.len()))?;
    let (mut out, mut copied) = (String::new(), whole.start);
    let mut replace = |bytes: Range<usize>, text: &str| {
        out.push_str(source.text.get(copied..bytes.start)?);
        out.push_str(text);
        copied = bytes.end;
        Some(())
    };
    let mut open = 1;
    loop {
        (source.kind(open)? == Kind::OpenBrace).then_some(())?;
        let close = source.close(open)?;
        replace(source.bytes(&(open..open + 1))?, "JSONPatch{")?;
        let mut key = open + 1;
        while key < close {
            let tokens = key..key + 1;
            let name = string_content(source, &tokens).filter(|it| KEYS.contains(it))?;
            (source.kind(key + 1)? == Kind::Colon).then_some(())?;
            replace(source.bytes(&tokens)?, name)?;
            let value = source.right(key + 2, 0)?;
            key = value.end + usize::from(source.kind(value.end)? == Kind::Comma);
        }
        if close + 1 == list_end {
            break;
        }
        (source.kind(close + 1)? == Kind::Comma).then_some(())?;
        open = close + 2;
    }
    out.push_str(source.text.get(copied..whole.end)?);
    Some(Proposal::edit(whole, out).with_reason("a JSON patch is a list of JSONPatch objects"))
}
