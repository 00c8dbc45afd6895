//! Runs a command: reads its input, writes its report, and returns the exit status.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::policy::rule::Rule;
use crate::version::KubernetesVersion;

use super::args::{
    Args, CheckArgs, CheckOutput, Command, ConvertArgs, ExplainArgs, InitArgs, TestArgs,
    TestCommand, TestOutput,
};
use super::audit::args::{AuditArgs, AuditOutput};
use super::check::command;
use super::check::finding::Finding;
use super::check::watch::FileWatch;
use super::diff::args::DiffArgs;
use super::error::CliError;
use super::eval::args::{EvalArgs, OutputFormat};
use super::exit::Exit;
use super::output::{json, write, write_open};
use super::terminal::Terminal;
use super::upgrade::args::UpgradeArgs;
use super::{
    audit, check, completion, connection, diff, eval, explain, field_reference, live, lsp,
    probe_check, render, status, terminal, test, text, upgrade, versions, watch,
};

/// Runs a command of the plugin, and returns its exit status.
///
/// The report is written to `out`, one-line messages to `err`. A closed pipe (`| head`) ends the output, but does not
/// affect the exit status.
pub fn run(args: &Args, terminal: Terminal, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let outcome = match &args.command {
        Command::Status(args) => status::run(args, terminal, out, err),
        Command::Check(check) => run_check(check, terminal, out, err),
        Command::Test(test) => run_test(test, terminal, out, err),
        Command::Audit(audit) => run_audit(audit, terminal, out, err),
        Command::Diff(diff) => run_diff(diff, terminal, out),
        Command::UpgradeCheck(upgrade) => run_upgrade(upgrade, terminal, out),
        Command::Eval(eval) => run_eval(eval, terminal, out),
        Command::Explain(explain) => run_explain(explain, terminal, out),
        Command::Lsp(args) => Ok(lsp::run(args)),
        Command::Version(args) => versions::run(args, out, err),
        Command::Completion(args) => {
            write(out, &completion::script(args.shell)).map(|()| Exit::Clean)
        }
        Command::Complete(args) => {
            let text = completion::complete(&args.words, &completion::cluster::lookup);
            write(out, &text).map(|()| Exit::Clean)
        }
    };
    match outcome {
        Ok(exit) => exit,
        Err(error) => {
            // If standard error is not writable, only the exit status reports the error.
            let _ = writeln!(err, "error: {error}");
            Exit::Failed
        }
    }
}

fn run_check(
    args: &CheckArgs,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let subjects = live::Plan::from_args(args)?;
    if !args.watch {
        return check_once(args, &subjects, terminal, out, err);
    }
    check::watch::validate(args, subjects.is_live)?;
    loop {
        let plan = command::plan(args, &subjects.paths).ok();
        let watch = FileWatch::new(args, &subjects.paths, plan.as_ref());
        if terminal.color && !write_open(out, terminal::CLEAR)? {
            return Ok(Exit::Clean);
        }
        // An error does not end the watch: the next change, for example of the configuration, may correct the error.
        if let Err(error) = check_once(args, &subjects, terminal, out, err) {
            let _ = writeln!(err, "error: {error}");
        }
        if !write_open(out, "\nwaiting for changes; press Ctrl-C to stop\n")? {
            return Ok(Exit::Clean);
        }
        let is_interrupted = connection::block_on(async {
            Ok(tokio::select! {
                () = watch.changed() => false,
                () = watch::interrupted() => true,
            })
        })?;
        if is_interrupted {
            return Ok(Exit::Clean);
        }
    }
}

