//! Chooses the columns that fit the width of the terminal, for the table of all policies.

use jiff::Timestamp;

use super::cells::{Cell, Column, GAP, age, ages, condition_cell, reasons, state_cell, word};
use crate::cli::report::{PolicyReport, State, StatusReport, StatusSource, condition_order};
use crate::cli::terminal::Terminal;
use crate::cli::text::{clean, width};

/// Returns the columns after the column with the names.
pub(super) fn columns(
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
        .map(|policy| width(&clean(&policy.shown_name())))
        .max()
        .unwrap_or(0);
    // The column BY is omitted if the controller has evaluated all policies.
    let shows_evaluator = report.summary.checked_by_plugin > 0;
    let by = Column::new("BY", each(&|policy| Cell::plain(evaluator(policy))));
    let needed: usize = [&ready, &reason, &since, &old]
        .into_iter()
        .chain(shows_evaluator.then_some(&by))
        .chain(&by_type)
        .map(|column| column.width + GAP)
        .sum();
    let fits = terminal.width.is_none_or(|max| widest_name + needed <= max);

    let mut columns = vec![ready, reason];
    if shows_evaluator {
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

/// Returns the condition types of all policies, except for `Ready` and `Stalled`.
fn condition_types(report: &StatusReport) -> Vec<&str> {
    let mut types: Vec<_> = report
        .policies
        .iter()
        .flat_map(|policy| &policy.conditions)
        .filter(|condition| !condition.is_ready() && !condition.is_stalled())
        .map(|condition| condition.type_.as_str())
        .collect();
    types.sort_by(|left, right| condition_order(left).cmp(&condition_order(right)));
    types.dedup();
    types
}

/// Returns the name of the component that evaluated the policy.
fn evaluator(policy: &PolicyReport) -> &'static str {
    match policy.checked_by {
        Some(StatusSource::Controller) => "controller",
        Some(StatusSource::Plugin) => "kubectl-vap",
        None => "-",
    }
}

/// Returns the cell of the column GENERATION, such as `3`, or `1/3` if the status is for generation 1.
fn generation_cell(policy: &PolicyReport) -> Cell {
    Cell::plain(&match policy.observed_generation {
        Some(observed) if observed != policy.generation => {
            format!("{observed}/{}", policy.generation)
        }
        _ => policy.generation.to_string(),
    })
}
