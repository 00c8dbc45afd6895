//! A report for people: the table of all policies, and one policy in full.
//!
//! Takes plain structs, the present moment and the terminal, gives text. What others wrote (names,
//! reasons, messages, warnings) is made harmless and cut to fit; nothing is printed from here.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;

use super::age;
use super::report::{
    ConditionReport, Judge, PolicyReport, State, StatusReport, Summary, WarningReport, place,
};
use super::terminal::Terminal;
use super::text::{clean, cut, point, width, wrap};

/// Columns between two cells.
const GAP: usize = 2;
/// The longest reason or foreign condition type shown, in columns.
const MAX_WORD: usize = 40;
/// Lines that one condition may take below its policy in the table; `status NAME` shows all.
const MAX_MESSAGE_LINES: usize = 3;
/// A name shorter than this is never moved to a line of its own.
const MIN_NAME: usize = 16;

/// The table of all policies, with a line below a policy for each condition that is not True.
///
/// Condition columns are there if they fit; with `is_wide` every column is, fitting or not.
#[must_use]
pub fn table(report: &StatusReport, now: Timestamp, terminal: Terminal, is_wide: bool) -> String {
    parts(report, now, terminal, is_wide, &Parts::All)
}

/// The [`table`], or parts of it.
#[must_use]
pub fn parts(
    report: &StatusReport,
    now: Timestamp,
    terminal: Terminal,
    is_wide: bool,
    parts: &Parts<'_>,
) -> String {
    let columns = columns(report, now, terminal, is_wide);
    let mut out = String::new();
    let names: Vec<_> = report
        .policies
        .iter()
        .map(|policy| clean(&policy.name))
        .collect();
    let others: usize = columns.iter().map(|column| column.width + GAP).sum();
    // A script reads a row as one line.
    let has_notes = !matches!(parts, Parts::Rows | Parts::ChangedRows(_));
    let limit = terminal.width.filter(|_| has_notes);
    let budget = limit.map_or(usize::MAX, |max| max.saturating_sub(others).max(MIN_NAME));
    let name_width = names
        .iter()
        .map(|name| width(name))
        .filter(|width| *width <= budget)
        .max();
    let name_width = name_width.unwrap_or(0).max(width("NAME"));

    let headings = columns
        .iter()
        .map(|column| (Cell::plain(&column.heading), column.width));
    if *parts == Parts::All {
        line(&mut out, "NAME", name_width, headings, terminal);
    }
    for (row, (policy, name)) in report.policies.iter().zip(&names).enumerate() {
        if !parts.has(&policy.name) {
            continue;
        }
        let cells = columns.iter().map(|column| {
            let cell = column.cells.get(row).cloned().unwrap_or_default();
            (cell, column.width)
        });
        if width(name) <= name_width {
            line(&mut out, name, name_width, cells, terminal);
        } else {
            let _ = writeln!(out, "{name}");
            line(&mut out, "", name_width, cells, terminal);
        }
        let notes = if has_notes { notes(policy) } else { Vec::new() };
        for note in notes {
            let max = terminal.width.unwrap_or(usize::MAX).saturating_sub(2);
            let max_lines = terminal.width.map_or(usize::MAX, |_| MAX_MESSAGE_LINES);
            for text in wrap(&note, max, max_lines, "  ") {
                let _ = writeln!(out, "  {text}");
            }
        }
    }
    if *parts == Parts::All {
        let _ = write!(out, "\n{}\n", summary(&report.summary));
        if let Some(text) = judged_note(&report.summary) {
            let max = terminal.width.unwrap_or(usize::MAX);
            out.push_str(&wrap(&text, max, usize::MAX, "").join("\n"));
            out.push('\n');
        }
    }
    out
}

/// The parts of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts<'a> {
    /// Headings, rows, notes, and the summary.
    All,
    /// The rows of these policies with their notes: changes below a table, in its columns.
    Changes(&'a BTreeSet<String>),
    /// Rows alone, for scripts.
    Rows,
    /// The rows alone of these policies.
    ChangedRows(&'a BTreeSet<String>),
}

impl Parts<'_> {
    /// Reports whether the policy has a row.
    fn has(&self, name: &str) -> bool {
        match self {
            Self::All | Self::Rows => true,
            Self::Changes(names) | Self::ChangedRows(names) => names.contains(name),
        }
    }
}

