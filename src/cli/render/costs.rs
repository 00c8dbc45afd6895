//! Formats the estimated costs of policies as tables (`check --costs`).

use std::fmt::Write as _;

use super::cells::{Cell, Column, line};
use crate::cli::check::costs::{CostReport, digits, rounded};
use crate::cli::check::render::{BOLD, count, painted, policies, short_field, write_wrapped};
use crate::cli::check::report::{CheckReport, PolicyReport};
use crate::cli::terminal::Terminal;
use crate::cli::text::{clean, width};

/// The heading of the column with the fields.
const FIELD: &str = "EXPRESSION";

/// Explains the columns.
const LEGEND: [&str; 5] = [
    "COST: the greatest estimated cost for an object of 64 KiB, which is large but realistic",
    "SHARE: share of the API server's limit, which is 1,000,000 for an expression or variable, 10,000,000 for a sum, and \
     2,500,000 for the sum of match conditions",
    "SAFE UP TO: the largest object size that cannot reach the limit",
    "LOOPS: the depth of nested loops",
    "These are estimates of kubectl-vap. The API server measures the cost of each evaluation of a policy. At the limit, the \
     evaluation stops, and the expression fails.",
];

/// Advice for costs above their limit.
const ADVICE: &str = "To lower a share above 100%: replace a loop within a loop (for example, with `in`, or with a list computed in \
                      a variable), and set maxItems and maxLength in the schema of a custom resource.";

/// Explains costs without a bound.
const UNBOUNDED: &str =
    "unbounded: the cost depends on an unknown size, such as that of `request.userInfo.extra`";

/// Explains costs without an estimate.
const UNKNOWN: &str = "unknown: the expression (in a sum: one of its expressions) has a type error, or there is no schema for its kinds";

/// Formats a table for each policy that has expressions. Each row shows the cost of an expression, or the sum for
/// expressions with a common limit, and this cost in percent of the limit.
#[must_use]
pub fn costs(report: &CheckReport, terminal: Terminal) -> String {
    let mut out = String::new();
    let has_costs = |policy: &&PolicyReport| !policy.costs.is_empty();
    for policy in report.policies.iter().filter(has_costs) {
        let kinds = single_kind(&policy.costs);
        let kind = kinds.map_or_else(String::new, |kind| format!(", on {}", clean(kind)));
        let name = painted(&clean(&policy.name), BOLD, terminal);
        let _ = writeln!(
            out,
            "{name} ({}:{}){kind}",
            clean(&policy.file),
            policy.line
        );
        table(&mut out, policy, kinds.is_none(), terminal);
        out.push('\n');
    }
    let all = || report.policies.iter().flat_map(|policy| &policy.costs);
    let n = count(all().count(), "cost");
    let _ = writeln!(out, "{n} of {}", policies(report.policies.len()));
    if all().next().is_none() {
        return out;
    }
    let is_unknown = |cost: &CostReport| cost.kind.is_none();
    let is_unbounded = |cost: &CostReport| !is_unknown(cost) && cost.max_for_usual_object.is_none();
    for text in LEGEND {
        write_wrapped(&mut out, text, "", terminal);
    }
    let notes = [
        (ADVICE, all().any(exceeds)),
        (UNBOUNDED, all().any(is_unbounded)),
        (UNKNOWN, all().any(is_unknown)),
    ];
    for (note, _) in notes.iter().filter(|(_, applies)| *applies) {
        write_wrapped(&mut out, note, "", terminal);
    }
    out
}

