//! The controller binary: parses the arguments, builds the components, and runs until it receives SIGTERM or SIGINT.

mod arenas;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use vap_status_controller::cluster::blocking;
use vap_status_controller::controller::args::{
    Arguments, ClearArguments, Command, ProbeArguments, RunArguments,
};
use vap_status_controller::controller::{Controller, clear, startup};
use vap_status_controller::probe::self_test;
use vap_status_controller::server::{self, Check, Endpoints, Health, http_probe};
use vap_status_controller::telemetry::{Metrics, logging};

/// The exit status for an error that only the user can fix.
const USAGE_ERROR: u8 = 2;

/// The exit status for an error that a restart may fix.
const FATAL_ERROR: u8 = 1;

/// The number of threads for asynchronous tasks. Long computations run on the blocking thread pool instead.
const WORKER_THREADS: usize = 2;

/// The stack size of each thread, in bytes. Unused parts occupy no memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

fn main() -> ExitCode {
    let arguments = match Arguments::parse().command {
        Command::Run(arguments) => arguments,
        Command::Clear(arguments) => return clear(&arguments),
        Command::Probe(arguments) => return probe(&arguments),
    };
    if let Err(text) = logging::init(arguments.log_format, &arguments.log_filter) {
        return usage_error(&text);
    }
    if let Err(error) = arenas::limit() {
        tracing::warn!(%error, "cannot limit the arenas of the allocator; the process may need more memory");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .max_blocking_threads(blocking::THREADS)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return usage_error(&format!("cannot start threads: {error}")),
    };
    let outcome = runtime.block_on(run(arguments));
    // Dropping the runtime instead would wait for running checks and probes to end.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Use(text)) => usage_error(&text),
        Err(Failure::Stopped(reason)) => {
            tracing::error!(%reason, "fatal error, exiting for restart");
            ExitCode::from(FATAL_ERROR)
        }
    }
}

/// Runs the command `clear`. The exit status is 1 if a status could not be cleared.
fn clear(arguments: &ClearArguments) -> ExitCode {
    match clear::run(
        arguments.options(),
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    ) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FATAL_ERROR),
        Err(text) => usage_error(&text),
    }
}

/// Runs the command `probe`. The exit status is 1 if no response is a success.
#[expect(clippy::print_stderr, reason = "the command does not log")]
fn probe(arguments: &ProbeArguments) -> ExitCode {
    match http_probe::run(&arguments.url, arguments.timeout, &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("vap-status-controller: {text}");
            ExitCode::from(FATAL_ERROR)
        }
    }
}

/// The reason why the process ends without having received a signal.
#[derive(Debug)]
enum Failure {
    /// An error that the user must fix.
    Use(String),
    /// An error that a restart may fix.
    Stopped(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Use(text)
    }
}

/// Prints a one-line error to standard error, regardless of the log settings.
#[expect(clippy::print_stderr, reason = "logging may have failed to start")]
fn usage_error(text: &str) -> ExitCode {
    eprintln!("vap-status-controller: {text}");
    ExitCode::from(USAGE_ERROR)
}

async fn run(arguments: Box<RunArguments>) -> Result<(), Failure> {
    let stop = stop_signal()?;
    let listener = server::bind(arguments.listen, "--listen").await?;
    let address = listener.local_addr().unwrap_or(arguments.listen);
    let metrics_listener = match arguments.metrics_listen {
        Some(address) => Some(server::bind(address, "--metrics-listen").await?),
        None => None,
    };
    let metrics = Arc::new(Metrics::new());
    let identity = startup::identity();
    let client = startup::client(&identity, &metrics).await?;
    let election = arguments.election(identity)?;
    let controller = Controller::new(client.clone(), arguments.settings(), Arc::clone(&metrics))
        .elected(election);

    let readiness = controller.readiness();
    let check = |(name, problem): (&'static str, _)| Check {
        name: name.into(),
        problem,
    };
    let evaluator = Check {
        name: "evaluator".into(),
        problem: self_test::run().err(),
    };
    if let Some(problem) = &evaluator.problem {
        tracing::error!(%problem, "the self-test of the CEL evaluator failed, so this build never becomes ready; use another release");
    }
    let checks = move || {
        let facts = readiness().into_iter().map(check);
        facts.chain([evaluator.clone()]).collect()
    };
    let supervisor = controller.supervisor();
    let alive = move || {
        let tasks = supervisor.checks().into_iter();
        tasks
            .map(|(name, problem)| Check {
                name: name.into(),
                problem,
            })
            .collect()
    };
    let health = Health {
        checks: Arc::new(checks),
        alive: Arc::new(alive),
        measure: Arc::new(controller.measure()),
        metrics,
    };
    let mut servers = JoinSet::new();
    let endpoints = match metrics_listener {
        Some(listener) => {
            servers.spawn(server::serve(listener, health.clone(), Endpoints::Metrics));
            Endpoints::Health
        }
        None => Endpoints::All,
    };
    servers.spawn(server::serve(listener, health, endpoints));
    tracing::info!(version = env!("CARGO_PKG_VERSION"), listen = %address, "started");

    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        outcome = startup::check_api(&client, arguments.startup_timeout) => outcome?,
        () = &mut stop => return Ok(()),
    }
    // The servers run until the process ends.
    tokio::select! {
        outcome = controller.run(stop) => outcome.map_err(Failure::Stopped)?,
        _ = servers.join_next() => {
            let reason = "the health server ended unexpectedly".to_owned();
            return Err(Failure::Stopped(reason));
        }
    }
    tracing::info!("stopped");
    Ok(())
}

/// Returns a future that completes at the first SIGTERM or SIGINT.
fn stop_signal() -> Result<impl Future<Output = ()>, String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
    let (mut terminate, mut interrupt) = (
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
    );
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("received a termination signal, stopping");
    })
}