/// Who has judged, where the plugin has.
fn judged_note(summary: &Summary) -> Option<String> {
    let n = summary.judged_by_plugin;
    (n > 0).then(|| {
        format!(
            "{} judged by kubectl vap, against the schemas of the cluster: vap-status-controller has written no status \
             of {} as {}",
            count(n, "policy was", "policies were"),
            if n == 1 { "it" } else { "them" },
            if n == 1 { "it is" } else { "they are" },
        )
    })
}

/// A paragraph above all else where the statuses may be old, or no Lease tells; that the Lease may not be read is
/// said in the wide form only, as that is so for many people.
#[must_use]
pub fn controller(report: &StatusReport, terminal: Terminal, is_wide: bool) -> String {
    let controller = report.controller.as_ref();
    // Where the plugin has judged all, no status is old.
    let by_plugin = |policy: &PolicyReport| policy.judged_by == Some(Judge::Plugin);
    let needs_lease = report.policies.is_empty() || !report.policies.iter().all(by_plugin);
    let told = controller.filter(|controller| {
        controller.current == Some(false) || !controller.is_lease_there && needs_lease || is_wide
    });
    let Some(note) = told.and_then(|controller| controller.note.as_ref()) else {
        return String::new();
    };
    let max = terminal.width.unwrap_or(usize::MAX);
    wrap(&clean(note), max, usize::MAX, "  ").join("\n") + "\n\n"
}

/// A line for each policy that was deleted, below a table whose changes are watched.
#[must_use]
pub fn deleted(names: &[String]) -> String {
    let lines = names
        .iter()
        .map(|name| format!("{}  Deleted\n", clean(name)));
    lines.collect()
}

/// Everything about one policy.
#[must_use]
pub fn details(policy: &PolicyReport, now: Timestamp, terminal: Terminal) -> String {
    let mut out = String::new();
    let observed = match policy.observed_generation {
        Some(observed) if observed == policy.generation => String::new(),
        Some(observed) => format!(" (status is of {observed})"),
        None => " (no status)".to_owned(),
    };
    let mut state = state_cell(policy).painted(terminal);
    if let Some(ready) = policy.ready() {
        let _ = write!(state, ", {}", word(&ready.reason));
    }
    let param_kind = policy
        .param_kind
        .as_deref()
        .map_or_else(|| "-".to_owned(), clean);
    let judged_by = match policy.judged_by {
        Some(Judge::Plugin) => "kubectl vap, against the schemas of the cluster".to_owned(),
        Some(Judge::Controller) | None => String::new(),
    };
    let fields = [
        ("Name", clean(&policy.name)),
        ("Ready", state),
        ("Judged by", judged_by),
        ("Age", age(policy.created, now)),
        ("Generation", format!("{}{observed}", policy.generation)),
        ("Failure policy", clean(&policy.failure_policy)),
        ("Param kind", param_kind),
    ];
    for (label, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(out, "{:<16}{value}", format!("{label}:"));
    }

    let max = terminal.width.unwrap_or(usize::MAX);
    if let Some(note) = state_note(policy) {
        out.push('\n');
        for text in wrap(&note, max, usize::MAX, "") {
            let _ = writeln!(out, "{text}");
        }
    }
    if !policy.conditions.is_empty() {
        out.push('\n');
        conditions(&mut out, policy, now, terminal);
    }
    if !policy.expression_warnings.is_empty() {
        let _ = write!(
            out,
            "\nExpression warnings ({}):\n",
            policy.expression_warnings.len()
        );
        for warning in &policy.expression_warnings {
            expression_warning(&mut out, warning, max);
        }
    }
    out
}

