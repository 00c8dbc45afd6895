//! The controller: reads its arguments, wires the parts together, and runs until it is told to stop.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use vap_status_controller::controller::args::{Arguments, Command, RunArguments};
use vap_status_controller::controller::{Controller, startup};
use vap_status_controller::probe::self_test;
use vap_status_controller::server::{self, Check, Health};
use vap_status_controller::telemetry::{Metrics, logging};

/// The exit status where only a person can mend what is wrong.
const WRONG_USE: u8 = 2;

/// Enough for the tasks; the work that takes time runs on threads of its own.
const WORKER_THREADS: usize = 2;

/// How many policies are checked at once.
const CHECK_THREADS: usize = 2;

/// How many policies have their probes evaluated at once, apart from the checks.
const PROBE_THREADS: usize = 2;

/// The stack of each thread; only what is used of it takes memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

fn main() -> ExitCode {
    let Command::Run(arguments) = Arguments::parse().command;
    if let Err(text) = logging::init(arguments.log_format, &arguments.log_filter) {
        return wrong_use(&text);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .max_blocking_threads(CHECK_THREADS + PROBE_THREADS)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(arguments)),
        Err(error) => Err(format!("cannot start threads: {error}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => wrong_use(&text),
    }
}

/// One line that says what to do, whatever is logged.
#[expect(
    clippy::print_stderr,
    reason = "logging may be what could not be started"
)]
fn wrong_use(text: &str) -> ExitCode {
    eprintln!("vap-status-controller: {text}");
    ExitCode::from(WRONG_USE)
}

async fn run(arguments: RunArguments) -> Result<(), String> {
    let stop = stop_signal()?;
    let listener = server::bind(arguments.listen).await?;
    let client = startup::client().await?;
    let metrics = Arc::new(Metrics::new());
    let controller = Controller::new(client.clone(), arguments.settings(), Arc::clone(&metrics));

    let readiness = controller.readiness();
    let check = |(name, problem)| Check { name, problem };
    let evaluator = Check {
        name: "evaluator",
        problem: self_test::run().err(),
    };
    if let Some(problem) = &evaluator.problem {
        tracing::error!(%problem, "this build is broken; it never becomes ready");
    }
    let checks = move || {
        let facts = readiness.checks().into_iter().map(check);
        facts.chain([evaluator.clone()]).collect()
    };
    let health = Health {
        checks: Arc::new(checks),
        metrics,
    };
    let server = tokio::spawn(server::serve(listener, health));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), listen = %arguments.listen, "started");

    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        outcome = startup::check_api(&client, arguments.startup_timeout) => outcome?,
        () = &mut stop => return Ok(()),
    }
    controller.run(stop).await;
    server.abort();
    tracing::info!("stopped");
    Ok(())
}

/// Ends on the first SIGTERM or SIGINT.
fn stop_signal() -> Result<impl Future<Output = ()>, String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen to signals: {error}"));
    let (mut terminate, mut interrupt) = (
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
    );
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to stop");
    })
}
