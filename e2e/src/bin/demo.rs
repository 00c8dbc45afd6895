//! Runs the demo on a real API server. With `--once`, runs it as a test.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the output is for the user, and not a log"
)]

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use e2e::demo::Demo;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "\
Usage: demo [--once]

Starts a local Kubernetes API server and the controller, installs the sample
policies of config/samples, shows their status, installs a missing CRD, and shows
how the status turns. Everything keeps running until Ctrl-C.

Options:
  --once      end by itself
  -h, --help  print this text

Exit status: 0 if each status is what its sample says, before and after the
change; 1 if not, or if something does not start; 2 for wrong use.";

#[tokio::main]
async fn main() -> ExitCode {
    let mut once = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--once" => once = true,
            "-h" | "--help" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            _ => {
                eprintln!("error: unknown argument `{argument}`\n\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match run_until_signal(once).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the demo. A signal stops the demo and all processes that it started.
async fn run_until_signal(once: bool) -> Result<ExitCode> {
    let mut interrupted = signal(SignalKind::interrupt()).context("SIGINT")?;
    let mut terminated = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut is_finished = false;
    let outcome = tokio::select! {
        _ = interrupted.recv() => None,
        _ = terminated.recv() => None,
        outcome = run_demo(once, &mut is_finished) => Some(outcome),
    };
    match outcome {
        Some(outcome) => outcome.map(|()| ExitCode::SUCCESS),
        None if is_finished => Ok(ExitCode::SUCCESS),
        None => {
            eprintln!("interrupted");
            Ok(ExitCode::from(130))
        }
    }
}

async fn run_demo(once: bool, is_finished: &mut bool) -> Result<()> {
    let mut demo = Demo::run().await?;
    *is_finished = true;
    if once {
        return Ok(());
    }
    demo.invite()?;
    demo.watch().await
}