/// The conditions of one policy, each with its message below.
fn conditions(out: &mut String, policy: &PolicyReport, now: Timestamp, terminal: Terminal) {
    let types: Vec<_> = policy.conditions.iter().map(|it| word(&it.type_)).collect();
    let types_width = types
        .iter()
        .map(|type_| width(type_))
        .max()
        .unwrap_or(0)
        .max(width("CONDITION"));
    let columns = [
        Column::new(
            "STATUS",
            policy.conditions.iter().map(condition_cell).collect(),
        ),
        Column::new("REASON", reasons(policy.conditions.iter().map(Some))),
        Column::new("SINCE", ages(policy.conditions.iter().map(Some), now)),
    ];
    let headings = columns
        .iter()
        .map(|column| (Cell::plain(&column.heading), column.width));
    line(out, "CONDITION", types_width, headings, terminal);
    for (row, (condition, type_)) in policy.conditions.iter().zip(&types).enumerate() {
        let cells = columns.iter().map(|column| {
            (
                column.cells.get(row).cloned().unwrap_or_default(),
                column.width,
            )
        });
        line(out, type_, types_width, cells, terminal);
        let max = terminal.width.unwrap_or(usize::MAX).saturating_sub(2);
        // What sums up the others mostly repeats one of them, which then speaks for itself.
        let sums_up = |it: &ConditionReport| it.is_ready() || it.is_stalled();
        let is_repeated = sums_up(condition)
            && policy
                .conditions
                .iter()
                .any(|other| !sums_up(other) && other.message == condition.message);
        let mut message = if is_repeated {
            String::new()
        } else {
            clean(&condition.message)
        };
        if condition
            .observed_generation
            .is_some_and(|observed| observed < policy.generation)
            && policy.state != State::Stale
        {
            message.push_str(" (of an earlier generation)");
        }
        for text in wrap(&message, max, usize::MAX, "") {
            let _ = writeln!(out, "  {text}");
        }
    }
}

/// One warning: the field, then upstream's text with its source and caret lines kept together.
fn expression_warning(out: &mut String, warning: &WarningReport, max: usize) {
    let _ = writeln!(out, "  {}", clean(&warning.field_ref));
    let max = max.saturating_sub(4);
    let mut lines = warning.warning.lines().peekable();
    while let Some(text) = lines.next() {
        let source = text.strip_prefix(" | ");
        let column = lines.peek().and_then(|next| caret_column(next));
        if let (Some(source), Some(column)) = (source, column) {
            let (source, caret) = point(source, column, max.saturating_sub(3));
            let _ = write!(out, "     | {source}\n     | {caret}\n");
            lines.next();
        } else if !text.trim().is_empty() {
            for text in wrap(&clean(text), max, usize::MAX, "  ") {
                let _ = writeln!(out, "    {text}");
            }
        }
    }
}

/// The code point, from 0, that a line of dots and a caret points at.
///
/// Source: cel-go `common/error.go`, `ToDisplayString`: full-width forms below wide characters.
fn caret_column(line: &str) -> Option<usize> {
    let dots = line.strip_prefix(" | ")?.strip_suffix(['^', '＾'])?;
    dots.chars()
        .all(|it| matches!(it, '.' | '．'))
        .then(|| dots.chars().count())
}

/// A column of the table, all but the name.
#[derive(Debug)]
struct Column {
    heading: String,
    cells: Vec<Cell>,
    width: usize,
}

impl Column {
    /// As wide as its widest cell.
    fn new(heading: &str, cells: Vec<Cell>) -> Self {
        let widest = cells
            .iter()
            .map(|cell| width(&cell.text))
            .max()
            .unwrap_or(0);
        Self {
            heading: heading.to_owned(),
            cells,
            width: widest.max(width(heading)),
        }
    }
}

/// The content of one place of the table, already harmless.
#[derive(Clone, Debug, Default)]
struct Cell {
    text: String,
    paint: Paint,
}

/// The meaning of a cell, and so its colour.
#[derive(Clone, Copy, Debug, Default)]
enum Paint {
    #[default]
    Plain,
    Good,
    Bad,
    Doubtful,
}

impl Cell {
    /// A cell without a colour.
    fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            paint: Paint::Plain,
        }
    }

    /// The text, with colour where the terminal has it.
    fn painted(&self, terminal: Terminal) -> String {
        let code = match self.paint {
            Paint::Plain => None,
            Paint::Good => Some("32"),
            Paint::Bad => Some("31"),
            Paint::Doubtful => Some("33"),
        };
        match code {
            Some(code) if terminal.color => format!("\u{1b}[{code}m{}\u{1b}[0m", self.text),
            _ => self.text.clone(),
        }
    }
}

/// One line of the table, without white space at its end.
fn line(
    out: &mut String,
    name: &str,
    name_width: usize,
    cells: impl Iterator<Item = (Cell, usize)>,
    terminal: Terminal,
) {
    let mut pending = name_width.saturating_sub(width(name));
    out.push_str(name);
    for (cell, column_width) in cells {
        pending += GAP;
        if !cell.text.is_empty() {
            let _ = write!(out, "{:pending$}{}", "", cell.painted(terminal));
            pending = 0;
        }
        pending += column_width.saturating_sub(width(&cell.text));
    }
    out.push('\n');
}