/// Returns the kind for which the costs are highest, if this is the same kind for all expressions.
fn single_kind(costs: &[CostReport]) -> Option<&str> {
    let mut kinds = costs.iter().filter_map(|cost| cost.kind.as_deref());
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

/// Returns true if an object of 64 KiB can exceed the limit.
fn exceeds(cost: &CostReport) -> bool {
    let is_unbounded = cost.kind.is_some() && cost.max_for_usual_object.is_none();
    is_unbounded || cost.max_for_usual_object > Some(cost.limit)
}

fn table(out: &mut String, policy: &PolicyReport, has_kinds: bool, terminal: Terminal) {
    let mut costs: Vec<&CostReport> = policy.costs.iter().collect();
    // Expressions come first, in the order of descending share, and sums come last. Within both groups, unbounded costs
    // are first, and unknown costs are last.
    costs.sort_by_key(|cost| {
        let max = cost.max_for_usual_object.unwrap_or(u64::MAX);
        let permille = u128::from(max) * 1_000_000 / u128::from(cost.limit.max(1));
        (
            cost.is_sum(),
            cost.kind.is_none(),
            std::cmp::Reverse(permille),
        )
    });
    let names: Vec<String> = costs.iter().map(|cost| name(cost)).collect();
    let column = |heading: &str, cell: &dyn Fn(&CostReport) -> Cell| {
        Column::new(heading, costs.iter().map(|cost| cell(cost)).collect())
    };
    let text = |text: &str| Cell::plain(text);
    let mut columns = vec![
        column("COST", &|cost| text(&amount(cost))),
        column("SHARE", &|cost| {
            Cell::graded(
                &percent(cost.max_for_usual_object, cost.limit),
                exceeds(cost),
            )
        }),
        column("SAFE UP TO", &|cost| text(&safe_size(cost))),
        column("LOOPS", &|cost| {
            text(&cost.loops.map_or_else(String::new, |n| n.to_string()))
        }),
    ];
    if has_kinds {
        columns.push(column("KIND", &|cost| {
            text(&clean(cost.kind.as_deref().unwrap_or("-")))
        }));
    }
    let widest = names.iter().map(|name| width(name)).max();
    let widest = widest.unwrap_or_default().max(width(FIELD));
    let headings = columns
        .iter()
        .map(|it| (Cell::plain(&it.heading), it.width));
    line(out, FIELD, widest, headings, terminal);
    for (n, name) in names.iter().enumerate() {
        let cells = columns.iter();
        let cells = cells.filter_map(|it| Some((it.cells.get(n)?.clone(), it.width)));
        line(out, name, widest, cells, terminal);
    }
}

/// Returns the field without `spec` and without a final `expression`, or `sum of FIELD` for expressions that share a
/// budget.
fn name(cost: &CostReport) -> String {
    let field = short_field(&cost.field_ref);
    if cost.is_sum() {
        format!("sum of {field}")
    } else {
        field
    }
}

/// Returns the cost for an object of 64 KiB. A large cost is formatted as a power of ten.
fn amount(cost: &CostReport) -> String {
    match (&cost.kind, cost.max_for_usual_object) {
        (None, _) => "unknown".to_owned(),
        (_, None) => "unbounded".to_owned(),
        (_, Some(max)) => rounded(max).unwrap_or_else(|| digits(max)),
    }
}

/// Returns the object size up to which the cost stays below the limit.
fn safe_size(cost: &CostReport) -> String {
    if cost.kind.is_none() {
        return "unknown".to_owned();
    }
    match (cost.max, cost.object_bytes_within_limit) {
        (Some(max), _) if max < cost.limit => "any size".to_owned(),
        (_, Some(bytes)) if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        (_, Some(bytes)) => format!("{} KiB", bytes >> 10),
        (Some(_), None) => "<1 KiB".to_owned(),
        (None, None) => "no size".to_owned(),
    }
}

/// Returns the share of a limit in percent, or `-` for an unknown or unbounded cost.
fn percent(cost: Option<u64>, limit: u64) -> String {
    let Some(cost) = cost else {
        return "-".to_owned();
    };
    let tenths = u128::from(cost) * 1000 / u128::from(limit.max(1));
    match tenths {
        0 if cost > 0 => "<0.1%".to_owned(),
        tenths if tenths > 10_000 => ">1000%".to_owned(),
        tenths if tenths >= 1000 => format!("{}%", tenths / 10),
        tenths => format!("{}.{}%", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentage_has_one_decimal_below_100() {
        let limit = 1_000_000;
        let all = [0, 1, 1000, 152_912, 999_999, 7_340_028, 10_500_000];
        let all = all.map(|cost| percent(Some(cost), limit));
        assert_eq!(
            all,
            ["0.0%", "<0.1%", "0.1%", "15.2%", "99.9%", "734%", ">1000%"]
        );
        assert_eq!(percent(None, limit), "-");
    }
}