fn check_once(
    args: &CheckArgs,
    subjects: &live::Plan,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let mut plan = command::plan(args, &subjects.paths)?;
    plan.settings.probe_check = Some(probe_check::check);
    let (report, notes) = command::run(args, &plan, &mut io::stdin(), |input, crds| {
        if !subjects.is_live {
            return Ok(None);
        }
        connection::block_on(async {
            let connected = args.connection.connect().await?;
            let selection = subjects.selection.as_ref();
            let asked = live::read(
                &connected,
                selection,
                (input, crds),
                live::ListScope::Admission,
            );
            asked.await.map(Some)
        })
    })?;
    let text = match args.output {
        CheckOutput::Text if args.findings.diff => command::diffs(&report),
        CheckOutput::Text if args.findings.explain => {
            check::render::text(&report, terminal) + &explain::for_report(&report, terminal)
        }
        CheckOutput::Text if args.costs => render::costs(&report, terminal),
        CheckOutput::Text if args.statistics => check::render::statistics(&report, terminal),
        CheckOutput::Text => check::render::text(&report, terminal),
        CheckOutput::Concise => check::render::concise(&report, terminal),
        CheckOutput::Gitlab => json(&check::annotations::gitlab(&report))?,
        CheckOutput::Junit => test::junit::check_xml(&report),
        CheckOutput::Json => json(&report)?,
        CheckOutput::Github => check::annotations::github(&report),
        CheckOutput::Sarif => json(&check::annotations::sarif(&report))?,
    };
    write(out, &text)?;
    for note in notes {
        let _ = writeln!(err, "{note}");
    }
    let is_reported = |found: &Finding| found.rule != Rule::SkippedObject;
    let n_subjects = report.summary.policies + report.summary.webhooks + report.summary.crds;
    if n_subjects == 0 && !report.findings.iter().any(is_reported) {
        let place = if subjects.selection.is_some() {
            "in the cluster matches the arguments"
        } else {
            "in the input"
        };
        let is_of_cluster = subjects.selection.is_some();
        let _ = writeln!(
            err,
            "warning: no ValidatingAdmissionPolicy {place}: nothing was checked"
        );
        // Fails for a directory or standard input without policies: the path may be wrong, or the command that should
        // write the policies may have failed.
        let is_whole = |path: &std::path::PathBuf| path.as_os_str() == "-" || path.is_dir();
        if !is_of_cluster && args.paths.iter().any(is_whole) {
            return Ok(Exit::Failed);
        }
    }
    Ok(match report.exit(plan.is_strict) {
        Exit::Findings if args.exit_zero => Exit::Clean,
        exit => exit,
    })
}

fn run_test(
    args: &TestArgs,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    match &args.command {
        Some(TestCommand::Init(init)) => return run_init(init, out, err),
        Some(TestCommand::Convert(convert)) => return run_convert(convert, out, err),
        None => {}
    }
    let options = test::Options {
        paths: args.paths.clone(),
        crds: args.crds.clone(),
        version: version_for(args.kubernetes_version, &args.paths)?,
        coverage: args.coverage || args.output == TestOutput::Lcov,
        mutants: args.mutants,
        filter: args.run.clone(),
        durations: args.durations || args.output == TestOutput::Junit,
        limit: args.timeout.limit(),
    };
    let mut report = test::run(&options, &mut io::stdin())?;
    if args.failed_only && matches!(args.output, TestOutput::Text | TestOutput::Json) {
        report.retain_failed();
    }
    let text = match args.output {
        TestOutput::Text => test::render::text(&report, terminal, args.verbose),
        TestOutput::Json => json(&report)?,
        TestOutput::Junit => test::junit::xml(&report),
        TestOutput::Github => test::github::annotations(&report),
        TestOutput::Lcov => test::coverage::lcov(report.coverage.as_deref().unwrap_or_default()),
    };
    write(out, &text)?;
    if let (Some(filter), 0, Some(name)) =
        (&args.run, report.summary.cases, &report.first_not_selected)
    {
        let _ = writeln!(
            err,
            "error: no case matches `--run {}`; names have the form PROBE/CASE, such as `{}`",
            text::clean(&filter.pattern),
            text::clean(name)
        );
    } else if report.summary.cases == 0 && report.summary.errors == 0 {
        let _ = writeln!(err, "error: the input has no PolicyProbe");
    }
    let coverage = report.coverage.as_deref().unwrap_or_default();
    let percent = test::coverage::percent(coverage);
    let is_too_little =
        (args.coverage_threshold).is_some_and(|threshold| percent < usize::from(threshold));
    let has_no_policies = coverage.is_empty() && !report.not_measured.is_empty();
    Ok(match report.exit() {
        Exit::Clean if has_no_policies && args.coverage_threshold.is_some() => {
            let message =
                "error: coverage is measured only for validating policies, and no probe tests one";
            let _ = writeln!(err, "{message}");
            Exit::Findings
        }
        Exit::Clean if is_too_little => {
            let threshold = args.coverage_threshold.unwrap_or_default();
            let untested: Vec<&str> = test::coverage::untested(coverage).collect();
            let untested = match untested.as_slice() {
                [] => String::new(),
                names => format!("; no probe tests: {}", text::clean(&names.join(", "))),
            };
            let _ = writeln!(
                err,
                "error: coverage is {percent}%, below the threshold of {threshold}%{untested}"
            );
            Exit::Findings
        }
        exit => exit,
    })
}

/// Returns the version of the flag `--kubernetes-version`, or the version that `.vap.yaml` pins for `paths`.
///
/// # Errors
/// Returns an error if the configuration cannot be read.
fn version_for(
    flag: Option<KubernetesVersion>,
    paths: &[PathBuf],
) -> Result<Option<KubernetesVersion>, CliError> {
    match flag {
        Some(version) => Ok(Some(version)),
        None => check::config::pinned_version(paths),
    }
}