/// The columns beside the name.
fn columns(
    report: &StatusReport,
    now: Timestamp,
    terminal: Terminal,
    is_wide: bool,
) -> Vec<Column> {
    let policies = &report.policies;
    let each = |cell: &dyn Fn(&PolicyReport) -> Cell| policies.iter().map(cell).collect::<Vec<_>>();
    let ready = Column::new("READY", each(&state_cell));
    let mut reason_cells = reasons(policies.iter().map(PolicyReport::ready));
    for (cell, policy) in reason_cells.iter_mut().zip(policies) {
        match policy.state {
            State::NoStatus => *cell = Cell::plain("NoStatus"),
            State::Excluded => *cell = Cell::plain("Excluded"),
            State::Ready | State::NotReady | State::Unknown | State::Stale => {}
        }
    }
    let reason = Column::new("REASON", reason_cells);
    let since = Column::new("SINCE", ages(policies.iter().map(PolicyReport::ready), now));
    let old = Column::new(
        "AGE",
        each(&|policy| Cell::plain(&age(policy.created, now))),
    );

    let by_type: Vec<_> = condition_types(report)
        .into_iter()
        .map(|type_| {
            let cell = |policy: &PolicyReport| {
                policy
                    .condition(type_)
                    .map_or_else(|| Cell::plain("-"), condition_cell)
            };
            Column::new(&word(type_).to_uppercase(), each(&cell))
        })
        .collect();
    let widest_name = policies
        .iter()
        .map(|policy| width(&clean(&policy.name)))
        .max()
        .unwrap_or(0);
    // Where the controller has judged all, its name says nothing.
    let shows_judge = report.summary.judged_by_plugin > 0;
    let by = Column::new("BY", each(&|policy| Cell::plain(judge(policy))));
    let needed: usize = [&ready, &reason, &since, &old]
        .into_iter()
        .chain(shows_judge.then_some(&by))
        .chain(&by_type)
        .map(|column| column.width + GAP)
        .sum();
    let fits = terminal.width.is_none_or(|max| widest_name + needed <= max);

    let mut columns = vec![ready, reason];
    if shows_judge {
        columns.push(by);
    }
    if fits || is_wide {
        columns.extend(by_type);
    }
    if is_wide {
        let warnings = |policy: &PolicyReport| {
            let n_warnings = policy.expression_warnings.len();
            Cell::plain(&if policy.type_checking_completed {
                n_warnings.to_string()
            } else {
                "-".to_owned()
            })
        };
        columns.push(Column::new("WARNINGS", each(&warnings)));
        columns.push(Column::new("GENERATION", each(&generation_cell)));
        columns.push(Column::new(
            "FAILUREPOLICY",
            each(&|policy| Cell::plain(&clean(&policy.failure_policy))),
        ));
        columns.push(Column::new(
            "PARAMKIND",
            each(&|policy| {
                Cell::plain(
                    &policy
                        .param_kind
                        .as_deref()
                        .map_or_else(|| "-".to_owned(), clean),
                )
            }),
        ));
    }
    columns.extend([since, old]);
    columns
}

/// Every condition type that some policy has, but for those that sum up the others.
fn condition_types(report: &StatusReport) -> Vec<&str> {
    let mut types: Vec<_> = report
        .policies
        .iter()
        .flat_map(|policy| &policy.conditions)
        .filter(|condition| !condition.is_ready() && !condition.is_stalled())
        .map(|condition| condition.type_.as_str())
        .collect();
    types.sort_by(|left, right| place(left).cmp(&place(right)));
    types.dedup();
    types
}

/// The reasons whose messages say no more than the column does, of many policies at once: what nobody bound
/// or probed.
const TOLD_BY_COLUMN: [&str; 2] = ["NoBindings", "NoProbes"];

/// The notes on a policy, a paragraph each: its state, then the conditions that are not True, those that are
/// False first.
fn notes(policy: &PolicyReport) -> Vec<String> {
    let mut notes: Vec<_> = state_note(policy).into_iter().collect();
    let mut conditions: Vec<_> = policy
        .conditions
        .iter()
        .filter(|condition| !condition.is_ready() && condition.status != "True")
        .filter(|condition| !TOLD_BY_COLUMN.contains(&condition.reason.as_str()))
        .collect();
    if conditions.is_empty() && policy.state != State::Ready {
        conditions.extend(policy.ready().filter(|ready| ready.status != "True"));
    }
    conditions.sort_by_key(|condition| condition.status != "False");
    notes.extend(conditions.into_iter().map(condition_note));
    notes
}

