//! Formats findings as text, each with its source line and carets below the marked part.
//!
//! Untrusted content is sanitized and truncated to the width of the terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};

use super::finding::{ConsequenceReport, Finding, Location, Severity, UNPROVEN};
use super::report::{CheckReport, SuppressedBy};
use crate::cli::terminal::Terminal;
use crate::cli::text::{clean, width, wrap};
use crate::policy::consequence::Consequence;
use crate::policy::rule::Rule;

/// Maximum number of notes shown per rule, so that notes do not hide errors and warnings.
const MAX_NOTES: usize = 5;

/// Maximum width of a source line, in columns.
const MAX_EXCERPT: usize = 240;

/// Maximum number of kinds that are listed in a line. The line also shows the number of omitted kinds.
const MAX_KINDS: usize = 6;

/// Maximum number of further lines that are listed for a finding that occurs on several lines.
const MAX_PLACES: usize = 12;

/// Maximum number of different remedies that are shown for the other places of a finding.
pub(super) const MAX_REMEDIES: usize = 2;

/// Minimum number of findings for which the output includes the counts by rule.
const MIN_COUNTED: usize = 20;

pub(in crate::cli) const RED: &str = "1;31";
pub(in crate::cli) const YELLOW: &str = "1;33";
pub(in crate::cli) const BLUE: &str = "1;34";
const CYAN: &str = "1;36";
pub(in crate::cli) const BOLD: &str = "1";

/// Formats the findings and the summary line.
#[must_use]
pub fn text(report: &CheckReport, terminal: Terminal) -> String {
    let mut out = String::new();
    let mut n_notes: BTreeMap<Rule, usize> = BTreeMap::new();
    let style = Style {
        has_default: false,
        has_names: report.policies.len() > 1,
    };
    for finding in &report.findings {
        if finding.severity == Severity::Note {
            let n = n_notes.entry(finding.rule).or_default();
            *n += 1;
            if *n > MAX_NOTES {
                continue;
            }
        }
        write_with(&mut out, finding, style, terminal);
        out.push('\n');
    }
    for (rule, n) in n_notes {
        let more = n.saturating_sub(MAX_NOTES);
        if more > 0 {
            let head = painted(&format!("note[{}]", rule.id()), CYAN, terminal);
            let _ = writeln!(out, "{head}: and {more} more; `-o json` lists all\n");
        }
    }
    if report.findings.len() >= MIN_COUNTED {
        write_counts(&mut out, report, terminal);
        out.push('\n');
    }
    if report.findings.iter().any(is_denied_by_default) {
        let denied = "With failurePolicy Fail, a request is denied if an expression fails.";
        write_wrapped(&mut out, denied, "", terminal);
    }
    let _ = writeln!(out, "{}", summary(report, terminal));
    out
}

/// The help of an unproven finding that has no other help.
const ONLY_UNPROVEN: &str =
    "this is unproven, because no request was found for which the expression fails";

/// Returns true if requests for which the expression fails are denied because of failurePolicy Fail, the default.
fn is_denied_by_default(finding: &Finding) -> bool {
    finding.consequence.as_ref() == Some(&ConsequenceReport::from(Consequence::Denied))
}

/// Returns the help message. Unless `has_default` is true, omits the effect of failurePolicy Fail, the default.
fn help(finding: &Finding, has_default: bool) -> Option<String> {
    let help = finding.help.clone()?;
    if has_default || !is_denied_by_default(finding) {
        return Some(help);
    }
    let denied = ConsequenceReport::from(Consequence::Denied).message;
    let help = help.replace(&format!("; {denied}"), "").replace(denied, "");
    let help = help.replace("? ; ", "? ").replace("; ; ", "; ");
    let help = help.trim().trim_start_matches("; ").to_owned();
    if help == UNPROVEN {
        return Some(ONLY_UNPROVEN.to_owned());
    }
    (!help.is_empty()).then_some(help)
}

/// Formats the counts by rule and the summary line.
#[must_use]
pub fn statistics(report: &CheckReport, terminal: Terminal) -> String {
    let mut out = String::new();
    write_counts(&mut out, report, terminal);
    let _ = writeln!(out, "{}", summary(report, terminal));
    out
}