fn run_init(args: &InitArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, CliError> {
    let version = version_for(args.kubernetes_version, &args.paths)?;
    let options = test::Options {
        paths: args.paths.clone(),
        crds: args.crds.clone(),
        version,
        ..test::Options::default()
    };
    let report = test::init::run(&options, &mut io::stdin())?;
    write(
        out,
        &report.yaml().map_err(|error| CliError::Format {
            format: "yaml",
            reason: error.to_string(),
        })?,
    )?;
    for line in report.diagnostics() {
        let _ = writeln!(err, "{line}");
    }
    Ok(report.exit())
}

fn run_eval(args: &EvalArgs, terminal: Terminal, out: &mut dyn Write) -> Result<Exit, CliError> {
    if !args.expressions.is_empty() {
        let report = eval::run_expressions(args, &mut io::stdin())?;
        let text = match args.output.format {
            OutputFormat::Text => eval::render::expressions(&report, terminal, args.verbose),
            OutputFormat::Json => json(&report)?,
        };
        write(out, &text)?;
        return Ok(report.exit());
    }
    let report = eval::run(args, &mut io::stdin())?;
    let text = match args.output.format {
        OutputFormat::Text => eval::render::text(&report, terminal, args.verbose),
        OutputFormat::Json => json(&report)?,
    };
    write(out, &text)?;
    Ok(report.exit())
}

fn run_audit(
    args: &AuditArgs,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let report = audit::run(args, &mut io::stdin(), out, err)?;
    if args.output == AuditOutput::Text {
        write(out, &audit::render::text(&report, terminal))?;
    }
    if report.policies.is_empty() && report.summary.errors == 0 {
        let _ = writeln!(err, "error: no policy found to audit with");
    }
    Ok(report.exit(args.exit_zero))
}

fn run_diff(args: &DiffArgs, terminal: Terminal, out: &mut dyn Write) -> Result<Exit, CliError> {
    let report = diff::run(args, &mut io::stdin())?;
    let text = match args.output.format {
        OutputFormat::Text => diff::render::text(&report, terminal),
        OutputFormat::Json => json(&report)?,
    };
    write(out, &text)?;
    Ok(report.exit())
}

fn run_upgrade(
    args: &UpgradeArgs,
    terminal: Terminal,
    out: &mut dyn Write,
) -> Result<Exit, CliError> {
    let upgrade = upgrade::run(args, &mut io::stdin())?;
    let report = &upgrade.report;
    if let Some(path) = &args.write_probes {
        let yaml = upgrade.probes_yaml()?;
        std::fs::write(path, yaml).map_err(|error| {
            let message = format!("{}: {error}", path.display());
            CliError::Write(io::Error::new(error.kind(), message))
        })?;
    }
    let mut text = match args.output.format {
        OutputFormat::Text => upgrade::render::text(report, terminal, args.verbose),
        OutputFormat::Json => json(report)?,
    };
    if let (Some(path), OutputFormat::Text) = (&args.write_probes, args.output.format) {
        let summary = upgrade.probes_summary();
        text.extend([path.display().to_string(), format!(": {summary}\n")]);
    }
    write(out, &text)?;
    Ok(report.exit(args.strict))
}

fn run_convert(
    args: &ConvertArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let version = version_for(args.kubernetes_version, std::slice::from_ref(&args.suite))?;
    let converted = test::convert::run(&test::convert::ConvertOptions {
        suite: args.suite.clone(),
        version,
        crds: args.crds.clone(),
        with_policies: args.with_policies,
    })?;
    let yaml = converted.yaml().map_err(|error| CliError::Format {
        format: "yaml",
        reason: error.to_string(),
    })?;
    write(out, &yaml)?;
    for line in converted.diagnostics() {
        let _ = writeln!(err, "{line}");
    }
    Ok(converted.exit())
}

fn run_explain(
    args: &ExplainArgs,
    terminal: Terminal,
    out: &mut dyn Write,
) -> Result<Exit, CliError> {
    let topic = match args.words.as_slice() {
        [] => explain::Topic::Rules(Rule::ALL.to_vec()),
        words => explain::topic(words)?,
    };
    let text = match (args.output.format, topic) {
        (OutputFormat::Text, explain::Topic::Rules(rules)) => match rules.as_slice() {
            [rule] => explain::text(*rule, terminal),
            rules => explain::table(rules, terminal),
        },
        (OutputFormat::Text, explain::Topic::Field(field)) => {
            field_reference::text(&field, terminal)
        }
        (OutputFormat::Json, explain::Topic::Rules(rules)) => json(&explain::list(&rules))?,
        (OutputFormat::Json, explain::Topic::Field(field)) => json(&field)?,
    };
    write(out, &text).map(|()| Exit::Clean)
}