/// A condition in one paragraph.
fn condition_note(condition: &ConditionReport) -> String {
    format!(
        "{}={} {}: {}",
        word(&condition.type_),
        word(&condition.status),
        word(&condition.reason),
        clean(&condition.message)
    )
}

/// Why the conditions, or the lack of them, say nothing about the policy as it stands.
fn state_note(policy: &PolicyReport) -> Option<String> {
    if policy.judged_by == Some(Judge::Plugin) {
        return None;
    }
    match policy.state {
        State::NoStatus if policy.type_checking_completed => Some(format!(
            "no status from vap-status-controller; kube-controller-manager alone has checked types: {}",
            count(policy.expression_warnings.len(), "warning", "warnings"),
        )),
        State::NoStatus => Some("no status from vap-status-controller".to_owned()),
        State::Excluded => Some(
            "left alone by vap-status-controller, whose --exclude-names or --exclude-selector fit"
                .to_owned(),
        ),
        State::Stale => Some(format!(
            "stale: the status is of generation {}, the policy is at {}",
            policy.observed_generation.unwrap_or(0),
            policy.generation
        )),
        State::Ready | State::NotReady | State::Unknown => None,
    }
}

/// Who has judged the policy.
fn judge(policy: &PolicyReport) -> &'static str {
    match policy.judged_by {
        Some(Judge::Controller) => "controller",
        Some(Judge::Plugin) => "kubectl-vap",
        None => "-",
    }
}

/// The cell below READY.
fn state_cell(policy: &PolicyReport) -> Cell {
    match (policy.state, policy.ready()) {
        (State::Stale, _) => Cell {
            text: "Stale".to_owned(),
            paint: Paint::Doubtful,
        },
        (_, Some(ready)) => condition_cell(ready),
        (_, None) => Cell {
            text: "-".to_owned(),
            paint: Paint::Doubtful,
        },
    }
}

/// The status of a condition. True is the healthy side of every condition of ours.
fn condition_cell(condition: &ConditionReport) -> Cell {
    let paint = match condition.status.as_str() {
        "True" if condition.is_stalled() => Paint::Bad,
        "True" => Paint::Good,
        "False" => Paint::Bad,
        _ => Paint::Doubtful,
    };
    Cell {
        text: word(&condition.status),
        paint,
    }
}

/// The cell below GENERATION: both, where the status is of another.
fn generation_cell(policy: &PolicyReport) -> Cell {
    Cell::plain(&match policy.observed_generation {
        Some(observed) if observed != policy.generation => {
            format!("{observed}/{}", policy.generation)
        }
        _ => policy.generation.to_string(),
    })
}

/// A column of reasons.
fn reasons<'a>(conditions: impl Iterator<Item = Option<&'a ConditionReport>>) -> Vec<Cell> {
    let reason =
        |it: Option<&ConditionReport>| it.map_or_else(|| "-".into(), |it| word(&it.reason));
    conditions
        .map(|condition| Cell::plain(&reason(condition)))
        .collect()
}

/// A column of the times since the last transition.
fn ages<'a>(
    conditions: impl Iterator<Item = Option<&'a ConditionReport>>,
    now: Timestamp,
) -> Vec<Cell> {
    conditions
        .map(|condition| Cell::plain(&age(condition.and_then(|it| it.last_transition_time), now)))
        .collect()
}

/// A time as the age it means.
fn age(then: Option<Timestamp>, now: Timestamp) -> String {
    then.map_or_else(|| "-".to_owned(), |then| age::since(then, now))
}

/// Makes one word of moderate length of `text`, which should be one already.
fn word(text: &str) -> String {
    let text = cut(&clean(text), MAX_WORD);
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

/// The last line of the table.
fn summary(summary: &Summary) -> String {
    let parts = [
        (summary.ready, "Ready"),
        (summary.not_ready, "not Ready"),
        (summary.unknown, "unknown"),
        (summary.stale, "stale"),
        (summary.no_status, "without a status"),
        (summary.excluded, "excluded"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(n_policies, _)| *n_policies > 0)
        .map(|(n_policies, state)| format!("{n_policies} {state}"))
        .collect();
    format!(
        "{}: {}",
        count(summary.total, "policy", "policies"),
        parts.join(", ")
    )
}

/// A number of things.
fn count(n_things: usize, one: &str, many: &str) -> String {
    format!("{n_things} {}", if n_things == 1 { one } else { many })
}