/// Formats each finding in one line: the location, the severity, the rule and the message.
#[must_use]
pub fn concise(report: &CheckReport, terminal: Terminal) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let location = &finding.location;
        let place = location
            .place
            .map(|place| format!(":{}:{}", place.line, place.column));
        let head = format!("{}[{}]", finding.severity.as_str(), finding.rule.id());
        let also = match finding.also.len() {
            0 => String::new(),
            n => format!(" (and at {})", count(n, "other place")),
        };
        let fixable = if finding.is_fixable() {
            " [fixable]"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "{}{}: {}: {}{also}{fixable}",
            clean(&location.file),
            place.unwrap_or_default(),
            painted(&head, color(finding.severity), terminal),
            clean(&finding.message)
        );
    }
    let _ = writeln!(out, "{}", summary(report, terminal));
    out
}

/// Writes a table with a row for each rule with findings: the numbers of errors, warnings, notes and fixable findings.
fn write_counts(out: &mut String, report: &CheckReport, terminal: Terminal) {
    const COLUMNS: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];
    let mut counts: BTreeMap<Rule, ([usize; COLUMNS.len()], usize)> = BTreeMap::new();
    for finding in &report.findings {
        let (by_severity, n_fixable) = counts.entry(finding.rule).or_default();
        for (n, severity) in by_severity.iter_mut().zip(COLUMNS) {
            *n += usize::from(finding.severity == severity);
        }
        *n_fixable += usize::from(finding.is_fixable());
    }
    let mut rows: Vec<_> = counts.into_iter().collect();
    // Rules with the most errors come first. Rules with equal numbers of errors are sorted by warnings, then by notes.
    rows.sort_by_key(|(rule, (by_severity, _))| (by_severity.map(std::cmp::Reverse), rule.id()));
    let _ = writeln!(out, "errors  warnings   notes  fixable  rule");
    let cell = |n: usize, width: usize| match n {
        0 => " ".repeat(width),
        n => format!("{n:width$}"),
    };
    for (rule, ([errors, warnings, notes], n_fixable)) in rows {
        let painted = |n, width, severity| painted(&cell(n, width), color(severity), terminal);
        let _ = writeln!(
            out,
            "{}  {}  {}  {}  {}",
            painted(errors, 6, Severity::Error),
            painted(warnings, 8, Severity::Warning),
            painted(notes, 6, Severity::Note),
            cell(n_fixable, 7),
            rule.id()
        );
    }
}

/// Formats one finding: the message, the location, the source line (except for notes), the owner, and the help.
pub(in crate::cli) fn write_finding(out: &mut String, finding: &Finding, terminal: Terminal) {
    let style = Style {
        has_default: true,
        has_names: true,
    };
    write_with(out, finding, style, terminal);
}

/// Selects the optional parts of a finding's output.
#[derive(Clone, Copy)]
struct Style {
    /// True to show the effect of failurePolicy Fail.
    has_default: bool,
    /// True to show the name of the policy.
    has_names: bool,
}

fn write_with(out: &mut String, finding: &Finding, style: Style, terminal: Terminal) {
    let max = terminal.width.unwrap_or(usize::MAX);
    let color = color(finding.severity);
    let head = format!("{}[{}]", finding.severity.as_str(), finding.rule.id());
    let message = clean(&finding.message);
    let mut lines = wrap(&format!("{head}: {message}"), max, usize::MAX, "  ").into_iter();
    let first = lines.next().unwrap_or_default();
    let rest = first.strip_prefix(head.as_str()).unwrap_or(&first);
    let head = painted(&head, color, terminal);
    let _ = writeln!(out, "{head}{}", painted(rest, BOLD, terminal));
    for line in lines {
        let _ = writeln!(out, "{}", painted(&line, BOLD, terminal));
    }

    let has_excerpt = finding.severity < Severity::Note;
    let (about, also, help) = notes(finding, style);
    let location = &finding.location;
    let mut suffix = String::new();
    // Short notes follow the location. Longer notes have their own lines.
    let [about, also] = [about, also].map(|note| {
        let note = note?;
        let longer = format!("{suffix}, {}", note.replacen(": ", " ", 1));
        let (gutter, place) = place_of(location);
        if gutter + 4 + width(&place) + width(&longer) > max {
            return Some(note);
        }
        suffix = longer;
        None
    });
    let gutter = write_location(out, location, (has_excerpt, color), &suffix, terminal);
    let indent = " ".repeat(gutter);
    let equals = painted("=", BLUE, terminal);
    for note in about.into_iter().chain(also).chain(help) {
        let room = max.saturating_sub(gutter + 3);
        for (n, line) in wrap(&note, room, usize::MAX, "  ").into_iter().enumerate() {
            let sign = if n == 0 { equals.as_str() } else { " " };
            let _ = writeln!(out, "{indent} {sign} {line}");
        }
    }
}

