//! Formats the estimated costs of policies as tables (`check --costs`).

use std::fmt::Write as _;

use super::cells::{Cell, Column, line};
use crate::cli::check::costs::{CostReport, digits};
use crate::cli::check::render::{BOLD, count, painted};
use crate::cli::check::report::{CheckReport, PolicyReport};
use crate::cli::terminal::Terminal;
use crate::cli::text::{clean, width};
use crate::policy::cost::GREATEST_COST;

/// The heading of the column with the fields.
const FIELD: &str = "EXPRESSION";

/// Formats a table for each policy: the cost and its share of the limit for each expression and for each sum of
/// expressions that has a limit. Policies without expressions have no table.
#[must_use]
pub fn costs(report: &CheckReport, terminal: Terminal) -> String {
    let mut out = String::new();
    for policy in report
        .policies
        .iter()
        .filter(|policy| !policy.costs.is_empty())
    {
        let name = painted(&clean(&policy.name), BOLD, terminal);
        let _ = writeln!(out, "{name} ({}:{})", clean(&policy.file), policy.line);
        table(&mut out, policy, terminal);
        out.push('\n');
    }
    let n = report
        .policies
        .iter()
        .map(|policy| policy.costs.len())
        .sum::<usize>();
    let policies = match report.policies.len() {
        1 => "1 policy".to_owned(),
        n => format!("{n} policies"),
    };
    let _ = writeln!(
        out,
        "{} of {policies}; upper bounds for an object of 64 KiB and for a request of 3 MiB",
        count(n, "cost")
    );
    out
}

fn table(out: &mut String, policy: &PolicyReport, terminal: Terminal) {
    let costs = &policy.costs;
    let names: Vec<String> = costs.iter().map(name).collect();
    let column = |heading: &str, text: &dyn Fn(&CostReport) -> String| {
        Column::new(
            heading,
            costs.iter().map(|cost| Cell::plain(&text(cost))).collect(),
        )
    };
    let cost_of = |cost: &CostReport, max: Option<u64>| match (&cost.kind, max) {
        (None, _) => "-".to_owned(),
        (_, None) => "unbounded".to_owned(),
        (_, Some(max)) if max >= GREATEST_COST => format!("{}+", digits(max)),
        (_, Some(max)) => digits(max),
    };
    let columns = [
        column("LIMIT", &|cost| digits(cost.limit)),
        column("64 KIB", &|cost| cost_of(cost, cost.max_for_usual_object)),
        column("SHARE", &|cost| {
            percent(cost.max_for_usual_object, cost.limit)
        }),
        column("3 MIB", &|cost| cost_of(cost, cost.max)),
        column("SHARE", &|cost| percent(cost.max, cost.limit)),
        column("KIND", &|cost| clean(cost.kind.as_deref().unwrap_or("-"))),
    ];
    let widest = names
        .iter()
        .map(|name| width(name))
        .max()
        .unwrap_or_default();
    let widest = widest.max(width(FIELD));
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

/// Returns the field, or `sum of FIELD` for expressions that share a budget.
fn name(cost: &CostReport) -> String {
    let field = clean(&cost.field_ref);
    if cost.is_sum() {
        format!("sum of {field}")
    } else {
        field
    }
}

/// Returns the share of a limit in percent, or `-` for an unbounded cost.
fn percent(cost: Option<u64>, limit: u64) -> String {
    let Some(cost) = cost else {
        return "-".to_owned();
    };
    let tenths = u128::from(cost) * 1000 / u128::from(limit.max(1));
    match tenths {
        0 if cost > 0 => "<0.1 %".to_owned(),
        tenths if tenths > 10_000 => ">1000 %".to_owned(),
        tenths if tenths >= 1000 => format!("{} %", tenths / 10),
        tenths => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_has_one_decimal_below_100() {
        let limit = 1_000_000;
        let all = [0, 1, 1000, 152_912, 999_999, 7_340_028, 10_500_000];
        let all = all.map(|cost| percent(Some(cost), limit));
        assert_eq!(
            all,
            [
                "0.0 %", "<0.1 %", "0.1 %", "15.2 %", "99.9 %", "734 %", ">1000 %"
            ]
        );
        assert_eq!(percent(None, limit), "-");
    }
}
