//! Code lenses on the cases of probes: each shows the result of its case. The command of a lens shows the values of the
//! expressions.

use std::collections::BTreeSet;
use std::sync::Arc;

use gen_lsp_types::{
    CodeLens, CodeLensParams, Command, ExecuteCommandParams, Position, Range, Uri,
};
use goyaml::Node;
use serde_json::{Value, json};

use super::context::Context;
use super::cursor::{self, Item};
use super::outbox::ErrorCode;
use super::outbox::Failure;
use super::positions;
use super::workspace::File;
use crate::cli::input::{Input, KindFilter, Place};
use crate::cli::terminal::Terminal;
use crate::cli::test::case_filter::CaseFilter;
use crate::cli::test::report::{CaseReport, TestReport};
use crate::cli::test::{self, render};
use crate::cli::time_limit::TimeLimit;
use crate::probe::api::CaseOutcome;

/// The command that shows the result of a case.
pub(super) const SHOW: &str = "vap.showCase";

/// Maximum length of the title of a lens, in code points.
const MAX_TITLE: usize = 160;

pub(super) fn lenses(context: &Context<'_>, params: &CodeLensParams) -> Vec<CodeLens> {
    let Some(file) = context.file(&params.text_document.uri) else {
        return Vec::new();
    };
    let Some(report) = run(context, file, None) else {
        return Vec::new();
    };
    let mut lenses = Vec::new();
    for probe in report
        .probes
        .iter()
        .filter(|probe| probe.file == file.source.name)
    {
        for case in &probe.cases {
            let place = Place {
                line: case.line,
                column: case.column,
            };
            let at =
                positions::position(&file.source, file.source.byte_at(place), context.encoding);
            let argument = json!([file.uri.0, format!("{}/{}", probe.name, case.name)]);
            lenses.push(CodeLens {
                range: Range {
                    start: Position { character: 0, ..at },
                    end: at,
                },
                command: Some(Command {
                    title: title(case),
                    tooltip: None,
                    command: SHOW.to_owned(),
                    arguments: argument.as_array().cloned(),
                }),
                data: None,
            });
        }
    }
    lenses
}

fn title(case: &CaseReport) -> String {
    let outcome = match case.outcome {
        CaseOutcome::Passed => "passed",
        CaseOutcome::Failed => "failed",
        CaseOutcome::Pending => "not evaluated",
    };
    let details = [
        case.decision,
        case.difference.as_deref().or(case.explanation.as_deref()),
    ];
    let details: Vec<&str> = details.into_iter().flatten().collect();
    let text = format!("{outcome}: {}", details.join(", "));
    let mut shown: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(MAX_TITLE)
        .collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Shows the result of a case with the values of its expressions, and returns it.
///
/// # Errors
/// Returns an error if the command or its arguments are invalid.
pub(super) fn execute(
    context: &Context<'_>,
    params: &ExecuteCommandParams,
) -> Result<Value, Failure> {
    if params.command != SHOW {
        let message = format!("no command `{}`", params.command);
        return Err(Failure::with_code(ErrorCode::InvalidParams, &message));
    }
    let arguments = params.arguments.as_deref().unwrap_or_default();
    let texts: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
    let [uri, case] = texts[..] else {
        let message = "the arguments must be a URI and the name of a case";
        return Err(Failure::with_code(ErrorCode::InvalidParams, message));
    };
    let file = context.file(&Uri(uri.to_owned()));
    let file = file.ok_or_else(|| Failure::new("the workspace has no such document"))?;
    let report =
        run(context, file, Some(case)).ok_or_else(|| Failure::new("the case cannot be run"))?;
    let terminal = Terminal {
        width: None,
        color: false,
    };
    let text = render::text(&report, terminal, true);
    context
        .outbox
        .notify("window/showMessage", &json!({"type": 3, "message": text}));
    Ok(json!(text))
}

/// Runs the probes of a file with the policies, bindings, params and definitions of the workspace. `None` if the file has no
/// probe.
fn run(context: &Context<'_>, file: &Arc<File>, case: Option<&str>) -> Option<TestReport> {
    let probes: Vec<Item<'_>> = cursor::items(file.objects())
        .into_iter()
        .filter(|item| item.kind_name() == "PolicyProbe")
        .collect();
    if probes.is_empty() {
        return None;
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for probe in &probes {
        let target = probe
            .document
            .node
            .get("spec")
            .and_then(|spec| spec.get("target"));
        names.extend(probe.text("spec.policyName"));
        names.extend(
            target
                .and_then(|target| target.get("name"))
                .and_then(Node::as_str),
        );
    }
    let mut input = Input::default();
    for other in context.workspace.files() {
        if other.path != file.path && is_needed(other, &names) {
            input.append(other.read(KindFilter::All));
        }
    }
    // The probes of other files are not run.
    input.probes.clear();
    input.append(file.read(KindFilter::All));
    input.problems.clear();
    let pattern = case.map(|case| format!("^{}$", escaped(case)));
    let options = test::Options {
        version: context.workspace.plan.options.version,
        filter: pattern.and_then(|pattern| CaseFilter::parse(&pattern).ok()),
        limit: TimeLimit::default(),
        ..test::Options::default()
    };
    test::run_input(&options, input, Input::default()).ok()
}

/// Escapes the special characters of a regular expression.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns true if a file contains one of the policies `names`, a binding of such a policy, or objects that an
/// evaluation may read.
fn is_needed(file: &File, names: &BTreeSet<&str>) -> bool {
    let objects = file.objects();
    if !(objects.crds.is_empty() && objects.namespaces.is_empty() && objects.others.is_empty()) {
        return true;
    }
    cursor::items(objects).iter().any(|item| {
        let name = if item.is_binding() {
            item.text("spec.policyName")
        } else {
            item.name()
        };
        name.is_some_and(|name| names.contains(name))
    })
}