/// Returns the width of the line number, and the location as text.
fn place_of(location: &Location) -> (usize, String) {
    let file = clean(&location.file);
    match location.place {
        Some(place) => (
            place.line.to_string().len(),
            format!("{file}:{}:{}", place.line, place.column),
        ),
        None => (1, file),
    }
}

/// Writes a location with a suffix and, with `has_excerpt`, its line with a mark. Returns the width of the line number.
pub(in crate::cli) fn write_location(
    out: &mut String,
    location: &Location,
    (has_excerpt, color): (bool, &str),
    suffix: &str,
    terminal: Terminal,
) -> usize {
    let max = terminal.width.unwrap_or(usize::MAX);
    let (gutter, place) = place_of(location);
    let number = location.place.map(|place| place.line.to_string());
    let indent = " ".repeat(gutter);
    let arrow = painted("-->", BLUE, terminal);
    let _ = writeln!(out, "{indent}{arrow} {place}{suffix}");
    let bar = painted("|", BLUE, terminal);
    if has_excerpt
        && let Some(number) = &number
        && let Some((source, start, length)) = excerpt(location, max.saturating_sub(gutter + 3))
    {
        let number = painted(number, BLUE, terminal);
        let _ = writeln!(out, "{number} {bar} {source}");
        let mark = painted(&"^".repeat(length), color, terminal);
        let _ = writeln!(out, "{indent} {bar} {}{mark}", " ".repeat(start));
    }
    gutter
}

/// Returns a field without `spec` and without a final `expression`, such as `validations[0]`.
pub(in crate::cli) fn short_field(field_ref: &str) -> String {
    let field = field_ref.strip_prefix("spec.").unwrap_or(field_ref);
    clean(field.strip_suffix(".expression").unwrap_or(field))
}

/// Returns the notes below the source line: the object, field and kinds, the other lines, and the help for each place.
fn notes(finding: &Finding, style: Style) -> (Option<String>, Option<String>, Vec<String>) {
    let mut about: Vec<String> = Vec::new();
    if style.has_names {
        let names = finding.owner.names();
        about.extend(names.map(|(noun, name)| format!("{noun} {}", clean(name))));
    }
    // The location is enough for fields other than expressions.
    let field = finding.field_ref.as_deref();
    let field = field.filter(|field| style.has_names || field.ends_with("xpression"));
    about.extend(field.map(short_field));
    let prefix = if about.is_empty() { "" } else { "in: " };
    if !finding.kinds.is_empty() {
        let shown: Vec<_> = finding
            .kinds
            .iter()
            .take(MAX_KINDS)
            .map(|kind| clean(kind))
            .collect();
        let more = match finding.kinds.len().saturating_sub(shown.len()) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        about.push(format!("on {}{more}", shown.join(", ")));
    }
    let about = (!about.is_empty()).then(|| format!("{prefix}{}", about.join(", ")));
    let remedies = finding.other_remedies();
    let has_more = remedies.len() > MAX_REMEDIES;
    let also = (!finding.also.is_empty()).then(|| {
        let lines = finding.also.iter().map(|other| other.line);
        let list = line_list(&lines.collect());
        let more = if has_more {
            "; `-o json` has the help for each"
        } else {
            ""
        };
        format!("also: {list}{more}")
    });
    let of_others = remedies.iter().filter(|_| !has_more);
    let of_others = of_others
        .map(|(lines, remedy)| format!("help for {}: {}", line_list(lines), clean(remedy)));
    let help = help(finding, style.has_default).map(|help| format!("help: {}", clean(&help)));
    let help = help.into_iter().chain(of_others);
    (about, also, help.collect())
}

