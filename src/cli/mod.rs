//! The kubectl plugin: what a person reads of the statuses, and how.
//!
//! Takes the command line and the terminal, gives text, JSON or YAML and an exit status. Only
//! [`status`] talks to a cluster, and only [`input`] reads files; everything else is pure.

pub mod age;
pub mod args;
pub mod check;
pub mod controller;
mod error;
pub mod exit;
pub mod explain;
pub mod input;
pub mod render;
pub mod report;
pub mod status;
pub mod terminal;
pub mod test;
mod text;

use std::io::{self, Write};

use crate::policy::analysis::Profile;
use crate::policy::rule::Rule;

use args::{
    Args, CheckArgs, CheckOutput, CheckProfile, Command, ExplainArgs, ExplainOutput, InitArgs,
    Output, StatusArgs, TestArgs, TestCommand, TestOutput,
};
use check::finding::Finding;
use controller::ControllerReport;
use error::CliError;
use exit::Exit;
use report::StatusReport;
use terminal::Terminal;

/// Runs one command of the plugin, and says with which exit status to end.
///
/// Output goes to `out`, complaints in one line to `err`. A reader that goes away (`| head`) ends
/// the output, not the meaning of the exit status.
pub fn run(args: &Args, terminal: Terminal, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let outcome = match &args.command {
        Command::Status(status) => run_status(status, terminal, out, err),
        Command::Check(check) => run_check(check, terminal, out, err),
        Command::Test(test) => run_test(test, terminal, out, err),
        Command::Explain(explain) => run_explain(explain, terminal, out),
    };
    match outcome {
        Ok(exit) => exit,
        Err(error) => {
            // With standard error gone as well, the exit status alone must tell.
            let _ = writeln!(err, "error: {error}");
            Exit::WrongUse
        }
    }
}

/// `kubectl vap status`.
fn run_status(
    args: &StatusArgs,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let read = status::read(args)?;
    let now = status::now();
    let controller = ControllerReport::of(&args.lease(), &read.lease, now);
    let report = StatusReport {
        controller: Some(controller),
        ..StatusReport::beside(&read.policies, &read.lease.exclusion())
    };
    let exit = if args.exit_zero {
        Exit::Clean
    } else {
        report.exit()
    };
    let text = match args.output {
        Output::Json => report.to_json()?,
        Output::Yaml => report.to_yaml()?,
        Output::Table | Output::Wide if report.policies.is_empty() => {
            let _ = writeln!(err, "no ValidatingAdmissionPolicies found");
            return Ok(exit);
        }
        Output::Table | Output::Wide => {
            let is_wide = args.output == Output::Wide;
            let text = match (args.name.as_deref(), report.policies.as_slice()) {
                (Some(_), [policy]) => render::details(policy, now, terminal),
                _ => render::table(&report, now, terminal, is_wide),
            };
            render::controller(&report, terminal, is_wide) + &text
        }
    };
    write(out, &text).map(|()| exit)
}

/// `kubectl vap check`.
fn run_check(
    args: &CheckArgs,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let options = check::Options {
        paths: args.paths.clone(),
        crds: args.crds.clone(),
        profile: match args.profile {
            CheckProfile::Truthful => Profile::Truthful,
            CheckProfile::Upstream => Profile::Upstream,
        },
        version: args.kubernetes_version,
    };
    let report = check::run(&options, &mut io::stdin())?;
    let text = match args.output {
        CheckOutput::Text => check::render::text(&report, terminal),
        CheckOutput::Json => json(&report)?,
        CheckOutput::Github => check::annotations::github(&report),
        CheckOutput::Sarif => json(&check::annotations::sarif(&report))?,
    };
    write(out, &text)?;
    let is_told = |found: &Finding| found.rule != Rule::PassedOver;
    if report.summary.policies == 0 && !report.findings.iter().any(is_told) {
        let _ = writeln!(err, "warning: no ValidatingAdmissionPolicy among the input");
        if options.paths.iter().any(|path| path.as_os_str() == "-") {
            // Most likely the command before the pipe has failed.
            return Ok(Exit::WrongUse);
        }
    }
    Ok(match report.exit(args.strict) {
        Exit::Findings if args.exit_zero => Exit::Clean,
        exit => exit,
    })
}

/// `kubectl vap test`.
fn run_test(
    args: &TestArgs,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    if let Some(TestCommand::Init(init)) = &args.command {
        return run_init(init, out, err);
    }
    let options = test::Options {
        paths: args.paths.clone(),
        crds: args.crds.clone(),
    };
    let report = test::run(&options, &mut io::stdin())?;
    let text = match args.output {
        TestOutput::Text => test::render::text(&report, terminal, args.verbose),
        TestOutput::Json => json(&report)?,
        TestOutput::Junit => test::junit::xml(&report),
    };
    write(out, &text)?;
    if report.summary.cases == 0 && report.summary.errors == 0 {
        let _ = writeln!(err, "error: no PolicyProbe among the input");
    }
    Ok(report.exit())
}

/// `kubectl vap test init`.
fn run_init(args: &InitArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CliError> {
    let options = test::Options {
        paths: args.paths.clone(),
        crds: args.crds.clone(),
    };
    let report = test::init::run(&options, &mut io::stdin())?;
    write(
        out,
        &report.yaml().map_err(|error| CliError::Format {
            format: "yaml",
            reason: error.to_string(),
        })?,
    )?;
    for line in report.complaints() {
        let _ = writeln!(err, "{line}");
    }
    Ok(report.exit())
}

/// `kubectl vap explain`.
fn run_explain(
    args: &ExplainArgs,
    terminal: Terminal,
    out: &mut dyn Write,
) -> Result<Exit, CliError> {
    let rule = args.rule.as_deref().map(explain::rule).transpose()?;
    let text = match (args.output, rule) {
        (ExplainOutput::Text, Some(rule)) => explain::text(rule, terminal),
        (ExplainOutput::Text, None) => explain::table(terminal),
        (ExplainOutput::Json, Some(rule)) => json(&explain::list(&[rule]))?,
        (ExplainOutput::Json, None) => json(&explain::list(Rule::ALL))?,
    };
    write(out, &text).map(|()| Exit::Clean)
}

/// As JSON with a newline at the end.
fn json(value: &impl serde::Serialize) -> Result<String, CliError> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| CliError::Format {
            format: "json",
            reason: error.to_string(),
        })
}

/// Writes all of `text`; a reader that has gone away is no failure.
fn write(out: &mut dyn Write, text: &str) -> Result<(), CliError> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Write(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
