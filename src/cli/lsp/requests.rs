//! Processes the requests of features on a thread, so that they do not delay changes of documents.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::checker::Reports;
use super::context::Context;
use super::outbox::{ErrorCode, Failure, Outbox, Outcome};
use super::positions::Encoding;
use super::workspace::Workspace;
use super::{actions, completion, hover, lenses, navigation, signature, symbols, tokens};
use crate::cel::interrupt::Interrupt;
use crate::cli::parallel::STACK_BYTES;

/// Time limit of a request.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// A feature: converts the parameters of a request to its result.
type Handler = fn(&Context<'_>, Value) -> Outcome;

/// The LSP method of each feature.
const HANDLERS: &[(&str, Handler)] = &[
    ("textDocument/codeAction", |context, params| {
        handle(params, |params| actions::actions(context, params))
    }),
    ("textDocument/hover", |context, params| {
        handle(params, |params| hover::hover(context, params))
    }),
    ("textDocument/completion", |context, params| {
        handle(params, |params| completion::completion(context, params))
    }),
    ("textDocument/definition", |context, params| {
        handle(params, |params| navigation::definition(context, params))
    }),
    ("textDocument/references", |context, params| {
        handle(params, |params| navigation::references(context, params))
    }),
    ("textDocument/prepareRename", |context, params| {
        handle(params, |params| navigation::prepare_rename(context, params))
    }),
    ("textDocument/rename", |context, params| {
        let params = decode(params)?;
        let edit = navigation::rename(context, &params)?;
        Ok(json!(edit))
    }),
    ("textDocument/documentSymbol", |context, params| {
        handle(params, |params| symbols::symbols(context, params))
    }),
    ("textDocument/semanticTokens/full", |context, params| {
        handle(params, |params| tokens::tokens(context, params))
    }),
    ("textDocument/signatureHelp", |context, params| {
        handle(params, |params| signature::signature_help(context, params))
    }),
    ("textDocument/codeLens", |context, params| {
        handle(params, |params| lenses::lenses(context, params))
    }),
    ("workspace/executeCommand", |context, params| {
        let params = decode(params)?;
        Ok(json!(lenses::execute(context, &params)?))
    }),
];

/// Returns the result of a request. `None` if no feature has the method.
#[cfg(test)]
pub(super) fn process(context: &Context<'_>, method: &str, params: Value) -> Option<Outcome> {
    handler(method).map(|handler| handler(context, params))
}

fn handler(method: &str) -> Option<Handler> {
    let mut handlers = HANDLERS.iter();
    let entry = handlers.find(|(known, _)| *known == method);
    entry.map(|(_, handler)| *handler)
}

/// Decodes the parameters, and encodes the result of `feature`.
fn handle<P: DeserializeOwned, R: Serialize>(
    params: Value,
    feature: impl FnOnce(&P) -> R,
) -> Outcome {
    Ok(json!(feature(&decode(params)?)))
}

fn decode<P: DeserializeOwned>(params: Value) -> Result<P, Failure> {
    serde_json::from_value(params).map_err(|error| Failure {
        code: ErrorCode::InvalidParams,
        message: error.to_string(),
    })
}

struct Job {
    id: Value,
    handler: Handler,
    params: Value,
    workspace: Arc<Workspace>,
}

pub(super) struct Requests {
    jobs: Sender<Job>,
    cancelled: Arc<Mutex<HashSet<String>>>,
}

impl Requests {
    /// Starts the thread.
    pub(super) fn start(
        outbox: Outbox,
        (encoding, has_snippets): (Encoding, bool),
        reports: Reports,
    ) -> Self {
        let (sender, receiver) = channel();
        let cancelled = Arc::default();
        let worker = Worker {
            jobs: receiver,
            outbox,
            encoding,
            has_snippets,
            reports,
            cancelled: Arc::clone(&cancelled),
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        // If the thread cannot start, requests get no response.
        let _ = thread.spawn(move || worker.run());
        Self {
            jobs: sender,
            cancelled,
        }
    }

    /// Queues a request. Returns false if no feature has the method.
    pub(super) fn queue(
        &self,
        (id, method, params): (Value, &str, Value),
        workspace: &Arc<Workspace>,
    ) -> bool {
        let Some(handler) = handler(method) else {
            return false;
        };
        let job = Job {
            id,
            handler,
            params,
            workspace: Arc::clone(workspace),
        };
        self.jobs.send(job).is_ok()
    }

    /// Cancels a queued request.
    pub(super) fn cancel(&self, id: &Value) {
        let mut cancelled = self
            .cancelled
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The limit matters only if the client cancels requests that it never sent.
        if cancelled.len() < 1_000 {
            cancelled.insert(id.to_string());
        }
    }
}

struct Worker {
    jobs: Receiver<Job>,
    outbox: Outbox,
    encoding: Encoding,
    has_snippets: bool,
    reports: Reports,
    cancelled: Arc<Mutex<HashSet<String>>>,
}

impl Worker {
    fn run(&self) {
        for job in &self.jobs {
            let is_cancelled = {
                let mut cancelled = self
                    .cancelled
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                cancelled.remove(&job.id.to_string())
            };
            let id = job.id.clone();
            let outcome = if is_cancelled {
                let message = "the client cancelled the request";
                Err(Failure::with_code(ErrorCode::RequestCancelled, message))
            } else {
                self.process(job)
            };
            self.outbox.respond(&id, outcome);
        }
    }

    fn process(&self, job: Job) -> Outcome {
        let start = Instant::now();
        let interrupt = Interrupt::new(move || start.elapsed() >= TIME_LIMIT);
        let context = Context {
            workspace: &job.workspace,
            encoding: self.encoding,
            reports: &self.reports,
            has_snippets: self.has_snippets,
            outbox: &self.outbox,
        };
        let work = AssertUnwindSafe(|| interrupt.run(|| (job.handler)(&context, job.params)));
        match catch_unwind(work) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => {
                let limit = TIME_LIMIT.as_secs();
                let message = format!("the request exceeded the time limit of {limit} s");
                Err(Failure::new(&message))
            }
            Err(_) => {
                let message = "internal error in kubectl-vap; please report it";
                Err(Failure::with_code(ErrorCode::InternalError, message))
            }
        }
    }
}