/// Returns the lines as text, such as `lines 3, 7`.
pub(super) fn line_list(lines: &BTreeSet<usize>) -> String {
    let n_more = lines.len().saturating_sub(MAX_PLACES);
    let shown = lines.iter().take(MAX_PLACES).map(usize::to_string);
    let shown: Vec<String> = shown.collect();
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    let more = match n_more {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{noun} {}{more}", shown.join(", "))
}

/// Returns the line of a location, shortened to `max` columns. Also returns the start and the number of the columns to
/// mark.
fn excerpt(location: &Location, max: usize) -> Option<(String, usize, usize)> {
    let max = max.min(MAX_EXCERPT);
    let mut place = location.place?;
    // Cuts a long line first, for example in a JSON file without line breaks.
    let n_skipped = place.column.saturating_sub(2 * MAX_EXCERPT);
    let is_cut = n_skipped > 0;
    place.column -= n_skipped;
    let source = location.source.as_ref()?;
    let line = source.part_of_line(place.line, n_skipped, 4 * MAX_EXCERPT);
    let line: Vec<char> = clean(line.trim_end()).chars().collect();
    let text = |range: std::ops::Range<usize>| {
        let chars = line.get(range)?;
        Some(chars.iter().collect::<String>())
    };
    let start = place.column.saturating_sub(1).min(line.len());
    let end = (start + location.length).min(line.len());
    let marked = width(&text(start..end)?).max(1);
    if !is_cut && width(&text(0..line.len())?) <= max {
        return Some((text(0..line.len())?, width(&text(0..start)?), marked));
    }
    // Shows a window around the location, with room for an ellipsis at both ends.
    let room = max.saturating_sub(2).max(8);
    let widths: Vec<usize> = line
        .iter()
        .map(|c| width(c.encode_utf8(&mut [0; 4])))
        .collect();
    let width_of = |n: usize| widths.get(n).copied().unwrap_or(0);
    let mut used: usize = (start..end).map(width_of).sum();
    let mut from = start;
    while from > 0 && used + width_of(from - 1) <= room * 2 / 3 {
        from -= 1;
        used += width_of(from);
    }
    let mut to = from;
    used = 0;
    while to < line.len() && used + width_of(to) <= room {
        used += width_of(to);
        to += 1;
    }
    let (before, after) = (is_cut || from > 0, to < line.len());
    let shown = format!(
        "{}{}{}",
        if before { "…" } else { "" },
        text(from..to)?,
        if after { "…" } else { "" }
    );
    let offset = width(&text(from..start)?) + usize::from(before);
    let visible = room.saturating_sub(width(&text(from..start)?)).max(1);
    Some((shown, offset, marked.min(visible)))
}

/// Returns the summary line: the number of checked objects and of findings.
fn summary(report: &CheckReport, terminal: Terminal) -> String {
    let summary = &report.summary;
    let counts: Vec<String> = [
        (summary.errors, "error", RED),
        (summary.warnings, "warning", YELLOW),
        (summary.notes, "note", CYAN),
    ]
    .into_iter()
    .filter(|(n, ..)| *n > 0)
    .map(|(n, noun, color)| painted(&count(n, noun), color, terminal))
    .collect();
    let findings = if counts.is_empty() {
        "no findings".to_owned()
    } else {
        counts.join(", ")
    };
    let mut causes: BTreeMap<SuppressedBy, usize> = BTreeMap::new();
    for suppressed in &report.suppressed {
        *causes.entry(suppressed.by).or_default() += suppressed.finding.n_places();
    }
    let causes: Vec<String> = causes.into_iter().map(|(by, n)| by.count(n)).collect();
    let suppressed = if causes.is_empty() {
        String::new()
    } else {
        format!(
            " ({} suppressed: {})",
            summary.suppressed,
            causes.join(", ")
        )
    };
    let policies = policies(summary.policies);
    let webhooks = (summary.webhooks > 0).then(|| count(summary.webhooks, "webhook"));
    let crds = (summary.crds > 0).then(|| count(summary.crds, "CustomResourceDefinition"));
    let probes = (summary.probes > 0).then(|| count(summary.probes, "probe"));
    let has_others = webhooks.is_some() || crds.is_some() || probes.is_some();
    let policies = Some(policies).filter(|_| summary.policies > 0 || !has_others);
    let checked: Vec<String> = [policies, webhooks, crds, probes]
        .into_iter()
        .flatten()
        .collect();
    let checked = match checked.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => checked.concat(),
    };
    // The policies of a cluster are not in files.
    let file_counts = match (&report.cluster, summary.files) {
        (Some(_), 0) => String::new(),
        (_, n) => format!(" in {}", count(n, "file")),
    };
    let cluster = report.cluster.as_deref();
    let cluster = cluster.map(|server| format!(" at {}", clean(server)));
    let expressions = report.expressions.as_ref();
    let expressions = expressions.filter(|version| **version != report.kubernetes);
    let expressions = expressions.map(|version| format!(", with expressions for {version}"));
    let excluded = match summary.excluded {
        0 => String::new(),
        n => format!(" ({n} excluded)"),
    };
    let oldest = report.other_versions.last();
    let oldest = oldest
        .map(|oldest| format!("{oldest} to "))
        .unwrap_or_default();
    format!(
        "{checked}{file_counts}{excluded} checked for Kubernetes {oldest}{}{}{}: {findings}{suppressed}",
        report.kubernetes,
        cluster.unwrap_or_default(),
        expressions.unwrap_or_default()
    )
}

