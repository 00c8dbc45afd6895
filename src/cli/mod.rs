//! The kubectl plugin: what a person reads of the statuses, and how.
//!
//! Takes the command line and the terminal, gives text, JSON or YAML and an exit status. Only
//! [`status`] talks to a cluster; everything else is pure and works on the plain structs of
//! [`report`]. It knows nothing of how a status comes about.

pub mod age;
pub mod args;
mod error;
pub mod exit;
pub mod input;
pub mod render;
pub mod report;
pub mod status;
pub mod terminal;
mod text;

use std::io::{self, Write};

use args::{Args, Command, Output, StatusArgs};
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
    let policies = status::read(&args.connection, args.name.as_deref())?;
    let report = StatusReport::of(&policies);
    let exit = if args.exit_zero {
        Exit::Clean
    } else {
        report.exit()
    };
    let now = status::now();
    let text = match args.output {
        Output::Json => report.to_json()?,
        Output::Yaml => report.to_yaml()?,
        Output::Table | Output::Wide if report.policies.is_empty() => {
            let _ = writeln!(err, "no ValidatingAdmissionPolicies found");
            return Ok(exit);
        }
        Output::Table | Output::Wide => match (args.name.as_deref(), report.policies.as_slice()) {
            (Some(_), [policy]) => render::details(policy, now, terminal),
            _ => render::table(&report, now, terminal, args.output == Output::Wide),
        },
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(exit),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit),
        Err(error) => Err(CliError::Write(error)),
    }
}
