//! Starts a control plane for manual work, prints connection settings, and stops it on Ctrl-C.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the output is for the user, and not a log"
)]

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};
use e2e::ControlPlane;
use e2e::control_plane::{ASSETS_VARIABLE, Binaries, Builder, CACHE_VARIABLE};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "\
Usage: control-plane [--kcm] [--build-only]

Starts etcd and kube-apiserver, prints shell commands that point kubectl at them,
and stops them on Ctrl-C.

Options:
  --kcm         also start kube-controller-manager with upstream's status controller
  --build-only  only find or build the binaries, and print their directory
  -h, --help    print this text";

#[tokio::main]
async fn main() -> ExitCode {
    let mut builder = ControlPlane::builder();
    let mut is_build_only = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--kcm" => builder = builder.status_controller(),
            "--build-only" => is_build_only = true,
            "-h" | "--help" => {
                println!(
                    "{USAGE}\n\nEnvironment: {ASSETS_VARIABLE}, {CACHE_VARIABLE} (see e2e/README.md)"
                );
                return ExitCode::SUCCESS;
            }
            _ => {
                eprintln!("error: unknown argument `{argument}`\n\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let outcome = if is_build_only {
        build().await
    } else {
        run_until_signal(builder).await
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn build() -> Result<()> {
    let binaries = tokio::task::spawn_blocking(Binaries::find_or_build).await??;
    println!("{}", binaries.directory().display());
    Ok(())
}

async fn run_until_signal(builder: Builder) -> Result<()> {
    // The handlers must exist before the control plane starts, so that every signal leads to a cleanup.
    let mut interrupted = signal(SignalKind::interrupt()).context("SIGINT")?;
    let mut terminated = signal(SignalKind::terminate()).context("SIGTERM")?;
    tokio::select! {
        _ = interrupted.recv() => Ok(()),
        _ = terminated.recv() => Ok(()),
        outcome = run(builder) => outcome,
    }
}

async fn run(builder: Builder) -> Result<()> {
    let binaries = tokio::task::spawn_blocking(Binaries::find_or_build).await??;
    let begin = Instant::now();
    let control_plane = builder.start().await?;
    let seconds = begin.elapsed().as_secs_f64();
    let exports = format!(
        "export KUBECONFIG='{}'\nexport PATH='{}':\"$PATH\"\n",
        control_plane.kubeconfig()?.display(),
        binaries.directory().display()
    );
    // All lines are written at once, because the reader may close the pipe after the first line. Unlike `println!`, a
    // failed write does not panic.
    if let Err(error) = std::io::stdout().write_all(exports.as_bytes()) {
        eprintln!("warning: the commands were not printed: {error}\n{exports}");
    }
    let directory = control_plane.directory().display();
    eprintln!("ready after {seconds:.1} s; logs in {directory}; Ctrl-C ends it");
    std::future::pending().await
}