/// Formats a count of a noun whose plural ends in s.
pub(in crate::cli) fn count(n: impl Display, noun: &str) -> String {
    let n = n.to_string();
    let ending = if n == "1" { "" } else { "s" };
    format!("{n} {noun}{ending}")
}

pub(in crate::cli) fn policies(n: usize) -> String {
    match n {
        1 => "1 policy".to_owned(),
        n => format!("{n} policies"),
    }
}

/// Formats the counts that are not 0, each with its label and color.
pub(in crate::cli) fn counts<'a>(
    parts: impl IntoIterator<Item = (u64, &'a str, &'a str)>,
    terminal: Terminal,
) -> Vec<String> {
    let parts = parts.into_iter().filter(|(n, ..)| *n > 0);
    parts
        .map(|(n, what, color)| painted(&format!("{n} {what}"), color, terminal))
        .collect()
}

/// Writes a paragraph, wrapped to the width of the terminal.
pub(in crate::cli) fn write_wrapped(
    out: &mut String,
    text: &str,
    indent: &str,
    terminal: Terminal,
) {
    let room = terminal
        .width
        .unwrap_or(usize::MAX)
        .saturating_sub(indent.len())
        .max(20);
    for line in wrap(&clean(text), room, usize::MAX, "  ") {
        let _ = writeln!(out, "{indent}{line}");
    }
}

fn color(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
        Severity::Note => CYAN,
    }
}

/// Colors the string if the terminal supports it.
pub(in crate::cli) fn painted(text: &str, code: &str, terminal: Terminal) -> String {
    if terminal.color && !text.is_empty() {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cli::input::{Place, SourceText};

    #[track_caller]
    fn check(line: &str, column: usize, length: usize, max: usize, expect: (&str, usize, usize)) {
        let location = Location {
            file: "f".to_owned(),
            source: Some(Arc::new(SourceText::new("f".to_owned(), line.to_owned()))),
            place: Some(Place { line: 1, column }),
            length,
        };
        let (text, start, length) = excerpt(&location, max).unwrap();
        assert_eq!((text.as_str(), start, length), expect);
        assert!(width(&text) <= max.clamp(10, MAX_EXCERPT), "{text}");
    }

    #[test]
    fn excerpt_of_long_line_is_cut_around_location() {
        check("a: b.c == 1", 5, 2, 40, ("a: b.c == 1", 4, 2));
        check("a: '漢字' + b", 10, 1, 40, ("a: '漢字' + b", 11, 1));
        check("a\tb\u{1b}", 3, 1, 40, ("a b␛", 2, 1));
        check("0123456789abcdefghij", 11, 2, 12, ("…6789abcdef…", 5, 2));
        check("0123456789abcdefghij", 1, 2, 12, ("0123456789…", 0, 2));
        check("0123456789abcdefghij", 21, 1, 12, ("…efghij", 7, 1));
        let long = format!("{}.name{}", "x".repeat(100_000), "y".repeat(100_000));
        let (before, after) = ("x".repeat(153), "y".repeat(80));
        let shown = format!("…{before}.name{after}…");
        check(&long, 100_001, 5, usize::MAX, (&shown, 154, 5));
    }
}
